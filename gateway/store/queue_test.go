package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

var everyBucket = func() (all []int) {
	for b := range movement.Buckets {
		all = append(all, b)
	}
	return all
}()

func references(tb testing.TB, s *store.Store, buckets []int, since, now time.Time, most int) []string {
	tb.Helper()
	due, err := s.Due(tb.Context(), movement.DueMovements{Buckets: buckets, Since: since, Now: now, Most: most})
	if err != nil {
		tb.Fatal(err)
	}
	names := make([]string, len(due))
	for i, m := range due {
		names[i] = m.Reference
	}
	return names
}

func TestDue(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for i := range 6 {
		m := draft(fmt.Sprint(i))
		m.ID[15] = byte(i % 2)
		m.DueAt = epoch.Add(time.Duration(10-i) * time.Minute) // the last reserved is the first due
		reserve(t, s, m)
	}
	never := draft("never")
	never.DueAt = time.Time{}
	reserve(t, s, never)
	ended := draft("ended")
	moved(t, s, move(reserve(t, s, ended), movement.Succeeded))

	const m = time.Minute
	for _, c := range []struct {
		what    string
		buckets []int
		since   time.Time
		now     time.Duration
		most    int
		want    []string
	}{
		{"all, the oldest first", everyBucket, time.Time{}, time.Hour, 10, []string{"5", "4", "3", "2", "1", "0"}},
		{"at the very moment", everyBucket, time.Time{}, 6 * m, 10, []string{"5", "4"}},
		{"a moment earlier", everyBucket, time.Time{}, 6*m - time.Microsecond, 10, []string{"5"}},
		{"a page", everyBucket, time.Time{}, time.Hour, 2, []string{"5", "4"}},
		{"some buckets", []int{1, 7}, time.Time{}, time.Hour, 10, []string{"5", "3", "1"}},
		{"no bucket", nil, time.Time{}, time.Hour, 10, []string{}},
		{"since the very moment", everyBucket, epoch.Add(8 * m), time.Hour, 10, []string{"2", "1", "0"}},
		{"since a moment later", everyBucket, epoch.Add(8*m + time.Microsecond), time.Hour, 10, []string{"1", "0"}},
	} {
		if got := references(t, s, c.buckets, c.since, epoch.Add(c.now), c.most); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestAskOnceInASpan(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{MaxConns: 16})
	m := reserve(t, s, draft("INV/1"))
	const span = 5 * time.Second
	for round := range 3 {
		now := epoch.Add(time.Duration(round) * span)
		var wait sync.WaitGroup
		var ours atomic.Int32
		for asker := range 20 {
			wait.Go(func() {
				now := now.Add(time.Duration(asker) * time.Millisecond) // replicas' clocks differ
				ok, err := s.Poll(t.Context(), m, now, now.Add(-span+20*time.Millisecond), now.Add(time.Hour))
				if err != nil {
					t.Error(err)
				}
				if ok {
					ours.Add(1)
				}
			})
		}
		wait.Wait()
		if ours.Load() != 1 {
			t.Errorf("round %d: %d of 20 poll the provider", round, ours.Load())
		}
	}
}

// TestPolledInAFuture that no right clock tells keeps nobody from polling.
func TestPolledInAFuture(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := reserve(t, s, draft("INV/1"))
	for _, c := range []struct {
		at   time.Duration // by the clock of the one who polls
		want bool
	}{
		{2 * movement.ClockSkew, true}, {0, false}, // ahead by as much as clocks may differ
		{24 * time.Hour, true}, {0, true}, {time.Second, false},
	} {
		now := epoch.Add(c.at)
		if ours, err := s.Poll(t.Context(), m, now, now.Add(-5*time.Second), now.Add(time.Hour)); err != nil || ours != c.want {
			t.Errorf("at %v: %v, %v", c.at, ours, err)
		}
	}
}

func TestPollByState(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for _, state := range states {
		m := at(t, s, string(state), state)
		open := state != movement.Failed && state != movement.NotSubmitted // what a statement pays can be taken back there
		next := epoch.Add(time.Hour)
		if ok, err := s.Poll(t.Context(), m, epoch, epoch.Add(-time.Second), next); err != nil || ok != open {
			t.Errorf("%s: %v, %v", state, ok, err)
		}
		got := byID(t, s, m.ID)
		if open && (!got.PolledAt.Equal(epoch) || !got.DueAt.Equal(next)) || !open && (!got.PolledAt.IsZero() || !got.DueAt.IsZero()) {
			t.Errorf("%s: polled %v, due %v", state, got.PolledAt, got.DueAt)
		}
		if got.Sequence != m.Sequence || !got.UpdatedAt.Equal(m.UpdatedAt) {
			t.Errorf("%s: a poll is no change", state)
		}
		if !open {
			continue
		}
		if ok, err := s.Poll(t.Context(), m, epoch.Add(time.Second), epoch, time.Time{}); err != nil || !ok {
			t.Errorf("%s, a span later: %v, %v", state, ok, err)
		}
		if got := byID(t, s, m.ID); !got.DueAt.IsZero() {
			t.Errorf("%s: due %v, and there is no next poll", state, got.DueAt)
		}
	}
	if ok, err := s.Poll(t.Context(), movement.Movement{ID: movement.NewID(), Attempt: 1, State: movement.Submitting}, epoch, epoch, epoch); ok || err != nil {
		t.Errorf("nothing: %v, %v", ok, err)
	}
}

func TestMiss(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := reserve(t, s, draft("INV/1"))
	next := epoch.Add(time.Minute)
	for want := 1; want <= 3; want++ {
		if n, err := s.Miss(t.Context(), m, next); err != nil || n != want {
			t.Errorf("%d, %v; want %d", n, err, want)
		}
	}
	if got := byID(t, s, m.ID); got.Misses != 3 || !got.DueAt.Equal(next) {
		t.Errorf("%d misses, due %v", got.Misses, got.DueAt)
	}
	other := m
	other.Attempt = 2
	if n, err := s.Miss(t.Context(), other, next); n != 0 || err != nil {
		t.Errorf("another attempt: %d, %v", n, err)
	}
	for _, state := range states[2:] { // of which the provider's word has come
		m := at(t, s, string(state), state)
		if n, err := s.Miss(t.Context(), m, next); n != 0 || err != nil {
			t.Errorf("%s: %d, %v", state, n, err)
		}
		if got := byID(t, s, m.ID); got.Misses != 0 || !got.DueAt.IsZero() {
			t.Errorf("%s: %d misses, due %v", state, got.Misses, got.DueAt)
		}
	}
}

func TestLeases(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	after := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	take := func(name, holder string, now, until int, buckets ...int) []int {
		t.Helper()
		ours, err := s.TakeLeases(t.Context(), queue.Lease{Queue: name, Buckets: buckets, Holder: holder}, after(now), after(until))
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(ours)
		return ours
	}
	live := func(name string, now, want int) {
		t.Helper()
		if n, err := s.LiveLeases(t.Context(), name, after(now), after(now+10)); err != nil || n != want {
			t.Errorf("%d live leases, want %d, %v", n, want, err)
		}
	}
	one, two := []int{1}, []int{2}
	for _, step := range []struct {
		what, queue string
		buckets     []int
		holder      string
		now, until  int // seconds
		want        []int
	}{
		{"a free one", "q", one, "a", 0, 10, one},
		{"another's, and a free one", "q", []int{2, 1}, "b", 5, 15, two},
		{"another queue's", "r", one, "b", 5, 15, one},
		{"a renewal, and another's", "q", []int{1, 2}, "a", 5, 20, one},
		{"one that was renewed", "q", one, "b", 12, 22, nil},
		{"a moment before its end", "q", one, "b", 19, 29, nil},
		{"those that ran out", "q", []int{1, 3, 2}, "b", 20, 30, []int{1, 2, 3}},
		{"one that was lost", "q", one, "a", 21, 31, nil},
		{"none", "q", nil, "a", 21, 31, nil},
	} {
		if step.what == "those that ran out" {
			live("q", 14, 2)
			live("q", 15, 1)
		}
		if got := take(step.queue, step.holder, step.now, step.until, step.buckets...); !slices.Equal(got, step.want) {
			t.Errorf("%s: %v", step.what, got)
		}
	}
	live("q", 29, 3)
	live("q", 3600, 0)
	live("s", 0, 0)

	// Of a replica whose clock was an hour ahead, and which is gone.
	if got := take("ahead", "a", 3600, 3610, 1, 2); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("taken ahead: %v", got)
	}
	live("ahead", 0, 0)
	if got := take("ahead", "b", 0, 10, 1); !slices.Equal(got, one) {
		t.Errorf("what was taken an hour ahead keeps others from it: %v", got)
	}
	if got := take("ahead", "c", 0, 10, 1); len(got) > 0 {
		t.Errorf("then: %v", got)
	}
	const ahead = int(2 * movement.ClockSkew / time.Second) // as far as clocks may differ
	take("ahead", "a", ahead, ahead+10, 3)
	live("ahead", 0, 2)
	if got := take("ahead", "c", 0, 10, 3); len(got) > 0 {
		t.Errorf("a clock that is right is not believed: %v", got)
	}

	for _, step := range []struct {
		holder string
		want   []int
	}{{"a", nil}, {"b", []int{1, 3}}} { // b holds them
		if err := s.DropLeases(t.Context(), queue.Lease{Queue: "q", Buckets: []int{1, 3}, Holder: step.holder}); err != nil {
			t.Fatal(err)
		}
		if got := take("q", "c", 22, 32, 1, 2, 3); !slices.Equal(got, step.want) {
			t.Errorf("dropped by %s: taken %v", step.holder, got)
		}
	}
}

func TestLeasesAtOnce(t *testing.T) {
	t.Parallel()
	const all = 16
	s := open(t, database(t), store.Options{MaxConns: 16})
	for round := range 3 { // free at first, run out afterwards
		now := epoch.Add(time.Duration(round) * time.Minute)
		var wait sync.WaitGroup
		var ours atomic.Int32
		for i := range 20 {
			wait.Go(func() {
				buckets := rand.Perm(all) // in any order, and none waits for another in a circle
				l := queue.Lease{Queue: "q", Buckets: buckets, Holder: fmt.Sprintf("%d-%d", round, i)}
				taken, err := s.TakeLeases(t.Context(), l, now, now.Add(10*time.Second))
				if err != nil {
					t.Error(err)
				}
				if err := s.DropLeases(t.Context(), queue.Lease{Queue: "given back", Buckets: buckets, Holder: l.Holder}); err != nil {
					t.Error(err)
				}
				ours.Add(int32(len(taken)))
			})
		}
		wait.Wait()
		if ours.Load() != all {
			t.Errorf("round %d: %d buckets are held", round, ours.Load())
		}
	}
}
