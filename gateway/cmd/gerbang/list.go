package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

type listCommands struct {
	Show   listShow   `cmd:"" help:"List all lists, or the entries of one."`
	Find   listFind   `cmd:"" help:"Tell which values are on a list, and why."`
	Add    listAdd    `cmd:"" help:"Put values on a list, on every replica within a second."`
	Import listImport `cmd:"" help:"Put the values of a CSV file on a list."`
	Remove listRemove `cmd:"" help:"Take values off a list."`
}

type listShow struct {
	List  string `arg:"" optional:"" help:"The list's name; all lists unless given."`
	After string `help:"The id of an entry, for those behind it."`
	Limit int    `default:"100" help:"How many entries at most, up to 1000."`
}

// Run prints them.
func (c *listShow) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if c.List == "" && c.After != "" {
		return usage(errors.New("--after is for the entries of a list: name it"))
	}
	if c.List != "" {
		return p.showEntries(adminapi.ShowList.Call(ctx, admin, adminapi.ListPage{List: c.List, After: c.After, Limit: c.Limit}))
	}
	lists, err := adminapi.ListLists.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return err
	}
	rows := [][]string{{"LIST", "ENTRIES", "CHANGED", "READ"}}
	for _, l := range lists {
		read := "yes"
		if l.Unread {
			read = "no rule reads it"
		}
		rows = append(rows, []string{l.List, fmt.Sprint(l.Entries), timeText(&l.Changed), read})
	}
	return p.show(lists, rows...)
}

func (p *program) showEntries(entries []adminapi.ListEntry, err error) error {
	if err != nil {
		return err
	}
	rows := [][]string{{"ID", "MASKED", "SINCE", "UNTIL", "BY", "REASON"}}
	for _, e := range entries {
		rows = append(rows, []string{e.ID, e.Masked, timeText(&e.Since), timeText(e.Until), e.By, e.Reason})
	}
	return p.show(entries, rows...)
}

type listFind struct{ adminapi.ListValues }

// Run prints a row for each value that is on the list, and ends as what isn't found where none is.
func (c *listFind) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	entries, err := adminapi.FindInList.Call(ctx, admin, c.ListValues)
	if err := p.showEntries(entries, err); err != nil || len(entries) > 0 {
		return err
	}
	return &adminapi.Failure{Envelope: fault.Envelope{Code: fault.NotFound, Message: "None of them is on the list."}}
}

// warnUnread says that what was put on a list refuses nobody.
func (p *program) warnUnread(changed adminapi.ListChanged) {
	if changed.Unread {
		fmt.Fprintf(p.err, "warning: no rule of the policy in force reads input.lists.%s: nothing changes until one does. The default set's admit.rego has rules for the usual lists.\n", changed.List)
	}
}

type listEnd struct {
	Until *time.Time     `xor:"end" help:"When the entries end; for ever unless given."`
	For   *time.Duration `xor:"end" placeholder:"7d" help:"How long they hold."`
}

func (e listEnd) at(now time.Time) *time.Time {
	if e.For != nil {
		return new(now.Add(*e.For))
	}
	return e.Until
}

type listAdd struct {
	List   string   `arg:"" help:"The list's name, which ends in what it holds, such as blocked_destinations."`
	Values []string `arg:"" help:"Values, spelt in any way."`
	Reason string   `required:"" help:"Why; kept with each entry and in the audit of platform."`
	listEnd
}

// Run puts them on it.
func (c *listAdd) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	wanted := adminapi.NewListEntries{List: c.List, Reason: c.Reason}
	for _, value := range c.Values {
		wanted.Entries = append(wanted.Entries, adminapi.NewListEntry{Value: value, Until: c.at(time.Now())})
	}
	changed, err := adminapi.AddToList.Call(ctx, admin, wanted)
	p.warnUnread(changed)
	return p.showEntries(changed.Entries, err)
}

type listImport struct {
	List   string `arg:"" help:"The list's name."`
	File   string `arg:"" type:"existingfile" help:"CSV with a head: value, and if you like reason and until."`
	Reason string `required:"" help:"Why, of values that have no reason of their own."`
	listEnd
}

// Run reads the whole file before it changes anything, then sends a thousand values at a time. What was sent twice changes nothing.
func (c *listImport) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	entries, err := c.read()
	if err != nil {
		return usage(fmt.Errorf("%s: %w: nothing was changed", c.File, err))
	}
	done, last := 0, adminapi.ListChanged{}
	for chunk := range slices.Chunk(entries, adminapi.MostListValues) {
		changed, err := adminapi.AddToList.Call(ctx, admin, adminapi.NewListEntries{List: c.List, Entries: chunk, Reason: c.Reason})
		if err != nil {
			return fmt.Errorf("%d of %d values are on the list; the same command again goes on with all: %w", done, len(entries), err)
		}
		done, last = done+len(chunk), changed
	}
	p.warnUnread(last)
	return p.show(imported{c.List, done}, []string{fmt.Sprintf("%d values are on %s", done, c.List)})
}

// imported is what an import has done.
type imported struct {
	List    string `json:"list"`
	Entries int    `json:"entries"`
}

func (c *listImport) read() (entries []adminapi.NewListEntry, err error) {
	file, err := os.Open(c.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows := csv.NewReader(file)
	rows.TrimLeadingSpace = true
	head, err := rows.Read()
	if err != nil {
		return nil, errors.New("has no head")
	}
	column := func(name string) int {
		return slices.IndexFunc(head, func(title string) bool { return strings.EqualFold(strings.Trim(title, " \ufeff"), name) })
	}
	value, reason, until := column("value"), column("reason"), column("until")
	if value < 0 {
		return nil, errors.New(`has no column "value"`)
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, _ := rows.FieldPos(value)
		e := adminapi.NewListEntry{Value: row[value], Until: c.at(time.Now())}
		if reason >= 0 {
			e.Reason = row[reason]
		}
		if until >= 0 && row[until] != "" {
			at, err := readTime(row[until], time.Now())
			if err != nil {
				return nil, fmt.Errorf("line %d: until: %w", line, err)
			}
			e.Until = &at
		}
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, errors.New("has no values")
	}
	return entries, nil
}

type listRemove struct{ adminapi.ListRemoval }

// Run takes them off it.
func (c *listRemove) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	changed, err := adminapi.RemoveFromList.Call(ctx, admin, c.ListRemoval)
	return p.showEntries(changed.Entries, err)
}
