package host

import (
	"os"
	"os/exec"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
)

// Trial confines a plugin and its simulator in a conformance test as [Host] confines
// the plugin: the same launcher, the same bounds, and no ports but those of the test.
// Its simulator is the same binary.
type Trial struct{ Spec Spec }

// Plugin is how go-plugin runs the plugin.
func (t Trial) Plugin(read []string, ports []uint16) func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error) {
	spec := t.Spec.complete()
	spec.Ports, spec.Read = ports, append(read, spec.Read...)
	return func(_ hclog.Logger, cmd *exec.Cmd, scratch string) (runner.Runner, error) {
		return newProgram(spec, withHost(cmd.Env), scratch)
	}
}

// Simulator gives the command that plays the upstream, confined.
func (t Trial) Simulator(command *exec.Cmd, dir string, ports []uint16) (*exec.Cmd, error) {
	return confine.Order{
		Path: t.Spec.Path, SHA256: t.Spec.SHA256, Name: command.Args[0], Args: command.Args[1:], Env: command.Env,
		Host: os.Getpid(), Scratch: dir, Read: t.Spec.Read, Ports: ports, Simulator: true,
	}.Command()
}
