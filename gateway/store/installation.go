package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// ErrUnmigrated says that the database lacks a table of this version.
var ErrUnmigrated = errors.New("store: the database lacks a table of this version")

// NameKey returns the sealed key by which references become ids of movements, nil
// where none was made yet, or ErrNotFound where it was lost.
func (s *Store) NameKey(ctx context.Context) (sealed []byte, err error) {
	sealed, err = s.queries.NameKey(ctx)
	if pgErr, refused := errors.AsType[*pgconn.PgError](err); refused && pgErr.Code == undefinedTable {
		return nil, ErrUnmigrated
	}
	if err != nil {
		return nil, fmt.Errorf("store: name key: %w", notFound(err))
	}
	return sealed, nil
}

// MakeNameKey keeps a first key, and returns the one that stands: the one given, or
// that of a replica that was faster.
func (s *Store) MakeNameKey(ctx context.Context, now time.Time, sealed []byte) ([]byte, error) {
	if err := s.queries.MakeNameKey(ctx, dbsqlc.MakeNameKeyParams{Sealed: sealed, Now: new(micro(now))}); err != nil {
		return nil, fmt.Errorf("store: make name key: %w", err)
	}
	return s.NameKey(ctx)
}
