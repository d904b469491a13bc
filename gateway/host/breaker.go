package host

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	breakerWindow   = 10 * time.Second
	breakerBucket   = time.Second
	breakerOpen     = 5 * time.Second
	breakerMinimum  = 20 // calls in the window, before a share of them says anything
	breakerProbes   = 3  // calls let through half-open, which must all go well to close it
	breakerProbeGap = time.Second
)

// health is what one use says of the upstream's health.
type health error

// A fault counts against the upstream, nil counts for it, and neutral does
// not count.
var (
	fault   health = errors.New("upstream fault")
	neutral health = errors.New("says nothing of the upstream")
)

// breaker holds the upstream's health in one mode. Lookups have a circuit of their
// own that stops none of them: an upstream that can't take calls must still be
// asked about money.
type breaker struct {
	calls     *gobreaker.CircuitBreaker[sdk.Result]
	lookups   *gobreaker.CircuitBreaker[struct{}]
	openUntil atomic.Int64 // Unix nanoseconds, of calls
}

func newBreaker(changed func(circuit, from, to string)) *breaker {
	b := &breaker{}
	b.calls = gobreaker.NewCircuitBreaker[sdk.Result](circuit("calls", func(name string, from, to gobreaker.State) {
		if to == gobreaker.StateOpen {
			b.openUntil.Store(time.Now().Add(breakerOpen).UnixNano())
		}
		changed(name, from.String(), to.String())
	}))
	b.lookups = gobreaker.NewCircuitBreaker[struct{}](circuit("lookups", func(name string, from, to gobreaker.State) {
		changed(name, from.String(), to.String())
	}))
	return b
}

func circuit(name string, changed func(string, gobreaker.State, gobreaker.State)) gobreaker.Settings {
	return gobreaker.Settings{
		Name:         name,
		MaxRequests:  breakerProbes,
		Interval:     breakerWindow,
		BucketPeriod: breakerBucket,
		Timeout:      breakerOpen,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			counted := c.TotalSuccesses + c.TotalFailures
			return counted >= breakerMinimum && 2*c.TotalFailures >= counted
		},
		OnStateChange: changed,
		IsExcluded:    func(err error) bool { return errors.Is(err, neutral) },
	}
}

// run makes one call, unless the circuit is open.
func (b *breaker) run(send func() (sdk.Result, health)) sdk.Result {
	result, err := b.calls.Execute(func() (sdk.Result, error) { return send() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return sdk.DidNotSend(sdk.BlameUpstream, err.Error())
	}
	return result
}

// record counts a lookup. It comes after the fact, so it refuses nothing.
func (b *breaker) record(v health) {
	_, _ = b.lookups.Execute(func() (struct{}, error) { return struct{}{}, v })
}

// retryAfter is how long calls are turned away, zero when they are not.
func (b *breaker) retryAfter() time.Duration {
	switch b.calls.State() {
	case gobreaker.StateOpen:
		return max(time.Until(time.Unix(0, b.openUntil.Load())), time.Millisecond)
	case gobreaker.StateHalfOpen:
		if c := b.calls.Counts(); c.Requests-c.TotalExclusions >= breakerProbes {
			return breakerProbeGap
		}
	case gobreaker.StateClosed:
	}
	return 0
}

// healthOf says what a call proves of the upstream's health. A refusal is a good
// answer. A slow answer is a bad one, because upstreams slow down before they fail.
func healthOf(caller context.Context, r sdk.Result, err error, took, timeout time.Duration) health {
	slow := took > timeout/2
	switch {
	case cutByCaller(caller, slow):
		return neutral
	case err != nil || slow || r.Blame == sdk.BlameUpstream && r.Outcome != sdk.Refused:
		return fault
	case r.Outcome == sdk.NotSent || r.Outcome == sdk.Unknown:
		return neutral // for reasons of our own: a passed send_by, an account's fault
	}
	return nil
}

func healthOfLookup(caller context.Context, f sdk.StatusUpdate, err error, took, timeout time.Duration) health {
	slow := took > timeout/2
	switch {
	case cutByCaller(caller, slow):
		return neutral
	case err != nil || slow || f.Blame == sdk.BlameUpstream:
		return fault
	case f.Status == sdk.StatusUnknown:
		return neutral
	}
	return nil
}

// cutByCaller reports whether the caller ended the use before the upstream had
// its time: by hanging up, or by a deadline much shorter than the operation's.
func cutByCaller(caller context.Context, slow bool) bool {
	return errors.Is(caller.Err(), context.Canceled) || caller.Err() != nil && !slow
}

// Unavailable says that a provider takes no calls now, and when it may again.
type Unavailable struct {
	Provider   string
	Reason     string
	RetryAfter time.Duration // zero when nobody knows
}

// Error is for operators.
func (u *Unavailable) Error() string {
	return fmt.Sprintf("provider %s is unavailable: %s", u.Provider, u.Reason)
}

// breaker returns the breaker of a mode, and makes it at its first use.
func (p *provider) breaker(mode string) *breaker {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.breakers[mode]
	if !ok {
		found = newBreaker(func(circuit, from, to string) {
			p.log.Warn("circuit breaker", "mode", mode, "circuit", circuit, "from", from, "to", to)
		})
		p.breakers[mode] = found
	}
	return found
}
