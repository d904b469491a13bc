package order_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// unread orders while the provider's list, or its word on a bill, can't be read:
// nothing is reserved, and the same reference is taken when it can.
func unread(t *testing.T, p *harness.Program) {
	t.Helper()
	s := newBuyer(t, p, 50_000)
	for _, operation := range []string{"price-list", "inq-pasca"} { // the list is there for the second
		g, reference := airtime.to(harness.UnknownPhone()), harness.NewReference()
		if operation == "inq-pasca" {
			g = bill
		}
		for _, name := range []string{"error_500", "drop_before"} {
			p.InjectInto(t, "ppob", name, operation, 1)
		}
		for range 2 {
			a := s.Ask(t, "/ppob/order", g.order(reference))
			if a.Code != fault.ProviderUnavailable || a.Sent != fault.SentNo || a.Retry != fault.RetryLater {
				t.Errorf("%s, when %s fails: %s", g.sku, operation, a)
			}
			wantFunds(t, s, "when nothing was reserved", funds{Balance: 50_000})
		}
		harness.Await(t, harness.PaidWithin, g.sku+" after all", func() bool { return s.Ask(t, "/ppob/order", g.order(reference)).Success })
		awaitOrder(t, s, g, reference, "Success", harness.PaidWithin)
		wantBought(t, p, g.target, 1)
		credit(t, s, g.price)
	}
}

// emptyDeposit orders while nothing is left of the deposit: the reference stays
// free, nothing is charged, and the operator is told.
func emptyDeposit(t *testing.T, p *harness.Program) {
	t.Helper()
	s := newBuyer(t, p, 50_000)
	references := map[string]goods{harness.NewReference(): airtime.to(harness.UnknownPhone()), harness.NewReference(): bill}
	upstream(t, p, "deposit", harness.Fields{"amount": 0})
	for reference, g := range references {
		a := s.Ask(t, "/ppob/order", g.order(reference))
		if a.Code != fault.ProviderUnavailable || a.Sent != fault.SentNo || a.Retry != fault.RetryLater || strings.Contains(a.Message, "deposit") {
			t.Errorf("%s with an empty deposit: %s", g.sku, a)
		}
		wantFunds(t, s, "with an empty deposit", funds{Balance: 50_000})
		if a := s.Ask(t, "/ppob/status", harness.Fields{"ref_id": reference}); a.Code != fault.NotFound {
			t.Errorf("its status: %s", a)
		}
	}
	p.WantException(t, "our_account", "ppob", "rc 44")
	upstream(t, p, "deposit", harness.Fields{"amount": 1_000_000_000})
	for reference, g := range references {
		placeOrder(t, s, g, reference)
		awaitOrder(t, s, g, reference, "Success", harness.PaidWithin)
	}
	wantFunds(t, s, "with a deposit", funds{Balance: 50_000 - airtime.price - bill.price})
}

// changedProducts orders what the list says can be had, and the provider says
// cannot: the order is taken and fails, and everything is given back.
func changedProducts(t *testing.T, p *harness.Program) {
	t.Helper()
	s, box := newBuyer(t, p, 50_000), harness.NewReceiver(t, 0)
	for what, change := range map[string]harness.Fields{
		"a higher price": {"price": 10_851}, "switched off by its seller": {"seller_product_status": false},
		"switched off by us": {"buyer_product_status": false},
	} {
		upstream(t, p, "product", change.With(harness.Fields{"sku": "xld10"}))
		g, reference := airtime.to(harness.UnknownPhone()), harness.NewReference()
		placeOrder(t, s, g, reference, "X-Callback-URL", box.URL)
		awaitOrder(t, s, g, reference, "Failed", harness.PaidWithin)
		wantFunds(t, s, what, funds{Balance: 50_000})
		harness.Await(t, harness.PaidWithin, "the callback", func() bool { return len(sold(box, reference)) > 0 })
		if one := sold(box, reference)[0]; one.Field("status") != "Failed" || one.Field("message") == "" || string(one.Data["sn"]) != `""` {
			t.Errorf("%s: %s", what, one.Raw)
		}
		upstream(t, p, "product", harness.Fields{"sku": "xld10", "price": 10_850, "seller_product_status": true, "buyer_product_status": true})
	}
	// What became cheaper is sold at the listed price, and recorded at what it
	// cost.
	upstream(t, p, "product", harness.Fields{"sku": "xld10", "price": 10_000})
	deposit := platform(t, s, "deposit")
	g, reference := airtime.to(harness.UnknownPhone()), harness.NewReference()
	placeOrder(t, s, g, reference)
	awaitOrder(t, s, g, reference, "Success", harness.PaidWithin)
	wantFunds(t, s, "cheaper than listed", funds{Balance: 50_000 - 10_850})
	if got := platform(t, s, "deposit"); got != deposit+10_000 {
		t.Errorf("%d have left the deposit, want 10000", got-deposit)
	}
	upstream(t, p, "product", harness.Fields{"sku": "xld10", "price": 10_850})
}

// sold are the callbacks about an order.
func sold(b *harness.Receiver, reference string) []harness.Callback {
	return slices.DeleteFunc(b.All(), func(l harness.Callback) bool { return l.Field("ref_id") != reference })
}

// markedUp sells with markups of tier, product and merchant, which all prices
// that a merchant reads include.
func markedUp(t *testing.T, p *harness.Program, edit *harness.PolicyData) {
	t.Helper()
	s := newBuyer(t, p, 100_000)
	markUp(t, edit, harness.Fields{"tiers": harness.Fields{"scale": 700}, "products": harness.Fields{"pln20": 50}})
	priceOf := func(sku string) (price int64) {
		var all []struct {
			SKU   string `json:"buyer_sku_code"`
			Price int64  `json:"price"`
		}
		if err := json.Unmarshal(s.Ask(t, "/ppob/products", nil).Data, &all); err != nil {
			t.Fatal(err)
		}
		for _, item := range all {
			if item.SKU == sku {
				price = item.Price
			}
		}
		return price
	}
	harness.Await(t, harness.PolicyLiveWithin, "the markup", func() bool { return priceOf("xld10") == 11_550 })
	if priceOf("pln20") != 20_200 || priceOf("pln") != 2_500 {
		t.Errorf("with a markup pln20 costs %d, and the fee of pln is %d", priceOf("pln20"), priceOf("pln"))
	}
	inquiry := s.Ask(t, "/ppob/inquiry", harness.Fields{"sku": "pln", "target": bill.target})
	if !strings.Contains(string(inquiry.Data), `"amount":9200,"admin":2500,"qty":11700`) {
		t.Errorf("the inquiry with a markup: %s", inquiry)
	}
	if a := s.Ask(t, "/ppob/order", bill.order(harness.NewReference())); a.Code != fault.InvalidRequest || !strings.Contains(a.Message, "11700") {
		t.Errorf("a bill's price without the markup: %s", a)
	}
	left, margin := int64(100_000), platform(t, s, "margin")
	for _, g := range []goods{airtime.costs(11_550, 0), bill.costs(11_700, 0)} {
		if g.sku == airtime.sku {
			g.qty = 0
		}
		reference := harness.NewReference()
		placeOrder(t, s, g, reference)
		awaitOrder(t, s, g, reference, "Success", harness.PaidWithin)
		left -= g.price
		wantFunds(t, s, "with a markup", funds{Balance: left})
	}
	if got := platform(t, s, "margin"); got != margin+100_000-left {
		t.Errorf("the margin grew by %d, want %d", got-margin, 100_000-left)
	}
}

// markUp writes the policy's data with other markups.
func markUp(t *testing.T, l *harness.PolicyData, markups harness.Fields) {
	t.Helper()
	l.Markups = markups
	l.LiftRates(t)
}

// lookedUpWithin is how long a test waits at most for the lookup of an order that nobody
// told of: 60 s after its call, which the provider asks for.
const lookedUpWithin = 5 * time.Minute

// unheard is an order of which the provider's first word, or its last, is lost.
type unheard struct {
	goods
	fault string // of its call
	ends  string
	made  int // purchases upstream at the end
}

// TestOrderProviderFaults loses the provider's answers in every way. Each order
// is answered as pending, and the lookup a minute later ends it, unless the
// lookup cannot know yet.
func TestOrderProviderFaults(t *testing.T) {
	t.Parallel()
	tier.Long(t, "waits a minute for lookups; gateway/scenarios proves each fault of an order with a clock of its own")
	p := harness.Start(t, harness.Settings{})
	s, box := newBuyer(t, p, 10_000_000), harness.NewReceiver(t, 0)
	var orders []unheard
	for _, name := range []string{"latency", "drop_after", "error_500_after", "garbage", "drop_before", "error_500"} {
		// Sent again, a prepaid order that never arrived is bought after all.
		orders = append(orders, unheard{airtime.to(harness.UnknownPhone()), name, "Success", 1})
	}
	orders = append(orders,
		unheard{bill.as("pdam", "1013226").costs(65_000, 64_450), "latency", "Success", 1},
		unheard{bill.as("internet", "6391601001").costs(299_750, 298_550), "drop_after", "Success", 1},
		unheard{bill.as("bpjs", "8801234560001").costs(72_500, 71_600), "error_500_after", "Success", 1},
		unheard{bill.as("tv", "127246500101").costs(152_500, 151_600), "garbage", "Success", 1},
		// A bill is paid by its call alone. That it never arrived is proven later.
		unheard{bill.as("pgas", "0110014601").costs(56_500, 55_800), "drop_before", "Pending", 0},
		unheard{bill.as("hp", "8102051011320001").costs(122_000, 121_300), "error_500", "Pending", 0},
		unheard{airtime.to("087800001241"), "", "Success", 1}, // told twice
		unheard{airtime.to("087800001242"), "", "Success", 1}, // and then an outdated word
		unheard{airtime.to("087800001243"), "", "Success", 1}, // told late
		unheard{airtime.to("087800001245"), "", "Success", 1}, // told with ten times the price
		unheard{airtime.to("087800001246"), "", "Success", 1}, // told in nonsense
		unheard{airtime.to("087800001247"), "", "Success", 1}, // never told
		unheard{airtime.to("087800001248"), "", "Pending", 1}, // never done
		unheard{airtime.to("087800001249"), "", "Success", 1}, // forged: told as failed
	)
	references := make([]string, len(orders))
	for i, o := range orders {
		references[i] = harness.NewReference()
		p.AwaitClosedBreaker(t, "ppob")
		if o.fault != "" {
			p.InjectInto(t, "ppob", o.fault, map[bool]string{true: "transaction", false: "pay-pasca"}[o.qty == 0], 1)
		}
		before := fundsOf(t, s)
		placeOrder(t, s, o.goods, references[i], "X-Callback-URL", box.URL)
		if after, want := fundsOf(t, s), o.during(before); after != want && o.fault != "latency" {
			t.Errorf("%s after %s: the balance is %+v, want %+v", o.sku, o.fault, after, want)
		}
	}
	p.WantException(t, "amount_differs", s.MerchantID, "108500")
	// The provider need not be waited for: it answers the look at any time, and
	// what it says late it says now.
	upstream(t, p, "clock", harness.Fields{"advance": "5m"})
	left := int64(10_000_000)
	var held int64
	for i, o := range orders {
		if o.ends == "Success" {
			awaitOrder(t, s, o.goods, references[i], o.ends, lookedUpWithin)
		}
		left -= o.price
		if o.ends != "Success" && o.qty != 0 {
			held += o.price
		}
		wantBought(t, p, o.target, o.made)
		o.wantTold(t, s, box, references[i])
	}
	wantFunds(t, s, "at the end", funds{Balance: left, Held: held})
	p.WantCleanLedger(t)
}

// wantTold wants one event of an order that has ended, which says so, and none
// of one that has not.
func (o unheard) wantTold(t *testing.T, s harness.Shop, box *harness.Receiver, reference string) {
	t.Helper()
	if o.ends == "Pending" {
		if got := statusOfOrder(t, s, o.goods, reference); got.Status != o.ends || len(sold(box, reference)) > 0 {
			t.Errorf("%s for %s is %s, and %d callbacks told of it", o.sku, o.target, got.Status, len(sold(box, reference)))
		}
		return
	}
	harness.Await(t, harness.PaidWithin, fmt.Sprintf("the callback of %s for %s", o.sku, o.target), func() bool { return len(sold(box, reference)) > 0 })
	callbacks := sold(box, reference)
	want := callbackOf("ppob.status_update", o.goods, statusOfOrder(t, s, o.goods, reference))
	for _, l := range callbacks {
		if !want.Match(l.Raw) || l.ID() != callbacks[0].ID() {
			t.Errorf("told %s as %s, want %s as %s", l.Raw, l.ID(), want, callbacks[0].ID())
		}
	}
}
