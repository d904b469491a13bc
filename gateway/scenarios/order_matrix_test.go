package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// costing is a call's word that it is done, at a cost that differs from the
// agreed one.
func costing(more money.Amount) func(money.Amount) sdk.Result {
	return func(agreed money.Amount) sdk.Result {
		return sdk.Result{Outcome: sdk.Done, Data: json.RawMessage(`{"sn":"1"}`), Amount: agreed + more}
	}
}

func saying(r sdk.Result) func(money.Amount) sdk.Result {
	return func(money.Amount) sdk.Result { return r }
}

// deals are all that can become of an order's call, what the call says of it,
// and how the order stands right after.
var deals = []struct {
	deal
	stands movement.State
}{
	{deal{name: "done"}, movement.Succeeded},
	{deal{name: "done, cheaper", dearer: -1}, movement.Succeeded}, // a bill's cost is exact
	{deal{name: "done, dearer", dearer: 1}, movement.Acknowledged},
	{deal{name: "done, dearer by its word", says: costing(1)}, movement.Acknowledged},
	{deal{name: "done, cost not told", says: func(money.Amount) sdk.Result {
		return sdk.Result{Outcome: sdk.Done, Data: json.RawMessage(`{"sn":"1"}`)}
	}}, movement.Acknowledged},
	{deal{name: "done, below zero", says: costing(-1_000_000)}, movement.Acknowledged},
	{deal{name: "pending, then done", after: 5 * time.Minute}, movement.Pending},
	{deal{name: "pending, then failed", after: 5 * time.Minute, fails: true}, movement.Pending},
	{deal{name: "failed at once", fails: true}, movement.Failed},
	{deal{name: "refused", unmade: true, says: saying(sdk.Refuse(sdk.RefuseDestination, "No such number."))}, movement.Failed},
	{deal{name: "refused without words", unmade: true, says: saying(sdk.Result{Outcome: sdk.Refused})}, movement.Failed},
	{deal{name: "not sent", unmade: true, says: saying(sdk.DidNotSend(sdk.BlameUpstream, "no process"))}, movement.NotSubmitted},
	{deal{name: "not sent, our account", unmade: true, says: saying(sdk.DidNotSend(sdk.BlameAccount, "deposit empty"))}, movement.NotSubmitted},
	{deal{name: "unknown, made", says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}, movement.Acknowledged},
	{deal{name: "unknown, made, fails", after: 5 * time.Minute, fails: true, says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}, movement.Acknowledged},
	{deal{name: "unknown, not made", unmade: true, says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}, movement.Acknowledged},
	{deal{name: "garbage", says: saying(sdk.Result{Outcome: sdk.Done, Data: json.RawMessage(`{"sn":1}`), Amount: prepaidPrice})}, movement.Acknowledged},
	{deal{name: "no data", says: saying(sdk.Result{Outcome: sdk.Done, Amount: prepaidPrice})}, movement.Acknowledged},
	{deal{name: "not UTF-8", says: saying(sdk.Result{Outcome: sdk.Pending, Data: json.RawMessage("{\"sn\":\"\xff\"}")})}, movement.Acknowledged},
	{deal{name: "unheard of", says: saying(sdk.Result{Outcome: 99, Data: json.RawMessage(`{}`)})}, movement.Acknowledged},
}

// An orderCase is one way in which an order can go: what becomes of the claim,
// of the call and of the commits after it, and where the process ends.
type orderCase struct {
	sku    string
	claim  string
	deal   int
	settle string
	crash  string
}

func (c orderCase) String() string {
	return fmt.Sprintf("%s, claim %s, %s, settle %s, crash %s", c.sku, c.claim, deals[c.deal].name, c.settle, c.crash)
}

func orderCases(claims, settles, crashes []string) []orderCase {
	var all []orderCase
	for _, sku := range []string{prepaidSKU, billSKU} {
		for _, claim := range claims {
			for d := range deals {
				for _, settle := range settles {
					for _, crash := range crashes {
						all = append(all, orderCase{sku, claim, d, settle, crash})
					}
				}
			}
		}
	}
	return all
}

const allFail = "and promise fail for ever"

var everyCrash = []string{
	"never", "before the quote", "after the claim", "before the call", "after the call",
	"before the settlement", "after the settlement", "before the promise", "after the promise",
}

// TestOrderMatrix runs every way in memory.
func TestOrderMatrix(t *testing.T) {
	t.Parallel()
	all := orderCases([]string{"ok"}, append(slices.Clone(everySettle), allFail), everyCrash)
	all = append(all, orderCases(everyClaim[1:], []string{"ok", allFail}, everyCrash[:1])...)
	for _, c := range tier.Sample(t, all, 150) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			inShop(t, func(s *shop) { s.plays(c) })
		})
	}
	t.Logf("%d cases", len(all))
}

// TestOrderMatrixOnDatabase runs the core of it on the real store.
func TestOrderMatrixOnDatabase(t *testing.T) { //nolint:tparallel // what follows the cases waits for them
	t.Parallel()
	db := databaseFor(t)
	all := orderCases([]string{"ok"}, []string{"ok", "fails once but is there"}, []string{"never", "after the call", "after the settlement", "after the promise"})
	all = append(all, orderCases([]string{"fails but is there"}, []string{allFail}, everyCrash[:1])...)
	t.Run("cases", func(t *testing.T) {
		for _, c := range tier.Sample(t, all, 10) {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				newShop(t, db, handClock()).plays(c)
			})
		}
	})
	cleanLedger(t, db)
	t.Logf("%d cases", len(all))
}

// plays lets an order go wrong as told, starts a new process, orders again under
// the same reference until the end is known, and checks after each step what was
// said, paid and bought.
func (s *shop) plays(c orderCase) {
	const reference = "INV/2026/#001"
	s.sku = c.sku
	s.goesWrong(c)
	answers := []said{s.asksFor(reference)}
	if c.crash == "never" && c.claim == "ok" && c.settle == "ok" {
		s.undisturbed(c, reference, answers[0])
	}
	s.restart()
	soon := 16 * time.Second
	if first := answers[0].err; first != nil && first.Sent == fault.SentNo {
		soon = 5 * time.Minute // when a worker that does not know so would have bought it
	}
	for range 2 { // one soon, one when the worker has had its time
		s.lets(reference, soon, answers)
		answers = append(answers, s.asksFor(reference))
		s.lets(reference, 5*time.Minute, answers)
	}
	s.lets(reference, 3*time.Hour, answers)
	answers = append(answers, s.asksFor(reference))
	s.ends(c, reference, answers)
}

func (s *shop) asksFor(reference string) said {
	s.Helper()
	a := s.order(reference)
	s.truthful(reference, a)
	s.addUp()
	return a
}

// lets time pass, and the worker with it. What was told not to be sent stays so
// while nobody asks again.
func (s *shop) lets(reference string, span time.Duration, answers []said) {
	s.Helper()
	s.work(reference, span)
	s.addUp()
	if last := answers[len(answers)-1]; last.err != nil {
		s.truthful(reference, last)
	}
}

// undisturbed checks an order when nothing but its call went wrong.
func (s *shop) undisturbed(c orderCase, reference string, first said) {
	s.Helper()
	stands, word := deals[c.deal].stands, "Pending"
	if stands == movement.NotSubmitted {
		word = "PROVIDER_UNAVAILABLE no later"
	}
	if c.sku == billSKU && deals[c.deal].dearer != 0 {
		stands = movement.Acknowledged
	}
	s.want(first, word)
	if m := s.stored(reference); m.State != stands {
		s.Errorf("stands at %s, want %s", m.State, stands)
	}
}

// ends checks that everybody knows the end, and that all answers agree.
func (s *shop) ends(c orderCase, reference string, answers []said) {
	s.Helper()
	m, d := s.stored(reference), deals[c.deal]
	p, times := s.up.of(nameOfMovement(m.ID))
	doubtful := times == 1 && p.ends == sdk.StatusDone && (d.dearer > 0 || d.dearer < 0 && c.sku == billSKU)
	switch {
	case times == 0 && m.State != movement.Failed, times == 1 && doubtful == m.State.Final():
		s.Errorf("at the end it stands at %s; bought %d times: %+v", m.State, times, p)
	}
	odd := func(r string) bool {
		return r != movement.ReasonAmount && !(doubtful && r == movement.ReasonUnresolved)
	} // it is not asked for beyond an hour
	if listed := s.listed(); doubtful && !slices.Contains(listed, movement.ReasonAmount) || slices.ContainsFunc(listed, odd) ||
		len(listed) > 0 && d.dearer == 0 && d.says == nil {
		s.Errorf("the operators' list has %q", listed)
	}
	last := answers[len(answers)-1]
	if s.want(last, "Pending"); !last.replayed {
		s.Error("the last answer is not marked as a replay")
	}
	promised := false
	for i, a := range answers {
		if promised && (a.word() != "Pending" || !a.replayed) {
			s.Errorf("answer %d is %s (replayed: %t), after it was told to be pending", i, a.word(), a.replayed)
		}
		promised = promised || a.word() == "Pending"
	}
}

// goesWrong makes the world go wrong.
func (s *shop) goesWrong(c orderCase) {
	ends := func() { panic(crash{}) }
	s.up.deal = deals[c.deal].deal
	s.faults.claim = s.claimFault(c.claim)
	switch c.crash {
	case "before the quote":
		s.up.beforeQuote = ends
	case "before the call":
		s.up.before = ends
	case "after the call":
		s.up.after = ends
	case "after the claim":
		s.faults.claim = func(_ context.Context, do claiming) (movement.Movement, bool, error) {
			_, _, _ = do()
			panic(crash{})
		}
	}
	settle := c.settle
	if settle == allFail {
		settle = "fails for ever"
	}
	s.faults.move = settleFault(matrixCase{settle: settle, crash: c.crash})
	s.faults.promise = func(do func() (movement.Movement, error)) (movement.Movement, error) {
		switch {
		case c.settle == allFail:
			return movement.Movement{}, errAway
		case c.crash == "before the promise":
			ends()
		}
		m, err := do()
		if c.crash == "after the promise" {
			ends()
		}
		return m, err
	}
}
