package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

// paidWithin is the bound for outcomes that the sandbox brings.
const paidWithin = 10 * time.Second

// TestMerchantsView drives one program as merchants and payers do. The checks
// run side by side, each with references of its own.
func TestMerchantsView(t *testing.T) {
	t.Parallel()
	p := start(t, settings{})
	for name, check := range map[string]func(*testing.T, *program){
		"end to end":          checkEndToEnd,
		"modes and merchants": checkIsolation,
		"replays":             checkReplays,
		"references":          checkReferences,
		"cancel":              checkCancel,
		"wrong amount":        checkWrongAmount,
		"magic amounts":       checkMagic,
		"refusals":            checkRefusals,
		"bad input":           checkBadInput,
		"routes":              checkRoutes,
		"description":         checkOpenAPI,
		"checkout page":       checkCheckoutPage,
		"qr on our own page":  checkOwnQRPage,
		"browser":             checkBrowser,
		"console":             checkConsole,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, p)
		})
	}
}

var stamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)

// payable are the ways in which a payer can pay what a create answered.
var payable = map[string]struct {
	fields fields
	how    func(t *testing.T, p *program, made payment) fields
}{
	"qr_string": {
		fields{"type": "qris"},
		func(_ *testing.T, _ *program, made payment) fields { return fields{"qr_string": made.QRString} },
	},
	"checkout_url": {
		fields{"type": "payment_link"},
		func(_ *testing.T, _ *program, made payment) fields { return fields{"url": made.CheckoutURL} },
	},
	"the provider's page": {
		fields{}, // payment_link is the default
		func(t *testing.T, p *program, made payment) fields {
			return fields{"url": p.providersPage(t, made.CheckoutURL)}
		},
	},
}

func checkEndToEnd(t *testing.T, p *program) {
	for way, w := range payable {
		for merchant := range p.Merchants {
			for _, mode := range []string{"live", "test"} {
				if merchant == small && mode == "live" {
					continue // another check needs its rate
				}
				t.Run(fmt.Sprintf("%s of %s in %s", way, p.Merchants[merchant].Tier, mode), func(t *testing.T) {
					t.Parallel()
					s := p.shop(merchant, mode)
					made := s.createExactly(t, w.fields.with(fields{"amount": 25000}))
					p.pay(t, w.how(t, p, made))
					s.paidExactly(t, made)
				})
			}
		}
	}
}

// createExactly creates a payment and holds its answer against the contract.
// The small merchant's rate is waited for.
func (s shop) createExactly(t *testing.T, f fields) payment {
	t.Helper()
	order := s.order(f)
	a := s.patiently(t, "/payments/create", order)
	made := a.payment()
	want := []string{"amount", "checkout_url", "external_id", "status"}
	if f["type"] == "qris" {
		want = []string{"amount", "external_id", "qr_string", "status"}
		code, err := qris.Parse(made.QRString)
		if err != nil {
			t.Fatalf("qr_string %q: %v", made.QRString, err)
		}
		if amount, ok := code.Amount(); !ok || amount != money.Amount(made.Amount) {
			t.Errorf("the QR code asks for %v (%t), want %d", amount, ok, made.Amount)
		}
	} else if !strings.HasPrefix(made.CheckoutURL, s.APIURL+"/checkout/") {
		t.Errorf("checkout_url %q is not on %s", made.CheckoutURL, s.APIURL)
	}
	if got := a.keys(); !slices.Equal(got, want) {
		t.Errorf("data has %v, want %v", got, want)
	}
	if made.Status != "PENDING" || made.Amount != int64(order["amount"].(int)) || made.ExternalID != order["external_id"] {
		t.Errorf("answered %s to %v", a, order)
	}
	return made
}

// patiently asks again as long as the answer is RATE_LIMITED.
func (s shop) patiently(t testing.TB, path string, f fields) answer {
	t.Helper()
	var a answer
	await(t, 30*time.Second, "a token of the rate", func() bool {
		a = s.ask(t, path, f)
		return a.Code != fault.RateLimited
	})
	if !a.Success {
		t.Fatalf("%s: %s", path, a)
	}
	return a
}

// paidExactly waits for PAID and holds the status against the contract.
func (s shop) paidExactly(t *testing.T, made payment) {
	t.Helper()
	var a answer
	if err := until(paidWithin, func() bool {
		a = s.patiently(t, "/payments/status", fields{"external_id": made.ExternalID})
		return a.payment().Status == "PAID"
	}); err != nil {
		t.Fatalf("after %v: %s", paidWithin, a)
	}
	if want := []string{"amount", "created_at", "external_id", "payer_email", "status", "updated_at"}; !slices.Equal(a.keys(), want) {
		t.Errorf("data has %v, want %v", a.keys(), want)
	}
	paid := a.payment()
	if paid.Amount != made.Amount || paid.ExternalID != made.ExternalID || paid.PayerEmail != "payer@example.com" {
		t.Errorf("status says %s of %+v", a, made)
	}
	if !stamp.MatchString(paid.CreatedAt) || !stamp.MatchString(paid.UpdatedAt) || paid.UpdatedAt < paid.CreatedAt {
		t.Errorf("created_at %q, updated_at %q", paid.CreatedAt, paid.UpdatedAt)
	}
}

func checkIsolation(t *testing.T, p *program) {
	live, test, other := p.shop(large, "live"), p.shop(large, "test"), p.shop(small, "live")
	reference := uuid.NewString()
	test.create(t, fields{"external_id": reference, "amount": 11001})
	for who, s := range map[string]shop{"the other mode": live, "the other merchant": other} {
		for _, path := range []string{"/payments/status", "/payments/cancel"} {
			if a := s.ask(t, path, fields{"external_id": reference}); a.Code != fault.NotFound {
				t.Errorf("%s sees it at %s: %s", who, path, a)
			}
		}
	}
	// The same reference is free to each of them, also for another request.
	live.create(t, fields{"external_id": reference, "amount": 11002})
	other.create(t, fields{"external_id": reference, "amount": 11003})
	for s, want := range map[shop]int64{test: 11001, live: 11002, other: 11003} {
		if got := s.status(t, reference); got.Amount != want || got.Status != "PENDING" {
			t.Errorf("got %+v, want %d PENDING", got, want)
		}
	}
	a := test.ask(t, "/payments/create", other.order(nil))
	if a.Code != fault.AuthFailed {
		t.Errorf("a key with another's merchant_id: %s", a)
	}
	p.wantUpstream(t, 11001, 11002, 11003)
}

// wantUpstream wants a payment of each amount upstream, and one only.
func (p *program) wantUpstream(t *testing.T, amounts ...int64) {
	t.Helper()
	seen := map[int64]int{}
	for _, m := range p.movements(t) {
		seen[m.Amount]++
	}
	for _, amount := range amounts {
		if seen[amount] != 1 {
			t.Errorf("a payment of %d is %d times upstream, want once", amount, seen[amount])
		}
	}
}

func checkReplays(t *testing.T, p *program) {
	s := p.shop(large, "live")
	for _, kind := range []string{"payment_link", "qris"} {
		order := s.order(fields{"type": kind, "amount": 12000, "description": "Kopi"})
		first := s.ask(t, "/payments/create", order)
		if !first.Success || first.replayed() {
			t.Fatalf("%s: %s", kind, first)
		}
		// Other words for the same request: null, "", another spelling of the number.
		again := s.ask(t, "/payments/create", order.with(fields{"success_url": "", "amount": json.RawMessage("12000.00")}))
		if !again.replayed() || string(again.Data) != string(first.Data) {
			t.Errorf("%s: a replay answered %s, first %s", kind, again, first)
		}
		changed := s.ask(t, "/payments/create", order.with(fields{"amount": 12001, "description": "Susu", "success_url": "https://shop.example/"}))
		var named []string
		for _, e := range changed.Errors {
			named = append(named, e.Field)
		}
		if want := []string{"amount", "description", "success_url"}; changed.Code != fault.DuplicateReference || !slices.Equal(named, want) {
			t.Errorf("%s: another request under the reference: %s, want DUPLICATE_REFERENCE that names %v", kind, changed, want)
		}
		made := first.payment()
		if kind == "qris" {
			p.pay(t, fields{"qr_string": made.QRString})
		} else {
			p.pay(t, fields{"url": made.CheckoutURL})
		}
		s.becomes(t, made.ExternalID, "PAID", paidWithin)
		if after := s.ask(t, "/payments/create", order); !after.replayed() || string(after.Data) != string(first.Data) {
			t.Errorf("%s: a replay after PAID answered %s, first %s", kind, after, first)
		}
	}
}

func checkReferences(t *testing.T, p *program) {
	s := p.shop(large, "test")
	generated := s.ask(t, "/payments/create", s.order(fields{"external_id": nil}))
	if made := generated.payment(); made.ExternalID == "" || s.status(t, made.ExternalID).Status != "PENDING" {
		t.Errorf("without a reference: %s", generated)
	}
	key := "INV/2026/#" + uuid.NewString()
	for _, replayed := range []bool{false, true} {
		a := s.ask(t, "/payments/create", s.order(fields{"external_id": nil}), "Idempotency-Key", key)
		if a.payment().ExternalID != key || a.replayed() != replayed {
			t.Errorf("with Idempotency-Key: %s, replayed %t, want %t", a, a.replayed(), replayed)
		}
	}
	differing := s.ask(t, "/payments/create", s.order(nil), "Idempotency-Key", key)
	if differing.Code != fault.InvalidRequest || len(differing.Errors) != 2 {
		t.Errorf("a reference and an Idempotency-Key that differ: %s", differing)
	}
	bearer := s
	bearer.key = ""
	if a := bearer.ask(t, "/payments/status", fields{"external_id": key, "secret_key": nil}, "Authorization", "Bearer "+s.key); !a.Success {
		t.Errorf("with Authorization: Bearer: %s", a)
	}
	with := s.ask(t, "/payments/create", s.order(fields{"metadata": fields{"table": "7"}}))
	if status := s.ask(t, "/payments/status", fields{"external_id": with.payment().ExternalID}); !strings.Contains(string(with.Data), `"metadata":{"table":"7"}`) ||
		!strings.Contains(string(status.Data), `"metadata":{"table":"7"}`) {
		t.Errorf("metadata is not returned: %s, %s", with, status)
	}
}

func checkCancel(t *testing.T, p *program) {
	s := p.shop(large, "live")
	for _, c := range []struct {
		name   string
		fields fields
		late   bool // can still be paid upstream
	}{
		{"link", fields{"amount": 13000}, false},
		{"link that can be paid late", fields{"amount": 10115}, true},
		{"qris", fields{"amount": 13001, "type": "qris"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			made := s.create(t, c.fields)
			what := fields{"qr_string": made.QRString}
			if made.CheckoutURL != "" {
				what = fields{"url": p.providersPage(t, made.CheckoutURL)}
			}
			for range 2 { // the second changes nothing
				a := s.ask(t, "/payments/cancel", fields{"external_id": made.ExternalID})
				if !a.Success || a.payment().Status != "EXPIRED" {
					t.Fatalf("cancel: %s", a)
				}
			}
			if !c.late {
				var refusal json.RawMessage
				if status := p.door(t, "/pay", what, &refusal); status != http.StatusConflict {
					t.Errorf("paying what was cancelled: %d %s", status, refusal)
				}
				return
			}
			p.pay(t, what)
			await(t, paidWithin, "paid_late_at", func() bool { return s.status(t, made.ExternalID).PaidLateAt != "" })
			if got := s.status(t, made.ExternalID).Status; got != "EXPIRED" {
				t.Errorf("late money made it %s", got)
			}
			p.onTheList(t, "paid_late", made.Amount)
		})
	}
	paid := s.create(t, fields{"type": "qris"})
	p.pay(t, fields{"qr_string": paid.QRString})
	s.becomes(t, paid.ExternalID, "PAID", paidWithin)
	if a := s.ask(t, "/payments/cancel", fields{"external_id": paid.ExternalID}); a.payment().Status != "PAID" {
		t.Errorf("cancel of what is paid: %s", a)
	}
}

// onTheList wants an entry of the operators' list about an amount.
func (p *program) onTheList(t *testing.T, reason string, amount int64) {
	t.Helper()
	await(t, paidWithin, reason+" on the operators' list", func() bool {
		list, err := p.admin().Exceptions(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range list {
			if entry.Reason == reason && strings.Contains(entry.Detail, fmt.Sprint(amount)) {
				return true
			}
		}
		return false
	})
}

func checkWrongAmount(t *testing.T, p *program) {
	s := p.shop(large, "test")
	made := s.create(t, fields{"type": "qris", "amount": 14000})
	p.pay(t, fields{"qr_string": made.QRString, "amount": 13999})
	p.onTheList(t, "amount_differs", 13999)
	if got := s.status(t, made.ExternalID); got.Status != "PENDING" {
		t.Errorf("a payment of another amount made it %s", got.Status)
	}
	if out, err := p.run(t, "exception", "list"); err != nil || !strings.Contains(out, "amount_differs") {
		t.Errorf("gerbang exception list: %v\n%s", err, out)
	}
}

// checkMagic tries the amounts that make the simulator behave oddly.
func checkMagic(t *testing.T, p *program) {
	s := p.shop(large, "test")
	for _, c := range []struct {
		name   string
		amount int
		pay    bool
		lasts  time.Duration // PAID must still stand after it
		within time.Duration
	}{
		{"notified twice", 10110, true, time.Second, paidWithin},
		{"outdated news afterwards", 10111, true, 3 * time.Second, paidWithin},
		{"never notified", 10112, true, 0, paidWithin},
		{"outdated news first", 10113, true, 3 * time.Second, paidWithin},
		{"paid by itself", 10114, false, 0, paidWithin},
	} {
		for _, kind := range []string{"payment_link", "qris"} {
			t.Run(c.name+" "+kind, func(t *testing.T) {
				t.Parallel()
				made := s.create(t, fields{"amount": c.amount, "type": kind})
				if c.pay && kind == "qris" {
					p.pay(t, fields{"qr_string": made.QRString})
				} else if c.pay {
					p.pay(t, fields{"url": made.CheckoutURL})
				}
				s.becomes(t, made.ExternalID, "PAID", c.within)
				if until(c.lasts, func() bool { return s.status(t, made.ExternalID).Status != "PAID" }) == nil {
					t.Errorf("PAID became %s", s.status(t, made.ExternalID).Status)
				}
			})
		}
	}
}

// checkRefusals is about creations that the provider does not take.
func checkRefusals(t *testing.T, p *program) {
	s := p.shop(large, "live")
	for _, c := range []struct {
		amount int
		kind   string
		code   fault.Code
		sent   fault.Sent
		free   bool // the reference, for another request
	}{
		{10100, "payment_link", fault.ProviderUnavailable, fault.SentNo, true},
		{10101, "qris", fault.ProviderUnavailable, fault.SentNo, true},
		{10102, "payment_link", fault.ProviderTimeout, fault.SentUnknown, false},
		{1_000_000_001, "payment_link", fault.ProviderRejected, fault.SentRefused, false},
	} {
		order := s.order(fields{"amount": c.amount, "type": c.kind})
		a := s.ask(t, "/payments/create", order)
		if a.Code != c.code || a.Sent != c.sent || a.ExternalID != order["external_id"] {
			t.Errorf("%d: %s, want %s, sent %s", c.amount, a, c.code, c.sent)
		}
		again := s.ask(t, "/payments/create", order.with(fields{"amount": 15000}))
		if again.Success != c.free || !c.free && again.Code != fault.DuplicateReference {
			t.Errorf("%d: the reference again with another request: %s, want it free: %t", c.amount, again, c.free)
		}
		if !c.free {
			if b := s.ask(t, "/payments/create", order); b.Code != a.Code {
				t.Errorf("%d: the same again: %s, want %s", c.amount, b, a.Code)
			}
		}
	}
}
