package host

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
)

// Status is the state of one plugin, for operators and metrics.
type Status struct {
	Provider, Version, Digest, SHA256 string
	Running                           bool
	PID                               int       // zero while it does not run
	Since                             time.Time // of the running process
	Restarts                          int
	LastFault                         string // why a process last ended or could not start
	InFlight, MaxInFlight             int    // of calls
	Breakers                          []BreakerStatus
	Confined                          string   // yes, or what the machine leaves open
	Ports                             []string // TCP ports that it may connect to
}

// BreakerStatus is the state of a mode's circuits: closed, half-open or open.
type BreakerStatus struct{ Mode, Calls, Lookups string }

// Status returns the state of each plugin, in the order of the specs.
func (h *Host) Status() []Status {
	all := make([]Status, 0, len(h.order))
	for _, p := range h.order {
		all = append(all, p.status())
	}
	return all
}

func (p *provider) status() Status {
	s := Status{
		Provider: p.spec.Name, Version: p.manifest.Version, Digest: p.manifest.Digest(), SHA256: p.spec.SHA256,
		InFlight: p.calls.count(), MaxInFlight: p.spec.MaxInFlight,
		Confined: confine.Level(),
	}
	for _, port := range p.spec.Ports {
		s.Ports = append(s.Ports, strconv.Itoa(int(port)))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, mode := range slices.Sorted(maps.Keys(p.breakers)) {
		s.Breakers = append(s.Breakers, p.breakers[mode].status(mode))
	}
	s.Restarts, s.LastFault = p.restarts, p.lastFault
	if p.current != nil {
		s.Running, s.PID, s.Since = true, int(p.current.program.pid.Load()), p.current.since
	}
	return s
}

func (b *breaker) status(mode string) BreakerStatus {
	return BreakerStatus{Mode: mode, Calls: b.calls.State().String(), Lookups: b.lookups.State().String()}
}
