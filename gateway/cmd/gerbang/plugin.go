package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/confine"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/judge"
)

type pluginCommands struct {
	List      pluginList      `cmd:"" help:"List the running gateway's plugins with their state."`
	Show      pluginShow      `cmd:"" help:"Show one plugin: its state, latency, memory and last errors, and which replicas have it."`
	New       pluginNew       `cmd:"" help:"Write the module of a new plugin, which works before a line is changed."`
	Check     pluginCheck     `cmd:"" help:"Judge a plugin's manifest without starting the plugin."`
	Test      pluginTest      `cmd:"" help:"Prove that a plugin conforms, with a simulator of its upstream; nothing of it touches money before."`
	Approve   pluginApprove   `cmd:"" help:"Start a plugin here, show what is new about it, and approve its binary."`
	Confirm   pluginConfirm   `cmd:"" help:"Confirm what another operator approved, where the configuration wants two."`
	Approvals pluginApprovals `cmd:"" help:"List what operators approved."`
	Activate  pluginActivate  `cmd:"" help:"Put an approved binary in force on every replica, or on one first."`
	Rollback  pluginRollback  `cmd:"" help:"Go back to the binary that was in force before, without any test."`
	Remove    pluginRemove    `cmd:"" help:"End a plugin that has no connections and no open movements."`
	Restart   pluginRestart   `cmd:"" help:"Have a plugin go on in a new process, on the replica that is asked."`
	Digest    pluginDigest    `cmd:"" help:"Start a plugin and print what a configuration must hold to approve it."`
}

// pluginLaunch is the process that becomes a plugin; the gateway starts it.
type pluginLaunch struct{}

// Run returns only when nothing was started.
func (*pluginLaunch) Run(p *program) error {
	_, _ = fmt.Fprintln(p.err, confine.Launch())
	os.Exit(confine.Refused)
	return nil
}

// policyJudge is the process that judges a policy; the gateway starts it.
type policyJudge struct{}

// Run carries out one order.
func (*policyJudge) Run(p *program) error { return judge.Main(p.in, p.out) }

type pluginList struct{}

// Run prints a row for each plugin.
func (*pluginList) Run(ctx context.Context, p *program, admin *adminapi.Client) error {
	plugins, err := adminapi.ListPlugins.Call(ctx, admin, adminapi.None{})
	if err != nil {
		return err
	}
	rows := [][]string{{"PROVIDER", "VERSION", "STATE", "ACCOUNT OF", "RESTARTS", "IN FLIGHT", "BREAKERS", "MANIFEST", "CONFINED", "APPROVAL"}}
	for _, one := range plugins {
		has := 0
		for _, r := range one.Replicas {
			if r.HasFile {
				has++
			}
		}
		approval := "configured"
		if one.Approval != nil {
			approval = fmt.Sprintf("%s, file on %d of %d", one.Approval.State, has, len(one.Replicas))
		}
		rows = append(rows, []string{
			one.Provider, one.Version, pluginState(one), one.Owner, strconv.Itoa(one.Restarts),
			strconv.Itoa(one.InFlight) + "/" + strconv.Itoa(one.MaxInFlight), breakersText(one.Breakers), one.ManifestDigest, one.Confined, approval,
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
	approval, err := pin(ctx, p.logger(), host.Spec{Name: name, Path: c.File, Read: c.Read})
	if err != nil {
		return err
	}
	return p.show(approval,
		[]string{"name:", approval.Name}, []string{"version:", approval.Version}, []string{"path:", approval.Path},
		[]string{"sha256:", approval.SHA256}, []string{"manifest_digest:", approval.ManifestDigest})
}

// pinned is a plugin as a configuration approves it.
type pinned struct {
	Name           string `json:"name"`
	Version        string `json:"version"`
	Path           string `json:"path"`
	SHA256         string `json:"sha256"`
	ManifestDigest string `json:"manifest_digest"`
}

// pin starts a plugin, pinned to what its file is now, and asks what it declares.
func pin(ctx context.Context, log *slog.Logger, spec host.Spec) (pinned, error) {
	sum, err := host.SHA256File(spec.Path)
	if err != nil {
		return pinned{}, err
	}
	spec.SHA256 = sum
	started, err := host.Start(ctx, host.Config{Specs: []host.Spec{spec}, Log: log})
	if err != nil {
		return pinned{}, err
	}
	status := started.Status()[0]
	if err := errors.Join(started.Down(), started.Close(context.WithoutCancel(ctx))); err != nil {
		return pinned{}, err
	}
	return pinned{status.Provider, status.Version, spec.Path, status.SHA256, status.Digest}, nil
}
