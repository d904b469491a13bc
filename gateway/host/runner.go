package host

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
)

// program is one start of a plugin's binary, in the form go-plugin runs it.
// go-plugin's own form would hand it the host's standard input and leave it in
// the terminal's process group, where a Ctrl-C hits it before we drained.
type program struct {
	cmd            *exec.Cmd
	path           string // of the binary
	scratch        string // the directory that is its own
	memory         int64  // bytes that it may use
	stdout, stderr io.ReadCloser
	pid            atomic.Int64
	killed         atomic.Bool   // also before it began
	done           chan struct{} // closed once the process is reaped
	killedFor      atomic.Pointer[string]
}

// newProgram prepares a start. The scratch directory is the one that go-plugin made
// for the socket, and removes.
func newProgram(spec Spec, env []string, scratch string) (*program, error) {
	path, err := filepath.Abs(spec.Path)
	if err != nil {
		return nil, err
	}
	order := confine.Order{
		Path: path, SHA256: spec.SHA256, Name: shownPath(path, spec.Name), Host: os.Getpid(),
		Env:     append(append([]string{"TMPDIR=" + scratch, memoryLimit(spec.Memory)}, spec.Env...), env...),
		Scratch: scratch, Read: spec.Read, Ports: spec.Ports,
	}
	if order.User, err = spec.user(); err != nil {
		return nil, err
	}
	if order.User != nil {
		if err := os.Chown(scratch, order.User.UID, order.User.GID); err != nil {
			return nil, err
		}
	}
	command, err := order.Command()
	if err != nil {
		return nil, err
	}
	p := &program{done: make(chan struct{}), cmd: command, path: path, scratch: scratch, memory: spec.Memory}
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
	if err := onLastingThread(p.cmd.Start); err != nil {
		return err
	}
	p.pid.Store(int64(p.cmd.Process.Pid))
	if p.killed.Load() {
		_ = p.Kill(context.Background()) // whoever gave it up found nothing to kill
	}
	go p.bound(p.memory)
	return nil
}

// onLastingThread does something on a thread that lives as long as this process.
// The kernel ends a plugin with the thread that started it, and the runtime ends
// threads.
func onLastingThread(do func() error) error {
	result := make(chan error)
	lastingThread() <- func() { result <- do() }
	return <-result
}

var lastingThread = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range work {
			do()
		}
	}()
	return work
})

// Wait reaps the process. Only go-plugin calls it, once the pipes are read.
func (p *program) Wait(context.Context) error {
	defer close(p.done)
	return p.cmd.Wait()
}

// Kill ends the process and whatever it started in its group. Once it is
// reaped nothing is sent, since its number may be somebody else's. Before its start it
// is ended with that.
func (p *program) Kill(context.Context) error {
	p.killed.Store(true)
	pid := int(p.pid.Load())
	if pid == 0 || p.reaped() {
		return nil
	}
	if err := syscall.Kill(-pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}

// Ask sends the process a signal, unless it is reaped.
func (p *program) Ask(end syscall.Signal) error {
	if p.reaped() {
		return nil
	}
	return p.cmd.Process.Signal(end)
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
	state := p.cmd.ProcessState.String()
	if why := p.killedFor.Load(); why != nil {
		return *why + "; " + state
	}
	return state
}

// Stdout is where the handshake comes from.
func (p *program) Stdout() io.ReadCloser { return p.stdout }

// Stderr is where the log lines come from.
func (p *program) Stderr() io.ReadCloser { return p.stderr }

// Name is the binary's path.
func (p *program) Name() string { return p.path }

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
