package limit

import (
	"context"
	"net/netip"
	"sync"
)

// atOnce is how many turns there are.
const atOnce = 4

// Turns are what strangers take at reads of the database: a few are under way at once, so
// that all others have the rest of its connections. An address has no more of its requests
// in the line than there are turns, the others wait behind these: so whoever comes from
// another address waits for a few reads, however many wait. Any number of goroutines may
// use them.
type Turns struct {
	turns chan struct{} // holds a place for each read
	mu    sync.Mutex
	of    map[netip.Addr]*sameAddress // that have requests here
}

type sameAddress struct {
	turns    chan struct{}
	requests int
}

// NewTurns makes turns that nobody has taken.
func NewTurns() *Turns {
	return &Turns{turns: make(chan struct{}, atOnce), of: map[netip.Addr]*sameAddress{}}
}

// Enter waits for a turn. Done is to be called after it.
func (s *Turns) Enter(ctx context.Context, address netip.Addr) (done func(), err error) {
	address = subscriber(address)
	own := s.come(address)
	for i, turns := range []chan struct{}{own.turns, s.turns} {
		select {
		case turns <- struct{}{}:
		case <-ctx.Done():
			if i > 0 {
				<-own.turns
			}
			s.leave(address, own)
			return nil, ctx.Err()
		}
	}
	return func() {
		<-s.turns
		<-own.turns
		s.leave(address, own)
	}, nil
}

func (s *Turns) come(address netip.Addr) *sameAddress {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[address]
	if own == nil {
		own = &sameAddress{turns: make(chan struct{}, atOnce)}
		s.of[address] = own
	}
	own.requests++
	return own
}

func (s *Turns) leave(address netip.Addr, own *sameAddress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.requests--; own.requests == 0 {
		delete(s.of, address)
	}
}
