package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

type policyImpact struct {
	Candidate string `arg:"" help:"A version, active, or a directory with data.json and .rego files. Without .rego files those of the version in force are taken."`
	span
	MaxNewlyDenied *int64 `placeholder:"N" help:"Fail with exit code 6 if more requests than this would have been denied newly."`
}

// Run tries the candidate on the past, and prints whom it changes what for.
func (c *policyImpact) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	wanted := c.wanted()
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

// span is the past that something is tried on. Between two times the same decisions make the same answer, byte by byte, against
// the same version in force or --recorded.
type span struct {
	Recorded bool `help:"Hold it against what was decided then, not against the version in force."`

	Since time.Time `default:"24h" placeholder:"TIME|DURATION" help:"From when on to try it, or how far back: 168h at most."`
	Until time.Time `placeholder:"TIME" help:"Until when; until what the log has by now unless given."`
}

func (s span) wanted() adminapi.NewImpact {
	return adminapi.NewImpact{Since: s.Since, Until: givenTime(s.Until), Recorded: s.Recorded}
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
	against := "what was decided"
	if found.Against != "" {
		against = "version " + shortVersion(found.Against) + " in force"
	}
	rows := append(table(found.Rows), []string{}, []string{
		fmt.Sprintf("%s: of %d decisions from %s to %s, against %s, %d would have been denied newly, %d allowed newly, and %d can't be told.",
			found.Verdict, found.Decisions, timeText(&found.Since), timeText(&found.Until), against, found.NewlyDenied, found.NewlyAllowed, found.Unknown),
	})
	if of := found.Test; of != (adminapi.ImpactSum{}) {
		rows = append(rows, []string{fmt.Sprintf("Of these in test mode %d denied newly, %d allowed newly, and %d can't be told.", of.NewlyDenied, of.NewlyAllowed, of.Unknown)})
	}
	return found, p.show(found, rows...)
}

// dryRun is for changes of a merchant.
type dryRun struct {
	DryRun bool `help:"Change nothing: tell what the change would have done to the merchant's requests, --since and --until when."`
	trialSpan
}

// trialSpan is a [span] for --dry-run: a change itself has no past, and --until does not end it.
type trialSpan struct {
	Recorded bool `with:"dry-run" help:"With --dry-run: hold it against what was decided then, not against the version in force."`

	Since time.Time `default:"24h" with:"dry-run" placeholder:"TIME|DURATION" help:"With --dry-run: from when on to try it, or how far back, 168h at most."`
	Until time.Time `with:"dry-run" placeholder:"TIME" help:"With --dry-run: until when to try it; until what the log has by now unless given."`
}

// try tells what a change of a merchant would have done.
func (d dryRun) try(ctx context.Context, p *program, admin *adminapi.Client, change adminapi.MerchantTrial) error {
	wanted := span(d.trialSpan).wanted()
	wanted.Merchant = &change
	_, err := p.impact(ctx, admin, wanted)
	return err
}
