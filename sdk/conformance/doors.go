package conformance

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
)

// doors are the addresses that a plugin meets as its upstream. A confined plugin may
// connect to ports that are named when it starts, so all of them have one port, each on
// a loopback address of its own.
type doors struct {
	port     uint16 // 0 where each may have its own
	reserved net.Listener

	mu   sync.Mutex
	last netip.Addr
}

func openDoors(onePort bool) (*doors, error) {
	d := &doors{last: netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	if !onePort {
		return d, nil
	}
	var err error
	if d.reserved, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	if d.port, err = portOf(d.reserved.Addr().String()); err != nil {
		return nil, errors.Join(err, d.reserved.Close())
	}
	return d, nil
}

func (d *doors) close() {
	if d.reserved != nil {
		_ = d.reserved.Close() // it took no connection
	}
}

// serve begins a server at the next address.
func (d *doors) serve(h http.Handler) (*httptest.Server, error) {
	listener, err := d.listen()
	if err != nil {
		return nil, err
	}
	s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: h}} //nolint:gosec // its only client is what is tested, and it may be slow
	s.Start()
	return s, nil
}

func (d *doors) listen() (net.Listener, error) {
	if d.port == 0 {
		return net.Listen("tcp", "127.0.0.1:0")
	}
	for {
		d.mu.Lock()
		d.last = d.last.Next()
		at := d.last
		d.mu.Unlock()
		if !at.IsLoopback() {
			return nil, errors.New("there is no loopback address left")
		}
		listener, err := net.Listen("tcp", netip.AddrPortFrom(at, d.port).String())
		if !errors.Is(err, syscall.EADDRINUSE) { // some other program's
			return listener, err
		}
	}
}

// freePort is one that nobody listens on.
func freePort() (uint16, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port, err := portOf(listener.Addr().String())
	return port, errors.Join(err, listener.Close())
}

func portOf(address string) (uint16, error) {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, fmt.Errorf("port %q: %w", text, err)
	}
	return uint16(port), nil
}
