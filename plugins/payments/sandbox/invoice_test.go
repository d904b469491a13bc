package sandbox_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/payments/sandbox"
)

const plainInvoice = `{"external_id":"INV-1","amount":100000}`

func TestAuthentication(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	wrong := caller{w, "", ""}.refused(400, "API_VALIDATION_ERROR", "GET", "/v2/invoices/x", "")
	if !strings.Contains(fmt.Sprint(wrong["errors"]), "api_key") {
		t.Errorf("without a key: %v", wrong)
	}
	for _, header := range []string{
		"Basic eG5kX2RldmVsb3BtZW50X2V4YW1wbGU=",         // the colon is missing
		"Basic eG5kX2RldmVsb3BtZW50X2V4YW1wbGU6c2VjcmV0", // a password
		"Basic eG5kX2RldmVsb3BtZW50Xzo=",                 // nothing after the prefix
		"Basic eG5kX3Byb2R1Y3Rpb25feDo=",                 // live, and never registered
		"Basic %%%", "Bearer x",
	} {
		request := caller{w, "", ""}.request("GET", "/v2/invoices/x", "")
		request.Header.Set("Authorization", header)
		if response, body := w.send(request); response.StatusCode != 401 || !strings.Contains(body, "INVALID_API_KEY") {
			t.Errorf("%s: %d %s", header, response.StatusCode, body)
		}
	}
	request := caller{w, "", ""}.request("GET", "/v2/invoices/x", "")
	request.Header.Set("Authorization", "Basic eG5kX2RldmVsb3BtZW50X2V4YW1wbGU6")
	response, body := w.send(request)
	if response.StatusCode != 404 || !strings.Contains(body, "INVOICE_NOT_FOUND_ERROR") || response.Header.Get("Request-Id") == "" {
		t.Errorf("%d %s %v", response.StatusCode, body, response.Header)
	}
}

func TestInvoiceLife(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	created := w.v1().do(200, "POST", "/v2/invoices", `{"external_id":"INV-1","amount":100000,"payer_email":"a@b.co",
		"description":"Kopi","success_redirect_url":"https://shop.test/ok","metadata":{"k":"v"},"currency":"IDR"}`)
	id := created.text("id")
	want := object{
		"external_id": "INV-1", "status": "PENDING", "merchant_name": "Toko Contoh", "amount": 100000.0, "currency": "IDR",
		"payer_email": "a@b.co", "description": "Kopi", "success_redirect_url": "https://shop.test/ok",
		"created": "2026-01-02T03:04:05.678Z", "updated": "2026-01-02T03:04:05.678Z", "expiry_date": "2026-01-03T03:04:05.678Z",
		"invoice_url": w.api.URL + "/web/" + id,
	}
	for field, value := range want {
		if created[field] != value {
			t.Errorf("%s is %v, want %v", field, created[field], value)
		}
	}
	if !regexp.MustCompile(`^[0-9a-f]{24}$`).MatchString(id) || created.inner("metadata")["k"] != "v" {
		t.Errorf("id %q, metadata %v", id, created["metadata"])
	}
	if again := w.v1().do(200, "GET", "/v2/invoices/"+id, ""); fmt.Sprint(again) != fmt.Sprint(created) {
		t.Errorf("read as %v, created as %v", again, created)
	}
	caller{w, otherKey, ""}.refused(404, "INVOICE_NOT_FOUND_ERROR", "GET", "/v2/invoices/"+id, "")

	w.clock.Advance(time.Minute)
	receipt := w.pay(200, `{"url":"`+created.text("invoice_url")+`"}`)
	if receipt.text("reference") != "INV-1" || receipt["amount"] != 100000.0 || receipt.text("state") != "PAID" {
		t.Errorf("receipt %v", receipt)
	}
	settled := w.v1().do(200, "GET", "/v2/invoices/"+id, "")
	if settled.text("status") != "PAID" || settled["paid_amount"] != 100000.0 ||
		settled.text("paid_at") != "2026-01-02T03:05:05.678Z" || settled.text("payment_channel") != "QRIS" {
		t.Errorf("paid as %v", settled)
	}
	w.pay(409, `{"url":"`+created.text("invoice_url")+`"}`)
	if ended := w.v1().do(200, "POST", "/invoices/"+id+"/expire!", ""); ended.text("status") != "PAID" {
		t.Errorf("a paid invoice was ended: %v", ended)
	}
	if got := w.states("INV-1"); !slices.Equal(got, []string{"PAID"}) {
		t.Errorf("the witness says %v", got)
	}
}

func TestInvoiceTwiceIsTwo(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	w.v1().do(200, "POST", "/v2/invoices", plainInvoice)
	w.v1().do(200, "POST", "/v2/invoices/", plainInvoice)
	if got := w.states("INV-1"); len(got) != 2 {
		t.Errorf("the witness says %v", got)
	}
}

func TestInvoiceValidation(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	recorded := `{"error_code":"API_VALIDATION_ERROR","message":"Invalid input data. Please check your request",` +
		`"errors":[{"field":["external_id"],"location":"body","messages":["\"external_id\" must be a string"],"types":["string.base"]}]}`
	if _, got := w.send(w.v1().request("POST", "/v2/invoices", `{"external_id":1,"amount":100000}`)); strings.TrimSpace(got) != recorded {
		t.Errorf("got  %s\nwant %s", got, recorded)
	}
	long := strings.Repeat("x", 256)
	for body, field := range map[string]string{
		``:                                   "external_id",
		`{"amount":1000}`:                    "external_id",
		`{"external_id":null,"amount":1000}`: "external_id",
		`{"external_id":"","amount":1000}`:   "external_id",
		`{"external_id":"` + long + `","amount":1000}`:                         "external_id",
		`{"external_id":"a"}`:                                                  "amount",
		`{"external_id":"a","amount":"1000"}`:                                  "amount",
		`{"external_id":"a","amount":-1}`:                                      "amount",
		`{"external_id":"a","amount":10000.99}`:                                "amount",
		`{"external_id":"a","amount":1000,"currency":"USD"}`:                   "currency",
		`{"external_id":"a","amount":1000,"payer_email":"x"}`:                  "payer_email",
		`{"external_id":"a","amount":1000,"invoice_duration":0}`:               "invoice_duration",
		`{"external_id":"a","amount":1000,"invoice_duration":31536001}`:        "invoice_duration",
		`{"external_id":"a","amount":1000,"invoice_duration":"60"}`:            "invoice_duration",
		`{"external_id":"a","amount":1000,"success_redirect_url":"shop"}`:      "success_redirect_url",
		`{"external_id":"a","amount":1000,"payment_methods":"QRIS"}`:           "payment_methods",
		`{"external_id":"a","amount":1000,"metadata":[]}`:                      "metadata",
		`{"external_id":"a","amount":1000,"metadata":{"` + long + `":"v"}}`:    "metadata",
		`{"external_id":"a","amount":1000,"metadata":` + manyPairs(51) + `}`:   "metadata",
		`{"external_id":"a","amount":1000,"failure_redirect_url":"ftp://x/y"}`: "failure_redirect_url",
	} {
		out := w.v1().refused(400, "API_VALIDATION_ERROR", "POST", "/v2/invoices", body)
		if !strings.Contains(fmt.Sprint(out["errors"]), "["+field+"]") {
			t.Errorf("%s: %v, want %s", body, out["errors"], field)
		}
	}
	for _, body := range []string{`{`, `[]`, `"x"`, `null`, `{}x`} {
		w.v1().refused(400, "INVALID_JSON_FORMAT", "POST", "/v2/invoices", body)
	}
	if got := w.env.Movements.All(); len(got) != 0 {
		t.Errorf("the witness says %v", got)
	}
}

func manyPairs(n int) string {
	pairs := map[string]string{}
	for i := range n {
		pairs[fmt.Sprint(i)] = "v"
	}
	data, _ := json.Marshal(pairs)
	return string(data)
}

func TestInvoiceAmounts(t *testing.T) {
	t.Parallel()
	options := sandbox.DefaultOptions()
	options.MinAmount = 10000
	w := open(t, options)
	for text, want := range map[string]float64{"10000": 10000, "10000.00": 10000, "1e4": 10000, "1000000000": 1e9} {
		out := w.v1().do(200, "POST", "/v2/invoices", `{"external_id":"a","amount":`+text+`}`)
		if out["amount"] != want {
			t.Errorf("%s became %v", text, out["amount"])
		}
	}
	for text, code := range map[string]string{
		"9999": "MINIMAL_TRANSFER_AMOUNT_ERROR", "0": "MINIMAL_TRANSFER_AMOUNT_ERROR", "1000000001": "MAXIMUM_TRANSFER_AMOUNT_ERROR",
		"99999999999999999999": "MAXIMUM_TRANSFER_AMOUNT_ERROR",
	} {
		w.v1().refused(400, code, "POST", "/v2/invoices", `{"external_id":"a","amount":`+text+`}`)
	}
	before := len(w.env.Movements.All())
	w.v1().refused(403, "CHANNEL_NOT_ACTIVATED", "POST", "/v2/invoices", `{"external_id":"a","amount":10100}`)
	w.v1().refused(503, "CHANNEL_UNAVAILABLE", "POST", "/v2/invoices", `{"external_id":"a","amount":10101}`)
	w.v1().refused(500, "SERVER_ERROR", "POST", "/v2/invoices", `{"external_id":"a","amount":10102}`)
	if got := len(w.env.Movements.All()); got != before {
		t.Errorf("%d refused creates were done", got-before)
	}
}

func TestInvoiceEndsOnOrder(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	created := w.v1().do(200, "POST", "/v2/invoices", plainInvoice)
	path := "/invoices/" + created.text("id") + "/expire!"
	caller{w, otherKey, ""}.refused(404, "INVOICE_NOT_FOUND_ERROR", "POST", path, "")
	for range 2 {
		if got := w.v1().do(200, "POST", path, ""); got.text("status") != "EXPIRED" {
			t.Errorf("got %v", got)
		}
	}
	if e := w.next(); e.body.text("status") != "EXPIRED" || e.body.text("external_id") != "INV-1" {
		t.Errorf("event %+v", e)
	}
	w.pay(409, `{"url":"`+created.text("invoice_url")+`"}`)
	w.silent()
	if got := w.states("INV-1"); !slices.Equal(got, []string{"EXPIRED"}) {
		t.Errorf("the witness says %v", got)
	}
}

func TestInvoiceRunsOut(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	created := w.v1().do(200, "POST", "/v2/invoices", `{"external_id":"INV-1","amount":5000,"invoice_duration":60}`)
	w.clock.Advance(time.Minute - time.Millisecond)
	if got := w.v1().do(200, "GET", "/v2/invoices/"+created.text("id"), ""); got.text("status") != "PENDING" {
		t.Errorf("before its time: %v", got)
	}
	w.clock.Advance(time.Millisecond)
	if got := w.v1().do(200, "GET", "/v2/invoices/"+created.text("id"), ""); got.text("status") != "EXPIRED" {
		t.Errorf("at its time: %v", got)
	}
	if e := w.next(); e.body.text("status") != "EXPIRED" || e.token != "hook-token" || e.id == "" {
		t.Errorf("event %+v", e)
	}
	w.pay(409, `{"url":"`+created.text("invoice_url")+`"}`)
}

func TestInvoiceList(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	var ids []string
	for n := range 12 {
		w.clock.Advance(time.Second)
		body := fmt.Sprintf(`{"external_id":"INV-%d","amount":1000}`, n%6)
		ids = append(ids, w.v1().do(200, "POST", "/v2/invoices", body).text("id"))
	}
	caller{w, otherKey, ""}.do(200, "POST", "/v2/invoices", `{"external_id":"INV-1","amount":1000}`)
	for query, want := range map[string][]int{
		"":                          {11, 10, 9, 8, 7, 6, 5, 4, 3, 2},
		"limit=2":                   {11, 10},
		"external_id=INV-1":         {7, 1},
		"external_id=INV-1&limit=1": {7},
		"external_id=INV-9":         {},
	} {
		got := []int{}
		for _, i := range w.v1().list("/v2/invoices?" + query) {
			got = append(got, slices.Index(ids, i.text("id")))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	for _, query := range []string{"limit=0", "limit=101", "limit=x"} {
		w.v1().refused(400, "API_VALIDATION_ERROR", "GET", "/v2/invoices?"+query, "")
	}
}

func TestUnknownPathsAndRates(t *testing.T) {
	t.Parallel()
	options := sandbox.DefaultOptions()
	options.RateLimit = 3
	w := open(t, options)
	w.v1().refused(404, "NOT_FOUND", "GET", "/v2/payouts", "")
	w.v1().refused(404, "NOT_FOUND", "DELETE", "/v2/invoices/x", "")
	remaining := func() (int, string, string) {
		response, _ := w.send(w.v1().request("GET", "/v2/invoices", ""))
		if response.Header.Get("Rate-Limit-Limit") != "3" {
			t.Errorf("limit %q", response.Header.Get("Rate-Limit-Limit"))
		}
		return response.StatusCode, response.Header.Get("Rate-Limit-Remaining"), response.Header.Get("Rate-Limit-Reset")
	}
	type told struct {
		status           int
		remaining, reset string
	}
	for _, want := range []told{{200, "2", "60.000"}, {200, "1", "60.000"}, {200, "0", "60.000"}, {429, "0", "60.000"}} {
		if status, left, reset := remaining(); (told{status, left, reset}) != want {
			t.Errorf("%d %s %s, want %v", status, left, reset, want)
		}
	}
	w.v1().refused(429, "RATE_LIMIT_EXCEEDED", "GET", "/v2/invoices", "")
	// Another endpoint and another account have their own count.
	w.v1().do(200, "POST", "/v2/invoices", plainInvoice)
	caller{w, otherKey, ""}.list("/v2/invoices")
	// The window slides: half a minute into the next, half of the past counts.
	w.clock.Advance(90 * time.Second)
	if status, left, reset := remaining(); status != 200 || left != "1" || reset != "30.000" {
		t.Errorf("%d %s %s", status, left, reset)
	}
	w.clock.Advance(5 * time.Minute)
	if status, left, _ := remaining(); status != 200 || left != "2" {
		t.Errorf("%d %s", status, left)
	}
}

func TestPage(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	created := w.v1().do(200, "POST", "/v2/invoices",
		`{"external_id":"A","amount":25000,"description":"<b>Kopi</b>","success_redirect_url":"https://shop.test/ok"}`)
	plain := w.v1().do(200, "POST", "/v2/invoices", `{"external_id":"B","amount":25000}`)
	path := strings.TrimPrefix(created.text("invoice_url"), w.api.URL)
	payer := caller{w, "", ""}
	response, page := w.send(payer.request("GET", path, ""))
	for _, want := range []string{"Toko Contoh", "Rp25.000", "&lt;b&gt;Kopi", `<form method="post">`, ">Pay Rp25.000<"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	policy := response.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "form-action 'self' https://shop.test;") {
		t.Errorf("policy %q", policy)
	}
	if response, css := w.send(payer.request("GET", "/web/page.css", "")); !strings.Contains(css, "button") ||
		!strings.HasPrefix(response.Header.Get("Content-Type"), "text/css") {
		t.Errorf("style: %q", response.Header.Get("Content-Type"))
	}
	foreign := payer.request("POST", path, "")
	foreign.Header.Set("Sec-Fetch-Site", "cross-site")
	if response, _ := w.send(foreign); response.StatusCode != http.StatusForbidden {
		t.Errorf("another site could pay: %d", response.StatusCode)
	}
	if response, _ := w.send(payer.request("POST", path, "")); response.StatusCode != 303 || response.Header.Get("Location") != "https://shop.test/ok" {
		t.Errorf("after paying: %d %q", response.StatusCode, response.Header.Get("Location"))
	}
	// Pressed once more, the page says how it stands.
	if response, _ := w.send(payer.request("POST", path, "")); response.StatusCode != 303 || response.Header.Get("Location") != path {
		t.Errorf("paid twice: %d %q", response.StatusCode, response.Header.Get("Location"))
	}
	if _, page := w.send(payer.request("GET", path, "")); !strings.Contains(page, "PAID") || strings.Contains(page, ">Pay") {
		t.Errorf("the page of a paid invoice:\n%s", page)
	}
	own := strings.TrimPrefix(plain.text("invoice_url"), w.api.URL)
	if response, _ := w.send(payer.request("POST", own, "")); response.Header.Get("Location") != own {
		t.Errorf("without a way back: %q", response.Header.Get("Location"))
	}
	for _, method := range []string{"GET", "POST"} {
		if response, _ := w.send(payer.request(method, "/web/unknown", "")); response.StatusCode != 404 {
			t.Errorf("%s of an unknown page: %d", method, response.StatusCode)
		}
	}
}
