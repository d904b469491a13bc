package limit

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Counts keeps what is used, for all replicas. TakeUsage and GiveUsage count a batch
// once at most, however often it is sent within an hour; a replica's batches have
// rising numbers. After an error nobody knows whether a batch was counted, until
// GiveUsage of the same batch has succeeded.
type Counts interface {
	// TakeUsage takes up to want units, as many as are left below the limit, and
	// tells how many it took and how many are used then.
	TakeUsage(ctx context.Context, owner movement.Owner, name, period, replica string, batch, want, limit int64) (taken, used int64, err error)
	// GiveUsage gives units back, unless the batch has taken some before: then it
	// tells how many.
	GiveUsage(ctx context.Context, owner movement.Owner, name, period, replica string, batch, back int64) (taken int64, err error)
	// UsedOf tells how many units are used.
	UsedOf(ctx context.Context, owner movement.Owner, name, period string) (int64, error)
}

// Usage names what is counted of a key in a period.
type Usage struct {
	Key
	Period string
}

// Counted is the verdict on one reservation.
type Counted struct {
	OK        bool
	Remaining int64 // after it
}

// ErrCounterClosed is what a reservation gets after the counter's end.
var ErrCounterClosed = errors.New("limit: the counter is closed")

// Counter reserves units of quotas that are exact over all replicas. Reservations
// of one usage that arrive together share one change in the database: a batch is
// what arrived during the last one, so nothing ever waits for a timer, and each
// has its own verdict. Nothing is kept between two requests, so an edit of a limit
// holds at once.
//
// A unit that was reserved stays used until it is released; where a process dies in
// between, for ever. Any number of goroutines may use a Counter.
type Counter struct {
	counts  Counts
	log     *slog.Logger
	replica string
	batches atomic.Int64

	mu      sync.Mutex
	desks   map[Usage]*desk // of usages with something to do
	closed  bool
	closing chan struct{}
	working sync.WaitGroup
}

// reservation is one caller's wish for a unit. The counter's lock guards it until
// done is closed.
type reservation struct {
	limit   int64
	state   state
	counted Counted
	err     error
	done    chan struct{} // closed once it is judged
}

// state is how far a reservation is.
type state int

const (
	waiting state = iota
	batched       // its unit is being counted
	left          // batched, but nobody waits for it any more
	judged
)

// NewCounter makes a counter. Each has a name of its own among the replicas.
func NewCounter(counts Counts, log *slog.Logger) *Counter {
	return &Counter{
		counts: counts, log: log, replica: uuid.NewString()[:8],
		desks: map[Usage]*desk{}, closing: make(chan struct{}),
	}
}

// Reserve takes a unit where the limit leaves one. It waits for the commit that
// the unit shares, unless the context ends before: then nothing is used.
func (c *Counter) Reserve(ctx context.Context, u Usage, limit int64) (Counted, error) {
	if err := ctx.Err(); err != nil {
		return Counted{}, err
	}
	r := &reservation{limit: limit, done: make(chan struct{})}
	if !c.add(u, func(d *desk) { d.waiting = append(d.waiting, r) }) {
		return Counted{}, ErrCounterClosed
	}
	select {
	case <-r.done:
		return r.counted, r.err
	case <-ctx.Done():
		return c.leave(ctx, u, r)
	}
}

// leave ends a reservation whose caller waits no longer.
func (c *Counter) leave(ctx context.Context, u Usage, r *reservation) (Counted, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch r.state {
	case judged: // at this very moment
		return r.counted, r.err
	case waiting:
		d := c.desks[u]
		d.waiting = slices.DeleteFunc(d.waiting, func(other *reservation) bool { return other == r })
	case batched, left:
		r.state = left
	}
	return Counted{}, ctx.Err()
}

// Left tells how many units a limit leaves at this moment, and takes none.
func (c *Counter) Left(ctx context.Context, u Usage, limit int64) (int64, error) {
	used, err := c.counts.UsedOf(ctx, movement.Owner{MerchantID: u.Merchant, Mode: u.Mode}, u.Name, u.Period)
	return max(0, limit-used), err
}

// Release gives a unit back. It waits until that was tried or the context ends; the
// unit is given back in either case, and tried again until the database takes it;
// only what was sent without an answer is given up after half an hour.
func (c *Counter) Release(ctx context.Context, u Usage) {
	tried := make(chan struct{})
	if !c.add(u, func(d *desk) { d.owed++; d.releases = append(d.releases, tried) }) {
		c.log.WarnContext(ctx, "a unit of a quota was not given back: the counter is closed", "merchant_id", u.Merchant, "mode", u.Mode, "quota", u.Name)
		return
	}
	select {
	case <-tried:
	case <-ctx.Done():
	}
}

// Close tries once more to give back what is owed, and ends all work.
func (c *Counter) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.closing)
	}
	c.mu.Unlock()
	c.working.Wait()
}

// add puts something on a usage's desk, and sees that somebody works there.
func (c *Counter) add(u Usage, put func(*desk)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	d := c.desks[u]
	if d == nil {
		d = &desk{usage: u, wake: make(chan struct{}, 1)}
		c.desks[u] = d
		c.working.Go(func() { c.work(d) })
	}
	put(d)
	select {
	case d.wake <- struct{}{}:
	default:
	}
	return true
}
