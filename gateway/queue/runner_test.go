package queue_test

import (
	"context"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
)

// start runs a queue that is read each second, and returns how to end it, which is
// also how to know that it has given everything back.
func start(t *testing.T, leases queue.LeaseStore, q *rows, d *doer, name string) (log *queuetest.Log, end func()) {
	t.Helper()
	log = &queuetest.Log{}
	var r *queue.Runner[row]
	r = queue.NewRunner(queue.Work[row]{
		Name: "test", Every: time.Second, Page: 200, Due: q.Due,
		Handle: func(ctx context.Context, page []row) error {
			return r.Each(ctx, page, 64, bucketOf, func(one row) error { return d.do(ctx, one) })
		},
	}, queue.NewLeases(leases, "polls", name, all, time.Now), slog.New(slog.NewTextHandler(log, nil)))
	return log, queuetest.Start(t, r.Run)
}

func TestDueRowsAreDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newRows(50, time.Now())
		q.add(movement.NewID(), time.Now().Add(30*time.Second))
		d := &doer{rows: q, takes: 100 * time.Millisecond}
		log, end := start(t, queuetest.NewTable(), q, d, "only")
		pass(2 * time.Second)
		if q.left() != 1 || len(d.counts()) != 50 {
			t.Errorf("%d left, %d done", q.left(), len(d.counts()))
		}
		if most := d.peak(); most > 64 || most < 2 {
			t.Errorf("%d done at once", most)
		}
		pass(30 * time.Second)
		if counts := d.counts(); q.left() != 0 || len(counts) != 51 || counts[50] != 1 {
			t.Errorf("what became due later: %d left, done %v", q.left(), counts)
		}
		end()
		if log.Count("level=WARN") > 0 {
			t.Errorf("log:\n%s", log)
		}
	})
}

func TestErrorsDoNotStopTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := queuetest.NewTable(), newRows(3, time.Now())
		d := &doer{rows: q, fails: true}
		log, end := start(t, leases, q, d, "only")
		defer end()
		pass(20 * time.Second)
		if counts := d.counts(); len(counts) != 3 || counts[0] != 4 { // one more each 5 s of rest and a second
			t.Errorf("what can't be written: done %v times in 20 s", counts)
		}
		q.fail(queuetest.ErrAway)
		pass(10 * time.Second)
		leases.Set(queuetest.ErrAway, 0)
		pass(20 * time.Second)
		for _, complaint := range []string{"what is due can't be read", "buckets can't be leased"} {
			if log.Count(complaint) == 0 {
				t.Errorf("nothing said %q:\n%s", complaint, log)
			}
		}
		leases.Set(nil, 0)
		q.fail(nil)
		d.heal()
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
		leases, q := queuetest.NewTable(), newRows(3, time.Now())
		leases.Set(nil, 24*time.Hour)
		log, end := start(t, leases, q, &doer{rows: q}, "only")
		defer end()
		pass(time.Minute)
		if log.Count("buckets can't be leased") == 0 {
			t.Error("nobody is told")
		}
		leases.Set(nil, 0)
		pass(10 * time.Second)
		if q.left() != 0 {
			t.Errorf("%d left", q.left())
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := queuetest.NewTable(), newRows(100, time.Now())
		d := &doer{rows: q, takes: time.Hour}
		log, end := start(t, leases, q, d, "only")
		pass(500 * time.Millisecond)
		begun := time.Now()
		end()
		if took := time.Since(begun); took > 0 {
			t.Errorf("the end took %v", took)
		}
		if n := leases.Held("only"); n != 0 {
			t.Errorf("kept %d leases", n)
		}
		if d.doing != 0 {
			t.Errorf("%d rows outlive the queue", d.doing)
		}
		if log.Count("level=WARN") > 0 {
			t.Errorf("an end is no fault:\n%s", log)
		}
	})
}

func TestTwoReplicasShareTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := queuetest.NewTable(), newRows(0, time.Time{})
		a, b := &doer{rows: q, takes: time.Second}, &doer{rows: q, takes: time.Second}
		_, endA := start(t, leases, q, a, "a")
		_, endB := start(t, leases, q, b, "b")
		pass(15 * time.Second)
		for range 160 {
			q.add(movement.NewID(), time.Now())
		}
		pass(30 * time.Second)
		if q.left() > 0 || len(a.counts()) < 40 || len(b.counts()) < 40 || len(a.counts())+len(b.counts()) != 160 {
			t.Errorf("%d and %d done, %d left", len(a.counts()), len(b.counts()), q.left())
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

// TestALongPageKeepsItsLeases has more work in one page than a lease lasts.
func TestALongPageKeepsItsLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := queuetest.NewTable(), newRows(200, time.Now())
		d := &doer{rows: q, takes: 14 * time.Second} // 4 rounds of 64: about a minute
		d.seen = func(r row) { wantHeld(t, leases, "only", []int{r.id.Bucket()}) }
		_, end := start(t, leases, q, d, "only")
		defer end()
		pass(time.Minute)
		if q.left() != 0 {
			t.Errorf("%d left", q.left())
		}
	})
}

// TestALongPageEndsWithItsLeases loses the database in the middle of a page:
// nothing is begun of which the lease may be another's.
func TestALongPageEndsWithItsLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := queuetest.NewTable(), newRows(200, time.Now())
		d := &doer{rows: q, takes: 4 * time.Second}
		log, end := start(t, leases, q, d, "only")
		defer end()
		pass(time.Second)
		leases.Set(queuetest.ErrAway, 0)
		begun := time.Now()
		d.mu.Lock()
		d.seen = func(row) {
			if since := time.Since(begun); since > 9*time.Second {
				t.Errorf("begins a row after %v without leases", since)
			}
		}
		d.mu.Unlock()
		pass(40 * time.Second)
		if log.Count("buckets can't be leased") == 0 {
			t.Errorf("nobody is told:\n%s", log)
		}
	})
}

// TestOldWorkIsFound is about what lies further back than an ordinary scan
// looks, more than a page of it.
func TestOldWorkIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newRows(1000, time.Now().Add(-time.Hour))
		for range 20 {
			q.add(movement.NewID(), time.Now())
		}
		_, end := start(t, queuetest.NewTable(), q, &doer{rows: q}, "only")
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
		q := newRows(1, time.Now())
		log, end := start(t, lockedOut{queuetest.NewTable()}, q, &doer{rows: q}, "only")
		pass(10 * time.Second)
		end()
		if q.reads() > 0 || q.left() != 1 || log.Count("level=WARN") > 0 {
			t.Errorf("read %d times, %d left:\n%s", q.reads(), q.left(), log)
		}
	})
}

// lockedOut is a table of which nobody gets a bucket.
type lockedOut struct{ *queuetest.Table }

func (l lockedOut) TakeLeases(ctx context.Context, lease queue.Lease, now, until time.Time) ([]int, error) {
	if lease.Queue == "polls" {
		return nil, nil
	}
	return l.Table.TakeLeases(ctx, lease, now, until)
}

// TestAPageHasNoMoreThanThereIsRoomFor: without room the queue is not read, and is as soon as there is some.
func TestAPageHasNoMoreThanThereIsRoomFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := queuetest.NewTable(), newRows(100, time.Now())
		var room atomic.Int64
		var pages []int
		r := queue.NewRunner(queue.Work[row]{
			Name: "test", Every: time.Hour, Page: 50, Eager: true, Due: q.Due, Room: func() int { return int(room.Load()) },
			Handle: func(ctx context.Context, page []row) error {
				pages = append(pages, len(page))
				room.Add(-int64(len(page)))
				for _, one := range page {
					if err := (&doer{rows: q}).do(ctx, one); err != nil {
						return err
					}
				}
				return nil
			},
		}, queue.NewLeases(leases, "polls", "only", all, time.Now), slog.New(slog.DiscardHandler))
		defer queuetest.Start(t, r.Run)()
		pass(time.Second)
		if len(pages) != 0 || len(q.since) != 0 {
			t.Errorf("without room it is read %d times", len(q.since))
		}
		for _, more := range []int64{7, 20, 1000} {
			room.Store(more)
			pass(time.Second)
		}
		if want := []int{7, 20, 50, 23}; !slices.Equal(pages, want) || q.left() != 0 {
			t.Errorf("pages of %d, want %d; %d left", pages, want, q.left())
		}
	})
}

// TestAnEagerQueueReadsOnAndIsDrained: full pages follow at once, a wake-up needs
// no tick, and the leases are kept until what is under way has ended.
func TestAnEagerQueueReadsOnAndIsDrained(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		leases, q := queuetest.NewTable(), newRows(1000, time.Now())
		d, drained := &doer{rows: q}, 0
		r := queue.NewRunner(queue.Work[row]{
			Name: "test", Every: time.Hour, Page: 100, Eager: true, Due: q.Due,
			Handle: func(ctx context.Context, page []row) error {
				for _, one := range page {
					if err := d.do(ctx, one); err != nil {
						return err
					}
				}
				return nil
			},
			Drain: func() { drained = leases.Held("only") },
		}, queue.NewLeases(leases, "polls", "only", all, time.Now), slog.New(slog.DiscardHandler))
		end := queuetest.Start(t, r.Run)
		pass(time.Second)
		if q.left() != 0 {
			t.Errorf("%d left of ten pages", q.left())
		}
		q.add(movement.NewID(), time.Now())
		pass(time.Second)
		if q.left() != 1 {
			t.Error("it is read before its time")
		}
		r.Wake()
		r.Wake()
		pass(25 * time.Millisecond)
		if q.left() != 0 {
			t.Error("a wake-up has it read too late")
		}
		end()
		if drained != all+1 || leases.Held("only") != 0 {
			t.Errorf("%d leases while it was drained, %d at the end", drained, leases.Held("only"))
		}
	})
}
