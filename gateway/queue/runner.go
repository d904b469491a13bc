package queue

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/trouble"
)

// Work is what is particular to one queue.
type Work[T any] struct {
	Name  string        // begins each log message
	Every time.Duration // how often the queue is read, besides wake-ups
	Page  int           // how many rows are read at once, in all or of each bucket; Due may add others
	// Room, if given, is how many rows can be begun now. A page has no more of them, and
	// where there is no room the queue is not read.
	Room func() int
	// Eager has the next page read at once after a full one, not after Every.
	Eager bool
	// Due reads rows of a batch, the oldest first. With an error come those that could be
	// read, and are worked on.
	Due func(ctx context.Context, batch Batch) ([]T, error)
	// Handle works on a page, which may be empty. An error says that something of
	// it could not be written, so that the same rows are still due: the queue rests
	// before it is read again. Whoever returns it has logged it.
	Handle func(ctx context.Context, page []T) error
	// Drain, if given, waits at the end for what Handle has left under way, before
	// the leases are given back.
	Drain func()
}

// Batch says which rows a scan reads: those of some buckets that became due from
// Since (zero for ever) until Now, and at most so many.
type Batch struct {
	Buckets    []int
	Since, Now time.Time
	Most       int
}

// Runner reads a queue again and again and has its rows worked on.
type Runner[T any] struct {
	work   Work[T]
	leases *Leases
	log    *slog.Logger
	wake   chan struct{}

	leasing, reading trouble.Spell
}

// NewRunner makes what runs a queue's work in the buckets that are leased.
func NewRunner[T any](work Work[T], leases *Leases, log *slog.Logger) *Runner[T] {
	return &Runner[T]{work: work, leases: leases, log: log, wake: make(chan struct{}, 1)}
}

const (
	// lookBack is the lower bound of an ordinary scan; every fullScan-th scan has
	// none, and finds what an outage, or a clock that was wrong, has put further
	// back. While there is more of that than a page, every second scan is full:
	// old rows that can't be worked off must not keep new ones waiting.
	lookBack = 10 * time.Minute
	fullScan = 60
	// breath is the least time between the beginnings of two scans, however often the
	// queue is woken and however much there is.
	breath = 20 * time.Millisecond
	// unwrittenWait is how long a queue rests when what became of its rows can't
	// be written: a database that is only read must not have us work without end.
	unwrittenWait = 5 * time.Second
	// readWithin bounds a read, so that a database that does not answer is
	// complained of.
	readWithin = 5 * time.Second
)

// progress is what a scan has come to.
type progress int

const (
	caughtUp  progress = iota
	fullPage           // there may be more
	unwritten          // the same rows are still due
)

// Now is the time that all replicas share.
func (r *Runner[T]) Now() time.Time { return r.leases.now() }

// Wake has the queue read at once: somebody has just committed a row.
func (r *Runner[T]) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run works until the context ends, and then gives the leases back. What was cut
// off is done again by the replica that holds its bucket next.
func (r *Runner[T]) Run(ctx context.Context) error {
	defer r.leases.Release(context.WithoutCancel(ctx))
	if r.work.Drain != nil {
		defer r.work.Drain()
	}
	ticker := time.NewTicker(r.work.Every)
	defer ticker.Stop()
	behind := false
	for scan := 0; ctx.Err() == nil; scan++ {
		began := time.Now()
		full := scan%fullScan == 0 || behind && scan%2 == 0
		result := r.scan(ctx, full)
		if full {
			behind = result != caughtUp
		}
		if result == unwritten {
			pause(ctx, unwrittenWait)
			ticker.Reset(r.work.Every) // a tick of the meantime is no reason to read
		}
		pause(ctx, breath-time.Since(began))
		if result == fullPage && r.work.Eager {
			continue
		}
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-ticker.C:
		}
	}
	return nil
}

func pause(ctx context.Context, wait time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

// scan reads one page and has it worked on.
func (r *Runner[T]) scan(ctx context.Context, full bool) progress {
	buckets, err := r.leases.Hold(ctx)
	r.leasing.Note(ctx, r.log, r.work.Name+": buckets can't be leased", err)
	if err != nil || len(buckets) == 0 {
		return caughtUp
	}
	most := r.work.Page
	if r.work.Room != nil {
		most = min(most, r.work.Room())
	}
	if most <= 0 {
		return fullPage // for all that is known
	}
	page, err := r.read(ctx, buckets, most, full)
	r.reading.Note(ctx, r.log, r.work.Name+": what is due can't be read", err)
	switch {
	case err != nil && len(page) == 0:
		return caughtUp
	case r.work.Handle(ctx, page) != nil:
		return unwritten
	case len(page) >= most:
		return fullPage
	}
	return caughtUp
}

func (r *Runner[T]) read(ctx context.Context, buckets []int, most int, full bool) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	batch := Batch{Buckets: buckets, Now: r.Now(), Most: most}
	if !full {
		batch.Since = batch.Now.Add(-lookBack)
	}
	return r.work.Due(ctx, batch)
}

// Each does something with each row of a page, so many at once, and returns the
// first error when all have ended. A page may take longer than a lease: before
// each row Each asks whether its bucket is still held, and leaves the rest of the
// page alone when leases can't be renewed. Only Handle may call it.
func (r *Runner[T]) Each(ctx context.Context, page []T, atOnce int, bucket func(T) int, do func(T) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, row := range page {
		buckets, err := r.leases.Hold(ctx)
		if err != nil {
			r.leasing.Note(ctx, r.log, r.work.Name+": buckets can't be leased", err)
			break
		}
		if slices.Contains(buckets, bucket(row)) {
			group.Go(func() error { return do(row) })
		}
	}
	return group.Wait()
}

// Warn logs an error of something that is done again anyway. It says nothing
// where there is no error, or where the work is being ended.
func (r *Runner[T]) Warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, r.work.Name+": "+what, "error", err)
	}
}
