package main

import (
	"cmp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// What the linker is told where the build itself knows no commit: make does.
var (
	linkedVersion  string
	linkedRevision string
)

// built is what the build knows of itself.
type built struct {
	Version   string `json:"version"`
	Revision  string `json:"revision,omitempty"` // the commit, with -dirty behind it where files had changed
	Go        string `json:"go"`
	Interface int    `json:"interface"` // of plugins
}

// whatIsBuilt prefers what Go has stamped to what the linker was told.
func whatIsBuilt() built {
	out := built{Version: "(devel)", Revision: linkedRevision, Interface: manifest.Interface}
	build, ok := debug.ReadBuildInfo()
	if ok {
		out.Go = build.GoVersion
		stamps := map[string]string{}
		for _, setting := range build.Settings {
			stamps[setting.Key] = setting.Value
		}
		if stamped := stamps["vcs.revision"]; stamped != "" {
			out.Revision = stamped
			if stamps["vcs.modified"] == "true" {
				out.Revision += "-dirty"
			}
		}
		if stamped := build.Main.Version; stamped != "" && stamped != out.Version {
			out.Version = stamped
			return out
		}
	}
	out.Version = cmp.Or(linkedVersion, out.Version)
	return out
}

func (b built) row() []string {
	return []string{"gerbang", b.Version, dash(b.Revision), b.Go, "interface " + strconv.Itoa(b.Interface)}
}

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
	out := whatIsBuilt()
	return p.show(out, out.row())
}
