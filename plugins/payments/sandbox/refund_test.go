package sandbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/payments/sandbox"
)

// paidInvoice makes an invoice, pays it, and returns its id.
func (w *world) paidInvoice(amount int) string {
	w.t.Helper()
	url := w.invoiceOf(amount)
	w.pay(200, `{"url":"`+url+`"}`)
	if e := w.next(); e.body.text("status") != "PAID" {
		w.t.Fatalf("event %+v", e)
	}
	return url[strings.LastIndex(url, "/")+1:]
}

func refundOf(invoice, reference string, amount int) string {
	return fmt.Sprintf(`{"invoice_id":%q,"reference_id":%q,"amount":%d,"currency":"IDR","reason":"OTHERS","metadata":{"reason":"too small"}}`, invoice, reference, amount)
}

// keyed makes a refund with an idempotency-key.
func (w *world) keyed(key, body string) (status int, text string) {
	w.t.Helper()
	request := w.v1().request("POST", "/refunds", body)
	request.Header.Set("idempotency-key", key)
	response, text := w.send(request)
	return response.StatusCode, text
}

func (w *world) refunds(query string) (ids []string, more bool) {
	w.t.Helper()
	list := w.v1().do(200, "GET", "/refunds?"+query, "")
	all, _ := list["data"].([]any)
	for _, one := range all {
		body, _ := one.(map[string]any)
		ids = append(ids, object(body).text("id"))
	}
	more, _ = list["has_more"].(bool)
	return ids, more
}

func TestRefundOfAPart(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	id := w.paidInvoice(5000)
	made := w.v1().do(200, "POST", "/refunds", refundOf(id, "R-1", 2000))
	if !strings.HasPrefix(made.text("id"), "rfd-") || made.text("status") != "SUCCEEDED" || made.text("reference_id") != "R-1" ||
		made["amount"] != 2000.0 || made.text("reason") != "OTHERS" || made.text("invoice_id") != id || made.inner("metadata").text("reason") != "too small" {
		t.Errorf("made %+v", made)
	}
	if e := w.next(); e.body.text("event") != "refund.succeeded" || fmt.Sprint(e.body.inner("data")) != fmt.Sprint(made) {
		t.Errorf("event %+v of %+v", e, made)
	}
	w.restart()
	if read := w.v1().do(200, "GET", "/refunds/"+made.text("id"), ""); fmt.Sprint(read) != fmt.Sprint(made) {
		t.Errorf("read %+v, made %+v", read, made)
	}
	if all, more := w.refunds("invoice_id=" + id); !slices.Equal(all, []string{made.text("id")}) || more {
		t.Errorf("listed %v, more %v", all, more)
	}
	caller{w, otherKey, ""}.refused(404, "DATA_NOT_FOUND", "GET", "/refunds/"+made.text("id"), "")
	w.v1().refused(404, "DATA_NOT_FOUND", "GET", "/refunds/rfd-none", "")
}

func TestRefundsNeverExceedWhatWasPaid(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	id := w.paidInvoice(5000)
	w.v1().refused(400, "MAXIMUM_REFUND_AMOUNT_REACHED", "POST", "/refunds", refundOf(id, "R-1", 5001))
	w.v1().do(200, "POST", "/refunds", refundOf(id, "R-2", 3000))
	w.next()
	w.v1().refused(400, "MAXIMUM_REFUND_AMOUNT_REACHED", "POST", "/refunds", refundOf(id, "R-3", 2001))
	rest := w.v1().do(200, "POST", "/refunds", `{"invoice_id":"`+id+`","reason":"DUPLICATE"}`)
	if rest["amount"] != 2000.0 || rest["reference_id"] != nil {
		t.Errorf("the rest is %+v", rest)
	}
	w.next()
	w.v1().refused(400, "MAXIMUM_REFUND_AMOUNT_REACHED", "POST", "/refunds", `{"invoice_id":"`+id+`","reason":"OTHERS"}`)
	w.silent()
}

func TestRefundIsRefused(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	id := w.paidInvoice(50000)
	url := w.invoiceOf(6000)
	for name, c := range map[string]struct {
		status     int
		code, body string
	}{
		"unpaid":             {403, "INELIGIBLE_TRANSACTION", refundOf(url[strings.LastIndex(url, "/")+1:], "R", 10)},
		"no such invoice":    {404, "INVOICE_NOT_FOUND_ERROR", refundOf("none", "R", 10)},
		"no reason":          {400, "API_VALIDATION_ERROR", `{"invoice_id":"` + id + `"}`},
		"a strange reason":   {400, "API_VALIDATION_ERROR", `{"invoice_id":"` + id + `","reason":"too small"}`},
		"nothing":            {400, "API_VALIDATION_ERROR", refundOf(id, "R", 0)},
		"another currency":   {400, "API_VALIDATION_ERROR", `{"invoice_id":"` + id + `","reason":"OTHERS","currency":"PHP"}`},
		"no part":            {400, "PARTIAL_REFUND_NOT_SUPPORTED", refundOf(id, "R", 10301)},
		"no refund":          {400, "REFUND_NOT_SUPPORTED", refundOf(id, "R", 10303)},
		"not in this state":  {403, "INELIGIBLE_TRANSACTION", refundOf(id, "R", 10305)},
		"no invoice at all":  {400, "API_VALIDATION_ERROR", `{"reason":"OTHERS"}`},
		"another's invoice ": {404, "INVOICE_NOT_FOUND_ERROR", ""},
	} {
		by := w.v1()
		if c.body == "" {
			by, c.body = caller{w, otherKey, ""}, refundOf(id, "R", 10)
		}
		t.Log(name)
		by.refused(c.status, c.code, "POST", "/refunds", c.body)
	}
	if all, _ := w.refunds("invoice_id=" + id); len(all) != 0 {
		t.Errorf("refused, and made: %v", all)
	}
	w.silent()
}

// TestRefundOnce: an idempotency-key names one refund, and so does a reference_id, also
// after a restart.
func TestRefundOnce(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	id := w.paidInvoice(5000)
	status, first := w.keyed("K-1", refundOf(id, "R-1", 2000))
	if status != 200 {
		t.Fatal(first)
	}
	w.next()
	w.restart()
	if status, again := w.keyed("K-1", refundOf(id, "R-1", 2000)); status != 200 || again != first {
		t.Errorf("again: %d %s, first %s", status, again, first)
	}
	if status, text := w.keyed("K-1", refundOf(id, "R-1", 2001)); status != 409 || !strings.Contains(text, "IDEMPOTENCY_ERROR") {
		t.Errorf("another amount of the same key: %d %s", status, text)
	}
	if status, text := w.keyed("K-2", refundOf(id, "R-1", 2000)); status != 409 || !strings.Contains(text, "DUPLICATE_ERROR") {
		t.Errorf("another key of the same reference: %d %s", status, text)
	}
	if all, _ := w.refunds("invoice_id=" + id); len(all) != 1 {
		t.Errorf("made %v", all)
	}
	w.silent()
}

// TestRefundEndsLater: a pending refund counts, ends in its time, also where the upstream
// was restarted meanwhile, and gives back what it held where it fails.
func TestRefundEndsLater(t *testing.T) {
	t.Parallel()
	for amount, want := range map[int]struct{ event, status, failure string }{
		10310: {"refund.succeeded", "SUCCEEDED", ""},
		20300: {"refund.failed", "FAILED", "INELIGIBLE_TRANSACTION"},
		20304: {"refund.failed", "FAILED", "INSUFFICIENT_BALANCE"},
	} {
		w := open(t, sandbox.DefaultOptions())
		id := w.paidInvoice(amount + 1)
		made := w.v1().do(200, "POST", "/refunds", refundOf(id, "R-1", amount))
		if made.text("status") != "PENDING" {
			t.Errorf("%d: made %+v", amount, made)
		}
		w.v1().refused(400, "MAXIMUM_REFUND_AMOUNT_REACHED", "POST", "/refunds", refundOf(id, "R-2", 2))
		w.restart()
		w.clock.Advance(3 * time.Second)
		e := w.next()
		read := w.v1().do(200, "GET", "/refunds/"+made.text("id"), "")
		if e.body.text("event") != want.event || fmt.Sprint(e.body.inner("data")) != fmt.Sprint(read) ||
			read.text("status") != want.status || read.text("failure_code") != want.failure || read.text("updated") == read.text("created") {
			t.Errorf("%d: event %+v, read %+v", amount, e, read)
		}
		if want.failure != "" {
			w.v1().do(200, "POST", "/refunds", refundOf(id, "R-3", 2))
		}
	}
}

func TestRefundsAreListedByPages(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	id := w.paidInvoice(5000)
	var made []string
	for n := range 3 {
		made = append(made, w.v1().do(200, "POST", "/refunds", refundOf(id, fmt.Sprint("R-", n), 10)).text("id"))
	}
	first, more := w.refunds("limit=2&invoice_id=" + id)
	if !slices.Equal(first, made[:2]) || !more {
		t.Errorf("first page %v, more %v, of %v", first, more, made)
	}
	if rest, more := w.refunds("limit=2&after_id=" + first[1] + "&invoice_id=" + id); !slices.Equal(rest, made[2:]) || more {
		t.Errorf("second page %v, more %v, of %v", rest, more, made)
	}
}
