package store

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

func narrow(buckets []int) []int32 {
	in := make([]int32, len(buckets))
	for i, b := range buckets {
		in[i] = int32(b) //nolint:gosec // below movement.Buckets
	}
	return in
}

// tooFar is from where on a time can't have been written by a right clock, at a
// moment that is now by another right one.
func tooFar(now time.Time) time.Time { return micro(now.Add(2 * movement.ClockSkew)) }

// TakeLeases takes or renews leases until a time, in one statement, and tells
// which of the buckets are ours.
func (s *Store) TakeLeases(ctx context.Context, lease queue.Lease, now, until time.Time) ([]int, error) {
	rows, err := s.queries.TakeLeases(ctx, dbsqlc.TakeLeasesParams{
		Queue: lease.Queue, Buckets: narrow(lease.Buckets), Holder: lease.Holder, Now: micro(now), ExpiresAt: micro(until), Ahead: tooFar(until),
	})
	if err != nil {
		return nil, fmt.Errorf("store: take leases: %w", err)
	}
	ours := make([]int, len(rows))
	for i, bucket := range rows {
		ours[i] = int(bucket)
	}
	return ours, nil
}

// DropLeases gives leases back, where they are ours.
func (s *Store) DropLeases(ctx context.Context, lease queue.Lease) error {
	err := s.queries.DropLeases(ctx, dbsqlc.DropLeasesParams{Queue: lease.Queue, Buckets: narrow(lease.Buckets), Holder: lease.Holder})
	if err != nil {
		return fmt.Errorf("store: drop leases: %w", err)
	}
	return nil
}

// LiveLeases counts the leases of a queue that have not run out. Until is when one
// that is taken now would.
func (s *Store) LiveLeases(ctx context.Context, queue string, now, until time.Time) (int, error) {
	n, err := s.queries.LiveLeases(ctx, dbsqlc.LiveLeasesParams{Queue: queue, Now: micro(now), Ahead: tooFar(until)})
	if err != nil {
		return 0, fmt.Errorf("store: live leases: %w", err)
	}
	return int(n), nil
}
