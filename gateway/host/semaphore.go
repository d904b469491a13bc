package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

var (
	errFull    = errors.New("too many calls are in flight")
	errClosing = errors.New("the host is closing")
)

// semaphore bounds how many calls are in flight. It can be shut down, and then
// waits for those that are.
type semaphore struct {
	mu       sync.Mutex
	inFlight int
	limit    int
	closed   bool
	idle     chan struct{} // closed once it is shut down and nothing is in flight
}

func newSemaphore(limit int) *semaphore {
	return &semaphore{limit: limit, idle: make(chan struct{})}
}

// acquire never waits: a queue would only hide an overload until the deadlines
// pass.
func (s *semaphore) acquire() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return errClosing
	case s.inFlight >= s.limit:
		return errFull
	}
	s.inFlight++
	return nil
}

func (s *semaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
	s.signalIdle()
}

// shutDown lets nothing more in.
func (s *semaphore) shutDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.signalIdle()
	}
}

func (s *semaphore) signalIdle() {
	if s.closed && s.inFlight == 0 {
		close(s.idle)
	}
}

// drained waits until nothing is in flight, after shutDown.
func (s *semaphore) drained(ctx context.Context) error {
	select {
	case <-s.idle:
		return nil
	default:
	}
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d calls were cut: %w", s.count(), ctx.Err())
	}
}

func (s *semaphore) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inFlight
}
