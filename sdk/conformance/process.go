package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// process is one life of the plugin.
type process struct {
	*sdk.Client
	plugin   *plugin.Client
	protocol plugin.ClientProtocol
	pid      int
}

// startProcess runs a plugin as the gateway does: behind the real transport, with an
// environment of its own. How says which program, as a command or by a runner.
func startProcess(how *plugin.ClientConfig, stderr io.Writer) (*process, error) {
	how.HandshakeConfig = sdk.Handshake
	how.Plugins = plugin.PluginSet{sdk.PluginName: &sdk.Plugin{}}
	how.AllowedProtocols = []plugin.Protocol{plugin.ProtocolGRPC}
	how.AutoMTLS = true
	how.SkipHostEnv = true
	how.StartTimeout = 30 * time.Second // a slow test machine is no fault of the plugin
	how.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	how.Stderr, how.SyncStdout, how.SyncStderr = stderr, stderr, stderr // what a Go plugin prints once it serves, too
	p := &process{plugin: plugin.NewClient(how)}
	if err := p.dispense(); err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

// grouped puts a command into a group of its own, which can be killed with its children.
func grouped(command *exec.Cmd) *exec.Cmd {
	command.Env = append(command.Env, sdk.EnvHostPID+"="+strconv.Itoa(os.Getpid()))
	if command.SysProcAttr == nil { // a launcher has its own
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Setpgid = true
	return command
}

func (p *process) dispense() (err error) {
	if p.protocol, err = p.plugin.Client(); err != nil {
		return fmt.Errorf("the plugin does not start: %w", err)
	}
	dispensed, err := p.protocol.Dispense(sdk.PluginName)
	if err != nil {
		return fmt.Errorf("the plugin has no service: %w", err)
	}
	wire, ok := dispensed.(*sdk.Client)
	if !ok {
		return fmt.Errorf("the plugin dispenses a %T", dispensed)
	}
	p.Client = wire
	if p.pid, err = strconv.Atoi(p.plugin.ID()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := wire.Describe(ctx); err != nil { // which opens the stream of calls, as in the gateway
		return fmt.Errorf("the plugin does not describe itself: %w", err)
	}
	return nil
}

// end kills the process and its children.
func (p *process) end() {
	if p.pid != 0 {
		_ = syscall.Kill(-p.pid, syscall.SIGKILL) // it may be gone already
	}
	p.plugin.Kill()
}

// kill ends the process as kill -9 does, and returns once the connection is
// known to be broken.
func (p *process) kill(ctx context.Context) error {
	if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
		return err
	}
	return p.Broken(ctx)
}

// healthy asks as the gateway does whether the process is well.
func (p *process) healthy(within time.Duration) error {
	answered := make(chan error, 1)
	go func() { answered <- p.protocol.Ping() }() // it takes no context; killing the process ends it
	select {
	case err := <-answered:
		return err
	case <-time.After(within):
		return errors.New("no answer within " + within.String())
	}
}

// listener is a plugin's standard error: it passes lines on, and remembers those
// that have a credential in them.
type listener struct {
	secrets *secrets
	out     io.Writer

	mu    sync.Mutex
	rest  []byte
	leaks []string
}

// Write implements io.Writer.
func (l *listener) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, text...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			break
		}
		l.rest = rest
		if name := l.secrets.in(line); name != "" {
			l.leaks = append(l.leaks, "standard error has the credential "+name)
		}
	}
	if len(l.rest) > 1<<20 {
		l.rest = nil // no line is that long
	}
	return l.out.Write(text)
}

func (l *listener) leaked() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.leaks
}
