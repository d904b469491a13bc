package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/scaffold"
)

type pluginNew struct {
	Name       string `arg:"" help:"The provider's name: lower-case letters, digits and hyphens."`
	Implements string `enum:"payments" default:"payments" help:"The contract that it implements: payments."`
	Kind       string `enum:",query" default:"" help:"query, for a path of its own in place of a contract."`
	Dir        string `required:"" type:"path" help:"Where to write the module: an empty directory, or none yet."`
	Module     string `help:"The Go module's path; the name unless given."`
	SDK        string `name:"sdk" type:"existingdir" help:"A checkout of Gerbang to build with; found above this program or the working directory unless given."`
}

// published tells whether a module of a version can be fetched: not what was built from
// changed files.
func published(version string) bool {
	return strings.HasPrefix(version, "v") && !strings.Contains(version, "+dirty")
}

// Run writes the module and says what to do next.
func (c *pluginNew) Run(p *program) error {
	var near []string
	if here, err := os.Getwd(); err == nil {
		near = append(near, here)
	}
	if executable, err := os.Executable(); err == nil {
		near = append(near, filepath.Dir(executable))
	}
	if c.SDK != "" {
		near = []string{c.SDK}
	}
	plugin := scaffold.Plugin{
		Name: c.Name, Module: c.Module, Template: cmp.Or(c.Kind, c.Implements), Dir: c.Dir, Checkout: scaffold.FindCheckout(near...),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		plugin.Version = info.Main.Version
	}
	if plugin.Checkout == "" && !published(plugin.Version) {
		return usage(errors.New("this program was built from a checkout that is not near, so no published SDK goes with it: --sdk says where the checkout is"))
	}
	files, err := scaffold.Write(plugin)
	if err != nil {
		return err
	}
	if p.json {
		return p.show(files)
	}
	next := fmt.Sprintf("\ncd %s\n", c.Dir)
	if plugin.Checkout == "" {
		next += "go mod tidy\n"
	}
	next += fmt.Sprintf("go test ./...                      # conformance, against its own simulator\nCGO_ENABLED=0 go build -o %s .\ngerbang dev --plugin ./%s\n", c.Name, c.Name)
	_, err = fmt.Fprint(p.out, strings.Join(files, "\n"), "\n", next)
	return err
}
