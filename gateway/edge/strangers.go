package edge

import (
	"context"
	"net/netip"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
)

// Whoever has shown no key that this replica remembers can have the database read:
// for a key, for a notification's token, for a payer's page. Only a few of these reads
// are under way at once, so that merchants have the rest of the connections, and a
// right key has its turn soon, whoever guesses at the same address. Payers' pages have
// turns of their own.
const (
	strangersAtOnce = 4
	longestQueue    = 5 * time.Second
)

// strangers take turns at reads. An address has no more of its requests in the line than
// there are turns, the others wait behind these: so whoever comes from another address
// waits for a few reads, however many wait.
type strangers struct {
	turns chan struct{} // holds a place for each read
	mu    sync.Mutex
	of    map[netip.Addr]*sameAddress // that have requests here
}

type sameAddress struct {
	turns    chan struct{}
	requests int
}

func newStrangers() *strangers {
	return &strangers{turns: make(chan struct{}, strangersAtOnce), of: map[netip.Addr]*sameAddress{}}
}

// enter waits for a turn. Done is to be called after it.
func (s *strangers) enter(ctx context.Context, address netip.Addr) (done func(), err error) {
	address = limit.Subscriber(address)
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

func (s *strangers) come(address netip.Addr) *sameAddress {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := s.of[address]
	if own == nil {
		own = &sameAddress{turns: make(chan struct{}, strangersAtOnce)}
		s.of[address] = own
	}
	own.requests++
	return own
}

func (s *strangers) leave(address netip.Addr, own *sameAddress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own.requests--; own.requests == 0 {
		delete(s.of, address)
	}
}

// queue waits for the turn of a stranger's read. Done is to be called after it.
func (x *exchange) queue(in *strangers) (done func(), err error) {
	ctx, cancel := context.WithTimeout(x.request.Context(), longestQueue)
	defer cancel()
	if done, err = in.enter(ctx, x.address); err != nil {
		return nil, fault.New(fault.RateLimited, "Too many requests without a known key are waiting.").After(x.started, time.Second)
	}
	return done, nil
}
