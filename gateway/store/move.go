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
	Event    string // of the history
	Detail   string // of the history, JSON, no secrets

	Result            json.RawMessage // nil leaves what is there; so for all below
	Answer            json.RawMessage
	Refusal           *movement.Refusal
	ProviderReference string
	FactID            string
	ExpiresAt         time.Time
	PaidAt            time.Time // of a collection
	Cost              money.Amount
	DueAt             time.Time // of the next poll; zero for none

	// Unasked moves only what nobody has polled, and AskedBefore, where it is set, what
	// nobody has polled since.
	Unasked     bool
	AskedBefore time.Time

	Posting  *ledger.Transaction     // what it does to the ledger, nil for nothing; only its step, kind and legs count
	Callback *movement.CallbackEvent // the callback that this makes, nil for none
	Mail     *movement.Mail          // the mail that this makes, nil for none; only where nothing is posted
}

// Move changes a movement's state and writes its history, its posting, its callback
// and its mail in one commit. It is false, without an error, when the movement no
// longer stands where the caller saw it. A movement that the caller saw as submitting
// may have been acknowledged since; only NotSubmitted is then too late. What was
// charged or held does not end without a posting.
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
	m, event, mail := move.Movement, orNoCallback(move.Callback), orNoMail(move.Mail)
	err := s.move(ctx, move, dbsqlc.MoveMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), FromStates: move.from(), PolledBefore: move.polledBefore(), //nolint:gosec // a small count
		ToState: string(move.To), Now: now, Event: move.Event, Detail: move.Detail,
		Result: text(move.Result), Answer: text(move.Answer), Refusal: text(refusal), Cost: int64(move.Cost),
		ProviderReference: move.ProviderReference, FactID: move.FactID,
		ExpiresAt: optional(move.ExpiresAt), PaidAt: optional(move.PaidAt), DueAt: optional(move.DueAt),
		CallbackID: event.ID, CallbackEvent: event.Event, CallbackUrl: event.URL, CallbackBody: string(event.Body),
		CallbackState: string(event.State()), CallbackBucket: event.Bucket(), CallbackDueAt: event.DueAt(now),
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
	// The history keeps our entry also when another move came after it.
	history, readErr := readBack(ctx, func(ctx context.Context) ([]movement.HistoryEntry, error) { return s.History(ctx, m.ID) })
	if slices.ContainsFunc(history, func(e movement.HistoryEntry) bool {
		return e.Event == move.Event && e.Detail == move.Detail && e.At.Equal(now)
	}) {
		return true, nil
	}
	return false, fmt.Errorf("store: move: %w", errors.Join(err, readErr))
}

// forever lies after everything.
var forever = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// from are the states that the movement may stand in for the move.
func (m *Move) from() []string {
	seen := m.Movement.State
	switch {
	case m.To == movement.NotSubmitted && seen != movement.Submitting:
		return []string{} // a merchant may have read Pending
	case m.To != movement.NotSubmitted && seen == movement.Submitting:
		return notYetKnown
	}
	return []string{string(seen)}
}

// polledBefore is the moment after which nobody may have polled.
func (m *Move) polledBefore() time.Time {
	switch {
	case m.Unasked:
		return time.Time{}
	case m.AskedBefore.IsZero():
		return forever
	}
	return micro(m.AskedBefore)
}

// check refuses a move that would leave the ledger at odds with the movement.
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

// givesBack is how often a move gives back what the movement counts against payout
// limits: once where no money moves, and minus once where money has moved although the
// movement was proven not submitted, so that it counts again.
func (m *Move) givesBack() int64 {
	ends := m.To == movement.Failed || m.To == movement.NotSubmitted
	switch freed := m.Movement.State == movement.NotSubmitted; {
	case len(m.Movement.Usage) == 0, freed && ends:
		return 0
	case freed:
		return -1
	case ends:
		return 1
	}
	return 0
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

// move runs the statement for a move that changes a balance, the one for a move that
// changes usage, or the one for all others.
func (s *Store) move(ctx context.Context, move Move, p dbsqlc.MoveMovementParams) error {
	switch {
	case move.givesBack() != 0:
		return s.moveLimits(ctx, move, p)
	case move.Posting == nil:
		_, err := s.writes.MoveMovement(ctx, p)
		return err
	}
	legs := move.Posting.Legs
	_, err := s.writes.MoveBalance(changing(ctx, move.Movement.Owner, legs), dbsqlc.MoveBalanceParams{
		ID: p.ID, Attempt: p.Attempt, FromStates: p.FromStates, PolledBefore: p.PolledBefore,
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

// Complete adds a call's answer to a movement that another fact has moved on.
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

// Supplement replaces the result of a succeeded movement that the caller saw with the
// one of move, and writes its history; nothing else changes. It is false when the
// movement has another result by now, or was reversed.
func (s *Store) Supplement(ctx context.Context, now time.Time, move Move) (bool, error) {
	m := move.Movement
	_, err := s.queries.SupplementMovement(ctx, dbsqlc.SupplementMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), Earlier: string(m.Result), Result: string(move.Result), //nolint:gosec // a small count
		Event: move.Event, Detail: move.Detail, Now: micro(now),
	})
	return recorded("supplement", err)
}

// Record is a fact after a movement's end: it changes no state.
type Record struct {
	ID       movement.ID
	At       time.Time               // when it happened
	Detail   string                  // of the history, JSON, no secrets
	Posting  *ledger.Transaction     // as a move's
	Callback *movement.CallbackEvent // the callback that this makes, nil for none
}

// PaidLate records late money: it came after the movement had ended without it. It is
// false when that was recorded before.
func (s *Store) PaidLate(ctx context.Context, now time.Time, r Record) (bool, error) {
	return s.record(ctx, "paid_late", now, r)
}

// Reversed records a reversal: the provider took back a success, or a collection's
// late money. It is false when that was recorded before. What was charged or held is
// not reversed without a posting.
func (s *Store) Reversed(ctx context.Context, now time.Time, r Record) (bool, error) {
	return s.record(ctx, "reversed", now, r)
}

func (s *Store) record(ctx context.Context, fact string, now time.Time, r Record) (bool, error) {
	if err := checkPosting(r.Posting, ledger.Reverses); err != nil {
		return false, fmt.Errorf("store: %s: %w", fact, err)
	}
	var posted ledger.Transaction
	if r.Posting != nil {
		posted = *r.Posting
	}
	event := orNoCallback(r.Callback)
	_, err := s.queries.RecordFact(ctx, dbsqlc.RecordFactParams{
		ID: uuid.UUID(r.ID), Event: fact, Now: micro(now), At: orNow(r.At, now), Detail: r.Detail,
		PostedKind: string(posted.Kind), PostedAvailable: int64(posted.Available), PostedHeld: int64(posted.Held),
		PostedMargin: int64(posted.Margin), PostedCost: int64(posted.Legs.Cost), PostedDeposit: int64(posted.Deposit),
		CallbackID: event.ID, CallbackEvent: event.Event, CallbackUrl: event.URL, CallbackBody: string(event.Body),
		CallbackState: string(event.State()), CallbackBucket: event.Bucket(), CallbackDueAt: event.DueAt(now),
	})
	return recorded(fact, err)
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
