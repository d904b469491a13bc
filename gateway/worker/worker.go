package worker

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Queue reads what is due.
type Queue interface {
	Due(ctx context.Context, buckets []int, since, now time.Time, most int) ([]movement.Movement, error)
}

// Resolver looks at one movement at its provider and settles what it finds.
// Whatever it returns, the movement's next look is set when it returns.
type Resolver interface {
	Resolve(ctx context.Context, m movement.Movement) error
}

// Worker resolves due movements of the buckets that its replica holds.
type Worker struct {
	queue    Queue
	resolver Resolver
	share    *Share
	log      *slog.Logger
}

// New makes a worker.
func New(queue Queue, resolver Resolver, share *Share, log *slog.Logger) *Worker {
	return &Worker{queue: queue, resolver: resolver, share: share, log: log}
}

const (
	every      = time.Second
	batch      = 200
	concurrent = 64 // a look waits for a provider, and one that hangs must not hold the batch for long
	// lookBack is the lower bound of an ordinary scan; every fullScan-th scan has
	// none, and finds what an outage, or a clock that was wrong, has put further
	// back. While there is more of that than a batch, every second scan is full:
	// what can't be resolved must not stand before all that is new.
	lookBack = 10 * time.Minute
	fullScan = 60
	// readWithin bounds the read of what is due, so that a database that does not
	// answer is complained of.
	readWithin = 5 * time.Second
)

// Run works until the context ends, and gives its buckets back then.
func (w *Worker) Run(ctx context.Context) error {
	defer w.share.Release(context.WithoutCancel(ctx))
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	behind := false
	for scan := 0; ; scan++ {
		full := scan%fullScan == 0 || behind && scan%2 == 0
		if whole := w.scan(ctx, full); full {
			behind = whole
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// scan resolves what is due now, and tells whether it was a whole batch.
func (w *Worker) scan(ctx context.Context, full bool) bool {
	buckets, err := w.share.Hold(ctx)
	if err != nil {
		w.complain(ctx, "lease buckets", err)
		return false
	}
	if len(buckets) == 0 {
		return false
	}
	due, err := w.due(ctx, buckets, full)
	if err != nil {
		w.complain(ctx, "read what is due", err)
		return false
	}
	w.resolve(ctx, due)
	return len(due) == batch
}

func (w *Worker) due(ctx context.Context, buckets []int, full bool) ([]movement.Movement, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	now := time.Now()
	since := now.Add(-lookBack)
	if full {
		since = time.Time{}
	}
	return w.queue.Due(ctx, buckets, since, now, batch)
}

// resolve works through a batch. That may take longer than a lease, so it asks
// before each movement whether its bucket is still ours, and leaves the rest
// when leases can't be renewed.
func (w *Worker) resolve(ctx context.Context, due []movement.Movement) {
	var group errgroup.Group
	group.SetLimit(concurrent)
	for _, m := range due {
		buckets, err := w.share.Hold(ctx)
		if err != nil {
			w.complain(ctx, "renew leases", err)
			break
		}
		if !slices.Contains(buckets, m.ID.Bucket()) {
			continue
		}
		group.Go(func() error {
			if err := w.resolver.Resolve(ctx, m); err != nil {
				w.complain(ctx, "resolve "+m.ID.String(), err)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions complain themselves
}

// complain logs what will be tried again anyway.
func (w *Worker) complain(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		w.log.WarnContext(ctx, "worker: "+what, "error", err)
	}
}
