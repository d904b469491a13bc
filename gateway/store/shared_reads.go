package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sharedReads is a DBTX of package dbsqlc for reads of one row. Those that arrive
// together go to the database in one round trip: a batch is what arrived while the last
// one was on its way, so nothing ever waits for a timer. Each statement has its own
// result and its own snapshot, taken after its read was asked for. Where a batch fails
// or takes too long, each of its reads goes by itself.
type sharedReads struct {
	*pgxpool.Pool
	queue  chan *sharedRead
	closed chan struct{}
	end    sync.Once
	lanes  sync.WaitGroup
}

// sharedRead is one statement with the place for its row.
type sharedRead struct {
	ctx    context.Context // of who waits; it ends no batch
	sql    string
	args   []any
	into   columns
	taken  atomic.Bool // by the batch, which writes to the place, or by who stops waiting
	result chan error
}

const (
	// readLanes is how many batches are on their way at once, so that a slow one does
	// not stop the next.
	readLanes = 2
	// readTogether bounds a batch: what needs longer holds nobody else.
	readTogether = 500 * time.Millisecond
)

func newSharedReads(pool *pgxpool.Pool) *sharedReads {
	s := &sharedReads{Pool: pool, queue: make(chan *sharedRead, sharedAtMost), closed: make(chan struct{})}
	for range min(readLanes, int(pool.Config().MaxConns)) {
		s.lanes.Go(s.run)
	}
	return s
}

// close waits for the last batches. What is read after it fails. It may be called again.
func (s *sharedReads) close() {
	s.end.Do(func() { close(s.closed) })
	s.lanes.Wait()
}

// QueryRow reads a row when it is scanned.
func (s *sharedReads) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return scanning(func(into ...any) error {
		ctx, span := traced(ctx, sql, "")
		err := s.read(&sharedRead{ctx: ctx, sql: sql, args: args, into: into, result: make(chan error, 1)})
		endTraced(span, err)
		return err
	})
}

func (s *sharedReads) read(read *sharedRead) error {
	select {
	case s.queue <- read:
	default: // the lanes do not keep up
		return s.byItself(read)
	}
	select {
	case err := <-read.result:
		return s.unless(err, read)
	case <-read.ctx.Done():
	case <-s.closed:
	}
	if read.taken.CompareAndSwap(false, true) {
		return s.byItself(read) // which says why it can't
	}
	return s.unless(<-read.result, read)
}

// unless is the result of a read, unless its batch had none.
func (s *sharedReads) unless(err error, read *sharedRead) error {
	if errors.Is(err, errByItself) {
		return s.byItself(read)
	}
	return err
}

func (s *sharedReads) byItself(read *sharedRead) error {
	return s.Pool.QueryRow(read.ctx, read.sql, read.args...).Scan(read.into)
}

func (s *sharedReads) run() {
	batch := make([]*sharedRead, 0, sharedAtMost)
	for {
		select {
		case first := <-s.queue:
			batch = append(batch[:0], first)
		case <-s.closed:
			return
		}
		for len(batch) < sharedAtMost && len(s.queue) > 0 {
			select {
			case next := <-s.queue:
				batch = append(batch, next)
			default: // another lane was faster
			}
		}
		s.flush(batch)
		clear(batch)
	}
}

// flush reads a batch. Whoever has stopped waiting is left out.
func (s *sharedReads) flush(batch []*sharedRead) {
	if batch = slices.DeleteFunc(batch, func(read *sharedRead) bool { return read.taken.Load() }); len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTogether)
	defer cancel()
	if len(batch) == 1 {
		batch[0].end(s.Pool.QueryRow(ctx, batch[0].sql, batch[0].args...))
		return
	}
	var statements pgx.Batch
	for _, read := range batch {
		statements.Queue(read.sql, read.args...)
	}
	rows := s.SendBatch(ctx, &statements)
	for _, read := range batch {
		read.end(rows.QueryRow())
	}
	_ = rows.Close() // an error of a statement has been seen, and nothing was written
}

// end sends the result of a read.
func (r *sharedRead) end(row pgx.Row) {
	err := row.Scan(r)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		err = errByItself
	}
	r.result <- err
}

// ScanRow takes the row in for who still waits.
func (r *sharedRead) ScanRow(rows pgx.Rows) error {
	if !r.taken.CompareAndSwap(false, true) {
		return nil
	}
	return r.into.ScanRow(rows)
}
