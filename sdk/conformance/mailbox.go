package conformance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// post receives the notifications of all accounts of a simulator.
type post struct {
	server *httptest.Server

	mu    sync.Mutex
	boxes map[string]*mailbox
}

// mailbox has the notifications of one account, the oldest first.
type mailbox struct {
	mu      sync.Mutex
	mails   []sdk.Notification
	changed chan struct{} // closed and replaced with each that comes
}

func openPost() *post {
	p := &post{boxes: map[string]*mailbox{}}
	p.server = httptest.NewServer(http.HandlerFunc(p.receive))
	return p
}

// box gives the mailbox of an account, and the address that leads there.
func (p *post) box(name string) (*mailbox, string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.boxes[name]
	if !ok {
		b = &mailbox{changed: make(chan struct{})}
		p.boxes[name] = b
	}
	return b, p.server.URL + "/" + name
}

func (p *post) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	p.mu.Lock()
	b := p.boxes[strings.TrimPrefix(r.URL.Path, "/")]
	p.mu.Unlock()
	if b == nil || err != nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mails = append(b.mails, sdk.Notification{Method: r.Method, Query: r.URL.RawQuery, Header: r.Header, Body: body})
	close(b.changed)
	b.changed = make(chan struct{})
}

// next waits for the mail after so many.
func (b *mailbox) next(ctx context.Context, after int) (sdk.Notification, error) {
	for {
		b.mu.Lock()
		mails, changed := b.mails, b.changed
		b.mu.Unlock()
		if len(mails) > after {
			return mails[after], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return sdk.Notification{}, fmt.Errorf("the simulator sends no notification (%d came before): %w", after, ctx.Err())
		}
	}
}

// count is how many came so far.
func (b *mailbox) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.mails)
}
