package limit

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxFailures is how many failed authentications an address has within failureWindow before it must wait.
	maxFailures   = 20
	failureWindow = time.Minute

	// failureShards and addressesPerShard bound the memory: about 65,000 addresses, however many there are.
	failureShards     = 16
	addressesPerShard = 4096

	// evictionSample is how many addresses are compared when one must be forgotten.
	evictionSample = 16
)

// Failures counts failed authentications by address; an IPv6 address counts as its network of 64 bits, which is what one
// subscriber has. Only failures are counted and only failures are refused, so nobody can lock a merchant out whose key is
// right. Any number of goroutines may use it.
type Failures struct {
	seed   maphash.Seed
	shards [failureShards]failureShard
}

// failureShard is a part of the addresses.
type failureShard struct {
	mu        sync.Mutex
	addresses map[netip.Addr]*failureLog
}

// failureLog is a ring of the last failures of an address, in nanoseconds of Unix time. Next is the oldest once it is full.
type failureLog struct {
	at    [maxFailures]int64
	next  int
	count int
}

// NewFailures makes an empty count.
func NewFailures() *Failures {
	f := &Failures{seed: maphash.MakeSeed()}
	for i := range f.shards {
		f.shards[i].addresses = map[netip.Addr]*failureLog{}
	}
	return f
}

// Record counts a failure. It is blocked when it is one too many, and retryAfter is when the next would not be. A blocked
// failure is not counted, so an address that goes on is let through twenty times a minute and not shut out for ever.
func (f *Failures) Record(now time.Time, addr netip.Addr) (blocked bool, retryAfter time.Duration) {
	addr = subscriber(addr)
	s := f.shard(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.addresses[addr]
	if log == nil {
		if len(s.addresses) >= addressesPerShard {
			s.forget()
		}
		log = &failureLog{}
		s.addresses[addr] = log
	}
	if blocked, retryAfter = log.blocked(now); blocked {
		return true, retryAfter
	}
	log.at[log.next] = now.UnixNano()
	log.next = (log.next + 1) % maxFailures
	log.count = min(log.count+1, maxFailures)
	return false, 0
}

// Blocked tells whether an address has failed too often, and counts nothing.
func (f *Failures) Blocked(now time.Time, addr netip.Addr) bool {
	addr = subscriber(addr)
	s := f.shard(addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.addresses[addr]
	if log == nil {
		return false
	}
	blocked, _ := log.blocked(now)
	return blocked
}

// shard is the part that an address belongs to.
func (f *Failures) shard(addr netip.Addr) *failureShard {
	return &f.shards[maphash.Comparable(f.seed, addr)%failureShards]
}

// forget drops the address whose last failure is the longest ago among a few that are picked at random. An attacker with
// very many addresses can so be forgotten early, which costs less than remembering them all.
func (s *failureShard) forget() {
	var stalest netip.Addr
	var since int64
	sampled := 0
	for addr, log := range s.addresses {
		last := log.at[(log.next+maxFailures-1)%maxFailures]
		if sampled == 0 || last < since {
			stalest, since = addr, last
		}
		if sampled++; sampled == evictionSample {
			break
		}
	}
	delete(s.addresses, stalest)
}

// blocked reports whether the ring is full of failures within the window, and when the oldest of them leaves it.
func (l *failureLog) blocked(now time.Time) (bool, time.Duration) {
	if l.count < maxFailures {
		return false, 0
	}
	left := failureWindow - time.Duration(now.UnixNano()-l.at[l.next])
	if left <= 0 {
		return false, 0
	}
	return true, min(left, failureWindow)
}

// subscriber is what an address counts as: itself, or its network of 64 bits.
func subscriber(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr
	}
	network, err := addr.Prefix(64)
	if err != nil {
		return addr // not for an IPv6 address without a zone
	}
	return network.Addr()
}
