package main

import (
	"context"
	"fmt"
	"path/filepath"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/policy"
)

type policyCommands struct {
	Export   policyExport   `cmd:"" help:"Write the default policy into a directory, to start from."`
	Test     policyTest     `cmd:"" help:"Compile a policy, run its tests, and find answers that are missing and rules that never end."`
	Try      policyTry      `cmd:"" help:"Ask a policy about a request that nobody made, by any merchant and at any time."`
	Schema   policySchema   `cmd:"" help:"Print the JSON Schema of what rules see, for editors and opa check --schema."`
	Push     policyPush     `cmd:"" help:"Have a policy judged and kept as a version, and put in force with --activate."`
	List     policyList     `cmd:"" help:"List the versions, the newest first."`
	Show     policyShow     `cmd:"" help:"Show a version, or write its files into a directory."`
	Diff     policyDiff     `cmd:"" help:"Show how two versions differ."`
	Activate policyActivate `cmd:"" help:"Put a version in force on every replica, or confirm what another operator wants in force."`
	Impact   policyImpact   `cmd:"" help:"Tell what a version or a directory would have decided in the past, and for whom otherwise."`
	Rollback policyRollback `cmd:"" help:"Put the version before in force again; each time one further back."`
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

// policyFiles reads a directory for the gateway, which takes what is missing from the
// version in force.
func policyFiles(dir string) (map[string]string, error) {
	source, err := policy.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for name, content := range source {
		if !utf8.Valid(content) {
			return nil, fmt.Errorf("%s is no UTF-8 text", filepath.Join(dir, name))
		}
		files[name] = string(content)
	}
	return files, nil
}
