package clock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/clock"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
)

// world is the database's clock, as a test sets it, and a machine's uptime. Both go on by
// themselves.
type world struct {
	*testing.T
	clock *clock.Clock
	log   *queuetest.Log
	begun time.Time

	mu sync.Mutex
	state
}

// state is what a test says of both, and how often the database was asked.
type state struct {
	set      time.Duration // how far the database's clock was set ahead
	slept    time.Duration // for how long nothing of this process ran
	there    time.Duration // how long a question travels
	back     time.Duration
	err      error
	asked    int
	deadline bool
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, log: &queuetest.Log{}, begun: time.Now()}
	w.clock = clock.New(w, w.uptime, slog.New(slog.NewTextHandler(w.log, nil)))
	return w
}

func (w *world) change(change func(*state)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.state)
}

func (w *world) get() state {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

func (w *world) uptime() time.Duration { return time.Since(w.begun) + w.get().slept }

// theirs is the database's time.
func (w *world) theirs() time.Time {
	s := w.get()
	return time.Now().Round(0).Add(s.set + s.slept)
}

// Clock implements clock.Shared.
func (w *world) Clock(ctx context.Context) (time.Time, error) {
	w.change(func(s *state) {
		s.asked++
		_, s.deadline = ctx.Deadline()
	})
	s := w.get()
	wait := func(d time.Duration) {
		select {
		case <-ctx.Done():
		case <-time.After(d):
		}
	}
	wait(s.there)
	now := w.theirs()
	wait(s.back)
	if ctx.Err() != nil {
		return time.Time{}, ctx.Err()
	}
	return now, s.err
}

// off is how far the clock is ahead of the database's.
func (w *world) off() time.Duration { return w.clock.Now().Sub(w.theirs()) }

// wantFault insists on the reason why the time can't be relied on, "" for none.
func (w *world) wantFault(want string) {
	w.Helper()
	if fault := w.clock.Fault(); (fault == nil) != (want == "") || fault != nil && !strings.Contains(fault.Error(), want) {
		w.Errorf("fault %v, want %q", fault, want)
	}
}

func TestTheTimeIsTheDatabasesAndNotTheMachines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.change(func(s *state) { s.set = -3 * time.Hour })
		w.wantFault("was not measured yet")
		if _, known := w.clock.Skew(); known {
			w.Error("something is known before it was measured")
		}
		if err := w.clock.Measure(w.Context()); err != nil {
			w.Fatal(err)
		}
		for range 3 {
			time.Sleep(7 * time.Second)
			if ahead, known := w.clock.Skew(); w.off() != 0 || !known || ahead != 3*time.Hour {
				w.Errorf("off by %s; the machine is told to be ahead by %s, %t", w.off(), ahead, known)
			}
		}
		w.wantFault("")
		if !w.get().deadline {
			w.Error("the question may wait for ever")
		}
	})
}

// TestAMeasureIsAsGoodAsItsTrip: the time is never off by more than half a second for
// that, and what a measure can't tell from its own error changes nothing.
func TestAMeasureIsAsGoodAsItsTrip(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		there, back time.Duration
		off         time.Duration
	}{
		"at once":          {},
		"evenly":           {there: 500 * time.Millisecond, back: 500 * time.Millisecond},
		"slow on its way":  {there: time.Second, off: 500 * time.Millisecond},
		"slow on its back": {back: time.Second, off: -500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.change(func(s *state) { s.there, s.back = c.there, c.back })
				_ = w.clock.Measure(w.Context())
				if w.off() != c.off {
					w.Errorf("off by %s, want %s", w.off(), c.off)
				}
				w.change(func(s *state) { s.there, s.back = 0, 0 })
				_ = w.clock.Measure(w.Context())
				if w.off() != 0 {
					w.Errorf("off by %s after a better measure", w.off())
				}
				w.change(func(s *state) { s.there, s.back = c.there, c.back })
				_ = w.clock.Measure(w.Context())
				if w.off() != 0 {
					w.Errorf("off by %s after a worse measure", w.off())
				}
				w.wantFault("")
			})
		})
	}
}

// TestTheErrorOfAClockIsForgiven: half a second of error and what is no step yet are less
// than what proofs allow for.
func TestTheErrorOfAClockIsForgiven(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.change(func(s *state) { s.there = time.Second })
		_ = w.clock.Measure(w.Context())
		w.change(func(s *state) { s.set = time.Second })
		if off := w.off(); off.Abs() > movement.ClockSkew {
			w.Errorf("off by %s, forgiven are %s", off, movement.ClockSkew)
		}
	})
}

// TestAStepIsWaitedFor: somebody has set the database's clock. Nothing is relied on until
// all replicas know it, and as much real time has passed as the times of before say.
func TestAStepIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		step, held time.Duration
		fault      string
	}{
		"a second":         {step: time.Second},
		"more than that":   {step: time.Second + time.Millisecond, held: 30 * time.Second, fault: "set ahead by 1s"},
		"a minute":         {step: time.Minute, held: time.Minute, fault: "set ahead by 1m0s"},
		"a day":            {step: 24 * time.Hour, held: 11 * time.Minute, fault: "set ahead by 24h0m0s: its times hold again in 11m0s"},
		"back by a second": {step: -time.Second},
		"back by an hour":  {step: -time.Hour, held: 30 * time.Second, fault: "set back by 1h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				_ = w.clock.Measure(w.Context())
				w.change(func(s *state) { s.set = c.step })
				if w.off() != -c.step {
					w.Errorf("a step was followed before it was measured: off by %s", w.off())
				}
				_ = w.clock.Measure(w.Context())
				if w.off() != 0 {
					w.Errorf("off by %s after a measure", w.off())
				}
				w.wantFault(c.fault)
				for held := c.held; held > 0; held -= 10 * time.Second {
					w.wantFault("set ")
					time.Sleep(min(held, 10*time.Second))
					_ = w.clock.Measure(w.Context())
				}
				w.wantFault("")
			})
		})
	}
}

// TestWithoutMeasuresTheTimeIsReliedOnForHalfAMinute, and again from the next one on.
func TestWithoutMeasuresTheTimeIsReliedOnForHalfAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_ = w.clock.Measure(w.Context())
		hinder := func(change func(*state), want string) {
			w.Helper()
			before := w.get()
			w.change(change)
			if err := w.clock.Measure(w.Context()); err == nil || !strings.Contains(err.Error(), want) {
				w.Errorf("%v, want %q", err, want)
			}
			w.change(func(s *state) { s.err, s.there, s.back = before.err, before.there, before.back })
		}
		hinder(func(s *state) { s.err = errors.New("gone") }, "gone")
		hinder(func(s *state) { s.back = time.Second + time.Millisecond }, "the answer took 1.001s")
		hinder(func(s *state) { s.there = time.Hour }, "deadline exceeded")
		time.Sleep(30*time.Second - time.Second - time.Millisecond - 5*time.Second)
		w.wantFault("")
		time.Sleep(time.Millisecond)
		w.wantFault("was not measured for 30s")
		if w.off() != 0 {
			w.Errorf("it goes on all the same, off by %s", w.off())
		}
		_ = w.clock.Measure(w.Context())
		w.wantFault("")
		if w.log.Count("can't be measured") != 2 || w.log.Count("gone") != 1 || w.log.Count("works again") != 1 {
			w.Error("the log does not have the first failure and the end")
		}
	})
}

// TestAMachineThatSlept knows what time it is, and relies on nothing before it has asked.
func TestAMachineThatSlept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_ = w.clock.Measure(w.Context())
		w.change(func(s *state) { s.slept = time.Hour })
		if w.off() != 0 {
			w.Errorf("off by %s", w.off())
		}
		w.wantFault("was not measured for 1h0m0s")
		_ = w.clock.Measure(w.Context())
		w.wantFault("")
	})
}

// TestItIsMeasuredAgainAndAgain: every ten seconds, every second while that fails; what
// is wrong is said once, and once that it is over.
func TestItIsMeasuredAgainAndAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		_ = w.clock.Measure(w.Context())
		ctx, end := context.WithCancel(w.Context())
		done := make(chan error, 1)
		go func() { done <- w.clock.Run(ctx) }()
		pass := func(d time.Duration, asked, wrong, right int) {
			w.Helper()
			time.Sleep(d)
			synctest.Wait()
			if n := w.get().asked; n != asked || w.log.Count("meanwhile this replica") != wrong || w.log.Count("can be relied on") != right {
				w.Errorf("asked %d times, want %d; said that it is wrong %d times, want %d; that it is right %d times, want %d",
					n, asked, w.log.Count("meanwhile this replica"), wrong, w.log.Count("can be relied on"), right)
			}
		}
		pass(200*time.Second, 21, 0, 0)
		w.change(func(s *state) { s.set = -time.Minute })
		pass(9*time.Second, 21, 0, 0)
		pass(time.Second, 22, 1, 0)
		pass(20*time.Second, 24, 1, 0)
		pass(10*time.Second, 25, 1, 1)
		w.change(func(s *state) { s.err = errors.New("gone") })
		pass(35*time.Second, 25+1+25, 2, 1)
		w.wantFault("was not measured")
		w.change(func(s *state) { s.err = nil })
		pass(time.Second, 25+1+26, 2, 2)
		end()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
}
