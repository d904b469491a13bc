package store_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

var buyer = movement.Owner{MerchantID: "mer_1", Mode: "live"}

// taking is one TakeUsage of replica r and what it must tell.
func taking(t *testing.T, s *store.Store, batch, want, limit, taken, used int64) {
	t.Helper()
	gotTaken, gotUsed, err := s.TakeUsage(t.Context(), buyer, "names", "2026-11", "r", batch, want, limit)
	if err != nil || gotTaken != taken || gotUsed != used {
		t.Errorf("batch %d, %d of a limit of %d: took %d, %d used, %v; want %d, %d", batch, want, limit, gotTaken, gotUsed, err, taken, used)
	}
}

func giving(t *testing.T, s *store.Store, batch, back, taken int64) {
	t.Helper()
	got, err := s.GiveUsage(t.Context(), buyer, "names", "2026-11", "r", batch, back)
	if err != nil || got != taken {
		t.Errorf("batch %d gives %d back: had taken %d, %v, want %d", batch, back, got, err, taken)
	}
}

func TestUsageIsTakenUpToItsLimit(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	taking(t, s, 1, 3, 5, 3, 3)
	taking(t, s, 2, 3, 5, 2, 5)
	taking(t, s, 3, 1, 5, 0, 5)
	taking(t, s, 4, 9, 4, 0, 5) // lowered
	giving(t, s, 5, 2, 0)
	taking(t, s, 6, 9, 3, 0, 3)
	taking(t, s, 7, 9, 10, 7, 10) // raised, and nothing was reset
	giving(t, s, 8, 99, 0)        // somebody has changed the row by hand
	taking(t, s, 9, 1, 0, 0, 0)
	if _, _, err := s.TakeUsage(t.Context(), movement.Owner{MerchantID: "mer_1", Mode: "test"}, "names", "2026-11", "r", 10, 1, 0); err != nil {
		t.Error(err)
	}
}

func TestABatchIsCountedOnce(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	taking(t, s, 7, 3, 5, 3, 3)
	taking(t, s, 7, 3, 5, 3, 3)
	giving(t, s, 7, 0, 3) // asks what it took
	giving(t, s, 8, 3, 0)
	giving(t, s, 8, 3, 0)
	if _, _, err := s.TakeUsage(t.Context(), buyer, "names", "2026-11", "r", 7, 3, 5); err == nil {
		t.Error("a batch from before is counted")
	}
	giving(t, s, 9, 0, 0) // never arrived, and is never counted any more
	taking(t, s, 9, 3, 5, 0, 0)
	others(t, s, 50)
	taking(t, s, 10, 1, 100, 1, 51)
}

// others have replicas come and go, each with a batch that takes one unit.
func others(t *testing.T, s *store.Store, n int) {
	t.Helper()
	for i := range n {
		if taken, _, err := s.TakeUsage(t.Context(), buyer, "names", "2026-11", fmt.Sprint("replica", i), 1, 1, 1000); err != nil || taken != 1 {
			t.Fatal(taken, err)
		}
	}
}

// TestABatchIsRememberedForAnHour: however many other replicas count meanwhile, a
// batch whose answer was lost is counted once.
func TestABatchIsRememberedForAnHour(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 2})
	taking(t, s, 1, 40, 1000, 40, 40)
	giving(t, s, 2, 10, 0)
	age(t, url, "r", "40 minutes")
	others(t, s, 60)
	giving(t, s, 2, 10, 0)
	taking(t, s, 3, 5, 1000, 5, 95)
	if n := count(t, url, marked); n != 61 {
		t.Errorf("%d marks of young batches, want 61", n)
	}
	execute(t, url, "UPDATE usage SET marks = marks || '{\"r\": [3, 5]}'")
	giving(t, s, 3, 0, 5) // a mark without a time
}

// TestOldMarksAreDropped where they are many: those from an hour ago and those that
// have no time, and never the replica's own.
func TestOldMarksAreDropped(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 2})
	taking(t, s, 1, 1, 1000, 1, 1)
	others(t, s, 40)
	execute(t, url, `UPDATE usage SET marks = marks || '{"replica38": [1, 1]}'`)
	age(t, url, "r", "61 minutes")
	age(t, url, "replica39", "61 minutes")
	for batch := range int64(5) {
		giving(t, s, batch+2, 0, 0) // its own is young again
	}
	if n := count(t, url, marked); n != 39 {
		t.Errorf("%d marks, want all but two", n)
	}
	if n := count(t, url, "SELECT COUNT(marks -> 'replica38') + COUNT(marks -> 'replica39') FROM usage"); n != 0 {
		t.Errorf("%d old marks are kept", n)
	}
	execute(t, url, "UPDATE usage SET marks = '{\"replica1\": [1, 1]}'")
	giving(t, s, 9, 0, 0)
	if n := count(t, url, marked); n != 2 {
		t.Errorf("%d marks, want both: they are few", n)
	}
}

// marked counts the replicas whose marks are kept.
const marked = "SELECT (SELECT COUNT(m) FROM JSONB_OBJECT_KEYS(marks) AS m) FROM usage"

// age puts a replica's mark back in time.
func age(t *testing.T, url, replica, by string) {
	t.Helper()
	execute(t, url, fmt.Sprintf(`UPDATE usage SET marks = marks || JSONB_BUILD_OBJECT('%[1]s', JSONB_BUILD_ARRAY(
		marks -> '%[1]s' -> 0, marks -> '%[1]s' -> 1, EXTRACT(EPOCH FROM CLOCK_TIMESTAMP() - INTERVAL '%[2]s')::INT8))`, replica, by))
}

func TestUsageHoldsItsCeiling(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 2})
	taking(t, s, 1, 3, 5, 3, 3)
	const where = " WHERE merchant_id = 'mer_1' AND mode = 'live' AND name = 'names' AND period = '2026-11'"
	for _, change := range []string{"used = 6", "used = -1", "ceiling = 2"} {
		conn, err := pgx.Connect(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		_, err = conn.Exec(t.Context(), "UPDATE usage SET "+change+where)
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "23514" {
			t.Errorf("%s: %v", change, err)
		}
		conn.Close(t.Context())
	}
	if n := count(t, url, "SELECT used FROM usage"+where); n != 3 {
		t.Errorf("%d used", n)
	}
}

func TestUsageOfAMerchant(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for i, row := range []struct {
		owner        movement.Owner
		name, period string
	}{
		{buyer, "wallet2", "2026-11"}, {buyer, "names", "2026-11"}, {buyer, "names", "2026-10"},
		{movement.Owner{MerchantID: "mer_1", Mode: "test"}, "names", "2026-11"}, {movement.Owner{MerchantID: "mer_2", Mode: "live"}, "names", "2026-11"},
	} {
		if _, _, err := s.TakeUsage(t.Context(), row.owner, row.name, row.period, "r", 1, int64(i+1), 100); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]int64{"wallet2": 1, "names": 2, "none": 0} {
		if n, err := s.UsedOf(t.Context(), buyer, name, "2026-11"); err != nil || n != want {
			t.Errorf("%d of %s, %v", n, name, err)
		}
	}
	got, err := s.Usage(t.Context(), buyer, "2026-11")
	if diff := gocmp.Diff([]store.Used{{Name: "names", Units: 2}, {Name: "wallet2", Units: 1}}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for who, want := range map[string]string{
		"": "[{mer_1 live} {names 2}] [{mer_1 live} {wallet2 1}] [{mer_1 test} {names 4}] [{mer_2 live} {names 5}]", "mer_2": "[{mer_2 live} {names 5}]", "none": "",
	} {
		all, err := s.UsageIn(t.Context(), who, "2026-11")
		told := make([]string, len(all))
		for i, u := range all {
			told[i] = fmt.Sprint([]any{u.Owner, u.Used})
		}
		slices.Sort(told)
		if got := strings.Join(told, " "); got != want || err != nil {
			t.Errorf("in a period, by %q: %s, %v", who, got, err)
		}
	}
}

// TestUsageWhoseAnswerIsCut cuts the connection at each statement, before and
// after it is run: the caller learns what became of it, and nothing is counted
// twice.
func TestUsageWhoseAnswerIsCut(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		p, s, truth, url := cuttable(t)
		taking(t, truth, 1, 1, 10, 1, 1)
		for batch, used := int64(2), int64(1); batch < 8; batch += 2 { // also once the statements are prepared
			p.arm(cut{at: execution, after: after})
			taking(t, s, batch, 3, 10, 3, used+3)
			p.arm(cut{at: execution, after: after})
			giving(t, s, batch+1, 2, 0)
			used++
			if n := count(t, url, "SELECT used FROM usage"); p.happened() != 1 || int64(n) != used {
				t.Errorf("cut after %v: %d used, %d cuts, want %d", after, n, p.happened(), used)
			}
		}
	}
}

// BenchmarkUsage measures reservations of one usage, one after the other and from
// 64 goroutines: with a bare UPDATE each, and as they are. The metric x_bare is how
// many times as fast as bare.
func BenchmarkUsage(b *testing.B) {
	for _, goroutines := range []int{1, 64} {
		var plain float64 // nanoseconds of a bare one
		for _, way := range []struct {
			name string
			make func(*testing.B, string, int32) payment
		}{{"bare", bareUsage}, {"counter", countedUsage}} {
			b.Run(fmt.Sprintf("%s/%d", way.name, goroutines), func(b *testing.B) {
				each := repeat(b, way.make(b, database(b), int32(min(goroutines, 32))), goroutines)
				b.ReportMetric(1e9/each, "reservations/s")
				if way.name == "bare" {
					plain = each
				} else if plain > 0 {
					b.ReportMetric(plain/each, "x_bare")
				}
			})
		}
	}
}

func countedUsage(b *testing.B, url string, conns int32) payment {
	counter := limit.NewBatcher(open(b, url, store.Options{MaxConns: conns}), slog.New(slog.DiscardHandler))
	b.Cleanup(counter.Close)
	return func(ctx context.Context) error {
		_, err := counter.Reserve(ctx, monthly("2026-11"), 1<<60)
		return err
	}
}

func bareUsage(b *testing.B, url string, conns int32) payment {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	execute(b, url, `INSERT INTO usage (merchant_id, mode, name, period, used, ceiling) VALUES ('mer_1', 'live', 'wallet2', '2026-11', 0, 1000000000)`)
	return func(ctx context.Context) error {
		used := 0
		return pool.QueryRow(ctx, `UPDATE usage SET used = used + 1
			WHERE merchant_id = $1 AND mode = $2 AND name = $3 AND period = $4 AND used < ceiling RETURNING used`,
			buyer.MerchantID, buyer.Mode, "wallet2", "2026-11").Scan(&used)
	}
}

// Counts go with their period, of months and of days, in batches.
func TestOldUsageIsDropped(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	owner := movement.Owner{MerchantID: "mer_1", Mode: "live"}
	kept := []string{"2025-10", "2025-10-01", "2025-12-31", "2026-11", "2026-11-20"}
	for _, period := range append([]string{"2024-12-31", "2025-09", "2025-09-30"}, kept...) {
		if _, _, err := s.TakeUsage(t.Context(), owner, "wallet2", period, "r", 1, 1, 10); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []int64{2, 1, 0} {
		if n, err := s.DropUsage(t.Context(), "2025-10", 2); err != nil || n != want {
			t.Errorf("dropped %d, %v, want %d", n, err, want)
		}
	}
	for _, period := range kept {
		if used, err := s.Usage(t.Context(), owner, period); err != nil || len(used) != 1 {
			t.Errorf("%s: %+v, %v", period, used, err)
		}
	}
	if used, err := s.Usage(t.Context(), owner, "2025-09"); err != nil || len(used) != 0 {
		t.Errorf("2025-09: %+v, %v", used, err)
	}
}
