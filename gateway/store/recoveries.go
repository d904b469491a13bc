package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Recovery is what operators told of a restore of the database.
type Recovery struct {
	Begun  time.Time
	Since  time.Time // of the last trace of a gateway before it; zero where there is none
	Opened time.Time // zero while nobody has opened the gateway
}

// Lasts reports whether there is a recovery, and nobody has opened the gateway since.
func (r *Recovery) Lasts() bool { return r != nil && r.Opened.IsZero() }

// startedLately is how new a gateway may be that somebody has started on the restored
// database before the recovery.
const startedLately = time.Hour

// BeginRecovery begins a recovery, unless one has begun already.
func (s *Store) BeginRecovery(ctx context.Context, now time.Time) error {
	return wrap("begin recovery", s.queries.BeginRecovery(ctx, dbsqlc.BeginRecoveryParams{
		RecoveryID: uuid.New(), BegunAt: micro(now), StartedBefore: micro(now.Add(-startedLately)),
	}))
}

// LastRecovery is the one that lasts, else the last that was ended, nil where there was
// none.
func (s *Store) LastRecovery(ctx context.Context) (*Recovery, error) {
	row, err := s.queries.LastRecovery(ctx)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("store: last recovery: %w", err)
	}
	return &Recovery{Begun: row.BegunAt.UTC(), Since: orZero(row.Since), Opened: orZero(row.OpenedAt)}, nil
}

// EndRecovery ends the recovery, with its audit entry. It is ErrNotFound where none has
// begun.
func (s *Store) EndRecovery(ctx context.Context, audit Audit) error {
	return s.administer(ctx, "end recovery", audit, tenants.Platform, func(q *dbsqlc.Queries) error {
		rows, err := q.EndRecovery(ctx, dbsqlc.EndRecoveryParams{OpenedAt: micro(audit.At), OpenedBy: audit.Operator})
		return found(rows, err)
	})
}
