package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type settlementCommands struct {
	List   settlementList   `cmd:"" help:"List a merchant's payments that pay nothing: of no sale, of several, or of one that is paid."`
	Assign settlementAssign `cmd:"" help:"Give a payment, also one that came late, to a sale that waits for its money or has expired."`
}

type settlementList struct {
	Merchant string `arg:"" help:"The merchant's id."`
}

// Run prints the payments, the newest first.
func (c *settlementList) Run(ctx context.Context, p *program) error {
	admin, err := p.admin()
	if err != nil {
		return err
	}
	list, err := admin.StatementLines(ctx, c.Merchant)
	if err != nil {
		return err
	}
	rows := [][]string{{"AT", "MODE", "PROVIDER", "PAYMENT", "STATE", "AMOUNT", "CURRENCY"}}
	for _, s := range list {
		rows = append(rows, []string{timeText(&s.At), s.Mode, s.Provider, s.Payment, s.State, strconv.FormatInt(int64(s.Amount), 10), s.Currency})
	}
	if err := p.show(list, rows...); err != nil || len(list) < mostEntries {
		return err
	}
	_, err = fmt.Fprintf(p.err, "the newest %d are shown; there may be more\n", mostEntries)
	return err
}

type settlementAssign struct {
	Entry    string `arg:"" help:"The payment, as the list names it."`
	Movement string `arg:"" help:"The sale: its reference, or any of its ids."`
	Reason   string `required:"" help:"Why it is for this sale. Kept with your name."`
}

// Run assigns the payment.
func (c *settlementAssign) Run(ctx context.Context, p *program) error {
	admin, err := p.admin()
	if err != nil {
		return err
	}
	made, err := admin.Assign(ctx, c.Movement, adminapi.NewAssignment{Payment: c.Entry, Reason: c.Reason})
	if err != nil {
		return err
	}
	return p.show(made, []string{"assigned", made.Payment, "to " + made.Movement, made.State})
}
