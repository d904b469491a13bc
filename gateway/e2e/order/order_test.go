package order_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// delay is how long results take by the simulator's clock, which the test advances. It is
// short because a bill is of a month, and ten of them must not reach the next.
const delay = "1m"

// TestOrders drives one program as merchants do who sell airtime, tokens and bills, each
// part with merchants of its own. The parts that change the provider under all merchants
// (its clock, its deposit, its products, its faults) come one after the other.
func TestOrders(t *testing.T) { //nolint:tparallel // its last look comes when all checks are through
	t.Parallel()
	edit := &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	edit.LiftRates(t)
	p := harness.Start(t, harness.Settings{Flags: []string{"--policy-dir", filepath.Dir(edit.File)}})
	unread(t, p) // first, while the gateway has read no list of products
	upstream(t, p, "delay", harness.Fields{"delay": delay})
	checkEachSort(t, p) // it also looks at the deposit that all share
	t.Run("checks", func(t *testing.T) { checkOrders(t, p) })
	emptyDeposit(t, p)
	changedProducts(t, p)
	markedUp(t, p, edit)
	p.WantCleanLedger(t)
}

func checkOrders(t *testing.T, p *harness.Program) {
	for name, check := range map[string]func(*testing.T, *harness.Program){
		"products": checkProducts, "inquiry": checkInquiry, "errors": checkOrderErrors,
		"the last rupiah": checkLastRupiah, "references": checkOrderReferences, "isolation": checkOrderIsolation,
		"scopes": checkOrderScopes, "fifty equal": checkFiftyEqual,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, p)
		})
	}
}

// scenario is what becomes of an order.
type scenario struct {
	ends    string
	delayed bool
	back    bool // the provider takes it back
}

var (
	serialForm = regexp.MustCompile(`^\d{16}$`)
	tokenForm  = regexp.MustCompile(`^(\d{4}-){4}\d{4}/[^/]+/R1/1300VA/\d+\.\dKWH$`)
	paidForm   = regexp.MustCompile(`^S\d{10}N$`)
)

// checkEachSort orders each sort of goods with each final state, for the demo
// merchant, whose callbacks go to the inbox of the sandbox.
func checkEachSort(t *testing.T, p *harness.Program) {
	s := p.Shop(harness.Large, "live")
	now, failed := scenario{ends: "Success"}, scenario{ends: "Failed"}
	later, laterFailed := scenario{ends: "Success", delayed: true}, scenario{ends: "Failed", delayed: true}
	back := scenario{ends: "Success", back: true}
	for _, c := range []struct {
		goods
		sn     *regexp.Regexp
		target string
		scenario
	}{
		{airtime, serialForm, "087800001230", now},
		{airtime, serialForm, "087800001232", failed},
		{airtime, serialForm, "087800001233", later},
		{airtime, serialForm, "087800001234", laterFailed},
		{airtime, serialForm, "087800001244", back},
		{kwh, tokenForm, "12345678901", now},
		{kwh, tokenForm, "087800001232", failed},
		{kwh, tokenForm, "087800001233", later},
		{kwh, tokenForm, "087800001234", laterFailed},
		{kwh, tokenForm, "087800001244", back},
		{bill, paidForm, "530000000001", now},
		{bill, paidForm, "530000000006", failed},
		{bill, paidForm, "630000000001", later},
		{bill, paidForm, "630000000006", laterFailed},
		{bill.costs(22_000, 20_000), paidForm, "530000000002", back},
	} {
		t.Run(fmt.Sprintf("%s for %s", c.sku, c.target), func(t *testing.T) { sells(t, s, c.to(c.target), c.scenario, c.sn) })
	}
}

func (g goods) costs(price, cost int64) goods {
	g.qty, g.price, g.cost = price, price, cost
	return g
}

// sells follows one order from the balance before it to the callback after it.
func sells(t *testing.T, s harness.Shop, g goods, is scenario, sn *regexp.Regexp) {
	reference, before := harness.NewReference(), fundsOf(t, s)
	deposit := platform(t, s, "deposit")
	placeOrder(t, s, g, reference, "X-Callback-URL", s.SandboxURL+"/inbox/orders")
	if is.delayed {
		wantFunds(t, s, "while it is pending", g.during(before))
		upstream(t, s.Program, "clock", harness.Fields{"advance": delay})
	}
	o := awaitOrder(t, s, g, reference, is.ends, harness.PaidWithin)
	after, spent := before, int64(0)
	if is.ends == "Success" {
		after.Balance -= g.price
		spent = g.cost
	}
	if (is.ends == "Success") != sn.MatchString(o.SN) {
		t.Errorf("sn is %q of an order that ended as %s", o.SN, is.ends)
	}
	if !is.back {
		wantFunds(t, s, "after it", after)
		if got := platform(t, s, "deposit"); got != deposit+spent {
			t.Errorf("%d have left the deposit, want %d", got-deposit, spent)
		}
	}
	id := wantArrival(t, s, "ppob.status_update", g, o)
	if !is.back {
		return
	}
	if g.qty != 0 { // a bill has no number that is taken back by itself
		upstream(t, s.Program, "refund", harness.Fields{"reference": g.target})
	} else {
		upstream(t, s.Program, "clock", harness.Fields{"advance": delay})
	}
	harness.Await(t, harness.PaidWithin, "returned_at", func() bool { o = statusOfOrder(t, s, g, reference); return o.ReturnedAt != "" })
	if o.Status != "Failed" || o.Returned != g.price {
		t.Errorf("a success of %d that was taken back is %s, of %d", g.price, o.Status, o.Returned)
	}
	wantFunds(t, s, "after it was taken back", before)
	if got := platform(t, s, "deposit"); got != deposit {
		t.Errorf("%d have left the deposit after it was taken back", got-deposit)
	}
	if again := wantArrival(t, s, "ppob.returned", g, o); again == id {
		t.Errorf("two events are %s", id)
	}
	s.WantException(t, "returned", s.MerchantID, "ppob", fmt.Sprintf("reversal of %d, 0 left", g.price))
}

// wantArrival wants an order's callback in the inbox, signed by its merchant
// and with the contract's bytes, and returns its id.
func wantArrival(t *testing.T, s harness.Shop, event string, g goods, o orderStatus) string {
	t.Helper()
	got := s.AwaitInbox(t, event, o.RefID)
	o.ReturnedAt = orIf(event == "ppob.returned", o.ReturnedAt)
	if want := callbackOf(event, g, o); !want.MatchString(got.Body) {
		t.Errorf("the callback is\n%s, want\n%s", got.Body, want)
	}
	if !got.Verified || got.By["merchant_id"] != s.MerchantID || got.By["mode"] != s.Mode() {
		t.Errorf("the callback is verified: %t by %v (%s)", got.Verified, got.By, got.Reason)
	}
	return got.WebhookID
}

func orIf(holds bool, text string) string {
	if holds {
		return text
	}
	return ""
}

// platform is one of the platform's accounts at the provider.
func platform(t testing.TB, s harness.Shop, account string) int64 {
	t.Helper()
	balance, err := adminapi.ShowBalance.Call(t.Context(), s.Admin(), adminapi.BalanceQuery{Merchant: "platform", Mode: s.Mode()})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(balance.Accounts, func(a adminapi.AccountBalance) bool { return a.Account == account && a.Provider == "ppob" })
	if at < 0 {
		return 0
	}
	return int64(balance.Accounts[at].Amount)
}

func checkProducts(t *testing.T, p *harness.Program) {
	s := newBuyer(t, p, 0)
	whole := s.Ask(t, "/ppob/products", nil)
	var all []json.RawMessage
	if err := json.Unmarshal(whole.Data, &all); err != nil {
		t.Fatalf("%v: %s", err, whole)
	}
	for _, item := range []string{
		`{"buyer_sku_code":"xld10","product_name":"XL 10.000","category":"Pulsa","brand":"XL","type":"Prepaid","price":10850,"buyer_product_status":true,"desc":"-"}`,
		`{"buyer_sku_code":"isat25","product_name":"Indosat 25.000","category":"Pulsa","brand":"INDOSAT","type":"Prepaid","price":25050,"buyer_product_status":false,"desc":"-"}`,
		`{"buyer_sku_code":"axis10","product_name":"Axis 10.000","category":"Pulsa","brand":"AXIS","type":"Prepaid","price":10500,"buyer_product_status":false,"desc":"-"}`,
		`{"buyer_sku_code":"tri10","product_name":"Tri 10.000","category":"Pulsa","brand":"TRI","type":"Prepaid","price":10200,"buyer_product_status":false,"desc":"-"}`,
		`{"buyer_sku_code":"pln","product_name":"Pln Postpaid","category":"Pascabayar","brand":"PLN PASCABAYAR","type":"Pasca","price":2500,"buyer_product_status":true,"desc":"-"}`,
	} {
		if !slices.ContainsFunc(all, func(one json.RawMessage) bool { return string(one) == item }) {
			t.Errorf("the list has no item\n%s in\n%s", item, whole.Data)
		}
	}
	counts := map[string]int{}
	for kind, word := range map[string]string{"prepaid": "Prepaid", "pasca": "Pasca", "": ""} {
		body := s.Ask(t, "/ppob/products", harness.Fields{"type": kind})
		for name, ask := range map[string]func(path string) (harness.Answer, error){
			"the query of a POST with {}": func(path string) (harness.Answer, error) {
				return s.Send(t.Context(), http.MethodPost, path, []byte("{}"), nil)
			},
			"the query of a POST": func(path string) (harness.Answer, error) { return s.Send(t.Context(), http.MethodPost, path, nil, nil) },
			"GET":                 func(path string) (harness.Answer, error) { return s.Send(t.Context(), http.MethodGet, path, nil, nil) },
		} {
			if a, err := ask("/ppob/products?secret_key=" + s.Key + "&type=" + kind); err != nil || string(a.Data) != string(body.Data) {
				t.Errorf("%q by %s: %v %s, want %s", kind, name, err, a, body.Data)
			}
		}
		counts[kind] = strings.Count(string(body.Data), `"buyer_sku_code":`)
		if of := strings.Count(string(body.Data), `"type":"`+word); of != counts[kind] {
			t.Errorf("%d items of %q, and %d are %s", counts[kind], kind, of, word)
		}
	}
	if counts[""] != counts["prepaid"]+counts["pasca"] || counts["pasca"] == 0 || counts["prepaid"] == 0 || counts[""] != len(all) {
		t.Errorf("the items by type are %v", counts)
	}
	if a := s.Ask(t, "/ppob/products", harness.Fields{"type": "Prepaid"}); a.Code != fault.InvalidRequest || a.Errors[0].Field != "type" {
		t.Errorf("another type: %s", a)
	}
}

func checkInquiry(t *testing.T, p *harness.Program) {
	s := newBuyer(t, p, 0)
	month := time.Now().In(time.FixedZone("WIB", 7*60*60)).Format("200601")
	for _, c := range []struct {
		name   string
		asks   harness.Fields
		data   string
		code   fault.Code
		fields []string
	}{
		{"a bill", harness.Fields{"sku": "pln", "target": "530000000001"}, `{"sku":"pln","target":"530000000001","customer_name":"Nama Pelanggan Pertama","amount":8500,"admin":2500,"qty":11000,"period":"` + month + `"}`, "", nil},
		{"spelt by people", harness.Fields{"sku": "pln", "target": "5300-0000 0001"}, `{"sku":"pln","target":"5300-0000 0001","customer_name":"Nama Pelanggan Pertama","amount":8500,"admin":2500,"qty":11000,"period":"` + month + `"}`, "", nil},
		{"open amount", harness.Fields{"sku": "emoney", "target": "8102051011300001", "qty": 20000}, `{"sku":"emoney","target":"8102051011300001","customer_name":"Nama Pelanggan Pertama","amount":20000,"admin":1000,"qty":21000,"period":"` + month + `"}`, "", nil},
		{"no bill now", harness.Fields{"sku": "pln", "target": "530000000003"}, "", fault.DestinationInvalid, []string{"target"}},
		{"nobody", harness.Fields{"sku": "pln", "target": "530000000099"}, "", fault.DestinationInvalid, []string{"target"}},
		{"no number", harness.Fields{"sku": "pln", "target": "meter"}, "", fault.DestinationInvalid, []string{"target"}},
		{"no product", harness.Fields{"sku": "nope", "target": "530000000001"}, "", fault.InvalidRequest, []string{"sku"}},
		{"a prepaid product", harness.Fields{"sku": "xld10", "target": "nobody", "qty": 1500}, "", fault.InvalidRequest, []string{"sku"}},
		{"no product before the target", harness.Fields{"sku": "nope", "target": "meter"}, "", fault.InvalidRequest, []string{"sku"}},
		{"no year", harness.Fields{"sku": "cimahi", "target": "329801092375999991"}, "", fault.DestinationInvalid, []string{"target"}},
		{"no target", harness.Fields{"sku": "pln"}, "", fault.InvalidRequest, []string{"target"}},
	} {
		a := s.Ask(t, "/ppob/inquiry", c.asks)
		var named []string
		for _, f := range a.Errors {
			named = append(named, f.Field)
		}
		if a.Code != c.code || c.code == "" && string(a.Data) != c.data || !slices.Equal(named, c.fields) || c.code != "" && a.Sent != fault.SentNo {
			t.Errorf("%s: %s, want %s %s %v", c.name, a, c.code, c.data, c.fields)
		}
	}
}

// checkOrderErrors sends orders that fail before the money call: nothing is
// charged, nothing is sent, and the reference stays free.
func checkOrderErrors(t *testing.T, p *harness.Program) {
	s := newBuyer(t, p, 100_000)
	before := fundsOf(t, s)
	for _, c := range []struct {
		name   string
		goods  goods
		others harness.Fields
		code   fault.Code
		retry  fault.Retry
		fields []string
	}{
		{"unknown product", goods{sku: "nope", target: harness.UnknownPhone()}, nil, fault.InvalidRequest, fault.RetryAfterChange, []string{"sku"}},
		{"unknown product for a malformed target", goods{sku: "nope", target: "x"}, nil, fault.InvalidRequest, fault.RetryAfterChange, []string{"sku"}},
		{"switched off by us", goods{sku: "isat25", target: harness.UnknownPhone()}, nil, fault.ProductUnavailable, fault.RetryLater, nil},
		{"switched off by its seller", goods{sku: "axis10", target: harness.UnknownPhone()}, nil, fault.ProductUnavailable, fault.RetryLater, nil},
		{"out of stock", goods{sku: "tri10", target: "x"}, nil, fault.ProductUnavailable, fault.RetryLater, nil},
		{"malformed phone", airtime.to("0812abc"), nil, fault.DestinationInvalid, fault.RetryAfterChange, []string{"target"}},
		{"another country's phone", airtime.to("+6591234567"), nil, fault.DestinationInvalid, fault.RetryAfterChange, []string{"target"}},
		{"nobody's bill", bill.to("530000000099"), nil, fault.DestinationInvalid, fault.RetryAfterChange, []string{"target"}},
		{"no bill now", bill.to("530000000003"), nil, fault.DestinationInvalid, fault.RetryAfterChange, []string{"target"}},
		{"a bill without qty", bill, harness.Fields{"qty": nil}, fault.InvalidRequest, fault.RetryAfterChange, []string{"qty"}},
		{"not the bill's qty", bill, harness.Fields{"qty": 10_999}, fault.InvalidRequest, fault.RetryAfterChange, []string{"qty"}},
		{"qty with a fraction", bill, harness.Fields{"qty": 11_000.5}, fault.InvalidRequest, fault.RetryAfterChange, []string{"qty"}},
		{"qty below zero", bill, harness.Fields{"qty": -11_000}, fault.InvalidRequest, fault.RetryAfterChange, []string{"qty"}},
		{"qty as text", bill, harness.Fields{"qty": "11000"}, fault.InvalidRequest, fault.RetryAfterChange, []string{"qty"}},
		{"an unknown field", airtime.to(harness.UnknownPhone()), harness.Fields{"amount": 1}, fault.InvalidRequest, fault.RetryAfterChange, []string{"amount"}},
		{"a target that is a number", airtime, harness.Fields{"target": 87800001230}, fault.InvalidRequest, fault.RetryAfterChange, []string{"target"}},
		{"no sku", airtime.to(harness.UnknownPhone()), harness.Fields{"sku": nil}, fault.InvalidRequest, fault.RetryAfterChange, []string{"sku"}},
		{"a long reference", airtime.to(harness.UnknownPhone()), harness.Fields{"ref_id": strings.Repeat("r", 256)}, fault.InvalidRequest, fault.RetryAfterChange, []string{"ref_id"}},
	} {
		reference := harness.NewReference()
		a := s.Ask(t, "/ppob/order", c.goods.order(reference).With(c.others))
		var named []string
		for _, f := range a.Errors {
			named = append(named, f.Field)
		}
		if a.Code != c.code || a.Sent != fault.SentNo || a.Retry != c.retry || !slices.Equal(named, c.fields) {
			t.Errorf("%s: %s, want %s, %s, %v", c.name, a, c.code, c.retry, c.fields)
		}
		if c.others["qty"] == 10_999 && !strings.Contains(a.Message, "11000") {
			t.Errorf("%s: %q does not name the right one", c.name, a.Message)
		}
		if b := s.Ask(t, "/ppob/status", harness.Fields{"ref_id": reference}); b.Code != fault.NotFound {
			t.Errorf("%s: its status is %s", c.name, b)
		}
		if c.goods.qty == 0 && c.goods.target != airtime.target {
			wantBought(t, p, c.goods.target, 0)
		}
	}
	wantFunds(t, s, "after every error", before)
	// A prepaid product's qty is ignored, and the reference of an error is free.
	g, reference := airtime.to(harness.UnknownPhone()), harness.NewReference()
	s.Ask(t, "/ppob/order", goods{sku: "nope", target: g.target}.order(reference))
	if a := s.Ask(t, "/ppob/order", g.order(reference).With(harness.Fields{"qty": 5})); !a.Success {
		t.Errorf("with a qty that means nothing: %s", a)
	}
	awaitOrder(t, s, g, reference, "Success", harness.PaidWithin)
	wantBought(t, p, g.target, 1)
}

func checkLastRupiah(t *testing.T, p *harness.Program) {
	for _, g := range []goods{airtime.to(harness.UnknownPhone()), bill.costs(65_000, 64_450).as("pdam", "1013226")} {
		s, reference := newBuyer(t, p, g.price-1), harness.NewReference()
		a := s.Ask(t, "/ppob/order", g.order(reference))
		if a.Code != fault.InsufficientBalance || a.Sent != fault.SentNo || a.Retry != fault.RetryLater || a.HTTP != http.StatusPaymentRequired {
			t.Errorf("a rupiah too few: %s", a)
		}
		wantFunds(t, s, "a rupiah too few", funds{Balance: g.price - 1})
		wantBought(t, p, g.target, 0)
		credit(t, s, 1)
		placeOrder(t, s, g, reference)
		awaitOrder(t, s, g, reference, "Success", harness.PaidWithin)
		wantFunds(t, s, "the last rupiah", funds{})
		if a := s.Ask(t, "/ppob/order", g.order(harness.NewReference())); a.Code != fault.InsufficientBalance {
			t.Errorf("with nothing left: %s", a)
		}
		wantBought(t, p, g.target, 1)
	}
}

func (g goods) as(sku, target string) goods {
	g.sku, g.target = sku, target
	return g
}

// checkOrderReferences uses a reference again when no money is left, and with
// products that cannot be bought: the reference is checked first.
func checkOrderReferences(t *testing.T, p *harness.Program) {
	g, reference := airtime.to(harness.UnknownPhone()), harness.NewReference()
	s := newBuyer(t, p, g.price)
	first := placeOrder(t, s, g, reference)
	awaitOrder(t, s, g, reference, "Success", harness.PaidWithin)
	wantFunds(t, s, "everything spent", funds{})
	if again := placeOrder(t, s, g, reference); !again.Replayed() || first.Replayed() {
		t.Errorf("replayed: %t and then %t", first.Replayed(), again.Replayed())
	}
	for name, other := range map[string]goods{
		"sku": g.as("xld25", g.target), "sku unknown": g.as("nope", g.target), "sku switched off": g.as("isat25", g.target),
		"target": g.to(harness.UnknownPhone()), "target malformed": g.to("x"),
	} {
		a := s.Ask(t, "/ppob/order", other.order(reference))
		field, _, _ := strings.Cut(name, " ")
		if a.Code != fault.DuplicateReference || a.Retry != fault.RetryNever || len(a.Errors) != 1 || a.Errors[0].Field != field {
			t.Errorf("the reference with another %s: %s", name, a)
		}
	}
	if a := s.Ask(t, "/ppob/order", g.order(harness.NewReference())); a.Code != fault.InsufficientBalance {
		t.Errorf("a fresh reference: %s", a)
	}
	wantBought(t, p, g.target, 1)
}

func checkOrderIsolation(t *testing.T, p *harness.Program) {
	live, other := newBuyer(t, p, 50_000), newBuyer(t, p, 50_000)
	test := live
	for _, m := range p.Known() {
		if m.MerchantID == live.MerchantID {
			test.Key = m.TestKey
		}
	}
	const toppedUp = 10_000_000 // by test mode itself, which spends nothing that is live
	g, reference := airtime.to(harness.UnknownPhone()), harness.NewReference()
	placeOrder(t, test, g, reference)
	for who, s := range map[string]harness.Shop{"the other mode": live, "the other merchant": other} {
		if a := s.Ask(t, "/ppob/status", harness.Fields{"ref_id": reference}); a.Code != fault.NotFound {
			t.Errorf("%s sees it: %s", who, a)
		}
		wantFunds(t, s, who, funds{Balance: 50_000})
	}
	// The same reference is free to each of them, also for another order.
	for _, s := range []harness.Shop{live, other} {
		theirs := kwh.to("12345678902")
		placeOrder(t, s, theirs, reference)
		awaitOrder(t, s, theirs, reference, "Success", harness.PaidWithin)
		wantFunds(t, s, "its own order", funds{Balance: 50_000 - kwh.price})
	}
	awaitOrder(t, test, g, reference, "Success", harness.PaidWithin)
	wantFunds(t, test, "its own order", funds{Balance: toppedUp - g.price})
}

func checkOrderScopes(t *testing.T, p *harness.Program) {
	s := newBuyer(t, p, 50_000)
	for scope, may := range map[string][]string{
		"read": {"/ppob/products", "/ppob/inquiry", "/ppob/status", "/balance"}, "order": {"/ppob/order"}, "collect": {},
	} {
		made, err := adminapi.CreateKey.Call(t.Context(), p.Admin(), adminapi.NewKey{Merchant: s.MerchantID, Mode: "live", Scopes: []string{scope}})
		if err != nil {
			t.Fatal(err)
		}
		bound := s
		bound.Key = made.SecretKey
		for path, asks := range map[string]harness.Fields{
			"/ppob/products": {}, "/ppob/inquiry": {"sku": "pln", "target": "530000000001"}, "/ppob/status": {"ref_id": "none"}, "/balance": {},
			"/ppob/order": airtime.to(harness.UnknownPhone()).order(harness.NewReference()),
		} {
			a := bound.Ask(t, path, asks)
			if denied := a.Code == fault.ScopeMissing; denied == slices.Contains(may, path) {
				t.Errorf("scope %s at %s: %s", scope, path, a)
			}
		}
	}
}

// checkFiftyEqual sends the same order fifty times at the same moment, prepaid
// and a bill.
func checkFiftyEqual(t *testing.T, p *harness.Program) {
	for _, g := range []goods{airtime.to(harness.UnknownPhone()), bill.costs(299_750, 298_550).as("internet", "6391601001")} {
		s := newBuyer(t, p, 100*g.price)
		equally(t, g, slices.Repeat([]harness.Shop{s}, 50))
		wantFunds(t, s, "after fifty equal orders", funds{Balance: 99 * g.price})
		wantBought(t, p, g.target, 1)
	}
}

// equally has shops of one merchant place the same order at once. All get the
// same answer, and one of them the first.
func equally(t *testing.T, g goods, shops []harness.Shop) {
	t.Helper()
	reference := harness.NewReference()
	answers := together(t, shops, func(int) (goods, string) { return g, reference })
	for _, a := range answers {
		harness.WantBody(t, a, g.taken(reference))
	}
	firsts := slices.DeleteFunc(answers, harness.Answer.Replayed)
	if len(firsts) != 1 {
		t.Errorf("%d answers to %d equal orders are no replays, want one", len(firsts), len(shops))
	}
	awaitOrder(t, shops[0], g, reference, "Success", harness.PaidWithin)
}
