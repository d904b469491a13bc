package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/user"
	"strconv"
	"sync"
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
	Log     *slog.Logger      // the host's and the plugins' lines; nil discards them
	Observe func(Observation) // called after every use, may be nil; it must not block
	Now     func() time.Time  // the time that all replicas share, in which send_by is given; nil means this machine's
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
	order     []*provider
	providers map[string]*provider
	observe   func(Observation)
	now       func() time.Time
	learning  sync.Mutex                       // held while the known manifests change
	offer     func([]*manifest.Manifest) error // nil until [Host.Offer]
	cancel    context.CancelFunc               // ends the supervision
	running   sync.WaitGroup
	closing   sync.Once
	closeErr  error
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
	window:       10 * time.Second,
	open:         5 * time.Second,
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
	h := &Host{providers: make(map[string]*provider, len(c.Specs)), observe: c.Observe, now: c.Now}
	if h.now == nil {
		h.now = time.Now
	}
	for _, spec := range c.Specs {
		if h.providers[spec.Name] != nil {
			return nil, fmt.Errorf("plugin %s: is configured twice", spec.Name)
		}
		p := newProvider(spec, log.With("plugin", spec.Name), tune)
		h.providers[spec.Name] = p
		h.order = append(h.order, p)
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.cancel = cancel
	for _, p := range h.order {
		h.running.Go(func() { p.supervise(life, h.learn) })
	}
	if err := h.awaitFirst(ctx, tune.patience); err != nil {
		cancel()
		h.running.Wait()
		return nil, err
	}
	return h, nil
}

// awaitFirst waits until the first try to start each plugin is over. One whose
// operations are known is waited for as long as patience allows: meanwhile its calls
// are not sent.
func (h *Host) awaitFirst(ctx context.Context, patience time.Duration) error {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, p := range h.order {
		enough := ctx
		if p.known() != nil {
			enough = patient
		}
		select {
		case <-p.tried:
		case <-enough.Done():
		}
	}
	return ctx.Err()
}

// learn takes in the manifest that a plugin shows. One that cannot be offered beside
// the others is refused.
func (h *Host) learn(p *provider, m *manifest.Manifest) error {
	h.learning.Lock()
	defer h.learning.Unlock()
	if p.known() != nil {
		return nil
	}
	if h.offer != nil {
		all := make([]*manifest.Manifest, 0, len(h.order))
		for _, other := range h.order {
			if known := other.known(); other == p {
				all = append(all, m)
			} else if known != nil {
				all = append(all, known)
			}
		}
		if err := h.offer(all); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.manifest = m
	return nil
}

// Offer has all manifests that are known taken by use, now and whenever a plugin comes
// up whose manifest was not known: before its first call, with its own among them. If
// use refuses them then, the plugin is taken for one that can't be started.
func (h *Host) Offer(use func([]*manifest.Manifest) error) error {
	h.learning.Lock()
	defer h.learning.Unlock()
	h.offer = use
	return use(h.Manifests())
}

// Manifests gives what the plugins declare, in the order of the specs, as far as it is
// known.
func (h *Host) Manifests() []*manifest.Manifest {
	manifests := make([]*manifest.Manifest, 0, len(h.order))
	for _, p := range h.order {
		if known := p.known(); known != nil {
			manifests = append(manifests, known)
		}
	}
	return manifests
}

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
		for _, p := range h.order {
			p.calls.shutDown()
			p.inquiries.shutDown()
		}
		for _, p := range h.order {
			if err := errors.Join(p.calls.drained(ctx), p.inquiries.drained(ctx)); err != nil {
				h.closeErr = errors.Join(h.closeErr, fmt.Errorf("plugin %s: %w", p.spec.Name, err))
			}
		}
		h.cancel()
		h.running.Wait()
	})
	return h.closeErr
}
