package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopOrphan stops a PostgreSQL that still runs on data although nobody holds the home's lock: its gateway was killed.
// A pid file that names something else (pids are used again, quickly so in containers) is removed, because PostgreSQL
// would not start beside it. The caller holds the lock.
func stopOrphan(ctx context.Context, data string) error {
	data, err := filepath.EvalSymlinks(data)
	if err != nil {
		return nil //nolint:nilerr // no cluster, so nothing runs on it
	}
	file := filepath.Join(data, "postmaster.pid")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("a server may still be running: %w", err)
	}
	lines := strings.SplitN(string(text), "\n", 3)
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 1 || len(lines) < 2 {
		return nil //nolint:nilerr // half written by a crash; PostgreSQL itself handles it
	}
	if !alive(pid) {
		return nil // PostgreSQL takes over the file of a dead postmaster
	}
	args := commandLine(pid)
	if len(args) == 0 || !strings.HasPrefix(filepath.Base(args[0]), "postgres") {
		return os.Remove(file)
	}
	if !slices.Contains(args, data) {
		return fmt.Errorf("the server with pid %d may still be using %s; stop it first", pid, data)
	}
	return interrupt(ctx, pid)
}

// interrupt asks a postmaster that is nobody's child here for a fast shutdown, then for an immediate one.
func interrupt(ctx context.Context, pid int) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT} {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop the server left running with pid %d: %w", pid, err)
		}
		deadline := time.After(stopPatience)
	waiting:
		for alive(pid) && len(commandLine(pid)) > 0 { // a zombie has no command line
			select {
			case <-tick.C:
			case <-deadline:
				break waiting
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if !alive(pid) || len(commandLine(pid)) == 0 {
			return nil
		}
	}
	return fmt.Errorf("the server left running with pid %d does not stop", pid)
}

func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

// commandLine is the program and arguments of a process; empty when it is gone or a zombie.
func commandLine(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err == nil {
		return strings.FieldsFunc(string(text), func(r rune) bool { return r == 0 })
	}
	if _, err := os.Stat("/proc/self"); err == nil {
		return nil
	}
	// No /proc here (macOS). ps joins arguments by spaces, so a directory with a space in its name is not recognised
	// and its orphan must be stopped by hand.
	out, err := exec.Command("ps", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return nil
	}
	return strings.Fields(string(out))
}
