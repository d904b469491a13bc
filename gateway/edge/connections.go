package edge

import (
	"net"
	"net/netip"

	"golang.org/x/net/netutil"

	"github.com/seed-f006e74d/gerbang/gateway/limit"
)

// maxConnections bounds the memory that open connections of merchants, payers and
// providers take, at some 40 KB each. Who comes later waits for one to close,
// also a trusted proxy.
const maxConnections = 8192

// Bound bounds the connections of a listener for merchants or their people. An address that has its
// share of them is hung up on. Trusted proxies have no share: they bound their own
// clients.
func (e *Edge) Bound(listener net.Listener) net.Listener {
	shares := limit.NewShares(maxConnections)
	return netutil.LimitListener(limit.Listener(listener, func(peer netip.Addr) *limit.Shares {
		if limit.IsTrusted(peer, *e.trusted.Load()) {
			return nil
		}
		return shares
	}), maxConnections)
}
