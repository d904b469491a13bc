package store

import (
	"context"
	"fmt"

	"github.com/seed-f006e74d/gerbang/gateway/limit/leasing"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// conflictsAtMost is how often asks are tried again that met others.
const conflictsAtMost = 5

// LeaseRates asks many buckets of rates in one statement, each at most once, and answers
// in the order of the asks. A bucket that is not there is full. After an error nobody
// knows what was granted and paid. No asks find out whether the database takes them.
func (s *Store) LeaseRates(ctx context.Context, asks []leasing.Ask) ([]leasing.Grant, error) {
	type bucket struct{ merchant, mode, name string }
	var p dbsqlc.LeaseRatesParams
	places := make(map[bucket]int, len(asks))
	for i, a := range asks {
		places[bucket{a.Merchant, a.Mode, a.Name}] = i
		p.Merchants, p.Modes, p.Names = append(p.Merchants, a.Merchant), append(p.Modes, a.Mode), append(p.Names, a.Name)
		p.Paces, p.Bursts = append(p.Paces, a.PerSecond), append(p.Bursts, float64(a.Burst))
		p.Debts, p.Lates, p.Wants = append(p.Debts, a.Owed), append(p.Lates, a.Late), append(p.Wants, float64(a.Want))
	}
	rows, err := s.queries.LeaseRates(ctx, p)
	for tries := 1; conflicting(err) && tries < conflictsAtMost; tries++ { // such a statement has changed nothing
		rows, err = s.queries.LeaseRates(ctx, p)
	}
	if err == nil && len(rows) != len(asks) {
		err = fmt.Errorf("%d answers to %d asks", len(rows), len(asks))
	}
	if err != nil {
		return nil, fmt.Errorf("store: lease rates: %w", err)
	}
	grants := make([]leasing.Grant, len(asks))
	for _, row := range rows {
		grants[places[bucket{row.MerchantID, row.Mode, row.Name}]] = leasing.Grant{Granted: row.Granted, Left: row.Tokens}
	}
	return grants, nil
}

// DropRates removes up to most buckets of rates that are full again, and tells how many.
func (s *Store) DropRates(ctx context.Context, most int) (int64, error) {
	rows, err := s.queries.DropRates(ctx, int64(most))
	if err != nil {
		return 0, fmt.Errorf("store: drop rates: %w", err)
	}
	return rows, nil
}
