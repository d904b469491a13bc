package lifecycle_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
)

// open are movements that are due until they are resolved.
type open struct {
	mu    sync.Mutex
	due   map[movement.ID]time.Time
	polls map[movement.ID]int
	fails bool // and they stay due
	most  int  // at once
	now   int
}

func newOpen(n int) *open {
	o := &open{due: map[movement.ID]time.Time{}, polls: map[movement.ID]int{}}
	for range n {
		o.due[movement.NewID()] = time.Now()
	}
	return o
}

// Due implements lifecycle.DueMovements.
func (o *open) Due(_ context.Context, buckets []int, since, now time.Time, most int) (due []movement.Movement, _ error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, at := range o.due {
		if slices.Contains(buckets, id.Bucket()) && !at.Before(since) && !at.After(now) && len(due) < most {
			due = append(due, movement.Movement{ID: id, Polled: movement.Polled{DueAt: at}})
		}
	}
	return due, nil
}

// Resolve implements lifecycle.Resolver.
func (o *open) Resolve(_ context.Context, m movement.Movement) error {
	o.mu.Lock()
	o.polls[m.ID]++
	o.now++
	o.most = max(o.most, o.now)
	o.mu.Unlock()
	<-time.After(100 * time.Millisecond)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now--
	if o.fails {
		return errors.New("the provider is away")
	}
	delete(o.due, m.ID)
	return nil
}

func (o *open) fail(fails bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fails = fails
}

func (o *open) state() (left, most int, polls map[movement.ID]int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.due), o.most, o.polls
}

func poll(t *testing.T, o *open) (log *queuetest.Log, end func()) {
	t.Helper()
	log = &queuetest.Log{}
	leases := queue.NewLeases(queuetest.NewTable(), "polls", "only", movement.Buckets)
	return log, queuetest.Start(t, lifecycle.NewPoller(o, o, leases, slog.New(slog.NewTextHandler(log, nil))).Run)
}

// TestDueMovementsAreResolved has more than a page of them: a page is read each
// second, and each movement is polled once.
func TestDueMovementsAreResolved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOpen(450)
		log, end := poll(t, o)
		<-time.After(900 * time.Millisecond)
		if left, most, _ := o.state(); left != 250 || most != 64 {
			t.Errorf("%d left after a page, %d polled at once", left, most)
		}
		<-time.After(2 * time.Second)
		end()
		left, _, polls := o.state()
		for id, n := range polls {
			if n != 1 {
				t.Errorf("%s was polled %d times", id, n)
			}
		}
		if left != 0 || len(polls) != 450 || log.Count("level=WARN") > 0 {
			t.Errorf("%d left, %d polled:\n%s", left, len(polls), log)
		}
	})
}

// TestAFailingPollIsMadeAgain, without a rest, and does not stop the others.
func TestAFailingPollIsMadeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOpen(3)
		o.fail(true)
		log, end := poll(t, o)
		defer end()
		<-time.After(2500 * time.Millisecond)
		if _, _, polls := o.state(); len(polls) != 3 {
			t.Errorf("%d polled", len(polls))
		} else {
			for id, n := range polls {
				if n != 3 || log.Count("resolve "+id.String()) != 3 {
					t.Errorf("%s: polled %d times in three scans, logged %d times", id, n, log.Count("resolve "+id.String()))
				}
			}
		}
		o.fail(false)
		<-time.After(2 * time.Second)
		if left, _, _ := o.state(); left != 0 {
			t.Errorf("%d left", left)
		}
	})
}
