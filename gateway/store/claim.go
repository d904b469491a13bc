package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Reserve commits the intent of a movement: its reference is taken, it stands as
// sending, and what it is charged or held for has left the available balance, or
// none of it. It returns the movement as claimed, with the id and attempt under
// which the provider is asked, and true; or the movement that has the reference
// already, and false. It is ErrInsufficient where the reference is free and the
// balance too small. An attempt that the caller names is claimed as that one or
// not at all, and lies above all earlier ones; 0 is the next. Where the commit's fate was unclear it is read back: any
// error means that this claim must not be acted upon.
func (s *Store) Reserve(ctx context.Context, m movement.Movement) (movement.Movement, bool, error) {
	m.CreatedAt, m.SendBy, m.DueAt = micro(m.CreatedAt), micro(m.SendBy), orZero(optional(m.DueAt))
	begins, err := beginning(m)
	if err != nil {
		return movement.Movement{}, false, err
	}
	for {
		claimed, ours, err := s.claimOnce(ctx, m, begins)
		if !errors.Is(err, errRoomAgain) || ctx.Err() != nil {
			return claimed, ours, err
		}
	}
}

func (s *Store) claimOnce(ctx context.Context, m movement.Movement, begins ledger.Transaction) (movement.Movement, bool, error) {
	row, err := s.claim(ctx, m, begins)
	for try := 1; conflicting(err) && try < claimTries && ctx.Err() == nil; try++ {
		row, err = s.claim(ctx, m, begins)
	}
	switch {
	case err == nil:
		m.ID, m.Attempt, m.Sequence = movement.ID(row.ID), int(row.Attempt), int(row.Sequence)
		m.State, m.UpdatedAt, m.Reserved = movement.Submitting, m.CreatedAt, movement.ReservedAmount{}
		m.Amount, m.ExpiresAt = money.Amount(row.Amount), orZero(optional(m.ExpiresAt))
		return m, true, nil
	case errors.Is(err, pgx.ErrNoRows), violates(err, "ledger_balances_available"), violates(err, "usage_ceiling"):
		return s.unclaimed(ctx, m)
	case !ambiguous(err):
		return movement.Movement{}, false, fmt.Errorf("store: claim: %w", err)
	}
	return s.claimed(ctx, m, err)
}

// claim runs the statement for a movement that is paid from a balance, or the one
// for a movement that is not.
func (s *Store) claim(ctx context.Context, m movement.Movement, begins ledger.Transaction) (dbsqlc.ClaimCollectionRow, error) {
	p := dbsqlc.ClaimMovementParams{
		MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Kind: string(m.Kind), Reference: m.Reference,
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), Operation: m.Operation, Provider: m.Provider, //nolint:gosec // a small count
		Amount: int64(m.Amount), Cost: int64(m.Cost), Quote: text(m.Quote), Request: string(m.Request),
		ConnectionOwner: string(m.ConnectionOwner), ConnectionVersion: m.ConnectionVersion, ConnectionAccount: m.ConnectionAccount,
		CallbackUrl: m.CallbackURL, RequestID: m.RequestID, PolicyVersion: m.PolicyVersion, DecisionID: m.DecisionID,
		SendBy: m.SendBy, Now: m.CreatedAt, DueBucket: int32(m.ID.Bucket()), DueAt: optional(m.DueAt), //nolint:gosec // below Buckets
	}
	switch {
	case m.Kind == manifest.Transfer:
		return asAsked(m)(s.claimTransfer(ctx, m, p))
	case m.Kind == manifest.Collection:
		return s.claimCollection(ctx, m, p)
	case m.Charge == movement.Unpaid:
		return asAsked(m)(s.writes.ClaimMovement(ctx, p))
	}
	row, err := s.writes.ClaimPaid(changing(ctx, m.Owner, begins.Legs), dbsqlc.ClaimPaidParams{
		MerchantID: p.MerchantID, Mode: p.Mode, Kind: p.Kind, Reference: p.Reference,
		ID: p.ID, Attempt: p.Attempt, Operation: p.Operation, Provider: p.Provider,
		Amount: p.Amount, Cost: p.Cost, Quote: p.Quote, Request: p.Request,
		ConnectionOwner: p.ConnectionOwner, ConnectionVersion: p.ConnectionVersion, ConnectionAccount: p.ConnectionAccount,
		CallbackUrl: p.CallbackUrl, RequestID: p.RequestID, PolicyVersion: p.PolicyVersion, DecisionID: p.DecisionID,
		SendBy: p.SendBy, Now: p.Now, DueBucket: p.DueBucket, DueAt: p.DueAt, Charge: string(m.Charge),
		PostedKind: string(begins.Kind), PostedAvailable: int64(begins.Available), PostedHeld: int64(begins.Held), PostedMargin: int64(begins.Margin),
	})
	return asAsked(m)(dbsqlc.ClaimMovementRow(row), err)
}

// asAsked is the row of a claim that has the amount that was asked for.
func asAsked(m movement.Movement) func(dbsqlc.ClaimMovementRow, error) (dbsqlc.ClaimCollectionRow, error) {
	return func(row dbsqlc.ClaimMovementRow, err error) (dbsqlc.ClaimCollectionRow, error) {
		return dbsqlc.ClaimCollectionRow{ID: row.ID, Attempt: row.Attempt, Sequence: row.Sequence, Amount: int64(m.Amount)}, err
	}
}

// beginning is how the paying of a movement begins; the zero transaction where it
// is not paid.
func beginning(m movement.Movement) (ledger.Transaction, error) {
	switch m.Charge {
	case movement.Unpaid:
		return ledger.Transaction{}, nil
	case movement.Charged:
		return ledger.BeginCharge(m.Amount), nil
	case movement.Held:
		return ledger.BeginHold(m.Amount), nil
	}
	return ledger.Transaction{}, fmt.Errorf("store: claim: there is no charge %q", m.Charge)
}

// claimTries is how often a claim is tried that another one was in the way of.
const claimTries = 5

// conflicting tells whether a statement was undone for another's sake, and may
// succeed the next time.
func conflicting(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pgErr.Code == "40001" || pgErr.Code == "40P01")
}

// violates tells whether a statement was undone because others had taken from the
// same between its look at it and its own taking.
func violates(err error, constraint string) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == checkViolation && pgErr.ConstraintName == constraint
}

// unclaimed finds out why nothing was claimed: the reference is taken, the balance
// too small, or a limit of money out reached.
func (s *Store) unclaimed(ctx context.Context, m movement.Movement) (movement.Movement, bool, error) {
	existing, err := s.MovementByKey(ctx, m.Key)
	missing := errors.Is(err, ErrNotFound)
	free := missing || err == nil && existing.State == movement.NotSubmitted && (m.Attempt == 0 || m.Attempt > existing.Attempt)
	switch {
	case free && m.Kind == manifest.Collection:
		return movement.Movement{}, false, s.uncollected(ctx, m)
	case err != nil && !missing, !free, m.Charge == movement.Unpaid && len(m.Usage) == 0:
		return existing, false, err
	case m.Charge == movement.Unpaid:
		return movement.Movement{}, false, s.reached(ctx, m)
	case missing:
		return movement.Movement{}, false, movement.ErrInsufficient
	}
	balance, err := s.Balance(ctx, m.Owner)
	if err == nil && balance.Available < m.Amount {
		return movement.Movement{}, false, movement.ErrInsufficient
	}
	return existing, false, err // it was freed, or the balance filled, at this very moment
}

// claimed reads an ambiguous claim back.
func (s *Store) claimed(ctx context.Context, m movement.Movement, cause error) (movement.Movement, bool, error) {
	existing, err := readBack(ctx, func(ctx context.Context) (movement.Movement, error) { return s.MovementByKey(ctx, m.Key) })
	if err != nil {
		return movement.Movement{}, false, fmt.Errorf("store: claim: %w", errors.Join(cause, err))
	}
	return existing, existing.State == movement.Submitting && sameClaim(existing, m), nil
}

// sameClaim tells our claim from another's, of which one too many would be money
// sent twice. The id is random and made for the claim; one that took over the row
// of an attempt never sent has that row's, and is known by its request and times.
func sameClaim(existing, ours movement.Movement) bool {
	return (existing.ID == ours.ID || existing.Attempt > 1) && existing.RequestID == ours.RequestID &&
		existing.CreatedAt.Equal(ours.CreatedAt) && existing.SendBy.Equal(ours.SendBy) && existing.SameRequest(ours.Request)
}

// Promise keeps the answer that a merchant is about to get while nobody knows
// yet whether the provider has the movement, and returns the movement as it then
// stands. Where somebody else was first (an answer, or another state) that is
// what stands: whoever promises answers by what is returned. From then on the
// reference is never free again.
func (s *Store) Acknowledge(ctx context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error) {
	row, err := s.writes.PromiseMovement(ctx, dbsqlc.PromiseMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), Answer: string(answer), //nolint:gosec // a small count
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s.MovementByID(ctx, m.ID)
	case err == nil || !ambiguous(err):
		return one(row, err)
	}
	now, readErr := readBack(ctx, func(ctx context.Context) (movement.Movement, error) { return s.MovementByID(ctx, m.ID) })
	if readErr != nil || now.Answer == nil && now.Attempt == m.Attempt && now.State == movement.Submitting {
		return movement.Movement{}, fmt.Errorf("store: promise: %w", errors.Join(err, readErr))
	}
	return now, nil
}
