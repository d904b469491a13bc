package host

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
)

// program is one start of a plugin's binary, in the form go-plugin runs it.
// go-plugin's own form would hand it the host's standard input and leave it in
// the terminal's process group, where a Ctrl-C hits it before we drained.
type program struct {
	cmd            *exec.Cmd
	stdout, stderr io.ReadCloser
	pid            atomic.Int64
	done           chan struct{} // closed once the process is reaped
}

func newProgram(spec Spec, env []string) (*program, error) {
	path, err := filepath.Abs(spec.Path)
	if err != nil {
		return nil, err
	}
	p := &program{done: make(chan struct{}), cmd: &exec.Cmd{
		Path:        path,
		Args:        []string{shownPath(path, spec.Name)},
		Env:         append(append([]string{}, spec.Env...), env...),
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
	}}
	if p.stdout, err = p.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if p.stderr, err = p.cmd.StderrPipe(); err != nil {
		return nil, err
	}
	return p, nil
}

// shownPath is what an operator's process list shows: it ends in plugins/<name>,
// wherever the file is kept and whatever it is called.
func shownPath(path, name string) string {
	dir := filepath.Dir(path)
	if filepath.Base(dir) != "plugins" {
		dir = filepath.Join(dir, "plugins")
	}
	return filepath.Join(dir, name)
}

// Start begins the process.
func (p *program) Start(context.Context) error {
	if err := p.cmd.Start(); err != nil {
		return err
	}
	p.pid.Store(int64(p.cmd.Process.Pid))
	return nil
}

// Wait reaps the process. Only go-plugin calls it, once the pipes are read.
func (p *program) Wait(context.Context) error {
	defer close(p.done)
	return p.cmd.Wait()
}

// Kill ends the process and whatever it started in its group. Once it is
// reaped nothing is sent, since its number may be somebody else's.
func (p *program) Kill(context.Context) error {
	pid := int(p.pid.Load())
	if pid == 0 || p.reaped() {
		return nil
	}
	if err := syscall.Kill(-pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

func (p *program) reaped() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// exit says how a reaped process ended.
func (p *program) exit() string {
	if p.cmd.ProcessState == nil {
		return "no exit status"
	}
	return p.cmd.ProcessState.String()
}

// Stdout is where the handshake comes from.
func (p *program) Stdout() io.ReadCloser { return p.stdout }

// Stderr is where the log lines come from.
func (p *program) Stderr() io.ReadCloser { return p.stderr }

// Name is the binary's path.
func (p *program) Name() string { return p.cmd.Path }

// ID is the process number, empty before the start.
func (p *program) ID() string {
	if pid := p.pid.Load(); pid != 0 {
		return strconv.FormatInt(pid, 10)
	}
	return ""
}

// Diagnose has nothing to add: the plugin's own last lines are in our error.
func (p *program) Diagnose(context.Context) string { return "" }

// PluginToHost is the identity, since both run on one machine.
func (p *program) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin is the identity, since both run on one machine.
func (p *program) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
