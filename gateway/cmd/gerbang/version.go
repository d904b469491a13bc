package main

import (
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/version"
)

// asCommand makes a command of --version before any command: a command may have a flag of
// that name.
func asCommand(args []string) []string {
	for i, arg := range args {
		if arg == "--version" {
			return slices.Replace(slices.Clone(args), i, i+1, "version")
		}
		if !strings.HasPrefix(arg, "-") {
			break
		}
	}
	return args
}

type versionCommand struct{}

// Run prints what the build knows of itself.
func (*versionCommand) Run(p *program) error {
	b := version.Of()
	return p.show(b, []string{"gerbang", b.Version, dash(b.Revision), b.Go, "interface " + strconv.Itoa(b.Interface)})
}
