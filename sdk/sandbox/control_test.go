package sandbox_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

func TestControl(t *testing.T) {
	t.Parallel()
	w := openShop(t, sandbox.NewManualClock(start))
	for _, c := range []struct {
		name, method, path, token, body string
		status                          int
		want                            string
	}{
		{"no token", "GET", "movements", "", "", 401, `"error"`},
		{"wrong token", "GET", "movements", "opem", "", 401, `"error"`},
		{"no movements", "GET", "movements", "open", "", 200, `[]`},
		{"unknown path", "GET", "other", "open", "", 404, ``},
		{"wrong method", "GET", "pay", "open", "", 405, ``},
		{
			"pay", "POST", "pay", "open", `{"qr_string":"good"}`, 200,
			`{"provider":"demo","reference":"R","amount":500,"state":"PAID"}`,
		},
		{
			"pay another amount", "POST", "pay", "open", `{"url":"good","amount":7.0}`, 200,
			`{"provider":"demo","reference":"R","amount":7,"state":"PAID"}`,
		},
		{"pay nothing", "POST", "pay", "open", `{}`, 400, `required`},
		{"pay both", "POST", "pay", "open", `{"url":"a","qr_string":"b"}`, 400, `required`},
		{"pay zero", "POST", "pay", "open", `{"url":"good","amount":0}`, 400, `amount`},
		{"pay a fraction", "POST", "pay", "open", `{"url":"good","amount":0.5}`, 400, `whole rupiah`},
		{"unknown field", "POST", "pay", "open", `{"qr":"good"}`, 400, `qr`},
		{"two objects", "POST", "pay", "open", `{"url":"good"}{}`, 400, `after top-level value`},
		{"too large", "POST", "pay", "open", `{"url":"` + strings.Repeat("x", 70<<10) + `"}`, 400, `too large`},
		{"not of this upstream", "POST", "pay", "open", `{"url":"http://x/"}`, 404, `{"error":"nothing of this upstream"}`},
		{"not payable", "POST", "pay", "open", `{"url":"paid"}`, 409, `{"error":"it is paid"}`},
		{"own failure", "POST", "pay", "open", `{"url":"broken"}`, 500, `{"error":"broken"}`},
		{"fault", "POST", "faults", "open", `{"fault":"latency"}`, 200, `{"fault":"latency","count":1,"operation":""}`},
		{"unknown fault", "POST", "faults", "open", `{"fault":"fire"}`, 400, `drop_after`},
		{"unknown operation", "POST", "faults", "open", `{"fault":"latency","operation":"sell"}`, 400, `buy, count`},
		{"no count", "POST", "faults", "open", `{"fault":"latency","count":-1}`, 400, `count`},
		{"hook", "POST", "hooks", "open", `{"account":"k","callback_url":"http://h/","callback_token":"s","name":"N"}`, 200, `{"account_id":"`},
		{"hook nowhere", "POST", "hooks", "open", `{"account":"k","callback_url":"file:///x"}`, 400, `callback_url`},
		{"hook of nobody", "POST", "hooks", "open", `{"callback_url":"http://h/"}`, 400, `account`},
	} {
		status, body, err := w.call(c.method, "/_sandbox/"+c.path, c.token, c.body)
		if err != nil || status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d %s %v; want %d %s", c.name, status, body, err, c.status, c.want)
		}
	}
	account, ok := w.env.Accounts.Get(sandbox.AccountOf("k"))
	if !ok || account.CallbackURL != "http://h/" || account.CallbackToken != "s" || account.Name != "N" {
		t.Errorf("registered %+v, %t", account, ok)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	w := openShop(t, sandbox.NewManualClock(start))
	status, body, err := w.call(http.MethodGet, "/_sandbox/describe", "open", "")
	want := `{"provider":"demo","operations":[{"name":"buy","moves_money":true},{"name":"count","moves_money":false}],` +
		`"magic":[{"value":"7","effect":"luck"}],"prefixes":["` + w.url + `/web/"]}`
	if err != nil || status != 200 || body != want {
		t.Errorf("%d %s %v; want %s", status, body, err, want)
	}
}

func TestOpenWantsEverything(t *testing.T) {
	t.Parallel()
	for _, c := range []sandbox.Config{
		{StateDir: t.TempDir(), Token: "t"}, {Provider: "p", Token: "t"}, {Provider: "p", StateDir: t.TempDir()},
	} {
		if _, err := sandbox.Open(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// TestFaults orders each fault and counts what the shop really did.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault  sandbox.Fault
		status int // zero: cut
		body   string
		done   bool
	}{
		{sandbox.FaultError500, 500, "internal error", false},
		{sandbox.FaultError500After, 500, "internal error", true},
		{sandbox.FaultDropBefore, 0, "", false},
		{sandbox.FaultDropAfter, 0, "", true},
		{sandbox.FaultGarbage, 200, "garbage", true},
	} {
		w := openShop(t, sandbox.NewManualClock(start))
		if err := w.env.Faults.Add(c.fault, "", 1); err != nil {
			t.Fatal(err)
		}
		if status, _, err := w.call("GET", "/count", "", ""); status != 200 {
			t.Errorf("%s: hit a call that moves no money: %d, %v", c.fault, status, err)
		}
		status, body, err := w.call("POST", "/buy", "", "tea")
		if status != c.status || (err != nil) != (c.status == 0) || !strings.Contains(body, c.body) {
			t.Errorf("%s: %d %q %v", c.fault, status, body, err)
		}
		if done := len(w.env.Movements.All()) == 1; done != c.done {
			t.Errorf("%s: done is %t", c.fault, done)
		}
		if status, body, err := w.call("POST", "/buy", "", "milk"); err != nil || body != "bought milk" {
			t.Errorf("%s: the next call: %d %q %v", c.fault, status, body, err)
		}
	}
}

func TestFaultOfAnOperation(t *testing.T) {
	t.Parallel()
	w := openShop(t, sandbox.NewManualClock(start))
	if err := w.env.Faults.Add(sandbox.FaultError500, "count", 2); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := w.call("POST", "/buy", "", "tea"); status != 200 {
		t.Errorf("hit another operation: %d", status)
	}
	for _, want := range []int{500, 500, 200} {
		if status, _, _ := w.call("GET", "/count", "", ""); status != want {
			t.Errorf("status %d, want %d", status, want)
		}
	}
}

// TestLatency holds that it is waited before the work is done.
func TestLatency(t *testing.T) {
	t.Parallel()
	clock := &announcedClock{sandbox.NewManualClock(start), make(chan struct{}, 1)}
	w := openShop(t, clock)
	if err := w.env.Faults.Add(sandbox.FaultLatency, "buy", 1); err != nil {
		t.Fatal(err)
	}
	answered := make(chan string)
	go func() {
		_, body, _ := w.call("POST", "/buy", "", "tea")
		answered <- body
	}()
	<-clock.asked
	if len(w.env.Movements.All()) != 0 {
		t.Error("done before the wait")
	}
	clock.Advance(3 * second)
	if body := <-answered; body != "bought tea" {
		t.Errorf("answered %q", body)
	}
}

// TestHungUpCallerIsServed: an upstream that got a call does it.
func TestHungUpCallerIsServed(t *testing.T) {
	t.Parallel()
	clock := &announcedClock{sandbox.NewManualClock(start), make(chan struct{}, 1)}
	w := openShop(t, clock)
	if err := w.env.Faults.Add(sandbox.FaultLatency, "buy", 1); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	handler := w.env.Faults.Wrap("buy", true, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		defer close(done)
		if err := r.Context().Err(); err != nil {
			t.Errorf("the work was given up: %v", err)
		}
	}))
	ctx, hangUp := cancelled(t)
	go handler.ServeHTTP(discard{}, request(ctx, t))
	<-clock.asked
	hangUp()
	clock.Advance(3 * second)
	<-done
}
