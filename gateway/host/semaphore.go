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

// gate is a bulkhead: it bounds how many are inside, and can be shut and waited
// for.
type gate struct {
	mu     sync.Mutex
	inside int
	limit  int
	closed bool
	idle   chan struct{} // closed once the gate is shut and nobody is inside
}

func newGate(limit int) *gate {
	return &gate{limit: limit, idle: make(chan struct{})}
}

// enter never waits: who finds no place is told at once, because a queue here
// would only hide an overload until the deadlines pass.
func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.closed:
		return errClosing
	case g.inside >= g.limit:
		return errFull
	}
	g.inside++
	return nil
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.tellIdle()
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		g.tellIdle()
	}
}

func (g *gate) tellIdle() {
	if g.closed && g.inside == 0 {
		close(g.idle)
	}
}

// drained waits until nobody is inside a gate that was shut.
func (g *gate) drained(ctx context.Context) error {
	select {
	case <-g.idle:
		return nil
	default:
	}
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d calls were cut: %w", g.count(), ctx.Err())
	}
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside
}
