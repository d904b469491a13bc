package scenarios

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const equals = 50

// together runs so many equal orders at once on engines in turn. None is
// answered before each has looked its reference up.
func (w *world) together(reference string, engines ...*Engine) []said {
	w.Helper()
	var clients sync.WaitGroup
	var looks atomic.Int32
	all := make(chan struct{})
	w.faults.judged = func() {
		if looks.Add(1) == equals {
			close(all)
		}
	}
	defer func() { w.faults.judged = nil }()
	w.up.before = func(sdk.Call) { <-all }
	answers := make([]said, equals)
	for i := range answers {
		clients.Go(func() { answers[i] = w.runOn(engines[i%len(engines)], w.request(reference)) })
	}
	clients.Wait()
	w.used = append(w.used, reference)
	if answers[0].err == nil {
		w.promised[reference] = struct{}{}
	}
	return answers
}

// TestEqualOrdersAtOnce: one is sent, one is charged, and all get one answer,
// whatever becomes of it.
func TestEqualOrdersAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		sku   string
		way   way
		word  string
		state movement.State
	}{
		{"done", prepaidSKU, way{}, "Pending", movement.Succeeded},
		{"bill pending", billSKU, way{after: time.Hour}, "Pending", movement.Pending},
		{"refused", prepaidSKU, way{unmade: true, says: saying(sdk.Refuse(sdk.RefuseOther, "No."))}, "Pending", movement.Failed},
		{"unknown", prepaidSKU, way{says: cut}, "Pending", movement.Acknowledged},
		{"not sent", prepaidSKU, way{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameNone, "no process"))}, "PROVIDER_UNAVAILABLE no later", movement.NotSubmitted},
		{"our account", billSKU, way{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameAccount, "deposit empty"))}, "PROVIDER_UNAVAILABLE no later", movement.NotSubmitted},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onReplicas(t, orders, true, func(w *world, engines ...*Engine) {
				w.sku, w.up.way = c.sku, c.way
				first := 0
				for i, a := range w.together("A", engines...) {
					w.truthful(w.request("A"), a)
					if a.word() != c.word {
						w.Errorf("client %d was answered %s (%v)", i, a.word(), a.err)
					}
					if a.err == nil && !a.replayed {
						first++
					}
				}
				w.addUp()
				want := 1
				if c.state == movement.NotSubmitted {
					want = 0
				}
				if m := w.stored("A"); m.State != c.state || m.Attempt != 1 || len(w.up.calls) != 1 || first != want {
					w.Errorf("stands at %s, attempt %d; called %d times; %d were told that they were first", m.State, m.Attempt, len(w.up.calls), first)
				}
			})
		})
	}
}

// TestLastRupiah: many different orders at once, and money for some of them.
func TestLastRupiah(t *testing.T) {
	t.Parallel()
	onReplicas(t, orders, false, func(w *world, engines ...*Engine) {
		const pays = 7
		w.account = w.merchant()
		w.opens(w.account, pays*(prepaidPrice+markup)+prepaidPrice+markup-1)
		var clients sync.WaitGroup
		answers := make([]said, equals)
		for i := range answers {
			reference := string(rune('A' + i))
			w.used = append(w.used, reference)
			clients.Go(func() { answers[i] = w.runOn(engines[i%len(engines)], w.request(reference)) })
		}
		clients.Wait()
		paid := 0
		for i, a := range answers {
			switch a.word() {
			case "Pending":
				paid++
			case "INSUFFICIENT_BALANCE no later":
			default:
				w.Errorf("order %d was answered %s (%v)", i, a.word(), a.err)
			}
		}
		if paid != pays || len(w.up.calls) != pays {
			w.Errorf("%d were accepted and %d sent, of %d that could be paid", paid, len(w.up.calls), pays)
		}
		w.wantBalance(prepaidPrice+markup-1, 0)
		w.addUp()
	})
}

// TestNotSentAfterPending: an order of which somebody was told, while it was
// being sent, that it is pending has failed when it turns out never sent.
func TestNotSentAfterPending(t *testing.T) {
	t.Parallel()
	for name, tells := range map[string]func(*world) said{
		"to the same request": func(w *world) said { return w.create("A") },
		"by a status":         func(w *world) said { return w.status("A") },
	} {
		for _, sku := range []string{prepaidSKU, billSKU} {
			t.Run(name+", "+sku, func(t *testing.T) {
				t.Parallel()
				onBoth(t, orders, func(w *world) {
					w.sku = sku
					w.up.way = way{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameNone, "no process"))}
					w.up.after = func(sdk.Call) {
						w.pass(20 * time.Second) // longer than anybody waits for the first word
						w.want(tells(w), "Pending")
					}
					w.want(w.create("A"), "Pending")
					if m := w.stored("A"); m.State != movement.Failed {
						w.Errorf("stands at %s", m.State)
					}
					w.wantBalance(opening, 0)
					w.wantTold(orderEnds + " Failed")
					w.up.after = nil
					if again := w.create("A"); again.word() != "Pending" || !again.replayed || len(w.up.calls) != 1 {
						w.Errorf("again: %s (%v), called %d times", again.word(), again.err, len(w.up.calls))
					}
					w.work("A", 24*time.Hour)
					w.addUp()
					w.wantListed()
				})
			})
		}
	}
}

// TestNotSentAfterALookup: a call that hung for a minute says that it sent
// nothing, and a lookup, which is the same request again, has begun meanwhile.
func TestNotSentAfterALookup(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		way   way
		blind bool
		state movement.State
	}{
		"that bought it":       {way{}, false, movement.Succeeded},
		"that is under way":    {way{after: time.Hour}, false, movement.Pending},
		"that failed":          {way{fails: true}, false, movement.Failed},
		"that nobody answered": {way{}, true, movement.Acknowledged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, orders, func(w *world) {
				w.up.way = c.way
				w.up.way.unmade, w.up.way.says = true, saying(sdk.DidNotSend(sdk.BlameNone, "no process"))
				w.up.after = func(sdk.Call) {
					if c.blind {
						w.up.find = blind
					}
					m := w.stored("A")
					w.pass(m.DueAt.Sub(w.now()))
					if err := w.Resolve(w.Context(), m); err != nil {
						w.Error(err)
					}
				}
				w.want(w.create("A"), "Pending")
				if m := w.stored("A"); m.State != c.state || w.up.asked() != 1 {
					w.Errorf("stands at %s after %d lookups", m.State, w.up.asked())
				}
				w.addUp()
				w.restart()
				w.work("A", 3*time.Hour)
				if m := w.stored("A"); !m.State.Final() {
					w.Errorf("stands at %s at the end", m.State)
				}
				w.addUp()
			})
		})
	}
}

// TestAwaitedAnotherRequest: whoever waits for the first word on an order that
// turns out never sent does not get the answer of another that came first then.
func TestAwaitedAnotherRequest(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		w.up.way = way{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameNone, "no process"))}
		var waiting sync.WaitGroup
		var waited said
		w.up.after = func(sdk.Call) {
			w.up.after = nil
			waiting.Go(func() { waited = w.run(w.request("A")) })
			w.pass(time.Second)
		}
		w.want(w.create("A"), "PROVIDER_UNAVAILABLE no later")
		w.restart()
		w.want(w.create("A", "target", "081200002222"), "Pending")
		waiting.Wait()
		w.wantCode(waited, "DUPLICATE_REFERENCE", "target")
		w.addUp()
	})
}

// TestFreedAndClaimedAgain: a call hung so long that its order was proven never
// sent, and another was made under its name: nobody is answered with nothing,
// nor with the other's answer.
func TestFreedAndClaimedAgain(t *testing.T) {
	t.Parallel()
	for _, says := range []sdk.Result{
		sdk.DontKnow(sdk.BlameUpstream, "cut"), sdk.DidNotSend(sdk.BlameNone, "no process"), {Outcome: sdk.Pending, Data: []byte(`{}`), Amount: money.Amount(1)},
	} {
		t.Run(says.Outcome.String(), func(t *testing.T) {
			t.Parallel()
			inMemory(t, orders, func(w *world) {
				w.up.way = way{unmade: true, says: saying(says)}
				w.up.after = func(sdk.Call) {
					w.up.after = nil
					w.up.find = missing
					w.work("A", time.Hour)
					if m := w.stored("A"); m.State != movement.NotSubmitted {
						w.Errorf("stands at %s", m.State)
					}
					if m, claimed, err := w.keeper.Reserve(w.Context(), w.reservedAgain("A")); err != nil || !claimed || m.Attempt != 2 {
						w.Errorf("claimed %t, attempt %d, %v", claimed, m.Attempt, err)
					}
				}
				a := w.create("A")
				if a.err == nil {
					w.Fatalf("answered %s", a.data)
				}
				if m := w.stored("A"); m.Attempt != 2 || m.State != movement.Submitting || m.Answer != nil {
					w.Errorf("stands at %s, attempt %d, answered %s", m.State, m.Attempt, m.Answer)
				}
			})
		})
	}
}

// reservedAgain is the reservation of an order that is free again.
func (w *world) reservedAgain(reference string) movement.Movement {
	m := w.stored(reference)
	m.CreatedAt, m.SendBy, m.Attempt = w.now(), w.now().Add(sendWindow), 0
	m.PolledAt, m.Answer, m.Misses = time.Time{}, nil, 0
	return m
}
