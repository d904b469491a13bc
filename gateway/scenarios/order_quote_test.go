package scenarios

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// TestReferenceFirst: what was ordered before is answered so, whatever has become
// of the product, the price, the balance and the provider since.
func TestReferenceFirst(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string]func(*world){
		"nothing":             func(*world) {},
		"product gone":        func(w *world) { w.stock(func(p *product) { p.SKU += "-old" }) },
		"product off":         func(w *world) { w.stock(func(p *product) { p.Available = false }) },
		"no list":             func(w *world) { w.shelf.away = fault.New(fault.ProviderUnavailable, "x") },
		"dearer":              func(w *world) { w.limits.Markup = policy.Markup{Default: 2 * markup} },
		"no balance":          func(w *world) { w.spend() },
		"provider down":       func(w *world) { w.up.available = errors.New("down") },
		"quotes fail":         func(w *world) { w.up.quote = func(sdk.Quote, sdk.Quoted) sdk.Quoted { return sdk.Quoted{} } },
		"failed meanwhile":    func(w *world) { w.hear(w.purchased("A").says(sdk.StatusFailed)) },
		"no connection":       func(w *world) { delete(w.others, "platform") },
		"another one's token": func(w *world) { w.connected("platform", "other", 2) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, orders, func(w *world) {
				w.sku = billSKU
				w.up.way = way{after: time.Hour, fails: name == "failed meanwhile"}
				first := w.create("A")
				w.want(first, "Pending")
				changes(w)
				quotes, before := len(w.up.quotes), w.balance()
				same := w.create("A")
				if same.data != first.data || !same.replayed {
					t.Errorf("first %s, then %s (replayed: %t, %v)", first.data, same.data, same.replayed, same.err)
				}
				w.wantCode(w.create("A", "target", "1", "sku", "nothing", "qty", nil), fault.DuplicateReference, "qty", "sku", "target")
				w.wantCode(w.create("A", "qty", json.Number("1")), fault.DuplicateReference, "qty")
				if stored, found, err := w.Stored(w.Context(), w.request("A")); !found || err != nil || string(stored.Data.(json.RawMessage)) != first.data {
					t.Errorf("for one who is refused there is %v, %t, %v", stored, found, err)
				}
				if len(w.up.calls) != 1 || len(w.up.quotes) != quotes || w.balance() != before {
					t.Errorf("called %d times, quoted %d times; the balance was %+v and is %+v", len(w.up.calls), len(w.up.quotes), before, w.balance())
				}
			})
		})
	}
}

// TestAmountOfAPricedProductIsIgnored: whatever is given as the amount of a product with a
// price of its own, it is the same order; of a bill it is not.
func TestAmountOfAPricedProductIsIgnored(t *testing.T) {
	t.Parallel()
	onBoth(t, orders, func(w *world) {
		w.sku = prepaidSKU
		for reference, qty := range map[string]any{"A": json.Number("5"), "B": nil} {
			first := w.create(reference, "qty", qty)
			w.want(first, "Pending")
			for _, other := range []any{json.Number("5"), json.Number("7"), nil} {
				if same := w.create(reference, "qty", other); same.data != first.data || !same.replayed {
					w.Errorf("%s with %v: %s (replayed: %t, %v)", reference, other, same.data, same.replayed, same.err)
				}
			}
			w.wantCode(w.create(reference, "qty", json.Number("7"), "target", "1"), fault.DuplicateReference, "target")
			w.addUp()
		}
		if len(w.up.calls) != 2 {
			w.Errorf("called %d times", len(w.up.calls))
		}
		w.sku = billSKU
		w.want(w.create("C"), "Pending")
		w.wantCode(w.create("C", "qty", nil), fault.DuplicateReference, "qty")
	})
}

// TestChosenAmountIsPartOfTheOrder: where the amount is the caller's, an order has one, even
// where the provider knows one for whoever gives none, and another is another order.
func TestChosenAmountIsPartOfTheOrder(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{true, false} {
		onBoth(t, orders, func(w *world) {
			w.sku = openSKU
			w.up.quote = func(q sdk.Quote, _ sdk.Quoted) sdk.Quoted {
				body := struct{ Qty money.Amount }{20_000}
				if err := json.Unmarshal(q.Body, &body); err != nil {
					w.Error(err)
				}
				told := opened(body.Qty+billAdmin, billAdmin)
				told.Held = held
				return told
			}
			w.wantCode(w.create("A", "qty", nil), fault.InvalidRequest, "qty")
			first := w.create("A", "qty", json.Number("50000"))
			w.want(first, "Pending")
			if m := w.stored("A"); m.Amount != 50_000+billAdmin+markup || m.Field("qty") == nil {
				w.Errorf("charged %v for %s", m.Amount, m.Request)
			}
			if same := w.create("A", "qty", json.Number("50000.00")); same.data != first.data || !same.replayed {
				w.Errorf("again: %s (replayed: %t, %v)", same.data, same.replayed, same.err)
			}
			for _, other := range []any{nil, json.Number("20000"), json.Number("50001")} {
				w.wantCode(w.create("A", "qty", other), fault.DuplicateReference, "qty")
			}
			if len(w.up.calls) != 1 {
				w.Errorf("called %d times", len(w.up.calls))
			}
			w.addUp()
		})
	}
}

// spend leaves nothing of the balance but what is held.
func (w *world) spend() {
	w.Helper()
	for i := 0; w.balance().Available >= prepaidPrice+markup; i++ {
		r := w.request("spend-"+string(number(money.Amount(i))), "sku", prepaidSKU, "qty", nil)
		w.up.way = way{after: time.Hour}
		if w.want(w.run(r), "Pending"); i > 200 {
			w.Fatal("it never ends")
		}
	}
	w.up.calls = w.up.calls[:1]
}

// priceOf is what this merchant pays.
func (w *world) priceOf() money.Amount {
	if w.sku == billSKU {
		return billTotal + markup
	}
	return prepaidPrice + markup
}

func (w *world) purchased(reference string) *thing {
	w.Helper()
	p, _ := w.up.under(nameOfMovement(w.stored(reference).ID))
	if p == nil {
		w.Fatalf("%s was not bought", reference)
	}
	return p
}

// TestOrderFreeAgain: a reference of which nothing was sent may carry another
// order, which is quoted and bought under one name, and not that of the first; the
// same order keeps its name.
func TestOrderFreeAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, orders, func(w *world) {
		w.sku = billSKU
		w.up.way = way{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameAccount, "deposit empty"))}
		for range 2 {
			w.want(w.create("A"), "PROVIDER_UNAVAILABLE no later")
			w.want(w.status("A"), "NOT_FOUND no never")
			w.addUp()
		}
		w.restart()
		w.want(w.create("A", "target", "999"), "Pending")
		m := w.stored("A")
		if m.State != movement.Succeeded || m.UpstreamReference() != w.up.calls[2].Reference {
			w.Errorf("stands at %s, attempt %d, and was called as %s", m.State, m.Attempt, w.up.calls[2].Reference)
		}
		for i, q := range w.up.quotes {
			call := w.up.calls[i]
			if id, _ := movement.ParseUpstreamReference(q.Reference); q.Reference != call.Reference || id != m.ID {
				w.Errorf("attempt %d was quoted as %s and called as %s", i+1, q.Reference, call.Reference)
			}
			if same := q.Reference == w.up.quotes[0].Reference; same != (i < 2) { // the third is another order
				w.Errorf("attempt %d is called %s, the first %s", i+1, q.Reference, w.up.quotes[0].Reference)
			}
			if string(call.Quote) != `{"sku":"pln"}` || call.Cost != billTotal-billMargin || call.Amount != billTotal+markup {
				w.Errorf("called with quote %s, cost %v, amount %v", call.Quote, call.Cost, call.Amount)
			}
		}
		w.addUp()
		w.wantListed()
		ours := 0
		all, err := w.keeper.OpenExceptions(w.Context(), 100)
		for _, a := range all {
			if a.Reason == movement.ReasonAccount && a.Owner.MerchantID == "platform" {
				ours++
			}
		}
		if err != nil || ours != 1 {
			w.Errorf("our account's fault is listed %d times: %+v, %v", ours, all, err)
		}
	})
}

// TestQuotedUnderAnotherAttempt: the price was asked for before the same order was
// tried and not sent: it is asked for anew.
func TestQuotedUnderAnotherAttempt(t *testing.T) {
	t.Parallel()
	onBoth(t, orders, func(w *world) {
		w.up.way = way{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameNone, "no process"))}
		w.up.beforeQuote = func() {
			w.up.beforeQuote = nil
			w.want(w.create("A"), "PROVIDER_UNAVAILABLE no later")
		}
		w.want(w.create("A"), "PROVIDER_UNAVAILABLE no later")
		if m := w.stored("A"); m.Attempt != 1 || len(w.up.calls) != 1 {
			w.Errorf("attempt %d, called %d times", m.Attempt, len(w.up.calls))
		}
		w.addUp()
	})
}

// TestOrderRefusedBeforeTheCall: what is wrong before the money call is an error,
// charges nothing, and leaves the reference free.
func TestOrderRefusedBeforeTheCall(t *testing.T) {
	t.Parallel()
	bill := number(billTotal + markup)
	quotes := func(q sdk.Quoted) func(*world) {
		return func(w *world) { w.up.quote = func(sdk.Quote, sdk.Quoted) sdk.Quoted { return q } }
	}
	openPairs := []any{"sku", openSKU, "qty", json.Number("50000")}
	for name, c := range map[string]struct {
		changes func(*world)
		pairs   []any
		code    fault.Code
		sent    string
		fields  []string
	}{
		"no such product":     {nil, []any{"sku", "none"}, fault.InvalidRequest, "no after_change", []string{"sku"}},
		"switched off":        {nil, []any{"sku", "off"}, fault.ProductUnavailable, "no later", nil},
		"judged before money": {func(w *world) { w.poor(0) }, []any{"sku", "off"}, fault.ProductUnavailable, "no later", nil},
		"no list":             {func(w *world) { w.shelf.away = errAway }, nil, fault.ProviderUnavailable, "no later", nil},
		"list refused": {func(w *world) {
			w.up.ask = func(sdk.Call) sdk.Result { return sdk.DontKnow(sdk.BlameUpstream, "cut") }
		}, nil, fault.ProviderUnavailable, "no later", nil},
		"list is garbage": {func(w *world) {
			w.up.ask = func(sdk.Call) sdk.Result { return sdk.Finished("", []int{1}) }
		}, nil, fault.ProviderUnavailable, "no later", nil},
		"provider down":        {func(w *world) { w.up.available = errors.New("down") }, nil, fault.ProviderUnavailable, "no later", nil},
		"not connected":        {func(w *world) { delete(w.others, "platform") }, nil, fault.Internal, "no later", nil},
		"short by one rupiah":  {func(w *world) { w.poor(prepaidPrice + markup - 1) }, nil, fault.InsufficientBalance, "no later", nil},
		"held short by one":    {func(w *world) { w.poor(billTotal + markup - 1) }, []any{"sku", billSKU, "qty", bill}, fault.InsufficientBalance, "no later", nil},
		"no balance at all":    {func(w *world) { w.account = w.merchant(); w.opening = 0 }, nil, fault.InsufficientBalance, "no later", nil},
		"bill without qty":     {nil, []any{"sku", billSKU}, fault.InvalidRequest, "no after_change", []string{"qty"}},
		"bill of another qty":  {nil, []any{"sku", billSKU, "qty", number(billTotal + markup + 1)}, fault.InvalidRequest, "no after_change", []string{"qty"}},
		"bill without markup":  {nil, []any{"sku", billSKU, "qty", number(billTotal)}, fault.InvalidRequest, "no after_change", []string{"qty"}},
		"open without qty":     {nil, []any{"sku", openSKU}, fault.InvalidRequest, "no after_change", []string{"qty"}},
		"open, ten times it":   {quotes(opened(502_500, 2_500)), openPairs, fault.ProviderUnavailable, "no later", nil},
		"open, a rupiah more":  {quotes(opened(52_501, 2_500)), openPairs, fault.ProviderUnavailable, "no later", nil},
		"open, a rupiah less":  {quotes(opened(52_499, 2_500)), openPairs, fault.ProviderUnavailable, "no later", nil},
		"open, fee untold":     {quotes(opened(52_500, 0)), openPairs, fault.ProviderUnavailable, "no later", nil},
		"open, fee not in it":  {quotes(opened(50_000, 2_500)), openPairs, fault.ProviderUnavailable, "no later", nil},
		"open, markup in it":   {quotes(opened(52_500+markup, 2_500)), openPairs, fault.ProviderUnavailable, "no later", nil},
		"open, default amount": {quotes(opened(20_000, 0)), []any{"sku", openSKU}, fault.InvalidRequest, "no after_change", []string{"qty"}},
		"below its cost":       {quotes(sdk.Quoted{Outcome: sdk.Done, Price: 100, Cost: 100 + markup + 1}), nil, fault.ProductUnavailable, "no later", nil},
		"no cost":              {quotes(sdk.Quoted{Outcome: sdk.Done, Price: 100}), nil, fault.ProductUnavailable, "no later", nil},
		"no price":             {quotes(sdk.Quoted{Outcome: sdk.Done, Cost: 1}), nil, fault.ProductUnavailable, "no later", nil},
		"price below zero":     {quotes(sdk.Quoted{Outcome: sdk.Done, Price: -100, Cost: 1}), nil, fault.ProductUnavailable, "no later", nil},
		"price too large":      {quotes(sdk.Quoted{Outcome: sdk.Done, Price: 1<<63 - 1, Cost: 1}), nil, fault.ProductUnavailable, "no later", nil},
		"fee above its price":  {quotes(sdk.Quoted{Outcome: sdk.Done, Price: 100, Cost: 1, Fee: 101}), nil, fault.ProductUnavailable, "no later", nil},
		"quote refused":        {quotes(sdk.NoQuote(sdk.Refuse(sdk.RefuseDestination, "No.", sdk.FieldFault{Field: "target"}))), nil, fault.DestinationInvalid, "no after_change", []string{"target"}},
		"quote: no product":    {quotes(sdk.NoQuote(sdk.Refuse(sdk.RefuseProduct, "No."))), nil, fault.ProductUnavailable, "no later", nil},
		"quote not sent":       {quotes(sdk.NoQuote(sdk.DidNotSend(sdk.BlameAccount, "empty"))), nil, fault.ProviderUnavailable, "no later", nil},
		"quote unknown":        {quotes(sdk.NoQuote(sdk.DontKnow(sdk.BlameUpstream, "cut"))), nil, fault.ProviderUnavailable, "no later", nil},
		"quote only pending":   {quotes(sdk.Quoted{Outcome: sdk.Pending, Price: 100, Cost: 1}), nil, fault.ProviderUnavailable, "no later", nil},
		"the provider's words": {quotes(sdk.NoQuote(sdk.Result{Outcome: sdk.Refused, Refusal: sdk.Refusal{Code: "NO_SUCH_CODE"}})), nil, fault.ProviderRejected, "no after_change", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, orders, func(w *world) {
				if c.changes != nil {
					c.changes(w)
				}
				a := w.create("A", c.pairs...)
				w.wantCode(a, c.code, c.fields...)
				if w.want(a, string(c.code)+" "+c.sent); a.err == nil {
					return
				}
				if a.err.Reference != "A" || len(w.up.calls) != 0 {
					t.Errorf("%v names %q; called %d times", a.err, a.err.Reference, len(w.up.calls))
				}
				if c.code == fault.InvalidRequest && strings.HasPrefix(name, "bill") && !strings.Contains(a.err.Message, string(bill)) {
					t.Errorf("%q does not name the right qty", a.err.Message)
				}
				if _, err := w.keeper.MovementByKey(w.Context(), w.keyOf("A")); err == nil {
					t.Error("something was claimed")
				}
				w.addUp()
			})
		})
	}
}

// opened is a quote of a product whose amount the caller chooses.
func opened(price, fee money.Amount) sdk.Quoted {
	return sdk.Quoted{Outcome: sdk.Done, Price: price, Fee: fee, Cost: price - fee, Held: true, Open: true, Data: json.RawMessage(`{}`)}
}

// poor is a merchant with just this balance.
func (w *world) poor(balance money.Amount) {
	w.account = w.merchant()
	if w.opening = 0; balance > 0 {
		w.opens(w.account, balance)
	}
}

// TestQuoteFailsForOneOfTwo: two equal orders, and the price of the second can't
// be had while the first is bought: it is answered as the first.
func TestQuoteFailsForOneOfTwo(t *testing.T) {
	t.Parallel()
	onBoth(t, orders, func(w *world) {
		w.up.quote = func(q sdk.Quote, _ sdk.Quoted) sdk.Quoted {
			if len(w.up.quotes) == 1 {
				return sdk.NoQuote(sdk.DontKnow(sdk.BlameUpstream, "cut"))
			}
			return sdk.Quoted{Outcome: sdk.Done, Price: prepaidPrice, Cost: prepaidPrice, Data: json.RawMessage(`{}`)}
		}
		w.up.beforeQuote = func() {
			w.up.beforeQuote = nil
			w.up.quotes = append(w.up.quotes, sdk.Quote{})
			w.want(w.create("A"), "Pending")
			w.up.quotes = nil
		}
		a := w.create("A")
		w.truthful(w.request("A"), a)
		if w.want(a, "Pending"); !a.replayed {
			w.Error("the second answer is not marked as a replay")
		}
		w.addUp()
	})
}

// TestWhatAnOrderCosts: to the rupiah, markup included, with what is left of the
// balance.
func TestWhatAnOrderCosts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		markup policy.Markup
		pairs  []any
		price  money.Amount
		cost   money.Amount
		held   bool
	}{
		"prepaid":               {policy.Markup{}, nil, prepaidPrice, prepaidPrice, false},
		"prepaid, any qty":      {policy.Markup{}, []any{"qty", json.Number("7")}, prepaidPrice, prepaidPrice, false},
		"prepaid, markup":       {policy.Markup{Default: 500}, nil, prepaidPrice + 500, prepaidPrice, false},
		"prepaid, its markup":   {policy.Markup{Default: 500, Products: map[string]money.Amount{prepaidSKU: 7}}, nil, prepaidPrice + 7, prepaidPrice, false},
		"bill":                  {policy.Markup{}, []any{"sku", billSKU, "qty", number(billTotal)}, billTotal, billTotal - billMargin, true},
		"bill, qty of fraction": {policy.Markup{}, []any{"sku", billSKU, "qty", json.Number("21000.00")}, billTotal, billTotal - billMargin, true},
		"bill, its markup":      {policy.Markup{Products: map[string]money.Amount{billSKU: 9}}, []any{"sku", billSKU, "qty", number(billTotal + 9)}, billTotal + 9, billTotal - billMargin, true},
		"open amount":           {policy.Markup{Default: 3}, []any{"sku", openSKU, "qty", json.Number("50000")}, 50_000 + billAdmin + 3, 50_000 + billAdmin - billMargin, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, orders, func(w *world) {
				w.poor(c.price + 1)
				w.limits.Markup = c.markup
				w.up.way = way{after: time.Minute}
				w.want(w.create("A", c.pairs...), "Pending")
				if c.held {
					w.wantBalance(1, c.price)
				} else {
					w.wantBalance(1, 0)
				}
				w.work("A", 10*time.Minute)
				w.wantBalance(1, 0)
				if m := w.stored("A"); m.State != movement.Succeeded || m.Amount != c.price || m.Cost != c.cost {
					w.Errorf("stands at %s, price %v, cost %v", m.State, m.Amount, m.Cost)
				}
				w.addUp()
			})
		})
	}
}

// TestProductFirst: an inquiry is judged by its product before anybody is asked
// about the target.
func TestProductFirst(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		inquiries := 0
		for sku, want := range map[string]string{billSKU: "DESTINATION_INVALID no after_change", "off": "PRODUCT_UNAVAILABLE no later", "nope": "INVALID_REQUEST no after_change"} {
			w.up.set(func() {
				w.up.ask = func(call sdk.Call) sdk.Result {
					if call.Operation == productsPath {
						return sdk.Finished("", w.up.products)
					}
					inquiries++
					var p product
					if err := json.Unmarshal(call.Product, &p); err != nil || p.SKU != sku {
						w.Errorf("asked about %s with %s", sku, call.Product)
					}
					return sdk.Refuse(sdk.RefuseDestination, "nobody")
				}
			})
			w.want(w.run(w.asks(inquiryPath, "sku", sku, "target", "x")), want)
		}
		if inquiries != 1 {
			w.Errorf("%d inquiries were sent, want 1", inquiries)
		}
	})
}

// TestPricesShown: what the list and the inquiry show is what an order costs.
func TestPricesShown(t *testing.T) {
	t.Parallel()
	inMemory(t, orders, func(w *world) {
		type item struct {
			SKU   string       `json:"buyer_sku_code"`
			Type  string       `json:"type"`
			Price money.Amount `json:"price"`
		}
		for kind, want := range map[string]int{"prepaid": 2, "pasca": 2, "": 4} {
			r := w.asks(productsPath, "type", kind)
			var items []item
			if err := json.Unmarshal([]byte(w.run(r).data), &items); err != nil || len(items) != want {
				t.Fatalf("%q: %+v, %v", kind, items, err)
			}
			for _, i := range items {
				price := map[string]money.Amount{"Prepaid": prepaidPrice + markup, "Pasca": billAdmin}[i.Type]
				if i.Price != price {
					t.Errorf("%s is shown at %v, want %v", i.SKU, i.Price, price)
				}
			}
		}
		want := `{"admin":2500,"amount":19000,"customer_name":"Nama","period":"202611","qty":21500,"sku":"pln","target":"53"}`
		if a := w.run(w.asks(inquiryPath, "sku", billSKU, "target", "53")); a.data != want {
			t.Errorf("got  %s %v\nwant %s", a.data, a.err, want)
		}
	})
}
