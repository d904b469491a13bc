package edge

import (
	"errors"
	"io"
)

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
