package edge_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/edge"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/tenants"
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

// TestStrangersReadAFewAtATime: whatever somebody without a known key asks for, four
// reads are under way. The next wait for their turn, and not for long. Merchants and
// providers that are known do not wait.
func TestStrangersReadAFewAtATime(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"a key": "/payments/create", "a token": "/notify/payments/guessed", "a page": "/checkout/guessed/state"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { strangers(t, path) })
		})
	}
}

func strangers(t *testing.T, path string) {
	h := build(t)
	h.noRoute = fault.New(fault.NotFound, "There is no such path.")
	var mu sync.Mutex
	reads, answered := 0, make(chan struct{})
	read := func() {
		mu.Lock()
		reads++
		mu.Unlock()
		<-answered
	}
	h.findRoute = read
	h.checkout = func(string) (kind.Checkout, error) {
		read()
		return kind.Checkout{}, fault.New(fault.NotFound, "There is no such payment.")
	}
	h.authenticated = func(id tenants.Identity, err error) (tenants.Identity, error) {
		if err != nil {
			read()
		}
		return id, err
	}
	answers := make(chan answer)
	for range 10 {
		go func() { answers <- h.send(t, methodOf(path), path, `{"secret_key":"x"}`) }()
	}
	synctest.Wait()
	if reads != 4 {
		t.Errorf("%d reads are under way, want 4", reads)
	}
	if got := h.create(t, h.right("")); got.StatusCode != http.StatusOK {
		t.Errorf("a known key waits: %s", got.text)
	}
	h.noRoute = nil
	h.send(t, http.MethodPost, "/notify/payments/t", "{}").wantFault(t, fault.NotFound) // of the notifier
	answered <- struct{}{}
	<-answers
	synctest.Wait()
	if reads != 5 {
		t.Errorf("%d reads have begun after one was answered, want 5", reads)
	}
	for range 5 { // who have waited long enough
		got := <-answers
		if got.wantFault(t, fault.RateLimited); got.Header.Get("Retry-After") != "1" {
			t.Errorf("it does not say when: %v", got.Header)
		}
	}
	close(answered)
	for range 4 {
		<-answers
	}
}

func methodOf(path string) string {
	if path == "/checkout/guessed/state" {
		return http.MethodGet
	}
	return http.MethodPost
}

// TestPanicGivesTheTurnBack: what fails with a panic, as often as it likes, keeps nobody
// out.
func TestPanicGivesTheTurnBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		h.authenticated = func(tenants.Identity, error) (tenants.Identity, error) { panic("who knows") }
		for range 10 {
			h.send(t, http.MethodPost, "/payments/create", `{"secret_key":"x"}`).wantFault(t, fault.Internal)
		}
	})
}

// TestPayersDoNotWaitForKeys that somebody guesses at.
func TestPayersDoNotWaitForKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, answered, guessers := build(t), make(chan struct{}), sync.WaitGroup{}
		h.checkout = func(string) (kind.Checkout, error) {
			return kind.Checkout{}, fault.New(fault.NotFound, "There is no such payment.")
		}
		h.authenticated = func(id tenants.Identity, err error) (tenants.Identity, error) {
			<-answered
			return id, err
		}
		for range 10 {
			guessers.Go(func() { h.send(t, http.MethodPost, "/payments/create", `{"secret_key":"x"}`) })
		}
		synctest.Wait()
		h.send(t, http.MethodGet, "/checkout/1/state", "").wantFault(t, fault.NotFound)
		close(answered)
		guessers.Wait()
	})
}
