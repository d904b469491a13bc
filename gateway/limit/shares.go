package limit

import (
	"net/netip"
	"sync"
)

// Of something that all share one address has a sixteenth at most, and an IPv6 network of 48 bits, which is what a
// site has, a quarter.
const (
	addressShare = 16
	siteShare    = 4
	siteBits     = 48
)

// Shares counts what addresses hold of something that is there once for all. Any number of goroutines may use it.
type Shares struct {
	total int64
	mu    sync.Mutex
	held  map[netip.Prefix]int64 // by network
}

// NewShares shares out a total.
func NewShares(total int64) *Shares { return &Shares{total: total, held: map[netip.Prefix]int64{}} }

// Take counts what an address takes, or reports that nothing is left for it.
func (s *Shares) Take(address netip.Addr, n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	shares, has := s.of(address)
	for _, share := range shares[:has] {
		if s.held[share.network]+n > share.most {
			return false
		}
	}
	for _, share := range shares[:has] {
		s.held[share.network] += n
	}
	return true
}

// Give takes back what an address has taken.
func (s *Shares) Give(address netip.Addr, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shares, has := s.of(address)
	for _, share := range shares[:has] {
		if s.held[share.network] -= n; s.held[share.network] == 0 {
			delete(s.held, share.network)
		}
	}
}

var everybody = netip.PrefixFrom(netip.IPv6Unspecified(), 0)

// share is what a network may hold.
type share struct {
	network netip.Prefix
	most    int64
}

// of are the shares that an address is of, and how many there are.
func (s *Shares) of(address netip.Addr) (shares [3]share, has int) {
	own := subscriber(address)
	shares[0], shares[1], has = share{everybody, s.total}, share{netip.PrefixFrom(own, own.BitLen()), s.total / addressShare}, 2
	if own.Is6() {
		site, _ := own.Prefix(siteBits)
		shares[2], has = share{site, s.total / siteShare}, 3
	}
	return shares, has
}
