package callback_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// createFor makes a payment whose callbacks go to a URL.
func createFor(t *testing.T, s harness.Shop, url string, others harness.Fields) harness.Payment {
	t.Helper()
	a := s.Ask(t, "/payments/create", s.PaymentBody(others), "X-Callback-URL", url)
	if !a.Success {
		t.Fatalf("create: %s", a)
	}
	return a.Payment()
}

// TestCallbacks receives the callbacks of every final state of a payment, and
// answers some of them with errors.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	p := harness.Shared(t)
	box := harness.NewReceiver(t, 0)
	for name, check := range map[string]func(*testing.T, *harness.Program, *harness.Receiver){
		"every end": checkFinalStates, "410": checkGone, "500": checkRetried, "redirect": checkRedirect,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, p, box)
		})
	}
}

func checkFinalStates(t *testing.T, p *harness.Program, box *harness.Receiver) {
	one, other := harness.NewMerchant(t, p, "payments"), harness.NewMerchant(t, p, "payments")
	live, test := p.Of(one, "live"), p.Of(other, "test")
	secretOf := map[string]string{live.MerchantID: one.CallbackSecret, test.MerchantID: other.TestCallbackSecret}
	url := box.URL + "/shop?order=1&x=a/b"
	verified := func(s harness.Shop, one harness.Callback, event string) {
		t.Helper()
		harness.WantVerified(t, one, secretOf[s.MerchantID])
		if one.Event != event || one.Header.Get("Content-Type") != "application/json" || one.Path != "/shop" {
			t.Errorf("%s %v %s", one.Path, one.Header, one.Raw)
		}
	}
	for _, s := range []harness.Shop{live, test} {
		code := createFor(t, s, url, harness.Fields{"type": "qris", "amount": 31000, "metadata": harness.Fields{"table": "7"}})
		link := createFor(t, s, url, harness.Fields{"amount": 31001})
		late := createFor(t, s, url, harness.Fields{"type": "qris", "amount": 31002})
		refused := s.PaymentBody(harness.Fields{"type": "qris", "amount": 10000001}) // more than the provider takes
		if a := s.Ask(t, "/payments/create", refused, "X-Callback-URL", url); a.Success {
			t.Fatalf("a refused payment: %s", a)
		}
		p.Pay(t, harness.Fields{"qr_string": code.QRString})
		p.Pay(t, harness.Fields{"url": p.ProviderPage(t, link.CheckoutURL)})
		for _, made := range []harness.Payment{code, link} {
			one := box.Wait(t, made.ExternalID, 1)[0]
			verified(s, one, "payments.status_update")
			wantAsStatus(t, s, one, "PAID")
		}
		one := box.Wait(t, refused["external_id"].(string), 1)[0]
		verified(s, one, "payments.status_update")
		if one.Field("status") != "FAILED" {
			t.Errorf("a refused payment: %s", one.Raw)
		}
		if a := s.Ask(t, "/payments/cancel", harness.Fields{"external_id": late.ExternalID}); !a.Success {
			t.Fatalf("cancel: %s", a)
		}
		expired := box.Wait(t, late.ExternalID, 1)[0]
		verified(s, expired, "payments.status_update")
		wantAsStatus(t, s, expired, "EXPIRED")
		p.Pay(t, harness.Fields{"qr_string": late.QRString})
		paid := box.Wait(t, late.ExternalID, 2)[1]
		verified(s, paid, "payments.paid_late")
		wantAsStatus(t, s, paid, "EXPIRED")
		if paid.Sequence() <= expired.Sequence() || paid.ID() == expired.ID() || paid.Data["paid_late_at"] == nil {
			t.Errorf("late money: %v %s\nafter %v %s", paid.Header, paid.Raw, expired.Header, expired.Raw)
		}
	}
}

// wantAsStatus wants a callback that tells what the status answer tells, with
// the time of the change and nothing else.
func wantAsStatus(t *testing.T, s harness.Shop, one harness.Callback, status string) {
	t.Helper()
	told := s.Ask(t, "/payments/status", harness.Fields{"external_id": one.Field("external_id")})
	var want map[string]json.RawMessage
	if err := json.Unmarshal(told.Data, &want); err != nil {
		t.Fatal(err)
	}
	got := maps.Clone(one.Data)
	at, err := time.Parse(time.RFC3339, one.Field("timestamp"))
	if delete(got, "timestamp"); err != nil || !strings.HasSuffix(one.Field("timestamp"), "Z") || time.Since(at) > harness.ReadyWithin {
		t.Errorf("timestamp %s: %v", one.Data["timestamp"], err)
	}
	same := maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(one.Raw, &whole); err != nil || !same || len(whole) != 2 || one.Field("status") != status {
		t.Errorf("the callback is %s\nand the status %s (%v)", one.Raw, told.Data, err)
	}
}

// paidFor makes a payment and has it paid, so that its callback comes.
func paidFor(t *testing.T, s harness.Shop, box *harness.Receiver, path string) harness.Payment {
	t.Helper()
	p := s.Program
	made := createFor(t, s, box.URL+path, harness.Fields{"type": "qris", "amount": 32000})
	p.Pay(t, harness.Fields{"qr_string": made.QRString})
	return made
}

// standing is how a payment's one callback stands in the database.
func standing(t *testing.T, p *harness.Program, made harness.Payment) (state string, attempts int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	err = conn.QueryRow(t.Context(), "SELECT state, attempts FROM callbacks WHERE reference = $1", made.ExternalID).Scan(&state, &attempts)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return state, attempts
}

func checkGone(t *testing.T, p *harness.Program, box *harness.Receiver) {
	made := paidFor(t, harness.NewShop(t, p, "live", "payments"), box, "/gone")
	harness.Await(t, harness.PaidWithin, "the end", func() bool { state, _ := standing(t, p, made); return state == "gone" })
	if got := len(box.On("/gone")); got != 1 {
		t.Errorf("sent %d times to a receiver that is gone", got)
	}
}

func checkRetried(t *testing.T, p *harness.Program, box *harness.Receiver) {
	m := harness.NewMerchant(t, p, "payments")
	made := paidFor(t, p.Of(m, "live"), box, "/failing")
	tries := box.Wait(t, made.ExternalID, 2)
	if after := tries[1].At.Sub(tries[0].At); after < 4500*time.Millisecond {
		t.Errorf("tried again after %v, want 5 s or a tenth less at least", after)
	}
	if tries[0].ID() != tries[1].ID() || !bytes.Equal(tries[0].Raw, tries[1].Raw) || tries[0].Sequence() != tries[1].Sequence() {
		t.Errorf("%v %s\nand then %v %s", tries[0].Header, tries[0].Raw, tries[1].Header, tries[1].Raw)
	}
	harness.WantVerified(t, tries[1], m.CallbackSecret)
	harness.Await(t, harness.PaidWithin, "delivered", func() bool { state, _ := standing(t, p, made); return state == "delivered" })
	if _, attempts := standing(t, p, made); attempts != 2 {
		t.Errorf("%d attempts are counted", attempts)
	}
}

func checkRedirect(t *testing.T, p *harness.Program, box *harness.Receiver) {
	made := paidFor(t, harness.NewShop(t, p, "live", "payments"), box, "/moved")
	harness.Await(t, harness.PaidWithin, "a try", func() bool { _, attempts := standing(t, p, made); return attempts >= 1 })
	if state, _ := standing(t, p, made); state != "waiting" || len(box.On("/elsewhere")) != 0 {
		t.Errorf("it is %s, and %d were sent to where the redirect leads", state, len(box.On("/elsewhere")))
	}
}
