package limit

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	start = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	shop  = Key{Merchant: "m1", Mode: "live", Name: "default"}
)

// spend takes tokens until one is refused and answers how many there were.
func spend(l *Limiter, now time.Time, key Key, r Rate) int {
	for n := 0; ; n++ {
		if !l.Allow(now, key, r).OK {
			return n
		}
	}
}

func TestAVerdictTellsWhereTheMerchantStands(t *testing.T) {
	t.Parallel()
	l, r := New(), Rate{PerSecond: 5, Burst: 3}
	window := 600 * time.Millisecond
	for i, c := range []struct {
		after time.Duration
		want  Verdict
	}{
		{0, Verdict{OK: true, Limit: 3, Remaining: 2, Window: window, Reset: 200 * time.Millisecond}},
		{0, Verdict{OK: true, Limit: 3, Remaining: 1, Window: window, Reset: 400 * time.Millisecond}},
		{0, Verdict{OK: true, Limit: 3, Remaining: 0, Window: window, Reset: 600 * time.Millisecond}},
		{0, Verdict{Limit: 3, Window: window, Reset: 600 * time.Millisecond, RetryAfter: 200 * time.Millisecond}},
		{50 * time.Millisecond, Verdict{Limit: 3, Window: window, Reset: 550 * time.Millisecond, RetryAfter: 150 * time.Millisecond}},
		{200 * time.Millisecond, Verdict{OK: true, Limit: 3, Remaining: 0, Window: window, Reset: 600 * time.Millisecond}},
		{time.Hour, Verdict{OK: true, Limit: 3, Remaining: 2, Window: window, Reset: 200 * time.Millisecond}},
	} {
		got := l.Allow(start.Add(c.after), shop, r)
		// Rounding may cost a few nanoseconds.
		for _, d := range []*time.Duration{&got.Window, &got.Reset, &got.RetryAfter} {
			*d = d.Round(time.Microsecond)
		}
		if got != c.want {
			t.Errorf("step %d: verdict is %+v, want %+v", i, got, c.want)
		}
	}
}

func TestKeysDoNotShareABucket(t *testing.T) {
	t.Parallel()
	l, r := New(), Rate{PerSecond: 1, Burst: 2}
	for _, key := range []Key{shop, {"m2", "live", "default"}, {"m1", "test", "default"}, {"m1", "live", "transfers"}} {
		if got := spend(l, start, key, r); got != 2 {
			t.Errorf("%v has %d tokens, want a bucket of its own with 2", key, got)
		}
	}
}

func TestAChangedRateGivesNoFreeRefill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after Rate
		spent         int
		want          int           // at once after the change
		soon          time.Duration // then
		later         int
	}{
		"a greater burst":     {Rate{1, 10}, Rate{1, 100}, 10, 0, 5 * time.Second, 5},
		"half spent":          {Rate{1, 10}, Rate{1, 100}, 5, 5, 3 * time.Second, 3},
		"a smaller burst":     {Rate{1, 10}, Rate{1, 4}, 0, 4, time.Second, 1},
		"a faster pace":       {Rate{1, 10}, Rate{10, 10}, 10, 0, time.Second, 10},
		"a slower pace":       {Rate{10, 10}, Rate{1, 10}, 10, 0, 3 * time.Second, 3},
		"nothing is changed":  {Rate{1, 10}, Rate{1, 10}, 4, 6, time.Second, 1},
		"to a higher tier":    {Rate{5, 10}, Rate{50, 100}, 10, 0, time.Second, 50},
		"spent and then less": {Rate{5, 10}, Rate{1, 2}, 9, 1, 9 * time.Second, 2},
	} {
		l := New()
		for range c.spent {
			l.Allow(start, shop, c.before)
		}
		if c.spent == 0 { // the bucket must exist to be adjusted
			l.Allow(start, shop, c.before)
		}
		if got := spend(l, start, shop, c.after); got != c.want {
			t.Errorf("%s: %d tokens at once, want %d", name, got, c.want)
		}
		if got := spend(l, start.Add(c.soon), shop, c.after); got != c.later {
			t.Errorf("%s: %d tokens after %s, want %d", name, got, c.soon, c.later)
		}
	}
}

func TestARateThatAllowsNothing(t *testing.T) {
	t.Parallel()
	l := New()
	for _, r := range []Rate{{}, {PerSecond: 5}, {Burst: 5}, {PerSecond: -1, Burst: 5}, {PerSecond: math.NaN(), Burst: 5}, {PerSecond: 1, Burst: -1}} {
		if got := l.Allow(start, shop, r); got.OK || got.Limit < 0 || got.RetryAfter <= 0 {
			t.Errorf("%+v gives %+v, want a refusal", r, got)
		}
	}
	if l.Len() != 0 {
		t.Error("a bucket is held for nothing")
	}
	slow := Rate{PerSecond: 1e-12, Burst: 1}
	if got := l.Allow(start, shop, slow); !got.OK || got.Window != math.MaxInt64 {
		t.Errorf("the first of a very slow rate gives %+v", got)
	}
}

func TestTimeThatGoesBackIsNotCountedTwice(t *testing.T) {
	t.Parallel()
	l, r := New(), Rate{PerSecond: 1, Burst: 5}
	for range r.Burst - 1 {
		l.Allow(start, shop, r)
	}
	got := 0
	for range 10 {
		got += spend(l, start.Add(-time.Minute), shop, r) + spend(l, start, shop, r)
	}
	if got != 1 {
		t.Fatalf("%d tokens for a clock that swings, want the one that was left", got)
	}
}

// TestNoInterleavingExceedsTheRate holds every run of requests against the definition: in any stretch of time no more than
// the burst and what the pace adds; and who waits RetryAfter is allowed.
func TestNoInterleavingExceedsTheRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := New()
		r := Rate{PerSecond: rapid.Float64Range(0.1, 1000).Draw(t, "pace"), Burst: rapid.IntRange(1, 50).Draw(t, "burst")}
		now := start
		var allowed []time.Time
		for range rapid.IntRange(1, 200).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(200*time.Millisecond)).Draw(t, "pause")))
			v := l.Allow(now, shop, r)
			if v.Remaining < 0 || v.Remaining >= r.Burst || v.OK != (v.RetryAfter == 0) || v.Reset > v.Window+time.Microsecond {
				t.Fatalf("%+v gives %+v", r, v)
			}
			if !v.OK {
				now = now.Add(v.RetryAfter)
				if v = l.Allow(now, shop, r); !v.OK {
					t.Fatalf("refused again with %+v after waiting as told", v)
				}
			}
			allowed = append(allowed, now)
		}
		for i := range allowed {
			for j := i; j < len(allowed); j++ {
				most := float64(r.Burst) + allowed[j].Sub(allowed[i]).Seconds()*r.PerSecond + 1e-6
				if n := float64(j - i + 1); n > most {
					t.Fatalf("%v requests in %s, at most %v allowed", n, allowed[j].Sub(allowed[i]), most)
				}
			}
		}
	})
}

func TestFullBucketsAreForgotten(t *testing.T) {
	t.Parallel()
	l, r := New(), Rate{PerSecond: 5, Burst: 10}
	now := start
	for round := range 50 {
		for i := range 1000 {
			l.Allow(now, Key{Merchant: fmt.Sprint("m", round, "-", i), Mode: "live"}, r)
		}
		now = now.Add(time.Minute)
	}
	// All but the last thousand are full again; a shard holds no more than twice its busy ones, or its first few.
	if got, most := l.Len(), shards*firstSweep+2*1000; got > most {
		t.Errorf("%d buckets are held after 50,000 merchants, want at most %d", got, most)
	}
	spend(l, now, shop, r)
	for i := range 100_000 {
		l.Allow(now, Key{Merchant: fmt.Sprint("other", i), Mode: "live"}, r)
	}
	if got := spend(l, now, shop, r); got != 0 {
		t.Errorf("an empty bucket was forgotten and gave %d tokens", got)
	}
}

func TestManyGoroutinesShareOneBucket(t *testing.T) {
	t.Parallel()
	l, r := New(), Rate{PerSecond: 1, Burst: 100}
	var allowed atomic.Int64
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				if l.Allow(start, shop, r).OK {
					allowed.Add(1)
				}
			}
		})
	}
	group.Wait()
	if got := allowed.Load(); got != 100 {
		t.Errorf("%d of 800 were allowed, want 100", got)
	}
}

//nolint:paralleltest // it reads the heap of the whole process, which other tests would fill
func TestMemoryOfAMerchant(t *testing.T) {
	const merchants = 100_000
	names := make([]string, merchants)
	for i := range names {
		names[i] = fmt.Sprintf("mer_%020d", i)
	}
	heap := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before := heap()
	l := New()
	for _, name := range names {
		for _, mode := range []string{"live", "test"} {
			l.Allow(start, Key{Merchant: name, Mode: mode, Name: "default"}, Rate{PerSecond: 5, Burst: 10})
		}
	}
	each := (heap() - before) / merchants
	t.Logf("%d bytes for a merchant with a bucket in each mode", each)
	if each > 1024 || l.Len() != 2*merchants {
		t.Errorf("a merchant takes %d bytes, want at most 1024", each)
	}
	runtime.KeepAlive(names)
}

func BenchmarkAllow(b *testing.B) {
	r := Rate{PerSecond: 1e5, Burst: 1e6}
	b.Run("one merchant", func(b *testing.B) {
		l, now := New(), start
		b.ReportAllocs()
		for b.Loop() {
			now = now.Add(time.Microsecond)
			l.Allow(now, shop, r)
		}
	})
	b.Run("100,000 merchants", func(b *testing.B) {
		l := New()
		keys := make([]Key, 100_000)
		for i := range keys {
			keys[i] = Key{Merchant: fmt.Sprintf("mer_%020d", i), Mode: "live", Name: "default"}
			l.Allow(start, keys[i], r)
		}
		b.ReportAllocs()
		b.ResetTimer()
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i = (i + 7919) % len(keys) {
				l.Allow(start, keys[i], r)
			}
		})
	})
}
