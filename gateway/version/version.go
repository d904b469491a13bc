// Package version tells what is running: the number, the commit and the compiler, as commands, replicas, metrics and logs name them. A
// build that is no release says so behind the number of the next one. It must know nothing of the rest of the gateway.
package version

import (
	"cmp"
	_ "embed" // of number and releases
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

//go:embed number
var number string

// Number is the version that is released next, or was released with this commit.
func Number() string { return strings.TrimSpace(number) }

// What the linker is told: whether this is a release, and the commit where Go itself stamps none, as in a worktree and in a release.
var (
	released string
	revision string
)

// Build is what a program knows of itself.
type Build struct {
	Version   string `json:"version"`
	Revision  string `json:"revision,omitempty"` // the commit, with -dirty behind it where files had changed
	Go        string `json:"go"`
	Interface int    `json:"interface"` // of plugins
}

// Of is this program's.
func Of() Build {
	out := Build{Version: Number() + "-dev", Revision: revision, Interface: manifest.Interface}
	if released != "" {
		out.Version = Number()
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return out
	}
	out.Go = build.GoVersion
	stamps := map[string]string{}
	for _, setting := range build.Settings {
		stamps[setting.Key] = setting.Value
	}
	out.Revision = cmp.Or(stamps["vcs.revision"], out.Revision)
	if stamps["vcs.modified"] == "true" {
		out.Revision += "-dirty"
	}
	return out
}

// String is the version, and of what is no release the commit.
func (b Build) String() string {
	if !strings.HasSuffix(b.Version, "-dev") || b.Revision == "" {
		return b.Version
	}
	commit, dirty, _ := strings.Cut(b.Revision, "-")
	text := b.Version + "+" + commit[:min(12, len(commit))]
	if dirty != "" {
		text += "." + dirty
	}
	return text
}

//go:embed releases
var releases string

// Release is what was released once.
type Release struct {
	Version    string
	Commit     string
	Schema     int64  // the newest migration
	Migrations string // the digest of all up to it
}

// Releases are all of them, the oldest first.
func Releases() (all []Release) {
	for line := range strings.Lines(releases) {
		var r Release
		if strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := fmt.Sscan(line, &r.Version, &r.Commit, &r.Schema, &r.Migrations); err != nil {
			panic(fmt.Errorf("version: releases: %q: %w", line, err)) // it is embedded
		}
		all = append(all, r)
	}
	return all
}
