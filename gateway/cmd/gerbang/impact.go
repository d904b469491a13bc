package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type policyImpact struct {
	Candidate      string        `arg:"" help:"A version, or a directory with data.json and .rego files. Without .rego files those of the version in force are taken."`
	Since          time.Duration `default:"24h" help:"How far back to try it: 168h at most."`
	MaxNewlyDenied *int64        `placeholder:"N" help:"Fail with exit code 6 if more requests than this would have been denied newly."`
}

// Run tries the candidate on the past, and prints whom it changes what for.
func (c *policyImpact) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	wanted := adminapi.NewImpact{Since: time.Now().Add(-c.Since)}
	if info, err := os.Stat(c.Candidate); err == nil && info.IsDir() {
		if wanted.Files, err = policyFiles(c.Candidate); err != nil {
			return err
		}
	} else {
		wanted.Version = c.Candidate
	}
	found, err := p.impact(ctx, admin, wanted)
	if err != nil {
		return err
	}
	if c.MaxNewlyDenied != nil && found.NewlyDenied > *c.MaxNewlyDenied {
		return errDenies{fmt.Errorf("%d requests would have been denied newly, and at most %d may be", found.NewlyDenied, *c.MaxNewlyDenied)}
	}
	return nil
}

// errDenies says that a candidate denies more than it may.
type errDenies struct{ error }

// impact tries something on the past, tells progress, and prints what came of it.
func (p *program) impact(ctx context.Context, admin *adminapi.Client, wanted adminapi.NewImpact) (adminapi.Impact, error) {
	found, err := admin.Impact(ctx, wanted, func(at adminapi.ImpactProgress) {
		if p.errTerminal {
			_, _ = fmt.Fprintf(p.err, "\r%d decisions, until %s", at.Decisions, timeText(&at.At))
		}
	})
	if p.errTerminal {
		_, _ = fmt.Fprint(p.err, "\r\x1b[K")
	}
	if err != nil {
		return found, err
	}
	rows := [][]string{{"MERCHANT", "MODE", "OPERATION", "BY", "DENIED", "ALLOWED", "RUPIAH", "UNKNOWN", "FIRST"}}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, r := range found.Rows {
		rows = append(rows, []string{
			r.MerchantID, r.Mode, r.Operation, dash(r.Rule), number(r.NewlyDenied), number(r.NewlyAllowed), number(r.Rupiah), number(r.Unknown), timeText(&r.FirstAt),
		})
	}
	rows = append(rows, []string{}, []string{
		fmt.Sprintf("%s: of %d decisions since %s, %d would have been denied newly, %d allowed newly, and %d can't be told.",
			found.Verdict, found.Decisions, timeText(&found.Since), found.NewlyDenied, found.NewlyAllowed, found.Unknown),
	})
	return found, p.show(found, rows...)
}

// dryRun is for changes of a merchant.
type dryRun struct {
	DryRun bool          `help:"Change nothing: tell what the change would have done to the merchant's requests."`
	Since  time.Duration `default:"24h" help:"With --dry-run: how far back to try it, 168h at most."`
}

// try tells what a change of a merchant would have done.
func (d dryRun) try(ctx context.Context, p *program, admin *adminapi.Client, change adminapi.MerchantTrial) error {
	_, err := p.impact(ctx, admin, adminapi.NewImpact{Merchant: &change, Since: time.Now().Add(-d.Since)})
	return err
}
