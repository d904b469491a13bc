package limit_test

import (
	"net/netip"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/limit"
)

// TestShares: nobody takes what is there for all, with however many addresses of one
// network, and what is given back can be taken again.
func TestShares(t *testing.T) {
	t.Parallel()
	const total = 1600
	for _, test := range []struct {
		name      string
		addresses []string
		want      int64 // what they get of it together
	}{
		{"one address", []string{"192.0.2.1"}, 100},
		{"one address in its other form", []string{"192.0.2.1", "::ffff:192.0.2.1"}, 100},
		{"two addresses", []string{"192.0.2.1", "192.0.2.2"}, 200},
		{"one subscriber's addresses", []string{"2001:db8::1", "2001:db8::2", "2001:db8::3%eth0"}, 100},
		{"a site's networks", []string{
			"2001:db8:0::1", "2001:db8:0:1::1", "2001:db8:0:2::1", "2001:db8:0:3::1", "2001:db8:0:4::1", "2001:db8:0:5::1",
		}, 400},
		{"two sites' networks", []string{"2001:db8:1:1::1", "2001:db8:2:1::1"}, 200},
		{"no address", []string{""}, 100},
	} {
		s := limit.NewShares(total)
		var taken []netip.Addr
		for range 2 { // the second time after all was given back
			for _, text := range test.addresses {
				address, _ := netip.ParseAddr(text)
				for s.Take(address, 1) {
					taken = append(taken, address)
				}
			}
			if got := int64(len(taken)); got != test.want {
				t.Errorf("%s: got %d of %d, want %d", test.name, got, total, test.want)
			}
			for _, address := range taken {
				s.Give(address, 1)
			}
			taken = taken[:0]
		}
	}
	s := limit.NewShares(total)
	for n := range 32 {
		if got, want := s.Take(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), 100), n < 16; got != want {
			t.Errorf("address %d: %v, want %v", n, got, want)
		}
	}
}
