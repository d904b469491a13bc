package edge

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// Whoever has shown no key that this replica remembers can have the database read:
// for a key, for a notification's token, for a payer's page. Only a few of these reads
// are under way at once, so that merchants have the rest of the connections, and a
// right key has its turn soon, whoever guesses at the same address.
const (
	strangersAtOnce = 4
	longestQueue    = 5 * time.Second
)

// queue waits for the turn of a stranger's read. Done is to be called after it.
func (x *exchange) queue() (done func(), err error) {
	ctx, cancel := context.WithTimeout(x.request.Context(), longestQueue)
	defer cancel()
	select {
	case x.edge.strangers <- struct{}{}:
		return func() { <-x.edge.strangers }, nil
	case <-ctx.Done():
		return nil, fault.New(fault.RateLimited, "Too many requests without a known key are waiting.").After(x.started, time.Second)
	}
}

// unqueued is for a read that asks memory alone.
func unqueued() {}
