//go:build !linux || !(amd64 || arm64)

package confine

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
)

// Level says how far this machine's kernel confines: "yes", or what it leaves open.
func Level() string {
	return "no: plugins are confined on Linux alone (amd64 and arm64), so they read what the gateway's user can read"
}

// Command gives the process of the plugin itself, whose file is compared with the
// approved digest just before.
func (o Order) Command() (*exec.Cmd, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.User != nil {
		return nil, errors.New("a plugin can have a user of its own on Linux alone")
	}
	if err := o.copyTo(io.Discard); err != nil {
		return nil, err
	}
	return &exec.Cmd{Path: o.Path, Args: append([]string{o.Name}, o.Args...), Env: o.Env, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}, nil
}

// Launch is of Linux alone.
func Launch() error { return errors.New("this machine starts plugins without a launcher") }

// HideMemory has nothing to do: the system asks for root already.
func HideMemory() error { return nil }
