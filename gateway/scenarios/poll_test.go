package scenarios

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// unanswered makes a movement of which nothing reached the provider, and nobody
// knows so.
func (w *world) unanswered(reference string) movement.Movement {
	w.Helper()
	w.up.set(func() { w.up.way, w.up.find = wayNamed("unknown, not made"), blind })
	w.want(w.create(reference), timedOut)
	w.up.set(func() { w.up.find = nil })
	return w.stored(reference)
}

// TestNotFoundIsProofTwice: looks at moments after send_by plus settles_within,
// in seconds, and when the reference is free.
func TestNotFoundIsProofTwice(t *testing.T) {
	t.Parallel()
	const blindLook = -1000 // told nothing: five seconds after the one before, and each such five more
	for name, c := range map[string]struct {
		looks []int
		state movement.State
	}{
		"before it is proof": {[]int{-20, -10, -5}, movement.Submitting},
		"once":               {[]int{-10, 0}, movement.Submitting},
		"twice too soon":     {[]int{0, 5}, movement.Submitting},
		"polled by clients":  {[]int{0, 5, 10}, movement.NotSubmitted},
		"polled unevenly":    {[]int{3, 8}, movement.Submitting},
		"just enough":        {[]int{3, 13}, movement.NotSubmitted},
		"polled much later":  {[]int{4000, 4005, 4010}, movement.NotSubmitted},
		"much later":         {[]int{4000, 9000}, movement.NotSubmitted},
		"told nothing once":  {[]int{0, blindLook, 10}, movement.NotSubmitted},
		"told nothing then":  {[]int{0, blindLook, blindLook, 20}, movement.NotSubmitted}, // when the second was due
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				m := w.unanswered("A")
				proof := m.ProvenAfter(operation(createPath).Rules)
				for i, second := range c.looks {
					w.up.find = nil
					if second == blindLook {
						w.up.find, c.looks[i] = blind, c.looks[i-1]+5
						second = c.looks[i]
					}
					w.pass(proof.Add(time.Duration(second) * time.Second).Sub(w.now()))
					asked := w.up.asked()
					w.create("A") // a status would make it a promise
					if w.up.asked() != asked+1 {
						t.Errorf("look %d was not made", i)
					}
				}
				if state := w.stored("A").State; state != c.state {
					t.Errorf("stands at %s, want %s", state, c.state)
				}
			})
		})
	}
}

// TestNotFoundByTheWorkerAlone: nobody asks, and the reference is free within a
// minute of the claim.
func TestNotFoundByTheWorkerAlone(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		m := w.unanswered("A")
		proof := m.ProvenAfter(operation(createPath).Rules)
		w.work("A", proof.Add(missGap-time.Second).Sub(w.now()))
		if state := w.stored("A").State; state != movement.Submitting {
			t.Errorf("stands at %s after one miss", state)
		}
		w.work("A", 5*time.Second)
		if m = w.stored("A"); m.State != movement.NotSubmitted || !m.DueAt.IsZero() {
			t.Errorf("stands at %s, due %v", m.State, m.DueAt)
		}
	})
}

// TestStaleWorker: what a worker read some seconds ago must not count as the
// first miss of somebody else's.
func TestStaleWorker(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		m := w.unanswered("A")
		w.pass(time.Minute)
		stale := w.stored("A")
		for range 2 {
			if err := w.Resolve(w.Context(), stale); err != nil {
				t.Error(err)
			}
			w.pass(lookEvery)
		}
		if got := w.stored("A"); got.State != movement.Submitting || got.Misses != 1 {
			t.Errorf("stands at %s after %d misses five seconds apart", got.State, got.Misses)
		}
		w.prove("A")
		w.restart()
		w.want(w.create("A"), "PENDING")
		if err := w.Resolve(w.Context(), stale); err != nil { // of another attempt
			t.Error(err)
		}
		if got := w.stored("A"); got.State != movement.Pending || got.Attempt != m.Attempt+1 {
			t.Errorf("stands at %s, attempt %d", got.State, got.Attempt)
		}
	})
}

// TestLateMoneyIsLookedFor: once more after the end, for as long as it takes to
// be told something. What came is watched from then on, as a success is.
func TestLateMoneyIsLookedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		paid  bool
		blind time.Duration // how long the provider can't be asked
		lost  time.Duration // how long the record can't be written
		mute  time.Duration // how long the operators' list can't be written
		asked int
	}{
		"nothing came":                  {asked: 1},
		"it came":                       {paid: true, asked: 1},
		"it came, told later":           {paid: true, blind: 90 * time.Minute, asked: 2},
		"it came, written later":        {paid: true, lost: 90 * time.Minute, asked: 2},
		"it came, listed later":         {paid: true, mute: 90 * time.Minute, asked: 2},
		"the provider is gone for good": {blind: 100 * time.Hour, asked: 24},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.create("A")
				w.want(w.cancel("A"), "EXPIRED")
				asked, end := w.up.asked(), w.now()
				m := w.stored("A")
				if c.paid {
					w.up.pay(m.UpstreamReference(), "p")
				}
				for range 200 {
					if m = w.stored("A"); m.DueAt.IsZero() {
						break
					}
					w.pass(m.DueAt.Sub(w.now()))
					w.up.find, w.faults.recording, w.faults.listing = nil, nil, nil
					if w.now().Sub(end) < c.blind {
						w.up.find = blind
					}
					if w.now().Sub(end) < c.lost {
						w.faults.recording = errAway
					}
					if w.now().Sub(end) < c.mute {
						w.faults.listing = errAway
					}
					_ = w.Resolve(w.Context(), m)
				}
				want := c.asked
				if c.paid {
					want += len(operation(createPath).Rules.Polls.Succeeded)
				}
				if n := w.up.asked() - asked; n != want {
					t.Errorf("asked %d times, want %d", n, want)
				}
				if m = w.stored("A"); m.State != movement.Expired || m.PaidLateAt.IsZero() == c.paid || !m.DueAt.IsZero() {
					t.Errorf("stands at %s, paid late %v, due %v", m.State, m.PaidLateAt, m.DueAt)
				}
				if c.paid {
					w.wantListed(movement.ReasonPaidLate)
				} else {
					w.wantListed()
				}
			})
		})
	}
}

// TestUnresolved: nobody could tell for a day, so a person has to.
func TestUnresolved(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.unanswered("A")
		w.up.find = blind
		w.work("A", 23*time.Hour)
		w.wantListed()
		w.work("A", 72*time.Hour)
		w.wantListed(movement.ReasonUnresolved)
		w.want(w.create("A"), timedOut)
		if things, calls := w.up.made(); things != 0 || calls != 1 {
			t.Errorf("%d things, %d calls", things, calls)
		}
	})
}

// TestVanished: what was accepted and is not found is never called unsent.
func TestVanished(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A")
		clear(w.up.things)
		w.work("A", 3*time.Hour)
		w.want(w.status("A"), "PENDING")
		w.wantListed(movement.ReasonVanished)
	})
}

// TestUnresolvable: without a connection nobody can look; it must not be tried
// in a loop, and the merchant must not be told that nothing was sent.
func TestUnresolvable(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		m := w.unanswered("A")
		w.Vault = openVault{locked: true}
		w.pass(time.Minute)
		if err := w.Resolve(w.Context(), m); err == nil {
			t.Error("no error")
		}
		if due := w.stored("A").DueAt.Sub(w.now()); due != unresolvable {
			t.Errorf("due in %v", due)
		}
		w.want(w.create("A"), timedOut)
		w.want(w.cancel("A"), timedOut)
		w.want(w.status("A"), "PENDING")
	})
}

// TestPatience: what may pass is waited for, what can't is not.
func TestPatience(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		fails   int
		word    string
		tries   int // at least
		atMost  time.Duration
		atLeast time.Duration
	}{
		"away for a moment": {errAway, 3, "PENDING", 4, 2 * time.Second, 0},
		"away":              {errAway, 1000, "INTERNAL unknown lookup_first", 8, applyTimeout, applyTimeout - time.Second},
		"broken":            {broken{errAway}, 1000, "INTERNAL unknown lookup_first", 1, 0, 0},
		"broken, wrapped":   {errors.Join(errors.New("store: move"), broken{errAway}), 1000, "INTERNAL unknown lookup_first", 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				tries := 0
				w.faults.move = func(do func() (bool, error)) (bool, error) {
					if tries++; tries <= c.fails {
						return false, c.err
					}
					return do()
				}
				start := w.now()
				s := w.create("A")
				w.want(s, c.word)
				if took := w.now().Sub(start); took > c.atMost || took < c.atLeast || tries < c.tries {
					t.Errorf("%d tries in %v", tries, took)
				}
				if s.err != nil && !errors.Is(s.err, errAway) {
					t.Errorf("the log would not tell why: %v", s.err)
				}
			})
		})
	}
}

// TestClientsHangUp: money work does not end with its client, wherever it is.
func TestClientsHangUp(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		gone, hangUp := context.WithCancel(w.Context())
		hangUp()
		if _, err := w.Engine.Run(gone, w.request("A")); err != nil {
			t.Error(err)
		}
		ctx, hangUp := context.WithCancel(w.Context())
		w.up.after = func(sdk.Call) { hangUp() }
		w.up.way = wayNamed("unknown, made")
		if _, err := w.Engine.Run(ctx, w.request("B")); err != nil {
			t.Error(err)
		}
		w.pass(time.Minute)
		if _, err := w.Engine.Run(gone, w.asks(cancelPath, "external_id", "A")); err != nil {
			t.Error(err)
		}
		w.want(w.status("A"), "EXPIRED")
		if m := w.stored("B"); m.State != movement.Pending || m.Answer == nil {
			t.Errorf("stands at %s", m.State)
		}
		leaving, hangUp := context.WithTimeout(w.Context(), time.Second)
		defer hangUp()
		w.faults.move = func(do func() (bool, error)) (bool, error) {
			if leaving.Err() == nil {
				w.pass(2 * time.Second)
				return false, errAway
			}
			return do()
		}
		m := w.stored("B")
		w.up.pay(m.UpstreamReference(), "p")
		if _, err := w.Engine.Run(leaving, w.asks(statusPath, "external_id", "B")); err != nil {
			t.Error(err)
		}
		w.pass(2 * time.Second) // what was found is kept by whoever found it, also when nobody waits
		if m = w.stored("B"); m.State != movement.Succeeded {
			t.Errorf("stands at %s: what was found was lost", m.State)
		}
	})
}

// TestAskingIsShared: whoever saw the movement before somebody asked does not
// ask again within the span.
func TestAskingIsShared(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A")
		stale := w.stored("A")
		for second := range 20 {
			for _, m := range []movement.Movement{w.stored("A"), stale} { // who saw it before it was asked asks nobody
				if err := w.Resolve(w.Context(), m); err != nil {
					t.Error(err)
				}
			}
			if want := second/5 + 1; w.up.asked() != want {
				t.Errorf("asked %d times after %d s", w.up.asked(), second)
			}
			w.pass(time.Second)
		}
	})
}

// TestNotFoundOnAnotherAccountIsNoProof: when the credentials have changed since a
// movement was sent, nobody may conclude from "not found" that it was not.
func TestNotFoundOnAnotherAccountIsNoProof(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		m := w.unanswered("A")
		op := operation(createPath)
		w.pass(m.ProvenAfter(op.Rules).Sub(w.now()))
		for range 3 {
			w.pass(time.Hour)
			var err error
			if m, err = w.Poll(w.Context(), op, m, lifecycle.Connection{Connection: sdk.Connection{Version: m.ConnectionVersion + 1}}); err != nil {
				t.Fatal(err)
			}
		}
		if w.up.asked() != 4 { // once by the creation
			t.Errorf("asked %d times", w.up.asked())
		}
		if m = w.stored("A"); m.State != movement.Submitting || m.Misses != 0 || m.ConnectionVersion == 0 {
			t.Errorf("stands at %s after %d misses, sent with version %d", m.State, m.Misses, m.ConnectionVersion)
		}
	})
}

// TestExpiredOnAnotherAccountEndsNothing: an account that surely is another may say that a payment's
// life is over, as Midtrans does of any link that nobody has touched there. It does not
// know whether it was paid on the account that made it: an operator has to look.
func TestExpiredOnAnotherAccountEndsNothing(t *testing.T) {
	t.Parallel()
	for another, want := range map[string]movement.State{"another": movement.Pending, "": movement.Expired, "one": movement.Expired} {
		inMemory(t, payments, func(w *world) {
			w.create("A")
			m := w.stored("A")
			m.ConnectionAccount = "one"
			w.up.find = func(l sdk.Lookup) sdk.StatusUpdate {
				return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusExpired, EventID: "unused", Amount: l.Amount}
			}
			w.pass(25 * time.Hour)
			if _, err := w.Poll(w.Context(), operation(createPath), m, lifecycle.Connection{Account: another}); err != nil {
				t.Fatal(err)
			}
			if got := w.stored("A").State; got != want {
				t.Errorf("account %q says expired: it is %s, want %s", another, got, want)
			}
			if want == movement.Pending {
				w.wantListed(movement.ReasonVanished)
			}
		})
	}
}

// TestProviderErrorFreesTheReferenceSoon: after an error of the provider's own, proof
// comes after error_settles_within and frees the reference ten seconds later. The
// answer says when to ask again; asking sooner delays nothing.
func TestProviderErrorFreesTheReferenceSoon(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.up.set(func() { w.up.way = wayNamed("error, not made") })
		begun := w.now()
		proof := begun.Add(5*time.Second + 2*movement.ClockSkew)
		told := func(want time.Time) {
			t.Helper()
			s := w.create("A")
			w.want(s, timedOut)
			if s.err == nil || s.err.RetryAt.Before(want) || s.err.RetryAt.After(want.Add(time.Second)) ||
				!strings.Contains(s.err.Message, lifecycle.Stamp(s.err.RetryAt)) || !strings.Contains(s.err.Message, "answered with an error") {
				t.Errorf("told %+v, want to ask again at %s", s.err, want)
			}
		}
		told(proof)
		for w.now().Before(proof.Add(-time.Second)) {
			w.pass(time.Second)
			told(proof)
		}
		if asked := w.up.asked(); asked != 1 {
			t.Errorf("asked %d times before it could prove something", asked)
		}
		w.work("A", proof.Sub(w.now())+time.Second)
		told(proof.Add(missGap))
		w.up.set(func() { w.up.way = way{} })
		w.work("A", missGap)
		if m := w.stored("A"); m.State != movement.NotSubmitted || w.now().Sub(begun) > 20*time.Second+2*movement.ClockSkew {
			t.Errorf("stands at %s after %s", m.State, w.now().Sub(begun))
		}
		w.want(w.create("A"), "PENDING")
	})
}

// TestCreationBehindAProviderErrorIsFound at once.
func TestCreationBehindAProviderErrorIsFound(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.up.set(func() { w.up.way = wayNamed("error, made") })
		w.want(w.create("A"), "PENDING")
	})
}
