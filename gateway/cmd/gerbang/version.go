package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/store"
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
	all := struct {
		version.Build
		Schema     int64  `json:"schema"`     // that it makes of a database
		Migrations string `json:"migrations"` // names all that lead there
	}{version.Of(), store.NewestSchema(), store.MigrationsDigest()}
	return p.show(all, []string{"gerbang", all.Version, dash(all.Revision), all.Go, "interface " + strconv.Itoa(all.Interface), fmt.Sprintf("schema %d", all.Schema)})
}
