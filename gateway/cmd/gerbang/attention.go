package main

import (
	"context"

	"github.com/seed-f006e74d/gerbang/gateway/console"
)

type attentionCommands struct {
	List    attentionList    `cmd:"" help:"List what waits for an operator."`
	Resolve attentionResolve `cmd:"" help:"Take an entry off the list."`
}

type attentionList struct{}

// Run prints the open entries, the newest first.
func (*attentionList) Run(ctx context.Context, p *program) error {
	admin, err := p.admin()
	if err != nil {
		return err
	}
	entries, err := admin.Attention(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{{"AT", "MERCHANT", "MODE", "SUBJECT", "REASON", "FACT", "PROVIDER", "DETAIL"}}
	for _, e := range entries {
		fact := e.FactID
		if fact == "" {
			fact = "-"
		}
		rows = append(rows, []string{timeText(&e.At), e.MerchantID, e.Mode, e.Subject, e.Reason, fact, e.Provider, e.Detail})
	}
	return p.show(entries, rows...)
}

type attentionResolve struct {
	Merchant   string `required:"" help:"The entry's merchant."`
	Mode       string `required:"" enum:"live,test" help:"live or test."`
	Subject    string `required:"" help:"The entry's subject."`
	Reason     string `required:"" help:"The entry's reason."`
	Fact       string `help:"The entry's fact, where it has one."`
	Resolution string `required:"" help:"How it was settled."`
}

// Run settles the entry.
func (c *attentionResolve) Run(ctx context.Context, p *program) error {
	admin, err := p.admin()
	if err != nil {
		return err
	}
	r := console.Resolution{
		MerchantID: c.Merchant, Mode: c.Mode, Subject: c.Subject, Reason: c.Reason, FactID: c.Fact, Resolution: c.Resolution,
	}
	if err := admin.ResolveAttention(ctx, r); err != nil {
		return err
	}
	return p.show(r, []string{"resolved", c.Subject, c.Reason})
}
