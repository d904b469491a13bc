package callback

import (
	"context"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// recorder writes attempts down. Those that end while others are being written share the
// next write, so nobody waits for a timer.
type recorder struct {
	queue Queue

	mu      sync.Mutex
	waiting []*recording
	writing bool
}

// recording is an attempt with the place for what became of it.
type recording struct {
	attempt movement.CallbackAttempt
	written chan wrote
}

// wrote is what became of an attempt. Where one of several can't be written none is, or nobody
// knows, and alone says that it is still to be written.
type wrote struct{ ours, alone bool }

const (
	// writeWithin bounds each write of what became of a callback.
	writeWithin = 5 * time.Second
	// togetherWithin bounds a write of several: what needs longer holds nobody else.
	togetherWithin = 500 * time.Millisecond
	mostTogether   = 128
)

// record waits until an attempt is written. One that can't be written with others is by itself:
// the count of its tries keeps it from being written twice.
func (r *recorder) record(ctx context.Context, a movement.CallbackAttempt) (ours bool, err error) {
	one := &recording{attempt: a, written: make(chan wrote, 1)}
	r.mu.Lock()
	r.waiting = append(r.waiting, one)
	first := !r.writing
	r.writing = true
	r.mu.Unlock()
	if first {
		r.write(ctx)
	}
	if done := <-one.written; !done.alone {
		return done.ours, nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeWithin)
	defer cancel()
	return r.queue.RecordAttempt(ctx, a)
}

// write writes what waits, and has somebody else write what has come meanwhile.
func (r *recorder) write(ctx context.Context) {
	r.mu.Lock()
	batch := r.waiting[:min(len(r.waiting), mostTogether)]
	r.waiting = r.waiting[len(batch):]
	r.mu.Unlock()
	r.together(ctx, batch)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writing = len(r.waiting) > 0; r.writing {
		go r.write(ctx)
	} else {
		r.waiting = nil
	}
}

func (r *recorder) together(ctx context.Context, batch []*recording) {
	attempts := make([]movement.CallbackAttempt, len(batch))
	for i, one := range batch {
		attempts[i] = one.attempt
	}
	ctx, cancel := context.WithTimeout(ctx, togetherWithin)
	defer cancel()
	ours, err := r.queue.RecordAttempts(ctx, attempts)
	for i, one := range batch {
		one.written <- wrote{ours: err == nil && ours[i], alone: err != nil}
	}
}
