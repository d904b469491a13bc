package lifecycle

import (
	"context"
	"log/slog"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
)

// DueMovements reads the movements of some buckets that became due from since
// until now, the oldest first.
type DueMovements interface {
	Due(ctx context.Context, buckets []int, since, now time.Time, most int) ([]movement.Movement, error)
}

// Resolver polls one movement at its provider and applies what it finds. Whatever
// it returns, the movement's next poll is set when it returns.
type Resolver interface {
	Resolve(ctx context.Context, m movement.Movement) error
}

// Poller has the movements resolved that are due in the buckets that its replica
// holds.
type Poller struct {
	*queue.Runner[movement.Movement]

	resolver Resolver
}

const (
	pollEvery = time.Second
	pollPage  = 200
	// pollsAtOnce is large, because a poll waits for a provider, and one that hangs
	// must not hold the page for long.
	pollsAtOnce = 64
)

// NewPoller makes a poller.
func NewPoller(due DueMovements, resolver Resolver, leases *queue.Leases, log *slog.Logger) *Poller {
	p := &Poller{resolver: resolver}
	p.Runner = queue.NewRunner(queue.Work[movement.Movement]{
		Name: "poller", Every: pollEvery, Page: pollPage, Handle: p.resolve,
		Due: func(ctx context.Context, b queue.Batch) ([]movement.Movement, error) {
			return due.Due(ctx, b.Buckets, b.Since, b.Now, b.Most)
		},
	}, leases, log)
	return p
}

// resolve works through a page. A movement that can't be resolved has its next
// poll already.
func (p *Poller) resolve(ctx context.Context, page []movement.Movement) error {
	return p.Each(ctx, page, pollsAtOnce, func(m movement.Movement) int { return m.ID.Bucket() }, func(m movement.Movement) error {
		p.Warn(ctx, "resolve "+m.ID.String(), p.resolver.Resolve(ctx, m))
		return nil
	})
}
