package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type exceptionCommands struct {
	List    exceptionList    `cmd:"" help:"List open exceptions, the newest first."`
	Resolve exceptionResolve `cmd:"" help:"Take an exception off the list."`
}

type exceptionList struct {
	Limit int `default:"100" help:"Show at most so many, 1 to 1000 (${default})."`
}

// Run prints the open exceptions and says when there are more.
func (c *exceptionList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if c.Limit < 1 || c.Limit > adminapi.MostListed {
		return usage(errors.New("--limit must be from 1 to 1000"))
	}
	exceptions, err := adminapi.ListExceptions.Call(ctx, admin, adminapi.ExceptionFilter{Limit: adminapi.MostListed})
	if err != nil {
		return err
	}
	shown := exceptions[:min(len(exceptions), c.Limit)]
	rows := [][]string{{"ID", "AT", "MERCHANT", "MODE", "SUBJECT", "REASON", "FACT", "PROVIDER", "DETAIL"}}
	for _, e := range shown {
		rows = append(rows, []string{e.ID, timeText(&e.At), e.MerchantID, e.Mode, e.Subject, e.Reason, dash(e.FactID), e.Provider, e.Detail})
	}
	if err := p.show(shown, rows...); err != nil {
		return err
	}
	switch {
	case len(exceptions) == adminapi.MostListed:
		_, err = fmt.Fprintf(p.err, "%d of %d or more are shown, the newest ones\n", len(shown), adminapi.MostListed)
	case len(shown) < len(exceptions):
		_, err = fmt.Fprintf(p.err, "%d of %d are shown, the newest ones; --limit %d shows all\n", len(shown), len(exceptions), len(exceptions))
	}
	return err
}

type exceptionResolve struct {
	Exception  string `arg:"" optional:"" help:"Its id, or the beginning of its id or subject where no other open exception begins so."`
	Merchant   string `help:"Its merchant, where it is named by its parts."`
	Mode       string `enum:",live,test" default:"" help:"live or test."`
	Subject    string `help:"Its subject."`
	Reason     string `help:"Its reason."`
	Fact       string `help:"Its fact, where it has one."`
	Resolution string `required:"" help:"How it was resolved."`
	confirmed
}

// Run resolves the exception.
func (c *exceptionResolve) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	named := c.Merchant+c.Mode+c.Subject+c.Reason+c.Fact != ""
	if named == (c.Exception != "") || named && (c.Merchant == "" || c.Mode == "" || c.Subject == "" || c.Reason == "") {
		return usage(errors.New("name the exception by its id, or by --merchant, --mode, --subject and --reason, and --fact where it has one"))
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
	if err := c.confirm(p, "Take the exception "+r.Reason+" of "+r.Subject+" off the list"); err != nil {
		return err
	}
	if _, err := adminapi.ResolveException.Call(ctx, admin, r); err != nil {
		return err
	}
	return p.show(r, []string{"resolved", r.Subject, r.Reason})
}

// find is the one open exception that begins as the operator wrote.
func (c *exceptionResolve) find(ctx context.Context, admin *adminapi.Client) (adminapi.Exception, error) {
	exceptions, err := adminapi.ListExceptions.Call(ctx, admin, adminapi.ExceptionFilter{Limit: adminapi.MostListed})
	if err != nil {
		return adminapi.Exception{}, err
	}
	var found []adminapi.Exception
	for _, e := range exceptions {
		if e.ID == c.Exception {
			return e, nil
		}
		if strings.HasPrefix(e.ID, c.Exception) || strings.HasPrefix(e.Subject, c.Exception) {
			found = append(found, e)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	if len(found) == 0 && len(exceptions) == adminapi.MostListed {
		return adminapi.Exception{}, notFoundf("none of the newest %d exceptions begins with %q; name an older one by --merchant, --mode, --subject and --reason, and --fact where it has one", adminapi.MostListed, c.Exception)
	}
	if len(found) == 0 {
		return adminapi.Exception{}, notFoundf("no open exception begins with %q; gerbang exception list shows them", c.Exception)
	}
	text := fmt.Sprintf("%d open exceptions begin with %q:", len(found), c.Exception)
	for _, e := range found[:min(len(found), 10)] {
		text += fmt.Sprintf("\n  %s  %s  %s", e.ID, e.Subject, e.Reason)
	}
	return adminapi.Exception{}, errors.New(text)
}
