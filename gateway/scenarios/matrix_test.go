package scenarios

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// A matrixCase is one way in which a creation can go: what becomes of the
// claim, what the provider does and says, what becomes of the settlement, where
// the process ends, and whether the provider can be asked at once.
type matrixCase struct {
	claim   string
	outcome outcome
	settle  string
	crash   string
	blind   bool
}

func (c matrixCase) String() string {
	return fmt.Sprintf("claim %s, outcome %s, settle %s, crash %s, blind %t", c.claim, c.outcome.name, c.settle, c.crash, c.blind)
}

func cases(claims, settles []string, blinds []bool) []matrixCase {
	var all []matrixCase
	for _, claim := range claims {
		for _, o := range outcomes {
			for _, settle := range settles {
				for _, crash := range []string{"never", "before the call", "after the call", "before the settlement", "after the settlement"} {
					for _, blind := range blinds {
						all = append(all, matrixCase{claim, o, settle, crash, blind})
					}
				}
			}
		}
	}
	return all
}

var (
	everyClaim  = []string{"ok", "fails", "fails but is there", "is through too late"}
	everySettle = []string{"ok", "fails once", "fails once but is there", "fails for ever", "fails for good", "is there but fails for ever"}
)

// TestMatrix runs every way in memory.
func TestMatrix(t *testing.T) {
	t.Parallel()
	all := cases(everyClaim, everySettle, []bool{false, true})
	for _, c := range tier.Sample(t, all, 150) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			inMemory(t, func(w *world) { w.play(c) })
		})
	}
	t.Logf("%d cases", len(all))
}

// TestMatrixOnDatabase runs the core of it on the real store.
func TestMatrixOnDatabase(t *testing.T) {
	t.Parallel()
	s := databaseFor(t)
	all := cases([]string{"ok", "fails but is there"}, []string{"ok", "fails once but is there", "fails for good"}, []bool{false})
	for _, c := range tier.Sample(t, all, 10) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			newWorld(t, s, handClock()).play(c)
		})
	}
	t.Logf("%d cases", len(all))
}

// play lets a creation go wrong as told, starts a new process, asks again with
// the same reference until the end is known, and checks all that was said
// against what really happened.
func (w *world) play(c matrixCase) {
	const reference = "INV/2026/#001"
	w.break_(c)
	answers := []said{w.create(reference)}
	w.truthful(reference, answers[0])
	if c.crash == "never" && c.claim == "ok" && c.settle == "ok" && !c.blind {
		w.want(answers[0], undisturbed(c.outcome))
	}

	w.restart()
	for range 2 { // one at once, one when the worker has had its time
		again := w.create(reference)
		w.truthful(reference, again)
		answers = append(answers, again)
		w.work(reference, 2*time.Minute)
	}
	last := w.create(reference)
	answers = append(answers, last)
	w.truthful(reference, last)
	w.oneTruth(reference, answers)
	w.wantListed()
}

// undisturbed is what a creation is answered when nothing else goes wrong.
func undisturbed(o outcome) string {
	switch {
	case o.makes && o.slow == 0:
		return "PENDING" // also where only a look at the provider tells so
	case strings.HasPrefix(o.name, "refused without"):
		return "PROVIDER_REJECTED refused never"
	case strings.HasPrefix(o.name, "refused"):
		return "DESTINATION_INVALID refused never"
	case o.name == "not sent":
		return "PROVIDER_UNAVAILABLE no later"
	}
	return "PROVIDER_TIMEOUT unknown lookup_first"
}

// truthful checks one answer against what exists at the provider.
func (w *world) truthful(reference string, s said) {
	w.Helper()
	things, calls := w.up.made()
	attempts := 1
	if m, err := w.keeper.MovementByKey(w.Context(), w.keyOf(reference)); err == nil {
		attempts = m.Attempt
	}
	if calls > attempts || things > 1 || w.up.again > 0 || w.up.tooLate > 0 {
		w.Errorf("one reference was sent %d times in %d attempts, %d things exist, %d calls were for what existed, %d came too late",
			calls, attempts, things, w.up.again, w.up.tooLate)
	}
	switch {
	case s.crashed:
		return
	case s.err == nil:
		if things != 1 || s.word() != "PENDING" {
			w.Errorf("answered %s while %d things exist", s.data, things)
		}
		return
	case s.err.Reference != reference:
		w.Errorf("%v names %q", s.err, s.err.Reference)
	case s.err.Code == fault.InProgress:
	case s.err.Sent == fault.SentUnknown && s.err.Retry != fault.RetryLookupFirst:
		w.Errorf("unknown, and not to be looked up first: %v", s.err)
	case s.err.Sent != fault.SentUnknown && things != 0:
		w.Errorf("told that it was not made: %v", s.err)
	}
}

// oneTruth checks the end: everybody knows, and all answers agree.
func (w *world) oneTruth(reference string, answers []said) {
	w.Helper()
	last, m := answers[len(answers)-1], w.stored(reference)
	things, _ := w.up.made()
	switch {
	case last.err == nil:
		w.wantTold() // also where a lookup or a restart was in between
		if m.State != movement.Pending || things != 1 || w.up.things[m.UpstreamReference()] == nil {
			w.Errorf("answered %s, stands at %s, %d things exist", last.data, m.State, things)
		}
	case last.err.Sent == fault.SentRefused:
		w.wantTold(ends + " FAILED")
		if m.State != movement.Failed || things != 0 {
			w.Errorf("refused, stands at %s, %d things exist", m.State, things)
		}
	default:
		w.Errorf("the end is not known: %v", last.err)
	}
	for i, earlier := range answers {
		final := earlier.err == nil || earlier.err.Sent == fault.SentRefused
		if !earlier.crashed && final && (earlier.data != last.data || earlier.word() != last.word()) {
			w.Errorf("answer %d was %s %s, the last one is %s %s", i, earlier.word(), earlier.data, last.word(), last.data)
		}
	}
	if !last.replayed && (m.Attempt == 1 || last.err != nil) {
		w.Errorf("the last answer of attempt %d is not marked as a replay: %s", m.Attempt, last.word())
	}
}

// break_ makes the world go wrong.
func (w *world) break_(c matrixCase) {
	w.up.outcome = c.outcome
	if c.blind {
		w.up.find = blind
	}
	switch c.crash {
	case "before the call":
		w.up.before = func(sdk.Call) { panic(crash{}) }
	case "after the call":
		w.up.after = func(sdk.Call) { panic(crash{}) }
	}
	w.faults.claim = w.claimFault(c.claim)
	w.faults.move = settleFault(c)
}

func (w *world) claimFault(kind string) func(context.Context, claiming) (movement.Movement, bool, error) {
	return func(_ context.Context, do claiming) (movement.Movement, bool, error) {
		switch kind {
		case "fails":
			return movement.Movement{}, false, errAway
		case "fails but is there":
			_, _, _ = do()
			return movement.Movement{}, false, errAway
		case "is through too late":
			defer w.pass(sendWindow + time.Second)
		}
		return do()
	}
}

func settleFault(c matrixCase) func(func() (bool, error)) (bool, error) {
	var tries atomic.Int32
	return func(do func() (bool, error)) (bool, error) {
		try := tries.Add(1)
		if c.crash == "before the settlement" {
			panic(crash{})
		}
		var moved bool
		err := errAway
		switch {
		case c.settle == "fails for good":
			err = broken{errAway}
		case c.settle == "fails for ever", c.settle == "fails once" && try == 1:
		case c.settle == "fails once but is there" && try == 1, c.settle == "is there but fails for ever" && try == 1:
			_, _ = do()
		case c.settle == "is there but fails for ever":
		default:
			moved, err = do()
		}
		if c.crash == "after the settlement" {
			panic(crash{})
		}
		return moved, err
	}
}
