package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// Apply commits a change of a movement with its history, its posting, its callback
// event and its mail. It is false, without an error, when the movement no longer
// stands where the caller saw it, or the fact was recorded before. ErrInvalid refuses
// a change that is at odds with itself. An unclear commit is read back.
func (s *Store) Apply(ctx context.Context, c movement.Change) (bool, error) {
	if err := c.Check(); err != nil {
		return false, fmt.Errorf("store: apply: %w", err)
	}
	c.At = micro(c.At)
	switch c.Effect {
	case movement.Move:
		return s.move(ctx, c)
	case movement.LateMoney, movement.MoneyBack, movement.OtherAmount:
		return s.record(ctx, c)
	case movement.Supplement:
		return s.transit(ctx, "supplement", supplementResult, changing(c))
	case movement.KeepAnswer:
		return s.keepAnswer(ctx, c)
	case movement.Renewal:
		return s.transit(ctx, "renew", pollKept|renewMovement, changing(c))
	case movement.Errored:
		return s.transit(ctx, "errored", pollKept|errMovement, changing(c))
	case movement.Nothing, movement.Contradiction: // refused above
	}
	return false, nil
}

// move changes a movement's state.
func (s *Store) move(ctx context.Context, c movement.Change) (bool, error) {
	w := changing(c)
	for _, state := range c.From {
		w.from = append(w.from, string(state))
	}
	if c.Refusal != nil {
		encoded, err := json.Marshal(c.Refusal)
		if err != nil {
			return false, fmt.Errorf("store: move: %w", err)
		}
		w.refusal = text(encoded)
	}
	return s.transit(ctx, "move", moveMovement|takesPoll(c), w)
}

// takesPoll is how a move takes the movement's row of polls: what was freed has none.
func takesPoll(c movement.Change) parts {
	done := c.To.Ends() && c.NextPoll.IsZero() // nothing is left to ask
	switch freed := slices.Contains(c.From, movement.NotSubmitted); {
	case freed && done:
		return pollNone
	case freed:
		return pollNone | openPoll
	case done:
		return pollEnded
	}
	return pollKept
}

// forever lies after everything.
var forever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// record keeps a fact that changes no state. Late money is asked about anew, or no more.
func (s *Store) record(ctx context.Context, c movement.Change) (bool, error) {
	if c.HappenedAt.IsZero() { // without a time it would be no record, and be made again and again
		c.HappenedAt = c.At
	}
	w := changing(c)
	w.then = c.After()
	if len(w.then.Returns) > 0 {
		encoded, err := json.Marshal(w.then.Returns)
		if err != nil {
			return false, fmt.Errorf("store: record: %w", err)
		}
		w.returns = text(encoded)
	}
	p := recordFact
	switch {
	case c.Effect != movement.LateMoney:
	case c.NextPoll.IsZero():
		p |= dropPoll
	default:
		p |= openPoll
	}
	return s.transit(ctx, c.Event, p, w)
}

// changing is what a change writes.
func changing(c movement.Change) *write {
	m := c.Movement
	w := &write{
		owner: m.Owner, id: uuid.UUID(m.ID), attempt: m.Attempt, now: c.At, to: string(c.To), change: &c, callback: c.Callback, mail: c.Mail,
		transition: uuid.New(), event: c.Event, detail: c.Detail, factID: c.FactID,
	}
	if c.Posting != nil {
		w.posted = *c.Posting
	}
	return w
}

// transit commits a change with its history and what else it makes. It is false where
// the head's guards find the movement elsewhere.
func (s *Store) transit(ctx context.Context, what string, p parts, w *write) (bool, error) {
	p |= logHistory
	if w.callback != nil && w.callback.Event != "" {
		p |= queueCallback
	}
	if w.mail != nil && w.mail.To != "" {
		p |= queueMail
	}
	if w.change.Posting != nil {
		p |= postTransaction
	}
	if w.posted.Available != 0 || w.posted.Held != 0 {
		p |= changeBalance
	}
	if w.change.GivesBack != 0 {
		p |= giveUsageBack
		counts, err := usageOf(w.change.Movement)
		if err != nil {
			return false, err
		}
		for i := range counts.amounts {
			counts.amounts[i] *= int64(w.change.GivesBack)
		}
		w.usage = counts
	}
	var sequence int32
	switch err := s.writer.run(ctx, p, w, &sequence); {
	case err == nil:
		return true, nil
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case !ambiguous(err):
		return false, fmt.Errorf("store: %s: %w", what, err)
	default:
		return s.isInHistory(ctx, what, w, err)
	}
}

// isInHistory reads an ambiguous change back. The history keeps our entry also when
// another change came after it.
func (s *Store) isInHistory(ctx context.Context, what string, w *write, cause error) (bool, error) {
	found, err := readBack(ctx, func(ctx context.Context) (bool, error) {
		return s.queries.HasTransition(ctx, dbsqlc.HasTransitionParams{MovementID: w.id, TransitionID: &w.transition})
	})
	if found {
		return true, nil
	}
	return false, fmt.Errorf("store: %s: %w", what, errors.Join(cause, err))
}

// keepAnswer adds a call's answer to a movement that another fact has moved on.
func (s *Store) keepAnswer(ctx context.Context, c movement.Change) (bool, error) {
	id := uuid.UUID(c.Movement.ID)
	_, err := s.writing(id).AnswerMovement(ctx, dbsqlc.AnswerMovementParams{
		ID: id, Attempt: int32(c.Movement.Attempt), //nolint:gosec // a small count
		Result: text(c.Result), Answer: text(c.Answer),
		ProviderReference: c.ProviderReference, ExpiresAt: optional(c.ExpiresAt),
	})
	_, err = recorded("keep answer", err)
	return err == nil, err
}
