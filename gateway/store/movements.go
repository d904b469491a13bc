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
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Claim commits the intent of a movement: its reference is taken and it stands
// as sending. It returns the movement as claimed, with the id and attempt under
// which the provider is asked, and true; or the movement that has the reference
// already, and false. Where the commit's fate was unclear it is read back: an
// error means that this claim must not be acted upon.
func (s *Store) Claim(ctx context.Context, m movement.Movement) (movement.Movement, bool, error) {
	m.CreatedAt, m.SendBy, m.DueAt = micro(m.CreatedAt), micro(m.SendBy), orZero(optional(m.DueAt))
	row, err := s.writes.ClaimMovement(ctx, dbsqlc.ClaimMovementParams{
		MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Kind: string(m.Kind), Reference: m.Reference,
		ID: uuid.UUID(m.ID), Operation: m.Operation, Provider: m.Provider, Amount: int64(m.Amount),
		Request: string(m.Request), ConnectionVersion: m.ConnectionVersion, CallbackUrl: m.CallbackURL, RequestID: m.RequestID,
		PolicyVersion: m.PolicyVersion, DecisionID: m.DecisionID,
		SendBy: m.SendBy, Now: m.CreatedAt, DueBucket: int32(m.ID.Bucket()), DueAt: optional(m.DueAt), //nolint:gosec // below Buckets
	})
	switch {
	case err == nil:
		m.ID, m.Attempt, m.Sequence = movement.ID(row.ID), int(row.Attempt), int(row.Sequence)
		m.State, m.UpdatedAt = movement.Sending, m.CreatedAt
		return m, true, nil
	case errors.Is(err, pgx.ErrNoRows):
		existing, err := s.MovementByKey(ctx, m.Key)
		return existing, false, err
	case !ambiguous(err):
		return movement.Movement{}, false, fmt.Errorf("store: claim: %w", err)
	}
	return s.claimed(ctx, m, err)
}

// claimed reads an ambiguous claim back.
func (s *Store) claimed(ctx context.Context, m movement.Movement, cause error) (movement.Movement, bool, error) {
	existing, err := readBack(ctx, func(ctx context.Context) (movement.Movement, error) { return s.MovementByKey(ctx, m.Key) })
	if err != nil {
		return movement.Movement{}, false, fmt.Errorf("store: claim: %w", errors.Join(cause, err))
	}
	return existing, existing.State == movement.Sending && sameClaim(existing, m), nil
}

// sameClaim tells our claim from another's, of which one too many would be money
// sent twice. The id is random and made for the claim; one that took over the row
// of an attempt never sent has that row's, and is known by its request and times.
func sameClaim(existing, ours movement.Movement) bool {
	return (existing.ID == ours.ID || existing.Attempt > 1) && existing.RequestID == ours.RequestID &&
		existing.CreatedAt.Equal(ours.CreatedAt) && existing.SendBy.Equal(ours.SendBy) && existing.SameRequest(ours.Request)
}

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
	DueAt             time.Time // zero: the worker has nothing left to do

	Told *Told // the callback that this makes, nil for none
}

// Move changes a movement's state and writes its story in one commit. It is
// false, without an error, when the movement no longer stands where the caller
// saw it.
func (s *Store) Move(ctx context.Context, now time.Time, move Move) (bool, error) {
	now = micro(now)
	var refusal []byte
	if move.Refusal != nil {
		encoded, err := json.Marshal(move.Refusal)
		if err != nil {
			return false, fmt.Errorf("store: move: %w", err)
		}
		refusal = encoded
	}
	m, told := move.Movement, orNobody(move.Told)
	_, err := s.writes.MoveMovement(ctx, dbsqlc.MoveMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), FromState: string(m.State), //nolint:gosec // a small count
		ToState: string(move.To), Now: now, Event: move.Event, Detail: move.Detail,
		Result: text(move.Result), Answer: text(move.Answer), Refusal: text(refusal),
		ProviderReference: move.ProviderReference, FactID: move.FactID,
		ExpiresAt: optional(move.ExpiresAt), DueAt: optional(move.DueAt),
		CallbackID: told.ID, CallbackEvent: told.Event, CallbackUrl: told.URL, CallbackBody: string(told.Body),
		CallbackState: string(told.state()), CallbackBucket: told.bucket(), CallbackDueAt: told.dueAt(now),
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
	story, readErr := readBack(ctx, func(ctx context.Context) ([]Event, error) { return s.Story(ctx, m.ID) })
	if slices.ContainsFunc(story, func(e Event) bool {
		return e.Event == move.Event && e.Detail == move.Detail && e.At.Equal(now)
	}) {
		return true, nil
	}
	return false, fmt.Errorf("store: move: %w", errors.Join(err, readErr))
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

// Record is a fact about a movement that has ended: it changes no state.
type Record struct {
	ID     movement.ID
	At     time.Time // when it happened
	Detail string    // of the story, JSON, no secrets
	Told   *Told     // the callback that this makes, nil for none
}

// PaidLate records money that came after the movement ended without it. It is
// false when that was recorded before.
func (s *Store) PaidLate(ctx context.Context, now time.Time, r Record) (bool, error) {
	told := orNobody(r.Told)
	_, err := s.queries.RecordPaidLate(ctx, dbsqlc.RecordPaidLateParams{
		ID: uuid.UUID(r.ID), Now: micro(now), At: orNow(r.At, now), Detail: r.Detail,
		CallbackID: told.ID, CallbackEvent: told.Event, CallbackUrl: told.URL, CallbackBody: string(told.Body),
		CallbackState: string(told.state()), CallbackBucket: told.bucket(), CallbackDueAt: told.dueAt(now),
	})
	return recorded("paid late", err)
}

// Reversed records that the provider took a success back. It is false when
// that was recorded before.
func (s *Store) Reversed(ctx context.Context, now time.Time, r Record) (bool, error) {
	told := orNobody(r.Told)
	_, err := s.queries.RecordReversed(ctx, dbsqlc.RecordReversedParams{
		ID: uuid.UUID(r.ID), Now: micro(now), At: orNow(r.At, now), Detail: r.Detail,
		CallbackID: told.ID, CallbackEvent: told.Event, CallbackUrl: told.URL, CallbackBody: string(told.Body),
		CallbackState: string(told.state()), CallbackBucket: told.bucket(), CallbackDueAt: told.dueAt(now),
	})
	return recorded("reversed", err)
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

// MovementByKey reads a movement as its merchant names it, or ErrNotFound.
func (s *Store) MovementByKey(ctx context.Context, key movement.Key) (movement.Movement, error) {
	row, err := s.queries.MovementByKey(ctx, dbsqlc.MovementByKeyParams{
		MerchantID: key.Owner.MerchantID, Mode: key.Owner.Mode, Kind: string(key.Kind), Reference: key.Reference,
	})
	return one(row, err)
}

// MovementByID reads a movement by its own id, or ErrNotFound.
func (s *Store) MovementByID(ctx context.Context, id movement.ID) (movement.Movement, error) {
	row, err := s.queries.MovementByID(ctx, uuid.UUID(id))
	return one(row, err)
}

func one(row dbsqlc.Movement, err error) (movement.Movement, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return movement.Movement{}, ErrNotFound
	}
	if err != nil {
		return movement.Movement{}, fmt.Errorf("store: read movement: %w", err)
	}
	return fromRow(row)
}

func fromRow(row dbsqlc.Movement) (movement.Movement, error) {
	m := movement.Movement{
		Key: movement.Key{
			Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode},
			Kind:  manifest.Kind(row.Kind), Reference: row.Reference,
		},
		ID: movement.ID(row.ID), Attempt: int(row.Attempt), Operation: row.Operation, Provider: row.Provider,
		State: movement.State(row.State), Sequence: int(row.Sequence), Amount: money.Amount(row.Amount),
		Request: json.RawMessage(row.Request), Result: document(row.Result), Answer: document(row.Answer),
		ConnectionVersion: row.ConnectionVersion, ProviderReference: row.ProviderReference, FactID: row.FactID, CallbackURL: row.CallbackUrl,
		RequestID: row.RequestID, PolicyVersion: row.PolicyVersion, DecisionID: row.DecisionID,
		SendBy: row.SendBy.UTC(), CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(),
		ExpiresAt: orZero(row.ExpiresAt), AskedAt: orZero(row.AskedAt), Misses: int(row.Misses),
		DueAt: orZero(row.DueAt), PaidLateAt: orZero(row.PaidLateAt), ReversedAt: orZero(row.ReversedAt),
	}
	if row.Refusal != nil {
		m.Refusal = &movement.Refusal{}
		if err := json.Unmarshal([]byte(*row.Refusal), m.Refusal); err != nil {
			return movement.Movement{}, fmt.Errorf("store: movement %s: refusal: %w", m.ID, err)
		}
	}
	return m, nil
}
