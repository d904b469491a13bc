package payment_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

// newPayee is a merchant of its own with an account at payments in both modes.
func newPayee(t testing.TB, p *harness.Program, mode string) harness.Shop {
	t.Helper()
	return harness.NewShop(t, p, mode, "payments")
}

// TestPayments drives one program as merchants and payers do. The checks run side
// by side, each with a merchant of its own.
func TestPayments(t *testing.T) {
	t.Parallel()
	p := harness.Shared(t)
	for name, check := range map[string]func(*testing.T, *harness.Program){
		"end to end":          checkEndToEnd,
		"modes and merchants": checkIsolation,
		"replays":             checkReplays,
		"references":          checkReferences,
		"cancel":              checkCancel,
		"wrong amount":        checkWrongAmount,
		"returns":             checkReturns,
		"refunds":             checkRefunds,
		"magic amounts":       checkMagic,
		"refusals":            checkRefusals,
		"bad input":           checkBadInput,
		"routes":              checkRoutes,
		"description":         checkOpenAPI,
		"checkout page":       checkCheckoutPage,
		"qr on our own page":  checkOwnQRPage,
		"receipts":            checkReceipts,
		"browser":             checkBrowser,
		"console":             checkConsole,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, p)
		})
	}
}

// payable are the ways in which a payer can pay what a create answered.
var payable = map[string]struct {
	fields harness.Fields
	how    func(t *testing.T, p *harness.Program, made harness.Payment) harness.Fields
}{
	"qr_string": {
		harness.Fields{"type": "qris"},
		func(_ *testing.T, _ *harness.Program, made harness.Payment) harness.Fields {
			return harness.Fields{"qr_string": made.QRString}
		},
	},
	"checkout_url": {
		harness.Fields{"type": "payment_link"},
		func(_ *testing.T, _ *harness.Program, made harness.Payment) harness.Fields {
			return harness.Fields{"url": made.CheckoutURL}
		},
	},
	"the provider's page": {
		harness.Fields{}, // payment_link is the default
		func(t *testing.T, p *harness.Program, made harness.Payment) harness.Fields {
			return harness.Fields{"url": p.ProviderPage(t, made.CheckoutURL)}
		},
	},
}

func checkEndToEnd(t *testing.T, p *harness.Program) {
	m := harness.NewMerchant(t, p, "payments")
	for way, w := range payable {
		for _, mode := range []string{"live", "test"} {
			t.Run(way+" in "+mode, func(t *testing.T) {
				t.Parallel()
				s := p.Of(m, mode)
				made := createExactly(t, s, w.fields.With(harness.Fields{"amount": 25000}))
				p.Pay(t, w.how(t, p, made))
				paidExactly(t, s, made)
			})
		}
	}
}

// createExactly creates a payment and holds its answer against the contract.
func createExactly(t *testing.T, s harness.Shop, f harness.Fields) harness.Payment {
	t.Helper()
	order := s.PaymentBody(f)
	a := s.Ask(t, "/payments/create", order)
	if !a.Success {
		t.Fatalf("create: %s", a)
	}
	made := a.Payment()
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
	if got := a.Keys(); !slices.Equal(got, want) {
		t.Errorf("data has %v, want %v", got, want)
	}
	if made.Status != "PENDING" || made.Amount != int64(order["amount"].(int)) || made.ExternalID != order["external_id"] {
		t.Errorf("answered %s to %v", a, order)
	}
	return made
}

// paidExactly waits for PAID and holds the status against the contract.
func paidExactly(t *testing.T, s harness.Shop, made harness.Payment) {
	t.Helper()
	var a harness.Answer
	if err := harness.Until(harness.PaidWithin, func() bool {
		a = s.Ask(t, "/payments/status", harness.Fields{"external_id": made.ExternalID})
		return a.Payment().Status == "PAID"
	}); err != nil {
		t.Fatalf("after %v: %s", harness.PaidWithin, a)
	}
	if want := []string{"amount", "channel", "created_at", "external_id", "paid_amount", "paid_at", "payer_email", "provider_reference", "status", "updated_at"}; !slices.Equal(a.Keys(), want) {
		t.Errorf("data has %v, want %v", a.Keys(), want)
	}
	paid := a.Payment()
	if paid.Amount != made.Amount || paid.ExternalID != made.ExternalID || paid.PayerEmail != "payer@example.com" {
		t.Errorf("status says %s of %+v", a, made)
	}
	if !harness.Timestamp.MatchString(paid.CreatedAt) || !harness.Timestamp.MatchString(paid.UpdatedAt) || paid.UpdatedAt < paid.CreatedAt {
		t.Errorf("created_at %q, updated_at %q", paid.CreatedAt, paid.UpdatedAt)
	}
	channel := "QRIS" // of the sandbox's invoices, and whose wallet pays its codes
	if made.QRString != "" {
		channel = "DANA"
	}
	if !harness.Timestamp.MatchString(paid.PaidAt) || earlier(t, paid.PaidAt, paid.CreatedAt) || paid.Channel != channel || paid.ProviderReference == "" {
		t.Errorf("paid_at %q, channel %q, provider_reference %q", paid.PaidAt, paid.Channel, paid.ProviderReference)
	}
}

// earlier tells whether a provider's time is before ours by more than their clocks and
// whole seconds explain.
func earlier(t *testing.T, theirs, ours string) bool {
	t.Helper()
	at, err := time.Parse(time.RFC3339, theirs)
	before, err2 := time.Parse(time.RFC3339, ours)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	return at.Before(before.Add(-time.Second))
}

func checkIsolation(t *testing.T, p *harness.Program) {
	m := harness.NewMerchant(t, p, "payments")
	live, test, other := p.Of(m, "live"), p.Of(m, "test"), newPayee(t, p, "live")
	reference := uuid.NewString()
	test.Create(t, harness.Fields{"external_id": reference, "amount": 11001})
	for who, s := range map[string]harness.Shop{"the other mode": live, "the other merchant": other} {
		for _, path := range []string{"/payments/status", "/payments/cancel"} {
			if a := s.Ask(t, path, harness.Fields{"external_id": reference}); a.Code != fault.NotFound {
				t.Errorf("%s sees it at %s: %s", who, path, a)
			}
		}
	}
	// The same reference is free to each of them, also for another request.
	live.Create(t, harness.Fields{"external_id": reference, "amount": 11002})
	other.Create(t, harness.Fields{"external_id": reference, "amount": 11003})
	for s, want := range map[harness.Shop]int64{test: 11001, live: 11002, other: 11003} {
		if got := s.Status(t, reference); got.Amount != want || got.Status != "PENDING" {
			t.Errorf("got %+v, want %d PENDING", got, want)
		}
	}
	a := test.Ask(t, "/payments/create", other.PaymentBody(nil))
	if a.Code != fault.AuthFailed {
		t.Errorf("a key with another's merchant_id: %s", a)
	}
	p.WantUpstream(t, 11001, 11002, 11003)
}

func checkReplays(t *testing.T, p *harness.Program) {
	s := newPayee(t, p, "live")
	for _, kind := range []string{"payment_link", "qris"} {
		order := s.PaymentBody(harness.Fields{"type": kind, "amount": 12000, "description": "Kopi"})
		first := s.Ask(t, "/payments/create", order)
		if !first.Success || first.Replayed() {
			t.Fatalf("%s: %s", kind, first)
		}
		// Other words for the same request: null, "", another spelling of the
		// number.
		again := s.Ask(t, "/payments/create", order.With(harness.Fields{"success_url": "", "amount": json.RawMessage("12000.00")}))
		if !again.Replayed() || string(again.Data) != string(first.Data) {
			t.Errorf("%s: a replay answered %s, first %s", kind, again, first)
		}
		changed := s.Ask(t, "/payments/create", order.With(harness.Fields{"amount": 12001, "description": "Susu", "success_url": "https://shop.example/"}))
		var named []string
		for _, e := range changed.Errors {
			named = append(named, e.Field)
		}
		if want := []string{"amount", "description", "success_url"}; changed.Code != fault.DuplicateReference || !slices.Equal(named, want) {
			t.Errorf("%s: another request under the reference: %s, want DUPLICATE_REFERENCE that names %v", kind, changed, want)
		}
		made := first.Payment()
		if kind == "qris" {
			p.Pay(t, harness.Fields{"qr_string": made.QRString})
		} else {
			p.Pay(t, harness.Fields{"url": made.CheckoutURL})
		}
		s.AwaitStatus(t, made.ExternalID, "PAID", harness.PaidWithin)
		if after := s.Ask(t, "/payments/create", order); !after.Replayed() || string(after.Data) != string(first.Data) {
			t.Errorf("%s: a replay after PAID answered %s, first %s", kind, after, first)
		}
	}
}

func checkReferences(t *testing.T, p *harness.Program) {
	s := newPayee(t, p, "test")
	generated := s.Ask(t, "/payments/create", s.PaymentBody(harness.Fields{"external_id": nil}))
	if made := generated.Payment(); made.ExternalID == "" || s.Status(t, made.ExternalID).Status != "PENDING" {
		t.Errorf("without a reference: %s", generated)
	}
	key := "INV/2026/#" + uuid.NewString()
	for _, replayed := range []bool{false, true} {
		a := s.Ask(t, "/payments/create", s.PaymentBody(harness.Fields{"external_id": nil}), "Idempotency-Key", key)
		if a.Payment().ExternalID != key || a.Replayed() != replayed {
			t.Errorf("with Idempotency-Key: %s, replayed %t, want %t", a, a.Replayed(), replayed)
		}
	}
	differing := s.Ask(t, "/payments/create", s.PaymentBody(nil), "Idempotency-Key", key)
	if differing.Code != fault.InvalidRequest || len(differing.Errors) != 2 {
		t.Errorf("a reference and an Idempotency-Key that differ: %s", differing)
	}
	bearer := s
	bearer.Key = ""
	if a := bearer.Ask(t, "/payments/status", harness.Fields{"external_id": key, "secret_key": nil}, "Authorization", "Bearer "+s.Key); !a.Success {
		t.Errorf("with Authorization: Bearer: %s", a)
	}
	with := s.Ask(t, "/payments/create", s.PaymentBody(harness.Fields{"metadata": harness.Fields{"table": "7"}}))
	if status := s.Ask(t, "/payments/status", harness.Fields{"external_id": with.Payment().ExternalID}); !strings.Contains(string(with.Data), `"metadata":{"table":"7"}`) ||
		!strings.Contains(string(status.Data), `"metadata":{"table":"7"}`) {
		t.Errorf("metadata is not returned: %s, %s", with, status)
	}
}

func checkCancel(t *testing.T, p *harness.Program) {
	s := newPayee(t, p, "live")
	for _, c := range []struct {
		name   string
		fields harness.Fields
		late   bool // can still be paid upstream
	}{
		{"link", harness.Fields{"amount": 13000}, false},
		{"link that can be paid late", harness.Fields{"amount": 10115}, true},
		{"qris", harness.Fields{"amount": 13001, "type": "qris"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			made := s.Create(t, c.fields)
			what := harness.Fields{"qr_string": made.QRString}
			if made.CheckoutURL != "" {
				what = harness.Fields{"url": p.ProviderPage(t, made.CheckoutURL)}
			}
			for range 2 { // the second changes nothing
				a := s.Ask(t, "/payments/cancel", harness.Fields{"external_id": made.ExternalID})
				if !a.Success || a.Payment().Status != "EXPIRED" {
					t.Fatalf("cancel: %s", a)
				}
			}
			if !c.late {
				var refusal json.RawMessage
				if status := p.Sandbox(t, "/pay", what, &refusal); status != http.StatusConflict {
					t.Errorf("paying what was cancelled: %d %s", status, refusal)
				}
				return
			}
			p.Pay(t, what)
			harness.Await(t, harness.PaidWithin, "paid_late_at", func() bool { return s.Status(t, made.ExternalID).PaidLateAt != "" })
			if got := s.Status(t, made.ExternalID).Status; got != "EXPIRED" {
				t.Errorf("late money made it %s", got)
			}
			onTheList(t, p, "paid_late", made.Amount)
		})
	}
	paid := s.Create(t, harness.Fields{"type": "qris"})
	p.Pay(t, harness.Fields{"qr_string": paid.QRString})
	s.AwaitStatus(t, paid.ExternalID, "PAID", harness.PaidWithin)
	if a := s.Ask(t, "/payments/cancel", harness.Fields{"external_id": paid.ExternalID}); a.Payment().Status != "PAID" {
		t.Errorf("cancel of what is paid: %s", a)
	}
}

// onTheList wants an entry of the operators' list about an amount.
func onTheList(t *testing.T, p *harness.Program, reason string, amount int64) {
	t.Helper()
	harness.Await(t, harness.PaidWithin, reason+" on the operators' list", func() bool {
		list, err := adminapi.ListExceptions.Call(t.Context(), p.Admin(), adminapi.ExceptionFilter{Limit: adminapi.MostListed})
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

func checkWrongAmount(t *testing.T, p *harness.Program) {
	s := newPayee(t, p, "test")
	made := s.Create(t, harness.Fields{"type": "qris", "amount": 14000})
	p.Pay(t, harness.Fields{"qr_string": made.QRString, "amount": 13999})
	onTheList(t, p, "amount_differs", 13999)
	if got := s.Status(t, made.ExternalID); got.Status != "PENDING" {
		t.Errorf("a payment of another amount made it %s", got.Status)
	}
	if out, err := p.Run(t, "exception", "list"); err != nil || !strings.Contains(out, "amount_differs") {
		t.Errorf("gerbang exception list: %v\n%s", err, out)
	}
}

// checkMagic pays the amounts that make the simulator misbehave.
func checkMagic(t *testing.T, p *harness.Program) {
	s := newPayee(t, p, "test")
	for _, c := range []struct {
		name   string
		amount int
		pay    bool
		lasts  time.Duration // PAID must still stand after it
		within time.Duration
	}{
		{"notified twice", 10110, true, time.Second, harness.PaidWithin},
		{"outdated news afterwards", 10111, true, 3 * time.Second, harness.PaidWithin},
		{"never notified", 10112, true, 0, harness.PaidWithin},
		{"outdated news first", 10113, true, 3 * time.Second, harness.PaidWithin},
		{"paid by itself", 10114, false, 0, harness.PaidWithin},
	} {
		for _, kind := range []string{"payment_link", "qris"} {
			t.Run(c.name+" "+kind, func(t *testing.T) {
				t.Parallel()
				made := s.Create(t, harness.Fields{"amount": c.amount, "type": kind})
				if c.pay && kind == "qris" {
					p.Pay(t, harness.Fields{"qr_string": made.QRString})
				} else if c.pay {
					p.Pay(t, harness.Fields{"url": made.CheckoutURL})
				}
				s.AwaitStatus(t, made.ExternalID, "PAID", c.within)
				if harness.Until(c.lasts, func() bool { return s.Status(t, made.ExternalID).Status != "PAID" }) == nil {
					t.Errorf("PAID became %s", s.Status(t, made.ExternalID).Status)
				}
			})
		}
	}
}

// checkRefusals creates payments that the provider refuses.
func checkRefusals(t *testing.T, p *harness.Program) {
	s := newPayee(t, p, "live")
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
		order := s.PaymentBody(harness.Fields{"amount": c.amount, "type": c.kind})
		a := s.Ask(t, "/payments/create", order)
		if a.Code != c.code || a.Sent != c.sent || a.ExternalID != order["external_id"] {
			t.Errorf("%d: %s, want %s, sent %s", c.amount, a, c.code, c.sent)
		}
		again := s.Ask(t, "/payments/create", order.With(harness.Fields{"amount": 15000}))
		if again.Success != c.free || !c.free && again.Code != fault.DuplicateReference {
			t.Errorf("%d: the reference again with another request: %s, want it free: %t", c.amount, again, c.free)
		}
		if !c.free {
			if b := s.Ask(t, "/payments/create", order); b.Code != a.Code {
				t.Errorf("%d: the same again: %s, want %s", c.amount, b, a.Code)
			}
		}
	}
}
