package store_test

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

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
// the unit, since whoever got no answer has used nothing.
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
	t.Logf("three replicas, limit %d: %d admitted, %d refused, %d hung up or got an error, %d connections cut, %d used",
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
