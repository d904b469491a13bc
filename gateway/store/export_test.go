package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// AttemptPause lies between attempts to connect.
const AttemptPause = attemptPause

// ConnectTimeout bounds the attempt at one host.
const ConnectTimeout = connectTimeout

// CountReads counts what is read of many rows from now on.
func (s *Store) CountReads(n *int) { s.queries = dbsqlc.New(readCounter{s.pool, n}) }

type readCounter struct {
	*pgxpool.Pool
	reads *int
}

// Query counts.
func (c readCounter) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	*c.reads++
	return c.Pool.Query(ctx, sql, args...) //nolint:rowserrcheck // whoever reads them does
}

// Age makes the last write that the engine could not make so much older.
func (s *Store) Age(by time.Duration) {
	if broken := s.writer.broken.Load(); broken != nil {
		s.writer.broken.Store(&breakage{at: broken.at.Add(-by), err: broken.err})
	}
}

// Reservation is the statement of a reservation that takes nothing but the reference,
// and its values, so that a benchmark can run the very same without the store.
func Reservation(m movement.Movement) (sql string, values []any) {
	w, err := reserving(m, movement.ReserveNothing)
	if err != nil {
		panic(err)
	}
	s := statements[roomForAny|reserveMovement|openPoll]
	return s.sql, s.args(w)
}

// Move is likewise the statement of a move that is only written to the history.
func Move(c movement.Change) (sql string, values []any) {
	w := changing(c)
	for _, state := range c.From {
		w.from = append(w.from, string(state))
	}
	s := statements[pollKept|moveMovement|logHistory]
	return s.sql, s.args(w)
}

// Columns takes a row in as the store does.
func Columns(into ...any) pgx.RowScanner { return columns(into) }

// OldestOf is Oldest with another bound.
func (s *Store) OldestOf(ctx context.Context, now time.Time, most int64) (Oldest, error) {
	return s.oldest(ctx, now, most)
}
