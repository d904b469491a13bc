package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

var errClock = errors.New("this machine's clock is 5m0s ahead")

// TestAWrongClockSellsNothing: a sale of a replica whose clock is wrong is refused
// before anything is claimed or sent, what exists is answered and paid all the same,
// and once the clock is right the reference is used as if nothing had been.
func TestAWrongClockSellsNothing(t *testing.T) {
	t.Parallel()
	w := newStall(t, databaseFor(t))
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
	if _, err := w.kept.MovementByKey(t.Context(), movement.Key{
		Owner: w.stored("INV/1").Owner, Kind: w.stored("INV/1").Kind, Reference: "INV/2",
	}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("it was claimed: %v", err)
	}
	if again := w.sell("INV/1", 10_000); !again.replayed || again.data != first.data {
		t.Errorf("what exists is answered %s %v", again.data, again.err)
	}
	m := w.stored("INV/1")
	w.till.write(paid("a", m.Amount, w.now().Add(time.Minute)))
	w.pass(2 * time.Minute)
	if s := w.status("INV/1"); s.word() != "PAID" {
		t.Errorf("what is paid: %s %v", s.data, s.err)
	}
	fault = nil
	if s := w.sell("INV/2", 10_000); s.word() != "PENDING" || s.replayed {
		t.Errorf("once the clock is right: %s %v", s.data, s.err)
	}
}

// TestAWrongClockHindersNothingElse: how a payment ends, its provider says.
func TestAWrongClockHindersNothingElse(t *testing.T) {
	t.Parallel()
	inMemory(t, func(w *world) {
		w.ClockFault = func() error { return errClock }
		w.want(w.create("A"), "PENDING")
	})
}
