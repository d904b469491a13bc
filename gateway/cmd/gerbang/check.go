package main

import (
	"context"
	"fmt"

	"github.com/seed-f006e74d/gerbang/gateway/app"
)

type checkCommand struct {
	Config string `required:"" placeholder:"FILE" help:"Configuration, in YAML."`
}

// Run prints a row for each thing that a start needs.
func (c *checkCommand) Run(ctx context.Context, p *program) error {
	return p.showFindings(app.Check(ctx, c.Config, p.getenv, p.whenVerbose()), "The gateway would not start so, or could not do its work")
}

// showFindings prints findings, and fails where one is a fault.
func (p *program) showFindings(found []app.Finding, failed string) error {
	rows, faults := [][]string{{"WHAT", "STATE", ""}}, 0
	for _, f := range found {
		rows = append(rows, []string{f.What, f.State, f.Text})
		if f.State == app.Fault {
			faults++
		}
	}
	if err := p.show(found, rows...); err != nil {
		return err
	}
	if faults > 0 {
		return fmt.Errorf("%s: faults: %d", failed, faults)
	}
	return nil
}
