package host

import (
	"context"
	"os"
	"os/exec"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
)

// Trial confines a plugin and its simulator in a conformance test as [Host] confines
// the plugin: the same launcher, the same bounds, and no ports but those of the test.
type Trial struct {
	Spec Spec
	// OwnSimulator says that the simulator is another program, which the operator trusts
	// and which runs as any other of theirs. Else it is the same binary.
	OwnSimulator bool
}

// Plugin is how go-plugin runs the plugin.
func (t Trial) Plugin(read []string, ports []uint16) func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error) {
	spec := t.Spec.complete()
	spec.Ports, spec.Read = ports, append(read, spec.Read...)
	return func(_ hclog.Logger, cmd *exec.Cmd, scratch string) (runner.Runner, error) {
		return newProgram(spec, withHost(cmd.Env), scratch)
	}
}

// Beside is a process that runs beside a test. Kill ends its children, too.
type Beside = interface {
	Start(ctx context.Context) error
	Wait(ctx context.Context) error
	Kill(ctx context.Context) error
}

// Simulator gives the process that plays the upstream, nil for an operator's own.
func (t Trial) Simulator(command *exec.Cmd, dir string, listen uint16, ports []uint16) (Beside, error) {
	if t.OwnSimulator {
		return nil, nil
	}
	return Simulator(t.Spec, command, dir, listen, ports)
}

// Process is one that runs beside a plugin, and may be asked to end.
type Process interface {
	Beside
	Ask(end syscall.Signal) error
}

// Simulator gives the process of a plugin's own binary that plays its upstream, confined
// as the plugin is, but for a directory and a port of its own.
func Simulator(spec Spec, command *exec.Cmd, dir string, listen uint16, ports []uint16) (Process, error) {
	spec = spec.complete()
	spec.Memory = max(spec.Memory, defaultMemory) // what is approved for the plugin need not do for a simulator
	order := confine.Order{
		Path: spec.Path, SHA256: spec.SHA256, Name: command.Args[0], Args: command.Args[1:], Env: append(command.Env, memoryLimit(spec.Memory)),
		Host: os.Getpid(), Scratch: dir, Read: spec.Read, Ports: ports, Listen: listen,
	}
	var err error
	if order.User, err = spec.user(); err != nil {
		return nil, err
	}
	if order.User != nil {
		if err := os.Chown(dir, order.User.UID, order.User.GID); err != nil {
			return nil, err
		}
	}
	confined, err := order.Command()
	if err != nil {
		return nil, err
	}
	confined.Stderr = command.Stderr
	return &program{done: make(chan struct{}), cmd: confined, path: spec.Path, scratch: dir, memory: spec.Memory}, nil
}
