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
func (w *world) freed(reference string) movement.Movement {
	w.Helper()
	w.sku, w.up.way = billSKU, way{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameNone, "no process"))}
	w.want(w.create(reference), "PROVIDER_UNAVAILABLE no later")
	return w.stored(reference)
}

// TestTwoBillsUnderOneReference: two ask at once what different bills cost under a
// reference that is free again, each under a name of its own, and what is paid under
// a name is what was asked for under it.
func TestTwoBillsUnderOneReference(t *testing.T) {
	t.Parallel()
	onBoth(t, orders, func(w *world) {
		before := w.freed("A")
		w.up.beforeQuote = func() {
			w.up.beforeQuote = nil
			w.want(w.create("A", "target", "111111"), "PROVIDER_UNAVAILABLE no later")
			w.up.way = way{}
		}
		// The other one's attempt has taken the number that this one would have had.
		w.want(w.create("A", "target", "222222"), "PROVIDER_UNAVAILABLE no later")
		w.restart()
		w.want(w.create("A", "target", "222222"), "Pending")
		bills := map[string]string{} // by the name that they were asked for under
		for _, q := range w.up.quotes {
			if other := bills[q.Reference]; other != "" && other != string(q.Body) {
				w.Errorf("%s was asked for %s and %s", q.Reference, other, q.Body)
			}
			bills[q.Reference] = string(q.Body)
		}
		for _, call := range w.up.calls {
			if bills[call.Reference] != string(call.Body) {
				w.Errorf("%s was called with %s, and asked for %s", call.Reference, call.Body, bills[call.Reference])
			}
		}
		if m := w.stored("A"); len(bills) != 3 || len(w.up.calls) != 3 || m.ID != before.ID || m.Attempt != before.Attempt+2 {
			w.Errorf("asked under %d names, called %d times, stands at attempt %d", len(bills), len(w.up.calls), m.Attempt)
		}
		w.addUp()
	})
}

// TestUnorderedQuoteKeepsItsName: a bill that was asked for under a reference that is free
// again, and not ordered, leaves its name to no other bill.
func TestUnorderedQuoteKeepsItsName(t *testing.T) {
	t.Parallel()
	onBoth(t, orders, func(w *world) {
		w.freed("A")
		w.restart()
		w.want(w.create("A", "target", "111111", "qty", number(1)), "INVALID_REQUEST no after_change")
		w.want(w.create("A", "target", "222222"), "Pending")
		if q := w.up.quotes[1:]; len(q) != 2 || q[0].Reference == q[1].Reference || w.up.calls[1].Reference != q[1].Reference {
			w.Errorf("asked as %+v, called as %s", q, w.up.calls[1].Reference)
		}
		w.addUp()
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
		"of a taken back": {first: silent, then: spoken, back: true, listed: movement.ReasonContradiction + " " + movement.ReasonReturned},
		"that can't be":   {first: silent, then: `{"sn":"` + strings.Repeat("1", longestReport+1) + `"}`, listed: movement.ReasonUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, orders, func(w *world) {
				w.up.way = way{after: time.Second}
				w.want(w.create("A"), "Pending")
				w.pass(time.Second)
				m := w.stored("A")
				p := w.purchased("A")
				done := p.says(sdk.StatusDone)
				done.Data = json.RawMessage(c.first)
				w.hear(done)
				if c.back {
					w.hear(p.says(sdk.StatusFailed))
				}
				ended := w.stored("A")
				callbacks := len(w.told())
				done.EventID, done.Data = done.EventID+"-late", json.RawMessage(c.then)
				if c.cheaper {
					done.Amount--
				}
				for range 3 {
					w.pass(time.Second)
					w.hear(done)
				}
				now := w.stored("A")
				if sn := lifecycle.Reports(now)["sn"]; sn != c.sn {
					w.Errorf("sn is %q, want %q", sn, c.sn)
				}
				if a := w.status("A"); strings.Contains(a.data, `"sn"`) != (c.sn != "") || !strings.Contains(a.data, c.sn) {
					w.Errorf("the status is %s", a.data)
				}
				if said := lifecycle.Reports(ended)["message"]; said != "" && lifecycle.Reports(now)["message"] != said {
					w.Errorf("what was told before is %q now", lifecycle.Reports(now)["message"])
				}
				if now.State != movement.Succeeded || now.Cost != m.Cost || now.FactID != ended.FactID || !now.UpdatedAt.Equal(ended.UpdatedAt) {
					w.Errorf("stands at %+v, stood at %+v", now, ended)
				}
				if n := len(w.told()); n != callbacks {
					w.Errorf("told %d times, %d times before", n, callbacks)
				}
				w.wantListed(strings.Fields(c.listed)...)
				for _, entry := range w.entries() {
					late := entry.Reason == movement.ReasonContradiction && c.sn == token
					if strings.Contains(entry.Detail, "1234567890") || strings.Contains(entry.Detail, "told sn late") != late {
						w.Errorf("the operators' list says %s", entry.Detail)
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
	onBoth(t, orders, func(w *world) {
		w.up.way = way{says: saying(sdk.Result{Outcome: sdk.Done, Amount: prepaidPrice, Data: json.RawMessage(`{"message":"Sukses"}`)})}
		w.want(w.create("A"), "Pending")
		if m := w.stored("A"); m.State != movement.Succeeded || m.FactID != "" {
			w.Fatalf("%+v", m)
		}
		f := w.purchased("A").says(sdk.StatusDone)
		w.hear(f)
		w.hear(f)
		if m := w.stored("A"); lifecycle.Reports(m)["sn"] != "SN-"+m.UpstreamReference() || lifecycle.Reports(m)["message"] != "Sukses" {
			w.Errorf("the result is %s", m.Result)
		}
		w.wantListed(movement.ReasonContradiction)
		if story, ok := w.keeper.(interface {
			History(ctx context.Context, id movement.ID) ([]movement.HistoryEntry, error)
		}); ok {
			events, err := story.History(w.Context(), w.stored("A").ID)
			if err != nil || len(events) != 2 || events[1].Event != "supplemented" || !strings.Contains(events[1].Detail, f.EventID) {
				w.Errorf("the story is %+v, %v", events, err)
			}
		}
	})
}

// TestLateSerialListedFirst: where the operators' list can't be written nothing is
// kept, and the provider has to tell it again.
func TestLateSerialListedFirst(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		w.up.way = way{says: saying(sdk.Result{Outcome: sdk.Done, Amount: prepaidPrice, Data: json.RawMessage(`{"message":"Sukses"}`)})}
		w.want(w.create("A"), "Pending")
		f := w.purchased("A").says(sdk.StatusDone)
		w.faults.recording = broken{errAway}
		w.up.set(func() { w.up.ack = sdk.Acknowledgement{Status: 200, Updates: []sdk.StatusUpdate{f}} })
		c, _ := w.platformAccount().Connection(tenants.Live, ppob)
		if _, err := w.notifyAt(w.Context(), ppob, c.NotifyToken); err == nil || lifecycle.Reports(w.stored("A"))["sn"] != "" {
			w.Errorf("taken: %v, the result is %s", err, w.stored("A").Result)
		}
		w.faults.recording = nil
		w.hear(f)
		if lifecycle.Reports(w.stored("A"))["sn"] == "" {
			w.Errorf("the result is %s", w.stored("A").Result)
		}
		w.wantListed(movement.ReasonContradiction)
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

// TestLateSerialSurvivesACrash: told again it is kept, and is listed once.
func TestLateSerialSurvivesACrash(t *testing.T) {
	t.Parallel()
	for _, dies := range []string{"before", "after"} {
		inMemory(t, orders, func(w *world) {
			w.up.way = way{says: saying(sdk.Result{Outcome: sdk.Done, Amount: prepaidPrice, Data: json.RawMessage(`{"message":"Sukses"}`)})}
			w.want(w.create("A"), "Pending")
			f := w.purchased("A").says(sdk.StatusDone)
			kept := &lateKeeper{Store: w.Engine.Store, dies: dies}
			w.Engine.Store = kept
			func() {
				defer func() {
					if _, died := recover().(crash); !died {
						w.Errorf("%s: it did not die", dies)
					}
				}()
				w.hear(f)
			}()
			if has := lifecycle.Reports(w.stored("A"))["sn"] != ""; has != (dies == "after") {
				w.Errorf("dead %s: the result is %s", dies, w.stored("A").Result)
			}
			kept.dies = ""
			for range 2 {
				w.hear(f)
			}
			if lifecycle.Reports(w.stored("A"))["sn"] == "" {
				w.Errorf("dead %s, and told again: the result is %s", dies, w.stored("A").Result)
			}
			w.wantListed(movement.ReasonContradiction)
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
				inMemory(t, orders, func(w *world) {
					w.up.way = way{after: time.Second}
					w.want(w.create("A"), "Pending")
					w.pass(time.Second)
					f := w.purchased("A").says(sdk.StatusDone)
					long := strings.Repeat("7", n)
					f.Data = json.RawMessage(`{"` + name + `":"` + long + `"}`)
					w.hear(f)
					a := w.status("A")
					w.want(a, status)
					told := w.told()
					if status == "Pending" {
						w.wantListed(movement.ReasonUnreadable)
						w.wantTold()
						return
					}
					w.wantListed()
					if name == "sn" && !strings.Contains(a.data, `"`+long+`"`) || len(told) != 1 || !strings.Contains(string(told[0].Body), `"`+long+`"`) {
						w.Errorf("it is cut: %s, told %+v", a.data, told)
					}
				})
			})
		}
	}
}

// TestLongFailure: what a failure says may be cut, it is one all the same.
func TestLongFailure(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		w.up.way = way{after: time.Second, fails: true}
		w.want(w.create("A"), "Pending")
		w.pass(time.Second)
		f := w.purchased("A").says(sdk.StatusFailed)
		f.Data = json.RawMessage(`{"message":"` + strings.Repeat("7", longestReport+1) + `"}`)
		w.hear(f)
		w.want(w.status("A"), "Failed")
		w.wantListed()
		w.addUp()
	})
}
