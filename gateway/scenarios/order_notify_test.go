package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestCheaperThanAgreed: a product may cost less than was agreed, a bill may not.
func TestCheaperThanAgreed(t *testing.T) {
	t.Parallel()
	for _, sku := range []string{prepaidSKU, billSKU} {
		t.Run(sku, func(t *testing.T) {
			t.Parallel()
			inMemory(t, orders, func(w *world) {
				w.sku = sku
				w.up.way = way{after: time.Second, more: -1}
				w.want(w.create("A"), "Pending")
				m := w.stored("A")
				w.pass(time.Second)
				w.hear(updatesOf(orders, m.UpstreamReference(), m.Cost)["less"])
				if sku == prepaidSKU {
					w.want(w.status("A"), "Success")
					w.wantListed()
				} else {
					w.want(w.status("A"), "Pending")
					w.wantListed(movement.ReasonAmount)
				}
				w.addUp()
			})
		})
	}
}

// TestOrderUpdateBeforeTheAnswer: a notification is faster than the call that it is
// about, and agrees with it or not.
func TestOrderUpdateBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	notSent := saying(sdk.DidNotSend(sdk.BlameNone, "no process"))
	for name, c := range map[string]struct {
		news   string
		way    way
		status string
		listed []string
	}{
		"done, then done":     {"done", way{}, "Success", nil},
		"done, then pending":  {"done", way{says: saying(sdk.Result{Outcome: sdk.Pending, Data: json.RawMessage(`{}`)})}, "Success", nil},
		"done, then unknown":  {"done", way{says: cut}, "Success", nil},
		"done, then not sent": {"done", way{says: notSent}, "Success", nil},
		"done, then refused":  {"done", way{says: saying(sdk.Refuse(sdk.RefuseOther, "No."))}, "Success", []string{movement.ReasonContradiction}},
		"failed, then done":   {"failed", way{fails: true, says: done(0)}, "Failed", []string{movement.ReasonContradiction}},
		"failed, then failed": {"failed", way{fails: true}, "Failed", nil},
		"open, then done":     {"open", way{}, "Success", nil},
		"open, then not sent": {"open", way{after: time.Hour, says: notSent}, "Pending", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, orders, func(w *world) {
				w.up.way = c.way
				w.up.after = func(sdk.Call) {
					call := w.up.calls[0]
					w.hear(updatesOf(orders, call.Reference, call.Cost)[c.news])
				}
				a := w.create("A")
				w.truthful(w.request("A"), a)
				w.want(a, "Pending")
				w.want(w.status("A"), c.status)
				w.wantListed(c.listed...)
				w.addUp()
			})
		})
	}
}

// TestTakenBackOnce: the same return on many connections at once is posted and
// told once, and stands in the status.
func TestTakenBackOnce(t *testing.T) {
	t.Parallel()
	for _, sku := range []string{prepaidSKU, billSKU} {
		t.Run(sku, func(t *testing.T) {
			t.Parallel()
			onBoth(t, orders, func(w *world) {
				w.sku = sku
				w.want(w.create("A"), "Pending")
				m := w.stored("A")
				w.wantBalance(opening-w.priceOf(), 0)
				w.pass(time.Hour)
				back := w.now()
				f := updatesOf(orders, m.UpstreamReference(), m.Cost)["failed"]
				w.up.ack = sdk.Acknowledgement{Status: 200, Updates: []sdk.StatusUpdate{f, f}}
				c, _ := w.platformAccount().Connection(tenants.Live, ppob)
				var senders sync.WaitGroup
				for range 20 {
					senders.Go(func() {
						if _, err := w.notifyAt(w.Context(), ppob, c.NotifyToken); err != nil {
							w.Error(err)
						}
					})
				}
				senders.Wait()
				w.wantBalance(opening, 0)
				w.wantListed(movement.ReasonReturned)
				want := fmt.Sprintf(`{"ref_id":"A","sku":%q,"target":"081200001111","status":"Failed","sn":"SN-%s","returned_amount":%d,"returned_at":%q}`,
					sku, m.UpstreamReference(), m.Amount, lifecycle.Stamp(back))
				if a := w.status("A"); a.data != want {
					w.Errorf("got  %s\nwant %s", a.data, want)
				}
				w.addUp()
			})
		})
	}
}

// TestOrdersOnOtherRoutes: a route speaks of the orders of its own account: the
// platform's of all that used it, a merchant's own of that merchant's.
func TestOrdersOnOtherRoutes(t *testing.T) {
	t.Parallel()
	onBoth(t, orders, func(w *world) {
		w.up.way = way{after: time.Hour}
		platformed := w.account
		w.want(w.create("A"), "Pending")
		of := func(reference string) sdk.StatusUpdate {
			m := w.stored(reference)
			return updatesOf(orders, m.UpstreamReference(), m.Cost)["failed"]
		}
		first := of("A")
		own, others := w.connected(w.merchant().ID(), "own", 1), w.connected(w.merchant().ID(), "others", 1)
		w.account = own
		w.want(w.create("A"), "Pending")
		second := of("A")
		w.hearOn(own, first)
		w.hearOn(others, first, second)
		w.hear(second)
		w.want(w.run(w.asks(orderStatusPath, "ref_id", "A")), "Pending")
		w.wantListed(movement.ReasonUnknown)
		w.account = platformed
		w.hearOn(w.connected(platformed.ID(), "came later", 1), first) // its orders of before are the platform's
		w.want(w.run(w.asks(orderStatusPath, "ref_id", "A")), "Pending")
		w.wantListed(movement.ReasonUnknown)
		w.wantBalance(opening-prepaidPrice-markup, 0)
		w.account = others
		w.wantListed(movement.ReasonUnknown, movement.ReasonUnknown)
		w.hearOn(own, second)
		w.hear(first)
		for _, account := range []*tenants.Account{own, platformed} {
			w.account = account
			w.want(w.run(w.asks(orderStatusPath, "ref_id", "A")), "Failed")
		}
		w.wantBalance(opening, 0)
	})
}

// TestOwnAccount: a merchant that has its own account at the provider pays there:
// nothing is posted, whatever becomes of its orders.
func TestOwnAccount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		way   way
		word  string
		state movement.State
	}{
		"done":     {way{}, "Pending", movement.Succeeded},
		"failed":   {way{fails: true}, "Pending", movement.Failed},
		"not sent": {way{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameAccount, "empty"))}, "PROVIDER_UNAVAILABLE no later", movement.NotSubmitted},
		"unknown":  {way{after: time.Minute, says: cut}, "Pending", movement.Acknowledged},
	} {
		for _, sku := range []string{prepaidSKU, billSKU} {
			t.Run(name+", "+sku, func(t *testing.T) {
				t.Parallel()
				onBoth(t, orders, func(w *world) {
					w.poor(1)
					w.account = w.connected(w.account.ID(), "own", 1)
					w.sku, w.up.way = sku, c.way
					var pairs []any
					if sku == billSKU { // without what the platform would add
						pairs = []any{"qty", json.Number(billTotal.String())}
					}
					w.want(w.create("A", pairs...), c.word)
					m := w.stored("A")
					if m.State != c.state || m.Charge != movement.Unpaid || m.ConnectionAccount != "own" || accountOf(w.up.calls[0].Connection) != "own" {
						w.Errorf("stands at %s, charged %q, on %q", m.State, m.Charge, m.ConnectionAccount)
					}
					w.addUp()
					w.work("A", time.Hour)
					if m = w.stored("A"); m.State == movement.Succeeded {
						w.hearOn(w.account, updatesOf(orders, m.UpstreamReference(), m.Cost)["failed"])
					}
					w.wantBalance(1, 0)
					w.addUp()
				})
			})
		}
	}
}

// TestOrderStatusAnswer: status and message stand at the top, and sn where there
// is one.
func TestOrderStatusAnswer(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		told := func(path string) Answer {
			t.Helper()
			r := w.asks(path, "ref_id", "A")
			if path == orderPath {
				r = w.request("A")
			}
			a, err := w.Engine.Run(w.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		want := func(a Answer, status, message, data string) {
			t.Helper()
			if got := string(a.Data.(json.RawMessage)); a.Status != status || a.Message != message || got != data {
				t.Errorf("got %q, %q, %s\nwant %q, %q, %s", a.Status, a.Message, got, status, message, data)
			}
		}
		const pending = `{"ref_id":"A","sku":"xld10","target":"081200001111","status":"Pending"}`
		w.up.way = way{after: time.Minute}
		want(told(orderPath), "", "The order is being processed.", pending)
		want(told(orderStatusPath), "Pending", "The order is being processed.", pending)
		w.pass(time.Minute)
		m := w.stored("A")
		done := strings.Replace(pending, `Pending"`, `Success","sn":"SN-`+m.UpstreamReference()+`"`, 1)
		want(told(orderStatusPath), "Success", "Sukses", done)
		want(told(orderPath), "", "The order is being processed.", pending)
		w.wantCode(w.run(w.asks(orderStatusPath, "ref_id", "B")), fault.NotFound)
		if _, err := w.Checkout(w.Context(), m.ID.String()); fault.From(err).Code != fault.NotFound {
			t.Errorf("an order is shown as a payment: %v", err)
		}
	})
}

// TestBalanceAnswer: what can be spent and what is held, and nothing of others.
func TestBalanceAnswer(t *testing.T) {
	t.Parallel()
	onBoth(t, orders, func(w *world) {
		want := func(balance, held money.Amount) {
			w.Helper()
			r := w.asks("/balance")
			if a := w.run(r); a.data != fmt.Sprintf(`{"balance":%d,"held":%d,"currency":"IDR"}`, balance, held) {
				w.Errorf("got %s %v, want %v and %v", a.data, a.err, balance, held)
			}
			r.Identity.Mode = tenants.Test
			if a := w.run(r); a.data != `{"balance":0,"held":0,"currency":"IDR"}` {
				w.Errorf("in test mode %s %v", a.data, a.err)
			}
		}
		want(opening, 0)
		w.sku, w.up.way = billSKU, way{after: time.Minute}
		w.create("A")
		want(opening-w.priceOf(), w.priceOf())
		w.work("A", 10*time.Minute)
		want(opening-w.priceOf(), 0)
		w.sku = prepaidSKU
		w.create("B")
		want(opening-billTotal-markup-prepaidPrice-markup, 0)
		w.account = w.merchant()
		want(0, 0)
	})
}

// TestCachedLists: a list is asked for once by all who use one account, and again
// when it is old.
func TestCachedLists(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		var asked []string
		w.up.ask = func(call sdk.Call) sdk.Result {
			asked = append(asked, call.Connection.MerchantID+" "+string(call.Body))
			return sdk.Finished("", w.up.products)
		}
		for range 3 {
			w.want(w.create("A"), "Pending")
			for _, kind := range []string{"prepaid", "pasca"} {
				if a := w.run(w.asks(productsPath, "type", kind, "unheard", kind)); a.err != nil {
					t.Error(a.err)
				}
			}
		}
		w.pass(5 * time.Minute)
		w.run(w.asks(productsPath))
		w.account = w.connected(w.merchant().ID(), "own", 1)
		w.run(w.asks(productsPath))
		if want := []string{"platform {}", "platform {}", string(w.account.ID()) + " {}"}; !slices.Equal(asked, want) {
			t.Errorf("asked %q, want %q", asked, want)
		}
	})
}
