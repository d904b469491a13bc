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
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Move is a guarded change of a movement's state.
type Move struct {
	Movement movement.Movement // as the caller saw it: id, attempt and state are the guard
	To       movement.State
	Event    string // of the story
	Detail   string // of the story, JSON, no secrets

	Result            json.RawMessage // nil leaves what is there; so for all below
	Answer            json.RawMessage
	Refusal           *movement.Refusal
	ProviderReference string
	FactID            string
	ExpiresAt         time.Time
	PaidAt            time.Time // of a collection
	Cost              money.Amount
	DueAt             time.Time // zero: the worker has nothing left to do

	// Unasked moves only what nobody has asked the provider about, and AskedBefore,
	// where it is set, what nobody has since.
	Unasked     bool
	AskedBefore time.Time

	Posting  *ledger.Transaction     // what it does to the ledger, nil for nothing; of it the step, the kind and the legs count
	Callback *movement.CallbackEvent // the callback that this makes, nil for none
	Mail     *movement.Mail          // the mail that this makes, nil for none; only where nothing is posted
}

// Move changes a movement's state and writes its story, its posting, its callback
// and its mail in one commit. It is false, without an error, when the movement no
// longer stands where the caller saw it, and where it shall become unsent when an
// answer was given. What was charged or held does not end without a posting.
func (s *Store) Move(ctx context.Context, now time.Time, move Move) (bool, error) {
	now = micro(now)
	if err := move.check(); err != nil {
		return false, fmt.Errorf("store: move: %w", err)
	}
	var refusal []byte
	if move.Refusal != nil {
		encoded, err := json.Marshal(move.Refusal)
		if err != nil {
			return false, fmt.Errorf("store: move: %w", err)
		}
		refusal = encoded
	}
	m, told, mail := move.Movement, orNobody(move.Callback), orNoMail(move.Mail)
	err := s.move(ctx, move, dbsqlc.MoveMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), FromState: string(m.State), AskedBefore: move.askedBefore(), //nolint:gosec // a small count
		ToState: string(move.To), Now: now, Event: move.Event, Detail: move.Detail,
		Result: text(move.Result), Answer: text(move.Answer), Refusal: text(refusal), Cost: int64(move.Cost),
		ProviderReference: move.ProviderReference, FactID: move.FactID,
		ExpiresAt: optional(move.ExpiresAt), PaidAt: optional(move.PaidAt), DueAt: optional(move.DueAt),
		CallbackID: told.ID, CallbackEvent: told.Event, CallbackUrl: told.URL, CallbackBody: string(told.Body),
		CallbackState: string(told.State()), CallbackBucket: told.Bucket(), CallbackDueAt: told.DueAt(now),
		MailID: mail.ID, MailRecipient: mail.To, MailSubject: mail.Subject, MailBody: mail.Text, MailBucket: mail.Bucket(),
	})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, pgx.ErrNoRows):
		return false, nil
	case !ambiguous(err):
		return false, fmt.Errorf("store: move: %w", err)
	}
	// The story keeps our event also when somebody has moved it on meanwhile.
	story, readErr := readBack(ctx, func(ctx context.Context) ([]movement.HistoryEntry, error) { return s.History(ctx, m.ID) })
	if slices.ContainsFunc(story, func(e movement.HistoryEntry) bool {
		return e.Event == move.Event && e.Detail == move.Detail && e.At.Equal(now)
	}) {
		return true, nil
	}
	return false, fmt.Errorf("store: move: %w", errors.Join(err, readErr))
}

// forever lies after everything.
var forever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// askedBefore is the moment after which nobody may have asked.
func (m *Move) askedBefore() time.Time {
	switch {
	case m.Unasked:
		return time.Time{}
	case m.AskedBefore.IsZero():
		return forever
	}
	return micro(m.AskedBefore)
}

// check refuses a move that would leave the ledger another story than the
// movement has.
func (m *Move) check() error {
	ends := m.To.Final() || m.To == movement.NotSubmitted
	if pays := m.Movement.Charge != movement.Unpaid && ends; pays != (m.Posting != nil) {
		return fmt.Errorf("%w: what is paid from a balance ends with a posting, and nothing else has one", ErrInvalid)
	}
	if (m.Posting != nil || m.givesBack() != 0) && m.Mail != nil {
		return fmt.Errorf("%w: only a move without a posting makes a mail", ErrInvalid)
	}
	return checkPosting(m.Posting, ledger.Ends)
}

// givesBack is how often a move gives back what the movement counts against limits:
// once where it comes to nothing, and less than nothing where it has moved after all
// that was proven never sent, and counts again.
func (m *Move) givesBack() int64 {
	ends := m.To == movement.Failed || m.To == movement.NotSubmitted
	switch unsent := m.Movement.State == movement.NotSubmitted; {
	case len(m.Movement.Usage) == 0, unsent && ends:
		return 0
	case unsent:
		return -1
	case ends:
		return 1
	}
	return 0
}

// checkPosting refuses what the ledger does not make, and what belongs to another
// step.
func checkPosting(t *ledger.Transaction, step ledger.Step) error {
	if t == nil {
		return nil
	}
	if t.Step != step {
		return fmt.Errorf("%w: a posting of another step", ErrInvalid)
	}
	return t.Check()
}

// move runs the statement for a move with a posting, the one that gives back what
// counted against limits, or the one for all others.
func (s *Store) move(ctx context.Context, move Move, p dbsqlc.MoveMovementParams) error {
	switch {
	case move.givesBack() != 0:
		return s.moveTransfer(ctx, move, p)
	case move.Posting == nil:
		_, err := s.writes.MoveMovement(ctx, p)
		return err
	}
	legs := move.Posting.Legs
	_, err := s.writes.MovePaid(changing(ctx, move.Movement.Owner, legs), dbsqlc.MovePaidParams{
		ID: p.ID, Attempt: p.Attempt, FromState: p.FromState, AskedBefore: p.AskedBefore,
		ToState: p.ToState, Now: p.Now, Event: p.Event, Detail: p.Detail,
		Result: p.Result, Answer: p.Answer, Refusal: p.Refusal, Cost: p.Cost,
		ProviderReference: p.ProviderReference, FactID: p.FactID, ExpiresAt: p.ExpiresAt, DueAt: p.DueAt,
		CallbackID: p.CallbackID, CallbackEvent: p.CallbackEvent, CallbackUrl: p.CallbackUrl, CallbackBody: p.CallbackBody,
		CallbackState: p.CallbackState, CallbackBucket: p.CallbackBucket, CallbackDueAt: p.CallbackDueAt,
		PostedKind: string(move.Posting.Kind), PostedAvailable: int64(legs.Available), PostedHeld: int64(legs.Held),
		PostedMargin: int64(legs.Margin), PostedCost: int64(legs.Cost), PostedDeposit: int64(legs.Deposit),
	})
	return err
}

// Complete adds a call's answer to a movement that was moved on meanwhile.
func (s *Store) Complete(ctx context.Context, move Move) error {
	_, err := s.queries.CompleteMovement(ctx, dbsqlc.CompleteMovementParams{
		ID: uuid.UUID(move.Movement.ID), Attempt: int32(move.Movement.Attempt), //nolint:gosec // a small count
		Result: text(move.Result), Answer: text(move.Answer),
		ProviderReference: move.ProviderReference, ExpiresAt: optional(move.ExpiresAt),
	})
	if err != nil {
		return fmt.Errorf("store: complete: %w", err)
	}
	return nil
}

// Supplement gives a movement that is done the result of move in the place of the
// one that the caller saw, and writes its story; nothing else changes. It is false
// when the movement does not stand there any more, or was taken back.
func (s *Store) Supplement(ctx context.Context, now time.Time, move Move) (bool, error) {
	m := move.Movement
	_, err := s.queries.SupplementMovement(ctx, dbsqlc.SupplementMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), Earlier: string(m.Result), Result: string(move.Result), //nolint:gosec // a small count
		Event: move.Event, Detail: move.Detail, Now: micro(now),
	})
	return recorded("supplement", err)
}

// Record is a fact about a movement that has ended: it changes no state.
type Record struct {
	ID       movement.ID
	At       time.Time               // when it happened
	Detail   string                  // of the story, JSON, no secrets
	Posting  *ledger.Transaction     // as a move's
	Callback *movement.CallbackEvent // the callback that this makes, nil for none
}

// PaidLate records money that came after the movement ended without it. It is
// false when that was recorded before.
func (s *Store) PaidLate(ctx context.Context, now time.Time, r Record) (bool, error) {
	return s.record(ctx, "paid_late", now, r)
}

// Reversed records that the provider took back a success, or a collection's late
// money. It is false when that was recorded before. What was charged or held is not reversed without a
// posting.
func (s *Store) Reversed(ctx context.Context, now time.Time, r Record) (bool, error) {
	return s.record(ctx, "reversed", now, r)
}

func (s *Store) record(ctx context.Context, event string, now time.Time, r Record) (bool, error) {
	if err := checkPosting(r.Posting, ledger.Reverses); err != nil {
		return false, fmt.Errorf("store: %s: %w", event, err)
	}
	var posted ledger.Transaction
	if r.Posting != nil {
		posted = *r.Posting
	}
	told := orNobody(r.Callback)
	_, err := s.queries.RecordFact(ctx, dbsqlc.RecordFactParams{
		ID: uuid.UUID(r.ID), Event: event, Now: micro(now), At: orNow(r.At, now), Detail: r.Detail,
		PostedKind: string(posted.Kind), PostedAvailable: int64(posted.Available), PostedHeld: int64(posted.Held),
		PostedMargin: int64(posted.Margin), PostedCost: int64(posted.Legs.Cost), PostedDeposit: int64(posted.Deposit),
		CallbackID: told.ID, CallbackEvent: told.Event, CallbackUrl: told.URL, CallbackBody: string(told.Body),
		CallbackState: string(told.State()), CallbackBucket: told.Bucket(), CallbackDueAt: told.DueAt(now),
	})
	return recorded(event, err)
}

// orNow is never nil: a record without a time would be no record, and be made
// again and again.
func orNow(at, now time.Time) *time.Time {
	if at.IsZero() {
		return optional(now)
	}
	return optional(at)
}

func recorded(what string, err error) (bool, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("store: %s: %w", what, err)
	}
	return true, nil
}
