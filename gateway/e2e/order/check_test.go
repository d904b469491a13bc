package order_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// entry is an order as the gateway's database has it.
type entry struct {
	Merchant, Reference, ID, State, Charge string
	Attempt                                int
	Amount, Cost                           int64
	Reversed                               bool
}

func (e entry) open() bool { return e.unknown() || e.State == "pending" }

// unknown tells whether nobody knows yet if the provider has it.
func (e entry) unknown() bool { return e.State == "submitting" || e.State == "acknowledged" }

// entries are all orders of the gateway's database, by reference.
func (m *market) entries(t *testing.T) map[string]entry {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), m.now().DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), `SELECT merchant_id AS merchant, reference, id::TEXT AS id, state, charge, attempt, amount, cost,
		reversed_at IS NOT NULL AS reversed FROM movements WHERE kind = 'order'`)
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[entry])
	if err != nil {
		t.Fatal(err)
	}
	byReference := make(map[string]entry, len(all))
	for _, e := range all {
		byReference[e.Reference] = e
	}
	return byReference
}

// purchases are what the provider has made, by the id of our order. An upstream
// reference that is there twice is the one thing that must never be.
func (m *market) purchases(t *testing.T) map[string][]harness.UpstreamMovement {
	t.Helper()
	seen, byID := map[string]bool{}, map[string][]harness.UpstreamMovement{}
	for _, w := range m.now().UpstreamMovements(t) {
		if seen[w.Reference] {
			t.Errorf("%s is there twice upstream", w.Reference)
		}
		seen[w.Reference] = true
		id := w.Reference[:min(len(w.Reference), 32)] // the rest is of its request
		byID[id] = append(byID[id], w)
	}
	return byID
}

// made are the purchases of an order that the provider did not undo.
func made(all map[string][]harness.UpstreamMovement, e entry) []harness.UpstreamMovement {
	return slices.DeleteFunc(slices.Clone(all[strings.ReplaceAll(e.ID, "-", "")]), func(w harness.UpstreamMovement) bool { return w.State == "Gagal" })
}

// awaitEnds waits until every order has ended, asking for those that have not as
// their merchants would. It returns those that have not ended in time.
func (m *market) awaitEnds(t *testing.T, within time.Duration, unknowable bool) map[string]entry {
	t.Helper()
	var open, left map[string]entry
	began, asked := time.Now(), time.Now()
	err := harness.Until(within, func() bool {
		if time.Since(asked) < time.Second {
			return false
		}
		open = m.entries(t)
		maps.DeleteFunc(open, func(_ string, e entry) bool { return !e.open() })
		left = maps.Clone(open)
		if unknowable { // that a bill was never sent is proven after three minutes
			upstream := m.purchases(t)
			maps.DeleteFunc(left, func(_ string, e entry) bool {
				return e.Charge == "held" && e.unknown() && len(made(upstream, e)) == 0
			})
		}
		m.ask(t, left)
		asked = time.Now()
		return len(left) == 0
	})
	t.Logf("after %v %d orders have not ended", time.Since(began).Round(time.Second), len(open))
	if err != nil {
		for _, one := range m.sales {
			if e, is := left[one.reference]; is {
				t.Errorf("%s of %s for %s has not ended: %+v\n%s", one.reference, one.sku, one.target, e, mentions(m.now(), e.ID, 10))
			}
		}
	}
	return open
}

// mentions are the last lines of the log that hold a text.
func mentions(p *harness.Program, text string, most int) string {
	lines := slices.DeleteFunc(strings.Split(p.Log.String(), "\n"), func(line string) bool { return !strings.Contains(line, text) })
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// ask asks for the status of orders.
func (m *market) ask(t *testing.T, open map[string]entry) {
	t.Helper()
	for _, one := range m.sales {
		if _, is := open[one.reference]; is {
			one.shop.At(m.now()).Ask(t, "/ppob/status", harness.Fields{"ref_id": one.reference})
		}
	}
}

// tally counts what a check of the market found.
type tally struct {
	orders, answers, done, failed, reversed, unsent, open, never int
	callbacks, callbacksAgain                                    int
	codes                                                        map[fault.Code]int
}

// check holds all that was answered, sent, bought and recorded against one
// another, once nothing moves any more.
func (m *market) check(t *testing.T) tally {
	t.Helper()
	harness.Await(t, harness.CallbacksWithin, "an end of every delivery", func() bool { return harness.UndeliveredCallbacks(t, m.now()) == 0 })
	v := tally{codes: map[fault.Code]int{}}
	records, upstream := m.entries(t), m.purchases(t)
	spent, held := map[string]int64{}, map[string]int64{}
	var cost, bought int64
	known := map[string]bool{}
	for _, one := range m.sales {
		e, exists := records[one.reference]
		known[strings.ReplaceAll(e.ID, "-", "")] = true
		v.count(t, m, one, e, exists)
		if e.open() && e.Charge == "held" {
			held[e.Merchant] += e.Amount
		}
		if e.open() || e.State == "succeeded" && !e.Reversed {
			spent[e.Merchant] += e.Amount
		}
		if e.State == "succeeded" && !e.Reversed {
			cost += e.Cost
		}
		for _, w := range made(upstream, e) {
			if w.State == "Sukses" {
				bought += w.Amount
			}
		}
		wantUpstream(t, one, e, made(upstream, e))
	}
	for id, all := range upstream {
		if !known[id] {
			t.Errorf("the provider has what nobody ordered: %v", all)
		}
	}
	for _, s := range m.buyers {
		want := funds{m.opening + m.adjusted[s.MerchantID] - spent[s.MerchantID], held[s.MerchantID]}
		wantFunds(t, s.At(m.now()), s.MerchantID, want)
	}
	if deposit := platform(t, (harness.Shop{Program: m.now(), MerchantID: "", Key: "sk_live_"}), "deposit"); deposit != cost || v.open == 0 && deposit != bought {
		t.Errorf("the records say that %d have left the deposit, the orders %d, the provider %d", deposit, cost, bought)
	}
	m.now().WantCleanLedger(t)
	return v
}

// inTheContract are the codes that an order may be answered while everything is
// out of order.
var inTheContract = []fault.Code{
	"", fault.ProviderUnavailable, fault.InsufficientBalance, fault.Internal, fault.RateLimited, fault.ProductUnavailable, fault.DestinationInvalid,
}

// count judges what the merchant of one sale was answered and told.
func (v *tally) count(t *testing.T, m *market, one *sale, e entry, exists bool) {
	t.Helper()
	v.orders++
	var promised *harness.Answer
	surely := !one.unheard && len(one.answers) > 0 // that nothing was sent
	for i, a := range one.answers {
		v.answers++
		v.codes[a.Code]++
		switch {
		case !slices.Contains(inTheContract, a.Code):
			t.Errorf("%s was answered %s", one.reference, a)
		case a.Success && promised != nil && string(promised.Data) != string(a.Data):
			t.Errorf("%s was answered %s and %s", one.reference, promised, a)
		case a.Success:
			promised = &one.answers[i]
		}
		surely = surely && !a.Success && a.Sent == fault.SentNo
	}
	times, ids, status := m.callbacks.told(one.reference, "ppob.status_update")
	back, backs, _ := m.callbacks.told(one.reference, "ppob.returned")
	v.callbacks, v.callbacksAgain = v.callbacks+ids+backs, v.callbacksAgain+times-ids+back-backs
	word := map[string]string{"succeeded": "Success", "failed": "Failed"}[e.State]
	switch {
	case !exists:
		v.never++
	case e.State == "not_submitted":
		v.unsent++
	case e.open():
		v.open++
	case e.State == "succeeded":
		v.done++
	default:
		v.failed++
	}
	if e.Reversed {
		v.reversed++
	}
	if status != word || (word != "") != (ids == 1) || e.Reversed != (backs == 1) || ids > 1 || backs > 1 {
		t.Errorf("%s stands at %q (reversed: %t), and %q was told %d times as %d events, %d reversals", one.reference, e.State, e.Reversed, status, times, ids, backs)
	}
	if promised != nil && (!exists || e.State == "not_submitted") {
		t.Errorf("%s was answered %s, and there is no such order: %+v", one.reference, promised, e)
	}
	if surely && exists && e.State != "not_submitted" {
		t.Errorf("%s was answered that nothing was sent (%s), and stands at %s", one.reference, one.answers[0], e.State)
	}
}

// wantUpstream holds what the provider has made of an order against its state.
func wantUpstream(t *testing.T, one *sale, e entry, made []harness.UpstreamMovement) {
	t.Helper()
	states := make([]string, len(made))
	for i, w := range made {
		states[i] = w.State
	}
	right := len(made) <= 1
	switch {
	case e.State == "succeeded" && e.Reversed:
		right = slices.Equal(states, []string{"Refund"})
	case e.State == "succeeded":
		right = slices.Equal(states, []string{"Sukses"}) && made[0].Amount == e.Cost && len(made[0].Reference) == 40
	case e.State == "failed" && slices.Equal(states, []string{"Refund"}):
		right = true // it was taken back before anybody heard that it was done
	case !e.open():
		right = len(made) == 0
	}
	if !right {
		t.Errorf("%s of %s for %s stands at %+v, and the provider has %v", one.reference, one.sku, one.target, e, made)
	}
}

// String is the verdict for people.
func (v tally) String() string {
	return fmt.Sprintf("%d orders, %d answers by code %v; %d done (%d of them taken back), %d failed, %d never sent, %d not ended, %d never reserved; "+
		"%d callbacks and %d of them again", v.orders, v.answers, v.codes, v.done, v.reversed, v.failed, v.unsent, v.open, v.never, v.callbacks, v.callbacksAgain)
}
