package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/confine"
	"github.com/seed-f006e74d/gerbang/gateway/host"
)

type pluginCommands struct {
	List   pluginList   `cmd:"" help:"List the running gateway's plugins with their state."`
	New    pluginNew    `cmd:"" help:"Write the module of a new plugin, which works before a line is changed."`
	Check  pluginCheck  `cmd:"" help:"Judge a plugin's manifest without starting the plugin."`
	Digest pluginDigest `cmd:"" help:"Start a plugin and print what a configuration must hold to approve it."`
	Test   pluginTest   `cmd:"" help:"Prove that a plugin conforms, with a simulator of its upstream; nothing of it touches money before."`
}

// pluginLaunch is the process that becomes a plugin; the gateway starts it.
type pluginLaunch struct{}

// Run returns only when nothing was started.
func (*pluginLaunch) Run(p *program) error {
	_, _ = fmt.Fprintln(p.err, confine.Launch())
	os.Exit(confine.Refused)
	return nil
}

type pluginList struct{}

// Run prints a row for each plugin.
func (*pluginList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	plugins, err := admin.Plugins(ctx)
	if err != nil {
		return err
	}
	rows := [][]string{{"PROVIDER", "VERSION", "STATE", "ACCOUNT OF", "RESTARTS", "IN FLIGHT", "BREAKERS", "MANIFEST", "CONFINED"}}
	for _, one := range plugins {
		state := "down: " + one.LastFault
		if one.Running {
			state = "running"
		}
		var breakers []string
		for _, b := range one.Breakers {
			text := b.Mode + " " + b.Calls + "/" + b.Lookups
			if b.AccountsOpen > 0 {
				text += " (" + strconv.Itoa(b.AccountsOpen) + " accounts open)"
			}
			breakers = append(breakers, text)
		}
		rows = append(rows, []string{
			one.Provider, one.Version, state, one.Owner, strconv.Itoa(one.Restarts),
			strconv.Itoa(one.InFlight) + "/" + strconv.Itoa(one.MaxInFlight), strings.Join(breakers, ", "), one.ManifestDigest, one.Confined,
		})
	}
	return p.show(plugins, rows...)
}

type pluginDigest struct {
	File string `arg:"" type:"existingfile" help:"The plugin's binary."`
	Name string `help:"The provider's name; the file's unless given."`

	Read []string `type:"existingpath" help:"A file or directory that the plugin may read, beside what every plugin does; may be repeated."`
}

// Run starts the plugin, pinned to what the file is now, and prints both digests.
func (c *pluginDigest) Run(ctx context.Context, p *program) error {
	name := c.Name
	if name == "" {
		name = filepath.Base(c.File)
	}
	sum, err := host.SHA256File(c.File)
	if err != nil {
		return err
	}
	spec := host.Spec{Name: name, Path: c.File, SHA256: sum, Read: c.Read}
	started, err := host.Start(ctx, host.Config{Specs: []host.Spec{spec}, Log: p.logger()})
	if err != nil {
		return err
	}
	status := started.Status()[0]
	if err := errors.Join(started.Down(), started.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	approval := struct {
		Name           string `json:"name"`
		Version        string `json:"version"`
		Path           string `json:"path"`
		SHA256         string `json:"sha256"`
		ManifestDigest string `json:"manifest_digest"`
	}{status.Provider, status.Version, c.File, status.SHA256, status.Digest}
	return p.show(approval,
		[]string{"name:", approval.Name}, []string{"version:", approval.Version}, []string{"path:", approval.Path},
		[]string{"sha256:", approval.SHA256}, []string{"manifest_digest:", approval.ManifestDigest})
}
