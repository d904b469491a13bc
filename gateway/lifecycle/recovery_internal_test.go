package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// restored is a database in which a recovery begins and ends.
type restored struct{ open, away atomic.Bool }

func (r *restored) last(context.Context) (begun time.Time, lasts bool, err error) {
	if r.away.Load() {
		return begun, false, errors.New("no database")
	}
	return begun, r.open.Load(), nil
}

// TestWorkersRestWhileRecovering: within a second of an operator's word they run, and
// within a second of another restore they rest again. One that fails ends all.
func TestWorkersRestWhileRecovering(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		database, fails := &restored{}, make(chan error)
		database.open.Store(true)
		r := NewRecovery(database.last, slog.New(slog.DiscardHandler))
		if err := r.Read(t.Context()); err != nil {
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
		go func() { ended <- r.WhileOpen(ctx, []func(context.Context) error{work, work}) }()
		want := func(what string, n int32) {
			t.Helper()
			time.Sleep(2 * readRecoveryEvery)
			synctest.Wait()
			if got := working.Load(); got != n || (r.Fault() == nil) != (n > 0) {
				t.Errorf("%s: %d work, want %d; %v", what, got, n, r.Fault())
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
		r := NewRecovery(database.last, slog.New(slog.DiscardHandler))
		if err := r.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(t.Context())
		defer end()
		time.Sleep(2 * recoveryUnread) // a start that takes long
		go func() { _ = r.Run(ctx) }()
		want := func(after time.Duration, moves bool) {
			t.Helper()
			time.Sleep(after)
			if synctest.Wait(); (r.Fault() == nil) != moves || r.Begun() != nil {
				t.Errorf("money moves is not %v: %v; a recovery: %v", moves, r.Fault(), r.Begun())
			}
		}
		want(0, true)
		want(time.Minute, true)
		database.away.Store(true)
		want(recoveryUnread-readRecoveryEvery, true)
		want(2*readRecoveryEvery, false)
		want(time.Hour, false)
		database.away.Store(false)
		want(2*readRecoveryEvery, true)
	})
}
