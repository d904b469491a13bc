package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cockroachdb/cockroach-go/v2/crdb"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// maxRetries bounds how often a transaction is tried again after a conflict,
// on either engine.
const maxRetries = 50

// maxPause bounds the wait before a transaction is tried again.
const maxPause = time.Second

// Tx runs work in one serializable transaction, and again after a conflict:
// work must only use the queries it is given and leave nothing behind when it
// is called anew. A nil error means that the transaction is committed.
func (s *Store) Tx(ctx context.Context, work func(*dbsqlc.Queries) error) error {
	return s.within(ctx, serializable, func(tx pgx.Tx) error { return work(dbsqlc.New(reading{tx})) })
}

var serializable = pgx.TxOptions{IsoLevel: pgx.Serializable}

// within is [Store.Tx] for work that needs more than the queries, or a transaction of
// another kind.
func (s *Store) within(ctx context.Context, options pgx.TxOptions, work func(pgx.Tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("store: connection: %w", err)
	}
	defer conn.Release()
	ctx = crdb.WithMaxRetries(ctx, maxRetries)
	begin := func(ctx context.Context) (pgx.Tx, error) {
		return conn.BeginTx(ctx, options)
	}
	first, err := begin(ctx)
	if err != nil {
		return fmt.Errorf("store: begin: %w", err)
	}
	if s.engine == CockroachDB {
		tx := cockroachTx{first}
		return crdb.ExecuteInTx(ctx, tx, func() error { return work(tx.Tx) })
	}
	tx := &postgresTx{begin: begin, current: first, begun: time.Now()}
	return crdb.ExecuteInTx(ctx, tx, func() error { return retryable(work(tx.current)) })
}

// cockroachTx is the engine's own protocol: RELEASE is the commit.
type cockroachTx struct{ pgx.Tx }

func (t cockroachTx) Exec(ctx context.Context, sql string, args ...any) error {
	_, err := t.Tx.Exec(ctx, sql, args...)
	return err
}

// postgresTx gives cockroach-go's retry loop the meaning it needs on
// PostgreSQL, where a savepoint keeps the stale snapshot and RELEASE commits
// nothing: RELEASE becomes the real COMMIT with its error, and ROLLBACK TO a
// rollback, a short pause and a new transaction.
type postgresTx struct {
	begin    func(context.Context) (pgx.Tx, error)
	current  pgx.Tx
	begun    time.Time // when current was
	attempts int
}

func (t *postgresTx) Exec(ctx context.Context, sql string, _ ...any) error {
	switch sql {
	case "SAVEPOINT cockroach_restart":
		return nil
	case "RELEASE SAVEPOINT cockroach_restart":
		return retryable(t.current.Commit(ctx))
	case "ROLLBACK TO SAVEPOINT cockroach_restart":
		return t.restart(ctx)
	}
	return fmt.Errorf("store: cockroach-go sent %q, which this adapter does not know", sql)
}

func (t *postgresTx) restart(ctx context.Context) error {
	if err := t.current.Rollback(ctx); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
		return err
	}
	t.attempts++
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(t.pause()):
	}
	next, err := t.begin(ctx)
	if err != nil {
		return err
	}
	t.current, t.begun = next, time.Now()
	return nil
}

// pause is random, up to the time that the lost attempt took, doubled with each attempt.
// Pauses of a fixed length are too short where a machine is slow: the same transactions
// meet again, and one of them may lose each time.
func (t *postgresTx) pause() time.Duration {
	longest := min(time.Since(t.begun)<<min(t.attempts, 6), maxPause)
	return rand.N(longest + 1) //nolint:gosec // jitter needs no secrecy
}

// Commit is called after RELEASE has committed; there is nothing left to do.
func (t *postgresTx) Commit(context.Context) error { return nil }

func (t *postgresTx) Rollback(ctx context.Context) error {
	err := t.current.Rollback(ctx)
	if errors.Is(err, pgx.ErrTxClosed) {
		return nil
	}
	return err
}

// retryable makes a deadlock look like the serialization failure that it is,
// because cockroach-go retries 40001 alone.
func retryable(err error) error {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && pgErr.Code == deadlock {
		return &pgconn.PgError{Code: serialization, Severity: pgErr.Severity, Message: pgErr.Message, Detail: pgErr.Detail}
	}
	return err
}
