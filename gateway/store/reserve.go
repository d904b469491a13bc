package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Reserve commits the intent of a movement: its reference, and with it what its kind
// reserves, or nothing. It returns the movement as reserved, with the id and attempt
// under which the provider is called, and true; or the movement that has the
// reference already, and false. It is ErrInsufficient, a *LimitError or a
// *NoAmountError where the reference is free and the balance, a payout limit or the
// account has no room. An attempt that the caller names is reserved as that one or
// not at all, and lies above all earlier ones; 0 is the next. An unclear commit is
// read back: after any error the movement must not be submitted.
func (s *Store) Reserve(ctx context.Context, m movement.Movement) (movement.Movement, bool, error) {
	m.CreatedAt, m.SendBy, m.DueAt = micro(m.CreatedAt), micro(m.SendBy), orZero(optional(m.DueAt))
	what, err := reservationOf(m)
	if err != nil {
		return movement.Movement{}, false, err
	}
	for {
		reserved, ours, err := s.reserveOnce(ctx, m, what)
		if !errors.Is(err, errRoomAgain) || ctx.Err() != nil {
			return reserved, ours, err
		}
	}
}

// reservation is what a movement takes besides its reference.
type reservation struct {
	takes  movement.Reserves
	begins *ledger.Transaction // where it takes from the balance
}

func reservationOf(m movement.Movement) (reservation, error) {
	rules, known := movement.RulesOf(m.Kind)
	what := reservation{takes: rules.Reserves, begins: m.Begins()}
	switch unpaid := m.Charge == movement.Unpaid; {
	case !known:
		return what, fmt.Errorf("store: reserve: %w: there is no kind %q", ErrInvalid, m.Kind)
	case !unpaid && what.begins == nil:
		return what, fmt.Errorf("store: reserve: %w: there is no charge %q", ErrInvalid, m.Charge)
	case !unpaid && what.takes != movement.ReserveBalance:
		return what, fmt.Errorf("store: reserve: %w: a %s takes nothing from a balance", ErrInvalid, m.Kind)
	case unpaid && what.takes == movement.ReserveBalance:
		what.takes = movement.ReserveNothing
	}
	return what, nil
}

func (s *Store) reserveOnce(ctx context.Context, m movement.Movement, what reservation) (movement.Movement, bool, error) {
	row, err := s.reserve(ctx, m, what)
	for try := 1; err != nil && (conflicting(err) || reservedAtOnce(err)) && try < reserveTries && ctx.Err() == nil; try++ {
		row, err = s.reserve(ctx, m, what)
	}
	switch {
	case err == nil:
		m.ID, m.Attempt, m.Sequence = movement.ID(row.ID), int(row.Attempt), int(row.Sequence)
		m.State, m.UpdatedAt, m.Reserved = movement.Submitting, m.CreatedAt, movement.ReservedAmount{}
		m.Amount, m.ExpiresAt = money.Amount(row.Amount), orZero(optional(m.ExpiresAt))
		return m, true, nil
	case errors.Is(err, pgx.ErrNoRows), violates(err, "ledger_balances_available"), violates(err, "usage_ceiling"):
		return s.unreserved(ctx, m, what.takes)
	case !ambiguous(err):
		return movement.Movement{}, false, fmt.Errorf("store: reserve: %w", err)
	}
	return s.reserved(ctx, m, err)
}

// reserve runs the statement for what a movement takes.
func (s *Store) reserve(ctx context.Context, m movement.Movement, what reservation) (dbsqlc.ReserveAmountRow, error) {
	p := dbsqlc.ReserveMovementParams{
		MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Kind: string(m.Kind), Reference: m.Reference,
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), Operation: m.Operation, Provider: m.Provider, //nolint:gosec // a small count
		Amount: int64(m.Amount), Cost: int64(m.Cost), Quote: text(m.Quote), Request: string(m.Request),
		ConnectionOwner: string(m.ConnectionOwner), ConnectionVersion: m.ConnectionVersion, ConnectionAccount: m.ConnectionAccount,
		CallbackUrl: m.CallbackURL, RequestID: m.RequestID, PolicyVersion: m.PolicyVersion, DecisionID: m.DecisionID,
		SendBy: m.SendBy, Now: m.CreatedAt, DueBucket: int32(m.ID.Bucket()), DueAt: optional(m.DueAt), //nolint:gosec // below Buckets
	}
	switch what.takes {
	case movement.ReserveAmount:
		return s.reserveAmount(ctx, m, p)
	case movement.ReserveLimits:
		return sameAmount(m)(s.reserveLimits(ctx, m, p))
	case movement.ReserveBalance:
		return sameAmount(m)(s.reserveBalance(ctx, m, p, what.begins))
	case movement.ReserveNothing:
	}
	return sameAmount(m)(s.writes.ReserveMovement(ctx, p))
}

// reserveBalance runs the statement for a movement that is paid from a balance.
func (s *Store) reserveBalance(
	ctx context.Context, m movement.Movement, p dbsqlc.ReserveMovementParams, begins *ledger.Transaction,
) (dbsqlc.ReserveMovementRow, error) {
	row, err := s.writes.ReserveBalance(changing(ctx, m.Owner, begins.Legs), dbsqlc.ReserveBalanceParams{
		MerchantID: p.MerchantID, Mode: p.Mode, Kind: p.Kind, Reference: p.Reference,
		ID: p.ID, Attempt: p.Attempt, Operation: p.Operation, Provider: p.Provider,
		Amount: p.Amount, Cost: p.Cost, Quote: p.Quote, Request: p.Request,
		ConnectionOwner: p.ConnectionOwner, ConnectionVersion: p.ConnectionVersion, ConnectionAccount: p.ConnectionAccount,
		CallbackUrl: p.CallbackUrl, RequestID: p.RequestID, PolicyVersion: p.PolicyVersion, DecisionID: p.DecisionID,
		SendBy: p.SendBy, Now: p.Now, DueBucket: p.DueBucket, DueAt: p.DueAt, Charge: string(m.Charge),
		PostedKind: string(begins.Kind), PostedAvailable: int64(begins.Available), PostedHeld: int64(begins.Held), PostedMargin: int64(begins.Margin),
	})
	return dbsqlc.ReserveMovementRow(row), err
}

// sameAmount is the row of a reservation that keeps the movement's amount.
func sameAmount(m movement.Movement) func(dbsqlc.ReserveMovementRow, error) (dbsqlc.ReserveAmountRow, error) {
	return func(row dbsqlc.ReserveMovementRow, err error) (dbsqlc.ReserveAmountRow, error) {
		return dbsqlc.ReserveAmountRow{ID: row.ID, Attempt: row.Attempt, Sequence: row.Sequence, Amount: int64(m.Amount)}, err
	}
}

// reserveTries is how often a reservation is tried that conflicts with another.
const reserveTries = 5

// unreserved finds out why nothing was reserved: the reference is taken, or what the
// movement takes has no room.
func (s *Store) unreserved(ctx context.Context, m movement.Movement, takes movement.Reserves) (movement.Movement, bool, error) {
	existing, err := s.MovementByKey(ctx, m.Key)
	missing := errors.Is(err, ErrNotFound)
	free := missing || err == nil && existing.State == movement.NotSubmitted && (m.Attempt == 0 || m.Attempt > existing.Attempt)
	if !free {
		return existing, false, err
	}
	switch takes {
	case movement.ReserveAmount:
		return movement.Movement{}, false, s.noAmount(ctx, m)
	case movement.ReserveLimits:
		if len(m.Usage) > 0 {
			return movement.Movement{}, false, s.reached(ctx, m)
		}
	case movement.ReserveBalance:
		if missing {
			return movement.Movement{}, false, movement.ErrInsufficient
		}
		balance, balanceErr := s.Balance(ctx, m.Owner)
		if balanceErr == nil && balance.Available < m.Amount {
			return movement.Movement{}, false, movement.ErrInsufficient
		}
		return existing, false, balanceErr
	case movement.ReserveNothing:
	}
	return existing, false, err // it was freed, or the balance filled, at this very moment
}

// reserved reads an ambiguous reservation back.
func (s *Store) reserved(ctx context.Context, m movement.Movement, cause error) (movement.Movement, bool, error) {
	existing, err := readBack(ctx, func(ctx context.Context) (movement.Movement, error) { return s.MovementByKey(ctx, m.Key) })
	if err != nil {
		return movement.Movement{}, false, fmt.Errorf("store: reserve: %w", errors.Join(cause, err))
	}
	return existing, slices.Contains(notYetKnown, string(existing.State)) && sameReservation(existing, m), nil
}

// notYetKnown are the states in which nobody knows yet whether the provider has a
// movement.
var notYetKnown = []string{string(movement.Submitting), string(movement.Acknowledged)}

// sameReservation tells our reservation from another's, of which one too many would
// be money sent twice. One reference has one id, so it is known by its request and
// times.
func sameReservation(existing, ours movement.Movement) bool {
	return existing.RequestID == ours.RequestID &&
		existing.CreatedAt.Equal(ours.CreatedAt) && existing.SendBy.Equal(ours.SendBy) && existing.SameRequest(ours.Request)
}

// Acknowledge keeps that a merchant is about to read pending while nobody knows yet
// whether the provider has the movement, with its creation's answer (nil for none),
// and returns the movement as it then stands. Where another answer or state came
// first, that is what stands: the caller answers by what is returned. From then on
// the reference is never free again.
func (s *Store) Acknowledge(ctx context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error) {
	row, err := s.writes.AcknowledgeMovement(ctx, dbsqlc.AcknowledgeMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), Answer: text(answer), //nolint:gosec // a small count
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s.MovementByID(ctx, m.ID)
	case err == nil || !ambiguous(err):
		return one(row.Movement, err)
	}
	now, readErr := readBack(ctx, func(ctx context.Context) (movement.Movement, error) { return s.MovementByID(ctx, m.ID) })
	if readErr != nil || now.Attempt == m.Attempt && now.State == movement.Submitting {
		return movement.Movement{}, fmt.Errorf("store: acknowledge: %w", errors.Join(err, readErr))
	}
	return now, nil
}
