package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

var (
	errFull    = errors.New("too many calls are in flight")
	errShare   = errors.New("this merchant has its share of the calls in flight")
	errClosing = errors.New("the host is closing")
)

// A place is what one use of a provider takes while it is under way.
type place struct {
	merchant    string // of whom the use is
	live, money bool
}

// shares is the table of places: how many of all, in percent, each group of uses may
// take. A use needs room in every group that it belongs to, so 20 % are left for live
// money, and test mode and reads are shed first. Of the room that is left to it, a
// merchant may have as many places in a mode as are still free: one alone gets a
// half, two get a third each, and nobody can take the last place from the others.
var shares = [...]struct {
	group   string
	percent int
	has     func(place) bool
}{
	{"all", 100, func(place) bool { return true }},
	{"all but live money", 80, func(p place) bool { return !p.live || !p.money }},
	{"test mode", 25, func(p place) bool { return !p.live }},
	{"reads in test mode", 20, func(p place) bool { return !p.live && !p.money }},
}

// places bounds how many uses of a provider are under way. They can be shut down, and
// then wait for those that are.
type places struct {
	limit int

	mu     sync.Mutex
	taken  [len(shares)]int // by group
	of     map[holder]int
	closed bool
	idle   chan struct{} // closed once they are shut down and nothing is under way
}

// holder is a merchant in a mode.
type holder struct {
	merchant string
	live     bool
}

func newPlaces(limit int) *places {
	return &places{limit: limit, of: map[holder]int{}, idle: make(chan struct{})}
}

// acquire never waits: a queue would only hide an overload until the deadlines
// pass.
func (s *places) acquire(p place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	who := holder{p.merchant, p.live}
	switch room := s.room(p); {
	case s.closed:
		return errClosing
	case room <= 0:
		return errFull
	case s.of[who] > 0 && s.of[who] >= room:
		return errShare
	}
	s.count(p, who, 1)
	return nil
}

// room is how many places are free for a use.
func (s *places) room(p place) int {
	room := s.limit
	for i, share := range shares {
		if share.has(p) {
			room = min(room, max(1, s.limit*share.percent/100)-s.taken[i])
		}
	}
	return room
}

func (s *places) count(p place, who holder, by int) {
	for i, share := range shares {
		if share.has(p) {
			s.taken[i] += by
		}
	}
	if s.of[who] += by; s.of[who] == 0 {
		delete(s.of, who)
	}
}

func (s *places) release(p place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(p, holder{p.merchant, p.live}, -1)
	s.signalIdle()
}

// shutDown lets nothing more in.
func (s *places) shutDown() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.signalIdle()
	}
}

func (s *places) signalIdle() {
	if s.closed && s.taken[0] == 0 {
		close(s.idle)
	}
}

// drained waits until nothing is under way, after shutDown.
func (s *places) drained(ctx context.Context) error {
	select {
	case <-s.idle:
		return nil
	default:
	}
	select {
	case <-s.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d calls were cut: %w", s.inUse(), ctx.Err())
	}
}

func (s *places) inUse() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken[0]
}
