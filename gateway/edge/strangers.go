package edge

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
)

// longestQueue is how long a stranger waits for its turn at most. Whoever has shown no key
// that this replica remembers can have the database read: for a key, for a notification's
// token, for a payer's page. They take turns, so a right key has its turn soon, whoever
// guesses at the same address. Payers' pages have turns of their own.
const longestQueue = 5 * time.Second

// queue waits for the turn of a stranger's read. Done is to be called after it.
func (x *exchange) queue(in *limit.Turns) (done func(), err error) {
	ctx, cancel := context.WithTimeout(x.request.Context(), longestQueue)
	defer cancel()
	if done, err = in.Enter(ctx, x.address); err != nil {
		return nil, fault.New(fault.RateLimited, "Too many requests without a known key are waiting.").After(x.started, time.Second)
	}
	return done, nil
}
