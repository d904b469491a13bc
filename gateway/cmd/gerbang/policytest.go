package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/policy"
)

type policyTest struct {
	Dir string `arg:"" help:"Directory of the policy. Without .rego files those of the version in force are taken, or, where no gateway is configured, the default ones."`
}

// testedPolicy is what the command prints with --json.
type testedPolicy struct {
	Dir      string           `json:"dir"`
	Digest   string           `json:"digest"`
	Rules    string           `json:"rules"` // own, default, or the version whose rules were taken
	Gateway  bool             `json:"gateway"`
	Good     bool             `json:"good"`
	Findings []policy.Finding `json:"findings"`
}

// Run judges the directory: by a gateway as a push does, where the environment names one,
// and else as far as that can be done without.
func (c *policyTest) Run(ctx context.Context, p *program) error {
	files, err := policyFiles(c.Dir)
	if err != nil {
		return err
	}
	var tested testedPolicy
	if p.getenv(adminTokenVariable)+p.getenv(adminTokenFile) != "" {
		tested, err = p.testedThere(ctx, files)
	} else {
		tested, err = testedHere(ctx, c.Dir)
	}
	if err != nil {
		return err
	}
	tested.Dir = c.Dir
	return p.judged(tested)
}

func (p *program) testedThere(ctx context.Context, files map[string]string) (testedPolicy, error) {
	admin, err := p.admin()
	if err != nil {
		return testedPolicy{}, err
	}
	t, err := adminapi.TestPolicy.Call(ctx, admin, adminapi.NewPolicy{Files: files})
	tested := testedPolicy{Digest: t.Version, Rules: t.Rules, Gateway: true, Good: t.Good, Findings: t.Findings}
	if t.Rules == "" {
		tested.Rules = "own"
	}
	return tested, err
}

func testedHere(ctx context.Context, dir string) (testedPolicy, error) {
	source, err := policy.LoadDir(dir)
	if err != nil {
		return testedPolicy{}, err
	}
	_, findings, err := policy.Gate(ctx, source, policy.Facts{})
	tested := testedPolicy{Digest: string(source.Version()), Rules: "own", Good: !policy.Refused(findings, false), Findings: append([]policy.Finding{}, findings...)}
	if own, err := policy.ReadDir(dir); err == nil && !own.HasRules() {
		tested.Rules = "default"
	}
	return tested, err
}

// judged prints what was found, with paths that lead to the files from here, and by whose
// rules. It fails where the findings refuse the policy.
func (p *program) judged(tested testedPolicy) error {
	refusals := 0
	for i, f := range tested.Findings {
		if !f.Warning {
			refusals++
		}
		if !p.json {
			if _, err := fmt.Fprintln(p.err, findingText(tested.Dir, f)); err != nil {
				return err
			}
		}
		tested.Findings[i].File = filepath.Join(tested.Dir, f.File)
	}
	rows := [][]string{{"The policy is good."}, {tested.Digest}}
	if !tested.Good {
		rows = nil
	}
	if err := p.show(tested, append(rows, []string{rulesText(tested)})...); err != nil || tested.Good {
		return err
	}
	if refusals == 1 {
		return errors.New("the policy has a fault")
	}
	return fmt.Errorf("the policy has %d faults", refusals)
}

// rulesText says what the directory was judged with.
func rulesText(t testedPolicy) string {
	rules := "its own rules"
	switch t.Rules {
	case "own":
	case "default":
		rules = "the default rules"
	default:
		rules = "the rules in force, of version " + shortVersion(t.Rules)
	}
	if t.Gateway {
		return "Judged by the gateway, with " + rules + "."
	}
	return "Judged without a gateway, with " + rules + "."
}
