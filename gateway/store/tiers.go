package store

import (
	"context"
	"fmt"
)

// MerchantsByTier counts the merchants of each tier, whatever their status.
func (s *Store) MerchantsByTier(ctx context.Context) (map[string]int, error) {
	rows, err := s.queries.MerchantsByTier(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: merchants by tier: %w", err)
	}
	counts := make(map[string]int, len(rows))
	for _, row := range rows {
		counts[row.Tier] = int(row.Merchants)
	}
	return counts, nil
}

// MerchantsThere says of each id whether there is such a merchant.
func (s *Store) MerchantsThere(ctx context.Context, ids []string) (map[string]bool, error) {
	there := make(map[string]bool, len(ids))
	for _, id := range ids {
		there[id] = false
	}
	if len(ids) == 0 {
		return there, nil
	}
	found, err := s.queries.MerchantsThere(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("store: merchants: %w", err)
	}
	for _, id := range found {
		there[id] = true
	}
	return there, nil
}
