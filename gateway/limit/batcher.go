package limit

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Store keeps the used units of all replicas. TakeUsage and GiveUsage count a batch
// at most once, however often it is sent within an hour. The numbers of a replica's
// batches rise. After an error nobody knows whether a batch was counted, until
// GiveUsage of the same batch has succeeded.
type Store interface {
	// TakeUsage takes up to want units, as many as are left below the limit. It
	// returns how many it took and how many are used then.
	TakeUsage(ctx context.Context, owner movement.Owner, name, period, replica string, batch, want, limit int64) (taken, used int64, err error)
	// GiveUsage gives units back. Where the same batch has taken units before, it
	// gives nothing back and returns how many the batch took.
	GiveUsage(ctx context.Context, owner movement.Owner, name, period, replica string, batch, back int64) (taken int64, err error)
	// UsedOf returns how many units are used.
	UsedOf(ctx context.Context, owner movement.Owner, name, period string) (int64, error)
}

// Usage names what is counted: a quota of a merchant and mode in a period.
type Usage struct {
	Key
	Period string
}

// Reservation is the answer to one request for a unit.
type Reservation struct {
	OK        bool
	Remaining int64 // after this one
}

// errClosed is the error of a reservation after Close.
var errClosed = errors.New("limit: the batcher is closed")

// Batcher reserves units of quotas that are exact over all replicas. Requests for one
// usage share a change in the database: a batch is what arrived during the last
// change, so nothing waits for a timer. Each request has its own answer. Nothing is
// kept between two requests, so an edit of a limit holds at once.
//
// A reserved unit stays used until it is released. Where the process dies before
// that, it stays used. Any number of goroutines may use a Batcher.
type Batcher struct {
	store   Store
	log     *slog.Logger
	replica string
	batches atomic.Int64

	mu      sync.Mutex
	queues  map[Usage]*queue // of usages with work
	near    map[Usage]int    // the percentage that is used of those near their limit, when they were counted last
	closed  bool
	closing chan struct{}
	working sync.WaitGroup
}

// request is one caller's request for a unit. The batcher's lock guards it until
// done is closed.
type request struct {
	limit    int64
	state    state
	reserved Reservation
	err      error
	done     chan struct{} // closed once it is answered
}

// state is how far a request is.
type state int

const (
	waiting state = iota
	batched       // its unit is being counted
	left          // batched, but its caller has gone
	answered
)

// NewBatcher makes a batcher, with a name of its own among the replicas.
func NewBatcher(store Store, log *slog.Logger) *Batcher {
	return &Batcher{
		store: store, log: log, replica: uuid.NewString()[:8],
		queues: map[Usage]*queue{}, near: map[Usage]int{}, closing: make(chan struct{}),
	}
}

// Reserve takes a unit where the limit leaves one. It waits for the commit that the
// unit shares. Where the context ends before, nothing is used.
func (b *Batcher) Reserve(ctx context.Context, u Usage, limit int64) (Reservation, error) {
	if err := ctx.Err(); err != nil {
		return Reservation{}, err
	}
	r := &request{limit: limit, done: make(chan struct{})}
	if !b.add(u, func(q *queue) { q.waiting = append(q.waiting, r) }) {
		return Reservation{}, errClosed
	}
	select {
	case <-r.done:
		return r.reserved, r.err
	case <-ctx.Done():
		return b.leave(ctx, u, r)
	}
}

// leave ends a request whose caller has gone.
func (b *Batcher) leave(ctx context.Context, u Usage, r *request) (Reservation, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch r.state {
	case answered: // at this very moment
		return r.reserved, r.err
	case waiting:
		q := b.queues[u]
		q.waiting = slices.DeleteFunc(q.waiting, func(other *request) bool { return other == r })
	case batched, left:
		r.state = left
	}
	return Reservation{}, ctx.Err()
}

// Left returns how many units a limit leaves at this moment, and takes none.
func (b *Batcher) Left(ctx context.Context, u Usage, limit int64) (int64, error) {
	used, err := b.store.UsedOf(ctx, movement.Owner{MerchantID: u.Merchant, Mode: u.Mode}, u.Name, u.Period)
	return max(0, limit-used), err
}

// nearFrom is the percentage of a quota from which on it is kept that somebody is near it.
const nearFrom = 80

// note keeps how much of a quota is used. The caller holds the lock.
func (b *Batcher) note(u Usage, used, limit int64) {
	if limit < 1 || float64(used) < nearFrom*float64(limit)/100 {
		delete(b.near, u)
		return
	}
	b.near[u] = int(100 * float64(used) / float64(limit))
}

// Near counts the accounts of which some quota of the present period is used up to a
// percentage, of at least 80, as far as this batcher has counted it.
func (b *Batcher) Near(now time.Time, percent int) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	over := Month(now.AddDate(0, 0, -1)).Name // in no zone is a month before it still going on
	accounts := map[movement.Owner]bool{}
	for u, used := range b.near {
		switch {
		case u.Period < over:
			delete(b.near, u)
		case used >= percent:
			accounts[movement.Owner{MerchantID: u.Merchant, Mode: u.Mode}] = true
		}
	}
	return len(accounts)
}

// Release gives a unit back. It waits until that was tried or the context ends. The
// unit is given back in either case: the batcher retries until the database accepts
// it. Only a batch that was sent and not answered is given up, after half an hour.
func (b *Batcher) Release(ctx context.Context, u Usage) {
	tried := make(chan struct{})
	if !b.add(u, func(q *queue) { q.owed++; q.releases = append(q.releases, tried) }) {
		b.log.WarnContext(ctx, "quota: a unit was not given back, the batcher is closed", "merchant_id", u.Merchant, "mode", u.Mode, "quota", u.Name)
		return
	}
	select {
	case <-tried:
	case <-ctx.Done():
	}
}

// Close tries once more to give back what is owed, and ends all work.
func (b *Batcher) Close() {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.closing)
	}
	b.mu.Unlock()
	b.working.Wait()
}

// add puts work into a usage's queue, and starts a worker where there is none.
func (b *Batcher) add(u Usage, put func(*queue)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	q := b.queues[u]
	if q == nil {
		q = &queue{usage: u, wake: make(chan struct{}, 1)}
		b.queues[u] = q
		b.working.Go(func() { b.work(q) })
	}
	put(q)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}
