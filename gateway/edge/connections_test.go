package edge_test

import (
	"io"
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/edge"
)

// bounded serves an edge on a listener of its own.
func bounded(t *testing.T, h *house) net.Addr {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := edge.NewServer(h, slog.New(slog.DiscardHandler))
	server.ReadHeaderTimeout, server.ReadTimeout = time.Hour, time.Hour // nothing of a slow machine ends a connection
	go func() { _ = server.Serve(h.Bound(listener)) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr()
}

// caller connects from an address of this machine.
func caller(t *testing.T, from string, to net.Addr) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext(t.Context(), "tcp", to.String())
	if err != nil {
		t.Skipf("this machine has no address %s: %v", from, err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// answered tells whether a request on a connection is answered, on which others may follow.
func answered(conn net.Conn) bool {
	if _, err := io.WriteString(conn, "GET /nothing HTTP/1.1\r\nHost: gateway\r\n\r\n"); err != nil {
		return false
	}
	_, err := conn.Read(make([]byte, 1))
	return err == nil
}

// TestNobodyHoldsAllConnections: what one address holds is bounded, and it gets no more
// before it closes one. Others get theirs.
func TestNobodyHoldsAllConnections(t *testing.T) {
	t.Parallel()
	const share = 8192 / 16
	address := bounded(t, build(t))
	var held []net.Conn
	for range share {
		conn := caller(t, "127.0.0.1", address)
		if !answered(conn) {
			t.Fatalf("connection %d of %d is not answered", len(held)+1, share)
		}
		held = append(held, conn)
	}
	if answered(caller(t, "127.0.0.1", address)) {
		t.Error("one more than the share is answered")
	}
	if !answered(caller(t, "127.0.0.2", address)) {
		t.Error("another address is not answered")
	}
	_ = held[0].Close()
	for closed := time.Now(); !answered(caller(t, "127.0.0.1", address)); { // the server learns of it in its own time
		if time.Since(closed) > 30*time.Second {
			t.Fatal("what was closed is not given back")
		}
	}
}

// TestTrustedProxyHasNoShare: all its clients come from its address.
func TestTrustedProxyHasNoShare(t *testing.T) {
	t.Parallel()
	h := build(t, func(c *edge.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	address := bounded(t, h)
	for n := range 8192/16 + 1 {
		if !answered(caller(t, "127.0.0.1", address)) {
			t.Fatalf("connection %d is not answered", n+1)
		}
	}
}
