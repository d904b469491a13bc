package sandbox

import (
	"sync"
	"time"
)

// Clock is where simulators take the time from.
type Clock interface {
	// Now is the present.
	Now() time.Time
	// Reach returns a channel that can be received from once the clock has
	// reached t, at once when it already has; its value means nothing. It takes a point in time and not a duration, so
	// that nothing is missed between a look at Now and the wait.
	Reach(t time.Time) <-chan time.Time
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now is time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// Reach is time.After until t.
func (SystemClock) Reach(t time.Time) <-chan time.Time { return time.After(time.Until(t)) }

// ManualClock stands still until a test advances it.
type ManualClock struct {
	mu      sync.Mutex
	now     time.Time
	waiters []waiter
}

type waiter struct {
	at time.Time
	ch chan time.Time
}

// NewManualClock returns a clock that shows start.
func NewManualClock(start time.Time) *ManualClock { return &ManualClock{now: start} }

// Now is what the clock was last set to.
func (c *ManualClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Reach implements Clock.
func (c *ManualClock) Reach(t time.Time) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiters = append(c.waiters, waiter{t, make(chan time.Time, 1)})
	ch := c.waiters[len(c.waiters)-1].ch
	c.fire()
	return ch
}

// Advance moves the clock and wakes everybody whose time has come.
func (c *ManualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	c.fire()
}

func (c *ManualClock) fire() {
	kept := c.waiters[:0]
	for _, w := range c.waiters {
		if w.at.After(c.now) {
			kept = append(kept, w)
			continue
		}
		w.ch <- c.now
	}
	c.waiters = kept
}
