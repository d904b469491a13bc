package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// Due reads polls that are due, the oldest first. What a gateway of before has made
// due is carried over first. An error with polls is about what could not be.
func (s *Store) Due(ctx context.Context, scan movement.DueScan) ([]movement.DuePoll, error) {
	p := dbsqlc.DuePollsParams{Now: optional(scan.Now), Most: int32(scan.Most)} //nolint:gosec // a page
	for _, from := range scan.From {
		p.Buckets = append(p.Buckets, int32(from.Bucket)) //nolint:gosec // below movement.Buckets
		p.Dues, p.Ids = append(p.Dues, micro(from.DueAt)), append(p.Ids, uuid.UUID(from.ID))
	}
	var left error
	if !scan.Behind { // which is in the same few seconds
		left = s.carryDue(ctx, p.Buckets, scan.Now)
	}
	rows, err := s.queries.DuePolls(ctx, p)
	due := make([]movement.DuePoll, len(rows))
	for i, row := range rows {
		due[i] = movement.DuePoll{ID: movement.ID(row.MovementID), Account: row.Account, DueAt: row.Due.UTC()}
	}
	return due, errors.Join(left, wrap("due polls", err))
}

// MovementsByID reads some movements, those that there are, in any order. An error with
// movements is about the others.
func (s *Store) MovementsByID(ctx context.Context, ids []movement.ID) ([]movement.Movement, error) {
	wanted := make([]uuid.UUID, len(ids))
	for i, id := range ids {
		wanted[i] = uuid.UUID(id)
	}
	rows, err := s.queries.MovementsByID(ctx, wanted)
	faults := []error{wrap("movements", err)}
	all := make([]movement.Movement, 0, len(rows))
	for _, row := range rows {
		m, err := s.carried(ctx, polledMovement(row), nil)
		if err == nil {
			all = append(all, m)
		}
		faults = append(faults, err)
	}
	return all, errors.Join(faults...)
}

const (
	// carryMost is how many movements of a bucket are carried over in a scan, and
	// carryAtOnce how many of all buckets together: they share commits.
	carryMost   = 50
	carryAtOnce = 8
	// carryWithin bounds that: a row that somebody keeps locked must not stop all polls,
	// which are to be read in 5 s.
	carryWithin = 3 * time.Second
	// carryAfter is how long a gateway of before, which may still run, is left to poll
	// what is due there.
	carryAfter = 30 * time.Second
)

// carryDue carries over what gateways of before have made due, and have not polled.
func (s *Store) carryDue(ctx context.Context, buckets []int32, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, carryWithin)
	defer cancel()
	ids, err := s.queries.UncarriedMovements(ctx, dbsqlc.UncarriedMovementsParams{Buckets: buckets, Now: optional(now.Add(-carryAfter)), Most: carryMost})
	if err != nil {
		return wrap("carry over", err)
	}
	var group errgroup.Group
	group.SetLimit(carryAtOnce)
	faults := make([]error, len(ids))
	for i, id := range ids {
		group.Go(func() error {
			faults[i] = s.carry(ctx, movement.ID(id), now)
			return faults[i]
		})
	}
	if group.Wait() == nil {
		return nil
	}
	faults = slices.DeleteFunc(faults, func(err error) bool { return err == nil })
	return fmt.Errorf("%d of %d movements of a gateway of before: %w", len(faults), len(ids), faults[0])
}

// carry gives a movement its row of polls that a gateway of before has made. It is due
// when that gateway says, or else at a moment of the shared clock.
func (s *Store) carry(ctx context.Context, id movement.ID, due time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, carryWithin)
	defer cancel()
	var carried [16]byte
	err := s.writer.run(ctx, carryMovement|openPoll, &write{id: uuid.UUID(id), now: micro(due)}, &carried)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil // it has ended
	}
	return wrap("carry over", err)
}

// carried is a movement that was read. One that is open has its row of polls from then
// on, or nothing could change it.
func (s *Store) carried(ctx context.Context, row polledMovement, err error) (movement.Movement, error) {
	m, err := one(row, err)
	if err != nil || m.Version != 0 || !m.State.Open() {
		return m, err
	}
	if err := s.carry(ctx, m.ID, m.CreatedAt); err != nil {
		return movement.Movement{}, err
	}
	again, err := s.queries.MovementByID(ctx, uuid.UUID(m.ID))
	return one(polledMovement(again), err)
}

// Poll takes the right to poll a movement as the caller saw it, if nobody has polled it
// since before. A poll at a time that no right clock can show yet does not count. Next
// is when the next poll is due, unless the answer says otherwise. A row of an attempt
// that a gateway of before has taken up anew, and ended, is dropped.
func (s *Store) Poll(ctx context.Context, m movement.Movement, now, before, next time.Time) (bool, error) {
	if polled := micro(m.PolledAt); !m.PolledAt.IsZero() && polled.After(micro(before)) && !polled.After(tooFar(now)) {
		return false, nil
	}
	var err error
	if id, attempt := uuid.UUID(m.ID), int32(m.Attempt); !m.State.Open() && (next.IsZero() || m.Version == 0) { //nolint:gosec // a small count
		_, err = s.writing(id).LastPoll(ctx, dbsqlc.LastPollParams{ID: id, Attempt: attempt, Version: m.Version})
	} else {
		_, err = s.writing(id).PollMovement(ctx, dbsqlc.PollMovementParams{
			ID: id, Attempt: attempt, Version: m.Version, Now: optional(now), Due: optional(next),
		})
	}
	return recorded("poll", err)
}

// Miss counts a lookup that did not find a movement at the provider, and returns how
// many there were in a row. Zero: it was polled or changed since.
func (s *Store) Miss(ctx context.Context, m movement.Movement, next time.Time) (int, error) {
	if !m.State.Unknown() {
		return 0, nil
	}
	id := uuid.UUID(m.ID)
	misses, err := s.writing(id).MissMovement(ctx, dbsqlc.MissMovementParams{
		ID: id, Attempt: int32(m.Attempt), Version: m.Version, Due: optional(next), //nolint:gosec // a small count
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("store: miss: %w", err)
	}
	return int(misses), nil
}
