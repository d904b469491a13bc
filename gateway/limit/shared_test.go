package limit_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/limit/limittest"
)

// TestAFloodSlowsNobody: a merchant that asks all the time is one ask among others.
func TestAFloodSlowsNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		replicas := newCluster(t, 3)
		defer replicas.end()
		flood := limit.Key{Merchant: "mer_2", Mode: "live", Name: "default"}
		before, refused := replicas.buckets.Leased(), 0
		for second := range 10 {
			for request := range 1000 {
				replicas.replicas[request%3].limiter.Allow(time.Now(), flood, limit.Rate{PerSecond: 50, Burst: 100})
				if request%250 == 0 && !replicas.replicas[(second+request)%3].limiter.Allow(time.Now(), shop, starter).OK {
					refused++
				}
				<-time.After(time.Millisecond)
			}
		}
		// A bucket of 50 a second is asked for two or three tokens at a time, by three.
		if asks := replicas.buckets.Leased() - before; refused > 0 || asks > 10*50+10*5+50 {
			t.Errorf("%d of another merchant's requests were refused, %d asks", refused, asks)
		}
	})
}

// TestAnOutageRefusesNobody: who stays below a replica's part is admitted before an outage, in it, and while a database
// that is back takes its time.
func TestAnOutageRefusesNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		replicas := newCluster(t, 2)
		defer replicas.end()
		for _, r := range replicas.replicas {
			r.link.Delay = 800 * time.Millisecond
		}
		for request := range 100 {
			switch request {
			case 20:
				replicas.part(true)
			case 60:
				replicas.part(false)
			}
			if v := replicas.replicas[request%2].limiter.Allow(time.Now(), shop, starter); !v.OK {
				t.Errorf("request %d is refused: %+v", request, v)
			}
			<-time.After(300 * time.Millisecond)
		}
	})
}

// TestAChangedRateIsAskedAnew: that a bucket is empty for hours is forgotten where its rate is changed.
func TestAChangedRateIsAskedAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		replicas := newCluster(t, 2)
		defer replicas.end()
		l, slow := replicas.replicas[0].limiter, limit.Rate{PerSecond: 1.0 / 3600, Burst: 3}
		admitted := 0
		for range 40 {
			if l.Allow(time.Now(), shop, slow).OK {
				admitted++
			}
			<-time.After(100 * time.Millisecond)
		}
		v := l.Allow(time.Now(), shop, slow)
		if admitted < 3 || admitted > 4 || v.OK || v.RetryAfter < 50*time.Minute || v.Remaining != 0 {
			t.Errorf("%d were admitted of three, and then %+v", admitted, v)
		}
		l.Allow(time.Now(), shop, starter)
		<-time.After(time.Second)
		if v := l.Allow(time.Now(), shop, starter); !v.OK || v.Limit != 10 {
			t.Errorf("a second after the rate became 5 a second: %+v", v)
		}
	})
}

// TestManyMerchantsAreForgotten: the buckets of thousands at once are all asked within a second, and of a hundred
// thousand that came once few are kept.
func TestManyMerchantsAreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		replicas := newCluster(t, 2)
		defer replicas.end()
		l := replicas.replicas[0].limiter
		for second := range 34 {
			before := replicas.buckets.Leased()
			for i := range 3000 {
				key := limit.Key{Merchant: fmt.Sprintf("mer_%d_%d", second, i), Mode: "live", Name: "default"}
				if !l.Allow(time.Now(), key, starter).OK {
					t.Fatalf("%s is refused its first request", key.Merchant)
				}
			}
			<-time.After(time.Second)
			if asked := replicas.buckets.Leased() - before; asked != 3000 {
				t.Fatalf("of 3000 buckets %d were asked in a second", asked)
			}
		}
		if n := l.Len(); n > 30_000 {
			t.Errorf("%d buckets are kept", n)
		}
	})
}

// BenchmarkAllowShared is BenchmarkAllow's one merchant, with a lease. One token in 10,000 is asked for.
func BenchmarkAllowShared(b *testing.B) {
	l, r := limit.New(), limit.Rate{PerSecond: 1e5, Burst: 1e6}
	others := func() ([]time.Time, time.Time) { return []time.Time{time.Unix(0, 0), time.Unix(0, 0)}, time.Now() }
	buckets := &limittest.Buckets{Now: time.Now}
	done := make(chan error, 1)
	ctx, end := context.WithCancel(b.Context())
	go func() {
		done <- l.Run(ctx, limit.Sharing{Buckets: buckets, Others: others, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	}()
	for buckets.Leased() == 0 {
		l.Allow(time.Now(), shop, r)
		<-time.After(time.Millisecond)
	}
	b.ReportAllocs()
	now := time.Now()
	for b.Loop() {
		now = now.Add(time.Microsecond)
		l.Allow(now, shop, r)
	}
	end()
	<-done
}
