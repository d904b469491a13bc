package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/user"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// Spec says which plugin to run and what of it an operator approved.
type Spec struct {
	Name   string // of the provider; the manifest must say the same
	Path   string // of the binary
	SHA256 string // of the binary, in hex; required
	// ManifestDigest is the approved manifest's, in hex. Where it is empty the
	// manifest of the first start is taken, and a restart must show it again.
	ManifestDigest string
	// Manifest is the approved manifest itself, where it is known from an earlier start:
	// its operations exist while the plugin can't be started. Nil where it is not known.
	Manifest *manifest.Manifest
	// Refused says why nothing may be started, "" where it may. What Manifest declares is
	// unavailable then, and says so.
	Refused string
	// Env is the plugin's whole environment, "NAME=value", beside what the
	// transport needs. Nothing of the host's own is inherited.
	Env []string

	// What the plugin may reach, beside what every program needs.
	Read  []string // files and directories
	Ports []uint16 // TCP ports that it may connect to; 443 unless given
	// Memory is how many bytes it may use; 512 MiB unless given.
	Memory int64
	// User is whom it runs as, a name or a number; the host's own user unless given.
	User string

	// MaxInFlight is how many places calls have, 256 unless given. Lookups,
	// notifications and statements have as many of their own, so that hanging calls
	// never stop money from being resolved.
	MaxInFlight int
}

// complete fills in what the spec leaves to us.
func (s Spec) complete() Spec {
	if s.MaxInFlight <= 0 {
		s.MaxInFlight = defaultInFlight
	}
	if s.Memory <= 0 {
		s.Memory = defaultMemory
	}
	if len(s.Ports) == 0 {
		s.Ports = []uint16{443}
	}
	return s
}

// user finds the user whom a plugin runs as.
func (s Spec) user() (*confine.User, error) {
	if s.User == "" {
		return nil, nil
	}
	found, err := user.Lookup(s.User)
	if err != nil {
		if found, err = user.LookupId(s.User); err != nil {
			return nil, fmt.Errorf("user %q: there is none", s.User)
		}
	}
	uid, err := strconv.Atoi(found.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(found.Gid)
	if err != nil {
		return nil, err
	}
	return &confine.User{UID: uid, GID: gid}, nil
}

// Config is what a [Host] is made from.
type Config struct {
	Specs   []Spec
	Log     *slog.Logger                     // the host's and the plugins' lines; nil discards them
	Observe func(Observation)                // called after every use, may be nil; it must not block
	Offers  func([]*manifest.Manifest) error // the error of manifests that can't be offered together; nil refuses none
	Now     func() time.Time                 // the time that all replicas share, in which send_by is given; nil means this machine's
	// Simulator is what a plugin may reach beside what is approved, for its simulator; nil
	// gives nothing.
	Simulator func(provider string) Reach
}

// Reach is what a plugin may reach of its simulator: ports that it may connect to, and
// directories that it may read.
type Reach struct {
	Ports []uint16
	Read  []string
}

// Observation is one use of a plugin, for metrics.
type Observation struct {
	Provider, Mode, Operation string
	Method                    string // "call", "quote", "lookup", "notify" or "verify"
	Outcome                   string // as package sdk names it, in snake case
	Took                      time.Duration
}

// Host runs the plugins. Its methods may be used from any goroutine.
type Host struct {
	roster   atomic.Pointer[roster]
	log      *slog.Logger
	tune     tuning
	observe  func(Observation)
	now      func() time.Time
	starting sync.Mutex // held while a supervision begins, or the host closes
	changes  sync.Map   // by plugin, a channel that is full while it is changed
	learning sync.Mutex // held while the known manifests change
	beside   func(provider string) Reach
	offers   func([]*manifest.Manifest) error // nil until the first start of all is over
	offer    Offering                         // nil until [Host.Offer]
	life     context.Context                  //nolint:containedctx // the supervision's, which no call's context bounds
	cancel   context.CancelFunc
	running  sync.WaitGroup
	closing  sync.Once
	closeErr error
}

// Offering takes over what the plugins declare: it builds everything from their
// manifests, and take swaps that in, at once and without an error. Take calls nothing of
// the host.
type Offering func([]*manifest.Manifest) (take func(), err error)

// roster is which plugins there are at one moment.
type roster struct {
	order []*provider
	named map[string]*provider
}

// with is the roster with another provider at the end.
func (r *roster) with(p *provider) *roster {
	next := &roster{order: append(slices.Clone(r.order), p), named: maps.Clone(r.named)}
	next.named[p.name] = p
	return next
}

// without is the roster without a provider.
func (r *roster) without(gone *provider) *roster {
	next := &roster{order: slices.DeleteFunc(slices.Clone(r.order), func(p *provider) bool { return p == gone }), named: maps.Clone(r.named)}
	delete(next.named, gone.name)
	return next
}

// manifests are those that are known, in the order of the roster, with another one in
// the place of one provider's.
func (r *roster) manifests(of *provider, instead *manifest.Manifest) []*manifest.Manifest {
	all := make([]*manifest.Manifest, 0, len(r.order))
	for _, p := range r.order {
		m := p.known()
		if p == of {
			m = instead
		}
		if m != nil {
			all = append(all, m)
		}
	}
	return all
}

// plugins are those that there are now, in order.
func (h *Host) plugins() []*provider { return h.roster.Load().order }

// plugin finds one by its name.
func (h *Host) plugin(name string) (*provider, bool) {
	p, ok := h.roster.Load().named[name]
	return p, ok
}

// tuning holds the times that tests shorten.
type tuning struct {
	start        time.Duration // for a process to begin, its manifest included
	patience     time.Duration // for the first processes, where their manifests are known without them
	restartWait  time.Duration // how long a call waits for a process
	healthPeriod time.Duration
	healthWait   time.Duration
	healthMisses int
	settled      time.Duration // a process that lived so long forgets earlier ends
	graceful     time.Duration // for a process to end by itself
	drain        time.Duration // for the calls of a process that was replaced
	window       time.Duration // of uses that a breaker counts
	open         time.Duration // for an open breaker to let nothing through
}

var standard = tuning{
	start:        15 * time.Second, // the copy and its hash included
	patience:     5 * time.Second,
	restartWait:  2 * time.Second,
	healthPeriod: 2 * time.Second,
	healthWait:   time.Second,
	healthMisses: 3,
	settled:      10 * time.Second,
	graceful:     2 * time.Second,
	drain:        35 * time.Second, // the longest operation with room to spare
	window:       10 * time.Second,
	open:         5 * time.Second,
}

// newProvider is a plugin of this host's that is not supervised yet.
func (h *Host) newProvider(spec Spec) *provider {
	p := newProvider(spec, h.log.With("plugin", spec.Name), h.tune)
	p.beside = h.beside
	return p
}

// Approved is what a plugin runs by now, false where there is no such plugin.
func (h *Host) Approved(name string) (Spec, bool) {
	p, ok := h.plugin(name)
	if !ok {
		return Spec{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version.spec, true
}

// Start starts every plugin, all at once. A plugin that can't be started ends nothing:
// its status says why, calls of it are not sent, and it is tried again, ever less often,
// until it comes up. Start returns once each has come up or failed, and sooner where a
// slow one's manifest is known without it. The context bounds the start, not the host's
// life. The error is of a configuration that no plugin could mend.
func Start(ctx context.Context, c Config) (*Host, error) {
	return start(ctx, c, standard)
}

func start(ctx context.Context, c Config, tune tuning) (*Host, error) {
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if err := confine.HideMemory(); err != nil {
		return nil, err
	}
	if level := confine.Level(); level != "yes" {
		log.Warn("plugins are not confined as they should be", "confined", level)
	}
	h := &Host{log: log, tune: tune, observe: c.Observe, now: c.Now, beside: c.Simulator}
	if h.now == nil {
		h.now = time.Now
	}
	all := &roster{named: map[string]*provider{}}
	for _, spec := range c.Specs {
		if all.named[spec.Name] != nil {
			return nil, fmt.Errorf("plugin %s: is configured twice", spec.Name)
		}
		all = all.with(h.newProvider(spec))
	}
	h.roster.Store(all)
	h.life, h.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, p := range all.order {
		h.supervise(p, p.version, nil)
	}
	if err := h.awaitFirst(ctx, tune.patience); err != nil {
		h.cancel()
		h.running.Wait()
		return nil, err
	}
	if c.Offers != nil {
		h.settle(c.Offers)
	}
	return h, nil
}

// settle keeps out each plugin that can't be offered beside those before it: those whose
// manifests were known before this start, then the others, as the specs have them. So
// which of two gets a path does not depend on who is quicker. One that is kept out is
// tried again, as one that can't be started.
func (h *Host) settle(offers func([]*manifest.Manifest) error) {
	h.learning.Lock()
	defer h.learning.Unlock()
	h.offers = offers
	known := func(p *provider) bool { return p.version.spec.Manifest != nil }
	all := slices.Clone(h.plugins())
	slices.SortStableFunc(all, func(a, b *provider) int {
		switch {
		case known(a) == known(b):
			return 0
		case known(a):
			return -1
		}
		return 1
	})
	var offered []*manifest.Manifest
	for _, p := range all {
		m := p.known()
		if m == nil {
			continue
		}
		if err := offers(append(slices.Clone(offered), m)); err != nil {
			p.keepOut("plugin " + p.name + ": what it declares can't be offered beside the other plugins: " + err.Error())
			continue
		}
		offered = append(offered, m)
	}
}

// awaitFirst waits until the first try to start each plugin is over. One whose
// operations are known is waited for as long as patience allows: meanwhile its calls
// are not sent.
func (h *Host) awaitFirst(ctx context.Context, patience time.Duration) error {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range h.plugins() {
		enough := ctx
		if p.known() != nil {
			enough = patient
		}
		select {
		case <-p.version.tried:
		case <-enough.Done():
		}
	}
	return ctx.Err()
}

// learn takes in the manifest that a plugin shows. One that cannot be offered beside
// the others is refused.
func (h *Host) learn(p *provider, v *version, m *manifest.Manifest) error {
	h.learning.Lock()
	defer h.learning.Unlock()
	if !p.lacksManifest(v) {
		return nil
	}
	take, err := h.build(h.roster.Load().manifests(p, m))
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	take()
	p.manifest, v.manifest = m, m
	return nil
}

// build builds what is to be offered, once somebody takes it.
func (h *Host) build(manifests []*manifest.Manifest) (take func(), err error) {
	switch {
	case h.offer != nil:
		return h.offer(manifests)
	case h.offers != nil:
		err = h.offers(manifests)
	}
	return func() {}, err
}

// Offer has all manifests that are known taken over, now and whenever they change: when
// a plugin comes up whose manifest was not known, before its first call, and when one is
// replaced, added or removed, in the same moment. What is refused then does not come into
// use.
func (h *Host) Offer(offer Offering) error {
	h.learning.Lock()
	defer h.learning.Unlock()
	take, err := offer(h.Manifests())
	if err != nil {
		return err
	}
	take()
	h.offer = offer
	return nil
}

// Manifests gives what the plugins declare, in the order of the specs, as far as it is
// known.
func (h *Host) Manifests() []*manifest.Manifest { return h.roster.Load().manifests(nil, nil) }

// Down names each plugin that does not run and why, nil where all run.
func (h *Host) Down() error {
	var faults []error
	for _, s := range h.Status() {
		if !s.Running {
			faults = append(faults, errors.New(cmp.Or(s.LastFault, "plugin "+s.Provider+": has not started yet")))
		}
	}
	return errors.Join(faults...)
}

// Close lets nothing more in, waits for what is in flight until the context ends,
// and then ends the processes. The error says when calls had to be cut; their
// outcomes are unknown.
func (h *Host) Close(ctx context.Context) error {
	h.closing.Do(func() {
		all := h.plugins()
		for _, p := range all {
			p.shutDown()
		}
		for _, p := range all {
			if err := p.drained(ctx); err != nil {
				h.closeErr = errors.Join(h.closeErr, err)
			}
		}
		h.starting.Lock()
		h.cancel()
		h.starting.Unlock()
		h.running.Wait()
	})
	return h.closeErr
}
