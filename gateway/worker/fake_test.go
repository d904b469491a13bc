package worker_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

var errAway = errors.New("the database is away")

type slot struct {
	queue  string
	bucket int
}

type lease struct {
	holder string
	until  time.Time
}

// table is the leases of the store, in memory. It can be away, and be slow.
type table struct {
	mu     sync.Mutex
	leases map[slot]lease
	err    error
	delay  time.Duration // of each statement, before it takes effect
}

func newTable() *table { return &table{leases: map[slot]lease{}} }

func (t *table) set(err error, delay time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err, t.delay = err, delay
}

// begin waits as a slow database does, and takes the lock when nil.
func (t *table) begin(ctx context.Context) error {
	t.mu.Lock()
	delay := t.delay
	t.mu.Unlock()
	if delay > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(delay):
		}
	}
	t.mu.Lock()
	err := t.err
	if err != nil {
		t.mu.Unlock()
	}
	return err
}

func (t *table) TakeLeases(ctx context.Context, l store.Lease, now, until time.Time) (ours []int, err error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	for _, bucket := range l.Buckets {
		key := slot{l.Queue, bucket}
		if old, taken := t.leases[key]; !taken || old.holder == l.Holder || !old.until.After(now) {
			t.leases[key] = lease{l.Holder, until}
			ours = append(ours, bucket)
		}
	}
	return ours, nil
}

func (t *table) DropLeases(ctx context.Context, l store.Lease) error {
	if err := t.begin(ctx); err != nil {
		return err
	}
	defer t.mu.Unlock()
	for _, bucket := range l.Buckets {
		if key := (slot{l.Queue, bucket}); t.leases[key].holder == l.Holder {
			delete(t.leases, key)
		}
	}
	return nil
}

func (t *table) LiveLeases(ctx context.Context, queue string, now, _ time.Time) (int, error) {
	if err := t.begin(ctx); err != nil {
		return 0, err
	}
	defer t.mu.Unlock()
	n := 0
	for key, l := range t.leases {
		if key.queue == queue && l.until.After(now) {
			n++
		}
	}
	return n, nil
}

// queue is movements by their id, in memory. What is read stays due until it is
// resolved.
type queue struct {
	mu    sync.Mutex
	due   map[movement.ID]time.Time
	err   error
	since []time.Time // of each read
}

func newQueue(n int, at time.Time) *queue {
	q := &queue{due: map[movement.ID]time.Time{}}
	for range n {
		q.due[movement.NewID()] = at
	}
	return q
}

func (q *queue) Due(_ context.Context, buckets []int, since, now time.Time, most int) ([]movement.Movement, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return nil, q.err
	}
	q.since = append(q.since, since)
	var due []movement.Movement
	for id, at := range q.due {
		if slices.Contains(buckets, id.Bucket()) && !at.Before(since) && !at.After(now) {
			due = append(due, movement.Movement{ID: id, Polled: movement.Polled{DueAt: at}})
		}
	}
	slices.SortFunc(due, func(a, b movement.Movement) int { return a.DueAt.Compare(b.DueAt) })
	return due[:min(len(due), most)], nil
}

func (q *queue) add(id movement.ID, at time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.due[id] = at
}

func (q *queue) fail(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
}

func (q *queue) left() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.due)
}

// resolver takes movements off the queue, each with a look of some length.
type resolver struct {
	queue *queue
	takes time.Duration
	fails bool // and leaves the movement due

	mu      sync.Mutex
	looks   map[movement.ID]int
	looking int
	most    int // looks at once
	look    func(movement.Movement)
}

func (r *resolver) Resolve(ctx context.Context, m movement.Movement) error {
	r.begin(m)
	defer r.end()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(r.takes):
	}
	if r.failing() {
		return errors.New("the provider is away")
	}
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	delete(r.queue.due, m.ID)
	return nil
}

func (r *resolver) begin(m movement.Movement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.looks == nil {
		r.looks = map[movement.ID]int{}
	}
	r.looks[m.ID]++
	r.looking++
	r.most = max(r.most, r.looking)
	if r.look != nil {
		r.look(m)
	}
}

func (r *resolver) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looking--
}

func (r *resolver) failing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fails
}

func (r *resolver) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fails = false
}

// peak is how many looks there were at once.
func (r *resolver) peak() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}

func (r *resolver) counts() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Values(r.looks))
}
