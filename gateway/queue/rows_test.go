package queue_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
)

// row is one of a queue, named by a movement.
type row struct {
	id movement.ID
	at time.Time
}

func bucketOf(r row) int { return r.id.Bucket() }

// rows are a queue in memory. What is read stays due until it is done.
type rows struct {
	mu    sync.Mutex
	due   map[movement.ID]time.Time
	err   error
	since []time.Time // of each read
}

func newRows(n int, at time.Time) *rows {
	q := &rows{due: map[movement.ID]time.Time{}}
	for range n {
		q.due[movement.NewID()] = at
	}
	return q
}

// Due reads a page.
func (q *rows) Due(_ context.Context, b queue.Batch) ([]row, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return nil, q.err
	}
	q.since = append(q.since, b.Since)
	var due []row
	for id, at := range q.due {
		if slices.Contains(b.Buckets, id.Bucket()) && !at.Before(b.Since) && !at.After(b.Now) {
			due = append(due, row{id, at})
		}
	}
	slices.SortFunc(due, func(a, b row) int { return a.at.Compare(b.at) })
	return due[:min(len(due), b.Most)], nil
}

func (q *rows) add(id movement.ID, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due[id] = at
}

func (q *rows) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
}

func (q *rows) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.due)
}

func (q *rows) reads() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.since)
}

// doer does rows, which takes a while, and takes them off their queue.
type doer struct {
	rows  *rows
	takes time.Duration
	fails bool // and leaves the row due

	mu    sync.Mutex
	done  map[movement.ID]int
	doing int
	most  int // rows at once
	seen  func(row)
}

func (d *doer) do(ctx context.Context, r row) error {
	d.begin(r)
	defer d.end()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d.takes):
	}
	if d.failing() {
		return errors.New("the row can't be written")
	}
	d.rows.mu.Lock()
	defer d.rows.mu.Unlock()
	delete(d.rows.due, r.id)
	return nil
}

func (d *doer) begin(r row) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = map[movement.ID]int{}
	}
	d.done[r.id]++
	d.doing++
	d.most = max(d.most, d.doing)
	if d.seen != nil {
		d.seen(r)
	}
}

func (d *doer) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.doing--
}

func (d *doer) failing() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fails
}

func (d *doer) heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails = false
}

// peak is how many rows were done at once.
func (d *doer) peak() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.most
}

// counts are how often each row was done.
func (d *doer) counts() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Values(d.done))
}
