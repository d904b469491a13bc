package database

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

const (
	stopPatience = 10 * time.Second      // how long a fast shutdown may take before SIGKILL
	pollEvery    = 10 * time.Millisecond // how often a server that starts or stops is checked
	tailSize     = 2 << 10               // how much of a server's log an error quotes
	logLimit     = 8 << 20               // a log longer than this is put aside at the next start
)

// process is a server's process. Its output goes to a file, its end closes done.
type process struct {
	cmd  *exec.Cmd
	stop syscall.Signal // what asks it for a fast shutdown
	log  string
	from int64 // where this start's part of the log begins
	done chan struct{}
	err  error // valid once done is closed
}

// startProcess starts cmd in a process group of its own, so that Ctrl-C in a terminal reaches the gateway alone,
// which stops its server last. The log file is appended to.
func startProcess(cmd *exec.Cmd, stop syscall.Signal, logPath string) (*process, error) {
	log, from, err := openLog(logPath)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr, stop)
	p := &process{cmd: cmd, stop: stop, log: logPath, from: from, done: make(chan struct{})}
	result := make(chan error)
	go func() {
		// Linux sends the parent-death signal when the thread ends that started the child, not the process. So the
		// thread is kept for this goroutine until the child is gone; only the death of the whole gateway ends it sooner.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			result <- err
			return
		}
		result <- nil
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-result; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

func openLog(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, 0, fmt.Errorf("put the log aside: %w", err)
		}
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open the log: %w", err)
	}
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, errors.Join(err, log.Close())
	}
	return log, from, nil
}

// ended is the error of a process that ended by itself: how it ended and what it said last.
func (p *process) ended() error {
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended: %s%s", filepath.Base(p.cmd.Path), how, p.tail())
}

// tail quotes the end of what the process logged since it started.
func (p *process) tail() string {
	log, err := os.Open(p.log)
	if err != nil {
		return ""
	}
	defer log.Close()
	if _, err := log.Seek(p.from, io.SeekStart); err != nil {
		return ""
	}
	text, err := io.ReadAll(log)
	text = bytes.TrimSpace(text)
	if err != nil || len(text) == 0 {
		return ""
	}
	if len(text) > tailSize {
		text = text[len(text)-tailSize:]
	}
	return "; its log " + p.log + " says:\n" + string(text)
}

// shutdown asks for a fast shutdown and waits; it kills when ctx ends or patience does.
func (p *process) shutdown(ctx context.Context) error {
	select {
	case <-p.done:
		return nil
	default:
	}
	_ = p.cmd.Process.Signal(p.stop) // fails only when the process ended just now
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
	case <-patience.C:
	}
	_ = p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("database: %s did not stop in time and was killed", filepath.Base(p.cmd.Path))
}

// probe asks a starting server whether it answers, again and again.
type probe struct {
	every    time.Duration
	patience time.Duration
	ask      func(context.Context) error
}

// once gives up on an answer that does not come, so that the end of the process is noticed.
func (p probe) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	return p.ask(ctx)
}

// awaitReady probes until that succeeds, the process ends, or patience does. The process is stopped on failure.
func (p *process) awaitReady(ctx context.Context, probe probe) error {
	ctx, cancel := context.WithTimeout(ctx, probe.patience)
	defer cancel()
	tick := time.NewTicker(probe.every)
	defer tick.Stop()
	for {
		err := probe.once(ctx)
		if err == nil {
			return nil
		}
		var final *finalError
		if errors.As(err, &final) {
			return errors.Join(final.err, p.shutdown(context.WithoutCancel(ctx)))
		}
		select {
		case <-p.done:
			return p.ended()
		case <-ctx.Done():
			stopErr := p.shutdown(context.WithoutCancel(ctx))
			return errors.Join(fmt.Errorf("no answer: %w (%w)", err, ctx.Err()), stopErr)
		case <-tick.C:
		}
	}
}

// finalError ends awaitReady: asking again would change nothing.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }
