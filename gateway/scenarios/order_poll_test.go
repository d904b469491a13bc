package scenarios

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestOrdersAreAskedSeldom: not in the first minute, and once a minute at most,
// however many ask in whatever process. What the provider is asked it checks
// itself: see biller.Lookup.
func TestOrdersAreAskedSeldom(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]way{
		"pending": {after: 24 * time.Hour},
		"unknown": {after: 24 * time.Hour, says: cut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, orders, func(w *world) {
				w.up.way = d
				w.want(w.create("A"), "Pending")
				other := w.replica(w.faults)
				for second := 0; second <= 600; second += 5 {
					w.want(w.status("A"), "Pending")
					w.runOn(other, w.asks(orderStatusPath, "ref_id", "A"))
					if m := w.stored("A"); !m.DueAt.After(w.now()) {
						if err := other.Resolve(w.Context(), m); err != nil {
							w.Error(err)
						}
					}
					if want := second / 60; w.up.asked() != want {
						w.Fatalf("asked %d times after %d s, want %d", w.up.asked(), second, want)
					}
					w.pass(5 * time.Second)
				}
				w.addUp()
			})
		})
	}
}

// TestPollerEndsOrders: nobody else asks, and the end is found soon
// after it is there.
func TestPollerEndsOrders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		way  way
		want movement.State
	}{
		{"done", way{after: 90 * time.Second}, movement.Succeeded},
		{"failed", way{after: 90 * time.Second, fails: true}, movement.Failed},
		{"cut, done", way{says: cut}, movement.Succeeded},
		{"cut, never made", way{unmade: true, says: cut}, movement.Succeeded}, // bought by the lookup
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, orders, func(w *world) {
				w.up.way = c.way
				w.want(w.create("A"), "Pending")
				w.work("A", 6*time.Minute)
				if m := w.stored("A"); m.State != c.want || !m.DueAt.IsZero() {
					t.Errorf("stands at %s, due %v", m.State, m.DueAt)
				}
				asked := w.up.asked()
				w.work("A", 24*time.Hour)
				w.status("A")
				if w.up.asked() != asked {
					t.Error("it was asked about after its end")
				}
				w.addUp()
			})
		})
	}
}

// TestTooOldToBeSentAgain: after the time in which the provider takes the same
// request for the same order it is not asked any more, whoever wants to, and the
// operators know.
func TestTooOldToBeSentAgain(t *testing.T) {
	t.Parallel()
	rules := ordersOf(orderPath).Rules
	cut := cut
	for name, c := range map[string]struct {
		way    way
		within time.Duration
	}{
		"pending":         {way{after: 10 * forgets}, rules.ResubmitWithin},
		"unknown":         {way{says: cut}, sendWindow + rules.BuysWithin},
		"unknown, unmade": {way{unmade: true, says: cut}, sendWindow + rules.BuysWithin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, orders, func(w *world) {
				w.up.way = c.way
				w.want(w.create("A"), "Pending")
				w.up.find = blind
				w.pass(c.within - time.Second)
				w.want(w.status("A"), "Pending")
				if w.up.asked() != 1 {
					t.Errorf("asked %d times just before", w.up.asked())
				}
				w.up.find = nil
				for _, later := range []time.Duration{time.Minute, 24 * time.Hour, forgets} {
					w.pass(later)
					w.want(w.status("A"), "Pending")
					w.want(w.create("A"), "Pending")
					if err := w.Resolve(w.Context(), w.stored("A")); err != nil {
						t.Error(err)
					}
				}
				w.work("A", 30*24*time.Hour)
				if w.up.asked() != 1 {
					t.Errorf("asked %d times, the last at %v", w.up.asked(), w.up.lookups)
				}
				w.wantListed(movement.ReasonUnresolved, movement.ReasonUnresolved) // for a day, and that it can't be asked
				w.addUp()
			})
		})
	}
}

// TestNeverOnAnotherAccount: an order is asked for on the account that it was
// made on, and on no other; with other credentials of that account it is.
func TestNeverOnAnotherAccount(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]bool{"the platform's": false, "the merchant's own": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, orders, func(w *world) {
				holder := tenants.Platform
				if own {
					w.poor(0)
					holder = w.account.ID()
					w.account = w.connected(holder, "deposit", 1)
				}
				w.up.way = way{after: time.Minute, says: cut}
				w.want(w.create("A"), "Pending")
				w.connected(holder, "another", 2)
				w.work("A", 30*time.Minute)
				w.want(w.status("A"), "Pending")
				if w.up.asked() != 0 {
					t.Errorf("asked %d times on another account", w.up.asked())
				}
				w.wantListed(movement.ReasonUnresolved)
				w.connected(holder, "deposit", 3)
				w.work("A", 3*24*time.Hour)
				w.want(w.status("A"), "Success")
				w.addUp()
			})
		})
	}
}

// TestAccountGoneMeanwhile: no connection to ask on, now and at once.
func TestAccountGoneMeanwhile(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		w.up.way = way{after: time.Minute}
		w.want(w.create("A"), "Pending")
		platform := w.platformAccount()
		delete(w.others, tenants.Platform)
		w.pass(2 * time.Minute)
		m := w.stored("A")
		if err := w.Resolve(w.Context(), m); err == nil {
			t.Error("it was resolved without a connection")
		}
		if again := w.stored("A"); !again.DueAt.After(w.now()) {
			t.Errorf("it is due at %v, at once", again.DueAt)
		}
		w.want(w.status("A"), "Pending")
		w.others[tenants.Platform] = platform
		w.work("A", time.Hour)
		w.want(w.status("A"), "Success")
		w.addUp()
	})
}

// TestLookupAsIfTheCall: a lookup carries all that the call did, so that it is
// the same request.
func TestLookupAsIfTheCall(t *testing.T) {
	t.Parallel()
	onBoth(t, orders, func(w *world) {
		w.sku = billSKU
		w.up.way = way{after: time.Hour}
		w.want(w.create("A"), "Pending")
		var seen sdk.Lookup
		w.up.find = func(l sdk.Lookup) sdk.StatusUpdate { seen = l; return sdk.NoStatus(sdk.BlameNone, "-") }
		w.work("A", 2*time.Minute)
		call := w.up.calls[0]
		if seen.Reference != call.Reference || seen.Cost != call.Cost || seen.Amount != call.Amount || string(seen.Quote) != string(call.Quote) ||
			string(seen.Body) != string(call.Body) || seen.Operation != call.Operation || string(seen.Connection.Credentials) != string(call.Connection.Credentials) {
			w.Errorf("called as  %+v\nlooked up as %+v", call, seen)
		}
		w.addUp()
	})
}

// TestNotFoundBills: a provider that can be asked without buying says twice that
// there is no such bill: somebody was told that it is pending, so it has failed,
// with all that is due.
func TestNotFoundBills(t *testing.T) {
	t.Parallel()
	for _, sku := range []string{prepaidSKU, billSKU} {
		t.Run(sku, func(t *testing.T) {
			t.Parallel()
			onBoth(t, orders, func(w *world) {
				w.sku = sku
				w.up.way = way{unmade: true, says: cut}
				w.want(w.create("A"), "Pending")
				w.up.find = missing
				m := w.stored("A")
				w.work("A", m.ProvenAfter(ordersOf(orderPath).Rules).Sub(w.now())+30*time.Second)
				if m = w.stored("A"); m.State != movement.Acknowledged {
					w.Errorf("stands at %s after one lookup that can prove anything", m.State)
				}
				w.work("A", 10*time.Minute)
				w.want(w.status("A"), "Failed")
				w.wantBalance(opening, 0)
				w.wantTold(orderEnds + " Failed")
				w.addUp()
			})
		})
	}
}

// TestUnresolvedForADay: what its provider has and tells no end of stands on the
// operators' list after a day, stays pending, and is asked about still.
func TestUnresolvedForADay(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		w.up.way = way{after: time.Hour}
		w.want(w.create("A"), "Pending")
		w.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.NoStatus(sdk.BlameAccount, "the key is refused") }
		w.work("A", 23*time.Hour)
		w.wantListed()
		w.work("A", 48*time.Hour)
		w.wantListed(movement.ReasonUnresolved)
		w.want(w.status("A"), "Pending")
		w.addUp()
		w.up.find = nil
		w.work("A", 48*time.Hour)
		w.want(w.status("A"), "Success")
		w.addUp()
	})
}

// TestUnreadableSuccessIsNotBelieved: a success whose data can't be read is not believed,
// because what was bought may stand in it and nowhere else.
func TestUnreadableSuccessIsNotBelieved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data   json.RawMessage
		status string
		listed []string
	}{
		"not UTF-8": {json.RawMessage("{\"sn\":\"\xff\"}"), "Pending", []string{movement.ReasonUnreadable}},
		"garbage":   {json.RawMessage(`{"sn":1}`), "Pending", []string{movement.ReasonUnreadable}},
		"no JSON":   {json.RawMessage(`x`), "Pending", []string{movement.ReasonUnreadable}},
		"none":      {nil, "Success", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, orders, func(w *world) {
				w.up.way = way{says: cut}
				w.want(w.create("A"), "Pending")
				w.up.find = func(l sdk.Lookup) sdk.StatusUpdate {
					f := w.up.things["deposit "+l.Reference].stands(w.now())
					f.Data = c.data
					return f
				}
				w.work("A", 5*time.Minute)
				if a := w.status("A"); a.data != `{"ref_id":"A","sku":"xld10","target":"081200001111","status":"`+c.status+`"}` {
					w.Errorf("told %s", a.data)
				}
				w.wantListed(c.listed...)
				w.wantBalance(opening-prepaidPrice-markup, 0)
			})
		})
	}
}
