// Package closing owns when the days of the ledger are closed. It has the store take
// the snapshots of all days that can be closed, account by account. It must not know
// what a snapshot is made of.
package closing

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
)

// Store is where the snapshots are.
type Store interface {
	// CloseDays takes the snapshot of one more closed day of each account on a page
	// that has one, and returns the last account of the page, nobody behind the end,
	// and how many snapshots there are more. It bounds the time of each account. An
	// error with an account is about those whose day can't be closed.
	CloseDays(ctx context.Context, follows movement.Owner, now time.Time, most int) (last movement.Owner, closed int, err error)
	// TakeLeases takes or renews leases, and returns the buckets that are the holder's.
	TakeLeases(ctx context.Context, lease queue.Lease, now, until time.Time) ([]int, error)
}

// Closer closes the days of all accounts. Each replica has one, and one of them works:
// two would do no harm, but the same.
type Closer struct {
	store   Store
	replica string
	now     func() time.Time // that all replicas share
	log     *slog.Logger
	done    time.Time // the end of the last day that all accounts have closed
}

// New makes a closer. The replica's name must be unique.
func New(store Store, replica string, now func() time.Time, log *slog.Logger) *Closer {
	return &Closer{store: store, replica: replica, now: now, log: log}
}

const (
	every = 10 * time.Minute
	page  = 100 // accounts
	// within bounds the taking of the lease, and leaseFor is longer: a replica that dies
	// is followed at another's next turn. A page that takes longer may have company.
	within   = time.Minute
	leaseFor = 2 * time.Minute
)

// Run closes days until the context ends.
func (c *Closer) Run(ctx context.Context) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := c.close(ctx); err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "closing: days of the ledger stay open; balances of the past are right, and slower to read", "error", err)
		}
	}
}

// close closes what can be, unless that is done or another replica is at it. A day that
// can't be closed keeps no other account's open.
func (c *Closer) close(ctx context.Context) (failed error) {
	until := ledger.Closed(c.now())
	var follows movement.Owner
	for c.done.Before(until) {
		if ours, err := c.take(ctx); err != nil || !ours {
			return errors.Join(failed, err)
		}
		last, closed, err := c.store.CloseDays(ctx, follows, c.now(), page)
		switch {
		case closed > 0: // the same accounts may have more days
		case last != movement.Owner{}:
			follows, failed = last, errors.Join(failed, err)
		case failed != nil || err != nil:
			return errors.Join(failed, err)
		default:
			c.done = until
		}
	}
	return nil
}

func (c *Closer) take(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	now := c.now()
	ours, err := c.store.TakeLeases(ctx, queue.Lease{Queue: "closing", Buckets: []int{0}, Holder: c.replica}, now, now.Add(leaseFor))
	return len(ours) > 0, err
}
