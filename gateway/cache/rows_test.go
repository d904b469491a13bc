package cache_test

import (
	"encoding/json"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/cache"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/migrated"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// database opens the same new database some times.
func database(tb testing.TB, times int) []*store.Store {
	tb.Helper()
	url := migrated.Database(tb)
	stores := make([]*store.Store, times)
	for i := range stores {
		stores[i] = migrated.Open(tb, url, store.Options{MaxConns: 4})
	}
	return stores
}

// TestRows holds the database, and the table that other tests use in its place,
// to what Rows promises.
func TestRows(t *testing.T) {
	t.Parallel()
	for name, rows := range map[string]func(testing.TB) cache.Rows{
		"database": func(tb testing.TB) cache.Rows { return database(tb, 1)[0] },
		"table":    func(testing.TB) cache.Rows { return newTable() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keepsRows(t, script{t, rows(t)})
		})
	}
}

const (
	hold  = 30 * time.Second
	pause = time.Minute
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678_901_234, time.UTC)

// script says what rows must answer, one step after the other.
type script struct {
	testing.TB
	rows cache.Rows
}

func (s script) read(have time.Time, body string, fetched time.Time, refreshing bool) {
	s.Helper()
	got, at, busy, err := s.rows.CachedAnswer(s.Context(), "k", have)
	if err != nil || string(got) != body || got != nil != (body != "") || at.Sub(fetched).Abs() > time.Microsecond || busy != refreshing {
		s.Fatalf("got %q of %v, refreshing %v, %v; want %q of %v, refreshing %v", got, at, busy, err, body, fetched, refreshing)
	}
}

func (s script) lease(now time.Time, want bool) {
	s.Helper()
	if got, err := s.rows.LeaseAnswer(s.Context(), "k", now, now.Add(hold), maxAge, pause); err != nil || got != want {
		s.Fatalf("the lease at %v: %v, %v, want %v", now.Sub(epoch), got, err, want)
	}
}

func (s script) keep(leased time.Time, body string, at time.Time, want bool) {
	s.Helper()
	var document json.RawMessage
	if body != "" {
		document = json.RawMessage(body)
	}
	if got, err := s.rows.KeepAnswer(s.Context(), "k", leased.Add(hold), document, at); err != nil || got != want {
		s.Fatalf("keep at %v: %v, %v, want %v", at.Sub(epoch), got, err, want)
	}
}

func keepsRows(t *testing.T, s script) {
	t.Helper()
	none := time.Time{}
	s.read(none, "", none, false)
	s.keep(epoch, "[0]", epoch, false)
	s.lease(epoch, true)
	s.read(none, "", none, true)
	s.lease(epoch.Add(hold-1000), false)

	// A lease that ran out is another's, and the first holder comes too late.
	second := epoch.Add(hold)
	s.lease(second, true)
	s.keep(epoch, "[1]", epoch, false)
	s.keep(second, "[2]", second, true)
	s.read(none, "[2]", second, false)
	s.read(second, "", second, false)
	s.lease(second.Add(maxAge-1000), false)

	// A fetch that fails keeps the answer and begins a pause.
	third := second.Add(maxAge)
	s.lease(third, true)
	s.keep(third, "", third.Add(time.Second), true)
	s.keep(third, "[3]", third, false)
	s.read(none, "[2]", second, false)
	s.lease(third.Add(time.Second+pause-1000), false)
	fourth := third.Add(time.Second + pause)
	s.lease(fourth, true)
	s.keep(fourth, "[4]", fourth, true)
	s.read(second, "[4]", fourth, false)

	// Times far ahead are a wrong clock's and hold nobody up.
	s.lease(fourth.Add(-maxAge+1000), false)
	s.lease(fourth.Add(-maxAge), true)
	s.lease(fourth.Add(-maxAge-hold), true)

	drop(t, s, fourth)
	s.read(none, "[4]", fourth, true)
	drop(t, s, fourth.Add(1000))
	s.read(none, "", none, false)
}

func drop(tb testing.TB, s script, before time.Time) {
	tb.Helper()
	if err := s.rows.DropAnswers(tb.Context(), before); err != nil {
		tb.Fatal(err)
	}
}

// TestOneOfManyTakesTheLease: of those who ask at once one is given it, when it
// is free at all.
func TestOneOfManyTakesTheLease(t *testing.T) {
	t.Parallel()
	stores := database(t, 2)
	for _, c := range []struct {
		now  time.Time
		want int64
	}{{epoch, 1}, {epoch.Add(hold / 2), 0}, {epoch.Add(hold), 1}} {
		var taken atomic.Int64
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				ours, err := stores[i%2].LeaseAnswer(t.Context(), "k", c.now, c.now.Add(hold), maxAge, pause)
				if err != nil {
					t.Error(err)
				}
				if ours {
					taken.Add(1)
				}
			})
		}
		group.Wait()
		if taken.Load() != c.want {
			t.Errorf("after %v %d took the lease, want %d", c.now.Sub(epoch), taken.Load(), c.want)
		}
	}
}

// TestTwoReplicasOnOneDatabase: each period one of them fetches, what the other
// keeps giving until then is the old answer, and a first answer is waited for.
func TestTwoReplicasOnOneDatabase(t *testing.T) {
	t.Parallel()
	stores, u := database(t, 2), &upstream{}
	var passed atomic.Int64
	now := func() time.Time { return epoch.Add(time.Duration(passed.Load())) }
	one, two := replica(t, stores[0], now, nil), replica(t, stores[1], now, nil)
	for period := range int64(3) {
		var group sync.WaitGroup
		for range 8 {
			for _, c := range []*cache.Cache{one, two} {
				group.Go(func() {
					if _, err := c.Get(t.Context(), key, maxAge, u.fetch); err != nil {
						t.Error(err)
					}
				})
			}
		}
		group.Wait()
		one.Idle()
		two.Idle()
		u.wantFetched(t, period+1)
		passed.Add(int64(maxAge))
	}
}
