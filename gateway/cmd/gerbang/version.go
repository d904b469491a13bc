package main

import (
	"runtime/debug"
	"strconv"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

type versionCommand struct{}

// Run prints what the build knows of itself.
func (*versionCommand) Run(p *program) error {
	out := struct {
		Version   string `json:"version"`
		Revision  string `json:"revision,omitempty"`
		Go        string `json:"go"`
		Interface int    `json:"interface"`
	}{Version: "unknown", Interface: manifest.Interface}
	if build, ok := debug.ReadBuildInfo(); ok {
		out.Version, out.Go = build.Main.Version, build.GoVersion
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" {
				out.Revision = setting.Value
			}
		}
	}
	return p.show(out, []string{"gerbang", out.Version, out.Revision, out.Go, "interface " + strconv.Itoa(out.Interface)})
}
