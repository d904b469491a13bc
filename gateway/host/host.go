package host

import (
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

	// MaxInFlight bounds the calls in flight, 256 unless given. Lookups,
	// notifications and statements share a second bound of the same size, so that
	// hanging calls never stop money from being resolved.
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
	cancel    context.CancelFunc // ends the supervision
	running   sync.WaitGroup
	closing   sync.Once
	closeErr  error
}

// tuning holds the times that tests shorten.
type tuning struct {
	start        time.Duration // for a process to begin, its manifest included
	restartWait  time.Duration // how long a call waits for a process
	healthPeriod time.Duration
	healthWait   time.Duration
	healthMisses int
	settled      time.Duration // a process that lived so long forgets earlier ends
	graceful     time.Duration // for a process to end by itself
}

var standard = tuning{
	start:        15 * time.Second, // the copy and its hash included
	restartWait:  2 * time.Second,
	healthPeriod: 2 * time.Second,
	healthWait:   time.Second,
	healthMisses: 3,
	settled:      10 * time.Second,
	graceful:     2 * time.Second,
}

// Start starts every plugin and reads its manifest before it returns. The context
// bounds the start, not the host's life. Where one plugin can't be started none is
// left running, and the error names each plugin at fault.
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
	h := &Host{providers: make(map[string]*provider, len(c.Specs)), observe: c.Observe}
	for _, spec := range c.Specs {
		if h.providers[spec.Name] != nil {
			return nil, fmt.Errorf("plugin %s: is configured twice", spec.Name)
		}
		p := newProvider(spec, log.With("plugin", spec.Name), tune)
		h.providers[spec.Name] = p
		h.order = append(h.order, p)
	}
	first, err := launchAll(ctx, h.order)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	h.cancel = cancel
	for i, p := range h.order {
		p.adopt(first[i])
		h.running.Go(func() { p.supervise(life, first[i]) })
	}
	return h, nil
}

// launchAll starts the first process of each provider side by side.
func launchAll(ctx context.Context, providers []*provider) ([]*process, error) {
	processes := make([]*process, len(providers))
	faults := make([]error, len(providers))
	var starting sync.WaitGroup
	for i, p := range providers {
		starting.Go(func() { processes[i], faults[i] = p.launch(ctx) })
	}
	starting.Wait()
	err := errors.Join(faults...)
	if err == nil {
		return processes, nil
	}
	for _, started := range processes {
		if started != nil {
			started.end(0)
		}
	}
	return nil, err
}

// Manifests gives what the plugins declare, in the order of the specs.
func (h *Host) Manifests() []*manifest.Manifest {
	manifests := make([]*manifest.Manifest, 0, len(h.order))
	for _, p := range h.order {
		manifests = append(manifests, p.manifest)
	}
	return manifests
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
