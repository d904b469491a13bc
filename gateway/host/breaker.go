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
	breakerBuckets    = 10 // of a window
	breakerMinimum    = 20 // calls in the window, before a share of them says anything
	breakerMinimumOwn = 10 // the same, of a merchant's own account
	breakerProbes     = 3  // calls let through half-open, which must all go well to close it
	breakerProbeGap   = time.Second

	breakerAccounts = 5                // that fail in the window, before they say anything of their provider
	breakerIdle     = 10 * time.Minute // after which an account's breaker is dropped
	breakersMost    = 4096             // accounts of a provider in a mode
)

// health is what one use says of the upstream's health.
type health error

// A fault counts against the upstream, nil counts for it, and neutral does not
// count. An account's fault counts against that account alone.
var (
	fault        health = errors.New("upstream fault")
	accountFault health = errors.New("account fault")
	neutral      health = errors.New("says nothing of the upstream")
)

// breaker holds the health of an upstream, or of one account there. Lookups have a
// circuit of their own that stops none of them: an upstream that can't take calls
// must still be asked about money.
type breaker struct {
	calls     *gobreaker.TwoStepCircuitBreaker[struct{}]
	lookups   *gobreaker.TwoStepCircuitBreaker[struct{}]
	open      time.Duration
	openUntil atomic.Int64 // Unix nanoseconds, of calls
	since     atomic.Int64 // when calls failed enough to open it, 0 while it is closed
	called    atomic.Int64 // when the last call went by it, or was turned away
	why       atomic.Pointer[string]
}

// newBreaker makes a breaker that opens where half of at least so many uses fail, and
// more is wrong by a rule of its own (nil for none).
func newBreaker(tune tuning, minimum uint32, more func() bool, changed func(circuit string, from, to gobreaker.State)) *breaker {
	b := &breaker{open: tune.open}
	circuit := func(name string, note func(to gobreaker.State)) *gobreaker.TwoStepCircuitBreaker[struct{}] {
		return gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
			Name:         name,
			MaxRequests:  breakerProbes,
			Interval:     tune.window,
			BucketPeriod: tune.window / breakerBuckets,
			Timeout:      tune.open,
			ReadyToTrip: func(c gobreaker.Counts) bool {
				counted := c.TotalSuccesses + c.TotalFailures
				return counted >= minimum && 2*c.TotalFailures >= counted && (more == nil || more())
			},
			OnStateChange: func(_ string, from, to gobreaker.State) {
				note(to)
				changed(name, from, to)
			},
			IsExcluded: func(err error) bool { return errors.Is(err, neutral) },
		})
	}
	b.calls = circuit("calls", b.note)
	b.lookups = circuit("lookups", func(gobreaker.State) {})
	return b
}

// note keeps since when calls are turned away, and for how long.
func (b *breaker) note(to gobreaker.State) {
	now := time.Now()
	switch to {
	case gobreaker.StateOpen:
		b.openUntil.Store(now.Add(b.open).UnixNano())
		b.since.CompareAndSwap(0, now.UnixNano())
	case gobreaker.StateClosed:
		b.since.Store(0)
	case gobreaker.StateHalfOpen:
	}
}

// idle reports that nobody has called for long: whether it would let calls through is
// nobody's concern.
func (b *breaker) idle() bool { return time.Since(time.Unix(0, b.called.Load())) > breakerIdle }

// record counts a use that nothing could have stopped, after the fact.
func record(circuit *gobreaker.TwoStepCircuitBreaker[struct{}], v health) {
	if done, err := circuit.Allow(); err == nil {
		done(v)
	}
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
	case cutByCaller(caller, slow), pluginEnded(err):
		return neutral
	case err != nil || slow || r.Blame == sdk.BlameUpstream && r.Outcome != sdk.Refused:
		return fault
	case againstOwn(r.Blame) && r.Outcome != sdk.Refused:
		return accountFault
	case r.Outcome == sdk.NotSent || r.Outcome == sdk.Unknown:
		return neutral // for reasons of our own, such as a passed send_by
	}
	return nil
}

func healthOfLookup(caller context.Context, f sdk.StatusUpdate, err error, took, timeout time.Duration) health {
	slow := took > timeout/2
	switch {
	case cutByCaller(caller, slow), pluginEnded(err):
		return neutral
	case err != nil || slow || f.Blame == sdk.BlameUpstream:
		return fault
	case againstOwn(f.Blame):
		return accountFault
	case f.Status == sdk.StatusUnknown:
		return neutral
	}
	return nil
}

// againstOwn tells of a blame that it is the account's alone: a key that is not taken, a
// limit that it has reached.
func againstOwn(b sdk.Blame) bool { return b == sdk.BlameAccount || b == sdk.BlameLimit }

// pluginEnded reports that the plugin's process has, or the stream of its calls, which is
// no fault of the account that was asked, nor of the upstream. Whoever keeps plugins
// running turns calls away.
func pluginEnded(err error) bool {
	return errors.Is(err, errEnded) || errors.Is(err, sdk.ErrStreamEnded)
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
