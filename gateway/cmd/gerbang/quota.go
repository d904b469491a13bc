package main

import (
	"context"
	"strconv"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type quotaCommands struct {
	Show quotaShow `cmd:"" help:"Show how much of its quotas a merchant has used this month."`
}

type quotaShow struct{ adminapi.InMode }

// Run prints a row for each quota.
func (c *quotaShow) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	stand, err := adminapi.ShowQuotas.Call(ctx, admin, c.InMode)
	if err != nil {
		return err
	}
	rows := [][]string{{"period", stand.Period, "until " + timeText(&stand.ResetsAt)}, {}}
	return p.show(stand, append(rows, table(stand.Quotas)...)...)
}

// numberText is a number, or a dash where there is none.
func numberText(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}
