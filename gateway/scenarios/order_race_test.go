package scenarios

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const equals = 50

// together runs so many equal orders at once on engines in turn. None is
// answered before each has looked its reference up.
func (s *shop) together(reference string, engines ...*Engine) []said {
	s.Helper()
	var clients sync.WaitGroup
	var looks atomic.Int32
	all := make(chan struct{})
	s.faults.judged = func() {
		if looks.Add(1) == equals {
			close(all)
		}
	}
	defer func() { s.faults.judged = nil }()
	s.up.before = func() { <-all }
	answers := make([]said, equals)
	for i := range answers {
		clients.Go(func() { answers[i] = s.runOn(engines[i%len(engines)], s.ordering(reference)) })
	}
	clients.Wait()
	s.used = append(s.used, reference)
	if answers[0].err == nil {
		s.pending[reference] = struct{}{}
	}
	return answers
}

// onReplicas runs a test with one engine in memory, one on the real store, and
// two on two stores of one database.
func onReplicas(t *testing.T, test func(*shop, ...*Engine)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			s := newShop(t, newMemory(), bubbleClock())
			test(s, s.Engine)
		})
	})
	for name, n := range map[string]int{"database": 1, "two replicas": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if n == 1 {
				tier.Long(t, "the race on two stores is the harder one")
			}
			stores := databasesFor(t, n)
			s := newShop(t, stores[0], handClock())
			engines := []*Engine{s.Engine}
			for _, other := range stores[1:] {
				engines = append(engines, s.replica(&faulty{keeper: other, judged: func() { fire(s.faults.judged) }}))
			}
			test(s, engines...)
			cleanLedger(t, stores[0])
		})
	}
}

// TestEqualOrdersAtOnce: one is sent, one is charged, and all get one answer,
// whatever becomes of it.
func TestEqualOrdersAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		sku   string
		deal  deal
		word  string
		state movement.State
	}{
		{"done", prepaidSKU, deal{}, "Pending", movement.Succeeded},
		{"bill pending", billSKU, deal{after: time.Hour}, "Pending", movement.Pending},
		{"refused", prepaidSKU, deal{unmade: true, says: saying(sdk.Refuse(sdk.RefuseOther, "No."))}, "Pending", movement.Failed},
		{"unknown", prepaidSKU, deal{says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}, "Pending", movement.Acknowledged},
		{"not sent", prepaidSKU, deal{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameNone, "no process"))}, "PROVIDER_UNAVAILABLE no later", movement.NotSubmitted},
		{"our account", billSKU, deal{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameAccount, "deposit empty"))}, "PROVIDER_UNAVAILABLE no later", movement.NotSubmitted},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			onReplicas(t, func(s *shop, engines ...*Engine) {
				s.sku, s.up.deal = c.sku, c.deal
				first := 0
				for i, a := range s.together("A", engines...) {
					s.truthful("A", a)
					if a.word() != c.word {
						s.Errorf("client %d was answered %s (%v)", i, a.word(), a.err)
					}
					if a.err == nil && !a.replayed {
						first++
					}
				}
				s.addUp()
				want := 1
				if c.state == movement.NotSubmitted {
					want = 0
				}
				if m := s.stored("A"); m.State != c.state || m.Attempt != 1 || len(s.up.calls) != 1 || first != want {
					s.Errorf("stands at %s, attempt %d; called %d times; %d were told that they were first", m.State, m.Attempt, len(s.up.calls), first)
				}
			})
		})
	}
}

// TestLastRupiah: many different orders at once, and money for some of them.
func TestLastRupiah(t *testing.T) {
	t.Parallel()
	onReplicas(t, func(s *shop, engines ...*Engine) {
		const pays = 7
		s.account = s.merchant()
		s.opens(s.account, pays*(prepaidPrice+markup)+prepaidPrice+markup-1)
		var clients sync.WaitGroup
		answers := make([]said, equals)
		for i := range answers {
			reference := string(rune('A' + i))
			s.used = append(s.used, reference)
			clients.Go(func() { answers[i] = s.runOn(engines[i%len(engines)], s.ordering(reference)) })
		}
		clients.Wait()
		paid := 0
		for i, a := range answers {
			switch a.word() {
			case "Pending":
				paid++
			case "INSUFFICIENT_BALANCE no later":
			default:
				s.Errorf("order %d was answered %s (%v)", i, a.word(), a.err)
			}
		}
		if paid != pays || len(s.up.calls) != pays {
			s.Errorf("%d were accepted and %d sent, of %d that could be paid", paid, len(s.up.calls), pays)
		}
		s.wantBalance(prepaidPrice+markup-1, 0)
		s.addUp()
	})
}

// TestNotSentAfterPending: an order of which somebody was told, while it was
// being sent, that it is pending has failed when it turns out never sent.
func TestNotSentAfterPending(t *testing.T) {
	t.Parallel()
	for name, tells := range map[string]func(*shop) said{
		"to the same request": func(s *shop) said { return s.order("A") },
		"by a status":         func(s *shop) said { return s.stateOf("A") },
	} {
		for _, sku := range []string{prepaidSKU, billSKU} {
			t.Run(name+", "+sku, func(t *testing.T) {
				t.Parallel()
				inShops(t, func(s *shop) {
					s.sku = sku
					s.up.deal = deal{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameNone, "no process"))}
					s.up.after = func() {
						s.pass(20 * time.Second) // longer than anybody waits for the first word
						s.want(tells(s), "Pending")
					}
					s.want(s.order("A"), "Pending")
					if m := s.stored("A"); m.State != movement.Failed {
						s.Errorf("stands at %s", m.State)
					}
					s.wantBalance(opening, 0)
					s.wantTold(orderEnds + " Failed")
					s.up.after = nil
					if again := s.order("A"); again.word() != "Pending" || !again.replayed || len(s.up.calls) != 1 {
						s.Errorf("again: %s (%v), called %d times", again.word(), again.err, len(s.up.calls))
					}
					s.work("A", 24*time.Hour)
					s.addUp()
					s.wantListed()
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
		deal  deal
		blind bool
		state movement.State
	}{
		"that bought it":       {deal{}, false, movement.Succeeded},
		"that is under way":    {deal{after: time.Hour}, false, movement.Pending},
		"that failed":          {deal{fails: true}, false, movement.Failed},
		"that nobody answered": {deal{}, true, movement.Acknowledged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShops(t, func(s *shop) {
				s.up.deal = c.deal
				s.up.deal.unmade, s.up.deal.says = true, saying(sdk.DidNotSend(sdk.BlameNone, "no process"))
				s.up.after = func() {
					if c.blind {
						s.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.NoStatus(sdk.BlameUpstream, "no answer") }
					}
					m := s.stored("A")
					s.pass(m.DueAt.Sub(s.now()))
					if err := s.Resolve(s.Context(), m); err != nil {
						s.Error(err)
					}
				}
				s.want(s.order("A"), "Pending")
				if m := s.stored("A"); m.State != c.state || s.up.asked() != 1 {
					s.Errorf("stands at %s after %d lookups", m.State, s.up.asked())
				}
				s.addUp()
				s.restart()
				s.work("A", 3*time.Hour)
				if m := s.stored("A"); !m.State.Final() {
					s.Errorf("stands at %s at the end", m.State)
				}
				s.addUp()
			})
		})
	}
}

// TestAwaitedAnotherRequest: whoever waits for the first word on an order that
// turns out never sent does not get the answer of another that came first then.
func TestAwaitedAnotherRequest(t *testing.T) {
	t.Parallel()
	inShop(t, func(s *shop) {
		s.up.deal = deal{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameNone, "no process"))}
		var waiting sync.WaitGroup
		var waited said
		s.up.after = func() {
			s.up.after = nil
			waiting.Go(func() { waited = s.run(s.ordering("A")) })
			s.pass(time.Second)
		}
		s.want(s.order("A"), "PROVIDER_UNAVAILABLE no later")
		s.restart()
		s.want(s.order("A", "target", "081200002222"), "Pending")
		waiting.Wait()
		s.wantCode(waited, "DUPLICATE_REFERENCE", "target")
		s.addUp()
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
			inShop(t, func(s *shop) {
				s.up.deal = deal{unmade: true, says: saying(says)}
				s.up.after = func() {
					s.up.after = nil
					s.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.StatusUpdate{Status: sdk.StatusNotFound} }
					s.work("A", time.Hour)
					if m := s.stored("A"); m.State != movement.NotSubmitted {
						s.Errorf("stands at %s", m.State)
					}
					if m, claimed, err := s.keeper.Reserve(s.Context(), s.again("A")); err != nil || !claimed || m.Attempt != 2 {
						s.Errorf("claimed %t, attempt %d, %v", claimed, m.Attempt, err)
					}
				}
				a := s.order("A")
				if a.err == nil {
					s.Fatalf("answered %s", a.data)
				}
				if m := s.stored("A"); m.Attempt != 2 || m.State != movement.Submitting || m.Answer != nil {
					s.Errorf("stands at %s, attempt %d, answered %s", m.State, m.Attempt, m.Answer)
				}
			})
		})
	}
}

// again is the claim of an order that is free again.
func (s *shop) again(reference string) movement.Movement {
	m := s.stored(reference)
	m.CreatedAt, m.SendBy, m.Attempt = s.now(), s.now().Add(sendWindow), 0
	m.PolledAt, m.Answer, m.Misses = time.Time{}, nil, 0
	return m
}
