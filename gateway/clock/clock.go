package clock

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Shared tells the time on a clock that is the same for all replicas: the database's.
type Shared interface {
	Clock(ctx context.Context) (time.Time, error)
}

// Clock compares a replica's clock with the database's, so that a replica whose
// clock is wrong creates nothing and takes nothing for unsent. While nothing can be
// measured, what was measured last stands. It is safe for concurrent use.
type Clock struct {
	shared Shared
	now    func() time.Time
	log    *slog.Logger
	skew   atomic.Pointer[time.Duration] // nil until it was measured
}

// New makes what compares the clock that now reads. Nothing is known before
// the first [Clock.Compare].
func New(shared Shared, now func() time.Time, log *slog.Logger) *Clock {
	return &Clock{shared: shared, now: now, log: log}
}

const (
	// compareEvery is how old a measure gets: for so long a clock that is set wrong is
	// not found out.
	compareEvery = 10 * time.Second
	// longestTrip bounds the error of a measure, which is half its round trip.
	longestTrip = time.Second
	// askWithin bounds a question that the database does not answer.
	askWithin = 5 * time.Second
)

// Run compares the clocks now and then until the context ends. The first time is
// the caller's to do before anything is served.
func (c *Clock) Run(ctx context.Context) error {
	ticker := time.NewTicker(compareEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			c.Compare(ctx)
		}
	}
}

// Compare measures once, and logs when the clock has become wrong or right.
func (c *Clock) Compare(ctx context.Context) {
	skew, err := c.measure(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.log.WarnContext(ctx, "clock: this machine's clock can't be compared with the database's", "error", err)
		}
		return
	}
	was := c.Fault()
	c.skew.Store(&skew)
	switch is := c.Fault(); {
	case is != nil && was == nil:
		c.log.ErrorContext(ctx, "clock: "+is.Error()+"; until it is right this replica is not ready, creates nothing, and takes nothing for unsent", "ahead", skew)
	case is == nil && was != nil:
		c.log.InfoContext(ctx, "clock: this machine's clock agrees with the database's again", "ahead", skew)
	}
}

// measure takes the database's answer for the time in the middle of the question's
// round trip.
func (c *Clock) measure(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	begun := c.now()
	shared, err := c.shared.Clock(ctx)
	if err != nil {
		return 0, err
	}
	trip := c.now().Sub(begun)
	if trip > longestTrip {
		return 0, fmt.Errorf("the answer took %s, which is too long to tell the time by", trip)
	}
	return begun.Add(trip / 2).Sub(shared), nil
}

// Skew is how far this replica's clock was ahead of the database's at the last
// measure, negative when it was behind. It is false while there was none.
func (c *Clock) Skew() (time.Duration, bool) {
	skew := c.skew.Load()
	if skew == nil {
		return 0, false
	}
	return *skew, true
}

// Fault is why this replica's clock can't be relied on and what to do about it,
// nil while it can or nothing is known. It is safe to show to operators.
func (c *Clock) Fault() error {
	skew, known := c.Skew()
	if !known || skew.Abs() <= movement.ClockSkew {
		return nil
	}
	side := "ahead of"
	if skew < 0 {
		side = "behind"
	}
	return fmt.Errorf("this machine's clock is %s %s the database's: set it by NTP", skew.Abs().Round(time.Second), side)
}
