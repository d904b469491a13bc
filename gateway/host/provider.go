package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

const defaultInFlight = 256

// provider is one plugin, over all its processes and versions.
type provider struct {
	name      string
	log       *slog.Logger
	tune      tuning
	secrets   *secrets
	calls     *places
	inquiries *places // all but calls and quotes
	recent    recent
	beside    func(provider string) Reach // nil gives nothing

	mu        sync.Mutex
	breakers  map[string]*breakers // by mode
	version   *version             // what is approved now
	manifest  *manifest.Manifest   // nil until one is known; then it changes with the version alone
	current   *process
	changed   chan struct{} // closed when current becomes another
	restarts  int           // of processes that had ended; a version that takes over is none
	down      time.Time     // since when no process runs; zero while one does
	failing   bool          // the last try to start a process failed
	lastFault string
}

// version is a plugin by one spec. It is supervised until another takes its place.
type version struct {
	spec     Spec
	tried    chan struct{}      // closed once the first try to start it is over
	end      context.CancelFunc // its supervision; nil before that begins
	manifest *manifest.Manifest // its own; nil until one is known
	ran      bool
}

func newVersion(spec Spec) *version {
	return &version{spec: spec.complete(), tried: make(chan struct{}), manifest: spec.Manifest}
}

func newProvider(spec Spec, log *slog.Logger, tune tuning) *provider {
	v := newVersion(spec)
	return &provider{
		name: spec.Name, version: v, log: log, tune: tune, secrets: &secrets{}, changed: make(chan struct{}), breakers: map[string]*breakers{},
		calls: newPlaces(v.spec.MaxInFlight), inquiries: newPlaces(v.spec.MaxInFlight), manifest: spec.Manifest, down: time.Now(),
	}
}

// known is the manifest whose operations the plugin serves, nil until there is one.
func (p *provider) known() *manifest.Manifest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.manifest
}

// lacksManifest tells whether nobody knows yet what the version that is approved declares.
func (p *provider) lacksManifest(v *version) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version == v && p.manifest == nil
}

// launch starts a process of a version, and refuses one that is not what was approved.
func (p *provider) launch(ctx context.Context, v *version) (*process, error) {
	if v.spec.Refused != "" {
		return nil, fmt.Errorf("plugin %s: %s", p.name, v.spec.Refused)
	}
	spec := v.spec
	if p.beside != nil {
		beside := p.beside(p.name)
		spec.Ports, spec.Read = append(slices.Clone(spec.Ports), beside.Ports...), append(slices.Clone(spec.Read), beside.Read...)
	}
	started, err := launch(ctx, spec, p.log, p.secrets, p.tune.start)
	if err == nil {
		if err = p.approve(v, started.manifest); err != nil {
			started.end(0)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", p.name, err)
	}
	return started, nil
}

func (p *provider) approve(v *version, m *manifest.Manifest) error {
	p.mu.Lock()
	approved, first := v.spec.ManifestDigest, v.manifest
	p.mu.Unlock()
	if approved == "" && first != nil {
		approved = first.Digest()
	}
	switch {
	case m.Name != p.name:
		return fmt.Errorf("its manifest is that of %q", m.Name)
	case approved != "" && m.Digest() != approved:
		return fmt.Errorf("its manifest has digest %s, approved is %s", m.Digest(), approved)
	}
	return nil
}

// supervise keeps a process of a version running until the context ends. The first is
// started as any later one is, unless it runs already: whatever is wrong with it, it is
// tried again, ever less often.
func (h *Host) supervise(p *provider, v *version, running *process) {
	h.starting.Lock()
	defer h.starting.Unlock()
	ctx, cancel := context.WithCancel(h.life)
	p.mu.Lock()
	v.end = cancel
	p.mu.Unlock()
	if ctx.Err() != nil { // the host has closed
		if cancel(); running != nil {
			running.end(0)
		}
		return
	}
	h.running.Go(func() {
		defer cancel()
		pause := restartPause()
		tried := sync.OnceFunc(func() { close(v.tried) })
		for wait := time.Duration(0); running != nil || passes(ctx, wait); wait = pause.NextBackOff() {
			if running == nil {
				running = h.begin(ctx, p, v)
				tried()
			}
			if running == nil {
				continue
			}
			p.attend(ctx, h.life, running)
			if time.Since(running.since) >= p.tune.settled {
				pause.Reset()
			}
			running = nil
		}
	})
}

// begin starts a process and puts it into use, or notes why that is not possible.
func (h *Host) begin(ctx context.Context, p *provider, v *version) *process {
	running, err := p.launch(ctx, v)
	if err == nil {
		if err = h.learn(p, v, running.manifest); err != nil {
			running.end(0)
			err = fmt.Errorf("plugin %s: %w", p.name, err)
		}
	}
	switch {
	case err != nil:
		if p.fail(v, err.Error()) && ctx.Err() == nil {
			p.log.Error("plugin can't be started", "error", err)
		}
		return nil
	case !p.publish(v, running):
		running.end(0) // another version has taken its place meanwhile
		return nil
	}
	p.log.Info("plugin runs", "pid", running.program.ID(), "version", running.manifest.Version)
	return running
}

// attend watches a process until it is of no more use or the context ends, and ends it.
// Where it is only replaced, its calls come to their ends first.
func (p *provider) attend(ctx, life context.Context, running *process) {
	go p.tellOfStream(running)
	why := running.watch(ctx, p.tune)
	if ctx.Err() != nil {
		if life.Err() == nil {
			p.await(life, running)
		}
		p.withdraw(running)
		running.end(p.tune.graceful)
		return
	}
	p.withdraw(running)
	running.end(0)
	p.blame(why + " (" + running.program.exit() + ")")
	p.log.Error("plugin ended", "pid", running.program.ID(), "reason", why, "exit", running.program.exit())
}

// tellOfStream tells once that a process has fallen back to calls without its stream,
// which are slower, until it ends.
func (p *provider) tellOfStream(running *process) {
	select {
	case <-running.lost:
		return
	case <-running.wire.StreamOver():
	}
	if !running.usable() {
		return // it ended with the process
	}
	why := fmt.Sprintf("its stream of calls is over: %.300s", running.wire.WhyStreamOver().Error())
	why = p.secrets.remove(why, len(why))
	p.log.Warn("plugin is called without its stream until it is restarted", "pid", running.program.ID(), "reason", why)
	p.recent.fault(why)
}

// await waits until no call of a process that was replaced is under way. A call that
// takes longer than any operation may is cut.
func (p *provider) await(life context.Context, replaced *process) {
	deadline := time.NewTimer(p.tune.drain)
	defer deadline.Stop()
	select {
	case <-replaced.idle:
		return
	case <-replaced.program.done:
	case <-life.Done():
	case <-deadline.C:
	}
	if replaced.uses.Load() > 0 {
		p.log.Warn("calls of a plugin that was replaced are cut; their outcomes are unknown", "pid", replaced.program.ID(), "calls", replaced.uses.Load())
	}
}

// shutDown lets no more calls in.
func (p *provider) shutDown() {
	p.calls.shutDown()
	p.inquiries.shutDown()
}

// drained waits until no call is under way, after shutDown.
func (p *provider) drained(ctx context.Context) error {
	if err := errors.Join(p.calls.drained(ctx), p.inquiries.drained(ctx)); err != nil {
		return fmt.Errorf("plugin %s: %w", p.name, err)
	}
	return nil
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

// publish puts a process into use, unless its version is not the one that is approved.
func (p *provider) publish(v *version, next *process) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.version != v {
		return false
	}
	p.run(next)
	return true
}

// run makes a process of the version that is approved the one that is called. The caller
// holds the lock.
func (p *provider) run(next *process) {
	if p.version.ran {
		p.restarts++
	}
	p.version.ran = true
	p.current, next.since = next, time.Now()
	p.down, p.failing = time.Time{}, false
	close(p.changed)
	p.changed = make(chan struct{})
}

// withdraw takes a process out of use, so that calls wait for the next.
func (p *provider) withdraw(ended *process) {
	ended.lose()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil && p.current != ended {
		return // it was replaced
	}
	p.current = nil
	p.down = time.Now()
}

func (p *provider) blame(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastFault = why
	p.recent.fault(why)
}

// fail notes that no process could be started, and is false where the version is not the
// one that is approved. Whoever waits for a process waits in vain.
func (p *provider) fail(v *version, why string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.version != v {
		return false
	}
	p.failing, p.lastFault = true, why
	p.recent.fault(why)
	close(p.changed)
	p.changed = make(chan struct{})
	return true
}

// keepOut forgets what a plugin declares and ends its process. The next one has to learn
// whether that can be offered by then.
func (p *provider) keepOut(why string) {
	p.mu.Lock()
	running, v := p.current, p.version
	p.manifest, p.current, p.down = nil, nil, time.Now()
	p.mu.Unlock()
	p.log.Error("plugin kept out", "problem", why)
	p.fail(v, why)
	if running != nil {
		running.program.killedFor.Store(&why)
		running.lose()
	}
}
