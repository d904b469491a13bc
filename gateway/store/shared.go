package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sharedCommits runs single-statement writes that arrive together in one
// commit: a batch is what arrived while the last one was being committed, so
// nothing ever waits for a timer. Each statement has its own result. Where one
// fails, all are undone by the database, and each is tried by itself while the next
// batch is committed.
type sharedCommits struct {
	pool   *pgxpool.Pool
	locked *lockedRows
	queue  chan *sharedWrite
	done   sync.WaitGroup

	mu     sync.RWMutex // held for writing while closing, so that nothing is queued after the last batch
	closed bool
}

// sharedWrite is one statement with the place for its result. It belongs to the
// flusher from the moment it is queued until its result is sent.
type sharedWrite struct {
	ctx    context.Context // of who waits; it ends no batch
	name   string          // of what is composed
	sql    string
	args   []any
	into   []any
	row    rowName // that it is about
	hot    rowName // that other writes need, too, or the zero value
	alone  bool    // it shares no commit
	result chan error
}

const sharedAtMost = 256

func newSharedCommits(pool *pgxpool.Pool, locked *lockedRows) *sharedCommits {
	s := &sharedCommits{pool: pool, locked: locked, queue: make(chan *sharedWrite, sharedAtMost)}
	s.done.Go(s.run)
	return s
}

// close waits for the last batch.
func (s *sharedCommits) close() {
	s.mu.Lock()
	if !s.closed {
		close(s.queue)
	}
	s.closed = true
	s.mu.Unlock()
	s.done.Wait()
}

// commit queues a write and waits for its result.
func (s *sharedCommits) commit(write *sharedWrite) error {
	if err := s.enqueue(write); err != nil {
		return err
	}
	return <-write.result
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

// byHotRow is the order in which every replica's batches take hot rows, so that no
// two wait for each other.
func byHotRow(a, b *sharedWrite) int {
	return cmp.Or(
		strings.Compare(a.hot.owner.MerchantID, b.hot.owner.MerchantID), strings.Compare(a.hot.owner.Mode, b.hot.owner.Mode),
		strings.Compare(a.hot.table, b.hot.table),
	)
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
	if batch = slices.DeleteFunc(batch, s.leftOut); len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), commitTimeout)
	defer cancel()
	if len(batch) == 1 {
		one := batch[0]
		err := sent(s.pool.QueryRow(ctx, one.sql, one.args...).Scan(columns(one.into)))
		s.locked.learn(one, err)
		one.result <- err
		return
	}
	slices.SortStableFunc(batch, byHotRow)
	results, err := s.together(ctx, batch)
	err = sent(err)
	for i, write := range batch {
		switch {
		case err == nil:
			write.result <- results[i]
		case ambiguous(err):
			write.result <- err // each reads its own back
		default:
			write.result <- errByItself
		}
	}
}

// leftOut sends the result of a write that is not begun: nobody waits for it any
// more, or it needs a row that was found locked since it was queued.
func (s *sharedCommits) leftOut(write *sharedWrite) bool {
	switch err := write.ctx.Err(); {
	case err != nil:
		write.result <- notBegun{err}
	case s.locked.of(write) != nil:
		write.result <- errAgain
	default:
		return false
	}
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
		results[i] = rows.QueryRow().Scan(columns(write.into))
		if results[i] != nil && !errors.Is(results[i], pgx.ErrNoRows) {
			err := results[i]
			_ = rows.Close() // it repeats the error
			s.locked.learn(write, err)
			return nil, err
		}
	}
	return results, rows.Close()
}
