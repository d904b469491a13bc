package lifecycle_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// open are movements that are due until they are resolved.
type open struct {
	mu    sync.Mutex
	due   map[movement.ID]movement.Movement
	polls map[movement.ID]int
	fails bool                         // and they stay due
	harms func(movement.Movement) bool // nil: none panics
	hangs func(movement.Movement) bool // nil: none does
	most  map[string]int               // at once, by upstream
	now   map[string]int
	read  int           // polls, of the largest scan
	late  time.Duration // how long what is added has been due

	endless func(movement.DueScan) bool // scans that are not answered; nil: all are
	silent  bool                        // the next read of movements is not answered
}

func newOpen() *open {
	return &open{due: map[movement.ID]movement.Movement{}, polls: map[movement.ID]int{}, most: map[string]int{}, now: map[string]int{}}
}

// add makes movements due now, the later ones before the earlier ones.
func (o *open) add(n int, provider, merchant string, owner manifest.Owner) {
	o.addIn(movement.Pending, n, provider, merchant, owner)
}

func (o *open) addIn(state movement.State, n int, provider, merchant string, owner manifest.Owner) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range n {
		m := movement.Movement{
			ID: movement.NewID(), State: state, Key: movement.Key{Owner: movement.Owner{MerchantID: merchant, Mode: "live"}},
			Provider: provider, ConnectionOwner: owner, Polled: movement.Polled{DueAt: time.Now().Add(-o.late - time.Duration(len(o.due)))},
		}
		o.due[m.ID] = m
	}
}

// Due implements lifecycle.DuePolls.
func (o *open) Due(ctx context.Context, scan movement.DueScan) (due []movement.DuePoll, _ error) {
	if o.endless != nil && o.endless(scan) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, from := range scan.From {
		var here []movement.DuePoll
		for id, m := range o.due {
			if id.Bucket() == from.Bucket && from.Behind(m.DueAt, id) && !m.DueAt.After(scan.Now) {
				here = append(here, movement.DuePoll{ID: id, Account: m.QueueAccount(), DueAt: m.DueAt})
			}
		}
		slices.SortFunc(here, inTurn)
		here = here[:min(len(here), scan.Most)]
		due = append(due, here...)
	}
	o.read = max(o.read, len(due))
	slices.SortFunc(due, inTurn)
	return due, nil
}

func inTurn(a, b movement.DuePoll) int {
	return cmp.Or(a.DueAt.Compare(b.DueAt), bytes.Compare(a.ID[:], b.ID[:]))
}

// MovementsByID implements lifecycle.DuePolls.
func (o *open) MovementsByID(ctx context.Context, ids []movement.ID) (found []movement.Movement, _ error) {
	o.mu.Lock()
	silent := o.silent
	o.silent = false
	o.mu.Unlock()
	if silent {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range ids {
		if m, is := o.due[id]; is {
			found = append(found, m)
		}
	}
	return found, nil
}

// Resolve implements lifecycle.Resolver.
func (o *open) Resolve(ctx context.Context, m movement.Movement) error {
	o.mu.Lock()
	o.polls[m.ID]++
	o.now[m.Provider]++
	o.most[m.Provider] = max(o.most[m.Provider], o.now[m.Provider])
	hangs, harms := o.hangs != nil && o.hangs(m), o.harms != nil && o.harms(m)
	if harms {
		o.now[m.Provider]--
	}
	o.mu.Unlock()
	if harms {
		panic("a plugin's answer that nobody thought of")
	}
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	<-time.After(100 * time.Millisecond)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now[m.Provider]--
	if o.fails {
		return errors.New("the provider is away")
	}
	delete(o.due, m.ID)
	return nil
}

// PutOff implements lifecycle.Resolver.
func (o *open) PutOff(_ context.Context, m movement.Movement) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	m.DueAt = time.Now().Add(time.Hour)
	o.due[m.ID] = m
	return nil
}

func (o *open) fail(fails bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.fails = fails
}

func (o *open) state() (left map[string]int, most map[string]int, polls map[movement.ID]int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	left = map[string]int{}
	for _, m := range o.due {
		left[m.Provider+" "+m.Owner.MerchantID]++
	}
	return left, maps.Clone(o.most), maps.Clone(o.polls)
}

func poll(t *testing.T, o *open) (log *queuetest.Log, end func()) {
	t.Helper()
	log = &queuetest.Log{}
	leases := queue.NewLeases(queuetest.NewTable(), "polls", "only", movement.Buckets, time.Now)
	return log, queuetest.Start(t, lifecycle.NewPoller(o, o, leases, slog.New(slog.NewTextHandler(log, nil))).Run)
}

// TestAPanicEndsItsPollAlone: a poll that panics is logged and has its places free
// again, so that all others are resolved.
func TestAPanicEndsItsPollAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOpen()
		o.harms = func(m movement.Movement) bool { return m.Owner.MerchantID == "harmful" }
		o.add(20, "fake", "other", manifest.OwnerMerchant)
		o.add(200, "fake", "harmful", manifest.OwnerMerchant)
		log, end := poll(t, o)
		<-time.After(20 * time.Second)
		end()
		left, _, polls := o.state()
		if want := map[string]int{"fake harmful": 200}; !maps.Equal(left, want) {
			t.Errorf("left: %v, want %v, later", left, want)
		}
		for id, n := range polls {
			if n != 1 {
				t.Errorf("%s was polled %d times", id, n)
			}
		}
		if text := log.String(); !strings.Contains(text, "panic: a plugin's answer") || !strings.Contains(text, "poller_test.go") {
			t.Errorf("logged: %s", text)
		}
	})
}

// TestDueMovementsAreResolved has more than a page of them: each is polled once, so many
// at once and no more.
func TestDueMovementsAreResolved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOpen()
		o.add(450, "fake", "platform's", manifest.OwnerPlatform)
		log, end := poll(t, o)
		<-time.After(3 * time.Second)
		end()
		left, most, polls := o.state()
		for id, n := range polls {
			if n != 1 {
				t.Errorf("%s was polled %d times", id, n)
			}
		}
		if len(left) != 0 || len(polls) != 450 || most["fake"] != 64 || log.Count("level=WARN") > 0 {
			t.Errorf("%v left, %d polled, %v at once:\n%s", left, len(polls), most, log)
		}
	})
}

// TestWhatHangsHoldsUpNoOther has an upstream that never answers, and an account, with
// far more due than a page: all others are resolved meanwhile, and what comes later is
// within a second.
func TestWhatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOpen()
		o.hangs = func(m movement.Movement) bool { return m.Provider == "dead" || m.Owner.MerchantID == "stuck" }
		o.add(30, "fake", "well", manifest.OwnerMerchant)
		o.add(500, "fake", "stuck", manifest.OwnerMerchant)
		o.add(30, "fake", "platform's", manifest.OwnerPlatform)
		o.add(500, "dead", "well", manifest.OwnerMerchant)
		o.add(500, "dead", "platform's", manifest.OwnerPlatform)
		_, end := poll(t, o)
		defer end()
		<-time.After(3 * time.Second)
		for range 5 {
			o.add(10, "fake", "well", manifest.OwnerMerchant)
			<-time.After(1200 * time.Millisecond)
			left, most, polls := o.state()
			if left["fake well"] != 0 || left["fake platform's"] != 0 || left["fake stuck"] != 500 || left["dead well"] != 500 {
				t.Fatalf("left %v", left)
			}
			if most["dead"] != 64 || most["fake"] > 64 || len(polls) > 30+30+50+64+16 {
				t.Fatalf("%v at once, %d polled", most, len(polls))
			}
		}
	})
}

// TestAnAccountThatHangsKeepsNobody has an account hang of which more is due than a scan
// reads, all of it for longer than what else is: a scan stays bounded, and one after the
// other they come to what lies behind. After an outage all of that is older than what an
// ordinary scan reads.
func TestAnAccountThatHangsKeepsNobody(t *testing.T) {
	t.Parallel()
	for name, late := range map[string]time.Duration{"now": 0, "after an outage": time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOpen()
				o.late = late
				o.hangs = func(m movement.Movement) bool { return m.Owner.MerchantID == "stuck" }
				o.add(40, "fake", "well", manifest.OwnerMerchant)
				o.add(20_000, "fake", "stuck", manifest.OwnerMerchant)
				_, end := poll(t, o)
				defer end()
				<-time.After(10 * time.Second)
				left, most, _ := o.state()
				if left["fake well"] != 0 || left["fake stuck"] != 20_000 || most["fake"] != 32 {
					t.Errorf("left %v, %v at once", left, most)
				}
				if o.read > 1000*movement.Buckets {
					t.Errorf("a scan reads %d polls", o.read)
				}
			})
		})
	}
}

// TestWhatHasSucceededComesLast: lookups after a success take few places, however long they
// have been due and however many, and all are made.
func TestWhatHasSucceededComesLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOpen()
		o.hangs = func(m movement.Movement) bool { return m.State == movement.Succeeded }
		o.add(100, "fake", "well", manifest.OwnerMerchant)
		o.late = time.Minute
		o.addIn(movement.Succeeded, 60, "fake", "paid", manifest.OwnerMerchant)
		o.addIn(movement.Succeeded, 60, "fake", "well", manifest.OwnerMerchant)
		_, end := poll(t, o)
		<-time.After(3 * time.Second)
		left, most, polls := o.state()
		after := 0
		for id := range polls {
			if o.due[id].State == movement.Succeeded {
				after++
			}
		}
		if left["fake well"] != 60 || after != 4 || most["fake"] > 16+4 {
			t.Errorf("left %v, %v at once, %d of what has succeeded", left, most, after)
		}
		end()
		o.hangs = nil
		_, end = poll(t, o)
		defer end()
		<-time.After(20 * time.Second)
		if left, _, _ := o.state(); len(left) != 0 {
			t.Errorf("left %v", left)
		}
	})
}

// TestAFailingPollIsMadeAgain, without a rest, and does not stop the others.
func TestAFailingPollIsMadeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOpen()
		o.add(3, "fake", "platform's", manifest.OwnerPlatform)
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
		if left, _, _ := o.state(); len(left) != 0 {
			t.Errorf("%v left", left)
		}
	})
}

// TestAReadBehindThatFailsHoldsUpNoPage: where what lies behind full pages can't be read
// in time, the first pages are polled all the same.
func TestAReadBehindThatFailsHoldsUpNoPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOpen()
		o.add(64*movement.Buckets*2, "fake", "well", manifest.OwnerMerchant)
		o.endless = func(scan movement.DueScan) bool { return scan.Behind }
		log, end := poll(t, o)
		<-time.After(10 * time.Second)
		end()
		if _, _, polls := o.state(); len(polls) == 0 || log.Count("deadline exceeded") == 0 {
			t.Errorf("%d polled:\n%s", len(polls), log)
		}
	})
}

// TestAReadOfMovementsThatHangsEnds, and has their places free again.
func TestAReadOfMovementsThatHangsEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOpen()
		o.silent = true
		o.add(10, "fake", "well", manifest.OwnerMerchant)
		log, end := poll(t, o)
		<-time.After(10 * time.Second)
		end()
		if left, _, _ := o.state(); len(left) != 0 || log.Count("deadline exceeded") != 1 {
			t.Errorf("left %v:\n%s", left, log)
		}
	})
}
