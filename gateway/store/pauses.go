package store

import (
	"context"
	"fmt"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// SetPause pauses something, or says anew why it is paused; since when stays.
func (s *Store) SetPause(ctx context.Context, audit Audit, p tenants.Pause) error {
	return s.administer(ctx, "pause", audit, p.MerchantID, func(q *dbsqlc.Queries) error {
		return q.PutPause(ctx, dbsqlc.PutPauseParams{
			MerchantID: string(p.MerchantID), What: string(p.What), Provider: string(p.Provider), Mode: string(p.Mode),
			Reason: p.Reason, SetBy: audit.Operator, SetAt: micro(audit.At),
		})
	})
}

// EndPause lets something go on, or is ErrNotFound where it is not paused.
func (s *Store) EndPause(ctx context.Context, audit Audit, p tenants.Pause) error {
	return s.administer(ctx, "resume", audit, p.MerchantID, func(q *dbsqlc.Queries) error {
		return found(q.DeletePause(ctx, dbsqlc.DeletePauseParams{
			MerchantID: string(p.MerchantID), What: string(p.What), Provider: string(p.Provider), Mode: string(p.Mode),
		}))
	})
}

// Pauses lists what is paused, by whose account it is.
func (s *Store) Pauses(ctx context.Context, most int) ([]tenants.Pause, error) {
	rows, err := s.queries.Pauses(ctx, int32(most)) //nolint:gosec // a page
	if err != nil {
		return nil, fmt.Errorf("store: pauses: %w", err)
	}
	return pausesFromRows(rows), nil
}

// RemoveConnection forgets an account at a provider, with its pause and its
// notification route. It is ErrNotFound where there is none, or where it is not
// paused; an *OpenError where movements are open on it that are not to be left so.
func (s *Store) RemoveConnection(ctx context.Context, audit Audit, c tenants.Connection, leaveOpen bool) error {
	// It is counted before: on what is paused nothing begins, and a serializable transaction
	// that reads all polls would conflict with every other.
	open, err := s.queries.OpenMovementsOfConnection(ctx, dbsqlc.OpenMovementsOfConnectionParams{
		Provider: string(c.Provider), Mode: string(c.Mode), Platform: c.MerchantID == tenants.Platform, MerchantID: string(c.MerchantID),
	})
	if err != nil {
		return fmt.Errorf("store: remove connection: %w", err)
	}
	if open > 0 && !leaveOpen {
		return &OpenError{Open: open}
	}
	return s.administer(ctx, "remove connection", audit, c.MerchantID, func(q *dbsqlc.Queries) error {
		if err := found(q.DeletePausedConnection(ctx, dbsqlc.DeletePausedConnectionParams{
			MerchantID: string(c.MerchantID), Provider: string(c.Provider), Mode: string(c.Mode),
		})); err != nil {
			return err
		}
		return found(q.DeletePause(ctx, dbsqlc.DeletePauseParams{
			MerchantID: string(c.MerchantID), What: string(tenants.PauseConnection), Provider: string(c.Provider), Mode: string(c.Mode),
		}))
	})
}

// OpenError says that movements are open which nobody could be asked about any more.
type OpenError struct{ Open int64 }

// Error tells how many.
func (e *OpenError) Error() string { return fmt.Sprintf("store: %d movements are open", e.Open) }

func pausesFromRows(rows []dbsqlc.Pause) []tenants.Pause {
	pauses := make([]tenants.Pause, len(rows))
	for i, row := range rows {
		pauses[i] = tenants.Pause{
			MerchantID: tenants.MerchantID(row.MerchantID), What: tenants.Pausable(row.What), Provider: tenants.Provider(row.Provider),
			Mode: tenants.Mode(row.Mode), Reason: row.Reason, SetBy: row.SetBy, SetAt: row.SetAt.UTC(),
		}
	}
	return pauses
}
