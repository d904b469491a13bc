package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type attentionCommands struct {
	List    attentionList    `cmd:"" help:"List what waits for an operator."`
	Resolve attentionResolve `cmd:"" help:"Take an entry off the list."`
}

type attentionList struct {
	Limit int `default:"100" help:"How many entries to show at most, 1 to 1000."`
}

// Run prints the open entries, the newest first, and says when there are more.
func (c *attentionList) Run(ctx context.Context, p *program) error {
	if c.Limit < 1 || c.Limit > mostEntries {
		return usage(errors.New("--limit must be from 1 to 1000"))
	}
	admin, err := p.admin()
	if err != nil {
		return err
	}
	entries, err := admin.Exceptions(ctx)
	if err != nil {
		return err
	}
	shown := entries[:min(len(entries), c.Limit)]
	rows := [][]string{{"ID", "AT", "MERCHANT", "MODE", "SUBJECT", "REASON", "FACT", "PROVIDER", "DETAIL"}}
	for _, e := range shown {
		fact := e.FactID
		if fact == "" {
			fact = "-"
		}
		rows = append(rows, []string{e.ID, timeText(&e.At), e.MerchantID, e.Mode, e.Subject, e.Reason, fact, e.Provider, e.Detail})
	}
	if err := p.show(shown, rows...); err != nil {
		return err
	}
	switch {
	case len(entries) == mostEntries:
		_, err = fmt.Fprintf(p.err, "%d of %d or more are shown, the newest ones\n", len(shown), mostEntries)
	case len(shown) < len(entries):
		_, err = fmt.Fprintf(p.err, "%d of %d are shown, the newest ones; --limit %d shows all\n", len(shown), len(entries), len(entries))
	}
	return err
}

// mostEntries is how many entries the console tells at most.
const mostEntries = 1000

type attentionResolve struct {
	Entry      string `arg:"" optional:"" help:"The entry's id, or a beginning of its id or subject that no other open entry has."`
	Merchant   string `help:"The entry's merchant, where it is named by its parts."`
	Mode       string `enum:",live,test" default:"" help:"live or test."`
	Subject    string `help:"The entry's subject."`
	Reason     string `help:"The entry's reason."`
	Fact       string `help:"The entry's fact, where it has one."`
	Resolution string `required:"" help:"How it was settled."`
}

// Run settles the entry.
func (c *attentionResolve) Run(ctx context.Context, p *program) error {
	named := c.Merchant+c.Mode+c.Subject+c.Reason+c.Fact != ""
	if named == (c.Entry != "") || named && (c.Merchant == "" || c.Mode == "" || c.Subject == "" || c.Reason == "") {
		return usage(errors.New("name the entry by its id, or by --merchant, --mode, --subject and --reason, and --fact where it has one"))
	}
	admin, err := p.admin()
	if err != nil {
		return err
	}
	r := adminapi.Resolution{
		MerchantID: c.Merchant, Mode: c.Mode, Subject: c.Subject, Reason: c.Reason, FactID: c.Fact, Resolution: c.Resolution,
	}
	if !named {
		entry, err := c.find(ctx, admin)
		if err != nil {
			return err
		}
		r.MerchantID, r.Mode, r.Subject, r.Reason, r.FactID = entry.MerchantID, entry.Mode, entry.Subject, entry.Reason, entry.FactID
	}
	if err := admin.ResolveException(ctx, r); err != nil {
		return err
	}
	return p.show(r, []string{"resolved", r.Subject, r.Reason})
}

// find is the one open entry that begins as the operator wrote.
func (c *attentionResolve) find(ctx context.Context, admin *adminapi.Client) (adminapi.Exception, error) {
	entries, err := admin.Exceptions(ctx)
	if err != nil {
		return adminapi.Exception{}, err
	}
	var found []adminapi.Exception
	for _, e := range entries {
		if e.ID == c.Entry {
			return e, nil
		}
		if strings.HasPrefix(e.ID, c.Entry) || strings.HasPrefix(e.Subject, c.Entry) {
			found = append(found, e)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) == 0 && len(entries) == mostEntries {
		return adminapi.Exception{}, fmt.Errorf("none of the newest %d entries begins with %q; name an older one by --merchant, --mode, --subject and --reason, and --fact where it has one", mostEntries, c.Entry)
	}
	if len(found) == 0 {
		return adminapi.Exception{}, fmt.Errorf("no open entry begins with %q; gerbang attention list shows them", c.Entry)
	}
	text := fmt.Sprintf("%d open entries begin with %q:", len(found), c.Entry)
	for _, e := range found[:min(len(found), 10)] {
		text += fmt.Sprintf("\n  %s  %s  %s", e.ID, e.Subject, e.Reason)
	}
	return adminapi.Exception{}, errors.New(text)
}
