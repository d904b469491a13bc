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

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// Apply commits a change of a movement with its history, its posting, its callback
// event and its mail. It is false, without an error, when the movement no longer
// stands where the caller saw it, or the fact was recorded before. ErrInvalid refuses
// a change that is at odds with itself. The unclear commit of a move is read back.
func (s *Store) Apply(ctx context.Context, c movement.Change) (bool, error) {
	c.At = micro(c.At)
	switch c.Effect {
	case movement.Move:
		return s.move(ctx, c)
	case movement.LateMoney, movement.Reversal:
		return s.record(ctx, c)
	case movement.Supplement:
		return s.supplement(ctx, c)
	case movement.KeepAnswer:
		return s.keepAnswer(ctx, c)
	case movement.Renewal:
		return s.renew(ctx, c)
	case movement.Nothing, movement.Contradiction:
	}
	return false, fmt.Errorf("%w: effect %d is nothing to commit", ErrInvalid, c.Effect)
}

// move changes a movement's state.
func (s *Store) move(ctx context.Context, c movement.Change) (bool, error) {
	if err := checkMove(c); err != nil {
		return false, fmt.Errorf("store: move: %w", err)
	}
	params, err := moveParams(c)
	if err != nil {
		return false, fmt.Errorf("store: move: %w", err)
	}
	switch err := s.runMove(ctx, c, params); {
	case err == nil:
		return true, nil
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case !ambiguous(err):
		return false, fmt.Errorf("store: move: %w", err)
	default:
		return s.wasMoved(ctx, c, err)
	}
}

// checkMove refuses a move that would leave the ledger at odds with the movement, or
// free a reference of which a merchant may have read Pending.
func checkMove(c movement.Change) error {
	ends := c.To.Final() || c.To == movement.NotSubmitted
	switch pays := c.Movement.Charge != movement.Unpaid && ends; {
	case pays != (c.Posting != nil):
		return fmt.Errorf("%w: what is paid from a balance ends with a posting, and nothing else has one", ErrInvalid)
	case (c.Posting != nil || c.GivesBack != 0) && c.Mail != nil:
		return fmt.Errorf("%w: only a move without a posting makes a mail", ErrInvalid)
	case c.To == movement.NotSubmitted && !slices.Equal(c.From, []movement.State{movement.Submitting}):
		return fmt.Errorf("%w: only what is submitting becomes not submitted", ErrInvalid)
	}
	return checkPosting(c.Posting, ledger.Ends)
}

// checkPosting refuses a posting of another step, and one that the ledger's rules
// don't make.
func checkPosting(t *ledger.Transaction, step ledger.Step) error {
	if t == nil {
		return nil
	}
	if t.Step != step {
		return fmt.Errorf("%w: a posting of another step", ErrInvalid)
	}
	return t.Check()
}

func moveParams(c movement.Change) (dbsqlc.MoveMovementParams, error) {
	from := make([]string, len(c.From))
	for i, state := range c.From {
		from[i] = string(state)
	}
	var refusal []byte
	if c.Refusal != nil {
		encoded, err := json.Marshal(c.Refusal)
		if err != nil {
			return dbsqlc.MoveMovementParams{}, err
		}
		refusal = encoded
	}
	m, event, mail := c.Movement, orNone(c.Callback), orNone(c.Mail)
	return dbsqlc.MoveMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), FromStates: from, PolledBefore: polledBefore(c), //nolint:gosec // a small count
		ToState: string(c.To), Now: c.At, Event: c.Event, Detail: c.Detail,
		Result: text(c.Result), Answer: text(c.Answer), Refusal: text(refusal), Cost: int64(c.Cost),
		ProviderReference: c.ProviderReference, FactID: c.FactID,
		ExpiresAt: optional(c.ExpiresAt), PaidAt: optional(c.PaidAt), DueAt: optional(c.NextPoll),
		CallbackID: event.ID, CallbackEvent: event.Event, CallbackUrl: event.URL, CallbackBody: string(event.Body),
		CallbackState: string(event.State()), CallbackBucket: event.Bucket(), CallbackDueAt: event.DueAt(c.At),
		MailID: mail.ID, MailRecipient: mail.To, MailSubject: mail.Subject, MailBody: mail.Text, MailBucket: mail.Bucket(),
	}, nil
}

// forever lies after everything.
var forever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// polledBefore is the moment after which nobody may have polled.
func polledBefore(c movement.Change) time.Time {
	switch {
	case c.Unpolled:
		return time.Time{}
	case c.PolledBefore.IsZero():
		return forever
	}
	return micro(c.PolledBefore)
}

// runMove runs the statement for a move that changes usage, the one for a move that
// changes a balance, or the one for all others.
func (s *Store) runMove(ctx context.Context, c movement.Change, p dbsqlc.MoveMovementParams) error {
	switch {
	case c.GivesBack != 0:
		return s.moveLimits(ctx, c, p)
	case c.Posting != nil:
		return s.moveBalance(ctx, c, p)
	}
	_, err := s.writes.MoveMovement(ctx, p)
	return err
}

func (s *Store) moveBalance(ctx context.Context, c movement.Change, p dbsqlc.MoveMovementParams) error {
	legs := c.Posting.Legs
	_, err := s.writes.MoveBalance(changing(ctx, c.Movement.Owner, legs), dbsqlc.MoveBalanceParams{
		ID: p.ID, Attempt: p.Attempt, FromStates: p.FromStates, PolledBefore: p.PolledBefore,
		ToState: p.ToState, Now: p.Now, Event: p.Event, Detail: p.Detail,
		Result: p.Result, Answer: p.Answer, Refusal: p.Refusal, Cost: p.Cost,
		ProviderReference: p.ProviderReference, FactID: p.FactID, ExpiresAt: p.ExpiresAt, DueAt: p.DueAt,
		CallbackID: p.CallbackID, CallbackEvent: p.CallbackEvent, CallbackUrl: p.CallbackUrl, CallbackBody: p.CallbackBody,
		CallbackState: p.CallbackState, CallbackBucket: p.CallbackBucket, CallbackDueAt: p.CallbackDueAt,
		PostedKind: string(c.Posting.Kind), PostedAvailable: int64(legs.Available), PostedHeld: int64(legs.Held),
		PostedMargin: int64(legs.Margin), PostedCost: int64(legs.Cost), PostedDeposit: int64(legs.Deposit),
	})
	return err
}

func (s *Store) moveLimits(ctx context.Context, c movement.Change, p dbsqlc.MoveMovementParams) error {
	counts, err := usageOf(c.Movement)
	if err != nil {
		return err
	}
	for i := range counts.amounts {
		counts.amounts[i] *= int64(c.GivesBack)
	}
	_, err = s.writes.MoveLimits(ordered(ctx, c.Movement), dbsqlc.MoveLimitsParams{
		ID: p.ID, Attempt: p.Attempt, FromStates: p.FromStates, PolledBefore: p.PolledBefore,
		ToState: p.ToState, Now: p.Now, Event: p.Event, Detail: p.Detail,
		Result: p.Result, Answer: p.Answer, Refusal: p.Refusal, Cost: p.Cost,
		ProviderReference: p.ProviderReference, FactID: p.FactID, ExpiresAt: p.ExpiresAt, DueAt: p.DueAt,
		CallbackID: p.CallbackID, CallbackEvent: p.CallbackEvent, CallbackUrl: p.CallbackUrl, CallbackBody: p.CallbackBody,
		CallbackState: p.CallbackState, CallbackBucket: p.CallbackBucket, CallbackDueAt: p.CallbackDueAt,
		UsageNames: counts.names, UsagePeriods: counts.periods, UsageAmounts: counts.amounts,
	})
	return err
}

// wasMoved reads an ambiguous move back. The history keeps our entry also when
// another move came after it.
func (s *Store) wasMoved(ctx context.Context, c movement.Change, cause error) (bool, error) {
	history, err := readBack(ctx, func(ctx context.Context) ([]movement.HistoryEntry, error) { return s.History(ctx, c.Movement.ID) })
	if slices.ContainsFunc(history, func(e movement.HistoryEntry) bool {
		return e.Event == c.Event && e.Detail == c.Detail && e.At.Equal(c.At)
	}) {
		return true, nil
	}
	return false, fmt.Errorf("store: move: %w", errors.Join(cause, err))
}

// keepAnswer adds a call's answer to a movement that another fact has moved on.
func (s *Store) keepAnswer(ctx context.Context, c movement.Change) (bool, error) {
	_, err := s.queries.AnswerMovement(ctx, dbsqlc.AnswerMovementParams{
		ID: uuid.UUID(c.Movement.ID), Attempt: int32(c.Movement.Attempt), //nolint:gosec // a small count
		Result: text(c.Result), Answer: text(c.Answer),
		ProviderReference: c.ProviderReference, ExpiresAt: optional(c.ExpiresAt),
	})
	if err != nil {
		return false, fmt.Errorf("store: keep answer: %w", err)
	}
	return true, nil
}

// supplement replaces the result of a succeeded movement that the caller saw; nothing
// else changes. It is false when the movement has another result by now, or was
// reversed.
func (s *Store) supplement(ctx context.Context, c movement.Change) (bool, error) {
	m := c.Movement
	_, err := s.queries.SupplementMovement(ctx, dbsqlc.SupplementMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), Earlier: string(m.Result), Result: string(c.Result), //nolint:gosec // a small count
		Event: c.Event, Detail: c.Detail, Now: c.At,
	})
	return recorded("supplement", err)
}

// renew lets a movement be sent again. It is false where it has moved on, or the same
// was decided before.
func (s *Store) renew(ctx context.Context, c movement.Change) (bool, error) {
	m := c.Movement
	_, err := s.queries.RenewMovement(ctx, dbsqlc.RenewMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), SendBy: micro(c.SendBy), DueAt: optional(c.NextPoll), //nolint:gosec // a small count
		Event: c.Event, Detail: c.Detail, Now: c.At,
	})
	return recorded("renew", err)
}

// record keeps late money or a reversal, which change no state. What was charged or
// held is not reversed without a posting: the database refuses it.
func (s *Store) record(ctx context.Context, c movement.Change) (bool, error) {
	if err := checkPosting(c.Posting, ledger.Reverses); err != nil {
		return false, fmt.Errorf("store: %s: %w", c.Event, err)
	}
	var posted ledger.Transaction
	if c.Posting != nil {
		posted = *c.Posting
	}
	happened := c.HappenedAt
	if happened.IsZero() { // without a time it would be no record, and be made again and again
		happened = c.At
	}
	event := orNone(c.Callback)
	_, err := s.queries.RecordFact(ctx, dbsqlc.RecordFactParams{
		ID: uuid.UUID(c.Movement.ID), Event: c.Event, Now: c.At, At: optional(happened), Detail: c.Detail,
		SeenLate:   !c.Movement.PaidLateAt.IsZero(),
		PostedKind: string(posted.Kind), PostedAvailable: int64(posted.Available), PostedHeld: int64(posted.Held),
		PostedMargin: int64(posted.Margin), PostedCost: int64(posted.Legs.Cost), PostedDeposit: int64(posted.Deposit),
		CallbackID: event.ID, CallbackEvent: event.Event, CallbackUrl: event.URL, CallbackBody: string(event.Body),
		CallbackState: string(event.State()), CallbackBucket: event.Bucket(), CallbackDueAt: event.DueAt(c.At),
	})
	return recorded(c.Event, err)
}

// orNone is what a change without a callback or a mail writes: nothing.
func orNone[T any](written *T) *T {
	if written == nil {
		return new(T)
	}
	return written
}
