package queue_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
)

// TestNoBucketIsHeldTwice lets replicas come, die, sleep and leave while the
// database is away and slow at times. What a replica is told to hold it uses for
// the next second, and no other may be told the same in that second.
func TestNoBucketIsHeldTwice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.SampledFrom(events), 40, 120).Draw(rt, "script")
		fault := ""
		synctest.Test(t, func(t *testing.T) { fault = play(t, script) })
		if fault != "" {
			rt.Fatal(fault)
		}
	})
}

type event string

const (
	calm    event = "calm"
	join    event = "join"
	kill    event = "kill"
	leave   event = "leave"
	sleep   event = "sleep"
	wake    event = "wake"
	away    event = "away"
	slow    event = "slow"
	crawl   event = "crawl"
	restore event = "restore"
)

var events = []event{calm, calm, calm, calm, calm, calm, join, join, kill, leave, sleep, wake, away, slow, crawl, restore, restore}

// swarm is replicas at one table of leases.
type swarm struct {
	leases   *queuetest.Table
	replicas []*replica
	born     int

	mu    sync.Mutex
	using map[int]use // by bucket
	fault string
}

// use is who uses a bucket, and until when.
type use struct {
	replica string
	until   time.Time
}

type replica struct {
	name         string
	leases       *queue.Leases
	kill         context.CancelFunc
	asleep, left bool // under the swarm's lock
	held         int
	done         chan struct{}
}

// play runs a script of one event a second, and then a calm minute after which
// everything must be held again.
func play(t *testing.T, script []event) string {
	s := &swarm{leases: queuetest.NewTable(), using: map[int]use{}}
	s.apply(t.Context(), join, 0)
	for second, e := range script {
		s.apply(t.Context(), e, second)
		pass(time.Second)
	}
	s.apply(t.Context(), wake, 0)
	s.apply(t.Context(), restore, 0)
	pass(time.Minute)
	held := 0
	for _, r := range s.replicas {
		r.kill()
		<-r.done
		held += r.held
	}
	if s.fault == "" && held != all {
		return fmt.Sprintf("after a calm minute %d replicas hold %d buckets", len(s.replicas), held)
	}
	return s.fault
}

func (s *swarm) apply(ctx context.Context, e event, second int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := 0
	if len(s.replicas) > 0 {
		i = second % len(s.replicas)
	}
	switch {
	case e == join && len(s.replicas) < 5:
		s.join(ctx)
	case e == kill && len(s.replicas) > 1:
		s.replicas[i].kill()
		s.replicas = slices.Delete(s.replicas, i, i+1)
	case e == leave && len(s.replicas) > 1:
		s.replicas[i].left = true
		s.replicas = slices.Delete(s.replicas, i, i+1)
	case e == sleep:
		s.replicas[i].asleep = true
	case e == wake:
		for _, r := range s.replicas {
			r.asleep = false
		}
	case e == away:
		s.leases.Set(queuetest.ErrAway, 0)
	case e == slow:
		s.leases.Set(nil, 250*time.Millisecond)
	case e == crawl:
		s.leases.Set(nil, 3*time.Second)
	case e == restore:
		s.leases.Set(nil, 0)
	}
}

func (s *swarm) join(ctx context.Context) {
	s.born++
	r := &replica{name: fmt.Sprint("replica-", s.born), done: make(chan struct{})}
	r.leases = queue.NewLeases(s.leases, "polls", r.name, all, time.Now)
	ctx, r.kill = context.WithCancel(ctx)
	s.replicas = append(s.replicas, r)
	go s.live(ctx, r)
}

// live holds every second, as a runner does.
func (s *swarm) live(ctx context.Context, r *replica) {
	defer close(r.done)
	for ctx.Err() == nil {
		s.mu.Lock()
		asleep, left := r.asleep, r.left
		s.mu.Unlock()
		if left {
			s.use(r, nil)
			r.leases.Release(ctx)
			return
		}
		if !asleep {
			s.use(r, nil)
			buckets, _ := r.leases.Hold(ctx)
			s.use(r, buckets)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// use has a replica use exactly these buckets for a second.
func (s *swarm) use(r *replica, buckets []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for bucket, u := range s.using {
		if u.replica == r.name {
			delete(s.using, bucket)
		}
	}
	for _, bucket := range buckets {
		if u := s.using[bucket]; u.replica != "" && u.until.After(now) {
			s.fault = fmt.Sprintf("%v: %s and %s use bucket %d", now, u.replica, r.name, bucket)
		}
		s.using[bucket] = use{r.name, now.Add(time.Second)}
	}
	r.held = len(buckets)
}
