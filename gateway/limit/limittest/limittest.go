// Package limittest helps to test what shares token buckets: it has the buckets in memory,
// which can be away and slow, and what any keeper of buckets must do. It is for tests
// alone. It must not know who asks.
package limittest

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/limit/leasing"
)

// ErrAway is what a database says that is not there.
var ErrAway = errors.New("the database is away")

// Buckets are the buckets of the store, in memory.
type Buckets struct {
	// Now is the database's clock.
	Now func() time.Time

	mu      sync.Mutex
	buckets map[key]bucket
	asks    int
}

type key struct{ merchant, mode, name string }

type bucket struct {
	perSecond float64
	burst     int
	tokens    float64
	at        time.Time
	spare     float64
	spareAt   time.Time
}

// LeaseRates is one statement.
func (b *Buckets) LeaseRates(_ context.Context, asks []leasing.Ask) ([]leasing.Grant, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.Now()
	grants := make([]leasing.Grant, len(asks))
	for i, a := range asks {
		k := key{a.Merchant, a.Mode, a.Name}
		row, ok := b.buckets[k]
		if !ok {
			row = bucket{perSecond: a.PerSecond, burst: a.Burst, tokens: float64(a.Burst), at: now}
			if row.spareAt = now; 2*a.Owed < float64(a.Burst) {
				row.spare = a.PerSecond * leasing.MostOwed.Seconds()
			}
		}
		filled := row.tokens + row.perSecond*max(0, now.Sub(row.at).Seconds())
		holds := min(float64(row.burst), float64(a.Burst))
		spare := max(0, filled-holds)
		if row.spareAt.After(now.Add(-leasing.SpareFor)) {
			spare += row.spare
		}
		tokens := min(filled, holds) - a.Owed - max(0, a.Late-spare)
		granted := max(0, min(float64(a.Want), math.Floor(tokens+1e-9)))
		tokens = max(tokens, -float64(a.Burst)-a.PerSecond*leasing.MostOwed.Seconds()) - granted
		row.spare = max(0, spare-a.Late)
		if filled > holds {
			row.spareAt = now
		}
		if now.After(row.at) || row.at.Sub(now) > leasing.Ahead {
			row.at = now
		}
		row.perSecond, row.burst, row.tokens = a.PerSecond, a.Burst, tokens
		if b.buckets == nil {
			b.buckets = map[key]bucket{}
		}
		b.buckets[k] = row
		grants[i] = leasing.Grant{Granted: int64(granted), Left: tokens}
		b.asks++
	}
	return grants, nil
}

// Leased is how many asks were taken.
func (b *Buckets) Leased() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asks
}

// Link is one replica's way to the buckets, which may be cut.
type Link struct {
	Buckets interface {
		LeaseRates(ctx context.Context, asks []leasing.Ask) ([]leasing.Grant, error)
	}
	Delay time.Duration // there and back

	mu  sync.Mutex
	cut bool
}

// Cut cuts the way, or mends it.
func (l *Link) Cut(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
}

// LeaseRates is the buckets', where the way there is not cut. It takes Delay, or as long as
// the context.
func (l *Link) LeaseRates(ctx context.Context, asks []leasing.Ask) ([]leasing.Grant, error) {
	l.mu.Lock()
	cut := l.cut
	l.mu.Unlock()
	if cut {
		<-ctx.Done()
		return nil, ErrAway
	}
	<-time.After(l.Delay / 2)
	grants, err := l.Buckets.LeaseRates(ctx, asks)
	<-time.After(l.Delay / 2)
	return grants, err
}

// Keeper is a keeper of buckets.
type Keeper interface {
	LeaseRates(ctx context.Context, asks []leasing.Ask) ([]leasing.Grant, error)
}

// Conforms holds a keeper without buckets against what each must do. Age makes all its
// buckets older.
func Conforms(t *testing.T, k Keeper, age func(time.Duration)) {
	t.Helper()
	shop := leasing.Ask{Merchant: "mer_1", Mode: "live", Name: "default", PerSecond: 5, Burst: 10}
	// The time that the steps take is seen as tokens: a tenth of a second is half a one.
	one := func(step string, a leasing.Ask, granted int64, left float64) {
		t.Helper()
		got, err := k.LeaseRates(t.Context(), []leasing.Ask{a})
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: %v, %v, want one answer", step, got, err)
		}
		if g := got[0]; g.Granted != granted || g.Left < left-1e-6 || g.Left > left+a.PerSecond*5 && left < float64(a.Burst) {
			t.Errorf("%s: granted %d and %v left, want %d and %v", step, g.Granted, g.Left, granted, left)
		}
	}
	// A rate at which nothing comes back while the test runs.
	slow := leasing.Ask{Merchant: "mer_1", Mode: "live", Name: "slow", PerSecond: 1e-4, Burst: 10}
	with := func(a leasing.Ask, owed float64, want int64) leasing.Ask {
		a.Owed, a.Want = owed, want
		return a
	}
	one("the first", with(slow, 1, 1), 1, 8)
	one("as many as there are", with(slow, 0, 99), 8, 0)
	one("none", with(slow, 0, 1), 0, 0)
	one("on credit", with(slow, 3, 1), 0, -3)
	one("paid back by time", with(slow, 0, 1), 0, -3)
	age(40_000 * time.Second) // four tokens
	one("a debt is paid first", with(slow, 0, 9), 1, 0)
	one("half a token", with(slow, 0.5, 1), 0, -0.5)
	age(1000 * time.Hour)
	one("it is full at most", with(slow, 0, 0), 0, 10)
	one("a debt is bounded", with(slow, 1e9, 1), 0, -10-slow.PerSecond*leasing.MostOwed.Seconds())

	other := with(slow, 0, 0)
	other.Merchant, other.Name = "mer_2", "default:/wallet1/create"
	one("another bucket is full", other, 0, 10)
	other.Burst = 100
	one("a greater burst gives nothing", with(other, 0, 4), 4, 6)
	other.Burst = 5
	one("a smaller burst takes what does not fit", with(other, 0, 1), 1, 4)
	other.PerSecond = 1e-3
	age(1000 * time.Second)
	one("time that has passed goes by the old rate", with(other, 0, 1), 1, 3.1)

	one("debts of what is there the first time", with(shop, 12, 1), 0, -2)
	age(10 * time.Second)
	one("the burst is back", with(shop, 0, 10), 10, 0)

	late := leasing.Ask{Merchant: "mer_1", Mode: "live", Name: "late", PerSecond: 1e-3, Burst: 10}
	without := func(n float64) leasing.Ask { a := late; a.Late = n; return a }
	one("all is owed", with(late, 10, 0), 0, 0)
	age(60_000 * time.Second)
	one("late, and paid with what did not fit", without(30), 0, 10)
	one("late, and partly so", without(30), 0, 0)
	age(30_000 * time.Second)
	one("full", late, 0, 10)
	age(11 * time.Second)
	one("late, and what did not fit was long ago", without(5), 0, 5.011)
	age(-time.Hour)
	one("the clock was put back", late, 0, 5.011)
	age(4000 * time.Second)
	one("time goes on", late, 0, 9.011)
	one("late, of what is not there", leasing.Ask{Merchant: "mer_1", Mode: "live", Name: "new", PerSecond: 1, Burst: 10, Late: 33}, 0, 7)
	alone := leasing.Ask{Merchant: "mer_1", Mode: "live", Name: "alone", PerSecond: 1e-3, Burst: 10}
	one("owed by who had it alone", with(alone, 8, 0), 0, 2)
	alone.Late = 0.5
	one("late, of what was in use", alone, 0, 1.5)

	manyAtOnce(t, k)
}

// manyAtOnce asks many buckets in the wrong order, from many sides.
func manyAtOnce(t *testing.T, k Keeper) {
	t.Helper()
	const sides, each = 4, 50
	names := "abcdefghijklmnopqrstuvwxyz"
	var group sync.WaitGroup
	var mu sync.Mutex
	granted := map[string]int64{}
	for side := range sides {
		group.Go(func() {
			for range each {
				var asks []leasing.Ask
				for i := range names {
					at := (i*7 + side*5) % len(names) // each side in another order
					asks = append(asks, leasing.Ask{Merchant: "mer_3", Mode: "test", Name: names[at : at+1], PerSecond: 1e-4, Burst: 60 + at, Want: 1})
				}
				grants, err := k.LeaseRates(t.Context(), asks)
				if err != nil || len(grants) != len(asks) {
					t.Errorf("%d answers to %d asks, %v", len(grants), len(asks), err)
					return
				}
				mu.Lock()
				for i, g := range grants {
					granted[asks[i].Name] += g.Granted
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for at := range names {
		if got := granted[names[at:at+1]]; got != int64(60+at) {
			t.Errorf("bucket %q granted %d, want its %d, once", names[at:at+1], got, 60+at)
		}
	}
	if grants, err := k.LeaseRates(t.Context(), nil); err != nil || len(grants) != 0 {
		t.Errorf("no asks: %v, %v", grants, err)
	}
}
