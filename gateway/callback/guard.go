package callback

import (
	"errors"
	"net/netip"

	"code.dny.dev/ssrf"
)

// publicPorts are where a callback may go: the port of https, and the one that
// is usual where 443 is taken. Others would make the gateway a port scanner.
var publicPorts = []uint16{443, 8443}

// neverPublic is what ssrf does not know: an address that is routed like a
// public one and is a cloud's own inside it (Azure's platform service).
var neverPublic = netip.MustParsePrefix("168.63.129.16/32")

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// The guards that CheckURL asks.
var (
	publicGuard = newGuard(false, nil)
	localGuard  = newGuard(true, nil)
)

// newGuard makes an egress guard. The denied are added to what is never
// allowed; local lets loopback through, and any port.
func newGuard(local bool, denied []netip.Prefix) *ssrf.Guardian {
	v4, v6 := []netip.Prefix{neverPublic}, []netip.Prefix{}
	for _, p := range denied {
		if p.Addr().Is4() {
			v4 = append(v4, p)
		} else {
			v6 = append(v6, p)
		}
	}
	options := []ssrf.Option{ssrf.WithPorts(publicPorts...), ssrf.WithDeniedV4Prefixes(v4...), ssrf.WithDeniedV6Prefixes(v6...)}
	if local {
		options = append(options, ssrf.WithAnyPort(),
			ssrf.WithAllowedV4Prefixes(loopback[0]), ssrf.WithAllowedV6Prefixes(loopback[1]))
	}
	return ssrf.New(options...)
}

// byGuard tells whether an error comes from the guard.
func byGuard(err error) bool {
	for _, cause := range []error{ssrf.ErrProhibitedIP, ssrf.ErrProhibitedPort, ssrf.ErrProhibitedNetwork, ssrf.ErrInvalidHostPort} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}
