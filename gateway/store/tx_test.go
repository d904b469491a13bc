package store_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// row is a merchant as the least that transactions can be tried on.
func row(id string) dbsqlc.InsertMerchantParams {
	return dbsqlc.InsertMerchantParams{MerchantID: id, Name: id, Tier: "0", Status: "active", Labels: "{}", Now: epoch}
}

func insert(tb testing.TB, s *store.Store, ids ...string) {
	tb.Helper()
	if err := s.Tx(tb.Context(), func(q *dbsqlc.Queries) error {
		for _, id := range ids {
			if err := q.InsertMerchant(tb.Context(), row(id)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		tb.Fatal(err)
	}
}

func read(tb testing.TB, s *store.Store, id string) (merchant dbsqlc.MerchantByIDRow, err error) {
	tb.Helper()
	err = s.Tx(tb.Context(), func(q *dbsqlc.Queries) error {
		merchant, err = q.MerchantByID(tb.Context(), id)
		return err
	})
	return merchant, err
}

// TestCommitThatFails has a constraint checked at COMMIT, which cockroach-go's own
// adapter for pgx would not hear of.
func TestCommitThatFails(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{})
	if s.Engine() != store.PostgreSQL {
		t.Skip("CockroachDB checks all constraints at once, so nothing but a conflict fails its commit")
	}
	execute(t, url,
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''at commit'' USING ERRCODE = ''23514''; END'`,
		`CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON merchants DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
	calls := 0
	err := s.Tx(t.Context(), func(q *dbsqlc.Queries) error {
		calls++
		return q.InsertMerchant(t.Context(), row("a"))
	})
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "23514" || calls != 1 {
		t.Errorf("after %d calls: %v", calls, err)
	}
	if n := count(t, url, "SELECT count(*) FROM merchants WHERE merchant_id <> 'platform'"); n != 0 {
		t.Errorf("%d rows of a commit that failed", n)
	}
}

// TestWriteSkew has two transactions each see both merchants at work and stop
// one of them: under anything weaker than serializable both would be stopped.
func TestWriteSkew(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{MaxConns: 4})
	for pair := range 100 {
		ids := [2]string{fmt.Sprintf("%d-a", pair), fmt.Sprintf("%d-b", pair)}
		insert(t, s, ids[:]...)
		var both, done sync.WaitGroup
		both.Add(2)
		var stopped atomic.Int32
		for i := range ids {
			done.Go(func() {
				meet := sync.OnceFunc(func() { both.Done(); both.Wait() })
				stops := false
				if err := s.Tx(t.Context(), func(q *dbsqlc.Queries) error {
					other, err := q.MerchantByID(t.Context(), ids[1-i])
					if err != nil {
						return err
					}
					meet() // both have read before either writes
					if stops = other.Status == "active"; !stops {
						return nil
					}
					_, err = q.SetMerchantStatus(t.Context(), dbsqlc.SetMerchantStatusParams{MerchantID: ids[i], Status: "suspended"})
					return err
				}); err != nil {
					t.Error(err)
				} else if stops {
					stopped.Add(1)
				}
			})
		}
		done.Wait()
		suspended := 0
		for _, id := range ids {
			if m, err := read(t, s, id); err != nil || m.Status == "suspended" {
				suspended++
			}
		}
		if suspended != 1 || stopped.Load() != 1 {
			t.Fatalf("pair %d: %d are stopped, %d transactions say that they did it", pair, suspended, stopped.Load())
		}
	}
}

// TestIncrements reads a number, adds one in Go and writes it.
func TestIncrements(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{MaxConns: 16})
	insert(t, s, "counter")
	const writers, each = 16, 25
	var wait sync.WaitGroup
	var landed atomic.Int32
	for range writers {
		wait.Go(func() {
			for range each {
				if err := increment(t.Context(), s); err != nil {
					t.Error(err)
					continue
				}
				landed.Add(1)
			}
		})
	}
	wait.Wait()
	m, err := read(t, s, "counter")
	if err != nil || m.Tier != strconv.Itoa(int(landed.Load())) || landed.Load() != writers*each {
		t.Errorf("%d transactions committed, the counter stands at %s, %v", landed.Load(), m.Tier, err)
	}
}

func increment(ctx context.Context, s *store.Store) error {
	return s.Tx(ctx, func(q *dbsqlc.Queries) error {
		m, err := q.MerchantByID(ctx, "counter")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(m.Tier)
		if err != nil {
			return err
		}
		_, err = q.SetMerchantTier(ctx, dbsqlc.SetMerchantTierParams{MerchantID: "counter", Tier: strconv.Itoa(n + 1)})
		return err
	})
}

// TestWorkThatFailsLeavesNothing ends a transaction in every way but a commit,
// on a pool of one connection, which must be fit for the next.
func TestWorkThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 1})
	wrong := errors.New("the work is wrong")
	for name, c := range map[string]struct {
		fail func(ctx context.Context, cancel func(), q *dbsqlc.Queries) error
		want error
	}{
		"an error": {func(context.Context, func(), *dbsqlc.Queries) error { return wrong }, wrong},
		"an end in the middle": {func(ctx context.Context, cancel func(), q *dbsqlc.Queries) error {
			cancel()
			return q.InsertMerchant(ctx, row("b"))
		}, context.Canceled},
		"an end before the commit": {func(_ context.Context, cancel func(), _ *dbsqlc.Queries) error {
			cancel()
			return nil
		}, context.Canceled},
		"a statement's error that was swallowed": {func(ctx context.Context, _ func(), q *dbsqlc.Queries) error {
			_ = q.InsertMerchant(ctx, row("a")) // for the second time
			return nil
		}, nil},
		"a panic": {func(context.Context, func(), *dbsqlc.Queries) error { panic("the work is wrong") }, nil},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		err := func() (err error) {
			defer func() {
				if r := recover(); r != nil {
					err = fmt.Errorf("panic: %v", r)
				}
			}()
			return s.Tx(ctx, func(q *dbsqlc.Queries) error {
				if err := q.InsertMerchant(ctx, row("a")); err != nil {
					return err
				}
				return c.fail(ctx, cancel, q)
			})
		}()
		cancel()
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := read(t, s, "a"); !errors.Is(err, pgx.ErrNoRows) {
			t.Errorf("after %s: %v", name, err)
		}
	}
	insert(t, s, "a")
}

// TestRetriesEnd has work that conflicts for ever, by either name.
func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for code, want := range map[string]int{"40001": 51, "40P01": 51, "23505": 1} {
		if code == "40P01" && s.Engine() != store.PostgreSQL {
			continue // CockroachDB calls a deadlock 40001
		}
		calls := 0
		err := s.Tx(t.Context(), func(*dbsqlc.Queries) error {
			calls++
			return fmt.Errorf("work: %w", &pgconn.PgError{Code: code, Message: "conflict"})
		})
		if err == nil || calls != want || want == 1 && !strings.Contains(err.Error(), "conflict") {
			t.Errorf("%s: %d calls, %v", code, calls, err)
		}
	}
}

func TestRetriesEndWithTheContext(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := s.Tx(ctx, func(*dbsqlc.Queries) error {
		if calls++; calls == 3 {
			cancel()
		}
		return &pgconn.PgError{Code: "40001"}
	})
	if err == nil || calls > 4 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// TestDeadlock has two transactions take two rows the other way round.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{MaxConns: 4})
	insert(t, s, "a", "b")
	order := [2][2]string{{"a", "b"}, {"b", "a"}}
	var both, done sync.WaitGroup
	both.Add(2)
	for i := range order {
		done.Go(func() {
			meet := sync.OnceFunc(func() { both.Done(); both.Wait() })
			if err := s.Tx(t.Context(), func(q *dbsqlc.Queries) error {
				for _, id := range order[i] {
					if _, err := q.TouchMerchant(t.Context(), dbsqlc.TouchMerchantParams{MerchantID: id, Now: epoch}); err != nil {
						return err
					}
					meet()
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	for _, id := range order[0] {
		if m, err := read(t, s, id); err != nil || m.Version != 3 {
			t.Errorf("%s was touched %d times, %v", id, m.Version-1, err)
		}
	}
}

func TestTxWithoutAConnection(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{MaxConns: 1})
	err := s.Tx(t.Context(), func(*dbsqlc.Queries) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := s.Tx(ctx, func(*dbsqlc.Queries) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the only connection is in use: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
