package store

import (
	"context"
	"errors"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-f006e74d/gerbang/gateway/tracing"
)

// What statements come to. A conflict and a locked row are tried again, and refused is a
// constraint's word, which is often how a duplicate is found: none of the three is a fault.
const (
	outcomeOK          = "ok"
	outcomeConflict    = "conflict"
	outcomeLocked      = "locked"
	outcomeRefused     = "refused"
	outcomeCancelled   = "cancelled"
	outcomeTimeout     = "timeout"
	outcomeUnavailable = "unavailable"
	outcomeOther       = "other"
)

// outcomes counts what statements come to, also those of a batch, and the connections that
// could not be had.
type outcomes struct {
	ok, conflict, locked, refused, cancelled, timeout, unavailable, other atomic.Int64
}

func (o *outcomes) all() map[string]*atomic.Int64 {
	return map[string]*atomic.Int64{
		outcomeOK: &o.ok, outcomeConflict: &o.conflict, outcomeLocked: &o.locked, outcomeRefused: &o.refused,
		outcomeCancelled: &o.cancelled, outcomeTimeout: &o.timeout, outcomeUnavailable: &o.unavailable, outcomeOther: &o.other,
	}
}

func (o *outcomes) count(err error) {
	if err == nil || errors.Is(err, pgx.ErrNoRows) {
		o.ok.Add(1) // the usual way, without a map
		return
	}
	o.all()[outcomeOf(err)].Add(1)
}

func outcomeOf(err error) string {
	pgErr, told := errors.AsType[*pgconn.PgError](err)
	switch {
	case told && conflicting(err):
		return outcomeConflict
	case told && lockedOut(err):
		return outcomeLocked
	case told && hasClass(pgErr, []string{"23"}):
		return outcomeRefused
	case told && pgErr.Code == timedOut:
		return outcomeTimeout
	case told && hasClass(pgErr, []string{"08", "40003", "53", "57", "58", readOnly}):
		return outcomeUnavailable
	case told:
		return outcomeOther
	case errors.Is(err, context.Canceled):
		return outcomeCancelled
	case errors.Is(err, context.DeadlineExceeded), pgconn.Timeout(err):
		return outcomeTimeout
	case passes(err):
		return outcomeUnavailable
	}
	return outcomeOther
}

// TraceQueryStart implements pgx.QueryTracer.
func (o *outcomes) TraceQueryStart(ctx context.Context, _ *pgx.Conn, query pgx.TraceQueryStartData) context.Context {
	ctx, _ = traced(ctx, query.SQL, "")
	return ctx
}

// TraceQueryEnd counts one statement.
func (o *outcomes) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, end pgx.TraceQueryEndData) {
	o.count(end.Err)
	endTraced(tracing.Current(ctx), end.Err)
}

// statementName is the name of a statement, as the files of queries have it.
var statementName = regexp.MustCompile(`^-- name: (\w+)`)

// traced begins the part of a trace that is one statement, or a commit in which it shares.
func traced(ctx context.Context, sql string, composed string) (context.Context, tracing.Span) {
	ctx, span := tracing.Start(ctx, "sql", tracing.Outside)
	if span.On() {
		if name := statementName.FindStringSubmatch(sql); name != nil {
			span.Name("sql " + name[1])
		} else if composed != "" {
			span.Name("sql " + composed)
		}
	}
	return ctx, span
}

// endTraced ends it. Of an error it has the outcome alone: its text may quote values.
func endTraced(span tracing.Span, err error) {
	if err != nil && !errors.Is(err, pgx.ErrNoRows) && span.On() {
		span.Fail(outcomeOf(err))
	}
	span.End()
}

// TraceBatchStart implements pgx.BatchTracer.
func (o *outcomes) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

// TraceBatchQuery counts one statement of a batch.
func (o *outcomes) TraceBatchQuery(_ context.Context, _ *pgx.Conn, one pgx.TraceBatchQueryData) {
	o.count(one.Err)
}

// TraceBatchEnd implements pgx.BatchTracer. Its error is that of a statement, which was counted.
func (o *outcomes) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// TraceAcquireStart implements pgxpool.AcquireTracer.
func (o *outcomes) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	return ctx
}

// TraceAcquireEnd counts a connection that could not be had.
func (o *outcomes) TraceAcquireEnd(_ context.Context, _ *pgxpool.Pool, end pgxpool.TraceAcquireEndData) {
	if end.Err != nil {
		o.count(end.Err)
	}
}

// Pool is the state of the connections for one purpose.
type Pool struct {
	Name             string // "reads", "writes" or "clock"
	InUse, Idle, Max int32
	Waits            int64         // for a connection, where none was idle
	Waited           time.Duration // of all that had one in the end
}

// Pools is the state of all connections. It asks no database.
func (s *Store) Pools() []Pool {
	var all []Pool
	for _, p := range []struct {
		name string
		pool *pgxpool.Pool
	}{{"reads", s.pool}, {"writes", s.writer.pool}, {"clock", s.clock}} {
		stat := p.pool.Stat()
		all = append(all, Pool{p.name, stat.AcquiredConns(), stat.IdleConns(), stat.MaxConns(), stat.EmptyAcquireCount(), stat.EmptyAcquireWaitTime()})
	}
	return all
}

// Outcomes is how many statements came to what, by outcome. It asks no database.
func (s *Store) Outcomes() map[string]int64 {
	counts := map[string]int64{}
	for name, n := range s.outcomes.all() {
		counts[name] = n.Load()
	}
	return counts
}

// SchemaVersion is the database's schema as it was read last, 0 before.
func (s *Store) SchemaVersion() int64 { return s.schema.Load() }
