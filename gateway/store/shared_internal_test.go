package store

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// flusher is the shared commits of a store whose own flusher has nothing to do,
// so that a test says what is a batch.
func flusher(t *testing.T) *sharedCommits {
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
	return s.shared
}

// lease is a write that any bucket can take once; a negative one the batch can't
// hold at all.
func lease(bucket any, got *int) *sharedWrite {
	return &sharedWrite{
		ctx: context.Background(),
		sql: `INSERT INTO leases (queue, bucket, holder, expires_at) VALUES ('q', $1, 'a', $2)
			ON CONFLICT (queue, bucket) DO NOTHING RETURNING bucket`,
		args: []any{bucket, time.Unix(0, 0)}, into: []any{got}, result: make(chan error, 1),
	}
}

func (s *sharedCommits) leases(t *testing.T) (n int) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM leases").Scan(&n); err != nil {
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
	batch := []*sharedWrite{lease(1, &got[0]), lease(2, &got[1]), lease(1, &got[2]), lease(3, &got[3])}
	s.flush(batch)
	for i, want := range []error{nil, nil, pgx.ErrNoRows, nil} {
		if err := <-batch[i].result; !errors.Is(err, want) {
			t.Errorf("%d: %v", i, err)
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
	batch := []*sharedWrite{lease(1, &got[0]), lease(2, &got[1])}
	late, live := batch[0], batch[1]
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late.ctx = ended
	s.flush(batch)
	if err := <-late.result; !errors.Is(err, context.Canceled) || ambiguous(err) {
		t.Errorf("the late one: %v, ambiguous %v", err, ambiguous(err))
	}
	if err := <-live.result; err != nil || got != [2]int{0, 2} || s.leases(t) != 1 {
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
		batch := []*sharedWrite{lease(100*i+1, &got[0]), lease(bad.bucket, &got[1]), lease(100*i+2, &got[2])}
		s.flush(batch)
		first, second, third := <-batch[0].result, <-batch[1].result, <-batch[2].result
		if first != nil || third != nil || code(second) != bad.code {
			t.Errorf("%v: %v, %v, %v", bad.bucket, first, second, third)
		}
		if n := s.leases(t); n != 2*(i+1) || got[0] != 100*i+1 || got[2] != 100*i+2 {
			t.Errorf("%v: got %v, %d rows", bad.bucket, got, n)
		}
	}
	alone := lease(13, new(int))
	s.flush([]*sharedWrite{alone})
	if err := <-alone.result; code(err) != "23514" {
		t.Errorf("alone: %v", err)
	}
}

func TestSharedCommitsServeOneRow(t *testing.T) {
	t.Parallel()
	s := flusher(t)
	if _, err := s.Exec(t.Context(), "SELECT 1"); err == nil {
		t.Error("serves Exec")
	}
	if rows, err := s.Query(t.Context(), "SELECT 1"); err == nil { //nolint:rowserrcheck,sqlclosecheck // there are none
		t.Error("serves Query", rows)
	}
	one := 0
	if err := s.QueryRow(t.Context(), "SELECT 1").Scan(&one); err != nil || one != 1 {
		t.Errorf("%d, %v", one, err)
	}
	closing := newSharedCommits(s.pool)
	closing.close()
	if err := closing.QueryRow(t.Context(), "SELECT 1").Scan(&one); err == nil {
		t.Error("serves after its end")
	}
}
