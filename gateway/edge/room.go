package edge

import (
	"errors"
	"io"
	"net/netip"
	"sync"

	"github.com/seed-f006e74d/gerbang/gateway/limit"
)

// What the bodies that are just being received may take of memory: all of them, and
// those of one client's address. Bodies are small, so this is for thousands.
const (
	maxHeld          = 256 << 20
	maxHeldByAddress = 16 << 20
)

var errNoRoom = errors.New("too many bytes of bodies are held")

// room counts the bytes of bodies that are held in memory.
type room struct {
	mu        sync.Mutex
	held      int64
	byAddress map[netip.Addr]int64
}

// take counts bytes that have come from an address, or reports that there is no room.
func (r *room) take(address netip.Addr, bytes int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held+bytes > maxHeld || r.byAddress[address]+bytes > maxHeldByAddress {
		return false
	}
	r.held += bytes
	r.byAddress[address] += bytes
	return true
}

// give uncounts what an address has taken.
func (r *room) give(address netip.Addr, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held -= bytes
	if r.byAddress[address] -= bytes; r.byAddress[address] == 0 {
		delete(r.byAddress, address)
	}
}

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
	if !h.x.edge.room.take(limit.Subscriber(h.x.address), int64(n)) {
		return 0, errNoRoom
	}
	h.x.held += int64(n)
	return n, err
}

// giveBack is called when the body is not needed any more.
func (x *exchange) giveBack() {
	if x.held > 0 {
		x.edge.room.give(limit.Subscriber(x.address), x.held)
		x.held = 0
	}
}
