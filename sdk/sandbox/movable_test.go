package sandbox_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// closed reports whether a moment is reached, for all who wait for it.
func closed(ch <-chan time.Time) bool {
	select {
	case _, open := <-ch:
		return !open
	default:
		return false
	}
}

func TestMovableClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var clock sandbox.MovableClock
		began := time.Now()
		if !clock.Now().Equal(began) || !closed(clock.Reach(began)) || !closed(clock.Reach(began.Add(-time.Hour))) {
			t.Error("it does not begin with the machine's time")
		}
		soon, later := clock.Reach(began.Add(time.Minute)), clock.Reach(began.Add(time.Hour))
		if clock.Reach(began.Add(time.Hour).UTC()) != later {
			t.Error("who waits for the same moment does not share the channel")
		}
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		if closed(soon) {
			t.Error("reached too early")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !closed(soon) || closed(later) {
			t.Error("a minute later, one of two is reached")
		}
		clock.Advance(58 * time.Minute)
		if closed(later) || !clock.Now().Equal(began.Add(59*time.Minute)) {
			t.Errorf("advanced to %v", clock.Now())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !closed(later) {
			t.Error("after being advanced, time stands still")
		}
		far := clock.Reach(began.Add(24 * time.Hour))
		clock.Advance(24 * time.Hour)
		if !closed(far) {
			t.Error("not reached by being advanced")
		}
	})
}

// TestClockOrder advances by order, and finds the same time after a restart.
func TestClockOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	clock := func(advance string) (int, string) {
		w := openShopIn(t, dir, nil)
		defer w.close()
		status, body, err := w.call("POST", "/_sandbox/clock", "open", `{"advance":"`+advance+`"}`)
		if err != nil {
			t.Fatal(err)
		}
		if ahead := time.Until(w.env.Clock.Now()); ahead < 2160*time.Hour-time.Minute || ahead > 2160*time.Hour {
			t.Errorf("%s: the clock is ahead by %v", advance, ahead)
		}
		return status, body
	}
	if status, body := clock("2160h"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	for _, wrong := range []string{"", "90", "-1h", "0s"} {
		if status, body := clock(wrong); status != 400 {
			t.Errorf("%q: %d %s", wrong, status, body)
		}
	}
}

func TestClockOrderOfAnotherClock(t *testing.T) {
	t.Parallel()
	w := openShop(t, sandbox.NewManualClock(start))
	if status, body, _ := w.call("POST", "/_sandbox/clock", "open", `{"advance":"1h"}`); status != 409 {
		t.Errorf("%d %s", status, body)
	}
}
