// Package queuetest helps to test what runs on queues: it has a table of leases in
// memory that can be away and slow, a log that tests read, and the start and end of
// a loop. It is for tests alone. It must not know what is in a queue.
package queuetest

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/queue"
)

// ErrAway is what a database says that is not there.
var ErrAway = errors.New("the database is away")

// Table is the leases of the store, in memory.
type Table struct {
	mu     sync.Mutex
	leases map[key]lease
	err    error
	delay  time.Duration // of each statement, before it takes effect
}

type key struct {
	queue  string
	bucket int
}

type lease struct {
	holder string
	until  time.Time
}

// NewTable makes a table without leases.
func NewTable() *Table { return &Table{leases: map[key]lease{}} }

// Set has all statements from now on fail, if err is not nil, or take a while.
func (t *Table) Set(err error, delay time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err, t.delay = err, delay
}

// begin waits as a slow database does, and takes the lock when nil.
func (t *Table) begin(ctx context.Context) error {
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

// TakeLeases implements queue.LeaseStore.
func (t *Table) TakeLeases(ctx context.Context, l queue.Lease, now, until time.Time) (ours []int, err error) {
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	for _, bucket := range l.Buckets {
		k := key{l.Queue, bucket}
		if old, taken := t.leases[k]; !taken || old.holder == l.Holder || !old.until.After(now) {
			t.leases[k] = lease{l.Holder, until}
			ours = append(ours, bucket)
		}
	}
	return ours, nil
}

// DropLeases implements queue.LeaseStore.
func (t *Table) DropLeases(ctx context.Context, l queue.Lease) error {
	if err := t.begin(ctx); err != nil {
		return err
	}
	defer t.mu.Unlock()
	for _, bucket := range l.Buckets {
		if k := (key{l.Queue, bucket}); t.leases[k].holder == l.Holder {
			delete(t.leases, k)
		}
	}
	return nil
}

// LiveLeases implements queue.LeaseStore.
func (t *Table) LiveLeases(ctx context.Context, name string, now, _ time.Time) (int, error) {
	if err := t.begin(ctx); err != nil {
		return 0, err
	}
	defer t.mu.Unlock()
	n := 0
	for k, l := range t.leases {
		if k.queue == name && l.until.After(now) {
			n++
		}
	}
	return n, nil
}

// Of is whose lease a bucket is, and until when.
func (t *Table) Of(name string, bucket int) (holder string, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.leases[key{name, bucket}]
	return l.holder, l.until
}

// Held counts the leases and memberships of a replica, whether they have run out
// or not.
func (t *Table) Held(holder string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.leases {
		if l.holder == holder {
			n++
		}
	}
	return n
}

// Log is a log that tests read. Any number of goroutines may write it.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count is how often a text was written.
func (l *Log) Count(what string) int { return strings.Count(l.String(), what) }

// Start runs a loop and returns how to end it, which waits for its end.
func Start(t *testing.T, run func(context.Context) error) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	}
}
