package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// sharedCommits runs single-statement writes that arrive together in one
// commit: a batch is what arrived while the last one was being committed, so
// nothing ever waits for a timer. Each statement has its own result. Where one
// fails, all are undone by the database, and each is tried by itself.
//
// It is a DBTX of package dbsqlc, of which it serves QueryRow alone.
type sharedCommits struct {
	pool  *pgxpool.Pool
	queue chan *sharedWrite
	done  sync.WaitGroup

	mu     sync.RWMutex // held for writing while closing, so that nothing is queued after the last batch
	closed bool
}

// sharedWrite is one statement with the place for its result. It belongs to the
// flusher from the moment it is queued until its result is sent.
type sharedWrite struct {
	ctx     context.Context // of who waits; it ends no batch
	sql     string
	args    []any
	into    []any
	balance movement.Owner // whose balance it changes; none for nobody's
	result  chan error
}

const (
	sharedAtMost = 256
	// SharedTimeout bounds a batch: a write is committed at most so long after its
	// context has ended.
	SharedTimeout = 3 * time.Second
)

func newSharedCommits(pool *pgxpool.Pool) *sharedCommits {
	s := &sharedCommits{pool: pool, queue: make(chan *sharedWrite, sharedAtMost)}
	s.done.Go(s.run)
	return s
}

// close waits for the last batch. What is written after it fails.
func (s *sharedCommits) close() {
	s.mu.Lock()
	s.closed = true
	close(s.queue)
	s.mu.Unlock()
	s.done.Wait()
}

func (s *sharedCommits) enqueue(write *sharedWrite) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return errClosed
	}
	s.queue <- write
	return nil
}

// QueryRow queues a statement when its row is scanned. The scan returns once
// the commit it shared is through, also when the context has ended meanwhile:
// who wrote must learn what became of it, and a batch is bounded in time.
// What has waited so long that its context ended before its batch began is not
// written at all.
func (s *sharedCommits) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	owner, _ := ctx.Value(balanceKey{}).(movement.Owner)
	return &sharedRow{commits: s, write: sharedWrite{ctx: ctx, sql: sql, args: args, balance: owner, result: make(chan error, 1)}}
}

type balanceKey struct{}

// changing says in a write's context whose balance it changes by some legs.
func changing(ctx context.Context, owner movement.Owner, legs ledger.Legs) context.Context {
	if legs.Available == 0 && legs.Held == 0 {
		return ctx
	}
	return context.WithValue(ctx, balanceKey{}, owner)
}

// byBalance is the order in which every replica's batches take balances, so that
// no two wait for each other.
func byBalance(a, b *sharedWrite) int {
	return cmp.Or(strings.Compare(a.balance.MerchantID, b.balance.MerchantID), strings.Compare(a.balance.Mode, b.balance.Mode))
}

var (
	errSharedOnly = errors.New("store: shared commits are for single-row statements")
)

// Exec is not served.
func (s *sharedCommits) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, errSharedOnly
}

// Query is not served.
func (s *sharedCommits) Query(context.Context, string, ...any) (pgx.Rows, error) {
	return nil, errSharedOnly
}

type sharedRow struct {
	commits *sharedCommits
	write   sharedWrite
}

// Scan queues the statement and waits for its result.
func (r *sharedRow) Scan(into ...any) error {
	r.write.into = into
	if err := r.commits.enqueue(&r.write); err != nil {
		return err
	}
	return <-r.write.result
}

func (s *sharedCommits) run() {
	batch := make([]*sharedWrite, 0, sharedAtMost)
	for first := range s.queue {
		batch = append(batch[:0], first)
		for len(batch) < sharedAtMost && len(s.queue) > 0 {
			batch = append(batch, <-s.queue)
		}
		s.flush(batch)
	}
}

func (s *sharedCommits) flush(batch []*sharedWrite) {
	if batch = slices.DeleteFunc(batch, (*sharedWrite).outlived); len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), SharedTimeout)
	defer cancel()
	if len(batch) == 1 {
		s.alone(ctx, batch[0])
		return
	}
	slices.SortStableFunc(batch, byBalance)
	results, err := s.together(ctx, batch)
	switch {
	case err == nil:
		for i, write := range batch {
			write.result <- results[i]
		}
	case ambiguous(err):
		for _, write := range batch {
			write.result <- err // each reads its own back
		}
	default:
		s.eachAlone(ctx, batch)
	}
}

// outlived tells whether nobody waits for a write any more, and if so sends
// its result: it was not begun.
func (w *sharedWrite) outlived() bool {
	if w.ctx.Err() == nil {
		return false
	}
	w.result <- notBegun{w.ctx.Err()}
	return true
}

// together commits a batch. Its error is the batch's; each write's own is either nil
// or pgx.ErrNoRows.
func (s *sharedCommits) together(ctx context.Context, batch []*sharedWrite) ([]error, error) {
	var statements pgx.Batch
	for _, write := range batch {
		statements.Queue(write.sql, write.args...)
	}
	rows := s.pool.SendBatch(ctx, &statements)
	results := make([]error, len(batch))
	for i, write := range batch {
		results[i] = rows.QueryRow().Scan(write.into...)
		if results[i] != nil && !errors.Is(results[i], pgx.ErrNoRows) {
			err := results[i]
			_ = rows.Close() // it repeats the error
			return nil, err
		}
	}
	return results, rows.Close()
}

// eachAlone finds out which statement of a batch was at fault, in parallel so
// that the others wait as little as possible.
func (s *sharedCommits) eachAlone(ctx context.Context, batch []*sharedWrite) {
	var tries sync.WaitGroup
	for _, write := range batch {
		tries.Go(func() { s.alone(ctx, write) })
	}
	tries.Wait()
}

func (s *sharedCommits) alone(ctx context.Context, write *sharedWrite) {
	write.result <- s.pool.QueryRow(ctx, write.sql, write.args...).Scan(write.into...)
}
