package store

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// Attention is an entry of the operators' list: a fact that can't be decided
// without a person. Owner, subject, reason and fact are its name.
type Attention struct {
	Owner    movement.Owner
	Subject  string // the movement's id, or what the provider called it
	Reason   string
	FactID   string // the upstream's id of the fact, or ""
	Provider string
	Detail   string // for people; no secrets
	At       time.Time
	// Lasting says that it goes on until somebody mends it. Told after it was
	// resolved, it stands on the list again, numbered behind the fact.
	Lasting bool

	ResolvedAt time.Time // zero while it is open
	ResolvedBy string
	Resolution string
}

// AddAttention puts a fact on the operators' list. It is false when the same
// fact stood there before, or of one that lasts, when it stands there still.
func (s *Store) AddAttention(ctx context.Context, a Attention) (bool, error) {
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
func (s *Store) CountAttention(ctx context.Context) (map[string]int64, error) {
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
func (s *Store) OpenAttention(ctx context.Context, most int) ([]Attention, error) {
	rows, err := s.queries.OpenAttention(ctx, int32(most)) //nolint:gosec // a page
	if err != nil {
		return nil, fmt.Errorf("store: attention: %w", err)
	}
	list := make([]Attention, len(rows))
	for i, row := range rows {
		list[i] = Attention{
			Owner:   movement.Owner{MerchantID: row.MerchantID, Mode: row.Mode},
			Subject: row.Subject, Reason: row.Reason, FactID: row.FactID,
			Provider: row.Provider, Detail: row.Detail, At: row.At.UTC(),
		}
	}
	return list, nil
}

// ResolveAttention takes an entry off the list, with who did it and why. It is
// ErrNotFound when there is no such open entry.
func (s *Store) ResolveAttention(ctx context.Context, now time.Time, a Attention, operator, resolution string) error {
	rows, err := s.queries.ResolveAttention(ctx, dbsqlc.ResolveAttentionParams{
		MerchantID: a.Owner.MerchantID, Mode: a.Owner.Mode, Subject: a.Subject, Reason: a.Reason, FactID: a.FactID,
		Now: optional(now), Operator: operator, Resolution: resolution,
	})
	if err := found(rows, err); err != nil {
		return fmt.Errorf("store: resolve attention: %w", err)
	}
	return nil
}
