package store

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// AddAttention puts a fact on the operators' list. It is false when the same
// fact stood there before, or of one that lasts, when it stands there still.
func (s *Store) AddException(ctx context.Context, a movement.Exception) (bool, error) {
	rows, err := s.queries.AddAttention(ctx, dbsqlc.AddAttentionParams{
		MerchantID: a.Owner.MerchantID, Mode: a.Owner.Mode, Subject: a.Subject, Reason: a.Reason, FactID: a.FactID,
		Provider: a.Provider, Detail: a.Detail, At: micro(a.At),
	})
	if err != nil {
		return false, fmt.Errorf("store: attention: %w", err)
	}
	if rows == 1 || !a.Lasting {
		return rows == 1, nil
	}
	rows, err = s.queries.RenewAttention(ctx, dbsqlc.RenewAttentionParams{
		MerchantID: a.Owner.MerchantID, Mode: a.Owner.Mode, Subject: a.Subject, Reason: a.Reason, FactID: a.FactID,
		Provider: a.Provider, Detail: a.Detail, At: micro(a.At),
	})
	if err != nil {
		return false, fmt.Errorf("store: attention: %w", err)
	}
	return rows == 1, nil
}

// CountAttention is how many entries are open, by reason.
func (s *Store) CountExceptions(ctx context.Context) (map[string]int64, error) {
	rows, err := s.queries.CountAttention(ctx)
	if err != nil {
		return nil, fmt.Errorf("store: attention: %w", err)
	}
	open := make(map[string]int64, len(rows))
	for _, row := range rows {
		open[row.Reason] = row.Entries
	}
	return open, nil
}

// OpenAttention lists what no operator has settled yet, the newest first.
func (s *Store) OpenExceptions(ctx context.Context, most int) ([]movement.Exception, error) {
	rows, err := s.queries.OpenAttention(ctx, int32(most)) //nolint:gosec // a page
	if err != nil {
		return nil, fmt.Errorf("store: attention: %w", err)
	}
	list := make([]movement.Exception, len(rows))
	for i, row := range rows {
		list[i] = movement.Exception{
			Owner:   movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode},
			Subject: row.Subject, Reason: row.Reason, FactID: row.FactID,
			Provider: row.Provider, Detail: row.Detail, At: row.At.UTC(),
		}
	}
	return list, nil
}

// ResolveAttention takes an entry off the list, with who did it and why. It is
// ErrNotFound when there is no such open entry.
func (s *Store) ResolveException(ctx context.Context, now time.Time, a movement.Exception, operator, resolution string) error {
	rows, err := s.queries.ResolveAttention(ctx, dbsqlc.ResolveAttentionParams{
		MerchantID: a.Owner.MerchantID, Mode: a.Owner.Mode, Subject: a.Subject, Reason: a.Reason, FactID: a.FactID,
		Now: optional(now), Operator: operator, Resolution: resolution,
	})
	if err := found(rows, err); err != nil {
		return fmt.Errorf("store: resolve attention: %w", err)
	}
	return nil
}
