package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

type auditCommands struct {
	List   auditList   `cmd:"" help:"List what was done to the platform and to all merchants, the newest first."`
	Export auditExport `cmd:"" help:"Print the audit as lines of JSON, the oldest first, each with its link in the chain."`
	Verify auditVerify `cmd:"" help:"Verify that nobody has altered, deleted or inserted an entry; the exit code is 1 where somebody has."`
}

type auditList struct{ adminapi.AuditsFilter }

// Run prints the audit of all, the newest entry first.
func (c *auditList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showAudit(c.AuditSelection, true, func(page adminapi.AuditSelection) ([]store.Audit, error) {
		c.AuditSelection = page
		return adminapi.ListAudits.Call(ctx, admin, c.AuditsFilter)
	})
}

type merchantAudit struct{ adminapi.AuditFilter }

// Run prints the audit, the newest entry first.
func (c *merchantAudit) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	return p.showAudit(c.AuditSelection, false, func(page adminapi.AuditSelection) ([]store.Audit, error) {
		c.AuditSelection = page
		return adminapi.ListAudit.Call(ctx, admin, c.AuditFilter)
	})
}

// showAudit reads entries page by page and prints them.
func (p *program) showAudit(wanted adminapi.AuditSelection, ofAll bool, read func(adminapi.AuditSelection) ([]store.Audit, error)) error {
	entries, most := []store.Audit{}, wanted.Limit
	for {
		wanted.Limit = adminapi.MostListed
		if most > 0 {
			wanted.Limit = min(most-len(entries), adminapi.MostListed)
		}
		page, err := read(wanted)
		if err != nil {
			return err
		}
		entries = append(entries, page...)
		if len(page) < wanted.Limit || len(entries) == most {
			break
		}
		last := page[len(page)-1]
		wanted.Until, wanted.After = last.At, last.ID.String()
	}
	rows := [][]string{{"AT", "OPERATOR", "FROM", "ACTION", "DETAIL"}}
	if ofAll {
		rows[0] = append(rows[0][:4:4], "MERCHANT", "DETAIL")
	}
	for _, e := range entries {
		action := e.Action
		if e.Times > 1 {
			action += " ×" + strconv.FormatInt(e.Times, 10)
		}
		row := []string{timeText(&e.At), e.Operator, string(e.From), action}
		if ofAll {
			row = append(row, string(e.Merchant))
		}
		rows = append(rows, append(row, e.Detail))
	}
	return p.show(entries, rows...)
}

type auditExport struct {
	adminapi.AuditExport
	To string `placeholder:"FILE" help:"Write to this new file, of mode 0600."`
}

// Run prints the lines.
func (c *auditExport) Run(ctx context.Context, p *program, admin *adminapi.Client) (err error) {
	to := p.out
	if c.To != "" {
		file, err := os.OpenFile(c.To, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		to = file
	}
	lines := json.NewEncoder(to)
	lines.SetEscapeHTML(false)
	for c.Limit = adminapi.MostListed; ; {
		page, err := adminapi.ExportAudit.Call(ctx, admin, c.AuditExport)
		if err != nil {
			return err
		}
		for _, l := range page {
			if err := lines.Encode(l); err != nil {
				return err
			}
			c.After = l.Sequence
		}
		if len(page) < c.Limit {
			return nil
		}
	}
}

type auditVerify struct {
	Against string `placeholder:"FILE" help:"Compare with this export, too: the link in its last line must still be the same."`
}

// Run prints what is broken.
func (c *auditVerify) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	var exported adminapi.ExportedLink
	if c.Against != "" {
		var err error
		if exported, err = lastLink(c.Against); err != nil {
			return fmt.Errorf("%s: %w", c.Against, err)
		}
	}
	found, err := adminapi.VerifyAudit.Call(ctx, admin, exported)
	if err != nil {
		return err
	}
	rows := [][]string{
		{"links", strconv.FormatInt(found.Sequence, 10)}, {"hash of the last", dash(found.Hash)}, {"proven since", dash(timeText(&found.Since))},
		{"older entries, not proven before", strconv.FormatInt(found.Found, 10)}, {"entries that wait for their link", strconv.FormatInt(found.Waiting, 10)},
		{"links by keys that are gone", strconv.FormatInt(found.Inherited, 10)},
	}
	if len(found.Breaks) > 0 {
		rows = append(rows, []string{}, []string{"AT", "BROKEN"})
	}
	for _, b := range found.Breaks {
		rows = append(rows, []string{timeText(&b.At), b.String()})
	}
	if err := p.show(found, rows...); err != nil {
		return err
	}
	if n := len(found.Breaks); n > 0 {
		return fmt.Errorf("the audit is not as gateways have written it: breaks: %d", n)
	}
	return nil
}

// lastLink reads the last whole line of an export. A file that a sink writes to may have a
// part of one behind it.
func lastLink(path string) (link adminapi.ExportedLink, err error) {
	file, err := os.Open(path)
	if err != nil {
		return link, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	var line store.AuditLine
	reader := bufio.NewReader(file)
	for {
		text, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return link, err
		}
		if err := json.Unmarshal(bytes.TrimSpace(text), &line); err != nil {
			return link, fmt.Errorf("a line is not of an export: %w", err)
		}
		if line.Sequence > link.Sequence { // a sink sends some again
			link = adminapi.ExportedLink{Sequence: line.Sequence, Hash: line.Hash}
		}
	}
	if link.Sequence == 0 {
		return link, errors.New("there is no line of an export in it")
	}
	return link, nil
}
