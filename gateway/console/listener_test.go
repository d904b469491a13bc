package console_test

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/console"
)

// TestStrangersHoldNoConnections: who may not come in is told so while they hold few
// connections, and takes none from operators. One operator's address does not take all either.
func TestStrangersHoldNoConnections(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(config *console.Config, _ *console.Dependencies) {
		config.Allow = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: w.console}
	go func() { _ = server.Serve(w.console.Bound(listener)) }()
	t.Cleanup(func() { _ = server.Close() })
	for _, test := range []struct {
		from  string
		most  int
		first string
	}{{"127.0.0.2", 512 / 16, "HTTP/1.1 403"}, {"127.0.0.1", 8192 / 16, "HTTP/1.1 200"}} {
		var held []net.Conn
		dial := func() net.Conn {
			conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(test.from)}}).DialContext(t.Context(), "tcp", listener.Addr().String())
			if err != nil {
				t.Skipf("this machine has no address %s: %v", test.from, err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		}
		// They are accepted in their order, so once one is hung up on all before it were.
		for range test.most {
			held = append(held, dial())
		}
		if n, err := dial().Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%s: one more than its share is not hung up on", test.from)
		}
		for _, conn := range held {
			if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer := make([]byte, len(test.first))
			if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != test.first {
				t.Fatalf("%s: %q, %v", test.from, answer, err)
			}
		}
	}
}
