package app_test

import (
	"bytes"
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
func (g goods) order(reference string) fields {
	f := fields{"sku": g.sku, "target": g.target, "ref_id": reference}
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

// anybody is a phone number that the simulator knows nothing of: whatever is
// bought for it can be told apart by it.
func anybody() string {
	return "0878" + fmt.Sprintf("%08d", 30_000_000+uuid.New().ID()%60_000_000)
}

// newReference is a reference as shops number.
func newReference() string { return "INV/2026/#" + uuid.NewString() }

// newBuyer makes a merchant that can spend so much in live mode.
func (p *program) newBuyer(t testing.TB, balance int64) shop {
	t.Helper()
	made := p.register(t)
	s := shop{p, made.MerchantID, made.LiveKey}
	if balance > 0 {
		s.credit(t, balance)
	}
	return s
}

// register makes a merchant whose secrets the log is searched for.
func (p *program) register(t testing.TB) merchant {
	t.Helper()
	made, err := p.admin().CreateMerchant(t.Context(), adminapi.NewMerchant{Name: "Toko Pulsa", Tier: "scale"})
	if err != nil {
		t.Fatal(err)
	}
	m := merchant{made.MerchantID, "scale", made.LiveKey, made.TestKey, made.CallbackSecret, made.TestCallbackSecret}
	p.known.Lock()
	defer p.known.Unlock()
	p.guests = append(p.guests, m)
	return m
}

func (s shop) mode() string {
	if strings.HasPrefix(s.key, "sk_test_") {
		return "test"
	}
	return "live"
}

// credit gives the shop's merchant rupiah, in its mode.
func (s shop) credit(t testing.TB, amount int64) {
	t.Helper()
	order := adminapi.NewAdjustment{Mode: s.mode(), Amount: money.Amount(amount), Reason: "for a test", Reference: uuid.NewString()}
	if _, err := s.admin().Credit(t.Context(), s.merchant, order); err != nil {
		t.Fatal(err)
	}
}

// funds are the data of a balance.
type funds struct{ Balance, Held int64 }

func (s shop) funds(t testing.TB) funds {
	t.Helper()
	a := s.ask(t, "/balance", nil)
	var f funds
	if err := json.Unmarshal(a.Data, &f); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	if want := fmt.Sprintf(`{"balance":%d,"held":%d,"currency":"IDR"}`, f.Balance, f.Held); string(a.Data) != want {
		t.Errorf("the balance is %s, want the form %s", a.Data, want)
	}
	return f
}

func (s shop) wantFunds(t testing.TB, what string, want funds) {
	t.Helper()
	if got := s.funds(t); got != want {
		t.Errorf("%s: the balance is %+v, want %+v", what, got, want)
	}
}

// place orders goods, which must be taken, and holds the answer against the
// contract byte for byte.
func (s shop) place(t testing.TB, g goods, reference string, headers ...string) answer {
	t.Helper()
	a := s.ask(t, "/ppob/order", g.order(reference), headers...)
	wantBody(t, a, g.taken(reference))
	return a
}

// taken is the contract's answer to an order.
func (g goods) taken(reference string) string {
	return fmt.Sprintf(`{"success":true,"message":"The order is being processed.","data":{"ref_id":%q,"sku":%q,"target":%q,"status":"Pending"}}`,
		reference, g.sku, g.target)
}

// together has shops order at once: goods by their number, under a reference.
func together(t testing.TB, shops []shop, of func(int) (goods, string)) []answer {
	t.Helper()
	answers, faults := make([]answer, len(shops)), make([]error, len(shops))
	var group sync.WaitGroup
	for i, s := range shops {
		g, reference := of(i)
		group.Go(func() { answers[i], faults[i] = s.post(t.Context(), "/ppob/order", g.order(reference)) })
	}
	group.Wait()
	if err := errors.Join(faults...); err != nil {
		t.Fatal(err)
	}
	return answers
}

func wantBody(t testing.TB, a answer, want string) {
	t.Helper()
	if got := string(bytes.TrimSpace(a.Body)); a.HTTP != http.StatusOK || got != want {
		t.Errorf("answered %d\n%s, want\n%s", a.HTTP, got, want)
	}
}

// told is what a status tells of an order.
type told struct {
	RefID      string `json:"ref_id"`
	SKU        string `json:"sku"`
	Target     string `json:"target"`
	Status     string `json:"status"`
	SN         string `json:"sn"`
	ReversedAt string `json:"reversed_at"`
	message    string
}

// sale asks how an order stands, and holds the answer against the contract.
func (s shop) sale(t testing.TB, g goods, reference string) told {
	t.Helper()
	a := s.ask(t, "/ppob/status", fields{"ref_id": reference})
	var o told
	if err := json.Unmarshal(a.Data, &o); err != nil {
		t.Fatalf("%v: %s", err, a)
	}
	o.message = a.Message
	data := fmt.Sprintf(`"ref_id":%q,"sku":%q,"target":%q,"status":%q`, reference, g.sku, g.target, o.Status)
	for _, member := range []struct{ name, value string }{{"sn", o.SN}, {"reversed_at", o.ReversedAt}} {
		if member.value != "" {
			data += fmt.Sprintf(`,%q:%q`, member.name, member.value)
		}
	}
	wantBody(t, a, fmt.Sprintf(`{"success":true,"message":%q,"status":%q,"data":{%s}}`, a.Message, o.Status, data))
	return o
}

// ends waits until an order has ended, in a status.
func (s shop) ends(t testing.TB, g goods, reference, status string, within time.Duration) told {
	t.Helper()
	var last told
	if err := until(within, func() bool {
		last = s.sale(t, g, reference)
		return last.Status == status
	}); err != nil {
		t.Fatalf("%s of %s for %s is %s after %v, want %s", reference, g.sku, g.target, last.Status, within, status)
	}
	return last
}

// callbackOf is the exact body of an order's callback but for its time.
func callbackOf(event string, g goods, o told) *regexp.Regexp {
	body := fmt.Sprintf(`{"event":%q,"data":{"ref_id":%q,"sku":%q,"target":%q,"status":%q,"sn":%q,"message":%q,"timestamp":"TIME"`,
		event, o.RefID, g.sku, g.target, o.Status, o.SN, o.message)
	if event == "ppob.reversed" {
		body += fmt.Sprintf(`,"reversed_at":%q`, o.ReversedAt)
	}
	return regexp.MustCompile("^" + strings.Replace(regexp.QuoteMeta(body+"}}"), "TIME", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, 1) + "$")
}

// arrival is a callback as the sandbox's inbox shows it.
type arrival struct {
	Verified  bool              `json:"verified"`
	Reason    string            `json:"reason"`
	By        map[string]string `json:"by"`
	WebhookID string            `json:"webhook_id"`
	Event     string            `json:"event"`
	Reference string            `json:"reference"`
	Body      string            `json:"body"`
}

// arrived waits for one callback of an order in the inbox.
func (p *program) arrived(t testing.TB, event, reference string) arrival {
	t.Helper()
	var found arrival
	await(t, paidWithin, event+" of "+reference+" in the inbox", func() bool {
		var all []arrival
		p.door(t, "/inbox.json", nil, &all)
		at := slices.IndexFunc(all, func(a arrival) bool { return a.Event == event && a.Reference == reference })
		if at >= 0 {
			found = all[at]
		}
		return at >= 0
	})
	return found
}

// upstream gives the provider's simulator one of its own orders, which must work.
func (p *program) upstream(t testing.TB, order string, body fields) {
	t.Helper()
	var done json.RawMessage
	if status := p.door(t, "/providers/ppob/"+order, body, &done); status != http.StatusOK {
		t.Fatalf("%s %v: %d %s", order, body, status, done)
	}
}

// bought are the purchases that the provider knows for a customer number.
func (p *program) bought(t testing.TB, target string) []witnessed {
	t.Helper()
	return slices.DeleteFunc(p.movements(t), func(m witnessed) bool { return m.Provider != "ppob" || m.Destination != target })
}

// wantBought wants so many purchases for a customer number.
func (p *program) wantBought(t testing.TB, target string, count int) {
	t.Helper()
	if got := p.bought(t, target); len(got) != count {
		t.Errorf("%d purchases for %s upstream, want %d: %v", len(got), target, count, got)
	}
}

// wantCleanLedger has the operator's check prove the ledger.
func (p *program) wantCleanLedger(t testing.TB) {
	t.Helper()
	out, err := p.run(t, "ledger", "check")
	if err != nil || !strings.Contains(out, "every transaction sums to zero") {
		t.Errorf("gerbang ledger check: %v\n%s", err, out)
	}
}

// listed waits for an entry of the operators' list, as its command prints it.
func (p *program) listed(t testing.TB, parts ...string) {
	t.Helper()
	var out string
	if err := until(paidWithin, func() bool {
		var err error
		if out, err = p.run(t, "exception", "list"); err != nil {
			t.Fatalf("gerbang exception list: %v\n%s", err, out)
		}
		return slices.ContainsFunc(strings.Split(out, "\n"), func(line string) bool {
			return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
		})
	}); err != nil {
		t.Errorf("no line of the operators' list has %q:\n%s", parts, out)
	}
}
