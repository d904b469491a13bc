package store

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
)

// writer commits statements that write rows which others may have locked. A write
// shares its commit with others where the engine profits from that. While a row is
// known to be locked, the writes that need it go by themselves, one after the other,
// until it is free: nobody else waits for it, and it takes one connection.
type writer struct {
	pool   *pgxpool.Pool
	shared *sharedCommits // nil where every write has a commit of its own
	places chan struct{}  // bounds the commits of single writes, so that the shared ones find a connection
	locked lockedRows
	broken atomic.Pointer[breakage] // the last, nil for none
}

// breakage is an error by which the engine says that it can't write as it is now.
type breakage struct {
	at  time.Time
	err error
}

const (
	// commitTimeout bounds a try: a write is committed at most so long after its
	// context has ended. It is a second longer than the database's own bound of a
	// statement, so that a slow one ends by the database's word. Where we cut the
	// connection instead, nobody knows whether it was committed.
	commitTimeout = statementTimeout + time.Second
	// brokenFor is how long a write that the engine could not make is held against it. A
	// probe's own, small write may succeed on a disk that has no room for a new page.
	brokenFor = 10 * time.Second
	// lockTimeout is how long a statement waits for a row that another has locked.
	lockTimeout = 250 * time.Millisecond
)

func newWriter(pool *pgxpool.Pool, share bool) *writer {
	w := &writer{pool: pool, locked: lockedRows{rows: map[rowName]*lockedRow{}}}
	if !share {
		w.places = make(chan struct{}, pool.Config().MaxConns)
		return w
	}
	w.places = make(chan struct{}, max(1, pool.Config().MaxConns-1))
	w.shared = newSharedCommits(pool, &w.locked)
	return w
}

// close waits for the last batch. What is written after it fails.
func (w *writer) close() {
	if w.shared != nil {
		w.shared.close()
	}
}

// run commits a composed statement, and scans the row that it returns.
func (w *writer) run(ctx context.Context, p parts, with *write, into ...any) error {
	s, err := statementOf(p)
	if err != nil {
		return err
	}
	with.trace = tracing.Parent(ctx)
	return w.commit(&sharedWrite{
		ctx: ctx, name: s.name, sql: s.sql, args: s.args(with), into: into, row: ownRow(p, with), hot: hotRow(p, with), result: make(chan error, 1),
		// Two batches that drew the same amounts in different orders would wait for each
		// other.
		alone: p&roomForAmount != 0,
	})
}

// of is the writer for statements of package dbsqlc that write a row. It serves
// QueryRow alone.
func (w *writer) of(id uuid.UUID) rowWriter { return rowWriter{w, rowName{id: id}} }

// rowWriter is a DBTX of package dbsqlc.
type rowWriter struct {
	*writer
	row rowName
}

// QueryRow commits a statement when its row is scanned.
func (w rowWriter) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	return scanning(func(into ...any) error {
		return w.commit(&sharedWrite{ctx: ctx, sql: sql, args: args, into: into, row: w.row, result: make(chan error, 1)})
	})
}

var errOneRow = errors.New("store: the writer serves statements that return one row")

// Exec is not served.
func (rowWriter) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, errOneRow
}

// Query is not served.
func (rowWriter) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, errOneRow }

type scanning func(into ...any) error

// Scan commits.
func (scan scanning) Scan(into ...any) error { return scan(into...) }

// rowName names a row that a write needs and others may have locked.
type rowName struct {
	table string
	owner movement.Owner
	name  string
	id    uuid.UUID
}

// ownRow is the row that a write is about.
func ownRow(p parts, w *write) rowName {
	if p&reserveMovement != 0 {
		return rowName{table: string(w.reserved.Kind), owner: w.owner, name: w.reference}
	}
	return rowName{id: w.id}
}

// hotRow is the row that a write needs as all writes of its merchant do, the zero value
// for none.
func hotRow(p parts, w *write) rowName {
	switch {
	case p&(changeBalance|putAdjustment|decideAdjustment) != 0:
		return rowName{table: "ledger_balances", owner: w.owner}
	case p&(countUsage|giveUsageBack) != 0 && len(w.usage.names) > 0:
		return rowName{table: "usage", owner: w.owner}
	}
	return rowName{}
}

var (
	// errByItself says that the batch of a write has failed, and the write was undone.
	errByItself = errors.New("store: its batch failed")
	// errAgain says that a row that a write needs was found locked, or free, before the
	// write was tried.
	errAgain = errors.New("store: whether its row is locked has changed")
)

// commit returns once the commit of a write is through, also when its context has
// ended meanwhile: who wrote must learn what became of it, and a try is bounded in
// time. What has waited so long that its context ended before a try is not written.
func (w *writer) commit(write *sharedWrite) (err error) {
	ctx, span := traced(write.ctx, write.sql, write.name)
	write.ctx = ctx
	defer func() { endTraced(span, err) }()
	begun := time.Now()
	for {
		err = w.try(write)
		switch {
		case errors.Is(err, errByItself):
			write.alone = true
		case errors.Is(err, errAgain):
		case !lockedOut(err) || write.ctx.Err() != nil || time.Since(begun) > commitTimeout:
			if unable(err) {
				w.broken.Store(&breakage{at: time.Now(), err: err})
			}
			return err
		}
	}
}

func (w *writer) try(write *sharedWrite) error {
	if row := w.locked.of(write); row != nil {
		return w.inTurn(row, write)
	}
	if w.shared != nil && !write.alone {
		return w.shared.commit(write)
	}
	return w.byItself(write)
}

// inTurn tries a write of a locked row, when no other does.
func (w *writer) inTurn(row *lockedRow, write *sharedWrite) error {
	ctx, cancel := context.WithTimeout(write.ctx, commitTimeout)
	defer cancel()
	select {
	case row.turn <- struct{}{}:
		defer func() { <-row.turn }()
	case <-ctx.Done():
		return notBegun{ctx.Err()}
	}
	if w.locked.of(write) != row {
		return errAgain
	}
	return w.byItself(write)
}

// byItself gives a write a commit of its own.
func (w *writer) byItself(write *sharedWrite) error {
	leave, err := w.place(write.ctx)
	if err != nil {
		return err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(write.ctx), commitTimeout)
	defer cancel()
	err = sent(w.pool.QueryRow(ctx, write.sql, write.args...).Scan(columns(write.into)))
	w.locked.learn(write, err)
	return err
}

// place waits for one of the places of commits that are not shared.
func (w *writer) place(ctx context.Context) (leave func(), err error) {
	select {
	case w.places <- struct{}{}:
		leave = func() { <-w.places }
	case <-ctx.Done():
		return nil, notBegun{ctx.Err()}
	}
	if err := ctx.Err(); err != nil {
		leave()
		return nil, notBegun{err}
	}
	return leave, nil
}

// lockedRows are the rows that are known to be locked by somebody who does not let go.
type lockedRows struct {
	mu   sync.Mutex
	rows map[rowName]*lockedRow
}

type lockedRow struct {
	turn chan struct{} // held by the one write that tries it
	seen time.Time     // when it was found locked the last time
}

// forgetAfter is when a row is forgotten that nobody has tried since.
const forgetAfter = time.Minute

// of is a locked row that a write needs, nil for none.
func (l *lockedRows) of(write *sharedWrite) *lockedRow {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rows) == 0 {
		return nil
	}
	return cmp.Or(l.rows[write.row], l.rows[write.hot])
}

// learn takes from the end of a try which rows are locked, and which are not.
func (l *lockedRows) learn(write *sharedWrite, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case lockedOut(err):
		name := waitedFor(write, err)
		if l.rows[name] == nil {
			for old, row := range l.rows {
				if time.Since(row.seen) > forgetAfter {
					delete(l.rows, old)
				}
			}
			l.rows[name] = &lockedRow{turn: make(chan struct{}, 1)}
		}
		l.rows[name].seen = time.Now()
	case err == nil && len(l.rows) > 0:
		delete(l.rows, write.row)
		delete(l.rows, write.hot)
	}
}

// waitedFor is the row that a write has waited for in vain: its own, where the database
// says so, or else the hot one.
func waitedFor(write *sharedWrite, err error) rowName {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	if write.hot == (rowName{}) || ok && (strings.Contains(pgErr.Where+pgErr.Message, "movements") || strings.Contains(pgErr.Where+pgErr.Message, "polls")) {
		return write.row
	}
	return write.hot
}
