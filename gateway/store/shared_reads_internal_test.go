package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// reader is the shared reads of a store, with a table t of the numbers 1 to 9.
func reader(t *testing.T) *sharedReads {
	t.Helper()
	url := dbtest.New(t, MigrationsDigest(), func(ctx context.Context, url string) error {
		return Migrate(ctx, url, slog.New(slog.DiscardHandler))
	})
	s, err := Open(t.Context(), url, Options{MaxConns: 16})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if s.Engine() != PostgreSQL {
		t.Skip("reads are shared on PostgreSQL alone")
	}
	if _, err := s.pool.Exec(t.Context(), "CREATE TABLE t AS SELECT n FROM generate_series(1, 9) AS n"); err != nil {
		t.Fatal(err)
	}
	return s.reads
}

// numbered reads a number of the table; 0 can't be read at all.
func numbered(ctx context.Context, n int, into *int32) *sharedRead {
	return &sharedRead{ctx: ctx, sql: "SELECT n / LEAST($1::INT4, 1) FROM t WHERE n = GREATEST($1::INT4, 1)", args: []any{n}, into: columns{into}, result: make(chan error, 1)}
}

// A batch has a result each, also where one of its statements fails: the others are read
// again by themselves, and the failing one hears its own error.
func TestReadsOfABatchHaveAResultEach(t *testing.T) {
	t.Parallel()
	s := reader(t)
	for _, numbers := range [][]int{{3}, {1, 2, 10, 9}, {1, 0, 2}, {0, 0}, {10}, {0}} {
		got := make([]int32, len(numbers))
		batch := make([]*sharedRead, len(numbers))
		for i, n := range numbers {
			batch[i] = numbered(t.Context(), n, &got[i])
		}
		s.flush(append([]*sharedRead{}, batch...))
		for i, n := range numbers {
			err := s.unless(<-batch[i].result, batch[i])
			switch {
			case n == 0 && code(err) == "22012", n > 9 && errors.Is(err, pgx.ErrNoRows):
			case n == 0 || n > 9 || err != nil || got[i] != int32(n):
				t.Errorf("%v: %d is read as %d, %v", numbers, n, got[i], err)
			}
		}
	}
}

// Many at once each read their own.
func TestReadsAtOnce(t *testing.T) {
	t.Parallel()
	s := reader(t)
	var readers sync.WaitGroup
	for i := range 64 {
		readers.Go(func() {
			for n := range 30 {
				n = (i+n)%12 + 1
				var got int32
				err := s.read(numbered(t.Context(), n, &got))
				if found := n <= 9; found && (err != nil || got != int32(n)) || !found && !errors.Is(err, pgx.ErrNoRows) {
					t.Errorf("%d is read as %d, %v", n, got, err)
				}
			}
		})
	}
	readers.Wait()
}

// While a row can't be read, who stops waiting is gone at once and nothing is written to
// where that one wanted it; others are read all the same.
func TestAReadThatIsHeldHoldsNobodyElse(t *testing.T) {
	t.Parallel()
	s := reader(t)
	if _, err := s.Exec(t.Context(), "CREATE TABLE held AS SELECT n FROM t"); err != nil {
		t.Fatal(err)
	}
	lock, err := s.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), "LOCK TABLE held IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	held := func(ctx context.Context, into *int32) *sharedRead {
		return &sharedRead{ctx: ctx, sql: "SELECT n FROM held WHERE n = 7", into: columns{into}, result: make(chan error, 1)}
	}
	ends, stop := context.WithCancel(t.Context())
	var place, patient int32
	gone, waits := make(chan error, 1), make(chan error, 1)
	go func() { gone <- s.read(held(ends, &place)) }()
	go func() { waits <- s.read(held(t.Context(), &patient)) }()
	for blocked := 0; blocked == 0; {
		if err := s.Pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'held'::REGCLASS").Scan(&blocked); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("who stopped waiting hears %v", err)
	}
	for n := range 2 * readLanes { // whichever lane is held
		var other int32
		if err := s.read(numbered(t.Context(), n+1, &other)); err != nil || other != int32(n+1) {
			t.Errorf("another's is read as %d, %v", other, err)
		}
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; err != nil || patient != 7 {
		t.Errorf("who waits reads %d, %v", patient, err)
	}
	if place != 0 {
		t.Errorf("%d was written for somebody who is gone", place)
	}
}

// A closed store leaves nobody waiting.
func TestReadsEndWithTheStore(t *testing.T) {
	t.Parallel()
	s := reader(t)
	var readers sync.WaitGroup
	begun := make(chan struct{}, 32)
	for range 32 {
		readers.Go(func() {
			for i := 0; ; i++ {
				var got int32
				err := s.read(numbered(t.Context(), 5, &got))
				if i == 0 {
					begun <- struct{}{}
				}
				if err != nil {
					return
				}
				if got != 5 {
					t.Error(fmt.Errorf("read %d", got))
				}
			}
		})
	}
	for range 32 {
		<-begun
	}
	s.close()
	s.Pool.Close()
	readers.Wait()
	s.closed = make(chan struct{}) // the store closes it again
}
