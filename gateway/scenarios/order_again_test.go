package scenarios

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// freed is a reference that is free again, after an attempt that was not sent.
func (s *shop) freed(reference string) movement.Movement {
	s.Helper()
	s.sku, s.up.deal = billSKU, deal{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameNone, "no process"))}
	s.want(s.order(reference), "PROVIDER_UNAVAILABLE no later")
	return s.stored(reference)
}

// TestTwoBillsUnderOneReference: two ask at once what different bills cost under a
// reference that is free again, each under a name of its own, and what is paid under
// a name is what was asked for under it.
func TestTwoBillsUnderOneReference(t *testing.T) {
	t.Parallel()
	inShops(t, func(s *shop) {
		before := s.freed("A")
		s.up.beforeQuote = func() {
			s.up.beforeQuote = nil
			s.want(s.order("A", "target", "111111"), "PROVIDER_UNAVAILABLE no later")
			s.up.deal = deal{}
		}
		// The other one's attempt has taken the number that this one would have had.
		s.want(s.order("A", "target", "222222"), "PROVIDER_UNAVAILABLE no later")
		s.restart()
		s.want(s.order("A", "target", "222222"), "Pending")
		bills := map[string]string{} // by the name that they were asked for under
		for _, q := range s.up.quotes {
			if other := bills[q.Reference]; other != "" && other != string(q.Body) {
				s.Errorf("%s was asked for %s and %s", q.Reference, other, q.Body)
			}
			bills[q.Reference] = string(q.Body)
		}
		for _, call := range s.up.calls {
			if bills[call.Reference] != string(call.Body) {
				s.Errorf("%s was called with %s, and asked for %s", call.Reference, call.Body, bills[call.Reference])
			}
		}
		if m := s.stored("A"); len(bills) != 3 || len(s.up.calls) != 3 || m.ID != before.ID || m.Attempt != before.Attempt+2 {
			s.Errorf("asked under %d names, called %d times, stands at attempt %d", len(bills), len(s.up.calls), m.Attempt)
		}
		s.addUp()
	})
}

// TestAskedAndNotOrdered: a bill that was asked for under a reference that is free
// again, and not ordered, leaves its name to no other bill.
func TestAskedAndNotOrdered(t *testing.T) {
	t.Parallel()
	inShops(t, func(s *shop) {
		s.freed("A")
		s.restart()
		s.want(s.order("A", "target", "111111", "qty", number(1)), "INVALID_REQUEST no after_change")
		s.want(s.order("A", "target", "222222"), "Pending")
		if q := s.up.quotes[1:]; len(q) != 2 || q[0].Reference == q[1].Reference || s.up.calls[1].Reference != q[1].Reference {
			s.Errorf("asked as %+v, called as %s", q, s.up.calls[1].Reference)
		}
		s.addUp()
	})
}

// TestLateSerial: what was bought is told only after the success. Status answers
// have it from then on; no callback tells of it; operators hear of it, without it.
func TestLateSerial(t *testing.T) {
	t.Parallel()
	const token = "12345678901234567890/NAMA/R1/1300/32,1"
	const silent, spoken = `{"sn":"","message":"Sukses"}`, `{"sn":"` + token + `","message":"Berhasil"}`
	for name, c := range map[string]struct {
		first, then string // the data of the success, and of the next ones
		cheaper     bool
		back        bool // it was taken back in between
		sn, listed  string
	}{
		"after none":      {first: `{"message":"Sukses"}`, then: spoken, sn: token, listed: movement.ReasonContradiction},
		"after an empty":  {first: silent, then: spoken, sn: token, listed: movement.ReasonContradiction},
		"after no data":   {then: spoken, sn: token, listed: movement.ReasonContradiction},
		"none, still":     {first: silent, then: silent, listed: movement.ReasonContradiction},
		"another one":     {first: `{"sn":"first"}`, then: spoken, sn: "first", listed: movement.ReasonContradiction},
		"and cheaper":     {first: silent, then: spoken, cheaper: true, sn: token, listed: movement.ReasonAmount + " " + movement.ReasonContradiction},
		"of a taken back": {first: silent, then: spoken, back: true, listed: movement.ReasonContradiction + " " + movement.ReasonReversed},
		"that can't be":   {first: silent, then: `{"sn":"` + strings.Repeat("1", longestReport+1) + `"}`, listed: movement.ReasonUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShops(t, func(s *shop) {
				s.up.deal = deal{after: time.Second}
				s.want(s.order("A"), "Pending")
				s.pass(time.Second)
				m := s.stored("A")
				p := s.purchased("A")
				done := p.says(sdk.StatusDone)
				done.Data = json.RawMessage(c.first)
				s.hears(s.platformAccount(), done)
				if c.back {
					s.hears(s.platformAccount(), p.says(sdk.StatusFailed))
				}
				ended := s.stored("A")
				callbacks := len(s.world.told())
				done.EventID, done.Data = done.EventID+"-late", json.RawMessage(c.then)
				if c.cheaper {
					done.Amount--
				}
				for range 3 {
					s.pass(time.Second)
					s.hears(s.platformAccount(), done)
				}
				now := s.stored("A")
				if sn := lifecycle.Reports(now)["sn"]; sn != c.sn {
					s.Errorf("sn is %q, want %q", sn, c.sn)
				}
				if a := s.stateOf("A"); strings.Contains(a.data, `"sn"`) != (c.sn != "") || !strings.Contains(a.data, c.sn) {
					s.Errorf("the status is %s", a.data)
				}
				if said := lifecycle.Reports(ended)["message"]; said != "" && lifecycle.Reports(now)["message"] != said {
					s.Errorf("what was told before is %q now", lifecycle.Reports(now)["message"])
				}
				if now.State != movement.Succeeded || now.Cost != m.Cost || now.FactID != ended.FactID || !now.UpdatedAt.Equal(ended.UpdatedAt) {
					s.Errorf("stands at %+v, stood at %+v", now, ended)
				}
				if n := len(s.world.told()); n != callbacks {
					s.Errorf("told %d times, %d times before", n, callbacks)
				}
				s.wantListed(strings.Fields(c.listed)...)
				for _, entry := range s.entries() {
					late := entry.Reason == movement.ReasonContradiction && c.sn == token
					if strings.Contains(entry.Detail, "1234567890") || strings.Contains(entry.Detail, "told sn late") != late {
						s.Errorf("the operators' list says %s", entry.Detail)
					}
				}
			})
		})
	}
}

// TestLateSerialAfterTheCall: the call itself was the first to tell of the success,
// and has no name for it.
func TestLateSerialAfterTheCall(t *testing.T) {
	t.Parallel()
	inShops(t, func(s *shop) {
		s.up.deal = deal{says: saying(sdk.Result{Outcome: sdk.Done, Amount: prepaidPrice, Data: json.RawMessage(`{"message":"Sukses"}`)})}
		s.want(s.order("A"), "Pending")
		if m := s.stored("A"); m.State != movement.Succeeded || m.FactID != "" {
			s.Fatalf("%+v", m)
		}
		f := s.purchased("A").says(sdk.StatusDone)
		s.hears(s.platformAccount(), f)
		s.hears(s.platformAccount(), f)
		if m := s.stored("A"); lifecycle.Reports(m)["sn"] != "SN-"+m.UpstreamReference() || lifecycle.Reports(m)["message"] != "Sukses" {
			s.Errorf("the result is %s", m.Result)
		}
		s.wantListed(movement.ReasonContradiction)
		if story, ok := s.keeper.(interface {
			History(ctx context.Context, id movement.ID) ([]movement.HistoryEntry, error)
		}); ok {
			events, err := story.History(s.Context(), s.stored("A").ID)
			if err != nil || len(events) != 2 || events[1].Event != "supplemented" || !strings.Contains(events[1].Detail, f.EventID) {
				s.Errorf("the story is %+v, %v", events, err)
			}
		}
	})
}

// TestLateSerialListedFirst: where the operators' list can't be written nothing is
// kept, and the provider has to tell it again.
func TestLateSerialListedFirst(t *testing.T) {
	t.Parallel()
	inShop(t, func(s *shop) {
		s.up.deal = deal{says: saying(sdk.Result{Outcome: sdk.Done, Amount: prepaidPrice, Data: json.RawMessage(`{"message":"Sukses"}`)})}
		s.want(s.order("A"), "Pending")
		f := s.purchased("A").says(sdk.StatusDone)
		s.faults.recording = broken{errAway}
		s.up.set(func() { s.up.ack = sdk.Acknowledgement{Status: 200, Updates: []sdk.StatusUpdate{f}} })
		c, _ := s.platformAccount().Connection(tenants.Live, ppob)
		if _, err := s.notifyAt(s.Context(), ppob, c.NotifyToken); err == nil || lifecycle.Reports(s.stored("A"))["sn"] != "" {
			s.Errorf("taken: %v, the result is %s", err, s.stored("A").Result)
		}
		s.faults.recording = nil
		s.hears(s.platformAccount(), f)
		if lifecycle.Reports(s.stored("A"))["sn"] == "" {
			s.Errorf("the result is %s", s.stored("A").Result)
		}
		s.wantListed(movement.ReasonContradiction)
	})
}

// lateKeeper is a store in whose supplement the process dies, before or after it.
type lateKeeper struct {
	lifecycle.Store
	dies string
}

func (k *lateKeeper) Apply(ctx context.Context, c movement.Change) (bool, error) {
	if c.Effect != movement.Supplement {
		return k.Store.Apply(ctx, c)
	}
	if k.dies == "before" {
		panic(crash{})
	}
	done, err := k.Store.Apply(ctx, c)
	if k.dies == "after" {
		panic(crash{})
	}
	return done, err
}

// TestALateSerialAndADeath: told again it is kept, and is listed once.
func TestALateSerialAndADeath(t *testing.T) {
	t.Parallel()
	for _, dies := range []string{"before", "after"} {
		inShop(t, func(s *shop) {
			s.up.deal = deal{says: saying(sdk.Result{Outcome: sdk.Done, Amount: prepaidPrice, Data: json.RawMessage(`{"message":"Sukses"}`)})}
			s.want(s.order("A"), "Pending")
			f := s.purchased("A").says(sdk.StatusDone)
			kept := &lateKeeper{Store: s.Engine.Store, dies: dies}
			s.Engine.Store = kept
			func() {
				defer func() {
					if _, died := recover().(crash); !died {
						s.Errorf("%s: it did not die", dies)
					}
				}()
				s.hears(s.platformAccount(), f)
			}()
			if has := lifecycle.Reports(s.stored("A"))["sn"] != ""; has != (dies == "after") {
				s.Errorf("dead %s: the result is %s", dies, s.stored("A").Result)
			}
			kept.dies = ""
			for range 2 {
				s.hears(s.platformAccount(), f)
			}
			if lifecycle.Reports(s.stored("A"))["sn"] == "" {
				s.Errorf("dead %s, and told again: the result is %s", dies, s.stored("A").Result)
			}
			s.wantListed(movement.ReasonContradiction)
		})
	}
}

// TestLongSerial: a long one is told whole, in status and callback; one that can't
// be told whole is not believed.
func TestLongSerial(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sn", "message"} {
		for n, status := range map[int]string{longestName + 1: "Success", longestReport: "Success", longestReport + 1: "Pending"} {
			t.Run(name+" of "+number(money.Amount(n)).String(), func(t *testing.T) {
				t.Parallel()
				inShop(t, func(s *shop) {
					s.up.deal = deal{after: time.Second}
					s.want(s.order("A"), "Pending")
					s.pass(time.Second)
					f := s.purchased("A").says(sdk.StatusDone)
					long := strings.Repeat("7", n)
					f.Data = json.RawMessage(`{"` + name + `":"` + long + `"}`)
					s.hears(s.platformAccount(), f)
					a := s.stateOf("A")
					s.want(a, status)
					told := s.world.told()
					if status == "Pending" {
						s.wantListed(movement.ReasonUnreadable)
						s.wantTold()
						return
					}
					s.wantListed()
					if name == "sn" && !strings.Contains(a.data, `"`+long+`"`) || len(told) != 1 || !strings.Contains(string(told[0].Body), `"`+long+`"`) {
						s.Errorf("it is cut: %s, told %+v", a.data, told)
					}
				})
			})
		}
	}
}

// TestLongFailure: what a failure says may be cut, it is one all the same.
func TestLongFailure(t *testing.T) {
	t.Parallel()
	inShop(t, func(s *shop) {
		s.up.deal = deal{after: time.Second, fails: true}
		s.want(s.order("A"), "Pending")
		s.pass(time.Second)
		f := s.purchased("A").says(sdk.StatusFailed)
		f.Data = json.RawMessage(`{"message":"` + strings.Repeat("7", longestReport+1) + `"}`)
		s.hears(s.platformAccount(), f)
		s.want(s.stateOf("A"), "Failed")
		s.wantListed()
		s.addUp()
	})
}
