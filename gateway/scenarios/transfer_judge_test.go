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
				inPurses(t, func(p *purse) {
					p.limits, p.up.quote = generous(), c.quote
					r := p.transferring(reference)
					a := p.sends(p.Engine, r)
					p.want(a, c.word)
					p.truthful(r, a)
					p.wantCode(a, a.err.Code, fault.SentNo, c.fields...)
					if _, there := p.latest(r); there || len(p.up.calls) > 0 || a.receipt != (movement.ID{}) {
						p.Errorf("it is claimed: %t, called %d times", there, len(p.up.calls))
					}
					p.wantListed(c.listed...)
					p.wantTold()
					p.up.quote = nil
					r.Body["amount"] = number(2 * sending) // its reference is free for anything
					p.want(p.sends(p.Engine, r), "Success")
					p.wantMoved(1)
				})
			})
		}
	}
}

// TestTransferNotReady: without a provider or a connection nothing is asked, and what
// exists is answered all the same.
func TestTransferNotReady(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		first := p.transfer("A")
		p.up.available = errNoPlugin
		p.want(p.transfer("B"), notSentLater)
		p.wantSame(p.transfer("A"), first, 1)
		p.up.available = nil
		p.account = p.merchant() // of another provider alone
		p.want(p.transfer("B"), notSentLater)
		if len(p.up.quotes) != 1 {
			p.Errorf("quoted %d times", len(p.up.quotes))
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
		"dearer": {sending + bankFee + 4_000, []string{movement.ReasonFee}}, "for nothing": {sending, []string{movement.ReasonFee}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inPurses(t, func(p *purse) {
				p.up.quote = func(_ sdk.Quote, q sdk.Quoted) sdk.Quoted { q.Cost = c.cost; return q }
				r := p.transferring("A")
				a := p.sends(p.Engine, r)
				p.want(a, "Success")
				p.truthful(r, a)
				p.transfer("A")
				p.wantListed(c.listed...)
				if m := p.stored("A"); m.Fee != bankFee || !strings.Contains(a.data, `"fee":2500`) {
					p.Errorf("a fee of %v, answered %s", m.Fee, a.data)
				}
				if p.addUp(); c.listed != nil && !strings.Contains(p.attention(movement.ReasonFee).Detail, "2500") {
					p.Errorf("the operators read %q", p.attention(movement.ReasonFee).Detail)
				}
			})
		})
	}
}

// TestFeeIsKnownAfterACrash: also where the process ends in the call.
func TestFeeIsKnownAfterACrash(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		p.up.quote = func(_ sdk.Quote, q sdk.Quoted) sdk.Quoted { q.Cost = sending + bankFee + 4_000; return q }
		p.up.before = func() { panic(crash{}) }
		p.transfer("A")
		p.wantListed(movement.ReasonFee)
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
			inPurses(t, func(p *purse) {
				p.up.quote = func(_ sdk.Quote, q sdk.Quoted) sdk.Quoted { q.Name = c.told; return q }
				var heard []map[string]any
				p.reconsider = func(quote map[string]any) error {
					heard = append(heard, quote)
					return fault.New(fault.PolicyDenied, "The holder is somebody else.")
				}
				r := p.transferring("A", "account_name", c.given)
				denied := p.sends(p.Engine, r)
				p.wantCode(denied, fault.PolicyDenied, fault.SentNo)
				if _, there := p.latest(r); there || denied.err.Message != "The holder is somebody else." || denied.err.Reference != "A" {
					p.Errorf("claimed: %t; %v names %q", there, denied.err, denied.err.Reference)
				}
				p.reconsider = func(quote map[string]any) error { heard = append(heard, quote); return nil }
				r = p.transferring("A", "account_name", c.given)
				a := p.sends(p.Engine, r)
				p.truthful(r, a)
				if !strings.HasSuffix(a.data, `"name_match":`+c.json+`}`) {
					p.Errorf("answered %s", a.data)
				}
				quote := map[string]any{"fee": int64(bankFee), "name_match": c.match}
				if want := []map[string]any{quote, quote}; !reflect.DeepEqual(heard, want) {
					p.Errorf("the policy heard %v, want %v", heard, want)
				}
				p.wantSame(p.transfer("A", "account_name", c.given), a, 1)
				if len(heard) != 2 {
					p.Error("the policy is asked about a replay")
				}
			})
		})
	}
}

// TestReconsiderThatFails: what a policy can't judge is not claimed.
func TestReconsiderThatFails(t *testing.T) {
	t.Parallel()
	inPurse(t, func(p *purse) {
		p.reconsider = func(map[string]any) error { return errors.New("the policy is broken") }
		for _, reference := range []string{"A", ""} {
			p.wantCode(p.transfer(reference), fault.Internal, fault.SentNo)
		}
		p.wantMoved(0)
	})
}

// TestTransferStatus is asked by any name that the merchant knows.
func TestTransferStatus(t *testing.T) {
	t.Parallel()
	for _, path := range []string{walletPath, bankPath} {
		for _, reference := range []string{"A", ""} {
			t.Run(path+" "+reference, func(t *testing.T) {
				t.Parallel()
				inPurses(t, func(p *purse) {
					p.path, p.up.way = path, way{after: 5 * time.Minute}
					p.want(p.transfer(reference), "Pending")
					r := p.transferring(reference)
					for range 2 { // pending, and then done
						m, _ := p.latest(r)
						names := map[string]string{"refId": m.ID.Compact(), "txId": m.ID.Compact(), "ref_id": m.ID.Compact(), "tx_id": m.ID.String()}
						if reference != "" {
							names["external_id"] = reference
						}
						for name, value := range names {
							if a := p.stateOf(name, value); a.data != statusOf(m) || a.replayed {
								p.Errorf("by %s: %s (%v), want %s", name, a.data, a.err, statusOf(m))
							}
						}
						p.work(m.Reference, time.Hour)
					}
					p.addUp()
				})
			})
		}
	}
}

// TestTransferStatusOfNothing: what is not this merchant's in this mode is nowhere.
func TestTransferStatusOfNothing(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		p.transfer("A")
		m := p.stored("A")
		other := p.connected(p.merchant().ID(), 1)
		for _, name := range append([]string{"external_id"}, ourNames...) {
			value := m.ID.Compact()
			if name == "external_id" {
				value = "A"
			}
			r := p.asks(transferStatusPath, name, value)
			p.want(p.run(r), "Success")
			r.Identity.Mode = "test"
			p.wantCode(p.run(r), fault.NotFound, fault.SentNo)
			r.Identity.Mode, r.Identity.Account = "live", other
			p.wantCode(p.run(r), fault.NotFound, fault.SentNo)
			for _, stray := range []string{movement.NewID().Compact(), "x", strings.Repeat("0", 32)} {
				p.wantCode(p.stateOf(name, stray), fault.NotFound, fault.SentNo)
			}
		}
		p.wantCode(p.stateOf(), fault.InvalidRequest, fault.SentNo, "external_id")
		p.up.way = wayNamed("not sent")
		p.want(p.transfer("B"), notSentLater)
		unsent := p.stored("B")
		p.wantCode(p.stateOf("external_id", "B"), fault.NotFound, fault.SentNo)
		p.wantCode(p.stateOf("txId", unsent.ID.Compact()), fault.NotFound, fault.SentNo)
	})
}

// TestTransferStatusByManyNames: all must be those of one transfer.
func TestTransferStatusByManyNames(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		p.transfer("A")
		p.transfer("B")
		a, b := p.stored("A").ID.Compact(), p.stored("B").ID.Compact()
		p.want(p.stateOf("external_id", "A", "refId", a, "txId", a), "Success")
		p.wantCode(p.stateOf("external_id", "A", "refId", b), fault.InvalidRequest, fault.SentNo, "refId")
		p.wantCode(p.stateOf("external_id", "A", "refId", a, "txId", "x"), fault.InvalidRequest, fault.SentNo, "txId")
		p.wantCode(p.stateOf("refId", a, "txId", b), fault.InvalidRequest, fault.SentNo, "txId")
	})
}

// TestIdempotencyKeyIsTheReference of a transfer whose body has none.
func TestIdempotencyKeyIsTheReference(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		r := p.transferring("")
		r.IdempotencyKey = "A"
		first := p.run(r)
		if !strings.Contains(first.data, `"external_id":"A"`) || first.receipt != (movement.ID{}) {
			p.Errorf("answered %s, with the receipt %s", first.data, first.receipt)
		}
		p.wantSame(p.run(r), first, 1)
		p.wantSame(p.transfer("A"), first, 1)
		p.wantNew(p.transfer(""), first, 2)
	})
}

// TestStoredTransfer: what admission refuses is answered as it stands where its
// reference has something, and nothing is sent or promised anew.
func TestStoredTransfer(t *testing.T) {
	t.Parallel()
	for way, word := range map[string]string{"done": "Success", "pending, then done": "Pending", "refused": refusedNever, "unknown, moved": "Pending", "not sent": ""} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			inPurses(t, func(p *purse) {
				p.up.way = wayNamed(way)
				stored := func(reference string) string {
					answer, found, err := p.Stored(p.Context(), p.transferring(reference))
					if !found {
						return ""
					}
					a := said{replayed: answer.Replayed}
					if err != nil {
						a.err = fault.From(err)
					} else if encoded, ok := answer.Data.(json.RawMessage); ok {
						a.data = string(encoded)
					}
					p.truthful(p.transferring(reference), a)
					if !a.replayed {
						p.Error("it is not marked as a replay")
					}
					return a.word()
				}
				if got := stored("A"); got != "" {
					p.Errorf("before there is one: %s", got)
				}
				p.transfer("A")
				p.transfer("")
				if got := stored("A"); got != word {
					p.Errorf("got %s, want %s", got, word)
				}
				if got := stored(""); got != "" {
					p.Errorf("without a reference: %s", got)
				}
				if p.addUp(); len(p.up.calls) != 2 {
					p.Errorf("called %d times", len(p.up.calls))
				}
			})
		})
	}
}
