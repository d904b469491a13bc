package worker_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/worker"
)

// journal is a log that tests read.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) count(what string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), what)
}

// run starts a worker and returns how to end it, which is also how to know that
// it has given everything back.
func run(t *testing.T, leases worker.Leases, q worker.Queue, r worker.Resolver, name string) (log *journal, end func()) {
	t.Helper()
	log = &journal{}
	w := worker.New(q, r, worker.NewShare(leases, "resolve", name), slog.New(slog.NewTextHandler(log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return log, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	}
}

func TestDueMovementsAreResolved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(50, time.Now())
		later := movement.NewID()
		q.add(later, time.Now().Add(30*time.Second))
		r := &resolver{queue: q, takes: 100 * time.Millisecond}
		log, end := run(t, newTable(), q, r, "only")
		pass(2 * time.Second)
		if q.left() != 1 || len(r.counts()) != 50 {
			t.Errorf("%d left, %d looked at", q.left(), len(r.counts()))
		}
		if most := r.peak(); most > 64 || most < 2 {
			t.Errorf("%d looks at once", most)
		}
		pass(30 * time.Second)
		if looks := r.counts(); q.left() != 0 || len(looks) != 51 || looks[50] != 1 {
			t.Errorf("what became due later: %d left, looks %v", q.left(), looks)
		}
		end()
		if log.count("level=WARN") > 0 {
			t.Errorf("log:\n%s", &log.text)
		}
	})
}

func TestErrorsDoNotStopTheWorker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := newTable(), newQueue(3, time.Now())
		r := &resolver{queue: q, fails: true}
		log, end := run(t, leases, q, r, "only")
		defer end()
		pass(2500 * time.Millisecond)
		if looks := r.counts(); len(looks) != 3 || looks[0] != 3 {
			t.Errorf("failing looks: %v in three scans", looks)
		}
		q.fail(errAway)
		pass(5 * time.Second)
		leases.set(errAway, 0)
		pass(20 * time.Second)
		for _, complaint := range []string{"provider is away", "read what is due", "lease buckets"} {
			if log.count(complaint) == 0 {
				t.Errorf("nothing said %q:\n%s", complaint, &log.text)
			}
		}
		leases.set(nil, 0)
		q.fail(nil)
		r.heal()
		pass(5 * time.Second)
		if q.left() != 0 {
			t.Errorf("%d left after all is back", q.left())
		}
	})
}

// TestADatabaseThatHangs does not answer and does not fail either.
func TestADatabaseThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := newTable(), newQueue(3, time.Now())
		leases.set(nil, 24*time.Hour)
		log, end := run(t, leases, q, &resolver{queue: q}, "only")
		defer end()
		pass(time.Minute)
		if log.count("lease buckets") == 0 {
			t.Error("nobody is told")
		}
		leases.set(nil, 0)
		pass(10 * time.Second)
		if q.left() != 0 {
			t.Errorf("%d left", q.left())
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := newTable(), newQueue(100, time.Now())
		r := &resolver{queue: q, takes: time.Hour}
		log, end := run(t, leases, q, r, "only")
		pass(500 * time.Millisecond)
		begun := time.Now()
		end()
		if took := time.Since(begun); took > 0 {
			t.Errorf("the end took %v", took)
		}
		if len(leases.leases) != 0 {
			t.Errorf("kept: %v", leases.leases)
		}
		if r.looking != 0 {
			t.Errorf("%d looks outlive the worker", r.looking)
		}
		if log.count("level=WARN") > 0 {
			t.Errorf("an end is no fault:\n%s", &log.text)
		}
	})
}

func TestTwoWorkersShareTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := newTable(), newQueue(0, time.Time{})
		a, b := &resolver{queue: q, takes: time.Second}, &resolver{queue: q, takes: time.Second}
		_, endA := run(t, leases, q, a, "a")
		_, endB := run(t, leases, q, b, "b")
		pass(15 * time.Second)
		for range 160 {
			q.add(movement.NewID(), time.Now())
		}
		pass(30 * time.Second)
		if q.left() > 0 || len(a.counts()) < 40 || len(b.counts()) < 40 || len(a.counts())+len(b.counts()) != 160 {
			t.Errorf("%d and %d looked at, %d left", len(a.counts()), len(b.counts()), q.left())
		}
		endA()
		for range 160 {
			q.add(movement.NewID(), time.Now())
		}
		pass(40 * time.Second)
		if q.left() > 0 {
			t.Errorf("%d left when one has gone", q.left())
		}
		endB()
	})
}

// TestALongBatchKeepsItsLeases has more work in one batch than a lease lasts.
func TestALongBatchKeepsItsLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := newTable(), newQueue(200, time.Now())
		r := &resolver{queue: q, takes: 14 * time.Second} // 4 rounds of 64: about a minute
		r.look = func(m movement.Movement) { leases.judge(t, "only", []int{m.ID.Bucket()}) }
		_, end := run(t, leases, q, r, "only")
		defer end()
		pass(time.Minute)
		if q.left() != 0 {
			t.Errorf("%d left", q.left())
		}
	})
}

// TestALongBatchEndsWithItsLeases loses the database in the middle of a batch:
// nothing is begun of which the lease may be another's.
func TestALongBatchEndsWithItsLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := newTable(), newQueue(200, time.Now())
		r := &resolver{queue: q, takes: 4 * time.Second}
		log, end := run(t, leases, q, r, "only")
		defer end()
		pass(time.Second)
		leases.set(errAway, 0)
		begun := time.Now()
		r.mu.Lock()
		r.look = func(movement.Movement) {
			if since := time.Since(begun); since > 9*time.Second {
				t.Errorf("begins a look after %v without leases", since)
			}
		}
		r.mu.Unlock()
		pass(40 * time.Second)
		if log.count("renew leases") == 0 {
			t.Errorf("nobody is told:\n%s", &log.text)
		}
	})
}

// TestOldWorkIsFound is about what lies further back than an ordinary scan
// looks, more than a batch of it.
func TestOldWorkIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1000, time.Now().Add(-time.Hour))
		for range 20 {
			q.add(movement.NewID(), time.Now())
		}
		r := &resolver{queue: q}
		_, end := run(t, newTable(), q, r, "only")
		pass(1500 * time.Millisecond)
		if q.left() != 800 {
			t.Errorf("%d left: what is new waits for all that is old", q.left())
		}
		pass(15 * time.Second)
		if q.left() != 0 {
			t.Errorf("%d left", q.left())
		}
		pass(time.Minute)
		end()
		full := 0
		for _, since := range q.since {
			if since.IsZero() {
				full++
			}
		}
		if full < 7 || full > 9 { // six for the thousand, one each minute
			t.Errorf("%d of %d scans were full", full, len(q.since))
		}
	})
}

// TestWithoutABucketNothingIsRead is about a replica that finds all taken.
func TestWithoutABucketNothingIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(1, time.Now())
		log, end := run(t, lockedOut{newTable()}, q, &resolver{queue: q}, "only")
		pass(10 * time.Second)
		end()
		if len(q.since) > 0 || q.left() != 1 || log.count("level=WARN") > 0 {
			t.Errorf("read %d times, %d left:\n%s", len(q.since), q.left(), &log.text)
		}
	})
}

// lockedOut is a table of which nobody gets a bucket.
type lockedOut struct{ *table }

func (l lockedOut) TakeLeases(ctx context.Context, lease store.Lease, now, until time.Time) ([]int, error) {
	if lease.Queue == "resolve" {
		return nil, nil
	}
	return l.table.TakeLeases(ctx, lease, now, until)
}
