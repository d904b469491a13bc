package dev

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
)

// plugin is a binary of the plugin directory or a developer's own, approved because its
// owner has just built it.
type plugin struct {
	name, path, sha256 string
	own                bool
}

func findPlugins(dir string) ([]plugin, error) {
	if dir == "" {
		executable, err := os.Executable()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(filepath.Dir(executable), "plugins")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("plugins: %w; make build makes them", err)
	}
	var plugins []plugin
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		sum, err := host.SHA256File(path)
		if err != nil {
			return nil, err
		}
		plugins = append(plugins, plugin{name: entry.Name(), path: path, sha256: sum})
	}
	if len(plugins) == 0 {
		return nil, fmt.Errorf("plugins: there are none in %s; make build makes them", dir)
	}
	return plugins, nil
}

// simulator is the process that plays one plugin's upstream.
type simulator struct {
	*sandbox.Simulator
	plugin  plugin
	dir     string // where it keeps its state
	log     *slog.Logger
	renewed chan struct{} // holds something while it is to go on from another file
}

func (t *tree) newSimulator(p plugin) *simulator {
	dir := filepath.Join(t.Data, "sandbox", p.name)
	return &simulator{
		Simulator: sandbox.NewSimulator(p.name, dir, t.state.SandboxToken, t.state.Addresses[p.name], t.Log),
		plugin:    p, dir: dir, log: t.Log.With("sandbox", p.name), renewed: make(chan struct{}, 1),
	}
}

// startSandboxes starts every plugin's simulator and waits until all answer.
func (t *tree) startSandboxes(ctx, running context.Context, plugins []plugin) ([]*simulator, error) {
	sandboxes := make([]*simulator, 0, len(plugins))
	for _, p := range plugins {
		s := t.newSimulator(p)
		if err := s.start(ctx, running); err != nil {
			return sandboxes, err
		}
		t.state.Addresses[p.name] = s.Address()
		sandboxes = append(sandboxes, s)
	}
	return sandboxes, t.state.save()
}

// start runs the process and waits until it answers. Nothing confines it: it is a plugin
// that its owner has built.
func (s *simulator) start(ctx, running context.Context) error {
	return s.Start(ctx, s.plugin.sha256, func(command *exec.Cmd, _ string, _ uint16) (host.Process, error) {
		own := exec.CommandContext(running, s.plugin.path, command.Args[1:]...) // a plugin its owner has built
		own.Args[0], own.Env, own.Stderr = command.Args[0], command.Env, command.Stderr
		own.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is ours to pass on
		return process{own}, nil
	})
}

// process is a command as package host runs one.
type process struct{ command *exec.Cmd }

func (p process) Start(context.Context) error  { return p.command.Start() }
func (p process) Wait(context.Context) error   { return p.command.Wait() }
func (p process) Kill(context.Context) error   { return p.command.Process.Kill() }
func (p process) Ask(end syscall.Signal) error { return p.command.Process.Signal(end) }

// supervise starts the process again whenever it ends, until the context ends.
func (s *simulator) supervise(ctx context.Context) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 100*time.Millisecond, 10*time.Second
	for {
		exited, begun := s.Exited(), time.Now()
		select {
		case <-ctx.Done():
			return nil
		case <-exited:
		}
		s.log.Warn("the simulator ended and is started again")
		if time.Since(begun) > pause.MaxInterval {
			pause.Reset()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.renewed:
			pause.Reset()
		case <-time.After(pause.NextBackOff()):
		}
		if err := s.start(ctx, context.WithoutCancel(ctx)); err != nil && ctx.Err() == nil {
			s.log.Warn("the simulator did not start", "error", err)
		}
	}
}

// client asks the simulators and the gateway's own pages, which are all on this
// machine; a fault may make them wait.
var client = &http.Client{Timeout: 30 * time.Second}

const httpsPort = 443

// port is the one at which the simulator answers.
func (s *simulator) port() (uint16, error) {
	address, err := netip.ParseAddrPort(s.Address())
	return address.Port(), err
}
