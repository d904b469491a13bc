package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// Due reads movements that are due for a poll, the oldest first.
func (s *Store) Due(ctx context.Context, due movement.DueMovements) ([]movement.Movement, error) {
	since := micro(due.Since) // never nil: the zero time lies before everything
	p := dbsqlc.DueMovementsParams{
		Buckets: narrow(due.Buckets), Since: &since, Now: optional(due.Now), Most: int32(due.Most), //nolint:gosec // a page
		Held: due.Held, UnderWay: make([]uuid.UUID, len(due.UnderWay)),
	}
	if p.Held == nil {
		p.Held = []string{} // NULL would leave out everybody
	}
	for i, id := range due.UnderWay {
		p.UnderWay[i] = uuid.UUID(id)
	}
	rows, err := s.queries.DueMovements(ctx, p)
	return movementsFromRows(rows, err)
}

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

// Poll takes the right to poll a movement, if nobody has polled it since before. A
// poll at a time that no right clock can show yet does not count. Next is when the
// next poll is due, unless the answer says otherwise.
func (s *Store) Poll(ctx context.Context, m movement.Movement, now, before, next time.Time) (bool, error) {
	states := []string{string(m.State)}
	if slices.Contains(notYetKnown, string(m.State)) {
		states = notYetKnown
	}
	_, err := s.queries.PollMovement(ctx, dbsqlc.PollMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), States: states, //nolint:gosec // a small count
		Now: optional(now), Before: optional(before), Ahead: new(tooFar(now)), DueAt: optional(next),
	})
	return recorded("poll", err)
}

// Miss counts a lookup that did not find a movement at the provider, and returns how
// many there were in a row. Zero: the provider's word on it has come meanwhile.
func (s *Store) Miss(ctx context.Context, m movement.Movement, next time.Time) (int, error) {
	misses, err := s.queries.MissMovement(ctx, dbsqlc.MissMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), DueAt: optional(next), //nolint:gosec // a small count
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("store: miss: %w", err)
	}
	return int(misses), nil
}

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
