package host

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// places of each sort of use, by one merchant after the other.
var sorts = map[string]place{
	"live money": {live: true, money: true}, "live reads": {live: true},
	"test money": {money: true}, "test reads": {},
}

// crowd takes places for ever more merchants until there is none left, and counts.
func crowd(s *places, p place) (taken int) {
	for n := range s.limit + 1 {
		p.merchant = strconv.Itoa(n)
		if s.acquire(p) == nil {
			taken++
		}
	}
	return taken
}

// TestSharesOfPlaces writes the table out: what each sort of use gets of 256 places at
// most, and what it leaves of them to live money.
func TestSharesOfPlaces(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]int{
		"live money": {256, 0}, "live reads": {204, 52}, "test money": {64, 192}, "test reads": {51, 205},
	} {
		s := newPlaces(256)
		if most, left := crowd(s, sorts[name]), crowd(s, sorts["live money"]); most != want[0] || left != want[1] {
			t.Errorf("%s takes %d places and leaves %d to live money, want %v", name, most, left, want)
		}
	}
	s := newPlaces(256)
	all := crowd(s, sorts["live reads"]) + crowd(s, sorts["test reads"]) + crowd(s, sorts["test money"])
	if left := crowd(s, sorts["live money"]); all != 204 || left != 52 {
		t.Errorf("all but live money takes %d and leaves %d", all, left)
	}
}

// TestShareOfAMerchant: one alone gets half of the room, and however many take all
// they can, there is a place for the next.
func TestShareOfAMerchant(t *testing.T) {
	t.Parallel()
	s := newPlaces(256)
	var got []int
	for n := range 4 {
		p := place{merchant: strconv.Itoa(n), live: true, money: true}
		taken := 0
		for s.acquire(p) == nil {
			taken++
		}
		if err := s.acquire(p); !errors.Is(err, errShare) {
			t.Errorf("merchant %d: %v", n, err)
		}
		got = append(got, taken)
	}
	if want := []int{128, 64, 32, 16}; !slices.Equal(got, want) {
		t.Errorf("merchants that come one after the other get %v, want %v", got, want)
	}
}

// TestPlacesCount compares places with what a list of uses alone would say, over any
// order of events.
func TestPlacesCount(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 40).Draw(rt, "limit")
		s, shut := newPlaces(limit), false
		var inside []place
		count := func(has func(place) bool) (n int) {
			for _, p := range inside {
				if has(p) {
					n++
				}
			}
			return n
		}
		rt.Repeat(map[string]func(*rapid.T){
			"acquire": func(rt *rapid.T) {
				p := place{rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "merchant"), rapid.Bool().Draw(rt, "live"), rapid.Bool().Draw(rt, "money")}
				room := limit
				for _, share := range shares {
					if share.has(p) {
						room = min(room, max(1, limit*share.percent/100)-count(share.has))
					}
				}
				held := count(func(q place) bool { return q.merchant == p.merchant && q.live == p.live })
				var want error
				switch {
				case shut:
					want = errClosing
				case room <= 0:
					want = errFull
				case held > 0 && held >= room:
					want = errShare
				default:
					inside = append(inside, p)
				}
				if err := s.acquire(p); !errors.Is(err, want) {
					rt.Fatalf("got %v, want %v for %+v with %+v of %d inside", err, want, p, inside, limit)
				}
			},
			"release": func(rt *rapid.T) {
				if len(inside) == 0 {
					rt.Skip("nobody is inside")
				}
				i := rapid.IntRange(0, len(inside)-1).Draw(rt, "which")
				s.release(inside[i])
				inside = slices.Delete(inside, i, i+1)
			},
			"close": func(*rapid.T) { s.shutDown(); shut = true },
			"": func(rt *rapid.T) {
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if err := s.drained(ended); s.inUse() != len(inside) || (err == nil) != (shut && len(inside) == 0) {
					rt.Fatalf("count %d, drained %v, with %d inside and shut %v", s.inUse(), err, len(inside), shut)
				}
				if len(s.of) > len(inside) {
					rt.Fatalf("%d merchants are kept, with %d inside", len(s.of), len(inside))
				}
			},
		})
	})
}

func TestPlacesBoundConcurrency(t *testing.T) {
	t.Parallel()
	const limit = 3
	s := newPlaces(limit)
	var inside, worst atomic.Int64
	var crowd sync.WaitGroup
	for n := range 8 {
		crowd.Go(func() {
			p := place{merchant: strconv.Itoa(n), live: true, money: true}
			for range 2000 {
				if s.acquire(p) != nil {
					continue
				}
				if now := inside.Add(1); now > worst.Load() {
					worst.Store(now)
				}
				inside.Add(-1)
				s.release(p)
			}
		})
	}
	crowd.Wait()
	if n := worst.Load(); n < 1 || n > limit {
		t.Errorf("%d were inside at once, the limit is %d", n, limit)
	}
}

func TestDrainWaitsForTheLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, a, b := newPlaces(2), place{merchant: "a", live: true, money: true}, place{merchant: "b", live: true, money: true}
		if errors.Join(s.acquire(a), s.acquire(b)) != nil {
			t.Fatal("no room")
		}
		drained := make(chan error, 1)
		go func() { drained <- s.drained(t.Context()) }()
		s.shutDown()
		s.release(a)
		synctest.Wait()
		select {
		case err := <-drained:
			t.Fatalf("drained (%v) with one inside", err)
		default:
		}
		s.release(b)
		if err := <-drained; err != nil {
			t.Error(err)
		}
	})
}

// TestSlowTestReadsLeaveLiveServed: test keys ask for what never answers, as often as
// they like, and live reads and live money are served.
func TestSlowTestReadsLeaveLiveServed(t *testing.T) {
	t.Parallel()
	spec := testSpec("one")
	spec.MaxInFlight = 40
	h := startHost(t, calm, Config{Specs: []Spec{spec}})
	ctx, release := context.WithCancel(t.Context())
	var hanging sync.WaitGroup
	var turnedAway atomic.Int64
	for n := range 100 {
		slow := callTo("hang")
		slow.Connection.MerchantID = strconv.Itoa(n)
		hanging.Go(func() {
			if r := h.Call(ctx, Use{Provider: "one", MerchantID: slow.Connection.MerchantID}, slow, patience); r.Detail == errFull.Error() {
				turnedAway.Add(1)
			}
		})
	}
	inFlight(t, h, 8) // 20 % of 40
	for _, money := range []bool{false, true} {
		call := callTo("accept")
		call.Connection.Mode = "live"
		for range 6 {
			if r := h.Call(t.Context(), Use{Provider: "one", MerchantID: "m", Money: money}, call, patience); r.Outcome != sdk.Pending {
				t.Errorf("live, money %v: %+v", money, r)
			}
		}
	}
	until(t, "all slow reads but 8 are turned away", func() bool { return turnedAway.Load() == 92 })
	release()
	hanging.Wait()
}
