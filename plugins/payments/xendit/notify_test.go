package xendit

import (
	"net/http"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func webhook(c sdk.Connection, body string) sdk.Notification {
	header := http.Header{}
	header.Set("x-callback-token", testToken)
	header.Set("webhook-id", "evt-1")
	return sdk.Notification{Connection: c, Method: http.MethodPost, Header: header, Body: []byte(body)}
}

const qrEvent = `{"event":"qr.payment","api_version":"2022-07-31","business_id":"593f4ed1c3d3bb7f39733d83","created":"2026-11-20T10:05:01Z",
"data":{"id":"qrpy_1","business_id":"593f4ed1c3d3bb7f39733d83","currency":"IDR","amount":100000,"status":"SUCCEEDED","created":"2026-11-20T10:05:00Z",
"qr_id":"` + qrID + `","qr_string":"` + mockQR + `","reference_id":"` + reference + `","type":"DYNAMIC","channel_code":"ID_DANA",
"expires_at":"2026-11-20T10:30:00Z","payment_detail":{"receipt_id":"1","source":"DANA","name":null,"account_details":null}}}`

// flatInvoice is the invoice event: flat, without invoice_url or expiry.
func flatInvoice(status, extra string) string {
	return `{"id":"` + invoiceID + `","external_id":"` + reference + `","user_id":"593f4ed1c3d3bb7f39733d83","is_high":false,"status":"` + status + `",
"merchant_name":"Toko Contoh","amount":100000,"payer_email":"pembeli@example.com","created":"2026-11-20T10:00:00.000Z",
"updated":"2026-11-20T10:05:01.000Z","currency":"IDR"` + extra + `}`
}

func TestNotify(t *testing.T) {
	t.Parallel()
	paidInvoice := want{status: sdk.StatusDone, amount: 100000, event: invoiceID + "-PAID", provider: invoiceID}
	byMethod := paidInvoice
	paidInvoice.channel, byMethod.channel = "QRIS", "EWALLET"
	for name, c := range map[string]struct {
		body   string
		status int
		want   []want
	}{
		"a paid invoice":    {flatInvoice("PAID", paidExtra+`,"payment_id":"pay-1"`), 200, []want{paidInvoice}},
		"a settled one":     {flatInvoice("SETTLED", paidExtra), 200, []want{paidInvoice}},
		"without an amount": {flatInvoice("PAID", `,"paid_amount":null,"payment_method":"EWALLET"`), 200, []want{byMethod}},
		"another amount": {flatInvoice("PAID", `,"paid_amount":5000`), 200,
			[]want{{status: sdk.StatusDone, amount: 5000, event: invoiceID + "-PAID", provider: invoiceID}}},
		"a paid QR code":          {qrEvent, 200, []want{{status: sdk.StatusDone, amount: 100000, event: "qrpy_1", provider: qrID, channel: "DANA"}}},
		"a QR payment underway":   {`{"event":"qr.payment","data":{"id":"qrpy_1","status":"PENDING"}}`, 200, nil},
		"the first generation":    {`{"event":"qr.payment","id":"qrpy_1","amount":100000,"status":"COMPLETED","qr_code":{"id":"qr_1","external_id":"` + reference + `"}}`, 200, nil},
		"another product's event": {`{"event":"payout.succeeded","data":{"amount":10.5}}`, 200, nil},
		"another flat event":      {`{"id":"1","external_id":"x","amount":10.5,"status":"COMPLETED"}`, 200, nil},
		"paid, but nothing's":     {`{"status":"PAID","amount":100000}`, 200, nil},
		"no JSON":                 {`{"status":`, 400, nil},
		"no object":               {`["PAID"]`, 400, nil},
		"a fraction of money":     {flatInvoice("PAID", `,"paid_amount":0.5`), 400, nil},
		"QR money in a string":    {`{"event":"qr.payment","data":{"id":"qrpy_1","status":"SUCCEEDED","amount":"100000"}}`, 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newStub(t, nil)
			ack := newAdapter().notify(t.Context(), webhook(connect(t, up.url), c.body))
			if ack.Status != c.status || len(ack.Updates) != len(c.want) {
				t.Fatalf("got %+v", ack)
			}
			for i, w := range c.want {
				checkUpdate(t, ack.Updates[i], w)
			}
			if asked := up.asked(); len(asked) != 0 {
				t.Errorf("the upstream was asked %v", asked)
			}
		})
	}
}

func TestNotifyTellsWhen(t *testing.T) {
	t.Parallel()
	for _, body := range []string{flatInvoice("PAID", paidExtra), qrEvent} {
		ack := newAdapter().notify(t.Context(), webhook(connect(t, "http://127.0.0.1:1"), body))
		if want := today.Add(5 * time.Minute); !ack.Updates[0].At.Equal(want) {
			t.Errorf("at %v, want %v", ack.Updates[0].At, want)
		}
	}
}

// A webhook and a lookup give one payment one id, whatever the webhook's own.
func TestNotifyNamesTheFact(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{flatInvoice("PAID", paidExtra): invoiceID + "-PAID", qrEvent: "qrpy_1"} {
		n := webhook(connect(t, "http://127.0.0.1:1"), body)
		n.Header.Set("Webhook-Id", "evt-2")
		if got := newAdapter().notify(t.Context(), n).Updates[0].EventID; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestNotifyNeedsTheToken(t *testing.T) {
	t.Parallel()
	c := connect(t, "http://127.0.0.1:1")
	for _, token := range []string{"", testToken + "x", testToken[1:], testKey} {
		for _, body := range []string{flatInvoice("PAID", paidExtra), "{"} {
			n := webhook(c, body)
			n.Header.Set("x-callback-token", token)
			if ack := newAdapter().notify(t.Context(), n); ack.Status != http.StatusUnauthorized || len(ack.Updates) != 0 {
				t.Errorf("token %q: %+v", token, ack)
			}
		}
	}
}

// "Expired" ends a payment for good, and webhooks come in any order: only the
// invoice itself is believed.
func TestNotifyConfirmsAnExpiry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply  reply
		status int
		want   []want
	}{
		"true":             {reply{200, anInvoice("EXPIRED", "")}, 200, []want{{status: sdk.StatusExpired, amount: 100000, event: invoiceID + "-EXPIRED", provider: invoiceID}}},
		"paid meanwhile":   {reply{200, anInvoice("PAID", paidExtra)}, 200, []want{{status: sdk.StatusDone, amount: 100000, event: invoiceID + "-PAID", provider: invoiceID, channel: "QRIS"}}},
		"still open":       {reply{200, anInvoice("PENDING", "")}, 200, nil},
		"nothing of it":    {reply{404, noneFound}, 200, nil},
		"nobody to ask":    {reply{500, ""}, 503, nil},
		"not ours to read": {reply{401, failure("INVALID_API_KEY", "")}, 503, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newStub(t, map[string]reply{byID: c.reply})
			ack := newAdapter().notify(t.Context(), webhook(connect(t, up.url), flatInvoice("EXPIRED", "")))
			if ack.Status != c.status || len(ack.Updates) != len(c.want) {
				t.Fatalf("got %+v", ack)
			}
			for i, w := range c.want {
				checkUpdate(t, ack.Updates[i], w)
			}
			up.only(t)
		})
	}
}
