package sdktest

import (
	"io"
	"net/http"
	"sync"
	"time"
)

// Hanger lets a request have no answer. An [Upstream] over HTTP embeds it and
// shows it the requests that would move money.
type Hanger struct {
	mu  sync.Mutex
	met chan struct{} // nil where nothing is to hang
}

// Hang lets the next request hang that [Hanger.Hangs] sees. What it returns is
// closed once that has come.
func (h *Hanger) Hang() <-chan struct{} {
	met := make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.met = met
	return met
}

// Hangs reports whether the request was to hang, in which case it did so until
// now and must be left without an answer.
func (h *Hanger) Hangs(r *http.Request) bool {
	h.mu.Lock()
	met := h.met
	h.met = nil
	h.mu.Unlock()
	if met == nil {
		return false
	}
	_, _ = io.Copy(io.Discard, r.Body) // only a server that has read the request notices that its client is gone
	close(met)
	select {
	case <-r.Context().Done():
	case <-time.After(15 * time.Second):
	}
	return true
}
