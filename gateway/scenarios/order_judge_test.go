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
	for name, changes := range map[string]func(*shop){
		"nothing":             func(*shop) {},
		"product gone":        func(s *shop) { s.stock(func(p *product) { p.SKU += "-old" }) },
		"product off":         func(s *shop) { s.stock(func(p *product) { p.Available = false }) },
		"no list":             func(s *shop) { s.shelf.away = fault.New(fault.ProviderUnavailable, "x") },
		"dearer":              func(s *shop) { s.markup = policy.Markup{Default: 2 * markup} },
		"no balance":          func(s *shop) { s.spend() },
		"provider down":       func(s *shop) { s.up.available = errors.New("down") },
		"quotes fail":         func(s *shop) { s.up.quote = func(sdk.Quote) sdk.Quoted { return sdk.Quoted{} } },
		"failed meanwhile":    func(s *shop) { s.hears(s.platformAccount(), s.purchased("A").says(sdk.StatusFailed)) },
		"no connection":       func(s *shop) { delete(s.others, "platform") },
		"another one's token": func(s *shop) { s.connected("platform", "other", 2) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inShop(t, func(s *shop) {
				s.sku = billSKU
				s.up.deal = deal{after: time.Hour, fails: name == "failed meanwhile"}
				first := s.order("A")
				s.want(first, "Pending")
				changes(s)
				quotes, before := len(s.up.quotes), s.balance()
				same := s.order("A")
				if same.data != first.data || !same.replayed {
					t.Errorf("first %s, then %s (replayed: %t, %v)", first.data, same.data, same.replayed, same.err)
				}
				s.wantCode(s.order("A", "target", "1", "sku", "nothing", "qty", nil), fault.DuplicateReference, "qty", "sku", "target")
				s.wantCode(s.order("A", "qty", json.Number("1")), fault.DuplicateReference, "qty")
				if stored, found, err := s.Stored(s.Context(), s.ordering("A")); !found || err != nil || string(stored.Data.(json.RawMessage)) != first.data {
					t.Errorf("for one who is refused there is %v, %t, %v", stored, found, err)
				}
				if len(s.up.calls) != 1 || len(s.up.quotes) != quotes || s.balance() != before {
					t.Errorf("called %d times, quoted %d times; the balance was %+v and is %+v", len(s.up.calls), len(s.up.quotes), before, s.balance())
				}
			})
		})
	}
}

// TestAmountThatMeansNothing: whatever is given as the amount of a product with a
// price of its own, it is the same order; of a bill it is not.
func TestAmountThatMeansNothing(t *testing.T) {
	t.Parallel()
	inShops(t, func(s *shop) {
		s.sku = prepaidSKU
		for reference, qty := range map[string]any{"A": json.Number("5"), "B": nil} {
			first := s.order(reference, "qty", qty)
			s.want(first, "Pending")
			for _, other := range []any{json.Number("5"), json.Number("7"), nil} {
				if same := s.order(reference, "qty", other); same.data != first.data || !same.replayed {
					s.Errorf("%s with %v: %s (replayed: %t, %v)", reference, other, same.data, same.replayed, same.err)
				}
			}
			s.wantCode(s.order(reference, "qty", json.Number("7"), "target", "1"), fault.DuplicateReference, "target")
			s.addUp()
		}
		if len(s.up.calls) != 2 {
			s.Errorf("called %d times", len(s.up.calls))
		}
		s.sku = billSKU
		s.want(s.order("C"), "Pending")
		s.wantCode(s.order("C", "qty", nil), fault.DuplicateReference, "qty")
	})
}

// TestAmountThatIsChosen: where the amount is the caller's, an order has one, even
// where the provider knows one for whoever gives none, and another is another order.
func TestAmountThatIsChosen(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{true, false} {
		inShops(t, func(s *shop) {
			s.sku = openSKU
			s.up.quote = func(q sdk.Quote) sdk.Quoted {
				body := struct{ Qty money.Amount }{20_000}
				if err := json.Unmarshal(q.Body, &body); err != nil {
					s.Error(err)
				}
				told := opened(body.Qty+billAdmin, billAdmin)
				told.Held = held
				return told
			}
			s.wantCode(s.order("A", "qty", nil), fault.InvalidRequest, "qty")
			first := s.order("A", "qty", json.Number("50000"))
			s.want(first, "Pending")
			if m := s.stored("A"); m.Amount != 50_000+billAdmin+markup || m.Field("qty") == nil {
				s.Errorf("charged %v for %s", m.Amount, m.Request)
			}
			if same := s.order("A", "qty", json.Number("50000.00")); same.data != first.data || !same.replayed {
				s.Errorf("again: %s (replayed: %t, %v)", same.data, same.replayed, same.err)
			}
			for _, other := range []any{nil, json.Number("20000"), json.Number("50001")} {
				s.wantCode(s.order("A", "qty", other), fault.DuplicateReference, "qty")
			}
			if len(s.up.calls) != 1 {
				s.Errorf("called %d times", len(s.up.calls))
			}
			s.addUp()
		})
	}
}

// spend leaves nothing of the balance but what is held.
func (s *shop) spend() {
	s.Helper()
	for i := 0; s.balance().Available >= prepaidPrice+markup; i++ {
		r := s.ordering("spend-"+string(number(money.Amount(i))), "sku", prepaidSKU, "qty", nil)
		s.up.deal = deal{after: time.Hour}
		if s.want(s.run(r), "Pending"); i > 200 {
			s.Fatal("it never ends")
		}
	}
	s.up.calls = s.up.calls[:1]
}

func (s *shop) purchased(reference string) *purchase {
	s.Helper()
	p, _ := s.up.of(nameOfMovement(s.stored(reference).ID))
	if p == nil {
		s.Fatalf("%s was not bought", reference)
	}
	return p
}

// TestOrderFreeAgain: a reference of which nothing was sent may carry another
// order, which is quoted and bought under one name, and not that of the first; the
// same order keeps its name.
func TestOrderFreeAgain(t *testing.T) {
	t.Parallel()
	inShops(t, func(s *shop) {
		s.sku = billSKU
		s.up.deal = deal{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameAccount, "deposit empty"))}
		for range 2 {
			s.want(s.order("A"), "PROVIDER_UNAVAILABLE no later")
			s.want(s.stateOf("A"), "NOT_FOUND no never")
			s.addUp()
		}
		s.restart()
		s.want(s.order("A", "target", "999"), "Pending")
		m := s.stored("A")
		if m.State != movement.Succeeded || m.UpstreamReference() != s.up.calls[2].Reference {
			s.Errorf("stands at %s, attempt %d, and was called as %s", m.State, m.Attempt, s.up.calls[2].Reference)
		}
		for i, q := range s.up.quotes {
			call := s.up.calls[i]
			if id, _ := movement.ParseUpstreamReference(q.Reference); q.Reference != call.Reference || id != m.ID {
				s.Errorf("attempt %d was quoted as %s and called as %s", i+1, q.Reference, call.Reference)
			}
			if same := q.Reference == s.up.quotes[0].Reference; same != (i < 2) { // the third is another order
				s.Errorf("attempt %d is called %s, the first %s", i+1, q.Reference, s.up.quotes[0].Reference)
			}
			if string(call.Quote) != `{"sku":"pln"}` || call.Cost != billTotal-billMargin || call.Amount != billTotal+markup {
				s.Errorf("called with quote %s, cost %v, amount %v", call.Quote, call.Cost, call.Amount)
			}
		}
		s.addUp()
		s.wantListed()
		ours := 0
		all, err := s.keeper.OpenExceptions(s.Context(), 100)
		for _, a := range all {
			if a.Reason == movement.ReasonAccount && a.Owner.MerchantID == "platform" {
				ours++
			}
		}
		if err != nil || ours != 1 {
			s.Errorf("our account's fault is listed %d times: %+v, %v", ours, all, err)
		}
	})
}

// TestQuotedUnderAnotherAttempt: the price was asked for before the same order was
// tried and not sent: it is asked for anew.
func TestQuotedUnderAnotherAttempt(t *testing.T) {
	t.Parallel()
	inShops(t, func(s *shop) {
		s.up.deal = deal{unmade: true, says: saying(sdk.DidNotSend(sdk.BlameNone, "no process"))}
		s.up.beforeQuote = func() {
			s.up.beforeQuote = nil
			s.want(s.order("A"), "PROVIDER_UNAVAILABLE no later")
		}
		s.want(s.order("A"), "PROVIDER_UNAVAILABLE no later")
		if m := s.stored("A"); m.Attempt != 1 || len(s.up.calls) != 1 {
			s.Errorf("attempt %d, called %d times", m.Attempt, len(s.up.calls))
		}
		s.addUp()
	})
}

// TestOrderRefusedBeforeTheCall: what is wrong before the money call is an error,
// charges nothing, and leaves the reference free.
func TestOrderRefusedBeforeTheCall(t *testing.T) {
	t.Parallel()
	bill := number(billTotal + markup)
	quotes := func(q sdk.Quoted) func(*shop) {
		return func(s *shop) { s.up.quote = func(sdk.Quote) sdk.Quoted { return q } }
	}
	openPairs := []any{"sku", openSKU, "qty", json.Number("50000")}
	for name, c := range map[string]struct {
		changes func(*shop)
		pairs   []any
		code    fault.Code
		sent    string
		fields  []string
	}{
		"no such product":     {nil, []any{"sku", "none"}, fault.InvalidRequest, "no after_change", []string{"sku"}},
		"switched off":        {nil, []any{"sku", "off"}, fault.ProductUnavailable, "no later", nil},
		"judged before money": {func(s *shop) { s.poor(0) }, []any{"sku", "off"}, fault.ProductUnavailable, "no later", nil},
		"no list":             {func(s *shop) { s.shelf.away = errAway }, nil, fault.ProviderUnavailable, "no later", nil},
		"list refused": {func(s *shop) {
			s.up.ask = func(sdk.Call) sdk.Result { return sdk.DontKnow(sdk.BlameUpstream, "cut") }
		}, nil, fault.ProviderUnavailable, "no later", nil},
		"list is garbage": {func(s *shop) {
			s.up.ask = func(sdk.Call) sdk.Result { return sdk.Finished("", []int{1}) }
		}, nil, fault.ProviderUnavailable, "no later", nil},
		"provider down":        {func(s *shop) { s.up.available = errors.New("down") }, nil, fault.ProviderUnavailable, "no later", nil},
		"not connected":        {func(s *shop) { delete(s.others, "platform") }, nil, fault.Internal, "no later", nil},
		"short by one rupiah":  {func(s *shop) { s.poor(prepaidPrice + markup - 1) }, nil, fault.InsufficientBalance, "no later", nil},
		"held short by one":    {func(s *shop) { s.poor(billTotal + markup - 1) }, []any{"sku", billSKU, "qty", bill}, fault.InsufficientBalance, "no later", nil},
		"no balance at all":    {func(s *shop) { s.account = s.merchant(); s.opening = 0 }, nil, fault.InsufficientBalance, "no later", nil},
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
			inShop(t, func(s *shop) {
				if c.changes != nil {
					c.changes(s)
				}
				a := s.order("A", c.pairs...)
				s.wantCode(a, c.code, c.fields...)
				if s.want(a, string(c.code)+" "+c.sent); a.err == nil {
					return
				}
				if a.err.Reference != "A" || len(s.up.calls) != 0 {
					t.Errorf("%v names %q; called %d times", a.err, a.err.Reference, len(s.up.calls))
				}
				if c.code == fault.InvalidRequest && strings.HasPrefix(name, "bill") && !strings.Contains(a.err.Message, string(bill)) {
					t.Errorf("%q does not name the right qty", a.err.Message)
				}
				if _, err := s.keeper.MovementByKey(s.Context(), s.keyOf("A")); err == nil {
					t.Error("something was claimed")
				}
				s.addUp()
			})
		})
	}
}

// opened is a quote of a product whose amount the caller chooses.
func opened(price, fee money.Amount) sdk.Quoted {
	return sdk.Quoted{Outcome: sdk.Done, Price: price, Fee: fee, Cost: price - fee, Held: true, Open: true, Data: json.RawMessage(`{}`)}
}

// poor is a merchant with just this balance.
func (s *shop) poor(balance money.Amount) {
	s.account = s.merchant()
	if s.opening = 0; balance > 0 {
		s.opens(s.account, balance)
	}
}

// TestQuoteFailsForOneOfTwo: two equal orders, and the price of the second can't
// be had while the first is bought: it is answered as the first.
func TestQuoteFailsForOneOfTwo(t *testing.T) {
	t.Parallel()
	inShops(t, func(s *shop) {
		s.up.quote = func(q sdk.Quote) sdk.Quoted {
			if len(s.up.quotes) == 1 {
				return sdk.NoQuote(sdk.DontKnow(sdk.BlameUpstream, "cut"))
			}
			return sdk.Quoted{Outcome: sdk.Done, Price: prepaidPrice, Cost: prepaidPrice, Data: json.RawMessage(`{}`)}
		}
		s.up.beforeQuote = func() {
			s.up.beforeQuote = nil
			s.up.quotes = append(s.up.quotes, sdk.Quote{})
			s.want(s.order("A"), "Pending")
			s.up.quotes = nil
		}
		a := s.order("A")
		s.truthful("A", a)
		if s.want(a, "Pending"); !a.replayed {
			s.Error("the second answer is not marked as a replay")
		}
		s.addUp()
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
			inShops(t, func(s *shop) {
				s.poor(c.price + 1)
				s.markup = c.markup
				s.up.deal = deal{after: time.Minute}
				s.want(s.order("A", c.pairs...), "Pending")
				if c.held {
					s.wantBalance(1, c.price)
				} else {
					s.wantBalance(1, 0)
				}
				s.work("A", 10*time.Minute)
				s.wantBalance(1, 0)
				if m := s.stored("A"); m.State != movement.Succeeded || m.Amount != c.price || m.Cost != c.cost {
					s.Errorf("stands at %s, price %v, cost %v", m.State, m.Amount, m.Cost)
				}
				s.addUp()
			})
		})
	}
}

// TestProductFirst: an inquiry is judged by its product before anybody is asked
// about the target.
func TestProductFirst(t *testing.T) {
	t.Parallel()
	inShop(t, func(s *shop) {
		inquiries := 0
		for sku, want := range map[string]string{billSKU: "DESTINATION_INVALID no after_change", "off": "PRODUCT_UNAVAILABLE no later", "nope": "INVALID_REQUEST no after_change"} {
			s.up.set(func() {
				s.up.ask = func(call sdk.Call) sdk.Result {
					if call.Operation == productsPath {
						return sdk.Finished("", s.up.products)
					}
					inquiries++
					var p product
					if err := json.Unmarshal(call.Product, &p); err != nil || p.SKU != sku {
						s.Errorf("asked about %s with %s", sku, call.Product)
					}
					return sdk.Refuse(sdk.RefuseDestination, "nobody")
				}
			})
			s.want(s.run(s.asks(inquiryPath, "sku", sku, "target", "x")), want)
		}
		if inquiries != 1 {
			s.Errorf("%d inquiries were sent, want 1", inquiries)
		}
	})
}

// TestPricesShown: what the list and the inquiry show is what an order costs.
func TestPricesShown(t *testing.T) {
	t.Parallel()
	inShop(t, func(s *shop) {
		type item struct {
			SKU   string       `json:"buyer_sku_code"`
			Type  string       `json:"type"`
			Price money.Amount `json:"price"`
		}
		for kind, want := range map[string]int{"prepaid": 2, "pasca": 2, "": 4} {
			r := s.asks(productsPath, "type", kind)
			var items []item
			if err := json.Unmarshal([]byte(s.run(r).data), &items); err != nil || len(items) != want {
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
		if a := s.run(s.asks(inquiryPath, "sku", billSKU, "target", "53")); a.data != want {
			t.Errorf("got  %s %v\nwant %s", a.data, a.err, want)
		}
	})
}
