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
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	refusedNever  = "DESTINATION_INVALID refused never"
	rejectedNever = "PROVIDER_REJECTED refused never"
	unsentNever   = "PROVIDER_REJECTED no never" // of what was told to be pending
	notSentLater  = "PROVIDER_UNAVAILABLE no later"
)

// ways are all that can become of a transfer's call, what the call says of it,
// how the transfer stands right after, and what is answered.
var ways = []struct {
	way
	stands movement.State
	word   string
}{
	{way{name: "done"}, movement.Succeeded, "Success"},
	{way{name: "done, amount not told", says: outcomeOf(sdk.Result{Outcome: sdk.Done, Data: json.RawMessage(`{}`)})}, movement.Succeeded, "Success"},
	{way{name: "done, another amount by its word", says: func(asked money.Amount) sdk.Result {
		return sdk.Result{Outcome: sdk.Done, Data: json.RawMessage(`{}`), Amount: asked + 1}
	}}, movement.Acknowledged, "Pending"},
	{way{name: "done, another amount", more: -1}, movement.Acknowledged, "Pending"},
	{way{name: "pending, another amount", more: 1, after: 5 * time.Minute}, movement.Acknowledged, "Pending"},
	{way{name: "pending, then done", after: 5 * time.Minute}, movement.Pending, "Pending"},
	{way{name: "pending, then failed", after: 5 * time.Minute, fails: true}, movement.Pending, "Pending"},
	{way{name: "failed at once", fails: true}, movement.Failed, rejectedNever},
	{way{name: "refused", unmade: true, says: outcomeOf(sdk.Refuse(sdk.RefuseDestination, "No such number."))}, movement.Failed, refusedNever},
	{way{name: "refused without words", unmade: true, says: outcomeOf(sdk.Result{Outcome: sdk.Refused})}, movement.Failed, rejectedNever},
	{way{name: "not sent", unmade: true, says: outcomeOf(sdk.DidNotSend(sdk.BlameUpstream, "no process"))}, movement.NotSubmitted, notSentLater},
	{way{name: "not sent, our account", unmade: true, says: outcomeOf(sdk.DidNotSend(sdk.BlameAccount, "no token"))}, movement.NotSubmitted, notSentLater},
	{way{name: "unknown, moved", says: outcomeOf(sdk.DontKnow(sdk.BlameUpstream, "cut"))}, movement.Acknowledged, "Pending"},
	{way{name: "unknown, moved late", slow: 50 * time.Second, says: outcomeOf(sdk.DontKnow(sdk.BlameUpstream, "cut"))}, movement.Acknowledged, "Pending"},
	{way{name: "unknown, moved, fails", after: 5 * time.Minute, fails: true, says: outcomeOf(sdk.DontKnow(sdk.BlameUpstream, "cut"))}, movement.Acknowledged, "Pending"},
	{way{name: "unknown, not moved", unmade: true, says: outcomeOf(sdk.DontKnow(sdk.BlameUpstream, "cut"))}, movement.Acknowledged, "Pending"},
	{way{name: "garbage", says: outcomeOf(sdk.Result{Outcome: sdk.Done, Data: json.RawMessage(`{"referenceNo":1}`), Amount: sending})}, movement.Acknowledged, "Pending"},
	{way{name: "no data", says: outcomeOf(sdk.Result{Outcome: sdk.Done, Amount: sending})}, movement.Acknowledged, "Pending"},
	{way{name: "not UTF-8", says: outcomeOf(sdk.Result{Outcome: sdk.Pending, Data: json.RawMessage("{\"referenceNo\":\"\xff\"}")})}, movement.Acknowledged, "Pending"},
	{way{name: "unheard of", says: outcomeOf(sdk.Result{Outcome: 99, Data: json.RawMessage(`{}`)})}, movement.Acknowledged, "Pending"},
}

// wayNamed is one of them.
func wayNamed(name string) way {
	return ways[slices.IndexFunc(ways, func(w struct {
		way
		stands movement.State
		word   string
	}) bool {
		return w.name == name
	})].way
}

// A transferCase is one way in which a transfer can go: what becomes of the
// claim, of the call and of the commits after it, and where the process ends.
type transferCase struct {
	path, reference string
	claim           string
	way             int
	settle, crash   string
}

func (c transferCase) String() string {
	return fmt.Sprintf("%s, reference %q, claim %s, %s, settle %s, crash %s", c.path, c.reference, c.claim, ways[c.way].name, c.settle, c.crash)
}

func transferCases(claims, settles, crashes []string) []transferCase {
	var all []transferCase
	for _, path := range []string{walletPath, bankPath} {
		for _, reference := range []string{"TRF/2026/#001", ""} {
			for _, claim := range claims {
				for w := range ways {
					for _, settle := range settles {
						for _, crash := range crashes {
							all = append(all, transferCase{path, reference, claim, w, settle, crash})
						}
					}
				}
			}
		}
	}
	return all
}

// TestTransferMatrix runs every way in memory.
func TestTransferMatrix(t *testing.T) {
	t.Parallel()
	all := transferCases([]string{"ok"}, append(slices.Clone(everySettle), allFail), everyCrash)
	all = append(all, transferCases(everyClaim[1:], []string{"ok", allFail}, everyCrash[:1])...)
	for _, c := range tier.Sample(t, all, 150) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			inPurse(t, func(p *purse) { p.plays(c) })
		})
	}
	t.Logf("%d cases", len(all))
}

// TestTransferMatrixOnDatabase runs the core of it on the real store.
func TestTransferMatrixOnDatabase(t *testing.T) { //nolint:tparallel // what follows the cases waits for them
	t.Parallel()
	db := databaseFor(t)
	all := transferCases([]string{"ok"}, []string{"ok", "fails once but is there"}, []string{"never", "after the call", "after the settlement", "after the promise"})
	all = append(all, transferCases([]string{"fails but is there"}, []string{allFail}, everyCrash[:1])...)
	t.Run("cases", func(t *testing.T) {
		for _, c := range tier.Sample(t, all, 10) {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				newPurse(t, db, handClock()).plays(c)
			})
		}
	})
	t.Logf("%d cases", len(all))
}

// generous limits stop nothing and are counted.
func generous() policy.Limits {
	many, much := new(int64(100)), new(int64(1_000_000))
	return policy.Limits{Transfers: policy.TransferLimits{
		Day: policy.Outflow{Amount: much, Count: many}, DestinationDay: policy.Outflow{Amount: much, Count: many},
	}}
}

// plays lets a transfer go wrong as told, starts a new process, sends the same
// again until the end is known, and checks after each step what was said, what is
// counted and what has moved.
func (p *purse) plays(c transferCase) {
	p.path, p.limits = c.path, generous()
	p.goesWrong(c)
	answers := []said{p.again(c)}
	if c.crash == "never" && c.claim == "ok" && c.settle == "ok" {
		p.want(answers[0], ways[c.way].word)
		if m, _ := p.latest(p.transferring(c.reference)); m.State != ways[c.way].stands {
			p.Errorf("stands at %s, want %s", m.State, ways[c.way].stands)
		}
	}
	if first := answers[0]; first.err != nil && first.err.Sent == fault.SentUnknown && c.settle != allFail && c.claim == "ok" {
		p.Errorf("answered %v, where it could be promised", first.err)
	}
	p.restart()
	for _, span := range []time.Duration{16 * time.Second, 5 * time.Minute, 3 * time.Hour} {
		p.lets(c.reference, span)
		answers = append(answers, p.again(c))
		p.lets(c.reference, time.Minute)
	}
	p.lets(c.reference, 3*time.Hour)
	answers = append(answers, p.again(c))
	p.ends(c, answers)
}

func (p *purse) again(c transferCase) said {
	p.Helper()
	r := p.transferring(c.reference)
	a := p.sends(p.Engine, r)
	p.truthful(r, a)
	p.addUp()
	return a
}

// lets time pass, and the worker with it.
func (p *purse) lets(reference string, span time.Duration) {
	p.Helper()
	p.work(p.keyOfRequest(p.transferring(reference)).Reference, span)
	p.addUp()
}

// ends checks that everybody knows the end, and that all answers agree.
func (p *purse) ends(c transferCase, answers []said) {
	p.Helper()
	m, _ := p.latest(p.transferring(c.reference))
	pay, times := p.up.of(nameOfMovement(m.ID))
	doubtful := pay != nil && pay.amount != m.Amount
	switch {
	case p.up.total() != times, times == 0 && m.State != movement.Failed, times == 1 && doubtful == m.State.Final():
		p.Errorf("at the end it stands at %s; moved %d times, and under any name %d times: %+v", m.State, times, p.up.total(), pay)
	}
	listed, w := p.listed(), ways[c.way]
	if doubtful && !slices.Contains(listed, movement.ReasonAmount) || !doubtful && w.name != "done, another amount by its word" && slices.ContainsFunc(listed, func(reason string) bool { return reason != movement.ReasonAccount }) {
		p.Errorf("the operators' list has %q", listed)
	}
	last := answers[len(answers)-1]
	if known := map[movement.State]bool{movement.Succeeded: last.word() == "Success", movement.Acknowledged: last.word() == "Pending"}; m.State == movement.Failed {
		proven := rejectedNever
		if pay == nil { // also of a refusal that was lost
			proven = unsentNever
		}
		if word := last.word(); word != proven && (w.stands != movement.Failed || word != w.word) {
			p.Errorf("the last answer is %s", word)
		}
	} else if !known[m.State] {
		p.Errorf("the last answer is %s, and it stands at %s", last.word(), m.State)
	}
	if !last.replayed {
		p.Error("the last answer is not marked as a replay")
	}
	for i, earlier := range answers {
		if end := earlier.word() == "Success" || earlier.word() == rejectedNever || earlier.word() == unsentNever; end && (earlier.word() != last.word() || earlier.data != last.data) {
			p.Errorf("answer %d was %s %s, and the last %s %s", i, earlier.word(), earlier.data, last.word(), last.data)
		}
	}
}

// goesWrong makes the world go wrong.
func (p *purse) goesWrong(c transferCase) {
	ends := func() { panic(crash{}) }
	p.up.way = ways[c.way].way
	p.faults.claim = p.claimFault(c.claim)
	switch c.crash {
	case "before the quote":
		p.up.beforeQuote = ends
	case "before the call":
		p.up.before = ends
	case "after the call":
		p.up.after = ends
	case "after the claim":
		p.faults.claim = func(_ context.Context, do claiming) (movement.Movement, bool, error) {
			_, _, _ = do()
			panic(crash{})
		}
	}
	settle := c.settle
	if settle == allFail {
		settle = "fails for ever"
	}
	p.faults.move = settleFault(matrixCase{settle: settle, crash: c.crash})
	p.faults.promise = func(do func() (movement.Movement, error)) (movement.Movement, error) {
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
