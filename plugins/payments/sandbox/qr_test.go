package sandbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/payments/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

const plainQR = `{"reference_id":"QR-1","type":"DYNAMIC","currency":"IDR","amount":10000}`

func TestQRVersion2(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	created := w.v2().do(201, "POST", "/qr_codes", `{"reference_id":"QR-1","type":"DYNAMIC","currency":"IDR","amount":10000.00,
		"expires_at":"2026-01-02T03:34:05Z","metadata":{"k":"v"}}`)
	for field, value := range (object{
		"reference_id": "QR-1", "currency": "IDR", "amount": 10000.0, "type": "DYNAMIC", "status": "ACTIVE",
		"channel_code": "ID_DANA", "webhook_url": nil, "expires_at": "2026-01-02T03:34:05.000Z",
		"created": "2026-01-02T03:04:05.678Z", "basket": nil,
	}) {
		if created[field] != value {
			t.Errorf("%s is %v, want %v", field, created[field], value)
		}
	}
	if _, old := created["external_id"]; old || !strings.HasPrefix(created.text("id"), "qr_") {
		t.Errorf("created %v", created)
	}
	code, err := qris.Parse(created.text("qr_string"))
	if amount, _ := code.Amount(); err != nil || amount != 10000 || code.Point() != qris.Dynamic || len(code.Reference()) != 24 {
		t.Errorf("%s: %v", code, err)
	}
	other := w.v2().do(201, "POST", "/qr_codes", strings.Replace(plainQR, "QR-1", "QR-2", 1))
	if other.text("qr_string") == created.text("qr_string") {
		t.Error("two codes are the same")
	}
	if other.text("expires_at") != "2026-01-04T03:04:05.678Z" {
		t.Errorf("lives until %s", other.text("expires_at"))
	}
	if again := w.v2().do(200, "GET", "/qr_codes/"+created.text("id"), ""); fmt.Sprint(again) != fmt.Sprint(created) {
		t.Errorf("read as %v", again)
	}
	caller{w, otherKey, "2022-07-31"}.refused(404, "DATA_NOT_FOUND", "GET", "/qr_codes/"+created.text("id"), "")
	w.v2().refused(409, "DUPLICATE_ERROR", "POST", "/qr_codes", plainQR)
	caller{w, otherKey, "2022-07-31"}.do(201, "POST", "/qr_codes", plainQR)
}

func TestQRIsReadByReferenceInTheFirstShape(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	created := w.v2().do(201, "POST", "/qr_codes", strings.Replace(plainQR, "QR-1", "QR/1", 1))
	read := w.v1().do(200, "GET", "/qr_codes/QR%2F1", "")
	if read.text("id") != created.text("id") || read.text("external_id") != "QR/1" || read.text("status") != "ACTIVE" {
		t.Errorf("read as %v", read)
	}
	if _, second := read["reference_id"]; second {
		t.Error("the first shape has a reference_id")
	}
	caller{w, otherKey, ""}.refused(404, "DATA_NOT_FOUND", "GET", "/qr_codes/QR%2F1", "")
}

func TestQRValidation(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	for _, c := range []struct {
		by          caller
		body, field string
	}{
		{w.v2(), `{"external_id":"a","type":"DYNAMIC","currency":"IDR","amount":1000}`, "external_id"},
		{w.v2(), `{"external_id":"a","type":"DYNAMIC","currency":"IDR","amount":1000}`, "reference_id"},
		{w.v2(), `{"reference_id":"a","currency":"IDR","amount":1000}`, "type"},
		{w.v2(), `{"reference_id":"a","type":"OTHER","currency":"IDR","amount":1000}`, "type"},
		{w.v2(), `{"reference_id":"a","type":"DYNAMIC","amount":1000}`, "currency"},
		{w.v2(), `{"reference_id":"a","type":"DYNAMIC","currency":"IDR"}`, "amount"},
		{w.v2(), `{"reference_id":"a","type":"DYNAMIC","currency":"IDR","amount":1000.5}`, "amount"},
		{w.v2(), `{"reference_id":"a","type":"DYNAMIC","currency":"IDR","amount":99}`, "amount"},
		{w.v2(), `{"reference_id":"a","type":"DYNAMIC","currency":"IDR","amount":10000001}`, "amount"},
		{w.v2(), `{"reference_id":"a","type":"DYNAMIC","currency":"IDR","amount":1000,"expires_at":"2020-01-01T00:00:00Z"}`, "expires_at"},
		{w.v1(), plainQR, "api-version"},
		{caller{w, testKey, "2019-01-01"}, plainQR, "api-version"},
	} {
		out := c.by.refused(400, "API_VALIDATION_ERROR", "POST", "/qr_codes", c.body)
		if !strings.Contains(fmt.Sprint(out["errors"]), "["+c.field+"]") {
			t.Errorf("%s: %v, want %s", c.body, out["errors"], c.field)
		}
	}
	w.v2().refused(403, "CHANNEL_NOT_ACTIVATED", "POST", "/qr_codes", strings.Replace(plainQR, "10000", "10100", 1))
	w.v2().refused(400, "INVALID_JSON_FORMAT", "POST", "/qr_codes", "x")
	w.v2().refused(404, "DATA_NOT_FOUND", "GET", "/qr_codes/qr_x/payments", "")
	if got := w.env.Movements.All(); len(got) != 0 {
		t.Errorf("the witness says %v", got)
	}
}

func TestQRPayment(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	created := w.v2().do(201, "POST", "/qr_codes", plainQR)
	receipt := w.pay(200, `{"qr_string":"`+created.text("qr_string")+`"}`)
	if receipt.text("provider") != "payments" || receipt.text("reference") != "QR-1" || receipt["amount"] != 10000.0 || receipt.text("state") != "PAID" {
		t.Errorf("receipt %v", receipt)
	}
	e := w.next()
	data := e.body.inner("data")
	if e.id == "" || e.token != "hook-token" || e.body.text("event") != "qr.payment" || e.body.text("api_version") != "2022-07-31" ||
		data.text("status") != "SUCCEEDED" || data.text("qr_id") != created.text("id") || data.text("reference_id") != "QR-1" ||
		data["amount"] != 10000.0 || data.text("currency") != "IDR" || !strings.HasPrefix(data.text("id"), "qrpy_") {
		t.Errorf("event %+v", e)
	}
	if read := w.v2().do(200, "GET", "/qr_codes/"+created.text("id"), ""); read.text("status") != "INACTIVE" {
		t.Errorf("paid, yet %v", read)
	}
	payments, _ := w.v2().do(200, "GET", "/qr_codes/"+created.text("id")+"/payments", "")["data"].([]any)
	if len(payments) != 1 {
		t.Errorf("payments %v", payments)
	}
	w.pay(409, `{"qr_string":"`+created.text("qr_string")+`"}`)
	w.pay(404, `{"qr_string":"`+strings.Replace(created.text("qr_string"), "6304", "6305", 1)+`"}`)
	if got := w.states("QR-1"); !slices.Equal(got, []string{"PAID"}) {
		t.Errorf("the witness says %v", got)
	}
}

func TestQRWrongAmount(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	created := w.v2().do(201, "POST", "/qr_codes", plainQR)
	if receipt := w.pay(200, `{"qr_string":"`+created.text("qr_string")+`","amount":9000}`); receipt["amount"] != 9000.0 {
		t.Errorf("receipt %v", receipt)
	}
	if e := w.next(); e.body.inner("data")["amount"] != 9000.0 {
		t.Errorf("event %+v", e)
	}
	link := w.v1().do(200, "POST", "/v2/invoices", plainInvoice)
	w.pay(200, `{"url":"`+link.text("invoice_url")+`","amount":5}`)
	if e := w.next(); e.body["amount"] != 100000.0 || e.body["paid_amount"] != 5.0 {
		t.Errorf("event %+v", e)
	}
}

func TestQRLateMoney(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	created := w.v2().do(201, "POST", "/qr_codes", plainQR)
	w.clock.Advance(48 * time.Hour)
	if read := w.v2().do(200, "GET", "/qr_codes/"+created.text("id"), ""); read.text("status") != "INACTIVE" {
		t.Errorf("expired, yet %v", read)
	}
	w.pay(200, `{"qr_string":"`+created.text("qr_string")+`"}`)
	if e := w.next(); e.body.inner("data").text("status") != "SUCCEEDED" {
		t.Errorf("event %+v", e)
	}
	w.silent()
	if got := w.states("QR-1"); !slices.Equal(got, []string{"PAID"}) {
		t.Errorf("the witness says %v", got)
	}
}

func TestQRStatic(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	created := w.v2().do(201, "POST", "/qr_codes", `{"reference_id":"S","type":"STATIC","currency":"IDR"}`)
	code, err := qris.Parse(created.text("qr_string"))
	if _, has := code.Amount(); err != nil || has || code.Point() != qris.Static {
		t.Errorf("%s: %v", code, err)
	}
	w.pay(409, `{"qr_string":"`+created.text("qr_string")+`"}`)
	for _, amount := range []string{"700", "800"} {
		w.pay(200, `{"qr_string":"`+created.text("qr_string")+`","amount":`+amount+`}`)
		w.next()
	}
	body := w.v2().do(200, "GET", "/qr_codes/"+created.text("id")+"/payments?limit=1", "")
	payments, _ := body["data"].([]any)
	if len(payments) != 1 || !strings.Contains(fmt.Sprint(payments[0]), "amount:800") || body["has_more"] != true {
		t.Errorf("payments %v", body)
	}
}
