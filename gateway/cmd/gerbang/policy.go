package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/seed-f006e74d/gerbang/policy"
)

type policyCommands struct {
	Export policyExport `cmd:"" help:"Write the default policy into a directory, to start from."`
	Check  policyCheck  `cmd:"" help:"Compile a policy and run its tests."`
}

type policyExport struct {
	Dir string `arg:"" help:"Directory; nothing in it is overwritten."`
}

// Run writes the files.
func (c *policyExport) Run(_ context.Context, p *program) error {
	if err := policy.WriteDefault(c.Dir); err != nil {
		return err
	}
	return p.show(map[string]string{"dir": c.Dir, "version": string(policy.Default().Version())},
		[]string{"The default policy is in " + c.Dir + "."})
}

type policyCheck struct {
	Dir string `arg:"" help:"Directory of the policy."`
}

// Run prints the policy's version, or every problem with its place.
func (c *policyCheck) Run(ctx context.Context, p *program) error {
	source, err := policy.LoadDir(c.Dir)
	if err != nil {
		return c.problems(p, err)
	}
	set, err := policy.Compile(ctx, source)
	if err != nil {
		return c.problems(p, err)
	}
	return p.show(map[string]string{"dir": c.Dir, "version": string(set.Version())}, []string{"The policy is good.", string(set.Version())})
}

// problems prints each problem as editors like to read it, with a path that
// leads to the file from here.
func (c *policyCheck) problems(p *program, err error) error {
	wrong, ok := errors.AsType[*policy.Error](err)
	if !ok {
		return err
	}
	for i, problem := range wrong.Problems {
		wrong.Problems[i].File = filepath.Join(c.Dir, problem.File)
		if _, err := fmt.Fprintln(p.err, wrong.Problems[i]); err != nil {
			return err
		}
	}
	return fmt.Errorf("the policy has %d problems", len(wrong.Problems))
}
