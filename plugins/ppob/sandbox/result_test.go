package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/ppob/sandbox"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// TestPlans checks each plan by its target and by order, and what of it is
// true at the upstream whatever the webhooks say.
func TestPlans(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		plan, customer, first string
		hooks                 []string // "rc price" of each webhook
		pauses                []int    // the seconds before it
		state                 string
	}{
		{"rc99", "087800001240", "Pending 99", []string{"00 10850"}, []int{2}, "Sukses"},
		{"twice", "087800001241", "Pending 03", []string{"00 10850", "00 10850"}, []int{2, 0}, "Sukses"},
		{"reordered", "087800001242", "Pending 03", []string{"00 10850", "03 10850"}, []int{2, 2}, "Sukses"},
		{"late", "087800001243", "Pending 03", []string{"00 10850"}, []int{122}, "Sukses"},
		{"refund", "087800001244", "Sukses 00", []string{"74 10850"}, []int{2}, "Refund"},
		{"wrong_price", "087800001245", "Pending 03", []string{"00 108500"}, []int{2}, "Sukses"},
		{"garbage", "087800001246", "Pending 03", []string{"garbage"}, []int{2}, "Sukses"},
		{"lost", "087800001247", "Pending 03", nil, nil, "Sukses"},
		{"pending_forever", "087800001248", "Pending 03", nil, nil, "Pending"},
		{"forged", "087800001249", "Pending 03", []string{"02 10850"}, []int{2}, "Sukses"},
		{"rc71", "087800002071", "Gagal 71", nil, nil, "Gagal"},
		{"rc62", "087800002062", "Gagal 62", nil, nil, ""},
		{"rc03", "087800002003", "Pending 03", []string{"00 10850"}, []int{2}, "Sukses"},
	} {
		t.Run(c.plan, func(t *testing.T) {
			t.Parallel()
			w := open(t)
			w.want(c.first, w.buy("target", "xld10", c.customer))
			w.check(t, c.plan, c.hooks, c.pauses)
			w.order(200, "plan", object{"plan": c.plan, "sku": "xld10"})
			w.want("Sukses 00", w.buy("other", "xld25", xl)) // of another product
			w.want(c.first, w.buy("order", "xld10", xl))
			w.check(t, c.plan, c.hooks, c.pauses)
			w.want("Sukses 00", w.buy("spent", "xld10", xl)) // the order is used up
			spent := 25_100 + 10_850
			for _, ref := range []string{"target", "order"} {
				w.await(ref, c.state)
				if c.state == "Sukses" || c.state == "Pending" {
					spent += 10_850
				}
			}
			if w.spent() != spent {
				t.Errorf("spent %d, want %d", w.spent(), spent)
			}
			if c.state == "Sukses" {
				w.clock.Advance(time.Hour)
				if got := w.want("Sukses 00", w.buy("order", "xld10", xl)); got["price"] != 10_850.0 || got.text("sn") == "" {
					t.Errorf("looked up: %v", got)
				}
			}
		})
	}
}

// check receives the webhooks of a plan.
func (w *world) check(t *testing.T, plan string, hooks []string, pauses []int) {
	t.Helper()
	for i, want := range hooks {
		pause := time.Duration(pauses[i]) * time.Second
		w.clock.Advance(pause - min(pause, 1))
		w.silentAfter(plan, i)
		w.clock.Advance(min(pause, 1))
		e := w.next()
		got := "garbage"
		if price, ok := e.data["price"].(float64); ok {
			got = fmt.Sprintf("%s %.0f", e.data.text("rc"), price)
		}
		if got != want || e.signed() != (plan != "forged") || e.name != "update" {
			t.Errorf("%s, webhook %d: %s, %s, signed %t: %s", plan, i, got, e.name, e.signed(), e.raw)
		}
	}
	if len(hooks) == 0 {
		w.clock.Advance(time.Hour)
	}
}

// silentAfter fails if a webhook has come too early. One that is a duplicate
// may be there already.
func (w *world) silentAfter(plan string, i int) {
	if plan != "twice" || i == 0 {
		w.silent()
	}
}

// TestPlanOfABill: orders reach postpaid payments too.
func TestPlanOfABill(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.order(200, "plan", object{"plan": "refund", "count": 2})
	for _, ref := range []string{"R1", "R2"} {
		w.pasca("inq", ref, "pdam", "1013226")
		w.want("Sukses 00", w.pasca("pay", ref, "pdam", "1013226"))
	}
	w.clock.Advance(2 * time.Second)
	for range 2 {
		if e := w.next(); e.data.text("rc") != "74" || e.data.text("status") != "Gagal" || e.data["buyer_last_saldo"] == nil {
			t.Errorf("%s", e.raw)
		}
	}
	if w.spent() != 0 || w.states("R1")+w.states("R2") != "RefundRefund" {
		t.Errorf("spent %d", w.spent())
	}
}

// TestRefund names a purchase in each way; it is given back once.
func TestRefund(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.buy("R1", "xld10", xl)
	serial := w.buy("R2", "xld10", xl).text("sn")
	w.buy("R3", "xld10", xl)
	w.buy("R4", "xld10", "087800001232")
	for i, c := range []struct {
		body   object
		status int
		ref    string
	}{
		{object{"reference": "R1", "username": username}, 200, "R1"},
		{object{"reference": "R1"}, 404, ""},
		{object{"reference": serial}, 200, "R2"},
		{object{"reference": xl, "username": "other"}, 404, ""},
		{object{"reference": xl}, 200, "R3"},
		{object{"reference": "R4"}, 404, ""},
		{object{}, 400, ""},
	} {
		if told := w.order(c.status, "refund", c.body); told.text("ref_id") != c.ref {
			t.Errorf("%d: %v", i, told)
		}
		if c.status == 200 {
			if e := w.next(); e.data.text("ref_id") != c.ref || e.data.text("rc") != "74" {
				t.Errorf("%d: %s", i, e.raw)
			}
		}
	}
	w.silent()
	if w.spent() != 0 {
		t.Errorf("spent %d", w.spent())
	}
	w.clock.Advance(time.Minute)
	w.want("Gagal 74", w.buy("R1", "xld10", xl))
}

func TestOrdersRefused(t *testing.T) {
	t.Parallel()
	w := open(t)
	for name, c := range map[string]struct {
		order  string
		body   object
		status int
	}{
		"unknown plan":       {"plan", object{"plan": "luck"}, 400},
		"unknown code":       {"plan", object{"plan": "rc98"}, 400},
		"negative count":     {"plan", object{"plan": "lost", "count": -1}, 400},
		"plan of nothing":    {"plan", object{"plan": "lost", "sku": "nothing"}, 400},
		"unknown field":      {"plan", object{"plan": "lost", "size": 1}, 400},
		"no duration":        {"delay", object{"delay": "soon"}, 400},
		"unknown product":    {"product", object{"sku": "nothing", "price": 1}, 404},
		"price of a bill":    {"product", object{"sku": "pln", "price": 1}, 400},
		"bill of airtime":    {"product", object{"sku": "xld10", "bill": 1}, 400},
		"price of nothing":   {"product", object{"sku": "xld10", "price": 0}, 400},
		"negative stock":     {"product", object{"sku": "xld10", "stock": -1}, 400},
		"less than it earns": {"product", object{"sku": "pln", "bill": 0, "admin": 0}, 400},
		"negative deposit":   {"deposit", object{"amount": -1}, 400},
	} {
		if told := w.order(c.status, c.order, c.body); told.text("error") == "" {
			t.Errorf("%s: %v", name, told)
		}
	}
	w.want("Sukses 00", w.buy("R", "xld10", xl, object{"max_price": 10_850}))
}

func TestDelay(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.order(200, "delay", object{"delay": "10s"})
	w.buy("R", "xld10", "087800001233")
	w.clock.Advance(10*time.Second - 1)
	w.silent()
	w.clock.Advance(1)
	w.next()
}

func TestOtherAddressAndAnnouncements(t *testing.T) {
	t.Parallel()
	w := open(t, func(o *sandbox.Options) { o.AnnounceAll = true })
	w.buy("R", "xld10", "087800001233", object{"cb_url": w.hooks.URL + "/own"})
	if e := w.next(); e.name != "create" || e.path != "/own" || e.data.result() != "Pending 03" || !e.signed() {
		t.Errorf("%+v", e)
	}
	w.clock.Advance(2 * time.Second)
	if e := w.next(); e.name != "update" || e.path != "/own" || e.data.result() != "Sukses 00" {
		t.Errorf("%+v", e)
	}
}

// TestWithoutAddress: nobody hears of it, and nothing waits for an address.
func TestWithoutAddress(t *testing.T) {
	t.Parallel()
	w := open(t)
	other := sandbox.Buyer{Username: "other", APIKey: "dev-other", WebhookSecret: secret}
	if err := w.up.Open(other); err != nil {
		t.Fatal(err)
	}
	w.buy("R", "xld10", "087800001233", object{"username": "other", "sign": other.Sign("R")})
	w.clock.Advance(2 * time.Second)
	w.await("R", "Sukses")
	w.order(200, "hooks", object{"account": "other", "callback_url": w.hooks.URL, "callback_token": secret})
	w.clock.Advance(time.Hour)
	w.silent()
}

// TestFaults plays each fault on a prepaid purchase and on a payment, and
// looks at what was done.
func TestFaults(t *testing.T) {
	t.Parallel()
	for fault, c := range map[kit.Fault]struct {
		answer string // what is left of it; empty when the connection is cut
		done   bool
	}{
		kit.FaultDropBefore:    {"", false},
		kit.FaultDropAfter:     {"", true},
		kit.FaultError500:      {"Server Error", false},
		kit.FaultError500After: {"Server Error", true},
		kit.FaultGarbage:       {"garbage", true},
	} {
		w := open(t)
		bills := transaction("inq-pasca", "pay", "pln", "530000000001")
		for name, body := range map[string]object{
			"buy": transaction("", "buy", "xld10", xl), "pay": transaction("pay-pasca", "pay", "pln", "530000000001"),
		} {
			w.order(200, "faults", object{"fault": fault})
			w.want("Sukses 00", w.call("/v1/transaction", bills)) // moves no money
			_, text, err := w.send("/v1/transaction", "", body)
			if !strings.Contains(string(text), c.answer) || (err != nil) != (c.answer == "") {
				t.Errorf("%s %s: %s, %v", fault, name, text, err)
			}
			if done := w.states(name) == "Sukses"; done != c.done {
				t.Errorf("%s %s: done is %t", fault, name, done)
			}
			w.clock.Advance(time.Minute)
			// The same again is the purchase that was not heard of, or the first.
			w.want("Sukses 00", w.call("/v1/transaction", body))
			if w.states(name) != "Sukses" {
				t.Errorf("%s %s: witness %s", fault, name, w.states(name))
			}
			bills = transaction("inq-pasca", "fresh", "pln", "530000000001")
		}
		if w.spent() != 10_850+10_000 {
			t.Errorf("%s: spent %d", fault, w.spent())
		}
	}
}

func TestFaultsLeaveRefusedCallsAlone(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.order(200, "faults", object{"fault": "error_500", "operation": "cek-saldo"})
	w.want("Gagal 41", w.call("/v1/cek-saldo", object{"cmd": "deposit", "username": username, "sign": "x"}))
	body := object{"cmd": "deposit", "username": username, "sign": sign("depo")}
	if status, text, _ := w.send("/v1/cek-saldo", "", body); status != 500 {
		t.Errorf("%d %s", status, text)
	}
}

// TestKilled kills after each answer: what was told stays, and what was to
// come comes, once.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.buy("done", "xld10", xl)
	w.kill()
	w.buy("later", "pln20", "087800001233")
	w.pasca("inq", "bill", "pln", "630000000006")
	w.kill()
	w.want("Pending 03", w.pasca("pay", "bill", "pln", "630000000006"))
	w.buy("back", "xld10", "087800001244")
	w.kill()
	w.clock.Advance(2 * time.Second)
	for range 3 {
		w.next()
	}
	// Each was told; a kill may tell again what was not yet noted as told.
	w.env.Webhooks.Tried(t.Context())
	w.kill()
	w.clock.Advance(time.Minute)
	for _, c := range []struct{ ref, sku, customer, want, state string }{
		{"done", "xld10", xl, "Sukses 00", "Sukses"},
		{"later", "pln20", "087800001233", "Sukses 00", "Sukses"},
		{"back", "xld10", "087800001244", "Gagal 74", "Refund"},
	} {
		w.want(c.want, w.buy(c.ref, c.sku, c.customer))
		if w.states(c.ref) != c.state {
			t.Errorf("%s: witness %s", c.ref, w.states(c.ref))
		}
	}
	w.want("Gagal 02", w.pasca("status", "bill", "pln", "630000000006"))
	if w.spent() != 10_850+20_150 {
		t.Errorf("spent %d", w.spent())
	}
}

// TestNothingIsToldThatIsNotKept: a simulator that cannot write says 500.
func TestNothingIsToldThatIsNotKept(t *testing.T) {
	t.Parallel()
	w := open(t)
	if err := w.env.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	for _, body := range []object{transaction("", "R", "xld10", xl), transaction("inq-pasca", "R", "pln", "530000000001")} {
		if status, text, _ := w.send("/v1/transaction", "", body); status != 500 {
			t.Errorf("%d %s", status, text)
		}
	}
	if err := w.up.Open(sandbox.Buyer{Username: "new", APIKey: "k"}); !errors.Is(err, kit.ErrJournalClosed) {
		t.Errorf("%v", err)
	}
	w.api.Close()
	_ = w.env.Close() // its journal is closed already
	w.begin()
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	w := open(t)
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, w.api.URL+"/_sandbox/describe", http.NoBody)
	request.Header.Set("Authorization", "Bearer open")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	for _, want := range []string{
		`{"name":"transaction","moves_money":true}`, `{"name":"pay-pasca","moves_money":true}`, `{"name":"inq-pasca","moves_money":false}`,
		`"087800001234"`, `"0878000020NN"`, `"name":"refund"`, `"provider":"ppob"`,
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("%s is missing in %s", want, body)
		}
	}
}

func TestProgramFlags(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	env := func(name string) string { return map[string]string{kit.EnvToken: "t"}[name] }
	args := []string{
		"--state", t.TempDir(), "--delay", "1s", "--poll-every", "0", "--list-every", "0", "--price-as-text", "--announce-all", "--deposit", "5000",
	}
	if err := sandbox.Program().Run(ctx, args, env, io.Discard); err != nil {
		t.Error(err)
	}
	if err := sandbox.Program().Run(ctx, append(args, "--deposit", "1.5"), env, io.Discard); err == nil || !strings.Contains(err.Error(), "whole rupiah") {
		t.Errorf("%v", err)
	}
}
