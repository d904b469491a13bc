package app_test

import (
	"context"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestDatabaseGone takes the database away under load, in two ways: it refuses,
// and it is silent. Nothing crashes, every answer is in the contract's shape
// and comes in time, and afterwards all goes on without a restart.
func TestDatabaseGone(t *testing.T) {
	t.Parallel()
	wire := newWire(t, dbtest.New(t, "", nil))
	p := start(t, settings{databaseURL: wire.url})
	l := newLoad(p.shop(large, "test"))
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan struct{})
	go func() {
		l.runPaced(ctx, 8)
		close(finished)
	}()
	for _, away := range []struct {
		how   func()
		lasts time.Duration
	}{{wire.refuse, 5 * time.Second}, {wire.silence, 6 * time.Second}} {
		l.wantSuccess(t)
		away.how()
		<-time.After(away.lasts)
		if err := p.admin().Ready(t.Context()); err == nil {
			t.Error("/readyz says ready without a database")
		}
		wire.restore()
	}
	l.wantSuccess(t)
	cancel()
	<-finished
	if !p.running() {
		t.Fatal("the gateway ended")
	}
	l.inContract(t, 35*time.Second, fault.Internal, fault.ProviderTimeout, fault.ProviderUnavailable, fault.InProgress)
	l.settle(t)
	await(t, 5*time.Second, "readiness", func() bool { return p.admin().Ready(t.Context()) == nil })
}

// wantSuccess waits until a new payment can be made.
func (l *load) wantSuccess(t *testing.T) {
	t.Helper()
	await(t, 10*time.Second, "a payment that is made", func() bool {
		a := l.attempt("qris")
		l.try(t.Context(), a)
		return a.err == nil && a.first.Success
	})
}

// runPaced is run at a pace that leaves few references to send again.
func (l *load) runPaced(ctx context.Context, clients int) {
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				l.try(context.WithoutCancel(ctx), l.attempt("payment_link"))
				<-tick.C
			}
		})
	}
	group.Wait()
}

// wire is the way to a server, which a test can cut.
type wire struct {
	url      string
	listener net.Listener

	mu      sync.Mutex
	target  string
	open    chan struct{} // closed while bytes pass
	refuses bool
	conns   map[net.Conn]struct{}
}

func newWire(t *testing.T, databaseURL string) *wire {
	t.Helper()
	u, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{target: u.Host, listener: listener, open: make(chan struct{}), conns: map[net.Conn]struct{}{}}
	close(w.open)
	u.Host = listener.Addr().String()
	w.url = u.String()
	t.Cleanup(func() {
		listener.Close()
		w.refuse()
		w.restore()
	})
	go w.accept()
	return w
}

func (w *wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		go w.connect(near)
	}
}

func (w *wire) connect(near net.Conn) {
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

// carry passes bytes on as long as the wire is open, and ends both ends when
// one ends.
func (w *wire) carry(to, from net.Conn) {
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

// refuse cuts what is connected and lets nobody in.
func (w *wire) refuse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuses = true
	for c := range w.conns {
		c.Close()
	}
	clear(w.conns)
}

// silence keeps connections and passes nothing on.
func (w *wire) silence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = make(chan struct{})
}

func (w *wire) restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuses = false
	select {
	case <-w.open:
	default:
		close(w.open)
	}
}
