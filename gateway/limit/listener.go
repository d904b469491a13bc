package limit

import (
	"net"
	"net/netip"
	"sync"
)

// Listener hangs up on connections beyond what their address may hold. Of gives the shares that an address counts
// in, nil where it has none and may hold any number.
func Listener(l net.Listener, of func(netip.Addr) *Shares) net.Listener { return listener{l, of} }

type listener struct {
	net.Listener
	of func(netip.Addr) *Shares
}

func (l listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // what is no address counts as one
		address := peer.Addr().Unmap()
		shares := l.of(address)
		if shares == nil {
			return conn, nil
		}
		if shares.Take(address, 1) {
			return &sharedConn{Conn: conn, give: func() { shares.Give(address, 1) }}, nil
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
