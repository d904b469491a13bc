package clock_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/clock"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
)

// database is the shared clock, which is right, and how far from it a replica's is.
type database struct {
	mu sync.Mutex
	state
}

// state is what a test says of both clocks, and how often it was asked.
type state struct {
	ahead    time.Duration
	there    time.Duration // how long a question travels
	back     time.Duration
	err      error
	asked    int
	deadline bool
}

// set says it anew.
func (w *database) set(s state) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = s
}

func (w *database) get() state {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

func (w *database) now() time.Time { return time.Now().Add(w.get().ahead) }

func (w *database) Clock(ctx context.Context) (time.Time, error) {
	w.mu.Lock()
	w.asked++
	_, w.deadline = ctx.Deadline()
	s := w.state
	w.mu.Unlock()
	wait := func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	wait(s.there)
	now := time.Now().Round(0)
	wait(s.back)
	if ctx.Err() != nil {
		return time.Time{}, ctx.Err()
	}
	return now, s.err
}

func compared(w *database) (*clock.Clock, *queuetest.Log) {
	log := &queuetest.Log{}
	return clock.New(w, w.now, slog.New(slog.NewTextHandler(log, nil))), log
}

func TestClockIsMeasuredInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state
		skew  time.Duration
		fault string
	}{
		"right":                     {},
		"ahead by what is forgiven": {state: state{ahead: movement.ClockSkew}, skew: movement.ClockSkew},
		"ahead": {
			state: state{ahead: movement.ClockSkew + time.Second}, skew: movement.ClockSkew + time.Second,
			fault: "this machine's clock is 11s ahead of the database's: set it by NTP",
		},
		"behind by what is forgiven": {state: state{ahead: -movement.ClockSkew}, skew: -movement.ClockSkew},
		"behind": {
			state: state{ahead: -3 * time.Hour}, skew: -3 * time.Hour,
			fault: "this machine's clock is 3h0m0s behind the database's: set it by NTP",
		},
		"a slow trip":      {state: state{ahead: 10 * time.Second, there: 500 * time.Millisecond, back: 500 * time.Millisecond}, skew: 10 * time.Second},
		"slow on its way":  {state: state{there: time.Second}, skew: -500 * time.Millisecond},
		"slow on its back": {state: state{back: time.Second}, skew: 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &database{state: c.state}
				replica, _ := compared(w)
				if _, known := replica.Skew(); known || replica.Fault() != nil {
					t.Error("something is known before it was measured")
				}
				replica.Compare(t.Context())
				if skew, known := replica.Skew(); !known || skew != c.skew {
					t.Errorf("measured %s, %t; want %s", skew, known, c.skew)
				}
				if fault := replica.Fault(); (fault == nil) != (c.fault == "") || fault != nil && fault.Error() != c.fault {
					t.Errorf("fault %v, want %q", fault, c.fault)
				}
				if !w.get().deadline {
					t.Error("the question may wait for ever")
				}
			})
		})
	}
}

// TestClockIsJudgedBeforeASaleIsLost: a payment of the very moment of its sale is
// never before what is forgiven, whatever the error of the measure.
func TestClockIsJudgedBeforeASaleIsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &database{state: state{ahead: movement.Skew, there: time.Second}} // the worst error towards what is right
		replica, _ := compared(w)
		replica.Compare(t.Context())
		if replica.Fault() == nil {
			t.Error("a clock is relied on whose sales would be lost")
		}
	})
}

// TestLastMeasureStands while the database can't be asked, or answers too late.
func TestLastMeasureStands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &database{}
		replica, log := compared(w)
		hinder := func(hindered state, want string) {
			t.Helper()
			w.set(hindered)
			replica.Compare(t.Context())
			if log.Count(want) != 1 {
				t.Errorf("%q is not complained of", want)
			}
		}
		hinder(state{err: errors.New("no database")}, "no database")
		if _, known := replica.Skew(); known || replica.Fault() != nil {
			t.Error("something is known that was not measured")
		}
		w.set(state{ahead: 5 * time.Minute})
		replica.Compare(t.Context())
		hinder(state{err: errors.New("gone")}, "gone")
		hinder(state{back: time.Second + time.Millisecond}, "the answer took 1.001s")
		hinder(state{there: time.Hour}, "deadline exceeded")
		if skew, known := replica.Skew(); !known || skew != 5*time.Minute || replica.Fault() == nil {
			t.Errorf("the last measure does not stand: %s, %t, %v", skew, known, replica.Fault())
		}
	})
}

// TestClockHealsWithoutARestart has it wrong for a while: that is said once, and
// once that it is over.
func TestClockHealsWithoutARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &database{}
		replica, log := compared(w)
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- replica.Run(ctx) }()
		pass := func(d time.Duration, asked, wrong, right int) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if n := w.get().asked; n != asked || log.Count("until it is right") != wrong || log.Count("agrees with the database's again") != right {
				t.Errorf("asked %d times, want %d; said that it is wrong %d times, want %d; that it is right %d times, want %d",
					n, asked, log.Count("until it is right"), wrong, log.Count("agrees with the database's again"), right)
			}
		}
		pass(200*time.Second, 20, 0, 0)
		w.set(state{ahead: 2 * time.Minute, asked: 20})
		pass(9*time.Second, 20, 0, 0)
		pass(time.Second, 21, 1, 0)
		pass(100*time.Second, 31, 1, 0)
		if log.Count("2m0s ahead of the database's: set it by NTP") != 1 || replica.Fault() == nil {
			t.Errorf("fault %v, which the log does not tell", replica.Fault())
		}
		w.set(state{ahead: -time.Second, asked: 31})
		pass(10*time.Second, 32, 1, 1)
		if replica.Fault() != nil {
			t.Errorf("fault %v of a clock that is right again", replica.Fault())
		}
		w.set(state{ahead: -2 * time.Minute, asked: 32})
		pass(20*time.Second, 34, 2, 1)
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
