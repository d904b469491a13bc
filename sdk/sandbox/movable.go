package sandbox

import (
	"net/http"
	"sync"
	"time"
)

// MovableClock is the machine's clock, set forward as it was ordered. The zero
// value shows the machine's time.
type MovableClock struct {
	mu    sync.Mutex
	ahead time.Duration
	// waiting has one channel for each point in time that somebody waits for,
	// closed when it is reached; who asks again shares it.
	waiting map[time.Time]chan time.Time
}

// Now is the machine's time and what the clock was advanced by.
func (c *MovableClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// Ahead is what the clock was advanced by: callers of the upstream, whose own
// clocks nobody has moved, are that far behind.
func (c *MovableClock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}

// Reach implements Clock.
func (c *MovableClock) Reach(t time.Time) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[time.Time]chan time.Time{}
	}
	// Without its monotonic reading and zone, equal times are equal keys.
	at := t.Round(0).UTC()
	ch, ok := c.waiting[at]
	if !ok {
		ch = make(chan time.Time)
		c.waiting[at] = ch
		c.settle(at)
	}
	return ch
}

// settle wakes who waits for a point in time that is reached, and looks again
// later at one that is not: the machine's clock may have been set back.
func (c *MovableClock) settle(at time.Time) {
	ch, ok := c.waiting[at]
	if !ok {
		return
	}
	left := at.Sub(time.Now().Round(0).Add(c.ahead))
	if left > 0 {
		time.AfterFunc(left, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.settle(at)
		})
		return
	}
	close(ch)
	delete(c.waiting, at)
}

// Advance sets the clock forward and wakes everybody whose time has come.
func (c *MovableClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	for at := range c.waiting {
		c.settle(at)
	}
}

// clockMove is one order to advance, as the journal keeps it: what happened
// after it stays in the past after a restart.
type clockMove struct {
	By time.Duration `json:"by"`
}

// applyClock moves the clock. Only one of the Env's own making is moved: it is
// as new as the process, so that a replay arrives where it was.
func (e *Env) applyClock(m clockMove) {
	if clock, ok := e.Clock.(*MovableClock); ok {
		clock.Advance(m.By)
	}
}

// moveClock is the order to advance the clock.
func (e *Env) moveClock(w http.ResponseWriter, r *http.Request) {
	var wanted struct {
		Advance string `json:"advance"`
	}
	if !readOrder(w, r, &wanted) {
		return
	}
	by, err := time.ParseDuration(wanted.Advance)
	if err != nil || by <= 0 {
		writeError(w, http.StatusBadRequest, "advance must be a positive duration like 2160h or 30m")
		return
	}
	if _, ok := e.Clock.(*MovableClock); !ok {
		writeError(w, http.StatusConflict, "this clock is not moved by order")
		return
	}
	if err := e.Journal.Append(e.clockTopic.Entry(clockMove{by})).Wait(); err != nil {
		writeError(w, http.StatusInternalServerError, err.Error())
		return
	}
	writeJSON(w, http.StatusOK, map[string]time.Time{"now": e.Clock.Now().UTC()})
}
