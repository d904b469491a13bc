package host

import (
	"maps"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
)

// Status is the state of one plugin, for operators and metrics.
type Status struct {
	Provider, Version, Digest, SHA256 string
	Running                           bool
	PID                               int       // zero while it does not run
	Since                             time.Time // of the running process
	Down                              time.Time // since when none runs; zero while one does
	Streams                           bool      // whether calls share a stream, which not every plugin offers
	Restarts                          int       // of a process that had ended
	LastFault                         string    // why a process last ended or could not start
	InFlight, MaxInFlight             int       // of calls
	Memory                            int64     // bytes that it uses, zero where nobody knows
	Latency                           Latency
	Faults                            []Fault // the newest first
	Breakers                          []BreakerStatus
	Confined                          string   // yes, or what the machine leaves open
	Ports                             []uint16 // TCP ports that it may connect to
	Read                              []string // files and directories that it may read
	MaxMemory                         int64    // bytes that it may use
	User                              string   // whom it runs as, "" for the host's own
}

// BreakerStatus is the state of the provider's own circuits in a mode (closed,
// half-open or open), or of the shared account's where that is worse, how many accounts are turned away, and how often breakers have
// opened.
type BreakerStatus struct {
	Mode           string `json:"mode"`
	Calls          string `json:"calls"`
	Lookups        string `json:"lookups"`
	AccountsOpen   int    `json:"accounts_open"`
	Opened         int64  `json:"opened"`
	AccountsOpened int64  `json:"accounts_opened"`
}

// Status returns the state of each plugin, in the order of the specs.
func (h *Host) Status() []Status {
	plugins := h.plugins()
	all := make([]Status, 0, len(plugins))
	for _, p := range plugins {
		all = append(all, p.status())
	}
	return all
}

func (p *provider) status() Status {
	s := Status{Provider: p.name, InFlight: p.calls.inUse(), MaxInFlight: p.calls.limit, Confined: confine.Level()}
	modes := p.modes()
	for _, mode := range slices.Sorted(maps.Keys(modes)) {
		s.Breakers = append(s.Breakers, modes[mode].status(mode))
	}
	s.Latency, s.Faults = p.recent.shown()
	p.mu.Lock()
	defer p.mu.Unlock()
	spec := p.version.spec
	s.Digest, s.SHA256 = spec.ManifestDigest, spec.SHA256
	s.Ports, s.Read, s.MaxMemory, s.User = spec.Ports, spec.Read, spec.Memory, spec.User
	if p.manifest != nil {
		s.Version, s.Digest = p.manifest.Version, p.manifest.Digest()
	}
	s.Restarts, s.Down, s.LastFault = p.restarts, p.down, p.lastFault
	if p.current != nil {
		s.Running, s.PID, s.Since = true, int(p.current.program.pid.Load()), p.current.since
		s.Streams = p.current.wire.Streams()
		if used, err := confine.UsageOf(s.PID); err == nil {
			s.Memory = used.Memory
		}
	}
	return s
}
