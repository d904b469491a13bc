package main

import (
	"context"
	"fmt"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/tenants"
)

type statementCommands struct {
	List   statementList   `cmd:"" help:"List a merchant's statement lines that match no collection, several, or one that is paid."`
	Assign statementAssign `cmd:"" help:"Assign a statement line, also a late one, to a collection that is pending or has expired."`
}

type statementList struct {
	Merchant tenants.MerchantID `arg:"" help:"The merchant's id."`
}

// Run prints the lines, the newest first.
func (c *statementList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	list, err := adminapi.ListStatementLines.Call(ctx, admin, adminapi.LineFilter{MerchantID: c.Merchant, Limit: adminapi.MostListed})
	if err != nil {
		return err
	}
	if err := p.show(list, table(list)...); err != nil || len(list) < adminapi.MostListed {
		return err
	}
	_, err = fmt.Fprintf(p.err, "the newest %d are shown; there may be more\n", adminapi.MostListed)
	return err
}

type statementAssign struct {
	Payment  string `arg:"" help:"The line's payment id, as the list shows it."`
	Movement string `arg:"" help:"The collection: its reference, or any of its ids."`
	Reason   string `required:"" help:"Why it pays this collection. Kept in the audit with your name."`
	confirmed
}

// Run assigns the line.
func (c *statementAssign) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if err := c.confirm(p, "Assign the payment "+c.Payment+" to "+c.Movement+": its merchant is told that it is paid"); err != nil {
		return err
	}
	made, err := adminapi.AssignStatementLine.Call(ctx, admin, adminapi.NewAssignment{Movement: c.Movement, Payment: c.Payment, Reason: c.Reason})
	if err != nil {
		return err
	}
	if made.Waiting {
		return p.show(made, []string{"It waits for another operator to assign the same."})
	}
	return p.show(made, []string{"assigned", made.Payment, "to " + made.Movement, made.State})
}
