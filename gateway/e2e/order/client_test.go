package order_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// goods are what is ordered: a product for somebody, what its merchant pays for
// it, and what leaves the deposit.
type goods struct {
	sku, target string
	qty         int64 // 0 for what is prepaid
	price, cost int64
}

// The sorts of goods, for numbers of which the order succeeds at once.
var (
	airtime = goods{"xld10", "087800001230", 0, 10_850, 10_850}
	kwh     = goods{"pln20", "087800001230", 0, 20_150, 20_150}
	bill    = goods{"pln", "530000000001", 11_000, 11_000, 10_000}
)

func (g goods) to(target string) goods {
	g.target = target
	return g
}

// order is the body of an order.
func (g goods) order(reference string) harness.Fields {
	f := harness.Fields{"sku": g.sku, "target": g.target, "ref_id": reference}
	if g.qty != 0 {
		f["qty"] = g.qty
	}
	return f
}

// during are funds after goods were ordered and before they have come.
func (g goods) during(before funds) funds {
	before.Balance -= g.price
	if g.qty != 0 {
		before.Held += g.price
	}
	return before
}

// newBuyer makes a merchant that can spend so much in live mode.
func newBuyer(t testing.TB, p *harness.Program, balance int64) harness.Shop {
	t.Helper()
	made := p.NewMerchant(t)
	s := harness.Shop{Program: p, MerchantID: made.MerchantID, Key: made.LiveKey}
	if balance > 0 {
		credit(t, s, balance)
	}
	return s
}

// credit gives the shop's merchant rupiah, in its mode.
func credit(t testing.TB, s harness.Shop, amount int64) {
	t.Helper()
	order := adminapi.NewAdjustment{Mode: s.Mode(), Amount: money.Amount(amount), Reason: "for a test", Reference: uuid.NewString()}
	order.Merchant = s.MerchantID
	if _, err := adminapi.Credit.Call(t.Context(), s.Admin(), order); err != nil {
		t.Fatal(err)
	}
}

// funds are the data of a balance.
type funds struct{ Balance, Held int64 }

func fundsOf(t testing.TB, s harness.Shop) funds {
	t.Helper()
	a := s.Ask(t, "/balance", nil)
	var f funds
	if err := json.Unmarshal(a.Data, &f); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	if want := fmt.Sprintf(`{"balance":%d,"held":%d,"currency":"IDR"}`, f.Balance, f.Held); string(a.Data) != want {
		t.Errorf("the balance is %s, want the form %s", a.Data, want)
	}
	return f
}

func wantFunds(t testing.TB, s harness.Shop, what string, want funds) {
	t.Helper()
	if got := fundsOf(t, s); got != want {
		t.Errorf("%s: the balance is %+v, want %+v", what, got, want)
	}
}

// placeOrder orders goods, which must be taken, and holds the answer against the
// contract byte for byte.
func placeOrder(t testing.TB, s harness.Shop, g goods, reference string, headers ...string) harness.Answer {
	t.Helper()
	a := s.Ask(t, "/ppob/order", g.order(reference), headers...)
	harness.WantBody(t, a, g.taken(reference))
	return a
}

// taken is the contract's answer to an order.
func (g goods) taken(reference string) string {
	return fmt.Sprintf(`{"success":true,"message":"The order is being processed.","data":{"ref_id":%q,"sku":%q,"target":%q,"status":"Pending"}}`,
		reference, g.sku, g.target)
}

// together has shops order at once: goods by their number, under a reference.
func together(t testing.TB, shops []harness.Shop, of func(int) (goods, string)) []harness.Answer {
	t.Helper()
	answers, faults := make([]harness.Answer, len(shops)), make([]error, len(shops))
	var group sync.WaitGroup
	for i, s := range shops {
		g, reference := of(i)
		group.Go(func() { answers[i], faults[i] = s.Insist(t.Context(), "/ppob/order", g.order(reference)) })
	}
	group.Wait()
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
	return answers
}

// orderStatus is what a status tells of an order.
type orderStatus struct {
	RefID      string `json:"ref_id"`
	SKU        string `json:"sku"`
	Target     string `json:"target"`
	Status     string `json:"status"`
	SN         string `json:"sn"`
	Returned   int64  `json:"returned_amount"`
	ReturnedAt string `json:"returned_at"`
	message    string
}

// statusOfOrder asks how an order stands, and holds the answer against the
// contract.
func statusOfOrder(t testing.TB, s harness.Shop, g goods, reference string) orderStatus {
	t.Helper()
	a := s.Ask(t, "/ppob/status", harness.Fields{"ref_id": reference})
	var o orderStatus
	if err := json.Unmarshal(a.Data, &o); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	o.message = a.Message
	data := fmt.Sprintf(`"ref_id":%q,"sku":%q,"target":%q,"status":%q`, reference, g.sku, g.target, o.Status)
	if o.SN != "" {
		data += fmt.Sprintf(`,"sn":%q`, o.SN)
	}
	data += o.back()
	harness.WantBody(t, a, fmt.Sprintf(`{"success":true,"message":%q,"status":%q,"data":{%s}}`, a.Message, o.Status, data))
	return o
}

// back is how a status and a callback tell that an order's money went back.
func (o orderStatus) back() string {
	if o.ReturnedAt == "" {
		return ""
	}
	return fmt.Sprintf(`,"returned_amount":%d,"returned_at":%q`, o.Returned, o.ReturnedAt)
}

// awaitOrder waits until an order has ended, in a status.
func awaitOrder(t testing.TB, s harness.Shop, g goods, reference, status string, within time.Duration) orderStatus {
	t.Helper()
	var last orderStatus
	if err := harness.Until(within, func() bool {
		last = statusOfOrder(t, s, g, reference)
		return last.Status == status
	}); err != nil {
		t.Fatalf("%s of %s for %s is %s after %v, want %s", reference, g.sku, g.target, last.Status, within, status)
	}
	return last
}

// callbackOf is the exact body of an order's callback but for its time.
func callbackOf(event string, g goods, o orderStatus) *regexp.Regexp {
	body := fmt.Sprintf(`{"event":%q,"data":{"ref_id":%q,"sku":%q,"target":%q,"status":%q,"sn":%q,"message":%q,"timestamp":"TIME"`,
		event, o.RefID, g.sku, g.target, o.Status, o.SN, o.message)
	if body += o.back(); event == "ppob.returned" {
		body += fmt.Sprintf(`,"return":{"id":"","sort":"reversal","amount":%d,"at":%q}`, o.Returned, o.ReturnedAt)
	}
	return regexp.MustCompile("^" + strings.Replace(regexp.QuoteMeta(body+"}}"), "TIME", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, 1) + "$")
}

// upstream gives the provider's simulator one of its own orders, which must work.
func upstream(t testing.TB, p *harness.Program, order string, body harness.Fields) {
	t.Helper()
	var done json.RawMessage
	path := "/providers/ppob/" + order
	if p.ReadyFile == "" { // of a deployment, whose simulator is reached directly
		path = "/" + order
	}
	if status := p.Sandbox(t, path, body, &done); status != http.StatusOK {
		t.Fatalf("%s %v: %d %s", order, body, status, done)
	}
}

// bought are the purchases that the provider knows for a customer number.
func bought(t testing.TB, p *harness.Program, target string) []harness.UpstreamMovement {
	t.Helper()
	return slices.DeleteFunc(p.UpstreamMovements(t), func(m harness.UpstreamMovement) bool { return m.Provider != "ppob" || m.Destination != target })
}

// wantBought wants so many purchases for a customer number.
func wantBought(t testing.TB, p *harness.Program, target string, count int) {
	t.Helper()
	if got := bought(t, p, target); len(got) != count {
		t.Errorf("%d purchases for %s upstream, want %d: %v", len(got), target, count, got)
	}
}
