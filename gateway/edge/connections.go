package edge

import (
	"net"
	"net/netip"
	"sync"

	"golang.org/x/net/netutil"

	"github.com/seed-f006e74d/gerbang/gateway/limit"
)

// maxConnections bounds the memory that open connections of merchants, payers and
// providers take, at some 40 KB each. Who comes later waits for one to close.
const maxConnections = 8192

// Bound bounds the connections of a listener for merchants or their people. An address that has its
// share of them is hung up on. Trusted proxies have no share: they bound their own
// clients.
func (e *Edge) Bound(listener net.Listener) net.Listener {
	return netutil.LimitListener(sharedListener{listener, e, limit.NewShares(maxConnections)}, maxConnections)
}

type sharedListener struct {
	net.Listener
	edge   *Edge
	shares *limit.Shares
}

func (l sharedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
		if err == nil && limit.IsTrusted(peer.Addr().Unmap(), *l.edge.trusted.Load()) {
			return conn, nil
		}
		if l.shares.Take(peer.Addr(), 1) {
			return &sharedConn{Conn: conn, give: func() { l.shares.Give(peer.Addr(), 1) }}, nil
		}
		_ = conn.Close()
	}
}

type sharedConn struct {
	net.Conn
	once sync.Once
	give func()
}

func (c *sharedConn) Close() error {
	defer c.once.Do(c.give)
	return c.Conn.Close()
}
