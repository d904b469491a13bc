package main

import (
	"context"
	"fmt"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type recoveryCommands struct {
	Show recoveryShow `cmd:"" help:"Show what providers' own lists say since the backup."`
	Open recoveryOpen `cmd:"" help:"Let all gateways of the restored database move money again."`
}

type recoveryShow struct{ adminapi.RecoveryQuery }

// Run prints a row for each movement of money that a provider lists.
func (c *recoveryShow) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	found, err := adminapi.ShowRecovery.Call(ctx, admin, c.RecoveryQuery)
	if err != nil {
		return err
	}
	if !found.Recovering {
		return p.show(found, []string{"There is no recovery: money moves."})
	}
	rows := [][]string{{"MERCHANT", "MODE", "PROVIDER", "AT", "AMOUNT", "NAMES", "REFERENCE"}}
	for _, a := range found.Accounts {
		if a.Unread != "" {
			rows = append(rows, []string{a.MerchantID, a.Mode, a.Provider, "-", "-", "can't be read: " + a.Unread, "-"})
		}
		for _, r := range a.Rows {
			rows = append(rows, []string{a.MerchantID, a.Mode, a.Provider, timeText(r.At), r.Amount.String(), r.Names, dash(r.Reference)})
		}
	}
	last := fmt.Sprintf("Since %s; %d accounts have a list.", timeText(found.Since), len(found.Accounts))
	if found.Since == nil {
		last = "The backup has no trace of a gateway: give --since, the time of the backup."
	}
	return p.show(found, append(rows, []string{last})...)
}

type recoveryOpen struct {
	adminapi.RecoveryOpening
	confirmed
}

// Run opens the gateways.
func (c *recoveryOpen) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	if err := c.confirm(p, "Let every gateway of this database move money again"); err != nil {
		return err
	}
	if _, err := adminapi.OpenRecovery.Call(ctx, admin, c.RecoveryOpening); err != nil {
		return err
	}
	return p.show(map[string]bool{"open": true}, []string{"Money moves again, on every gateway of this database within a second."})
}
