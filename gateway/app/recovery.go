package app

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/store"
)

const (
	// readRecoveryEvery is how soon every replica knows that a recovery has begun or ended.
	readRecoveryEvery = time.Second
	// recoveryUnread is how long what was read is believed while it can't be read again: a
	// database that comes back may be a restored one.
	recoveryUnread = 10 * time.Second
)

// recovery is what a replica knows of a restore after which nobody has opened the
// gateway. All replicas read it from the database, so one word opens them all.
type recovery struct {
	store interface {
		LastRecovery(ctx context.Context) (*store.Recovery, error)
	}
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

func newRecovery(from *store.Store, log *slog.Logger) *recovery {
	r := &recovery{store: from, log: log}
	r.phase.Store(&phase{recovering: true, over: make(chan struct{})}) // until it is known
	return r
}

// Why no money is moved.
var (
	errRecovering = errors.New("the database was restored, and no operator is known to have opened the gateway since: gerbang recovery open")
	errUnread     = errors.New("whether the database was restored can't be read")
)

// fault is why no money may be moved, nil where it may.
func (r *recovery) fault() error {
	if err := r.begun(); err != nil {
		return err
	}
	if time.Since(*r.seen.Load()) > recoveryUnread {
		return errUnread
	}
	return nil
}

// begun tells of a recovery that is known to have begun, and of one that may have where
// none was ever read.
func (r *recovery) begun() error {
	if r.phase.Load().recovering {
		return errRecovering
	}
	return nil
}

// restored is when the last recovery began, zero for none.
func (r *recovery) restored() time.Time { return r.phase.Load().restored }

// read takes over what the database says.
func (r *recovery) read(ctx context.Context) error {
	asked := time.Now()
	last, err := r.store.LastRecovery(ctx)
	if err != nil {
		return err
	}
	r.seen.Store(new(asked))
	before, now := r.phase.Load(), &phase{recovering: last.Lasts(), over: make(chan struct{})}
	if last != nil {
		now.restored = last.Begun
	}
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
func (r *recovery) Run(ctx context.Context) error {
	tick := time.NewTicker(readRecoveryEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			reading, cancel := context.WithTimeout(ctx, 2*readRecoveryEvery) // one that hangs must not hide what began since
			_ = r.read(reading)                                              // readiness tells of the database
			cancel()
		}
	}
}

// whileOpen runs workers until the context ends, but not while a recovery lasts.
func (r *recovery) whileOpen(ctx context.Context, workers []func(context.Context) error) error {
	for ctx.Err() == nil {
		now := r.phase.Load()
		if now.recovering {
			wait(ctx, now.over)
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
		wait(running, p.over)
		return nil
	})
	for _, run := range workers {
		group.Go(func() error { return run(running) })
	}
	return group.Wait()
}
