package database

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestAProcessThatIgnoresSignalsIsKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	cmd := exec.Command(script(t, dir, "deaf", "trap '' TERM; : >"+ready+"; while :; do sleep 0.05; done"))
	p, err := startProcess(cmd, syscall.SIGTERM, filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	err = p.awaitReady(t.Context(), probe{pollEvery, time.Minute, func(context.Context) error {
		_, err := os.Stat(ready)
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(cmd.Process.Pid); err != nil || group != cmd.Process.Pid {
		t.Errorf("process group %d, %v: Ctrl-C would reach the server", group, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.shutdown(ctx); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("shutdown = %v", err)
	}
	await(t, "the end", p.done)
	if err := p.shutdown(t.Context()); err != nil {
		t.Errorf("shutdown of a process that ended = %v", err)
	}
}

func TestAProcessIsNotAwaitedForEver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := exec.Command(script(t, dir, "mute", "while :; do sleep 0.05; done"))
	p, err := startProcess(cmd, syscall.SIGTERM, filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	silent := errors.New("connection refused")
	err = p.awaitReady(t.Context(), probe{pollEvery, pollEvery, func(context.Context) error { return silent }})
	if !errors.Is(err, silent) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("awaitReady = %v", err)
	}
	await(t, "the end", p.done)
}

func TestLogsAreQuotedAndPutAside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	if err := os.WriteFile(log, []byte(strings.Repeat("old\n", logLimit/4+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := startProcess(exec.Command(script(t, dir, "loud", "echo last words; exit 3")), syscall.SIGTERM, log)
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the end", p.done)
	text := p.ended().Error()
	if !strings.Contains(text, "exit status 3") || !strings.Contains(text, "last words") || strings.Contains(text, "old") {
		t.Errorf("ended = %s", text)
	}
	if _, err := os.Stat(log + ".old"); err != nil {
		t.Errorf("the long log is gone: %v", err)
	}
	if _, err := startProcess(exec.Command(filepath.Join(dir, "none")), syscall.SIGTERM, log); err == nil {
		t.Error("a missing program was started")
	}
}

func TestProgressAfterASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said []string
		o := Options{Progress: func(message string) { said = append(said, message) }}
		stop := o.awaiting("quick")
		time.Sleep(999 * time.Millisecond)
		stop()
		stop = o.awaiting("slow")
		time.Sleep(6500 * time.Millisecond)
		stop()
		time.Sleep(time.Minute)
		if want := []string{"slow (1 s)", "slow (6 s)"}; !slices.Equal(said, want) {
			t.Errorf("progress = %q, want %q", said, want)
		}
	})
}

func TestSweepRemovesOnlyWhatNobodyHolds(t *testing.T) {
	t.Parallel()
	temp := t.TempDir()
	make := func(name, file, content string) string {
		dir := filepath.Join(temp, name)
		if err := os.MkdirAll(filepath.Join(dir, "postgresql"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	link := filepath.Join(temp, "link")
	gone := []string{
		make(ephemeralPrefix+"free", "lock", ""),
		make(awayPrefix+"forgotten", "origin", filepath.Join(temp, "no link")),
		make(awayPrefix+"replaced", "origin", link),
	}
	kept := []string{
		make(ephemeralPrefix+"held", "lock", ""),
		make(ephemeralPrefix+"beginning", "lock.new", ""),
		make(awayPrefix+"used", "origin", link),
		make("gerbang-other", "lock", ""),
	}
	lock, err := tryLock(filepath.Join(kept[0], "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := os.Symlink(filepath.Join(kept[2], "postgresql"), link); err != nil {
		t.Fatal(err)
	}
	sweep(t.Context(), temp)
	for _, dir := range gone {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there", dir)
		}
	}
	for _, dir := range kept {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("%s was removed: %v", dir, err)
		}
	}
}
