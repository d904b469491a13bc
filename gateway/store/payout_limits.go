package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// usage is what a movement counts against payout limits, as the statements take it.
type usage struct {
	document          *string
	names, periods    []string
	amounts, ceilings []int64
}

func byName(a, b movement.Usage) int { return strings.Compare(a.Name, b.Name) }

func usageOf(m movement.Movement) (usage, error) {
	s := usage{names: []string{}, periods: []string{}, amounts: []int64{}, ceilings: []int64{}}
	if len(m.Usage) == 0 {
		return s, nil
	}
	encoded, err := json.Marshal(m.Usage)
	if err != nil {
		return s, fmt.Errorf("store: usage: %w", err)
	}
	s.document = text(encoded)
	for _, u := range slices.SortedFunc(slices.Values(m.Usage), byName) { // every movement in one order
		s.names, s.periods = append(s.names, u.Name), append(s.periods, u.Period)
		s.amounts, s.ceilings = append(s.amounts, u.Amount), append(s.ceilings, u.Ceiling)
	}
	return s, nil
}

// errRoomAgain says that a limit was reached when a reservation was tried, and is not
// any more: another movement has given back meanwhile.
var errRoomAgain = errors.New("store: a limit was reached and is free again")

// reached is the first of a movement's limits that leaves no room for it, as a
// *LimitError.
func (s *Store) reached(ctx context.Context, m movement.Movement) error {
	for _, u := range m.Usage {
		counted, err := s.queries.CountedUsage(ctx, dbsqlc.CountedUsageParams{
			MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Name: u.Name, Period: u.Period,
		})
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("store: limits: %w", err)
		}
		if counted.Used+u.Amount > u.Ceiling {
			return &movement.LimitError{Name: u.Name, Used: counted.Used, Most: u.Ceiling}
		}
	}
	return errRoomAgain
}

// LastEqual reads the newest movement of a kind with a fingerprint, or ErrNotFound.
func (s *Store) LastEqual(ctx context.Context, owner movement.Owner, kind manifest.Kind, fingerprint string) (movement.Movement, error) {
	row, err := s.queries.LastEqual(ctx, dbsqlc.LastEqualParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, Kind: string(kind), Fingerprint: fingerprint,
	})
	return s.carried(ctx, polledMovement(row), err)
}

// PaidOut reads the transfers of a movement's account that have succeeded by the
// provider's own word and may have made a row like the movement's, the newest first and
// without the movement itself. Where nothing names the account, those of other
// credentials may be another's.
func (s *Store) PaidOut(ctx context.Context, m movement.Movement, most int) ([]movement.Movement, error) {
	like := m.OthersLike()
	rows, err := s.queries.PaidOut(ctx, dbsqlc.PaidOutParams{
		MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Least: int64(like.Least), Highest: int64(like.Most), Since: like.Since,
		Provider: m.Provider, Account: m.ConnectionAccount, Version: m.ConnectionVersion, ID: uuid.UUID(m.ID), Most: int32(min(most, math.MaxInt32)), //nolint:gosec // bounded
	})
	return movementsFromRows(rows, err)
}
