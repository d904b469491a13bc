package edge

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/netutil"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
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

// maxHeld is what the bodies that are just being received may take of memory. Bodies
// are small, so this is for thousands.
const maxHeld = 256 << 20

var errNoRoom = errors.New("too many bytes of bodies are held")

// holding counts what is read of an exchange's body.
type holding struct {
	x    *exchange
	body io.Reader
}

func (h holding) Read(p []byte) (int, error) {
	n, err := h.body.Read(p)
	if n == 0 {
		return 0, err
	}
	if !h.x.edge.room.Take(h.x.address, int64(n)) {
		return 0, errNoRoom
	}
	h.x.held += int64(n)
	return n, err
}

// giveBack is called when the body is not needed any more.
func (x *exchange) giveBack() {
	if x.held > 0 {
		x.edge.room.Give(x.address, x.held)
		x.held = 0
	}
}

// longestQueue is how long a stranger waits for its turn at most. Whoever has shown no key
// that this replica remembers can have the database read: for a key, for a notification's
// token, for a payer's page. They take turns, so a right key has its turn soon, whoever
// guesses at the same address. Payers' pages have turns of their own.
const longestQueue = 5 * time.Second

// queue waits for the turn of a stranger's read. Done is to be called after it.
func (x *exchange) queue(in *limit.Turns) (done func(), err error) {
	ctx, cancel := context.WithTimeout(x.ctx, longestQueue)
	defer cancel()
	if done, err = in.Enter(ctx, x.address); err != nil {
		return nil, fault.New(fault.RateLimited, "Too many requests without a known key are waiting.").After(x.started, time.Second)
	}
	return done, nil
}
