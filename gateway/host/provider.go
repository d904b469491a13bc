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
	calls     *places
	inquiries *places       // all but calls and quotes
	tried     chan struct{} // closed once the first try to start it is over

	mu        sync.Mutex
	breakers  map[string]*breakers // by mode
	manifest  *manifest.Manifest   // nil until one is known; then it never changes
	current   *process
	changed   chan struct{} // closed when current becomes another
	starts    int
	down      time.Time // since when no process runs; zero while one does
	failing   bool      // the last try to start a process failed
	lastFault string
}

func newProvider(spec Spec, log *slog.Logger, tune tuning) *provider {
	spec = spec.complete()
	return &provider{
		spec: spec, log: log, tune: tune, secrets: &secrets{}, changed: make(chan struct{}), breakers: map[string]*breakers{},
		calls: newPlaces(spec.MaxInFlight), inquiries: newPlaces(spec.MaxInFlight),
		tried: make(chan struct{}), manifest: spec.Manifest, down: time.Now(),
	}
}

// known is the manifest whose operations the plugin serves, nil until there is one.
func (p *provider) known() *manifest.Manifest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.manifest
}

// launch starts a process and refuses one that is not what was approved.
func (p *provider) launch(ctx context.Context, learn func(*provider, *manifest.Manifest) error) (*process, error) {
	started, err := launch(ctx, p.spec, p.log, p.secrets, p.tune.start)
	if err == nil {
		if err = p.approve(started.manifest); err == nil {
			err = learn(p, started.manifest)
		}
		if err != nil {
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
	if first := p.known(); approved == "" && first != nil {
		approved = first.Digest()
	}
	switch {
	case m.Name != p.spec.Name:
		return fmt.Errorf("its manifest is that of %q", m.Name)
	case approved != "" && m.Digest() != approved:
		return fmt.Errorf("its manifest has digest %s, approved is %s", m.Digest(), approved)
	}
	return nil
}

// supervise keeps a process running until the context ends. The first is started as
// any later one is: whatever is wrong with it, it is tried again, ever less often.
func (p *provider) supervise(ctx context.Context, learn func(*provider, *manifest.Manifest) error) {
	pause := restartPause()
	tried := sync.OnceFunc(func() { close(p.tried) })
	for wait := time.Duration(0); passes(ctx, wait); wait = pause.NextBackOff() {
		running, err := p.launch(ctx, learn)
		if err != nil {
			p.fail(err.Error())
			p.log.Error("plugin can't be started", "error", err)
			tried()
			continue
		}
		p.publish(running)
		p.log.Info("plugin runs", "pid", running.program.ID(), "version", running.manifest.Version)
		tried()
		p.attend(ctx, running)
		if time.Since(running.since) >= p.tune.settled {
			pause.Reset()
		}
	}
}

// attend watches a process until it is of no more use or the context ends, and ends it.
func (p *provider) attend(ctx context.Context, running *process) {
	why := running.watch(ctx, p.tune)
	p.withdraw(running)
	if ctx.Err() != nil {
		running.end(p.tune.graceful)
		return
	}
	running.end(0)
	p.blame(why + " (" + running.program.exit() + ")")
	p.log.Error("plugin ended", "pid", running.program.ID(), "reason", why, "exit", running.program.exit())
}

// passes waits for a time, and is false when the context ends first.
func passes(ctx context.Context, wait time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(wait):
		return ctx.Err() == nil
	}
}

// restartPause is how long to wait before each next try. The first is short,
// because one crash in a call is no reason to turn the next call away.
func restartPause() *backoff.ExponentialBackOff {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval, pause.Multiplier = 100*time.Millisecond, 30*time.Second, 2
	return pause
}

func (p *provider) publish(next *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.current, next.since = next, time.Now()
	p.starts++
	p.down, p.failing = time.Time{}, false
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
	p.down = time.Now()
}

func (p *provider) blame(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastFault = why
}

// fail notes that no process could be started. Whoever waits for one waits in vain.
func (p *provider) fail(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failing, p.lastFault = true, why
	close(p.changed)
	p.changed = make(chan struct{})
}

var errDown = errors.New("its process is down")

// fails reports whether the last try to start a process failed: nobody knows when
// another will run, so nothing waits for it.
func (p *provider) fails() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failing
}

// ready returns the process to call. While the process is being replaced it waits,
// as long as a restart usually takes and never past until.
func (p *provider) ready(ctx context.Context, until time.Time) (*process, error) {
	wait := p.tune.restartWait
	if !until.IsZero() {
		wait = min(wait, time.Until(until))
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		running, changed := p.process()
		switch {
		case running != nil:
			return running, nil
		case p.fails():
			return nil, errDown
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
