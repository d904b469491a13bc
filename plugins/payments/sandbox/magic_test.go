package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/payments/sandbox"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// invoiceOf creates an invoice of an amount and returns the URL to pay it.
func (w *world) invoiceOf(amount int) string {
	w.t.Helper()
	body := fmt.Sprintf(`{"external_id":"M-%d","amount":%d,"invoice_duration":3600}`, amount, amount)
	return w.v1().do(200, "POST", "/v2/invoices", body).text("invoice_url")
}

func TestWebhookOfAnInvoice(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	w.pay(200, `{"url":"`+w.invoiceOf(5000)+`"}`)
	e := w.next()
	if e.token != "hook-token" || e.id == "" || e.body.text("status") != "PAID" || e.body.text("external_id") != "M-5000" ||
		e.body["paid_amount"] != 5000.0 || e.body.text("payment_method") != "QR_CODE" || e.body["event"] != nil {
		t.Errorf("event %+v", e)
	}
	w.silent()
}

func TestWebhookTwice(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	w.pay(200, `{"url":"`+w.invoiceOf(10110)+`"}`)
	one, two := w.next(), w.next()
	if one.id != two.id || one.id == "" || fmt.Sprint(one.body) != fmt.Sprint(two.body) {
		t.Errorf("%+v and %+v", one, two)
	}
	w.silent()
}

func TestWebhooksOutOfOrder(t *testing.T) {
	t.Parallel()
	for amount, want := range map[int][]string{10111: {"PAID", "EXPIRED"}, 10113: {"EXPIRED", "PAID"}} {
		w := open(t, sandbox.DefaultOptions())
		w.pay(200, `{"url":"`+w.invoiceOf(amount)+`"}`)
		first := w.next()
		w.clock.Advance(2 * time.Second)
		second := w.next()
		got := []string{first.body.text("status"), second.body.text("status")}
		if !slices.Equal(got, want) || first.id == second.id {
			t.Errorf("%d: %v, want %v", amount, got, want)
		}
		if state := w.states(fmt.Sprintf("M-%d", amount)); !slices.Equal(state, []string{"PAID"}) {
			t.Errorf("%d: the witness says %v", amount, state)
		}
	}
}

func TestWebhookLost(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	w.pay(200, `{"url":"`+w.invoiceOf(10112)+`"}`)
	created := w.v2().do(201, "POST", "/qr_codes", strings.Replace(plainQR, "10000", "10112", 1))
	w.pay(200, `{"qr_string":"`+created.text("qr_string")+`"}`)
	w.clock.Advance(time.Hour)
	w.silent()
}

func TestWebhookOfAQRComesLate(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	created := w.v2().do(201, "POST", "/qr_codes", strings.Replace(plainQR, "10000", "10111", 1))
	w.pay(200, `{"qr_string":"`+created.text("qr_string")+`"}`)
	w.clock.Advance(4*time.Second - time.Millisecond)
	w.silent()
	w.clock.Advance(time.Millisecond)
	w.next()
}

// TestPaidByItself also restarts in between, as a killed sandbox does.
func TestPaidByItself(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	w.invoiceOf(10114)
	w.v2().do(201, "POST", "/qr_codes", strings.Replace(plainQR, "10000", "10114", 1))
	w.restart()
	w.clock.Advance(3 * time.Second)
	w.next()
	w.next()
	if got := append(w.states("M-10114"), w.states("QR-1")...); !slices.Equal(got, []string{"PAID", "PAID"}) {
		t.Errorf("the witness says %v", got)
	}
	w.silent()
}

func TestLinkPaidAfterItsTime(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	link := w.invoiceOf(10115)
	w.clock.Advance(time.Hour)
	if e := w.next(); e.body.text("status") != "EXPIRED" {
		t.Errorf("event %+v", e)
	}
	w.pay(200, `{"url":"`+link+`"}`)
	if e := w.next(); e.body.text("status") != "PAID" {
		t.Errorf("event %+v", e)
	}
	w.silent()
}

func TestDescribeNamesEverything(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	request := caller{w, "", ""}.request("GET", "/_sandbox/describe", "")
	request.Header.Set("Authorization", "Bearer open")
	_, body := w.send(request)
	for _, want := range []string{
		`{"name":"invoices.create","moves_money":true}`, `{"name":"qr_codes.create","moves_money":true}`,
		`{"name":"invoices.list","moves_money":false}`, `"10100"`, `"10115"`, w.api.URL + `/web/`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in %s", want, body)
		}
	}
}

// TestStateSurvivesARestart compares every answer before and after.
func TestStateSurvivesARestart(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	w.v1().do(200, "POST", "/v2/invoices", plainInvoice)
	w.pay(200, `{"url":"`+w.invoiceOf(5000)+`"}`)
	created := w.v2().do(201, "POST", "/qr_codes", plainQR)
	w.pay(200, `{"qr_string":"`+created.text("qr_string")+`"}`)
	w.next()
	w.next()
	// The address of the pages is that of the process, not of the state.
	look := func() string {
		list := fmt.Sprint(w.v1().list("/v2/invoices"))
		code := fmt.Sprint(w.v2().do(200, "GET", "/qr_codes/"+created.text("id")+"/payments", ""))
		return strings.ReplaceAll(list, w.api.URL, "") + code + fmt.Sprint(w.env.Movements.All())
	}
	before := look()
	w.restart()
	if after := look(); after != before {
		t.Errorf("before %s\nafter  %s", before, after)
	}
	w.v2().refused(409, "DUPLICATE_ERROR", "POST", "/qr_codes", plainQR)
	w.silent()
}

// TestCutAfterCreating is why a gateway looks up before it creates again.
func TestCutAfterCreating(t *testing.T) {
	t.Parallel()
	w := open(t, sandbox.DefaultOptions())
	for fault, want := range map[kit.Fault]int{kit.FaultDropBefore: 0, kit.FaultDropAfter: 1} {
		if err := w.env.Faults.Add(fault, "", 1); err != nil {
			t.Fatal(err)
		}
		reference := string(fault)
		response, err := http.DefaultClient.Do(w.v1().request("POST", "/v2/invoices", `{"external_id":"`+reference+`","amount":1000}`))
		if err == nil {
			_ = response.Body.Close()
			t.Errorf("%s: answered %d", fault, response.StatusCode)
		}
		if got := w.v1().list("/v2/invoices?external_id=" + reference); len(got) != want {
			t.Errorf("%s: %d were created, want %d", fault, len(got), want)
		}
	}
	if err := w.env.Faults.Add(kit.FaultError500, "", 1); err != nil {
		t.Fatal(err)
	}
	w.v1().refused(500, "SERVER_ERROR", "POST", "/v2/invoices", plainInvoice)
}

func TestProgramFlags(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := func(name string) string { return map[string]string{kit.EnvToken: "t"}[name] }
	args := []string{"--state", t.TempDir(), "--min-amount", "10000", "--rate-limit", "3000", "--max-qr", "5000000"}
	if err := sandbox.Program().Run(ctx, args, env, io.Discard); err != nil {
		t.Error(err)
	}
	var said bytes.Buffer
	if err := sandbox.Program().Run(ctx, append(args, "--min-amount", "1.5"), env, &said); err == nil || !strings.Contains(err.Error(), "whole rupiah") {
		t.Errorf("%v", err)
	}
}

// BenchmarkCreate is how fast a load test can be served; many callers share
// the journal's flushes.
func BenchmarkCreate(b *testing.B) {
	options := sandbox.DefaultOptions()
	options.RateLimit = 1 << 30
	for name, call := range map[string]func(*world, int) *http.Request{
		"invoice": func(w *world, n int) *http.Request {
			return w.v1().request("POST", "/v2/invoices", fmt.Sprintf(`{"external_id":"B-%d","amount":10000}`, n))
		},
		"qr": func(w *world, n int) *http.Request {
			return w.v2().request("POST", "/qr_codes", strings.Replace(plainQR, "QR-1", fmt.Sprintf("B-%d", n), 1))
		},
	} {
		b.Run(name, func(b *testing.B) {
			w := open(b, options)
			benchmarkCreate(b, w, call)
		})
	}
}
