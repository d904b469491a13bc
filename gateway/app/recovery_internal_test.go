package app

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// restored is a database in which a recovery begins and ends.
type restored struct{ open, away atomic.Bool }

func (r *restored) LastRecovery(context.Context) (*store.Recovery, error) {
	if r.away.Load() {
		return nil, errors.New("no database")
	}
	if r.open.Load() {
		return &store.Recovery{}, nil
	}
	return nil, nil
}

// TestWorkersRestWhileRecovering: within a second of an operator's word they run, and
// within a second of another restore they rest again. One that fails ends all.
func TestWorkersRestWhileRecovering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database, fails := &restored{}, make(chan error)
		database.open.Store(true)
		r := newRecovery(nil, slog.New(slog.DiscardHandler))
		r.store = database
		if err := r.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		defer end()
		var working atomic.Int32
		work := func(ctx context.Context) error {
			working.Add(1)
			defer working.Add(-1)
			select {
			case <-ctx.Done():
				return nil
			case err := <-fails:
				return err
			}
		}
		go func() { _ = r.Run(ctx) }()
		ended := make(chan error)
		go func() { ended <- r.whileOpen(ctx, []func(context.Context) error{work, work}) }()
		want := func(what string, n int32) {
			t.Helper()
			time.Sleep(2 * readRecoveryEvery)
			synctest.Wait()
			if got := working.Load(); got != n || (r.fault() == nil) != (n > 0) {
				t.Errorf("%s: %d work, want %d; %v", what, got, n, r.fault())
			}
		}
		want("restored", 0)
		database.open.Store(false)
		want("opened", 2)
		database.open.Store(true)
		want("restored again", 0)
		database.open.Store(false)
		want("opened again", 2)
		wrong := errors.New("wrong")
		fails <- wrong
		if err := <-ended; !errors.Is(err, wrong) {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestNoMoneyWhileRecoveryCannotBeRead: a database that was away may come back restored.
// The workers go on.
func TestNoMoneyWhileRecoveryCannotBeRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database := &restored{}
		r := newRecovery(nil, slog.New(slog.DiscardHandler))
		r.store = database
		if err := r.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		defer end()
		go func() { _ = r.Run(ctx) }()
		want := func(after time.Duration, moves bool) {
			t.Helper()
			time.Sleep(after)
			if synctest.Wait(); (r.fault() == nil) != moves || r.begun() != nil {
				t.Errorf("money moves is not %v: %v; a recovery: %v", moves, r.fault(), r.begun())
			}
		}
		want(time.Minute, true)
		database.away.Store(true)
		want(recoveryUnread-readRecoveryEvery, true)
		want(2*readRecoveryEvery, false)
		want(time.Hour, false)
		database.away.Store(false)
		want(2*readRecoveryEvery, true)
	})
}
