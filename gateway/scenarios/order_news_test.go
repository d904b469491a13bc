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

// orderNews are what a provider may say of an order, in whatever order and
// however often. The order was bought at cost.
func orderNews(reference string, cost money.Amount) map[string]sdk.StatusUpdate {
	p := &purchase{reference: reference, cost: cost}
	done, failed, open := p.says(sdk.StatusDone), p.says(sdk.StatusFailed), p.says(sdk.StatusPending)
	again, dear, cheap, free, dollars, stray := done, done, done, done, done, done
	again.EventID += "-again"
	dear.Amount, cheap.Amount, free.Amount, dollars.Currency = cost+1, cost-1, 0, "USD"
	stray.Reference = ofAnotherRequest(reference)
	expired := open
	expired.Status = sdk.StatusExpired
	return map[string]sdk.StatusUpdate{
		"done": done, "failed": failed, "open": open, "done again": again, "dear": dear, "cheap": cheap, "free": free,
		"dollars": dollars, "stray": stray, "expired": expired,
		"no word": {Reference: reference}, "not found": {Reference: reference, Status: sdk.StatusNotFound},
	}
}

// ofAnotherRequest is the upstream reference of the same movement, were its request
// another.
func ofAnotherRequest(reference string) string {
	last := "0"
	if strings.HasSuffix(reference, last) {
		last = "1"
	}
	return reference[:len(reference)-1] + last
}

// TestOrderNews: notifications of an order that is pending.
func TestOrderNews(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]struct {
		status string
		listed []string
		events []string
	}{
		"open, open":               {"Pending", nil, nil},
		"done":                     {"Success", nil, []string{orderEnds + " Success"}},
		"done, done, open, done":   {"Success", nil, []string{orderEnds + " Success"}},
		"open, done, open":         {"Success", nil, []string{orderEnds + " Success"}},
		"done, done again":         {"Success", []string{movement.ReasonContradiction}, []string{orderEnds + " Success"}},
		"failed":                   {"Failed", nil, []string{orderEnds + " Failed"}},
		"failed, failed, open":     {"Failed", nil, []string{orderEnds + " Failed"}},
		"failed, done":             {"Failed", []string{movement.ReasonContradiction}, []string{orderEnds + " Failed"}},
		"failed, done, done":       {"Failed", []string{movement.ReasonContradiction}, []string{orderEnds + " Failed"}},
		"done, failed":             {"Success", []string{movement.ReasonReversed}, []string{orderEnds + " Success", orderTaken + " Success"}},
		"done, failed, failed":     {"Success", []string{movement.ReasonReversed}, []string{orderEnds + " Success", orderTaken + " Success"}},
		"done, failed, done":       {"Success", []string{movement.ReasonReversed}, []string{orderEnds + " Success", orderTaken + " Success"}},
		"dear":                     {"Pending", []string{movement.ReasonAmount}, nil},
		"free":                     {"Pending", []string{movement.ReasonAmount}, nil},
		"dear, dear, done":         {"Success", []string{movement.ReasonAmount}, []string{orderEnds + " Success"}},
		"done, cheap":              {"Success", []string{movement.ReasonAmount}, []string{orderEnds + " Success"}},
		"done, cheap, cheap, done": {"Success", []string{movement.ReasonAmount}, []string{orderEnds + " Success"}},
		"done, dear":               {"Success", []string{movement.ReasonAmount}, []string{orderEnds + " Success"}},
		"dollars":                  {"Pending", []string{movement.ReasonCurrency}, nil},
		"stray":                    {"Pending", []string{movement.ReasonContradiction}, nil},
		"expired":                  {"Pending", []string{movement.ReasonContradiction}, nil},
		"no word, not found, done": {"Success", nil, []string{orderEnds + " Success"}},
	} {
		for _, sku := range []string{prepaidSKU, billSKU} {
			t.Run(says+", "+sku, func(t *testing.T) {
				t.Parallel()
				inShop(t, func(s *shop) {
					s.sku = sku
					s.up.deal = deal{after: time.Second, fails: strings.HasPrefix(says, "failed")}
					s.want(s.order("A"), "Pending")
					m := s.stored("A")
					s.pass(time.Second)
					for what := range strings.SplitSeq(says, ", ") {
						s.hears(s.platformAccount(), orderNews(m.UpstreamReference(), m.Cost)[what])
						s.pass(time.Second)
					}
					s.want(s.stateOf("A"), c.status)
					s.wantListed(c.listed...)
					s.wantTold(c.events...)
					s.addUp()
				})
			})
		}
	}
}

// TestCheaperThanAgreed: a product may cost less than was agreed, a bill may not.
func TestCheaperThanAgreed(t *testing.T) {
	t.Parallel()
	for _, sku := range []string{prepaidSKU, billSKU} {
		t.Run(sku, func(t *testing.T) {
			t.Parallel()
			inShop(t, func(s *shop) {
				s.sku = sku
				s.up.deal = deal{after: time.Second, dearer: -1}
				s.want(s.order("A"), "Pending")
				m := s.stored("A")
				s.pass(time.Second)
				s.hears(s.platformAccount(), orderNews(m.UpstreamReference(), m.Cost)["cheap"])
				if sku == prepaidSKU {
					s.want(s.stateOf("A"), "Success")
					s.wantListed()
				} else {
					s.want(s.stateOf("A"), "Pending")
					s.wantListed(movement.ReasonAmount)
				}
				s.addUp()
			})
		})
	}
}

// TestNewsBeforeTheAnswer: a notification is faster than the call that it is
// about, and agrees with it or not.
func TestNewsBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	notSent := saying(sdk.DidNotSend(sdk.BlameNone, "no process"))
	for name, c := range map[string]struct {
		news   string
		deal   deal
		status string
		listed []string
	}{
		"done, then done":     {"done", deal{}, "Success", nil},
		"done, then pending":  {"done", deal{says: saying(sdk.Result{Outcome: sdk.Pending, Data: json.RawMessage(`{}`)})}, "Success", nil},
		"done, then unknown":  {"done", deal{says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}, "Success", nil},
		"done, then not sent": {"done", deal{says: notSent}, "Success", nil},
		"done, then refused":  {"done", deal{says: saying(sdk.Refuse(sdk.RefuseOther, "No."))}, "Success", []string{movement.ReasonContradiction}},
		"failed, then done":   {"failed", deal{fails: true, says: costing(0)}, "Failed", []string{movement.ReasonContradiction}},
		"failed, then failed": {"failed", deal{fails: true}, "Failed", nil},
		"open, then done":     {"open", deal{}, "Success", nil},
		"open, then not sent": {"open", deal{after: time.Hour, says: notSent}, "Pending", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShops(t, func(s *shop) {
				s.up.deal = c.deal
				s.up.after = func() {
					call := s.up.calls[0]
					s.hears(s.platformAccount(), orderNews(call.Reference, call.Cost)[c.news])
				}
				a := s.order("A")
				s.truthful("A", a)
				s.want(a, "Pending")
				s.want(s.stateOf("A"), c.status)
				s.wantListed(c.listed...)
				s.addUp()
			})
		})
	}
}

// TestTakenBackOnce: the same reversal on many connections at once is posted and
// told once, and stands in the status.
func TestTakenBackOnce(t *testing.T) {
	t.Parallel()
	for _, sku := range []string{prepaidSKU, billSKU} {
		t.Run(sku, func(t *testing.T) {
			t.Parallel()
			inShops(t, func(s *shop) {
				s.sku = sku
				s.want(s.order("A"), "Pending")
				m := s.stored("A")
				s.wantBalance(opening-s.priceOf(), 0)
				s.pass(time.Hour)
				back := s.now()
				f := orderNews(m.UpstreamReference(), m.Cost)["failed"]
				s.up.ack = sdk.Acknowledgement{Status: 200, Updates: []sdk.StatusUpdate{f, f}}
				c, _ := s.platformAccount().Connection(tenants.Live, ppob)
				var senders sync.WaitGroup
				for range 20 {
					senders.Go(func() {
						if _, err := s.notifyAt(s.Context(), ppob, c.NotifyToken); err != nil {
							s.Error(err)
						}
					})
				}
				senders.Wait()
				s.wantBalance(opening, 0)
				s.wantListed(movement.ReasonReversed)
				want := fmt.Sprintf(`{"ref_id":"A","sku":%q,"target":"081200001111","status":"Success","sn":"SN-%s","reversed_at":%q}`,
					sku, m.UpstreamReference(), lifecycle.Stamp(back))
				if a := s.stateOf("A"); a.data != want {
					s.Errorf("got  %s\nwant %s", a.data, want)
				}
				s.addUp()
			})
		})
	}
}

// TestOrdersOnOtherRoutes: a route speaks of the orders of its own account: the
// platform's of all that used it, a merchant's own of that merchant's.
func TestOrdersOnOtherRoutes(t *testing.T) {
	t.Parallel()
	inShops(t, func(s *shop) {
		s.up.deal = deal{after: time.Hour}
		platformed := s.account
		s.want(s.order("A"), "Pending")
		of := func(reference string) sdk.StatusUpdate {
			m := s.stored(reference)
			return orderNews(m.UpstreamReference(), m.Cost)["failed"]
		}
		first := of("A")
		own, others := s.connected(s.merchant().ID(), "own", 1), s.connected(s.merchant().ID(), "others", 1)
		s.account = own
		s.want(s.order("A"), "Pending")
		second := of("A")
		s.hears(own, first)
		s.hears(others, first, second)
		s.hears(s.platformAccount(), second)
		s.want(s.run(s.asks(orderStatusPath, "ref_id", "A")), "Pending")
		s.wantListed(movement.ReasonUnknown)
		s.account = platformed
		s.hears(s.connected(platformed.ID(), "came later", 1), first) // its orders of before are the platform's
		s.want(s.run(s.asks(orderStatusPath, "ref_id", "A")), "Pending")
		s.wantListed(movement.ReasonUnknown)
		s.wantBalance(opening-prepaidPrice-markup, 0)
		s.account = others
		s.wantListed(movement.ReasonUnknown, movement.ReasonUnknown)
		s.hears(own, second)
		s.hears(s.platformAccount(), first)
		for _, account := range []*tenants.Account{own, platformed} {
			s.account = account
			s.want(s.run(s.asks(orderStatusPath, "ref_id", "A")), "Failed")
		}
		s.wantBalance(opening, 0)
	})
}

// TestOwnAccount: a merchant that has its own account at the provider pays there:
// nothing is posted, whatever becomes of its orders.
func TestOwnAccount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		deal  deal
		word  string
		state movement.State
	}{
		"done":     {deal{}, "Pending", movement.Succeeded},
		"failed":   {deal{fails: true}, "Pending", movement.Failed},
		"not sent": {deal{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameAccount, "empty"))}, "PROVIDER_UNAVAILABLE no later", movement.NotSubmitted},
		"unknown":  {deal{after: time.Minute, says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}, "Pending", movement.Acknowledged},
	} {
		for _, sku := range []string{prepaidSKU, billSKU} {
			t.Run(name+", "+sku, func(t *testing.T) {
				t.Parallel()
				inShops(t, func(s *shop) {
					s.poor(1)
					s.account = s.connected(s.account.ID(), "own", 1)
					s.sku, s.up.deal = sku, c.deal
					var pairs []any
					if sku == billSKU { // without what the platform would add
						pairs = []any{"qty", json.Number(billTotal.String())}
					}
					s.want(s.order("A", pairs...), c.word)
					m := s.stored("A")
					if m.State != c.state || m.Charge != movement.Unpaid || m.ConnectionAccount != "own" || accountOf(s.up.calls[0].Connection) != "own" {
						s.Errorf("stands at %s, charged %q, on %q", m.State, m.Charge, m.ConnectionAccount)
					}
					s.addUp()
					s.work("A", time.Hour)
					if m = s.stored("A"); m.State == movement.Succeeded {
						s.hears(s.account, orderNews(m.UpstreamReference(), m.Cost)["failed"])
					}
					s.wantBalance(1, 0)
					s.addUp()
				})
			})
		}
	}
}

// TestOrderStatusAnswer: status and message stand at the top, and sn where there
// is one.
func TestOrderStatusAnswer(t *testing.T) {
	t.Parallel()
	inShop(t, func(s *shop) {
		told := func(path string) Answer {
			t.Helper()
			r := s.asks(path, "ref_id", "A")
			if path == orderPath {
				r = s.ordering("A")
			}
			a, err := s.Engine.Run(s.Context(), r)
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
		s.up.deal = deal{after: time.Minute}
		want(told(orderPath), "", "The order is being processed.", pending)
		want(told(orderStatusPath), "Pending", "The order is being processed.", pending)
		s.pass(time.Minute)
		m := s.stored("A")
		done := strings.Replace(pending, `Pending"`, `Success","sn":"SN-`+m.UpstreamReference()+`"`, 1)
		want(told(orderStatusPath), "Success", "Sukses", done)
		want(told(orderPath), "", "The order is being processed.", pending)
		s.wantCode(s.run(s.asks(orderStatusPath, "ref_id", "B")), fault.NotFound)
		if _, err := s.Checkout(s.Context(), m.ID.String()); fault.From(err).Code != fault.NotFound {
			t.Errorf("an order is shown as a payment: %v", err)
		}
	})
}

// TestBalanceAnswer: what can be spent and what is held, and nothing of others.
func TestBalanceAnswer(t *testing.T) {
	t.Parallel()
	inShops(t, func(s *shop) {
		want := func(balance, held money.Amount) {
			s.Helper()
			r := s.asks("/balance")
			if a := s.run(r); a.data != fmt.Sprintf(`{"balance":%d,"held":%d,"currency":"IDR"}`, balance, held) {
				s.Errorf("got %s %v, want %v and %v", a.data, a.err, balance, held)
			}
			r.Identity.Mode = tenants.Test
			if a := s.run(r); a.data != `{"balance":0,"held":0,"currency":"IDR"}` {
				s.Errorf("in test mode %s %v", a.data, a.err)
			}
		}
		want(opening, 0)
		s.sku, s.up.deal = billSKU, deal{after: time.Minute}
		s.order("A")
		want(opening-s.priceOf(), s.priceOf())
		s.work("A", 10*time.Minute)
		want(opening-s.priceOf(), 0)
		s.sku = prepaidSKU
		s.order("B")
		want(opening-billTotal-markup-prepaidPrice-markup, 0)
		s.account = s.merchant()
		want(0, 0)
	})
}

// TestCachedLists: a list is asked for once by all who use one account, and again
// when it is old.
func TestCachedLists(t *testing.T) {
	t.Parallel()
	inShop(t, func(s *shop) {
		var asked []string
		s.up.ask = func(call sdk.Call) sdk.Result {
			asked = append(asked, call.Connection.MerchantID+" "+string(call.Body))
			return sdk.Finished("", s.up.products)
		}
		for range 3 {
			s.want(s.order("A"), "Pending")
			for _, kind := range []string{"prepaid", "pasca"} {
				if a := s.run(s.asks(productsPath, "type", kind, "unheard", kind)); a.err != nil {
					t.Error(a.err)
				}
			}
		}
		s.pass(5 * time.Minute)
		s.run(s.asks(productsPath))
		s.account = s.connected(s.merchant().ID(), "own", 1)
		s.run(s.asks(productsPath))
		if want := []string{"platform {}", "platform {}", string(s.account.ID()) + " {}"}; !slices.Equal(asked, want) {
			t.Errorf("asked %q, want %q", asked, want)
		}
	})
}
