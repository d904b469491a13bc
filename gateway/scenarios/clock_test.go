package scenarios

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
)

var errClock = errors.New("this machine's clock is 5m0s ahead")

// TestWrongClockReservesNothing: a replica whose clock is wrong refuses a creation
// before it reserves anything. It still answers and applies what exists.
func TestWrongClockReservesNothing(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	first := w.sell("INV/1", 10_000)
	if first.word() != "PENDING" {
		t.Fatalf("sale: %s %v", first.data, first.err)
	}
	fault := errClock
	w.ClockFault = func() error { return fault }
	s := w.sell("INV/2", 10_000)
	if s.word() != "INTERNAL no later" || s.err.Reference != "INV/2" || !errors.Is(s.err, errClock) {
		t.Errorf("a sale by a wrong clock: %s %v", s.word(), s.err)
	}
	if !strings.Contains(s.err.Message, "Nothing was sent") || strings.Contains(s.err.Message, errClock.Error()) {
		t.Errorf("told: %s", s.err.Message)
	}
	if _, err := w.keeper.MovementByKey(t.Context(), movement.Key{
		Owner: w.stored("INV/1").Owner, Kind: w.stored("INV/1").Kind, Reference: "INV/2",
	}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it was claimed: %v", err)
	}
	if again := w.sell("INV/1", 10_000); !again.replayed || again.data != first.data {
		t.Errorf("what exists is answered %s %v", again.data, again.err)
	}
	m := w.stored("INV/1")
	w.up.write(paid("a", m.Amount, w.now().Add(time.Minute)))
	w.pass(2 * time.Minute)
	if s := w.status("INV/1"); s.word() != "PAID" {
		t.Errorf("what is paid: %s %v", s.data, s.err)
	}
	fault = nil
	if s := w.sell("INV/2", 10_000); s.word() != "PENDING" || s.replayed {
		t.Errorf("once the clock is right: %s %v", s.data, s.err)
	}
}

// TestUnfitDatabaseReservesNothing: a database of another schema, or one that takes no
// writes, gets no creation and no cancel. It still answers what exists.
func TestUnfitDatabaseReservesNothing(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.want(w.create("A"), "PENDING")
		unfit := errors.New("the database has the schema 1000")
		w.Lifecycle.Unfit = func() error { return unfit }
		w.want(w.create("B"), "INTERNAL no later")
		w.want(w.cancel("A"), "INTERNAL no later")
		w.want(w.create("A"), "PENDING")
		w.want(w.status("A"), "PENDING")
		if w.up.cancels != 0 || len(w.up.calls) != 1 {
			t.Errorf("%d were cancelled, %d created", w.up.cancels, len(w.up.calls))
		}
		unfit = nil
		w.want(w.create("B"), "PENDING")
		w.want(w.cancel("A"), "EXPIRED")
	})
}

// TestNotFoundByWrongClockIsNoProof: by a wrong clock "not found" proves nothing. A
// success that the provider tells is applied all the same.
func TestNotFoundByWrongClockIsNoProof(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		var wrong error
		w.ClockFault = func() error { return wrong }
		w.up.way = wayNamed("unknown, not made")
		w.want(w.create("A"), "Pending")
		w.up.way = wayNamed("unknown, made")
		w.want(w.create("B"), "Pending")
		wrong = errClock
		w.want(w.create("C"), "INTERNAL no later")
		w.work("A", 3*time.Hour)
		w.work("B", time.Hour)
		if a, b := w.stored("A"), w.stored("B"); a.State != movement.Acknowledged || a.Misses != 0 || b.State != movement.Succeeded {
			w.Errorf("A stands at %s with %d misses, B at %s", a.State, a.Misses, b.State)
		}
		wrong = nil
		w.work("A", 24*time.Hour)
		w.want(w.create("A"), unsentNever)
		w.wantMoved(1)
	})
}

// TestWrongClockResubmitsNothing: only the time tells that the first request is not on
// its way any more.
func TestWrongClockResubmitsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, orders, keeperFor(t), handClock())
	other := w.replica(w.keeper)
	other.Now = func() time.Time { return w.now().Add(2 * time.Minute) }
	other.ClockFault = func() error { return errClock }
	w.up.before = func(sdk.Call) {
		w.up.before = nil
		if err := other.Resolve(t.Context(), w.stored("A")); err != nil {
			t.Error(err)
		}
	}
	w.want(w.create("A"), "Pending")
	if m := w.stored("A"); len(w.up.lookups) > 0 || !m.PolledAt.IsZero() || len(w.up.wrong) > 0 {
		t.Errorf("sent again at %v, asked at %v, %v", w.up.lookups, m.PolledAt, w.up.wrong)
	}
}

// TestWrongClockPutsOffAResubmission: an order that is due is put off for a minute
// while the clock is wrong.
func TestWrongClockPutsOffAResubmission(t *testing.T) {
	t.Parallel()
	o := unbought(t)
	wrong := errClock
	o.ClockFault = func() error { return wrong }
	due := o.stored("A")
	o.pass(due.DueAt.Sub(o.now()))
	if err := o.Resolve(t.Context(), due); err != nil {
		t.Fatal(err)
	}
	m := o.stored("A")
	if want := o.now().Add(time.Minute); !m.DueAt.Equal(want) || !m.PolledAt.Equal(due.PolledAt) || o.up.asked() != 0 {
		t.Errorf("due at %v, want %v; asked at %v, %d times", m.DueAt, want, m.PolledAt, o.up.asked())
	}
	o.pass(time.Second)
	o.want(o.status("A"), "Pending")
	if asked := o.stored("A"); !asked.DueAt.Equal(m.DueAt) {
		t.Errorf("a merchant who asks has put it off to %v", asked.DueAt)
	}
	wrong = nil
	o.answers()
	o.work("A", 10*time.Minute)
	o.wantBought(1)
}

// TestExceptionListedByALateClockCanBeOverridden may be decided: it is of this attempt.
func TestExceptionListedByALateClockCanBeOverridden(t *testing.T) {
	t.Parallel()
	kept := keeperFor(t)
	for behind, word := range map[time.Duration]string{2*movement.ClockSkew - time.Second: "", 2*movement.ClockSkew + 2*time.Second: "IN_PROGRESS"} {
		o := undecided(t, kept, "transfer", movement.Pending)
		m := o.stored("A")
		if _, err := kept.AddException(t.Context(), movement.Exception{
			Owner: m.Owner, Subject: m.ID.String(), Reason: movement.ReasonAmount, FactID: "hook", Provider: m.Provider, Detail: "x", At: m.CreatedAt.Add(-behind),
		}); err != nil {
			t.Fatal(err)
		}
		o.pass(10 * time.Minute)
		if _, err := o.saysAlone(ayu, movement.OverrideSucceeded); (err == nil) != (word == "") || err != nil && string(fault.From(err).Code) != word {
			t.Errorf("%v behind: %v", behind, err)
		}
	}
}

// TestNotFoundAcrossSkewedClocks: "not found" seen by a replica with the fastest clock
// allowed does not end what one with the slowest has just sent.
func TestNotFoundAcrossSkewedClocks(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		w.up.way = wayNamed("unknown, made late")
		w.up.way.slow = 59 * time.Second
		w.want(w.create("A"), "Pending")
		w.up.set(func() { w.up.now = func() time.Time { return w.now().Add(-2 * movement.ClockSkew) } })
		w.pass(2 * movement.ClockSkew) // all that looks from here on has such a clock
		w.work("A", 3*time.Hour)
		w.want(w.create("A"), "Success")
		w.wantMoved(1)
	})
}
