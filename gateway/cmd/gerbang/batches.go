package main

import (
	"io"
	"sync"
	"time"
)

const (
	// batchTime is how long a line of the log may wait, and so what a crash may lose.
	batchTime = 100 * time.Millisecond
	batchSize = 32 << 10
)

// batches writes lines together: a call of the system for each costs more than the line.
// Whoever finds a batch full waits until it is written, so that nothing is dropped.
type batches struct {
	to io.Writer

	mu      sync.Mutex
	lines   []byte
	failed  error // of what was written last, told to who writes next
	waiting bool  // for the time to write
}

// Write keeps a line until its batch is written.
func (b *batches) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line...)
	switch {
	case len(b.lines) >= batchSize:
		b.write()
	case !b.waiting:
		b.waiting = true
		time.AfterFunc(batchTime, b.flush)
	}
	err := b.failed
	b.failed = nil
	return len(line), err
}

// flush writes what waits.
func (b *batches) flush() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting = false
	b.write()
}

func (b *batches) write() {
	if len(b.lines) == 0 {
		return
	}
	_, b.failed = b.to.Write(b.lines)
	b.lines = b.lines[:0]
}
