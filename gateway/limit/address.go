package limit

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientAddress returns the client's address: the connection's peer, or, if that is
// a trusted proxy, the last address of X-Forwarded-For that is not one. Addresses
// before it were written by the caller and prove nothing.
func ClientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	address := peer.Addr().Unmap()
	if !IsTrusted(address, trusted) {
		return address
	}
	hops := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, err := parseHop(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		address = next
		if !IsTrusted(address, trusted) {
			break
		}
	}
	return address
}

// parseHop reads an address with or without a port, as proxies write them.
func parseHop(text string) (netip.Addr, error) {
	if withPort, err := netip.ParseAddrPort(text); err == nil {
		return withPort.Addr().Unmap(), nil
	}
	address, err := netip.ParseAddr(text)
	return address.Unmap(), err
}

// IsTrusted tells whether an address is one of the proxies whose X-Forwarded-For is believed.
func IsTrusted(address netip.Addr, trusted []netip.Prefix) bool {
	return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(address) })
}
