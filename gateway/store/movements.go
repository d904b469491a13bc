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
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// MovementByKey reads a movement as its merchant names it, or ErrNotFound.
func (s *Store) MovementByKey(ctx context.Context, key movement.Key) (movement.Movement, error) {
	row, err := s.single.MovementByKey(ctx, dbsqlc.MovementByKeyParams{
		MerchantID: key.Owner.MerchantID, Mode: key.Owner.Mode, Kind: string(key.Kind), Reference: key.Reference,
	})
	return s.carried(ctx, polledMovement(row), err)
}

// MovementByID reads a movement by its own id, or ErrNotFound.
func (s *Store) MovementByID(ctx context.Context, id movement.ID) (movement.Movement, error) {
	row, err := s.single.MovementByID(ctx, uuid.UUID(id))
	return s.carried(ctx, polledMovement(row), err)
}

func one(row polledMovement, err error) (movement.Movement, error) {
	if errors.Is(err, pgx.ErrNoRows) {
		return movement.Movement{}, ErrNotFound
	}
	if err != nil {
		return movement.Movement{}, fmt.Errorf("store: read movement: %w", err)
	}
	return asPolled(row)
}

// polledMovement is a row of any query that reads a movement with its row of polls.
type polledMovement = struct {
	Movement dbsqlc.Movement
	Version  *int64
	AskedAt  *time.Time
	Due      *time.Time
	Misses   *int32
}

func asPolled[R ~polledMovement](read R) (movement.Movement, error) {
	row := polledMovement(read)
	m, err := fromRow(row.Movement)
	if row.Version != nil {
		m.Polled = movement.Polled{PolledAt: orZero(row.AskedAt), Misses: int(*row.Misses), DueAt: orZero(row.Due), Version: *row.Version}
	}
	return m, err
}

func fromRow(row dbsqlc.Movement) (movement.Movement, error) {
	m := movement.Movement{
		Key: movement.Key{
			Owner: movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode},
			Kind:  manifest.Kind(row.Kind), Reference: row.Reference,
		},
		ID: movement.ID(row.ID), Attempt: int(row.Attempt), Operation: row.Operation, Provider: row.Provider,
		State: movement.State(row.State), Sequence: int(row.Sequence), Amount: money.Amount(row.Amount), Quote: document(row.Quote),
		Request: json.RawMessage(row.Request), Result: document(row.Result), Answer: document(row.Answer),
		ConnectionOwner: manifest.Owner(row.ConnectionOwner), ConnectionVersion: row.ConnectionVersion, ConnectionAccount: row.ConnectionAccount,
		ProviderReference: row.ProviderReference, FactID: row.FactID, CallbackURL: row.CallbackUrl,
		RequestID: row.RequestID, PolicyVersion: row.PolicyVersion, DecisionID: row.DecisionID,
		SendBy: row.SendBy.UTC(), CreatedAt: row.CreatedAt.UTC(), UpdatedAt: row.UpdatedAt.UTC(), ExpiresAt: orZero(row.ExpiresAt),
		ErroredAt: orZero(row.ErroredAt), PaidAt: orZero(row.PaidAt), Channel: row.Channel, PaidLateAt: orZero(row.PaidLateAt),
		ReturnedAt: orZero(row.ReversedAt), PaidAmount: money.Amount(row.PaidAmount),
		Polled:   movement.Polled{PolledAt: orZero(row.PolledAt), Misses: int(row.Misses), DueAt: orZero(row.DueAt)},
		Purchase: movement.Purchase{Cost: money.Amount(row.Cost), Charge: movement.Charge(row.Charge)},
		Payout:   movement.Payout{Fee: money.Amount(row.Fee), NameMatch: row.NameMatch, Destination: row.Destination, Fingerprint: row.Fingerprint},
	}
	if row.Usage != nil {
		if err := json.Unmarshal([]byte(*row.Usage), &m.Usage); err != nil {
			return movement.Movement{}, fmt.Errorf("store: movement %s: usage: %w", m.ID, err)
		}
	}
	if row.Returns != nil {
		if err := json.Unmarshal([]byte(*row.Returns), &m.Returns); err != nil {
			return movement.Movement{}, fmt.Errorf("store: movement %s: returns: %w", m.ID, err)
		}
	}
	if row.Refusal != nil {
		m.Refusal = &movement.Refusal{}
		if err := json.Unmarshal([]byte(*row.Refusal), m.Refusal); err != nil {
			return movement.Movement{}, fmt.Errorf("store: movement %s: refusal: %w", m.ID, err)
		}
	}
	return m, nil
}
