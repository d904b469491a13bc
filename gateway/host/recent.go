package host

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	recentCalls  = 256
	recentFaults = 8
)

// Fault is why a process ended or could not be started, or why a call got no answer.
type Fault struct {
	At  time.Time
	Why string
}

// Latency is how long the last calls took.
type Latency struct {
	Calls       int // that were measured, at most 256
	Median, P99 time.Duration
}

// recent is what operators are shown of a plugin's last calls and faults. The zero value
// has none.
type recent struct {
	mu     sync.Mutex
	took   [recentCalls]time.Duration
	calls  int // ever
	faults []Fault
}

// call notes a call that was made.
func (r *recent) call(took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took[r.calls%recentCalls] = took
	r.calls++
}

// fault notes a fault.
func (r *recent) fault(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.faults = append(r.faults, Fault{At: time.Now(), Why: why}); len(r.faults) > recentFaults {
		r.faults = slices.Clone(r.faults[1:])
	}
}

// shown is what is known, the newest fault first.
func (r *recent) shown() (Latency, []Fault) {
	r.mu.Lock()
	n := min(r.calls, recentCalls)
	took, faults := slices.Clone(r.took[:n]), slices.Clone(r.faults)
	r.mu.Unlock()
	slices.Reverse(faults)
	if n == 0 {
		return Latency{}, faults
	}
	slices.Sort(took)
	return Latency{Calls: n, Median: took[n/2], P99: took[n*99/100]}, faults
}

// noteCall keeps how a call went. What was turned away here is no call.
func (p *provider) noteCall(r sdk.Result, took time.Duration) {
	if r.Outcome == sdk.NotSent && r.Blame == sdk.BlameNone {
		return
	}
	p.recent.call(took)
	if r.Outcome == sdk.Unknown || r.Outcome == sdk.NotSent {
		p.recent.fault(r.Detail)
	}
}
