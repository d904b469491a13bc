package host

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"pgregory.net/rapid"
)

// TestSemaphoreCounts compares a semaphore with what a number alone would say, over any
// order of events.
func TestSemaphoreCounts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 5).Draw(rt, "limit")
		g, inside, shut := newSemaphore(limit), 0, false
		rt.Repeat(map[string]func(*rapid.T){
			"acquire": func(rt *rapid.T) {
				var want error
				switch {
				case shut:
					want = errClosing
				case inside == limit:
					want = errFull
				default:
					inside++
				}
				if err := g.acquire(); !errors.Is(err, want) {
					rt.Fatalf("got %v, want %v with %d of %d inside", err, want, inside, limit)
				}
			},
			"release": func(rt *rapid.T) {
				if inside == 0 {
					rt.Skip("nobody is inside")
				}
				inside--
				g.release()
			},
			"close": func(*rapid.T) { g.shutDown(); shut = true },
			"": func(rt *rapid.T) {
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				if err := g.drained(ended); g.count() != inside || (err == nil) != (shut && inside == 0) {
					rt.Fatalf("count %d, drained %v, with %d inside and shut %v", g.count(), err, inside, shut)
				}
			},
		})
	})
}

func TestSemaphoreBoundsConcurrency(t *testing.T) {
	t.Parallel()
	const limit = 3
	g := newSemaphore(limit)
	var inside, worst atomic.Int64
	var crowd sync.WaitGroup
	for range 8 {
		crowd.Go(func() {
			for range 2000 {
				if g.acquire() != nil {
					continue
				}
				if now := inside.Add(1); now > worst.Load() {
					worst.Store(now)
				}
				inside.Add(-1)
				g.release()
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
		g := newSemaphore(2)
		if errors.Join(g.acquire(), g.acquire()) != nil {
			t.Fatal("no room")
		}
		drained := make(chan error, 1)
		go func() { drained <- g.drained(t.Context()) }()
		g.shutDown()
		g.release()
		synctest.Wait()
		select {
		case err := <-drained:
			t.Fatalf("drained (%v) with one inside", err)
		default:
		}
		g.release()
		if err := <-drained; err != nil {
			t.Error(err)
		}
	})
}
