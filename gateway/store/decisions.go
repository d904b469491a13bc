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

// Decide writes what an operator says of a movement, with its audit entry, and
// returns what stands then. The first proposes. Another who says the same
// confirms. Who has proposed may propose something else, and an operator alone
// decides at once, which puts the review on the operators' list; a decision that
// is made stays. ErrDecided where another outcome stands, which is returned too.
// The same again changes nothing.
func (s *Store) Override(ctx context.Context, m movement.Movement, d movement.Override, review movement.Exception) (movement.Override, error) {
	if d.Operator == "" || d.Reason == "" || d.At.IsZero() {
		return movement.Override{}, fmt.Errorf("%w: a decision needs an operator, a reason and a time", ErrInvalid)
	}
	d.MovementID, d.Attempt, d.At = m.ID, m.Attempt, micro(d.At)
	var stands movement.Override
	err := s.Tx(ctx, func(q *dbsqlc.Queries) error {
		stands = d
		before, err := decisionOf(ctx, q, m.ID, m.Attempt)
		none := errors.Is(err, ErrNotFound)
		switch {
		case err != nil && !none:
			return err
		case none, d.Replaces(before):
			return s.putDecision(ctx, q, m, d, review)
		case before.Outcome != d.Outcome:
			stands = before
			return movement.ErrOverridden
		case before.Made() || before.Operator == d.Operator:
			stands = before
			return nil
		}
		stands = before
		stands.ConfirmedBy, stands.ConfirmedReason, stands.ConfirmedAt = d.Operator, d.Reason, d.At
		return confirmDecision(ctx, q, m, stands)
	})
	if err != nil && !errors.Is(err, movement.ErrOverridden) {
		return movement.Override{}, fmt.Errorf("store: decide: %w", err)
	}
	return stands, err
}

func (s *Store) putDecision(ctx context.Context, q *dbsqlc.Queries, m movement.Movement, d movement.Override, review movement.Exception) error {
	rows, err := q.PutDecision(ctx, dbsqlc.PutDecisionParams{
		MovementID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), //nolint:gosec // a small count
		Operator: d.Operator, Outcome: string(d.Outcome), Reason: d.Reason, At: d.At, Alone: d.Alone,
	})
	if err := found(rows, err); err != nil {
		return err
	}
	if !d.Alone {
		return auditDecision(ctx, q, m, d.Operator, "movement.propose", d.Outcome, d.Reason, d.At)
	}
	if _, err := q.AddAttention(ctx, dbsqlc.AddAttentionParams{
		MerchantID: review.Owner.MerchantID, Mode: review.Owner.Mode, Subject: review.Subject, Reason: review.Reason, FactID: review.FactID,
		Provider: review.Provider, Detail: review.Detail, At: micro(review.At),
	}); err != nil {
		return err
	}
	return auditDecision(ctx, q, m, d.Operator, "movement.decide_alone", d.Outcome, d.Reason, d.At)
}

func confirmDecision(ctx context.Context, q *dbsqlc.Queries, m movement.Movement, d movement.Override) error {
	rows, err := q.ConfirmDecision(ctx, dbsqlc.ConfirmDecisionParams{
		MovementID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), Outcome: string(d.Outcome), //nolint:gosec // a small count
		Operator: d.ConfirmedBy, Reason: d.ConfirmedReason, At: d.ConfirmedAt,
	})
	if err := found(rows, err); err != nil {
		return err
	}
	return auditDecision(ctx, q, m, d.ConfirmedBy, "movement.confirm", d.Outcome, d.ConfirmedReason, d.ConfirmedAt)
}

func auditDecision(ctx context.Context, q *dbsqlc.Queries, m movement.Movement, operator, action string, o movement.OverrideOutcome, reason string, at time.Time) error {
	return q.InsertAudit(ctx, dbsqlc.InsertAuditParams{
		AuditID: uuid.New(), MerchantID: m.Owner.MerchantID, At: at, Operator: operator, Action: action,
		Detail: fmt.Sprintf("%s %s, attempt %d, mode %s, is %s: %s", m.Kind, m.ID, m.Attempt, m.Owner.Mode, o, reason),
	})
}

// DecisionOf reads what operators have said of an attempt of a movement, or
// ErrNotFound.
func (s *Store) OverrideOf(ctx context.Context, id movement.ID, attempt int) (movement.Override, error) {
	return decisionOf(ctx, s.queries, id, attempt)
}

func decisionOf(ctx context.Context, q *dbsqlc.Queries, id movement.ID, attempt int) (movement.Override, error) {
	row, err := q.DecisionOf(ctx, dbsqlc.DecisionOfParams{MovementID: uuid.UUID(id), Attempt: int32(attempt)}) //nolint:gosec // a small count
	if errors.Is(err, pgx.ErrNoRows) {
		return movement.Override{}, ErrNotFound
	}
	return decisionFromRow(row), wrap("decision", err)
}

// DecisionsOf reads what operators have said of a movement, of every attempt.
func (s *Store) OverridesOf(ctx context.Context, id movement.ID) ([]movement.Override, error) {
	rows, err := s.queries.DecisionsOf(ctx, uuid.UUID(id))
	decisions := make([]movement.Override, len(rows))
	for i, row := range rows {
		decisions[i] = decisionFromRow(row)
	}
	return decisions, wrap("decisions", err)
}

func decisionFromRow(row dbsqlc.Decision) movement.Override {
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

// AttentionOf reads all entries of the operators' list about a subject, the
// settled ones too, the oldest first.
func (s *Store) ExceptionsOf(ctx context.Context, owner movement.Owner, subject string) ([]movement.Exception, error) {
	rows, err := s.queries.AttentionOf(ctx, dbsqlc.AttentionOfParams{MerchantID: owner.MerchantID, Mode: owner.Mode, Subject: subject})
	entries := make([]movement.Exception, len(rows))
	for i, row := range rows {
		entries[i] = movement.Exception{
			Owner: owner, Subject: row.Subject, Reason: row.Reason, FactID: row.FactID,
			Provider: row.Provider, Detail: row.Detail, At: row.At.UTC(), ResolvedAt: orZero(row.ResolvedAt),
		}
		if row.ResolvedBy != nil && row.Resolution != nil {
			entries[i].ResolvedBy, entries[i].Resolution = *row.ResolvedBy, *row.Resolution
		}
	}
	return entries, wrap("attention", err)
}

// SettleAttention takes the open entries of a subject for some reasons off the
// operators' list.
func (s *Store) ResolveExceptions(ctx context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error {
	return wrap("settle attention", s.queries.SettleAttention(ctx, dbsqlc.SettleAttentionParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, Subject: subject, Reasons: reasons,
		Now: micro(now), Operator: operator, Resolution: resolution,
	}))
}
