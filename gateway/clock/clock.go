package clock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/trouble"
)

// Shared tells the time on a clock that is the same for all replicas: the database's.
type Shared interface {
	Clock(ctx context.Context) (time.Time, error)
}

// Clock tells the shared time. It is safe for concurrent use.
type Clock struct {
	shared Shared
	uptime func() time.Duration
	log    *slog.Logger
	last   atomic.Pointer[measure] // nil until it was measured
	faulty bool                    // as the log says

	measuring trouble.Spell
}

// measure is what the measures have come to so far. Moments are of the uptime.
type measure struct {
	at     time.Duration // when the shared clock
	told   time.Time     // told this
	latest time.Duration // when it was measured last
	step   time.Duration // how far it has gone at once, negative for back; 0 for never
	held   time.Duration // until when nobody relies on it for that
}

// tells is what the shared clock should tell at a moment.
func (m *measure) tells(at time.Duration) time.Time { return m.told.Add(at - m.at) }

// New makes a clock that is advanced by an uptime, as package uptime tells it. Before
// the first [Clock.Measure] it tells this machine's time, and its [Clock.Fault] says so.
func New(shared Shared, uptime func() time.Duration, log *slog.Logger) *Clock {
	return &Clock{shared: shared, uptime: uptime, log: log}
}

const (
	// measureEvery is how long the uptime alone is trusted, and so for how long a step of
	// the shared clock is not found out; againAfter is the same after a failed measure.
	measureEvery = 10 * time.Second
	againAfter   = time.Second
	// unmeasured is how long it may take until a measure succeeds.
	unmeasured = 30 * time.Second
	// longestTrip bounds the error of a measure, which is half its round trip.
	longestTrip = time.Second
	// askWithin bounds a question that the database does not answer.
	askWithin = 5 * time.Second
	// stepFrom is what can't be drift or error any more: somebody has set the clock.
	stepFrom = time.Second
	// A step is waited for until all replicas have measured it (leastHeld), and one
	// forward for as long as it was, because less real time has passed than times of
	// before say (mostHeld at most: nothing is under way for longer, as a manifest's
	// settles_within is ten minutes at most, and counts from seconds after a reservation).
	leastHeld = unmeasured
	mostHeld  = 11 * time.Minute
)

// Now is the shared time.
func (c *Clock) Now() time.Time {
	m := c.last.Load()
	if m == nil {
		return time.Now().UTC().Round(0)
	}
	return m.tells(c.uptime())
}

// Run measures again and again until the context ends. The first time is the caller's to
// do before anything is served.
func (c *Clock) Run(ctx context.Context) error {
	for wait := measureEvery; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		if wait = measureEvery; c.Measure(ctx) != nil {
			wait = againAfter
		}
	}
}

// Measure measures once, and logs when the time has become unreliable or reliable. It is
// called by one goroutine at a time.
func (c *Clock) Measure(ctx context.Context) error {
	at, told, margin, err := c.ask(ctx)
	c.measuring.Note(ctx, c.log, "clock: the database's clock can't be measured", err)
	if err != nil {
		if ctx.Err() == nil {
			c.tell(ctx, false)
		}
		return err
	}
	m, stepped := &measure{at: at, told: told, latest: at}, false
	if before := c.last.Load(); before != nil {
		m = before.next(m, margin)
		stepped = m.held > before.held
	}
	c.last.Store(m)
	c.tell(ctx, stepped)
	return nil
}

// tell logs what the log does not say yet.
func (c *Clock) tell(ctx context.Context, stepped bool) {
	fault := c.Fault()
	switch {
	case fault != nil && (stepped || !c.faulty):
		c.log.ErrorContext(ctx, "clock: "+fault.Error()+"; meanwhile this replica is not ready, creates nothing, and takes nothing for unsent")
	case fault == nil && c.faulty:
		c.log.InfoContext(ctx, "clock: the time can be relied on again")
	}
	c.faulty = fault != nil
}

// next is what a new measure makes of those before. What it can't tell from their own
// error changes nothing.
func (m *measure) next(fresh *measure, margin time.Duration) *measure {
	fresh.step, fresh.held = m.step, m.held
	off := fresh.told.Sub(m.tells(fresh.at))
	switch {
	case off.Abs() <= margin:
		fresh.at, fresh.told = m.at, m.told
	case off.Abs() > stepFrom:
		fresh.step, fresh.held = off, max(m.held, fresh.at+held(off))
	}
	return fresh
}

// held is how long a step is waited for.
func held(step time.Duration) time.Duration { return max(leastHeld, min(step, mostHeld)) }

// ask takes the database's answer for the time in the middle of the question's round
// trip, give or take the margin.
func (c *Clock) ask(ctx context.Context) (at time.Duration, told time.Time, margin time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	begun := c.uptime()
	if told, err = c.shared.Clock(ctx); err != nil {
		return 0, told, 0, err
	}
	trip := c.uptime() - begun
	if trip > longestTrip {
		return 0, told, 0, fmt.Errorf("the answer took %s, which is too long to tell the time by", trip)
	}
	return begun + trip/2, told, trip / 2, nil
}

// Skew is how far this machine's own clock is ahead of the shared one, negative when it
// is behind. It is false while that was never measured.
func (c *Clock) Skew() (time.Duration, bool) {
	if c.last.Load() == nil {
		return 0, false
	}
	return time.Now().Round(0).Sub(c.Now()), true
}

var errUnmeasured = errors.New("the database's clock was not measured yet")

// Fault is why the time can't be relied on and until when, nil while it can. It is safe
// to show to operators.
func (c *Clock) Fault() error {
	m := c.last.Load()
	if m == nil {
		return errUnmeasured
	}
	now := c.uptime()
	if silent := now - m.latest; silent > unmeasured {
		return fmt.Errorf("the database's clock was not measured for %s", silent.Round(time.Second))
	}
	if left := m.held - now; left > 0 {
		side := "ahead"
		if m.step < 0 {
			side = "back"
		}
		return fmt.Errorf("the database's clock was set %s by %s: its times hold again in %s", side, m.step.Abs().Round(time.Second), left.Round(time.Second))
	}
	return nil
}
