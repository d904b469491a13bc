package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	refusedNever  = "DESTINATION_INVALID refused never"
	rejectedNever = "PROVIDER_REJECTED refused never"
	unsentNever   = "PROVIDER_REJECTED no never" // of what was told to be pending
	notSentLater  = "PROVIDER_UNAVAILABLE no later"
	notConnected  = "NO_CONNECTION no after_change"
	timedOut      = "PROVIDER_TIMEOUT unknown lookup_first"
)

// done says that a creation has succeeded, at an amount that differs from the agreed
// one.
func done(more money.Amount) func(sdk.Call) sdk.Result {
	return func(call sdk.Call) sdk.Result {
		amount := call.Amount
		if call.Cost > 0 {
			amount = call.Cost
		}
		return sdk.Result{Outcome: sdk.Done, Data: json.RawMessage(`{"sn":"1"}`), Amount: amount + more}
	}
}

// ways are all that can become of a creation and all that its call may say of it, true
// or not.
var ways = []way{
	{name: "works"},
	{name: "refused", unmade: true, says: saying(sdk.Refuse(sdk.RefuseDestination, "No such number."))},
	{name: "refused without words", unmade: true, says: saying(sdk.Result{Outcome: sdk.Refused})},
	{name: "not sent", unmade: true, says: saying(sdk.DidNotSend(sdk.BlameUpstream, "no token"))},
	{name: "not sent, our account", unmade: true, says: saying(sdk.DidNotSend(sdk.BlameAccount, "deposit empty"))},
	{name: "unknown, made", says: cut},
	{name: "unknown, made late", slow: 25 * time.Second, says: cut},
	{name: "unknown, not made", unmade: true, says: cut},
	{name: "error, made", says: saying(sdk.UpstreamError("500"))},
	{name: "error, not made", unmade: true, says: saying(sdk.UpstreamError("500"))},
	{name: "garbage", says: saying(sdk.Result{Outcome: sdk.Done, Data: json.RawMessage(`{"payment_url":1,"sn":1,"referenceNo":1}`), Amount: prepaidPrice})},
	{name: "no data", says: saying(sdk.Result{Outcome: sdk.Done, Amount: prepaidPrice})},
	{name: "not UTF-8", says: saying(sdk.Result{Outcome: sdk.Pending, Data: json.RawMessage("{\"payment_url\":\"\xff\",\"sn\":\"\xff\",\"referenceNo\":\"\xff\"}")})},
	{name: "unheard of", says: saying(sdk.Result{Outcome: 99, Data: json.RawMessage(`{}`)})},
	{name: "done at once", says: func(call sdk.Call) sdk.Result {
		return sdk.Result{Outcome: sdk.Done, Data: payments.offer(call.Reference, call.Amount, call.Body)}
	}}, // the last that payments know

	{name: "pending, then done", after: 5 * time.Minute},
	{name: "pending, then failed", after: 5 * time.Minute, fails: true},
	{name: "failed at once", fails: true},
	{name: "unknown, made, fails", after: 5 * time.Minute, fails: true, says: cut},
	{name: "done, less", more: -1},
	{name: "done, more", more: 1},
	{name: "done, more by its word", says: done(1)},
	{name: "done, amount not told", says: saying(sdk.Result{Outcome: sdk.Done, Data: json.RawMessage(`{}`)})},
	{name: "done, below zero", says: done(-1_000_000)},
	{name: "pending, more", more: 1, after: 5 * time.Minute},
}

// payersWays is how many of the ways there are for what a payer pays.
var payersWays = 1 + slices.IndexFunc(ways, func(w way) bool { return w.name == "done at once" })

func wayNamed(name string) way {
	i := slices.IndexFunc(ways, func(w way) bool { return w.name == name })
	if i < 0 {
		panic("no way " + name)
	}
	return ways[i]
}

// after is how a movement stands, and what is answered, right after a creation of which
// nothing but the call went wrong.
type after struct {
	state movement.State
	word  string
}

func afterWay(of *kindCase, sku string, w way) after {
	if of == payments {
		switch {
		case w.name == "unknown, made late", strings.HasSuffix(w.name, ", not made"):
			return after{movement.Submitting, timedOut}
		case !w.unmade:
			return after{movement.Pending, "PENDING"} // also where only a lookup tells so
		}
	}
	said := after{movement.Acknowledged, "Pending"} // nobody knows
	switch w.name {
	case "works":
		said = after{movement.Succeeded, "Success"}
	case "done, amount not told":
		if of == transfers {
			said = after{movement.Succeeded, "Success"}
		}
	case "done, less":
		if of == orders && sku == prepaidSKU { // a bill's cost is exact
			said.state = movement.Succeeded
		}
	case "pending, then done", "pending, then failed":
		said.state = movement.Pending
	case "pending, more":
		if of == orders {
			said.state = movement.Pending
		}
	case "failed at once", "refused without words":
		said = after{movement.Failed, rejectedNever}
	case "refused":
		said = after{movement.Failed, refusedNever}
	case "not sent", "not sent, our account":
		return after{movement.NotSubmitted, notSentLater}
	}
	if of == orders {
		said.word = "Pending"
	}
	return said
}

// A cell of the matrix is one way in which a creation can go: what becomes of its
// reservation, of the call and of the commits after it, where the process ends, and
// whether the provider can be asked at once.
type cell struct {
	of              *kindCase
	path, sku       string
	reference       string
	blind           bool
	way             way
	reserves, moves string
	crash           string
}

func (c cell) String() string {
	return fmt.Sprintf("%s %s %q, blind %t, reserve %s, %s, apply %s, crash %s", c.path, c.sku, c.reference, c.blind, c.reserves, c.way.name, c.moves, c.crash)
}

const allFail = "and promise fail for ever"

var (
	everyReserve = []string{"ok", "fails", "fails but is there", "is through too late"}
	everyApply   = []string{"ok", "fails once", "fails once but is there", "fails for ever", "fails for good", "is there but fails for ever", allFail}
	everyCrash   = []string{
		"never", "after the reservation", "before the call", "after the call", "before the apply", "after the apply",
		"before the quote", "before the promise", "after the promise",
	}
	payersCrash = everyCrash[:6] // what a payer pays has no quote, and its creation is no promise
)

// cells are all combinations.
func cells(reserves, applies, crashes []string) (all []cell) {
	const reference = "INV/2026/#001"
	for _, variant := range []cell{
		{of: payments, path: createPath, reference: reference},
		{of: payments, path: createPath, reference: reference, blind: true},
		{of: orders, path: orderPath, sku: prepaidSKU, reference: reference},
		{of: orders, path: orderPath, sku: billSKU, reference: reference},
		{of: transfers, path: walletPath, reference: reference},
		{of: transfers, path: walletPath},
		{of: transfers, path: bankPath, reference: reference},
		{of: transfers, path: bankPath},
	} {
		ways := ways
		if variant.of == payments {
			ways = ways[:payersWays]
		}
		for _, reserve := range reserves {
			for _, way := range ways {
				for _, apply := range applies {
					for _, crash := range crashes {
						if variant.of == payments && !slices.Contains(payersCrash, crash) {
							continue
						}
						c := variant
						c.reserves, c.way, c.moves, c.crash = reserve, way, apply, crash
						all = append(all, c)
					}
				}
			}
		}
	}
	return all
}

// TestEveryFaultAndCrash has creations of each kind go wrong in every way.
func TestEveryFaultAndCrash(t *testing.T) {
	t.Parallel()
	all := append(cells(everyReserve[:1], everyApply, everyCrash), cells(everyReserve[1:], []string{"ok", "fails for good", allFail}, everyCrash[:1])...)
	for _, c := range tier.Sample(t, all, 600) {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			inMemory(t, c.of, func(w *world) { w.plays(c) })
		})
	}
	t.Logf("%d cells", len(all))
}

// TestEveryFaultOnTheDatabase is the core of it on the real store.
func TestEveryFaultOnTheDatabase(t *testing.T) { //nolint:tparallel // what follows the cells waits for them
	t.Parallel()
	s := databaseFor(t)
	all := append(cells(everyReserve[:1], everyApply[:3], []string{"never", "after the call", "after the apply", "after the promise"}),
		cells([]string{"fails but is there"}, []string{"fails for good", allFail}, everyCrash[:1])...)
	t.Run("cells", func(t *testing.T) {
		for _, c := range tier.Sample(t, all, 16) {
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				newWorld(t, c.of, s, handClock()).plays(c)
			})
		}
	})
	cleanLedger(t, s)
}

// generous limits stop nothing and are counted.
func generous() policy.Limits {
	many, much := new(int64(100)), new(int64(1_000_000))
	return policy.Limits{Markup: policy.Markup{Default: markup}, RepeatWithin: policy.DefaultRepeat, Transfers: policy.TransferLimits{
		Day: policy.Outflow{Amount: much, Count: many}, DestinationDay: policy.Outflow{Amount: much, Count: many},
	}}
}

// plays lets a creation go wrong, starts a new process, sends the same again until the
// end is known, and checks after each step what was said, what is posted and counted,
// and what exists.
func (w *world) plays(c cell) {
	w.path, w.limits = c.path, generous()
	if c.sku != "" {
		w.sku = c.sku
	}
	w.goesWrong(c)
	answers := []said{w.again(c)}
	if c.crash == "never" && c.reserves == "ok" && c.moves == "ok" && !c.blind {
		want := afterWay(c.of, c.sku, c.way)
		w.want(answers[0], want.word)
		if m, _ := w.latest(w.request(c.reference)); m.State != want.state {
			w.Errorf("stands at %s, want %s", m.State, want.state)
		}
	}
	first := answers[0].err
	if c.of == transfers && first != nil && first.Sent == fault.SentUnknown && c.moves != allFail && c.reserves == "ok" {
		w.Errorf("answered %v, where it could be promised", first)
	}
	w.restart()
	if c.of == transfers && c.reference == "" {
		w.judgesUnnamed(c, answers)
		return
	}
	spans := []time.Duration{0, 16 * time.Second, 5 * time.Minute, 3 * time.Hour}
	if first != nil && first.Sent == fault.SentNo { // when a worker that does not know so would have bought it
		spans = []time.Duration{5 * time.Minute, 5 * time.Minute}
	}
	for i, span := range spans {
		if i > 0 || c.of == payments || len(spans) == 2 {
			w.lets(c, span, answers)
			answers = append(answers, w.again(c))
			w.lets(c, time.Minute, answers)
		}
	}
	w.lets(c, 3*time.Hour, answers)
	answers = append(answers, w.again(c))
	w.judges(c, answers)
}

// judgesUnnamed sends equal transfers without a reference while the first may have moved:
// all are refused. Then it checks that everybody knows the end.
func (w *world) judgesUnnamed(c cell, answers []said) {
	w.Helper()
	w.limits.RepeatWithin = 24 * time.Hour
	promised := answers[0].word() == "Pending"
	for _, span := range []time.Duration{0, 16 * time.Second, 5 * time.Minute, 3 * time.Hour} {
		w.lets(c, span, answers)
		m, there := w.latest(w.request(""))
		if !there || m.State == movement.Failed || m.State == movement.NotSubmitted {
			break
		}
		a := w.create("")
		if a.err == nil || a.err.Code != fault.DuplicateTransfer && a.err.Code != fault.InProgress || a.err.Sent != fault.SentNo {
			if m, _ = w.latest(w.request("")); m.State != movement.NotSubmitted { // by the question whether it is
				w.Errorf("an equal one is answered %s (%v), while the first stands at %s", a.word(), a.err, m.State)
			}
			break
		}
		promised = promised || a.err.Code == fault.DuplicateTransfer
	}
	w.lets(c, 3*time.Hour, answers)
	m, there := w.latest(w.request(""))
	t, times := w.up.under(nameOfMovement(m.ID))
	doubtful := times == 1 && t.ends == sdk.StatusDone && c.way.more != 0
	if w.up.total() != times || times == 1 && doubtful == m.State.Final() || times == 0 && there && m.State != movement.Failed && m.State != movement.NotSubmitted {
		w.Errorf("at the end it stands at %s; made %d times, and under any name %d times: %+v", m.State, times, w.up.total(), t)
	}
	if promised && m.State == movement.NotSubmitted {
		w.Error("a merchant has read that it is pending, and it is free again")
	}
}

func (w *world) again(c cell) said {
	w.Helper()
	r := w.request(c.reference)
	a := w.sends(w.Engine, r)
	w.truthful(r, a)
	w.addUp()
	return a
}

// lets time pass, and the workers with it. An order that was told not to be sent stays so
// while nobody asks again.
func (w *world) lets(c cell, span time.Duration, answers []said) {
	w.Helper()
	w.work(w.keyOfRequest(w.request(c.reference)).Reference, span)
	w.addUp()
	if last := answers[len(answers)-1]; last.err != nil && c.of == orders {
		w.truthful(w.request(c.reference), last)
	}
}

// judges checks that everybody knows the end, and that all answers agree.
func (w *world) judges(c cell, answers []said) {
	w.Helper()
	m, _ := w.latest(w.request(c.reference))
	t, times := w.up.under(nameOfMovement(m.ID))
	cheaper := c.of == orders && c.sku == prepaidSKU && c.way.more < 0
	doubtful := times == 1 && t.ends == sdk.StatusDone && c.way.more != 0 && !cheaper
	switch {
	case c.of == payments && (times == 1) != (m.State == movement.Pending), times == 0 && m.State != movement.Failed, w.up.total() != times,
		c.of != payments && times == 1 && doubtful == m.State.Final():
		w.Errorf("at the end it stands at %s; made %d times, and under any name %d times: %+v", m.State, times, w.up.total(), t)
	}
	listed := w.listed()
	odd := slices.ContainsFunc(listed, func(reason string) bool {
		switch reason {
		case movement.ReasonAccount:
			return c.way.name != "not sent, our account"
		case movement.ReasonAmount:
			return c.way.more == 0 && c.way.says == nil || c.of == payments
		}
		return !doubtful || reason != movement.ReasonUnresolved
	})
	if odd || doubtful && !slices.Contains(listed, movement.ReasonAmount) {
		w.Errorf("the exceptions are %q", listed)
	}
	last := answers[len(answers)-1]
	if want := wordsAtTheEnd(c, m, t != nil); !slices.Contains(want, last.word()) {
		w.Errorf("the last answer is %s, want one of %q; it stands at %s", last.word(), want, m.State)
	}
	if !last.replayed && (c.of != payments || m.Attempt == 1 || last.err != nil) {
		w.Errorf("the last answer of attempt %d is not marked as a replay", m.Attempt)
	}
	if c.of == payments {
		if told := map[movement.State][]string{movement.Failed: {ends + " FAILED"}}[m.State]; true {
			w.wantTold(told...)
		}
	}
	promised := false
	for i, a := range answers {
		final := a.err == nil && a.word() != "Pending" || a.err != nil && a.err.Retry == fault.RetryNever
		if !a.crashed && final && (a.word() != last.word() || a.data != last.data) {
			w.Errorf("answer %d was %s %s, and the last %s %s", i, a.word(), a.data, last.word(), last.data)
		}
		if c.of == orders && promised && (a.word() != "Pending" || !a.replayed) {
			w.Errorf("answer %d is %s (replayed: %t), after it was told to be pending", i, a.word(), a.replayed)
		}
		promised = promised || a.word() == "Pending"
	}
}

// wordsAtTheEnd are the answers to who asks for the same when the end is known.
func wordsAtTheEnd(c cell, m movement.Movement, made bool) []string {
	switch {
	case c.of == orders:
		return []string{"Pending"}
	case c.of == payments && m.State == movement.Pending:
		return []string{"PENDING"}
	case m.State == movement.Succeeded:
		return []string{"Success"}
	case m.State != movement.Failed:
		return []string{"Pending"}
	case made:
		return []string{rejectedNever}
	}
	if word := afterWay(c.of, c.sku, c.way); word.state == movement.Failed { // a refusal may have been lost
		return []string{word.word, unsentNever}
	}
	return []string{unsentNever}
}

// goesWrong makes the world go wrong.
func (w *world) goesWrong(c cell) {
	ends := func() { panic(crash{}) }
	w.up.way = c.way
	if c.blind {
		w.up.find = blind
	}
	w.faults.reserve = w.reserveFault(c.reserves)
	switch c.crash {
	case "before the quote":
		w.up.beforeQuote = ends
	case "before the call":
		w.up.before = func(sdk.Call) { ends() }
	case "after the call":
		w.up.after = func(sdk.Call) { ends() }
	case "after the reservation":
		w.faults.reserve = func(_ context.Context, do reserving) (movement.Movement, bool, error) {
			_, _, _ = do()
			panic(crash{})
		}
	}
	w.faults.move = moveFault(c)
	w.faults.promise = func(do func() (movement.Movement, error)) (movement.Movement, error) {
		switch {
		case c.moves == allFail:
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

func (w *world) reserveFault(kind string) func(context.Context, reserving) (movement.Movement, bool, error) {
	return func(_ context.Context, do reserving) (movement.Movement, bool, error) {
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

func moveFault(c cell) func(func() (bool, error)) (bool, error) {
	var tries atomic.Int32
	return func(do func() (bool, error)) (bool, error) {
		try := tries.Add(1)
		if c.crash == "before the apply" {
			panic(crash{})
		}
		var moved bool
		err := errAway
		switch {
		case c.moves == "fails for good":
			err = broken{errAway}
		case c.moves == "fails for ever", c.moves == allFail, c.moves == "fails once" && try == 1:
		case c.moves == "fails once but is there" && try == 1, c.moves == "is there but fails for ever" && try == 1:
			_, _ = do()
		case c.moves == "is there but fails for ever":
		default:
			moved, err = do()
		}
		if c.crash == "after the apply" {
			panic(crash{})
		}
		return moved, err
	}
}
