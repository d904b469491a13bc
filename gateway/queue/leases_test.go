package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
)

const all = movement.Buckets

// pass lets the clock of a synctest bubble run on.
func pass(d time.Duration) { <-time.After(d) }

func hold(t testing.TB, s *queue.Leases) []int {
	t.Helper()
	buckets, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return buckets
}

// step lets a second pass and has every replica hold.
func step(t testing.TB, replicas ...*queue.Leases) (held [][]int) {
	t.Helper()
	pass(time.Second)
	for _, s := range replicas {
		held = append(held, hold(t, s))
	}
	return held
}

func steps(t testing.TB, n int, replicas ...*queue.Leases) (held [][]int) {
	t.Helper()
	for range n {
		held = step(t, replicas...)
	}
	return held
}

func replicas(leases queue.LeaseStore, n int) []*queue.Leases {
	list := make([]*queue.Leases, n)
	for i := range list {
		list[i] = queue.NewLeases(leases, "polls", fmt.Sprint("replica-", i), all, time.Now)
	}
	return list
}

func TestOneReplicaHoldsAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queue.NewLeases(queuetest.NewTable(), "polls", "only", all, time.Now)
		for range 60 {
			if got := step(t, s)[0]; len(got) != all {
				t.Fatalf("%v", got)
			}
		}
	})
}

func TestLeasesAreFair(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 4, 7, 16, 20} {
		synctest.Test(t, func(t *testing.T) {
			replicas := replicas(queuetest.NewTable(), n)
			held := steps(t, 10, replicas...)
			fair, total := (all+n-1)/n, 0
			for i, buckets := range held {
				if len(buckets) > fair {
					t.Errorf("%d of %d holds %v", i, n, buckets)
				}
				total += len(buckets)
			}
			if total != all {
				t.Errorf("%d replicas hold %d buckets: %v", n, total, held)
			}
			again := steps(t, 10, replicas...)
			if !slices.EqualFunc(held, again, slices.Equal[[]int]) {
				t.Errorf("%d replicas pass buckets on without a reason: %v, then %v", n, held, again)
			}
		})
	}
}

func TestLeasesOfDifferentQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := queuetest.NewTable()
		held := steps(t, 10, queue.NewLeases(leases, "polls", "a", all, time.Now), queue.NewLeases(leases, "callbacks", "b", all, time.Now))
		if len(held[0]) != all || len(held[1]) != all {
			t.Errorf("%v", held)
		}
	})
}

func TestASecondReplicaGetsItsHalfSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		two := replicas(queuetest.NewTable(), 2)
		steps(t, 10, two[0])
		held := steps(t, 7, two...)
		if len(held[0]) != all/2 || len(held[1]) != all/2 {
			t.Errorf("after seven seconds: %v", held)
		}
	})
}

func TestADeadReplicaIsInherited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		two := replicas(queuetest.NewTable(), 2)
		steps(t, 10, two...)
		if held := steps(t, 9, two[1]); len(held[0]) != all/2 { // its last renewal is a second old at least
			t.Fatalf("inherited before the leases ran out: %v", held)
		}
		if held := steps(t, 5, two[1]); len(held[0]) != all {
			t.Errorf("after its leases ran out: %v", held)
		}
	})
}

func TestReleaseGivesBackAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := queuetest.NewTable()
		two := replicas(leases, 2)
		steps(t, 10, two...)
		two[0].Release(t.Context())
		if n := leases.Held("replica-0"); n > 0 {
			t.Errorf("%d leases are kept", n)
		}
		wantHeld(t, leases, "replica-0", hold(t, two[0])) // begins anew
		two[0].Release(t.Context())
		if held := steps(t, 3, two[1]); len(held[0]) != all {
			t.Errorf("after three seconds: %v", held)
		}
	})
}

func TestReleaseWithoutADatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := queuetest.NewTable()
		s := queue.NewLeases(leases, "polls", "only", all, time.Now)
		hold(t, s)
		leases.Set(nil, time.Hour)
		begun := time.Now()
		s.Release(t.Context())
		if took := time.Since(begun); took > time.Second {
			t.Errorf("the end waits %v", took)
		}
	})
}

// TestNothingIsHeldWhileRenewalsFail is about a database that is away for us
// alone: others take our buckets when the leases run out.
func TestNothingIsHeldWhileRenewalsFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := queuetest.NewTable()
		s := queue.NewLeases(leases, "polls", "only", all, time.Now)
		hold(t, s)
		leases.Set(queuetest.ErrAway, 0)
		pass(2 * time.Second) // nothing has to be renewed yet
		if got := hold(t, s); len(got) != all {
			t.Errorf("holds %v", got)
		}
		for range 20 {
			pass(time.Second)
			if got, err := s.Hold(t.Context()); !errors.Is(err, queuetest.ErrAway) || got != nil {
				t.Fatalf("%v, %v", got, err)
			}
		}
		leases.Set(nil, 0)
		if got := hold(t, s); len(got) != all {
			t.Errorf("holds %v when the database is back", got)
		}
	})
}

// TestASlowRenewalIsNoLease has every statement last so long that the leases
// run out, or nearly, while the renewal is still at work.
func TestASlowRenewalIsNoLease(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{400 * time.Millisecond, 1600 * time.Millisecond, 1800 * time.Millisecond, 3 * time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			leases := queuetest.NewTable()
			s := queue.NewLeases(leases, "polls", "only", all, time.Now)
			hold(t, s)
			pass(4 * time.Second)
			leases.Set(nil, delay)
			begun := time.Now()
			got, err := s.Hold(t.Context())
			if took := time.Since(begun); took > 5*time.Second || (err == nil) != (3*delay < 5*time.Second) {
				t.Errorf("statements of %v: %v, %v after %v", delay, got, err, took)
			}
			wantHeld(t, leases, "only", got)
		})
	}
}

// TestAPauseInTheRenewal stops the process after a statement has taken effect,
// for longer than the lease that it brought.
func TestAPauseInTheRenewal(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{8500 * time.Millisecond, 15 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			leases := &paused{queuetest.NewTable(), pause}
			s := queue.NewLeases(leases, "polls", "only", all, time.Now)
			if got := hold(t, s); len(got) > 0 {
				t.Errorf("paused for %v: %v", pause, got)
			}
			leases.pause = 0
			if got := hold(t, s); len(got) != all {
				t.Errorf("then: %v", got)
			}
		})
	}
}

// paused is a table after whose last statement of a renewal nothing happens for
// a while.
type paused struct {
	*queuetest.Table
	pause time.Duration
}

func (p *paused) TakeLeases(ctx context.Context, l queue.Lease, now, until time.Time) ([]int, error) {
	ours, err := p.Table.TakeLeases(ctx, l, now, until)
	if l.Queue == "polls" && p.pause > 0 {
		pass(p.pause)
	}
	return ours, err
}

// wantHeld fails where somebody believes to hold what is not theirs in the table.
func wantHeld(tb testing.TB, leases *queuetest.Table, replica string, buckets []int) {
	tb.Helper()
	for _, b := range buckets {
		if holder, until := leases.Of("polls", b); holder != replica || !time.Now().Before(until) {
			tb.Errorf("%s holds %d, which is %s's until %v", replica, b, holder, until)
		}
	}
}

// TestASleepingReplicaWakesUp has a process paused for longer than its leases: it
// must not go on with what it held.
func TestASleepingShareWakesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		two := replicas(queuetest.NewTable(), 2)
		steps(t, 10, two...)
		steps(t, 15, two[1]) // the first one sleeps, and is inherited
		if got := hold(t, two[0]); len(got) > 0 {
			t.Errorf("wakes up and holds %v", got)
		}
		if held := steps(t, 7, two...); len(held[0]) != all/2 || len(held[1]) != all/2 {
			t.Errorf("later: %v", held)
		}
	})
}

// TestEveryMembershipTaken is about more replicas than there are memberships.
func TestEveryMembershipTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases := queuetest.NewTable()
		for number := range 256 {
			l := queue.Lease{Queue: "polls/members", Buckets: []int{number}, Holder: fmt.Sprint("other-", number)}
			if ours, err := leases.TakeLeases(t.Context(), l, time.Now(), time.Now().Add(time.Minute)); err != nil || len(ours) == 0 {
				t.Fatal(ours, err)
			}
		}
		if got, err := queue.NewLeases(leases, "polls", "one-too-many", all, time.Now).Hold(t.Context()); err == nil || got != nil {
			t.Errorf("%v, %v", got, err)
		}
	})
}
