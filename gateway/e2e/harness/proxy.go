package harness

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// Proxy stands before a server. A test can cut it.
type Proxy struct {
	URL     string
	address string

	mu       sync.Mutex
	listener net.Listener
	target   string
	open     chan struct{} // closed while bytes pass
	refuses  bool
	conns    map[net.Conn]struct{}
}

// NewProxy is a proxy to the server of a URL, which it passes everything on to.
func NewProxy(t *testing.T, databaseURL string) *Proxy {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	listener := listenAnywhere(t)
	w := &Proxy{address: listener.Addr().String(), target: u.Host, open: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	close(w.open)
	u.Host = w.address
	w.URL = u.String()
	w.pass(listener)
	t.Cleanup(func() {
		w.Close()
		w.Restore()
	})
	return w
}

// Open listens again after [Proxy.Close].
func (w *Proxy) Open(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", w.address)
	if err != nil {
		t.Fatal(err)
	}
	w.pass(listener)
}

func (w *Proxy) pass(listener net.Listener) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listener, w.refuses = listener, false
	go w.accept(listener)
}

// Close is Refuse with a closed port: nobody listens there any more.
func (w *Proxy) Close() {
	w.mu.Lock()
	w.listener.Close()
	w.mu.Unlock()
	w.Refuse()
}

func (w *Proxy) accept(listener net.Listener) {
	for {
		near, err := listener.Accept()
		if err != nil {
			return
		}
		go w.connect(near)
	}
}

func (w *Proxy) connect(near net.Conn) {
	w.mu.Lock()
	target := w.target
	w.mu.Unlock()
	far, err := net.Dial("tcp", target)
	if err != nil {
		near.Close()
		return
	}
	w.mu.Lock()
	refused := w.refuses
	if !refused {
		w.conns[near], w.conns[far] = struct{}{}, struct{}{}
	}
	w.mu.Unlock()
	if refused {
		near.Close()
		far.Close()
		return
	}
	go w.carry(near, far)
	w.carry(far, near)
}

// carry passes bytes on as long as the proxy is open, and ends both ends when
// one ends.
func (w *Proxy) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		w.mu.Lock()
		open := w.open
		w.mu.Unlock()
		<-open
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Refuse cuts what is connected and lets nobody in. The server pays for each that tries,
// as one that is starting does.
func (w *Proxy) Refuse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuses = true
	for c := range w.conns {
		c.Close()
	}
	clear(w.conns)
}

// Silence keeps connections and passes nothing on.
func (w *Proxy) Silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = make(chan struct{})
}

// Restore passes everything on again.
func (w *Proxy) Restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuses = false
	select {
	case <-w.open:
	default:
		close(w.open)
	}
}
