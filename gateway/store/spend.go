package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// spends are a movement's as the statements take them.
type spends struct {
	document          *string
	names, periods    []string
	amounts, ceilings []int64
}

func byName(a, b movement.Usage) int { return strings.Compare(a.Name, b.Name) }

func spendsOf(m movement.Movement) (spends, error) {
	s := spends{names: []string{}, periods: []string{}, amounts: []int64{}, ceilings: []int64{}}
	if len(m.Usage) == 0 {
		return s, nil
	}
	encoded, err := json.Marshal(m.Usage)
	if err != nil {
		return s, fmt.Errorf("store: spends: %w", err)
	}
	s.document = text(encoded)
	for _, spend := range slices.SortedFunc(slices.Values(m.Usage), byName) { // all take them in one order
		s.names, s.periods = append(s.names, spend.Name), append(s.periods, spend.Period)
		s.amounts, s.ceilings = append(s.amounts, spend.Amount), append(s.ceilings, spend.Ceiling)
	}
	return s, nil
}

// claimTransfer runs the statement for a movement that counts against limits.
func (s *Store) claimTransfer(ctx context.Context, m movement.Movement, p dbsqlc.ClaimMovementParams) (dbsqlc.ClaimMovementRow, error) {
	counts, err := spendsOf(m)
	if err != nil {
		return dbsqlc.ClaimMovementRow{}, err
	}
	row, err := s.writes.ClaimTransfer(spending(ctx, m), dbsqlc.ClaimTransferParams{
		MerchantID: p.MerchantID, Mode: p.Mode, Kind: p.Kind, Reference: p.Reference,
		ID: p.ID, Attempt: p.Attempt, Operation: p.Operation, Provider: p.Provider,
		Amount: p.Amount, Quote: p.Quote, Request: p.Request,
		ConnectionOwner: p.ConnectionOwner, ConnectionVersion: p.ConnectionVersion, ConnectionAccount: p.ConnectionAccount,
		CallbackUrl: p.CallbackUrl, RequestID: p.RequestID, PolicyVersion: p.PolicyVersion, DecisionID: p.DecisionID,
		SendBy: p.SendBy, Now: p.Now, DueBucket: p.DueBucket, DueAt: p.DueAt,
		Fee: int64(m.Fee), NameMatch: m.NameMatch, Stem: m.Fingerprint, Spends: counts.document,
		SpendNames: counts.names, SpendPeriods: counts.periods, SpendAmounts: counts.amounts, SpendCeilings: counts.ceilings,
	})
	return dbsqlc.ClaimMovementRow(row), err
}

// spending tells a write whose limits it counts against, so that batches take
// them in one order, as they do balances.
func spending(ctx context.Context, m movement.Movement) context.Context {
	if len(m.Usage) == 0 {
		return ctx
	}
	return context.WithValue(ctx, balanceKey{}, m.Owner)
}

// moveTransfer runs the statement for a move that changes what is counted against
// limits.
func (s *Store) moveTransfer(ctx context.Context, move Move, p dbsqlc.MoveMovementParams) error {
	counts, err := spendsOf(move.Movement)
	if err != nil {
		return err
	}
	for i := range counts.amounts {
		counts.amounts[i] *= move.givesBack()
	}
	_, err = s.writes.MoveTransfer(spending(ctx, move.Movement), dbsqlc.MoveTransferParams{
		ID: p.ID, Attempt: p.Attempt, FromState: p.FromState, AskedBefore: p.AskedBefore,
		ToState: p.ToState, Now: p.Now, Event: p.Event, Detail: p.Detail,
		Result: p.Result, Answer: p.Answer, Refusal: p.Refusal, Cost: p.Cost,
		ProviderReference: p.ProviderReference, FactID: p.FactID, ExpiresAt: p.ExpiresAt, DueAt: p.DueAt,
		CallbackID: p.CallbackID, CallbackEvent: p.CallbackEvent, CallbackUrl: p.CallbackUrl, CallbackBody: p.CallbackBody,
		CallbackState: p.CallbackState, CallbackBucket: p.CallbackBucket, CallbackDueAt: p.CallbackDueAt,
		SpendNames: counts.names, SpendPeriods: counts.periods, SpendAmounts: counts.amounts,
	})
	return err
}

// errRoomAgain says that a limit was reached when a claim was tried, and is not any
// more: others have given back meanwhile.
var errRoomAgain = errors.New("store: a limit was reached and is free again")

// reached says which of a movement's limits leaves no room for it, as a
// *LimitError: the first.
func (s *Store) reached(ctx context.Context, m movement.Movement) error {
	for _, spend := range m.Usage {
		counted, err := s.queries.CountedUsage(ctx, dbsqlc.CountedUsageParams{
			MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Name: spend.Name, Period: spend.Period,
		})
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("store: limits: %w", err)
		}
		if counted.Used+spend.Amount > spend.Ceiling {
			return &movement.LimitError{Name: spend.Name}
		}
	}
	return errRoomAgain
}

// LastNamed reads the newest movement of a kind with a stem, or ErrNotFound.
func (s *Store) LastEqual(ctx context.Context, owner movement.Owner, kind manifest.Kind, stem string) (movement.Movement, error) {
	row, err := s.queries.LastNamed(ctx, dbsqlc.LastNamedParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, Kind: string(kind), Stem: stem,
	})
	return one(row, err)
}

// Deliver notes that the answer to a movement has reached its caller.
func (s *Store) Deliver(ctx context.Context, id movement.ID) error {
	if err := s.queries.DeliverMovement(ctx, uuid.UUID(id)); err != nil {
		return fmt.Errorf("store: deliver: %w", err)
	}
	return nil
}
