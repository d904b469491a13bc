package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

type paymentCommands struct {
	movementCommands

	Refund paymentRefund `cmd:"" help:"Give a payment back, all that is left or a part; above what you may claim alone another operator says the same."`
}

type paymentRefund struct {
	ID       string        `arg:"" name:"id" help:"The payment's id or upstream reference."`
	Amount   *money.Amount `placeholder:"RUPIAH" help:"Whole rupiah; all that is left unless given."`
	Reason   string        `required:"" help:"Why, in 1 to 200 characters; kept in the audit, and told to the provider."`
	RefundID string        `name:"refund-id" help:"Its own reference: the same again is the same refund. Drawn unless given."`
	confirmed
}

// Run orders the refund, and says whether another operator must confirm.
func (c *paymentRefund) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	amount := "all that is left of "
	if c.Amount != nil {
		amount = c.Amount.Format() + " of "
	}
	if err := c.confirm(p, "Give back "+amount+c.ID+": what has gone back can't be called back"); err != nil {
		return err
	}
	if c.RefundID == "" {
		c.RefundID = "operator-" + uuid.NewString()
		// Before it is sent: whoever gets no answer asks again with it, and gives back once.
		if _, err := fmt.Fprintf(p.err, "If no answer comes, say the same again with --refund-id %s: it is the same refund.\n", c.RefundID); err != nil {
			return err
		}
	}
	done, err := adminapi.RefundPayment.Call(ctx, admin, adminapi.NewRefund{Movement: c.ID, RefundID: c.RefundID, Amount: c.Amount, Reason: c.Reason})
	if err != nil {
		return err
	}
	rows := [][]string{{"refund_id", done.RefundID}, {"answered", dash(string(done.Answer))}}
	if done.Waiting {
		rows = append(rows, []string{"It waits for another operator to say the same, with this refund-id and amount."})
	}
	return p.show(done, rows...)
}
