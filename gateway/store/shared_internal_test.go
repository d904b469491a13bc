package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// flusher is the writer of a store whose own flusher has nothing to do, so that a test
// says what is a batch.
func flusher(t *testing.T) *writer {
	t.Helper()
	url := dbtest.New(t, MigrationsDigest(), func(ctx context.Context, url string) error {
		return Migrate(ctx, url, slog.New(slog.DiscardHandler))
	})
	s, err := Open(t.Context(), url, Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if s.Engine() != PostgreSQL {
		t.Skip("commits are shared on PostgreSQL alone")
	}
	return s.writer
}

// lease is a write that any bucket can take once; a negative one the batch can't
// hold at all.
func lease(bucket any, got *int) *sharedWrite {
	return &sharedWrite{
		ctx: context.Background(),
		sql: `INSERT INTO leases (queue, bucket, holder, expires_at) VALUES ('q', $1, 'a', $2)
			ON CONFLICT (queue, bucket) DO NOTHING RETURNING bucket`,
		args: []any{bucket, time.Unix(0, 0)}, into: []any{got}, row: rowName{name: fmt.Sprint("lease ", bucket)}, result: make(chan error, 1),
	}
}

// flush commits a batch as the flusher does, and what it leaves as each writer does.
func (w *writer) flush(batch ...*sharedWrite) []error {
	w.shared.flush(slices.Clone(batch)) // it shortens it
	results := make([]error, len(batch))
	for i, write := range batch {
		if results[i] = <-write.result; errors.Is(results[i], errByItself) {
			write.alone = true
			results[i] = w.commit(write)
		}
	}
	return results
}

func (w *writer) leases(t *testing.T) (n int) {
	t.Helper()
	if err := w.pool.QueryRow(t.Context(), "SELECT count(*) FROM leases").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func code(err error) string {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code
	}
	return ""
}

func TestABatchHasAResultEach(t *testing.T) {
	t.Parallel()
	s := flusher(t)
	var got [4]int
	results := s.flush(lease(1, &got[0]), lease(2, &got[1]), lease(1, &got[2]), lease(3, &got[3]))
	for i, want := range []error{nil, nil, pgx.ErrNoRows, nil} {
		if !errors.Is(results[i], want) {
			t.Errorf("%d: %v", i, results[i])
		}
	}
	if got != [4]int{1, 2, 0, 3} || s.leases(t) != 3 {
		t.Errorf("got %v, %d rows", got, s.leases(t))
	}
}

// TestNobodyWaitsForIt: what has waited longer than its caller is not written,
// and its caller may be sure of that.
func TestNobodyWaitsForIt(t *testing.T) {
	t.Parallel()
	s := flusher(t)
	var got [2]int
	late, live := lease(1, &got[0]), lease(2, &got[1])
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late.ctx = ended
	results := s.flush(late, live)
	if err := results[0]; !errors.Is(err, context.Canceled) || ambiguous(err) {
		t.Errorf("the late one: %v, ambiguous %v", err, ambiguous(err))
	}
	if err := results[1]; err != nil || got != [2]int{0, 2} || s.leases(t) != 1 {
		t.Errorf("the other one: %v, got %v, %d rows", err, got, s.leases(t))
	}
}

// TestOneBadWriteSpoilsNoBatch puts a write that the database refuses beside
// others, at the statement and at the commit.
func TestOneBadWriteSpoilsNoBatch(t *testing.T) {
	t.Parallel()
	s := flusher(t)
	for _, statement := range []string{
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN IF NEW.bucket = 13 THEN RAISE EXCEPTION ''at commit'' USING ERRCODE = ''23514''; END IF; RETURN NULL; END'`,
		`CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON leases DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`,
	} {
		if _, err := s.pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for i, bad := range []struct {
		bucket any
		code   string
	}{{nil, "23502"}, {13, "23514"}} {
		var got [3]int
		results := s.flush(lease(100*i+1, &got[0]), lease(bad.bucket, &got[1]), lease(100*i+2, &got[2]))
		first, second, third := results[0], results[1], results[2]
		if first != nil || third != nil || code(second) != bad.code {
			t.Errorf("%v: %v, %v, %v", bad.bucket, first, second, third)
		}
		if n := s.leases(t); n != 2*(i+1) || got[0] != 100*i+1 || got[2] != 100*i+2 {
			t.Errorf("%v: got %v, %d rows", bad.bucket, got, n)
		}
	}
	if err := s.flush(lease(13, new(int)))[0]; code(err) != "23514" {
		t.Errorf("alone: %v", err)
	}
}

func TestSharedCommitsServeOneRow(t *testing.T) {
	t.Parallel()
	w := flusher(t)
	of := w.of(uuid.New())
	if _, err := of.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("serves Exec")
	}
	if rows, err := of.Query(t.Context(), "SELECT 1"); err == nil { //nolint:rowserrcheck,sqlclosecheck // there are none
		t.Error("serves Query", rows)
	}
	one := 0
	if err := of.QueryRow(t.Context(), "SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Errorf("%d, %v", one, err)
	}
	w.shared.close()
	if err := of.QueryRow(t.Context(), "SELECT 1").Scan(&one); err == nil {
		t.Error("serves after its end")
	}
}

// holding locks the row of a lease on a connection of its own, until it lets go.
func (w *writer) holding(t *testing.T, bucket int) (letGo func()) {
	t.Helper()
	if _, err := w.pool.Exec(t.Context(), `INSERT INTO leases (queue, bucket, holder, expires_at) VALUES ('q', $1, 'b', now())`, bucket); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(t.Context(), w.pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `UPDATE leases SET holder = 'b' WHERE bucket = $1`, bucket); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// taken is a write of a row that is there.
func taken(bucket int, got *int) *sharedWrite {
	w := lease(bucket, got)
	w.sql = `UPDATE leases SET holder = 'a', expires_at = $2 WHERE bucket = $1 RETURNING bucket`
	return w
}

// TestALockedRowHoldsOthersOnce: the batch that meets a locked row is tried one by one,
// later batches leave out what needs the row, and once it is free they don't.
func TestALockedRowHoldsOthersOnce(t *testing.T) {
	t.Parallel()
	w := flusher(t)
	letGo := w.holding(t, 1)
	var got [6]int
	first := []*sharedWrite{lease(2, &got[0]), taken(1, &got[1]), lease(3, &got[2])}
	w.shared.flush(slices.Clone(first))
	for i, write := range first {
		if err := <-write.result; !errors.Is(err, errByItself) {
			t.Errorf("%d: %v", i, err)
		}
	}
	for _, i := range []int{0, 2} {
		if err := w.byItself(first[i]); err != nil {
			t.Errorf("%d by itself: %v", i, err)
		}
	}
	waits := make(chan error)
	go func() { waits <- w.commit(first[1]) }()

	second := []*sharedWrite{taken(1, &got[3]), lease(4, &got[4])}
	w.shared.flush(slices.Clone(second))
	if left, other := <-second[0].result, <-second[1].result; !errors.Is(left, errAgain) || other != nil {
		t.Errorf("the next batch: %v, %v", left, other)
	}
	letGo()
	if err := <-waits; err != nil {
		t.Errorf("once it is free: %v", err)
	}
	if results := w.flush(taken(1, &got[3]), lease(5, &got[5])); results[0] != nil || results[1] != nil || w.locked.of(second[0]) != nil {
		t.Errorf("in a batch again: %v", results)
	}
	if got != [6]int{2, 1, 3, 1, 4, 5} {
		t.Error("got", got)
	}
}

// TestAMovementIsOneRow: all statements that write a movement wait for the same row,
// the composed ones and those of package dbsqlc.
func TestAMovementIsOneRow(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	if row, of := ownRow(moveMovement, &write{id: id}), (*writer)(nil).of(id).row; row != of {
		t.Errorf("%+v is not %+v", row, of)
	}
}

// TestALockedRowTakesOneConnection: of many writes that need a locked row one waits in
// the database, and those whose time is over are not begun.
func TestALockedRowTakesOneConnection(t *testing.T) {
	t.Parallel()
	w := flusher(t)
	letGo := w.holding(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	results := make(chan error, 20)
	for range cap(results) {
		go func() {
			write := taken(1, new(int))
			write.ctx = ctx
			results <- w.commit(write)
		}()
	}
	for w.locked.of(taken(1, nil)) == nil { // until one of them has met it
		if err := w.of(uuid.New()).QueryRow(t.Context(), "SELECT 1").Scan(new(int)); err != nil {
			t.Fatal(err)
		}
	}
	most := int32(0)
	for range 20 { // the others need no more than the pool has
		if err := w.of(uuid.New()).QueryRow(t.Context(), "SELECT 1").Scan(new(int)); err != nil {
			t.Error(err)
		}
		most = max(most, w.pool.Stat().AcquiredConns())
	}
	cancel()
	for range cap(results) {
		if err := <-results; err == nil || ambiguous(err) {
			t.Errorf("%v, ambiguous %v", err, ambiguous(err))
		}
	}
	if most > 2 {
		t.Errorf("%d connections", most)
	}
	letGo()
	if err := w.commit(taken(1, new(int))); err != nil || w.locked.of(taken(1, nil)) != nil {
		t.Errorf("once it is free: %v", err)
	}
}

// TestWritersWaitForNobodyLong reads the settings of the connections back.
func TestWritersWaitForNobodyLong(t *testing.T) {
	t.Parallel()
	w := flusher(t)
	for name, want := range map[string]string{
		"statement_timeout": "3s", "lock_timeout": "250ms", "idle_in_transaction_session_timeout": "6s",
		"client_connection_check_interval": "2s", "tcp_user_timeout": "6000", "tcp_keepalives_idle": "2",
	} {
		var got string
		if err := w.pool.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, %v, want %s", name, got, err, want)
		}
	}
}
