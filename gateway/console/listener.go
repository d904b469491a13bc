package console

import (
	"net"
	"net/netip"

	"github.com/seed-f006e74d/gerbang/gateway/limit"
)

// What the connections of operators, and of those who may not come in, may be together. The
// latter get no more than to be told so.
const (
	maxConnections = 8192
	maxRefused     = 512
)

// Bound bounds the connections of the operators' listener: an address has a sixteenth of them,
// and whoever may not come in takes none from operators, probes and collectors of metrics.
func (c *Console) Bound(listener net.Listener) net.Listener {
	operators, refused := limit.NewShares(maxConnections), limit.NewShares(maxRefused)
	return limit.Listener(listener, func(peer netip.Addr) *limit.Shares {
		if c.allowed(peer.WithZone("")) {
			return operators
		}
		return refused
	})
}
