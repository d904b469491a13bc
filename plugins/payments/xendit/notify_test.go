package xendit

import (
	"net/http"
	"slices"
	"strings"
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
		"a paid QR code":        {qrEvent, 200, []want{{status: sdk.StatusDone, amount: 100000, event: "qrpy_1", provider: qrID, channel: "DANA"}}},
		"a QR payment underway": {`{"event":"qr.payment","data":{"id":"qrpy_1","status":"PENDING"}}`, 200, nil},
		"paid, but nothing's":   {`{"status":"PAID","amount":100000}`, 200, nil},
		"no JSON":               {`{"status":`, 400, nil},
		"no object":             {`["PAID"]`, 400, nil},
		"a fraction of money":   {flatInvoice("PAID", `,"paid_amount":0.5`), 400, nil},
		"QR money in a string":  {`{"event":"qr.payment","data":{"id":"qrpy_1","status":"SUCCEEDED","amount":"100000"}}`, 400, nil},
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

// TestNotifyTellsReturns: a refund is found by the invoice that it names, and told once the
// upstream shows it.
func TestNotifyTellsReturns(t *testing.T) {
	t.Parallel()
	const refunds = "GET /refunds?limit=100&invoice_id=" + invoiceID
	about := func(event, status string) string {
		return `{"event":"` + event + `","data":` + aRefund(status) + `}`
	}
	whole := strings.Replace(qrEvent, "SUCCEEDED", "REFUNDED", 1)
	back := sdk.Return{ID: "rfd-1", Sort: sdk.ReturnRefund, Amount: 40000, At: today.Add(time.Hour)}
	failed := back
	failed.Undone, failed.UndoneAt = true, today.Add(2*time.Hour)
	paid := reply{200, anInvoice("PAID", paidExtra)}
	for name, c := range map[string]struct {
		body    string
		replies map[string]reply
		status  int
		want    []sdk.Return
	}{
		"a refund":              {about("refund.succeeded", "SUCCEEDED"), map[string]reply{byID: paid, refunds: {200, `{"data":[` + aRefund("SUCCEEDED") + `]}`}}, 200, []sdk.Return{back}},
		"one that failed since": {about("refund.failed", "FAILED"), map[string]reply{byID: paid, refunds: {200, `{"data":[` + aRefund("FAILED") + `]}`}}, 200, []sdk.Return{failed}},
		"one not shown yet":     {about("refund.succeeded", "SUCCEEDED"), map[string]reply{byID: paid, refunds: {200, `{"data":[]}`}}, 503, nil},
		"nobody to ask":         {about("refund.succeeded", "SUCCEEDED"), map[string]reply{byID: {500, ""}}, 503, nil},
		"another program's":     {about("refund.succeeded", "SUCCEEDED"), map[string]reply{byID: {404, noneFound}}, 200, nil},
		"of a QR code":          {whole, nil, 200, []sdk.Return{{ID: "qrpy_1-refund", Sort: sdk.ReturnRefund, Amount: 100000}}},
	} {
		up := newStub(t, c.replies)
		ack := newAdapter().notify(t.Context(), webhook(connect(t, up.url), c.body))
		var got []sdk.Return
		for _, u := range ack.Updates {
			got = append(got, u.Returns...)
		}
		if ack.Status != c.status || !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", name, ack)
		}
	}
}

// TestNotifyUnderstandsNothing: what names a payment and says nothing that we know is for a
// person to read.
func TestNotifyUnderstandsNothing(t *testing.T) {
	t.Parallel()
	for body, of := range map[string]string{
		`{"event":"payment.disputed","data":{"reference_id":"` + reference + `"}}`: reference,
		flatInvoice("BLOCKED", ""):                               reference,
		strings.Replace(qrEvent, "SUCCEEDED", "HELD", 1):         reference,
		`{"event":"payout.succeeded","data":{"amount":10.5}}`:    "",
		`{"id":"1","external_id":"x","amount":1,"status":"NEW"}`: "x",
	} {
		ack := newAdapter().notify(t.Context(), webhook(connect(t, "http://127.0.0.1:1"), body))
		if ack.Status != 200 || len(ack.Updates) != 1 || ack.Updates[0].Reference != of || ack.Updates[0].Status != sdk.StatusUnknown || ack.Updates[0].Detail == "" {
			t.Errorf("%s: %+v", body, ack)
		}
	}
}

// TestNotifyOfARefundOfACode: it names a payment that may be ours, and nothing that we know;
// what names another product's payment is none.
func TestNotifyOfARefundOfACode(t *testing.T) {
	t.Parallel()
	for payment, want := range map[string]int{"qrpy_1": 1, "py-1": 0} {
		refund := strings.NewReplacer(`"invoice_id":"`+invoiceID+`",`, "", `"payment_id":null`, `"payment_id":"`+payment+`"`).Replace(aRefund("SUCCEEDED"))
		ack := newAdapter().notify(t.Context(), webhook(connect(t, "http://127.0.0.1:1"), `{"event":"refund.succeeded","data":`+refund+`}`))
		if ack.Status != 200 || len(ack.Updates) != want || want == 1 && (ack.Updates[0].ProviderReference != payment || ack.Updates[0].Reference != "" || ack.Updates[0].Status != sdk.StatusUnknown) {
			t.Errorf("%s: %+v", payment, ack)
		}
	}
}

// TestNotifyOfARefundThatMayNotBeRead: a key without that permission never shows it, so a
// person reads of it, and it does not come for ever.
func TestNotifyOfARefundThatMayNotBeRead(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]reply{
		byID: {200, anInvoice("PAID", paidExtra)},
		"GET /refunds?limit=100&invoice_id=" + invoiceID: {403, `{"error_code":"REQUEST_FORBIDDEN_ERROR","message":"no"}`},
	})
	ack := newAdapter().notify(t.Context(), webhook(connect(t, up.url), `{"event":"refund.succeeded","data":`+aRefund("SUCCEEDED")+`}`))
	if ack.Status != 200 || len(ack.Updates) != 1 {
		t.Fatalf("%+v", ack)
	}
	if u := ack.Updates[0]; u.Reference != reference || u.Status != sdk.StatusUnknown || len(u.Returns) != 0 || !strings.Contains(u.Detail, "40000") || !strings.Contains(u.Detail, "permission") {
		t.Errorf("%+v", u)
	}
}

func aRefund(status string) string {
	return `{"id":"rfd-1","invoice_id":"` + invoiceID + `","payment_id":null,"amount":40000,"currency":"IDR","status":"` + status +
		`","reason":"CANCELLATION","created":"2026-11-20T11:00:00Z","updated":"2026-11-20T12:00:00Z"}`
}
