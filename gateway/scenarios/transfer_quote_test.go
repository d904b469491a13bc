package scenarios

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// TestQuoteSaysNo: what ends before the money call was not sent, leaves nothing
// behind, and the reference stays free.
func TestQuoteSaysNo(t *testing.T) {
	t.Parallel()
	says := func(r sdk.Result) func(sdk.Quote, sdk.Quoted) sdk.Quoted {
		return func(sdk.Quote, sdk.Quoted) sdk.Quoted { return sdk.NoQuote(r) }
	}
	but := func(change func(*sdk.Quoted)) func(sdk.Quote, sdk.Quoted) sdk.Quoted {
		return func(_ sdk.Quote, q sdk.Quoted) sdk.Quoted { change(&q); return q }
	}
	for name, c := range map[string]struct {
		quote  func(sdk.Quote, sdk.Quoted) sdk.Quoted
		word   string
		fields []string
		listed []string
	}{
		"no such account":  {says(sdk.Refuse(sdk.RefuseDestination, "No such account.")), "DESTINATION_INVALID no after_change", nil, nil},
		"wallet short":     {says(sdk.Refuse(sdk.RefuseOther, "The balance of the wallet is too low.")), "PROVIDER_REJECTED no after_change", nil, nil},
		"out of bounds":    {says(sdk.Refuse(sdk.RefuseRequest, "At least 10,000.", sdk.FieldFault{Field: "amount", Message: "must be at least 10000"})), "INVALID_REQUEST no after_change", []string{"amount"}, nil},
		"refused, no word": {says(sdk.Result{Outcome: sdk.Refused}), "PROVIDER_REJECTED no after_change", nil, nil},
		"not sent":         {says(sdk.DidNotSend(sdk.BlameUpstream, "down")), notSentLater, nil, nil},
		"our account":      {says(sdk.DidNotSend(sdk.BlameAccount, "no token")), notSentLater, nil, []string{movement.ReasonAccount}},
		"unknown":          {says(sdk.DontKnow(sdk.BlameUpstream, "cut")), notSentLater, nil, nil},
		"unheard of":       {says(sdk.Result{Outcome: 99}), notSentLater, nil, nil},
		"another amount":   {but(func(q *sdk.Quoted) { q.Price++ }), notSentLater, nil, nil},
		"no amount":        {but(func(q *sdk.Quoted) { q.Price = 0 }), notSentLater, nil, nil},
		"a fee below zero": {but(func(q *sdk.Quoted) { q.Fee = -1 }), notSentLater, nil, nil},
		"not UTF-8":        {but(func(q *sdk.Quoted) { q.Data = []byte("\"\xff\"") }), notSentLater, nil, nil},
	} {
		for _, reference := range []string{"A", ""} {
			t.Run(name+" "+reference, func(t *testing.T) {
				t.Parallel()
				onBoth(t, transfers, func(w *world) {
					w.limits, w.up.quote = generous(), c.quote
					r := w.request(reference)
					a := w.sends(w.Engine, r)
					w.want(a, c.word)
					w.truthful(r, a)
					w.wantFault(a, a.err.Code, fault.SentNo, c.fields...)
					if _, there := w.latest(r); there || len(w.up.calls) > 0 {
						w.Errorf("it is claimed: %t, called %d times", there, len(w.up.calls))
					}
					w.wantListed(c.listed...)
					w.wantTold()
					w.up.quote = nil
					r.Body["amount"] = number(2 * sending) // its reference is free for anything
					w.want(w.sends(w.Engine, r), "Success")
					w.wantMoved(1)
				})
			})
		}
	}
}

// TestTransferNotReady: without a provider or a connection nothing is asked, and what
// exists is answered all the same.
func TestTransferNotReady(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		first := w.create("A")
		w.up.available = errNoPlugin
		w.want(w.create("B"), notSentLater)
		w.wantSame(w.create("A"), first, 1)
		w.up.available = nil
		w.account = w.merchant() // of another provider alone
		w.want(w.create("B"), notConnected)
		if len(w.up.quotes) != 1 {
			w.Errorf("quoted %d times", len(w.up.quotes))
		}
	})
}

// TestFeeThatDiffers: the merchant is told the configured fee, the operators that
// the provider takes another.
func TestFeeThatDiffers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cost   money.Amount
		listed []string
	}{
		"the same": {sending + bankFee, nil}, "not told": {0, nil},
		"dearer, and the policy lets it": {sending + bankFee + 4_000, []string{movement.ReasonFee}}, "for nothing": {sending, []string{movement.ReasonFee}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, transfers, func(w *world) {
				w.up.quote = func(_ sdk.Quote, q sdk.Quoted) sdk.Quoted { q.Cost = c.cost; return q }
				w.limits.HigherFees = true
				r := w.request("A")
				a := w.sends(w.Engine, r)
				w.want(a, "Success")
				w.truthful(r, a)
				w.create("A")
				w.wantListed(c.listed...)
				if m := w.stored("A"); m.Fee != bankFee || !strings.Contains(a.data, `"fee":2500`) {
					w.Errorf("a fee of %v, answered %s", m.Fee, a.data)
				}
				if w.addUp(); c.listed != nil && !strings.Contains(w.exception(movement.ReasonFee).Detail, "2500") {
					w.Errorf("the operators read %q", w.exception(movement.ReasonFee).Detail)
				}
			})
		})
	}
}

// TestAHigherFeeIsRefused before anything is sent, unless the policy lets it, and an
// operator reads of it.
func TestAHigherFeeIsRefused(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		w.up.quote = func(_ sdk.Quote, q sdk.Quoted) sdk.Quoted { q.Cost = sending + bankFee + 1; return q }
		a := w.create("A")
		if a.err == nil || a.err.Code != fault.ProviderRejected || a.err.Sent != fault.SentNo || a.err.Retry != fault.RetryAfterChange || !strings.Contains(a.err.Message, "2501") {
			w.Errorf("answered %+v", a)
		}
		w.wantListed(movement.ReasonAccount)
		w.up.quote = nil
		w.want(w.create("A"), "Success")
	})
}

// TestFeeIsKnownAfterACrash: also where the process ends in the call.
func TestFeeIsKnownAfterACrash(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		w.up.quote = func(_ sdk.Quote, q sdk.Quoted) sdk.Quoted { q.Cost = sending + bankFee + 4_000; return q }
		w.limits.HigherFees = true
		w.up.before = func(sdk.Call) { panic(crash{}) }
		w.create("A")
		w.wantListed(movement.ReasonFee)
	})
}

// TestNameMatch is answered and kept, and a policy hears of it before anything is
// claimed.
func TestNameMatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		given any
		told  string
		match any
		json  string
	}{
		"the same":       {"Bpk. Budi Santoso", holder, true, "true"},
		"another":        {"Siti Aminah", holder, false, "false"},
		"none given":     {nil, holder, nil, "null"},
		"none told":      {"Budi Santoso", "", nil, "null"},
		"told in masks":  {"Budi Santoso", "BUD* SANT***", true, "true"},
		"told in a mask": {"Siti Aminah", "BUD* SANT***", false, "false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, transfers, func(w *world) {
				w.up.quote = func(_ sdk.Quote, q sdk.Quoted) sdk.Quoted { q.Name = c.told; return q }
				var heard []map[string]any
				w.reconsider = func(quote map[string]any) error {
					heard = append(heard, quote)
					return fault.New(fault.PolicyDenied, "The holder is somebody else.")
				}
				r := w.request("A", "account_name", c.given)
				denied := w.sends(w.Engine, r)
				w.wantFault(denied, fault.PolicyDenied, fault.SentNo)
				if _, there := w.latest(r); there || denied.err.Message != "The holder is somebody else." || denied.err.Reference != "A" {
					w.Errorf("claimed: %t; %v names %q", there, denied.err, denied.err.Reference)
				}
				w.reconsider = func(quote map[string]any) error { heard = append(heard, quote); return nil }
				r = w.request("A", "account_name", c.given)
				a := w.sends(w.Engine, r)
				w.truthful(r, a)
				if !strings.HasSuffix(a.data, `"name_match":`+c.json+`}`) {
					w.Errorf("answered %s", a.data)
				}
				quote := map[string]any{"fee": int64(bankFee), "name_match": c.match, "destination": "014/2460888509"}
				if want := []map[string]any{quote, quote}; !reflect.DeepEqual(heard, want) {
					w.Errorf("the policy heard %v, want %v", heard, want)
				}
				w.wantSame(w.create("A", "account_name", c.given), a, 1)
				if len(heard) != 2 {
					w.Error("the policy is asked about a replay")
				}
			})
		})
	}
}

// TestReconsiderThatFails: what a policy can't judge is not claimed.
func TestReconsiderThatFails(t *testing.T) {
	t.Parallel()
	inMemory(t, transfers, func(w *world) {
		w.reconsider = func(map[string]any) error { return errors.New("the policy is broken") }
		for _, reference := range []string{"A", ""} {
			w.wantFault(w.create(reference), fault.Internal, fault.SentNo)
		}
		w.wantMoved(0)
	})
}

// TestTransferStatus is asked by any name that the merchant knows.
func TestTransferStatus(t *testing.T) {
	t.Parallel()
	for _, path := range []string{walletPath, bankPath} {
		for _, reference := range []string{"A", ""} {
			t.Run(path+" "+reference, func(t *testing.T) {
				t.Parallel()
				onBoth(t, transfers, func(w *world) {
					w.path, w.up.way = path, way{after: 5 * time.Minute}
					w.want(w.create(reference), "Pending")
					r := w.request(reference)
					for range 2 { // pending, and then done
						m, _ := w.latest(r)
						names := map[string]string{"refId": m.ID.Compact(), "txId": m.ID.Compact(), "ref_id": m.ID.Compact(), "tx_id": m.ID.String()}
						if reference != "" {
							names["external_id"] = reference
						}
						for name, value := range names {
							if a := w.statusBy(name, value); a.data != statusOf(m) || a.replayed {
								w.Errorf("by %s: %s (%v), want %s", name, a.data, a.err, statusOf(m))
							}
						}
						w.work(m.Reference, time.Hour)
					}
					w.addUp()
				})
			})
		}
	}
}

// TestTransferStatusOfNothing: what is not this merchant's in this mode is nowhere.
func TestTransferStatusOfNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		w.create("A")
		m := w.stored("A")
		other := w.connected(w.merchant().ID(), "", 1)
		for _, name := range append([]string{"external_id"}, ourNames...) {
			value := m.ID.Compact()
			if name == "external_id" {
				value = "A"
			}
			r := w.asks(transferStatusPath, name, value)
			w.want(w.run(r), "Success")
			r.Identity.Mode = "test"
			w.wantFault(w.run(r), fault.NotFound, fault.SentNo)
			r.Identity.Mode, r.Identity.Account = "live", other
			w.wantFault(w.run(r), fault.NotFound, fault.SentNo)
			for _, stray := range []string{movement.NewID().Compact(), "x", strings.Repeat("0", 32)} {
				w.wantFault(w.statusBy(name, stray), fault.NotFound, fault.SentNo)
			}
		}
		w.wantFault(w.statusBy(), fault.InvalidRequest, fault.SentNo, "external_id")
		w.up.way = wayNamed("not sent")
		w.want(w.create("B"), notSentLater)
		unsent := w.stored("B")
		w.wantFault(w.statusBy("external_id", "B"), fault.NotFound, fault.SentNo)
		w.wantFault(w.statusBy("txId", unsent.ID.Compact()), fault.NotFound, fault.SentNo)
	})
}

// TestTransferStatusByManyNames: all must be those of one transfer.
func TestTransferStatusByManyNames(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		w.create("A")
		w.create("B")
		a, b := w.stored("A").ID.Compact(), w.stored("B").ID.Compact()
		w.want(w.statusBy("external_id", "A", "refId", a, "txId", a), "Success")
		w.wantFault(w.statusBy("external_id", "A", "refId", b), fault.InvalidRequest, fault.SentNo, "refId")
		w.wantFault(w.statusBy("external_id", "A", "refId", a, "txId", "x"), fault.InvalidRequest, fault.SentNo, "txId")
		w.wantFault(w.statusBy("refId", a, "txId", b), fault.InvalidRequest, fault.SentNo, "txId")
	})
}

// TestIdempotencyKeyIsTheReference of a transfer whose body has none.
func TestIdempotencyKeyIsTheReference(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		r := w.request("")
		r.IdempotencyKey = "A"
		first := w.run(r)
		if !strings.Contains(first.data, `"external_id":"A"`) {
			w.Errorf("answered %s", first.data)
		}
		w.wantSame(w.run(r), first, 1)
		w.wantSame(w.create("A"), first, 1)
		w.wantNew(w.create(""), first, 2)
	})
}

// TestStoredTransfer: what admission refuses is answered as it stands where its
// reference has something, and nothing is sent or promised anew.
func TestStoredTransfer(t *testing.T) {
	t.Parallel()
	for way, word := range map[string]string{"works": "Success", "pending, then done": "Pending", "refused": refusedNever, "unknown, made": "Pending", "not sent": ""} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			onBoth(t, transfers, func(w *world) {
				w.up.way = wayNamed(way)
				stored := func(reference string) string {
					answer, found, err := w.Stored(w.Context(), w.request(reference))
					if !found {
						return ""
					}
					a := said{replayed: answer.Replayed}
					if err != nil {
						a.err = fault.From(err)
					} else if encoded, ok := answer.Data.(json.RawMessage); ok {
						a.data = string(encoded)
					}
					w.truthful(w.request(reference), a)
					if !a.replayed {
						w.Error("it is not marked as a replay")
					}
					return a.word()
				}
				if got := stored("A"); got != "" {
					w.Errorf("before there is one: %s", got)
				}
				w.create("A")
				w.create("")
				if got := stored("A"); got != word {
					w.Errorf("got %s, want %s", got, word)
				}
				if got := stored(""); got != "" {
					w.Errorf("without a reference: %s", got)
				}
				if w.addUp(); len(w.up.calls) != 2 {
					w.Errorf("called %d times", len(w.up.calls))
				}
			})
		})
	}
}
