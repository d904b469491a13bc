package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

const defaultInFlight = 256

// provider is one plugin, over all its processes.
type provider struct {
	spec      Spec
	log       *slog.Logger
	tune      tuning
	secrets   *secrets
	calls     *semaphore
	inquiries *semaphore         // all but calls and quotes
	manifest  *manifest.Manifest // of the first process; never changes

	mu        sync.Mutex
	breakers  map[string]*breaker // by mode
	current   *process
	changed   chan struct{} // closed when current becomes another
	restarts  int
	lastFault string
}

func newProvider(spec Spec, log *slog.Logger, tune tuning) *provider {
	spec = spec.complete()
	return &provider{
		spec: spec, log: log, tune: tune, secrets: &secrets{}, changed: make(chan struct{}), breakers: map[string]*breaker{},
		calls: newSemaphore(spec.MaxInFlight), inquiries: newSemaphore(spec.MaxInFlight),
	}
}

// launch starts a process and refuses one that is not what was approved.
func (p *provider) launch(ctx context.Context) (*process, error) {
	started, err := launch(ctx, p.spec, p.log, p.secrets, p.tune.start)
	if err == nil {
		if err = p.approve(started.manifest); err != nil {
			started.end(0)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.spec.Name, err)
	}
	return started, nil
}

func (p *provider) approve(m *manifest.Manifest) error {
	approved := p.spec.ManifestDigest
	if approved == "" && p.manifest != nil {
		approved = p.manifest.Digest()
	}
	switch {
	case m.Name != p.spec.Name:
		return fmt.Errorf("its manifest is that of %q", m.Name)
	case approved != "" && m.Digest() != approved:
		return fmt.Errorf("its manifest has digest %s, approved is %s", m.Digest(), approved)
	}
	return nil
}

// adopt publishes the first process.
func (p *provider) adopt(first *process) {
	p.manifest = first.manifest
	p.publish(first)
}

// supervise replaces processes until the context ends.
func (p *provider) supervise(ctx context.Context, running *process) {
	pause := restartPause()
	for running != nil {
		p.log.Info("plugin runs", "pid", running.program.ID(), "version", running.manifest.Version)
		why := running.watch(ctx, p.tune)
		p.withdraw(running)
		if ctx.Err() != nil {
			running.end(p.tune.graceful)
			return
		}
		running.end(0)
		p.blame(why + " (" + running.program.exit() + ")")
		p.log.Error("plugin ended", "pid", running.program.ID(), "reason", why, "exit", running.program.exit())
		if time.Since(running.since) >= p.tune.settled {
			pause.Reset()
		}
		running = p.restart(ctx, pause)
	}
}

// restartPause is how long to wait before each next try. The first is short,
// because one crash in a call is no reason to turn the next call away.
func restartPause() *backoff.ExponentialBackOff {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.Multiplier = 100*time.Millisecond, 30*time.Second, 2
	return pause
}

// restart tries until a process runs. It returns nil when the context ends.
func (p *provider) restart(ctx context.Context, pause backoff.BackOff) *process {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause.NextBackOff()):
		}
		started, err := p.launch(ctx)
		if err == nil {
			p.mu.Lock()
			p.restarts++
			p.mu.Unlock()
			p.publish(started)
			return started
		}
		p.blame(err.Error())
		p.log.Error("plugin can't be restarted", "error", err)
	}
}

func (p *provider) publish(next *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current = next
	close(p.changed)
	p.changed = make(chan struct{})
}

// withdraw takes a process out of use, so that calls wait for the next.
func (p *provider) withdraw(ended *process) {
	ended.lose()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == ended {
		p.current = nil
	}
}

func (p *provider) blame(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastFault = why
}

var errDown = errors.New("its process is down")

// ready returns the process to call. While the process is being replaced it waits,
// as long as a restart usually takes and never past until.
func (p *provider) ready(ctx context.Context, until time.Time) (*process, error) {
	if running, _ := p.process(); running != nil {
		return running, nil
	}
	wait := p.tune.restartWait
	if !until.IsZero() {
		wait = min(wait, time.Until(until))
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		running, changed := p.process()
		if running != nil {
			return running, nil
		}
		select {
		case <-ctx.Done():
			return nil, errDown
		case <-changed:
		}
	}
}

func (p *provider) process() (*process, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil && !p.current.usable() {
		p.current = nil
	}
	return p.current, p.changed
}
