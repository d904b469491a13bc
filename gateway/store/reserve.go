package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

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
	takes, err := m.Takes()
	if err != nil {
		return movement.Movement{}, false, fmt.Errorf("store: reserve: %w", err)
	}
	for {
		reserved, ours, err := s.reserveOnce(ctx, m, takes)
		if !errors.Is(err, errRoomAgain) || ctx.Err() != nil {
			return reserved, ours, err
		}
	}
}

func (s *Store) reserveOnce(ctx context.Context, m movement.Movement, takes movement.Reserves) (movement.Movement, bool, error) {
	w, err := reserving(m, takes)
	if err != nil {
		return movement.Movement{}, false, err
	}
	err = s.reserve(ctx, &m, takes, w)
	for try := 1; err != nil && (conflicting(err) || reservedAtOnce(err)) && try < reserveTries && ctx.Err() == nil; try++ {
		err = s.reserve(ctx, &m, takes, w)
	}
	switch {
	case err == nil:
		m.State, m.UpdatedAt, m.Reserved = movement.Submitting, m.CreatedAt, movement.ReservedAmount{}
		m.ExpiresAt = orZero(optional(m.ExpiresAt))
		return m, true, nil
	case errors.Is(err, pgx.ErrNoRows), violates(err, "ledger_balances_available"), violates(err, "usage_ceiling"):
		return s.unreserved(ctx, m, takes)
	case !ambiguous(err):
		return movement.Movement{}, false, fmt.Errorf("store: reserve: %w", err)
	}
	return s.reserved(ctx, w, err)
}

// reserving is what a reservation writes.
func reserving(m movement.Movement, takes movement.Reserves) (*write, error) {
	w := &write{
		owner: m.Owner, id: uuid.UUID(m.ID), reference: m.Reference, attempt: m.Attempt, amount: m.Amount, provider: m.Provider,
		now: m.CreatedAt, reserved: &m, account: m.Reserved.Account, transition: uuid.New(),
	}
	if begins := m.Begins(); begins != nil {
		w.posted = *begins
	}
	if takes != movement.ReserveAmount {
		m.ExpiresAt = time.Time{} // the provider's word
	}
	var err error
	if takes == movement.ReserveLimits {
		w.usage, err = usageOf(m)
	}
	return w, err
}

// reserve runs the statement for what a movement takes, and completes the movement.
func (s *Store) reserve(ctx context.Context, m *movement.Movement, takes movement.Reserves, w *write) error {
	switch takes {
	case movement.ReserveAmount:
		return s.reserveAmount(ctx, m, w)
	case movement.ReserveLimits:
		return s.take(ctx, m, roomForLimits|countUsage, w)
	case movement.ReserveBalance:
		return s.take(ctx, m, roomForBalance|changeBalance|postTransaction, w)
	case movement.ReserveNothing:
	}
	return s.take(ctx, m, roomForAny, w)
}

func (s *Store) take(ctx context.Context, m *movement.Movement, p parts, w *write) error {
	var (
		id                [16]byte
		attempt, sequence int32
		amount            int64
	)
	if err := s.writer.run(ctx, p|reserveMovement|openPoll, w, &id, &attempt, &sequence, &amount); err != nil {
		return err
	}
	m.ID, m.Attempt, m.Sequence, m.Amount = movement.ID(id), int(attempt), int(sequence), money.Amount(amount)
	m.Polled = movement.Polled{DueAt: m.DueAt, Version: movement.FirstVersion(m.Sequence)}
	return nil
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

// reserved reads an ambiguous reservation back. One that is taken for ours and is
// another's would be money sent twice, so it is known by its own id, not by what it
// asks for.
func (s *Store) reserved(ctx context.Context, w *write, cause error) (movement.Movement, bool, error) {
	row, err := readBack(ctx, func(ctx context.Context) (dbsqlc.MovementByKeyRow, error) {
		row, err := s.queries.MovementByKey(ctx, dbsqlc.MovementByKeyParams{
			MerchantID: w.owner.MerchantID, Mode: w.owner.Mode, Kind: string(w.reserved.Kind), Reference: w.reference,
		})
		return row, notFound(err)
	})
	if err != nil {
		return movement.Movement{}, false, fmt.Errorf("store: reserve: %w", errors.Join(cause, err))
	}
	existing, err := asPolled(row)
	id := row.Movement.ReservationID
	return existing, err == nil && id != nil && *id == w.transition && existing.State.Unknown(), err
}

// Acknowledge keeps that a merchant is about to read pending while nobody knows yet
// whether the provider has the movement, with its creation's answer (nil for none),
// and returns the movement as it then stands. Where another answer or state came
// first, that is what stands: the caller answers by what is returned. From then on
// the reference is never free again.
func (s *Store) Acknowledge(ctx context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error) {
	row, err := s.writing(uuid.UUID(m.ID)).AcknowledgeMovement(ctx, dbsqlc.AcknowledgeMovementParams{
		ID: uuid.UUID(m.ID), Attempt: int32(m.Attempt), Answer: text(answer), //nolint:gosec // a small count
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s.MovementByID(ctx, m.ID)
	case err == nil || !ambiguous(err):
		return one(polledMovement{row.Movement, &row.Version, row.AskedAt, row.Due, &row.Misses}, err)
	}
	now, readErr := readBack(ctx, func(ctx context.Context) (movement.Movement, error) { return s.MovementByID(ctx, m.ID) })
	if readErr != nil || now.Attempt == m.Attempt && now.State == movement.Submitting {
		return movement.Movement{}, fmt.Errorf("store: acknowledge: %w", errors.Join(err, readErr))
	}
	return now, nil
}
