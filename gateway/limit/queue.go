package limit

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

const (
	// batchTimeout bounds one batch.
	batchTimeout = 3 * time.Second

	// retryPause lies between two tries to give back what is owed.
	retryPause = time.Second

	// retryFor bounds how long an unanswered batch is retried. The store remembers a
	// batch for an hour, and would count one twice that is sent after that.
	retryFor = 30 * time.Minute
)

// queue is the work of one usage. One goroutine does it, and ends when the queue is
// empty. The batcher's lock guards all but unanswered.
type queue struct {
	usage    Usage
	waiting  []*request // in the order of their arrival
	releases []chan struct{}
	owed     int64         // units to give back
	wake     chan struct{} // of one, filled when something is added
	last     bool          // the batcher was closed before the last try

	unanswered // only the worker uses it
}

// unanswered is a batch that was sent and not answered: its number, since when, and
// how many units it was to give back or to take. The number is 0 where there is none.
type unanswered struct {
	number     int64
	since      time.Time
	back, take int64
}

// batch is the work of one pass over a queue.
type batch struct {
	takes    []*request // all of one limit
	releases []chan struct{}
	back     int64
}

// work empties a queue. What can't be given back now is retried, at the latest with
// the next request.
func (b *Batcher) work(q *queue) {
	for failed := false; ; {
		next, ok := b.next(q, failed)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
		taken, used, err := b.send(ctx, q, &next)
		cancel()
		b.answer(q, next, taken, used, err)
		if failed = err != nil; failed {
			select {
			case <-time.After(retryPause):
			case <-q.wake:
			case <-b.closing:
			}
		}
	}
}

// next takes a batch from a queue. It returns false when the queue is removed.
func (b *Batcher) next(q *queue, failed bool) (batch, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	abandoned := failed && q.last
	if abandoned || len(q.waiting) == 0 && q.owed == 0 && q.number == 0 {
		delete(b.queues, q.usage)
		if abandoned {
			b.warn(q, q.owed)
			q.abandon()
		}
		return batch{}, false
	}
	n := 0
	for n < len(q.waiting) && q.waiting[n].limit == q.waiting[0].limit {
		q.waiting[n].state = batched
		n++
	}
	q.last = b.closed
	next := batch{takes: q.waiting[:n:n], releases: q.releases, back: q.owed}
	q.waiting, q.releases, q.owed = q.waiting[n:], nil, 0
	return next, true
}

// warn says that the unanswered units of a queue, and others, are given up.
func (b *Batcher) warn(q *queue, others int64) {
	b.log.Warn("quota: units may stay used that no request has used, the database could not be reached", //nolint:noctx // of many requests
		"merchant_id", q.usage.Merchant, "mode", q.usage.Mode, "quota", q.usage.Name, "period", q.usage.Period, "units", others+q.back+q.take)
}

// abandon answers everything that can't be done any more.
func (q *queue) abandon() {
	for _, r := range q.waiting {
		r.state, r.err = answered, errClosed
		close(r.done)
	}
	for _, tried := range q.releases {
		close(tried)
	}
}

// send sends a batch: first the unanswered one again, then what is given back, then
// what is taken. What was sent and not answered is in q.unanswered afterwards. What
// is owed and was not sent stays in the batch.
func (b *Batcher) send(ctx context.Context, q *queue, next *batch) (taken, used int64, err error) {
	owner, name, period := movement.Owner{MerchantID: q.usage.Merchant, Mode: q.usage.Mode}, q.usage.Name, q.usage.Period
	if q.number != 0 && time.Since(q.since) > retryFor {
		b.warn(q, 0)
		q.unanswered = unanswered{}
	}
	if q.number != 0 {
		unused, err := b.store.GiveUsage(ctx, owner, name, period, b.replica, q.number, q.back)
		if err != nil {
			return 0, 0, err
		}
		q.unanswered = unanswered{}
		next.back += unused // its requests were answered with an error
	}
	if next.back > 0 {
		q.unanswered = unanswered{number: b.batches.Add(1), since: time.Now(), back: next.back}
		next.back = 0
		if _, err := b.store.GiveUsage(ctx, owner, name, period, b.replica, q.number, q.back); err != nil {
			return 0, 0, err
		}
		q.unanswered = unanswered{}
	}
	if len(next.takes) > 0 {
		q.unanswered = unanswered{number: b.batches.Add(1), since: time.Now(), take: int64(len(next.takes))}
		taken, used, err = b.store.TakeUsage(ctx, owner, name, period, b.replica, q.number, q.take, next.takes[0].limit)
		if err != nil {
			return 0, 0, err
		}
		q.unanswered = unanswered{}
	}
	return taken, used, nil
}

// answer answers each request of a batch: the first ones have the units that were
// taken. A unit whose caller has gone is owed.
func (b *Batcher) answer(q *queue, sent batch, taken, used int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q.owed += sent.back
	if err == nil && len(sent.takes) > 0 {
		b.note(q.usage, used, sent.takes[0].limit)
	}
	for i, r := range sent.takes {
		after := used - taken + int64(i) + 1 // used, once this one has its unit
		ok := err == nil && int64(i) < taken
		if ok && r.state == left {
			q.owed++
		}
		if r.err = err; ok {
			r.reserved = Reservation{OK: true, Remaining: max(0, r.limit-after)}
		}
		r.state = answered
		close(r.done)
	}
	for _, tried := range sent.releases {
		close(tried)
	}
}
