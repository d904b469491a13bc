package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/seed-f006e74d/gerbang/policy"
)

type policyTest struct {
	Dir string `arg:"" help:"Directory of the policy."`
}

// testedPolicy is what the command prints with --json.
type testedPolicy struct {
	Dir      string           `json:"dir"`
	Digest   string           `json:"digest,omitempty"` // none where it does not compile
	Good     bool             `json:"good"`
	Findings []policy.Finding `json:"findings"`
}

// Run judges the directory as a push does, as far as that can be done without a gateway.
func (c *policyTest) Run(ctx context.Context, p *program) error {
	source, err := policy.LoadDir(c.Dir)
	if err != nil {
		return err
	}
	set, findings, err := policy.Gate(ctx, source, policy.Facts{})
	if err != nil {
		return err
	}
	return p.judged(c.Dir, set, findings)
}

// judged prints what was found in a directory, with paths that lead to the files from here. It fails where the findings
// refuse the policy.
func (p *program) judged(dir string, set *policy.Set, findings []policy.Finding) error {
	tested := testedPolicy{Dir: dir, Good: !policy.Refused(findings, false), Findings: []policy.Finding{}}
	if set != nil {
		tested.Digest = string(set.Version())
	}
	refusals := 0
	for _, f := range findings {
		f.File = filepath.Join(dir, f.File)
		tested.Findings = append(tested.Findings, f)
		if !f.Warning {
			refusals++
		}
		if !p.json {
			if _, err := fmt.Fprintln(p.err, f); err != nil {
				return err
			}
		}
	}
	rows := [][]string{{"The policy is good."}, {tested.Digest}}
	if !tested.Good {
		rows = nil
	}
	if err := p.show(tested, rows...); err != nil || tested.Good {
		return err
	}
	if refusals == 1 {
		return errors.New("the policy has a fault")
	}
	return fmt.Errorf("the policy has %d faults", refusals)
}
