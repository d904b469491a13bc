package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// Override writes an operator's word on a movement, with its audit entry, and returns
// the override that then stands. The first operator proposes. Another one with the
// same outcome confirms. The proposer may propose another outcome. An operator alone
// decides at once, which adds the review to the exceptions, unless that would be more than
// an operator may claim alone: then it is proposed. An override that is made
// stays, but for a resubmission that is over, and its movement is polled soon: who applies
// it may die before. It is ErrOverridden where another outcome stands, which is returned
// too. The same again changes nothing.
func (s *Store) Override(ctx context.Context, m movement.Movement, d movement.Override, review movement.Exception) (movement.Override, error) {
	if err := d.Check(); err != nil {
		return movement.Override{}, fmt.Errorf("store: override: %w", err)
	}
	d.MovementID, d.Attempt, d.At = m.ID, m.Attempt, micro(d.At)
	var stands movement.Override
	err := s.within(ctx, serializable, func(tx pgx.Tx) error {
		d := d // of each try
		before, err := overrideOf(ctx, dbsqlc.New(tx), m.ID, m.Attempt)
		none := errors.Is(err, ErrNotFound)
		if err != nil && !none {
			return err
		}
		if d.Alone && (none || d.Replaces(before)) {
			if d.Alone, err = claimAlone(ctx, tx, d.Claim(m)); err != nil {
				return err
			}
		}
		switch {
		case none, d.Replaces(before):
			stands = d
			stands.Supersedes, stands.AloneUpTo = time.Time{}, 0
			return s.putOverride(ctx, tx, m, d, review)
		case before.Outcome != d.Outcome:
			stands = before
			return movement.ErrOverridden
		case before.Made() || before.Operator == d.Operator:
			stands = before
			return nil
		}
		stands = before
		stands.ConfirmedBy, stands.ConfirmedReason, stands.ConfirmedAt = d.Operator, d.Reason, d.At
		return s.confirmOverride(ctx, tx, m, stands)
	})
	if err != nil && !errors.Is(err, movement.ErrOverridden) {
		return movement.Override{}, fmt.Errorf("store: override: %w", err)
	}
	return stands, err
}

func (s *Store) putOverride(ctx context.Context, tx pgx.Tx, m movement.Movement, d movement.Override, review movement.Exception) error {
	rows, err := dbsqlc.New(tx).PutOverride(ctx, dbsqlc.PutOverrideParams{
		MovementID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), //nolint:gosec // a small count
		Operator: d.Operator, Outcome: string(d.Outcome), Reason: d.Reason, At: d.At, Alone: d.Alone,
	})
	if err := found(rows, err); err != nil {
		return err
	}
	if !d.Alone {
		return s.auditOverride(ctx, tx, m, d.Operator, "movement.propose", d.Outcome, d.Reason, d.At)
	}
	if err := pollDecided(ctx, tx, d); err != nil {
		return err
	}
	if _, err := except(ctx, tx, oneException, review); err != nil {
		return err
	}
	return s.auditOverride(ctx, tx, m, d.Operator, "movement.decide_alone", d.Outcome, d.Reason, d.At)
}

func (s *Store) confirmOverride(ctx context.Context, tx pgx.Tx, m movement.Movement, d movement.Override) error {
	rows, err := dbsqlc.New(tx).ConfirmOverride(ctx, dbsqlc.ConfirmOverrideParams{
		MovementID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), Outcome: string(d.Outcome), //nolint:gosec // a small count
		Operator: d.ConfirmedBy, Reason: d.ConfirmedReason, At: d.ConfirmedAt,
	})
	if err := found(rows, err); err != nil {
		return err
	}
	if err := pollDecided(ctx, tx, d); err != nil {
		return err
	}
	return s.auditOverride(ctx, tx, m, d.ConfirmedBy, "movement.confirm", d.Outcome, d.ConfirmedReason, d.ConfirmedAt)
}

func pollDecided(ctx context.Context, tx pgx.Tx, d movement.Override) error {
	return dbsqlc.New(tx).PollDecided(ctx, dbsqlc.PollDecidedParams{
		MovementID: uuid.UUID(d.MovementID), Attempt: int32(d.Attempt), Due: micro(d.AppliedBy()), //nolint:gosec // a small count
	})
}

func (s *Store) auditOverride(ctx context.Context, tx pgx.Tx, m movement.Movement, operator, action string, o movement.OverrideOutcome, reason string, at time.Time) error {
	return audited(ctx, tx, s.auditing(ctx, Audit{
		Operator: operator, Action: action, At: at,
		Detail: fmt.Sprintf("%s %s, attempt %d, mode %s, is %s: %s", m.Kind, m.ID, m.Attempt, m.Owner.Mode, o, reason),
	}, m.Owner))
}

// OverrideOf reads the override of an attempt of a movement, or ErrNotFound.
func (s *Store) OverrideOf(ctx context.Context, id movement.ID, attempt int) (movement.Override, error) {
	return overrideOf(ctx, s.queries, id, attempt)
}

func overrideOf(ctx context.Context, q *dbsqlc.Queries, id movement.ID, attempt int) (movement.Override, error) {
	row, err := q.OverrideOf(ctx, dbsqlc.OverrideOfParams{MovementID: uuid.UUID(id), Attempt: int32(attempt)}) //nolint:gosec // a small count
	if errors.Is(err, pgx.ErrNoRows) {
		return movement.Override{}, ErrNotFound
	}
	return overrideFromRow(row), wrap("override", err)
}

// OverridesOf reads the overrides of a movement, of every attempt.
func (s *Store) OverridesOf(ctx context.Context, id movement.ID) ([]movement.Override, error) {
	rows, err := s.queries.OverridesOf(ctx, uuid.UUID(id))
	overrides := make([]movement.Override, len(rows))
	for i, row := range rows {
		overrides[i] = overrideFromRow(row)
	}
	return overrides, wrap("overrides", err)
}

// WaitingOverride is what an operator says of an open movement, and another one has not said.
type WaitingOverride struct {
	Movement movement.Movement
	Override movement.Override
}

// WaitingOverrides lists what waits for another operator's word, the newest first.
func (s *Store) WaitingOverrides(ctx context.Context, most int) ([]WaitingOverride, error) {
	rows, err := s.queries.WaitingOverrides(ctx, int32(most)) //nolint:gosec // a page
	if err != nil {
		return nil, wrap("waiting overrides", err)
	}
	list := make([]WaitingOverride, len(rows))
	for i, row := range rows {
		m, err := fromRow(row.Movement)
		if err != nil {
			return nil, err
		}
		list[i] = WaitingOverride{m, movement.Override{
			MovementID: m.ID, Attempt: m.Attempt, Operator: row.Operator, Outcome: movement.OverrideOutcome(row.Outcome), Reason: row.Reason, At: row.At.UTC(),
		}}
	}
	return list, nil
}

func overrideFromRow(row dbsqlc.Override) movement.Override {
	d := movement.Override{
		MovementID: movement.ID(row.MovementID), Attempt: int(row.Attempt), Operator: row.Operator, Outcome: movement.OverrideOutcome(row.Outcome),
		Reason: row.Reason, At: row.At.UTC(), Alone: row.Alone, ConfirmedAt: orZero(row.ConfirmedAt),
	}
	if row.ConfirmedBy != nil {
		d.ConfirmedBy = *row.ConfirmedBy
	}
	if row.ConfirmedReason != nil {
		d.ConfirmedReason = *row.ConfirmedReason
	}
	return d
}
