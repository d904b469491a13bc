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
	for name, d := range map[string]deal{
		"pending": {after: 24 * time.Hour},
		"unknown": {after: 24 * time.Hour, says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShops(t, func(s *shop) {
				s.up.deal = d
				s.want(s.order("A"), "Pending")
				other := s.replica(s.faults)
				for second := 0; second <= 600; second += 5 {
					s.want(s.stateOf("A"), "Pending")
					s.runOn(other, s.asks(orderStatusPath, "ref_id", "A"))
					if m := s.stored("A"); !m.DueAt.After(s.now()) {
						if err := other.Resolve(s.Context(), m); err != nil {
							s.Error(err)
						}
					}
					if want := second / 60; s.up.asked() != want {
						s.Fatalf("asked %d times after %d s, want %d", s.up.asked(), second, want)
					}
					s.pass(5 * time.Second)
				}
				s.addUp()
			})
		})
	}
}

// TestOrdersAreLookedAtByTheWorker: nobody else asks, and the end is found soon
// after it is there.
func TestOrdersAreLookedAtByTheWorker(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		deal deal
		want movement.State
	}{
		{"done", deal{after: 90 * time.Second}, movement.Succeeded},
		{"failed", deal{after: 90 * time.Second, fails: true}, movement.Failed},
		{"cut, done", deal{says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}, movement.Succeeded},
		{"cut, never made", deal{unmade: true, says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}, movement.Succeeded}, // bought by the lookup
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inShop(t, func(s *shop) {
				s.up.deal = c.deal
				s.want(s.order("A"), "Pending")
				s.work("A", 6*time.Minute)
				if m := s.stored("A"); m.State != c.want || !m.DueAt.IsZero() {
					t.Errorf("stands at %s, due %v", m.State, m.DueAt)
				}
				asked := s.up.asked()
				s.work("A", 24*time.Hour)
				s.stateOf("A")
				if s.up.asked() != asked {
					t.Error("it was asked about after its end")
				}
				s.addUp()
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
	cut := saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))
	for name, c := range map[string]struct {
		deal   deal
		within time.Duration
	}{
		"pending":         {deal{after: 10 * forgets}, rules.ResubmitWithin},
		"unknown":         {deal{says: cut}, sendWindow + rules.BuysWithin},
		"unknown, unmade": {deal{unmade: true, says: cut}, sendWindow + rules.BuysWithin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShop(t, func(s *shop) {
				s.up.deal = c.deal
				s.want(s.order("A"), "Pending")
				s.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.NoStatus(sdk.BlameUpstream, "no answer") }
				s.pass(c.within - time.Second)
				s.want(s.stateOf("A"), "Pending")
				if s.up.asked() != 1 {
					t.Errorf("asked %d times just before", s.up.asked())
				}
				s.up.find = nil
				for _, later := range []time.Duration{time.Minute, 24 * time.Hour, forgets} {
					s.pass(later)
					s.want(s.stateOf("A"), "Pending")
					s.want(s.order("A"), "Pending")
					if err := s.Resolve(s.Context(), s.stored("A")); err != nil {
						t.Error(err)
					}
				}
				s.work("A", 30*24*time.Hour)
				if s.up.asked() != 1 {
					t.Errorf("asked %d times, the last at %v", s.up.asked(), s.up.lookups)
				}
				s.wantListed(movement.ReasonUnresolved, movement.ReasonUnresolved) // for a day, and that it can't be asked
				s.addUp()
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
			inShop(t, func(s *shop) {
				holder := tenants.Platform
				if own {
					s.poor(0)
					holder = s.account.ID()
					s.account = s.connected(holder, "deposit", 1)
				}
				s.up.deal = deal{after: time.Minute, says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}
				s.want(s.order("A"), "Pending")
				s.connected(holder, "another", 2)
				s.work("A", 30*time.Minute)
				s.want(s.stateOf("A"), "Pending")
				if s.up.asked() != 0 {
					t.Errorf("asked %d times on another account", s.up.asked())
				}
				s.wantListed(movement.ReasonUnresolved)
				s.connected(holder, "deposit", 3)
				s.work("A", 3*24*time.Hour)
				s.want(s.stateOf("A"), "Success")
				s.addUp()
			})
		})
	}
}

// TestAccountGoneMeanwhile: no connection to ask on, now and at once.
func TestAccountGoneMeanwhile(t *testing.T) {
	t.Parallel()
	inShop(t, func(s *shop) {
		s.up.deal = deal{after: time.Minute}
		s.want(s.order("A"), "Pending")
		platform := s.platformAccount()
		delete(s.others, tenants.Platform)
		s.pass(2 * time.Minute)
		m := s.stored("A")
		if err := s.Resolve(s.Context(), m); err == nil {
			t.Error("it was resolved without a connection")
		}
		if again := s.stored("A"); !again.DueAt.After(s.now()) {
			t.Errorf("it is due at %v, at once", again.DueAt)
		}
		s.want(s.stateOf("A"), "Pending")
		s.others[tenants.Platform] = platform
		s.work("A", time.Hour)
		s.want(s.stateOf("A"), "Success")
		s.addUp()
	})
}

// TestLookupAsIfTheCall: a lookup carries all that the call did, so that it is
// the same request.
func TestLookupAsIfTheCall(t *testing.T) {
	t.Parallel()
	inShops(t, func(s *shop) {
		s.sku = billSKU
		s.up.deal = deal{after: time.Hour}
		s.want(s.order("A"), "Pending")
		var seen sdk.Lookup
		s.up.find = func(l sdk.Lookup) sdk.StatusUpdate { seen = l; return sdk.NoStatus(sdk.BlameNone, "-") }
		s.work("A", 2*time.Minute)
		call := s.up.calls[0]
		if seen.Reference != call.Reference || seen.Cost != call.Cost || seen.Amount != call.Amount || string(seen.Quote) != string(call.Quote) ||
			string(seen.Body) != string(call.Body) || seen.Operation != call.Operation || string(seen.Connection.Credentials) != string(call.Connection.Credentials) {
			s.Errorf("called as  %+v\nlooked up as %+v", call, seen)
		}
		s.addUp()
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
			inShops(t, func(s *shop) {
				s.sku = sku
				s.up.deal = deal{unmade: true, says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}
				s.want(s.order("A"), "Pending")
				s.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.StatusUpdate{Status: sdk.StatusNotFound} }
				m := s.stored("A")
				s.work("A", m.ProvenAfter(ordersOf(orderPath).Rules).Sub(s.now())+30*time.Second)
				if m = s.stored("A"); m.State != movement.Acknowledged {
					s.Errorf("stands at %s after one lookup that can prove anything", m.State)
				}
				s.work("A", 10*time.Minute)
				s.want(s.stateOf("A"), "Failed")
				s.wantBalance(opening, 0)
				s.wantTold(orderEnds + " Failed")
				s.addUp()
			})
		})
	}
}

// TestUnresolvedForADay: what its provider has and tells no end of stands on the
// operators' list after a day, stays pending, and is asked about still.
func TestUnresolvedForADay(t *testing.T) {
	t.Parallel()
	inShop(t, func(s *shop) {
		s.up.deal = deal{after: time.Hour}
		s.want(s.order("A"), "Pending")
		s.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.NoStatus(sdk.BlameAccount, "the key is refused") }
		s.work("A", 23*time.Hour)
		s.wantListed()
		s.work("A", 48*time.Hour)
		s.wantListed(movement.ReasonUnresolved)
		s.want(s.stateOf("A"), "Pending")
		s.addUp()
		s.up.find = nil
		s.work("A", 48*time.Hour)
		s.want(s.stateOf("A"), "Success")
		s.addUp()
	})
}

// TestFindingsThatDoNotFit: a success whose data can't be read is not believed,
// because what was bought may stand in it and nowhere else.
func TestFindingsThatDoNotFit(t *testing.T) {
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
			inShops(t, func(s *shop) {
				s.up.deal = deal{says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}
				s.want(s.order("A"), "Pending")
				s.up.find = func(l sdk.Lookup) sdk.StatusUpdate {
					f := s.up.found("deposit", l.Reference)
					f.Data = c.data
					return f
				}
				s.work("A", 5*time.Minute)
				if a := s.stateOf("A"); a.data != `{"ref_id":"A","sku":"xld10","target":"081200001111","status":"`+c.status+`"}` {
					s.Errorf("told %s", a.data)
				}
				s.wantListed(c.listed...)
				s.wantBalance(opening-prepaidPrice-markup, 0)
			})
		})
	}
}
