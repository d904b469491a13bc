package limit

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

const (
	// countTimeout bounds one batch.
	countTimeout = 3 * time.Second

	// countPause lies between two tries to give back what is owed.
	countPause = time.Second

	// doubtFor bounds how long the fate of a batch is asked for. Counts remember a
	// batch for an hour, so one that is sent after that may be counted twice.
	doubtFor = 30 * time.Minute
)

// desk is what there is to do for one usage. One goroutine works at it, for as long
// as there is something; the counter's lock guards the first part.
type desk struct {
	usage    Usage
	waiting  []*reservation // in the order of their arrival
	releases []chan struct{}
	owed     int64         // units to give back
	wake     chan struct{} // of one, filled when something is added
	last     bool          // the counter was closed before the last try

	doubt // the worker's own
}

// doubt is a batch of which nobody knows whether it was counted: since when, and
// how many units it was to give back or to take. There is none where its number is 0.
type doubt struct {
	doubtful   int64
	since      time.Time
	back, take int64
}

// batch is what one pass over a desk does.
type batch struct {
	takes    []*reservation // all of one limit
	releases []chan struct{}
	back     int64
}

// work does what is on a desk until it is empty. What is owed and can't be given
// back now is tried again, at the latest with the next reservation.
func (c *Counter) work(d *desk) {
	for failed := false; ; {
		b, ok := c.next(d, failed)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), countTimeout)
		taken, used, err := c.settle(ctx, d, &b)
		cancel()
		c.judge(d, b, taken, used, err)
		if failed = err != nil; failed {
			select {
			case <-time.After(countPause):
			case <-d.wake:
			case <-c.closing:
			}
		}
	}
}

// next takes a batch from a desk, or false and the desk is gone.
func (c *Counter) next(d *desk, failed bool) (batch, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	abandoned := failed && d.last
	if abandoned || len(d.waiting) == 0 && d.owed == 0 && d.doubtful == 0 {
		delete(c.desks, d.usage)
		if abandoned {
			c.warn(d, d.owed)
			c.abandon(d)
		}
		return batch{}, false
	}
	n := 0
	for n < len(d.waiting) && d.waiting[n].limit == d.waiting[0].limit {
		d.waiting[n].state = batched
		n++
	}
	d.last = c.closed
	b := batch{takes: d.waiting[:n:n], releases: d.releases, back: d.owed}
	d.waiting, d.releases, d.owed = d.waiting[n:], nil, 0
	return b, true
}

// warn says that a desk's doubtful units are given up, and others with them.
func (c *Counter) warn(d *desk, others int64) {
	c.log.Warn("units of a quota may stay used that nobody has used: the database could not be reached", //nolint:noctx // of many requests
		"merchant_id", d.usage.Merchant, "mode", d.usage.Mode, "quota", d.usage.Name, "period", d.usage.Period, "units", others+d.back+d.take)
}

// abandon ends what can't be done any more.
func (c *Counter) abandon(d *desk) {
	for _, r := range d.waiting {
		r.state, r.err = judged, ErrCounterClosed
		close(r.done)
	}
	for _, tried := range d.releases {
		close(tried)
	}
}

// settle sends a batch: first what nobody knows of the last one, then what is given
// back, then what is taken. What it has sent and not heard of is doubtful
// afterwards; what it has not sent of what is owed stays in the batch.
func (c *Counter) settle(ctx context.Context, d *desk, b *batch) (taken, used int64, err error) {
	owner, name, period := movement.Owner{MerchantID: d.usage.Merchant, Mode: d.usage.Mode}, d.usage.Name, d.usage.Period
	if d.doubtful != 0 && time.Since(d.since) > doubtFor {
		c.warn(d, 0)
		d.doubt = doubt{}
	}
	if d.doubtful != 0 {
		unused, err := c.counts.GiveUsage(ctx, owner, name, period, c.replica, d.doubtful, d.back)
		if err != nil {
			return 0, 0, err
		}
		d.doubt = doubt{}
		b.back += unused // its reservations were told of an error
	}
	if b.back > 0 {
		d.doubt = doubt{doubtful: c.batches.Add(1), since: time.Now(), back: b.back}
		b.back = 0
		if _, err := c.counts.GiveUsage(ctx, owner, name, period, c.replica, d.doubtful, d.back); err != nil {
			return 0, 0, err
		}
		d.doubt = doubt{}
	}
	if len(b.takes) > 0 {
		d.doubt = doubt{doubtful: c.batches.Add(1), since: time.Now(), take: int64(len(b.takes))}
		taken, used, err = c.counts.TakeUsage(ctx, owner, name, period, c.replica, d.doubtful, d.take, b.takes[0].limit)
		if err != nil {
			return 0, 0, err
		}
		d.doubt = doubt{}
	}
	return taken, used, nil
}

// judge gives each reservation of a batch its verdict: as many as were taken have
// one, the first ones. What is left of those whose callers are gone is owed.
func (c *Counter) judge(d *desk, b batch, taken, used int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d.owed += b.back
	for i, r := range b.takes {
		after := used - taken + int64(i) + 1 // used, once this one has its unit
		ok := err == nil && int64(i) < taken
		if ok && r.state == left {
			d.owed++
		}
		if r.err = err; ok {
			r.counted = Counted{OK: true, Remaining: max(0, r.limit-after)}
		}
		r.state = judged
		close(r.done)
	}
	for _, tried := range b.releases {
		close(tried)
	}
}
