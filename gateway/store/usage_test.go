package store_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	giving(t, s, 3, 0, 5) // a mark from before they told when
}

// TestOldMarksAreDropped where they are many: those from an hour ago and those that
// tell no time, and never the replica's own.
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

// replica is a gateway's counter, with connections of its own and a proxy before
// them.
type replica struct {
	*limit.Batcher
	proxy *proxy
}

func replicas(t testing.TB, url string, n int) []replica {
	t.Helper()
	all := make([]replica, n)
	for i := range all {
		p, through := between(t, url)
		counter := limit.NewBatcher(open(t, through, store.Options{MaxConns: 2}), slog.New(slog.DiscardHandler))
		t.Cleanup(counter.Close)
		all[i] = replica{counter, p}
	}
	return all
}

// monthly is the usage that replicas share.
func monthly(period string) limit.Usage {
	return limit.Usage{Key: limit.Key{Merchant: buyer.MerchantID, Mode: buyer.Mode, Name: "wallet2"}, Period: period}
}

// demand is what clients got of a quota.
type demand struct{ admitted, refused, failed atomic.Int64 }

// patient clients ask each replica at once.
func (d *demand) patient(t *testing.T, all []replica, each int, period string, most int64) {
	d.ask(all, each, func(r replica, _ int) (limit.Reservation, error) {
		return r.Reserve(t.Context(), monthly(period), most)
	})
}

// hasty ones hang up in part, and give back what they get all the same.
func (d *demand) hasty(t *testing.T, all []replica, each int, period string, most int64) {
	d.ask(all, each, func(r replica, n int) (limit.Reservation, error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if n%3 > 0 {
			return r.Reserve(ctx, monthly(period), most)
		}
		go cancel()
		got, err := r.Reserve(ctx, monthly(period), most)
		if got.OK {
			r.Release(t.Context(), monthly(period))
		}
		return limit.Reservation{}, cmp.Or(err, context.Canceled)
	})
}

func (d *demand) ask(all []replica, each int, one func(r replica, n int) (limit.Reservation, error)) {
	var wait sync.WaitGroup
	for _, r := range all {
		for n := range each {
			wait.Go(func() {
				switch got, err := one(r, n); {
				case err != nil:
					d.failed.Add(1)
				case got.OK:
					d.admitted.Add(1)
				default:
					d.refused.Add(1)
				}
			})
		}
	}
	wait.Wait()
}

// TestQuotaIsExactOverReplicas has three replicas ask for more than there is, while
// their connections are cut and clients hang up: what is admitted is the limit, to
// the unit, since whoever was told nothing has used nothing.
func TestQuotaIsExactOverReplicas(t *testing.T) {
	t.Parallel()
	const most = 500
	url := database(t)
	all := replicas(t, url, 3)
	var d demand
	cuts := 0
	for round := range 12 {
		for i, r := range all {
			r.proxy.arm(cut{at: execution, after: (round+i)%2 == 0})
		}
		d.hasty(t, all, 30, "2026-11", most)
		for _, r := range all {
			cuts += r.proxy.happened()
		}
	}
	for _, r := range all {
		r.proxy.arm(cut{at: func(byte, string) bool { return false }})
	}
	d.patient(t, all, 1, "2026-11", most) // each gives back first what it owes
	d.patient(t, all, 60, "2026-11", most)
	used := count(t, url, "SELECT used FROM usage")
	t.Logf("three replicas, limit %d: %d admitted, %d refused, %d hung up or told of an error, %d connections cut, %d used",
		most, d.admitted.Load(), d.refused.Load(), d.failed.Load(), cuts, used)
	if d.admitted.Load() != most || used != most || d.refused.Load() == 0 || cuts < 12 {
		t.Errorf("%d admitted, %d used, want %d; %d cuts", d.admitted.Load(), used, most, cuts)
	}
}

// TestQuotaOfAReplicaThatIsKilled cuts a replica off for ever in the middle of a
// batch. What it had reserved stays used; the others admit the rest, to the unit.
func TestQuotaOfAReplicaThatIsKilled(t *testing.T) {
	t.Parallel()
	const most = 300
	url := database(t)
	all := replicas(t, url, 3)
	var d demand
	d.patient(t, all, 20, "2026-11", most)
	all[0].proxy.arm(cut{at: execution, after: true, stay: true})
	killed, cancel := context.WithCancel(t.Context())
	var dying demand
	var death sync.WaitGroup
	death.Go(func() {
		dying.ask(all[:1], 20, func(r replica, _ int) (limit.Reservation, error) { return r.Reserve(killed, monthly("2026-11"), most) })
	})
	for d.refused.Load() == 0 {
		d.patient(t, all[1:], 40, "2026-11", most)
	}
	cancel()
	death.Wait()
	used, admitted := count(t, url, "SELECT used FROM usage"), d.admitted.Load()+dying.admitted.Load()
	lost := int64(used) - admitted
	t.Logf("one of three killed, limit %d: %d admitted, %d stay used for nobody, %d used", most, admitted, lost, used)
	if used != most || lost < 0 || lost > 20 || all[0].proxy.happened() != 1 {
		t.Errorf("%d used, want %d; %d lost", used, most, lost)
	}
}

// TestQuotaAtTheEdgeOfAMonth has clocks that differ: a call counts in the month of
// its replica's clock, and each month has its limit.
func TestQuotaAtTheEdgeOfAMonth(t *testing.T) {
	t.Parallel()
	const most = 40
	url := database(t)
	all := replicas(t, url, 3)
	edge := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	admitted := map[string]int64{}
	for _, now := range []time.Time{edge.Add(-10 * time.Second), edge.Add(-time.Second), edge.Add(time.Second), edge.Add(10 * time.Second)} {
		for i, skew := range []time.Duration{-3 * time.Second, 0, 3 * time.Second} {
			period := limit.Month(now.Add(skew)).Name
			var d demand
			d.patient(t, all[i:i+1], 30, period, most)
			admitted[period] += d.admitted.Load()
		}
	}
	if diff := gocmp.Diff(map[string]int64{"2026-10": most, "2026-11": most}, admitted); diff != "" {
		t.Error(diff)
	}
	if n := count(t, url, "SELECT sum(used) FROM usage"); n != 2*most {
		t.Errorf("%d used", n)
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
