package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// readRecoveryEvery is how soon every replica knows that a recovery has begun or ended.
	readRecoveryEvery = time.Second
	// recoveryUnread is how long what was read is believed while it can't be read again: a
	// database that comes back may be a restored one.
	recoveryUnread = 10 * time.Second
)

// LastRecovery reads when the last recovery began, zero for none, and whether it lasts:
// nobody has opened the gateway since.
type LastRecovery func(ctx context.Context) (begun time.Time, lasts bool, err error)

// Recovery is what a replica knows of a restore after which nobody has opened the
// gateway. All replicas read it from the database, so one word opens them all.
type Recovery struct {
	last  LastRecovery
	log   *slog.Logger
	phase atomic.Pointer[phase]
	seen  atomic.Pointer[time.Time] // when it was last read
}

// phase is a time in which nothing of it changes.
type phase struct {
	recovering bool
	restored   time.Time     // when the last recovery began, zero for none
	over       chan struct{} // closed when it is
}

// NewRecovery makes one that lasts until Read says otherwise.
func NewRecovery(last LastRecovery, log *slog.Logger) *Recovery {
	r := &Recovery{last: last, log: log}
	r.phase.Store(&phase{recovering: true, over: make(chan struct{})}) // until it is known
	return r
}

// Why no money is moved.
var (
	errRecovering = errors.New("the database was restored, and no operator is known to have opened the gateway since: gerbang recovery open")
	errUnread     = errors.New("whether the database was restored can't be read")
)

// Fault is why no money may be moved, nil where it may.
func (r *Recovery) Fault() error {
	if err := r.Begun(); err != nil {
		return err
	}
	if time.Since(*r.seen.Load()) > recoveryUnread {
		return errUnread
	}
	return nil
}

// Begun tells of a recovery that is known to have begun, and of one that may have where
// none was ever read.
func (r *Recovery) Begun() error {
	if r.phase.Load().recovering {
		return errRecovering
	}
	return nil
}

// Restored is when the last recovery began, zero for none.
func (r *Recovery) Restored() time.Time { return r.phase.Load().restored }

// Read takes over what the database says.
func (r *Recovery) Read(ctx context.Context) error {
	asked := time.Now()
	begun, lasts, err := r.last(ctx)
	if err != nil {
		return err
	}
	r.seen.Store(new(asked))
	before, now := r.phase.Load(), &phase{recovering: lasts, restored: begun, over: make(chan struct{})}
	if before.recovering == now.recovering && before.restored.Equal(now.restored) {
		return nil
	}
	r.phase.Store(now)
	close(before.over)
	r.log.InfoContext(ctx, "recovery", "moves_money", !now.recovering)
	return nil
}

// Run reads it until the context ends. While it can't be read the workers go on, which
// can do nothing without the database, but soon no money is moved.
func (r *Recovery) Run(ctx context.Context) error {
	tick := time.NewTicker(readRecoveryEvery)
	defer tick.Stop()
	for { // at once: a start that took long has left what it read to grow old
		reading, cancel := context.WithTimeout(ctx, 2*readRecoveryEvery) // one that hangs must not hide what began since
		_ = r.Read(reading)                                              // readiness tells of the database
		cancel()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// WhileOpen runs workers until the context ends, but not while a recovery lasts.
func (r *Recovery) WhileOpen(ctx context.Context, workers []func(context.Context) error) error {
	for ctx.Err() == nil {
		now := r.phase.Load()
		if now.recovering {
			until(ctx, now.over)
			continue
		}
		if err := during(ctx, now, workers); err != nil {
			return err
		}
	}
	return nil
}

// during runs workers until a phase is over, the context ends or one of them fails.
func during(ctx context.Context, p *phase, workers []func(context.Context) error) error {
	group, running := errgroup.WithContext(ctx)
	running, end := context.WithCancel(running)
	defer end()
	group.Go(func() error {
		defer end()
		until(running, p.over)
		return nil
	})
	for _, run := range workers {
		group.Go(func() error { return run(running) })
	}
	return group.Wait()
}

// until waits for a phase's end, or the context's.
func until(ctx context.Context, over <-chan struct{}) {
	select {
	case <-over:
	case <-ctx.Done():
	}
}
