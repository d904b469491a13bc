package sandbox_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// TestPlans has every plan, by order and by its own destinations, for both
// transfers: what is answered, what the status says before and after the delay,
// and what becomes of the money.
func TestPlans(t *testing.T) {
	t.Parallel()
	for plan, c := range map[string]struct {
		digits, answer, before, after string
		spent                         money.Amount // of 10,000, in the end
		notices                       string       // of a transfer to a bank
	}{
		"pending_success": {"33", "202", "03", "00", 10_000, "00"},
		"pending_fail":    {"34", "202", "03", "06", 0, "06"},
		"pending_cancel":  {"35", "202", "03", "05", 0, "05"},
		"pending_forever": {"48", "202", "03", "03", 10_000, ""},
		"twice":           {"41", "202", "03", "00", 10_000, "00 00"},
		"reordered":       {"42", "202", "03", "00", 10_000, "00 03"},
		"late":            {"43", "202", "03", "00", 10_000, "00"},
		"lost":            {"47", "202", "03", "00", 10_000, ""},
		"garbage":         {"46", "202", "03", "00", 10_000, "garbage"},
		"forged":          {"49", "202", "03", "00", 10_000, "forged 06"},
		"refund":          {"44", "200", "00", "04", 0, "04"},
		"wrong_amount":    {"45", "200", "00 x10", "00", 10_000, ""},
		"wrong_status":    {"52", "202", "03 x10", "00 x10", 10_000, "00"},
		"delayed":         {"50", "504", "", "00", 10_000, "00"},
	} {
		t.Run(plan, func(t *testing.T) {
			t.Parallel()
			for _, bySelf := range []bool{true, false} {
				w := open(t)
				phone, account := "628780000"+"12"+c.digits, "990000"+"12"+c.digits
				if !bySelf {
					phone, account = good, accountNo
					w.order(200, "plan", object{"plan": plan, "count": 2})
				}
				top, bank := w.main.topup("T", phone, 10_000), w.main.bank("B", account, 10_000)
				w.main.want(c.answer+"38"+"00", top)
				w.main.want(c.answer+"43"+"00", bank)
				if wrong := plan == "wrong_amount"; wrong != (value(top, "amount") == "100000.00") {
					t.Errorf("answered %v", top)
				}
				if got := w.statuses(); got != bothSay(c.before) {
					t.Errorf("before the delay: %s, want %s", got, c.before)
				}
				if bySelf {
					w.kill()
				}
				w.clock.Advance(2*time.Second - 1)
				w.silent()
				w.clock.Advance(1)
				w.settled()
				if got := w.statuses(); got != bothSay(c.after) {
					t.Errorf("after it: %s, want %s", got, c.after)
				}
				fee := money.Amount(2_500)
				if c.spent == 0 {
					fee = 0
				}
				if w.main.spent() != 2*c.spent+fee {
					t.Errorf("spent %s", w.main.spent())
				}
				w.notices(c.notices)
			}
		})
	}
}

// statuses is what both status calls say, with what is wrong about the amount.
func (w *world) statuses() string {
	w.t.Helper()
	var out []string
	for _, code := range []string{"38", "00"} {
		ref := map[string]string{"38": "T", "00": "B"}[code]
		answer := w.main.status(code, ref)
		got := text(answer, "latestTransactionStatus")
		if got != "" && value(answer, "amount") == "100000.00" {
			got += " x10"
		}
		out = append(out, got)
	}
	return strings.Join(out, ", ")
}

func bothSay(each string) string { return each + ", " + each }

// settled waits until what is due has happened to both transfers: their states
// in the witness stop being what they were only once.
func (w *world) settled() {
	w.t.Helper()
	w.order(200, "delay", object{"delay": "0s"})
	w.order(200, "plan", object{"plan": "pending_success", "operation": "topup"})
	w.main.want("2023800", w.main.topup("marker", good, 1))
	w.await("marker", "Success")
	w.order(200, "refund", object{"reference": "marker"})
}

// notices checks those of a transfer to a bank, in any order of arrival.
func (w *world) notices(want string) {
	w.t.Helper()
	w.clock.Advance(2 * time.Minute)
	signed, parts := true, strings.Fields(want)
	if len(parts) > 0 && parts[0] == "forged" {
		signed, parts = false, parts[1:]
	}
	var got []string
	for range parts {
		e := w.next()
		if e.signed(w.main) != signed {
			w.t.Errorf("signature: %v %s", e.header, e.raw)
		}
		if e.body == nil {
			got = append(got, "garbage")
			continue
		}
		if text(e.body, "originalPartnerReferenceNo") != "B" || text(e.body, "originalReferenceNo") == "" ||
			text(e.body, "createdTime") != "2026-01-15T10:00:00+07:00" {
			w.t.Errorf("%s", e.raw)
		}
		got = append(got, text(e.body, "latestTransactionStatus"))
	}
	slices.Sort(got)
	if fmt.Sprint(got) != fmt.Sprint(parts) {
		w.t.Errorf("notices %v, want %v", got, parts)
	}
	w.silent()
}

// TestPlannedCodes are refusals, and transfers that are done and answered
// wrongly.
func TestPlannedCodes(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	c.login()
	w.order(200, "plan", object{"plan": "code40314", "count": 2})
	c.want("4034314", c.bank("R", accountNo, 10_000))
	if got := inquiry(c); got != "2003700" {
		t.Errorf("an inquiry has used up a transfer's plan: %s", got)
	}
	c.want("4033814", c.topup("R", good, 10_000))
	if w.states("R") != "" {
		t.Errorf("witness %q", w.states("R"))
	}
	w.order(200, "plan", object{"plan": "done42900", "operation": "transfer-bank"})
	c.want("2003800", c.topup("T", good, 10_000))
	c.want("4294300", c.bank("B", accountNo, 10_000))
	if w.states("B") != "Success" || c.spent() != 22_500 {
		t.Errorf("witness %q, spent %s", w.states("B"), c.spent())
	}
	// A plan is for a new transfer: one that is known is compared.
	w.order(200, "plan", object{"plan": "code50000"})
	c.want("4093801", c.topup("T", good, 10_000))
	c.want("5003800", c.topup("T2", good, 10_000))
	for operation, at := range map[string]string{
		"account-inquiry": inquiryAt, "topup-status": "/v1.0/emoney/topup-status", "balance-inquiry": "/v1.0/balance-inquiry",
	} {
		w.order(200, "plan", object{"plan": "code42900", "operation": operation})
		if got := text(c.post(at, object{}), "responseCode"); !strings.HasPrefix(got, "429") {
			t.Errorf("%s: %s", operation, got)
		}
	}
	w.order(200, "plan", object{"plan": "code50400", "operation": "token"})
	c.want("5047300", c.login())
}

func TestBadOrders(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, c := range []struct {
		name string
		body object
		want int
	}{
		{"plan", object{"plan": "nothing"}, 400},
		{"plan", object{"plan": "code20000"}, 400},
		{"plan", object{"plan": "code49999"}, 400},
		{"plan", object{"plan": "done40314"}, 400},
		{"plan", object{"plan": "twice", "count": -1}, 400},
		{"plan", object{"plan": "twice", "operation": "steal"}, 400},
		{"plan", object{"plan": "twice", "operation": "topup-status"}, 400},
		{"delay", object{"delay": "soon"}, 400},
		{"delay", object{"delay": "-1s"}, 400},
		{"incoming", object{"amount": 0}, 400},
		{"incoming", object{"amount": 1, "type": "REFUND"}, 400},
		{"incoming", object{"amount": 1, "client_id": "nobody"}, 404},
		{"outcome", object{"reference": "R", "status": "03"}, 400},
		{"outcome", object{"reference": "", "status": "00"}, 400},
		{"outcome", object{"reference": "R", "status": "00"}, 404},
		{"refund", object{"reference": "R"}, 404},
		{"refund", object{}, 400},
	} {
		w.order(c.want, c.name, c.body)
	}
}

// TestOutcomeByOrder ends what waits, once.
func TestOutcomeByOrder(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	for ref, status := range map[string]string{"S": "00", "C": "05", "F": "06"} {
		c.want("2024300", c.bank(ref, "9900001248", 10_000))
		w.order(200, "outcome", object{"reference": ref, "status": status, "client_id": c.clientID})
		if e := w.next(); text(e.body, "latestTransactionStatus") != status || !e.signed(c) || text(e.body, "finishedTime") == "" {
			t.Errorf("%s: %s", ref, e.raw)
		}
		if got := c.state("00", ref); got != "2000000 "+status {
			t.Errorf("%s: %s", ref, got)
		}
		w.order(404, "outcome", object{"reference": ref, "status": "00"})
	}
	w.order(200, "refund", object{"reference": "S"})
	if e := w.next(); text(e.body, "latestTransactionStatus") != "04" || !e.signed(c) {
		t.Errorf("%s", e.raw)
	}
	w.order(404, "refund", object{"reference": "S"})
	if c.spent() != 0 || w.states("S")+w.states("C")+w.states("F") != "RefundedCancelledFailed" {
		t.Errorf("spent %s, witness %v", c.spent(), w.env.Movements.All())
	}
	// A pending one that is ended by order is not ended again by its delay.
	c.want("2024300", c.bank("P", "9900001234", 10_000))
	w.order(200, "outcome", object{"reference": "P", "status": "00"})
	w.next()
	w.clock.Advance(2 * time.Second)
	w.settled()
	w.silent()
	if w.states("P") != "Success" {
		t.Errorf("witness %q", w.states("P"))
	}
	// Who wants no notice gets none.
	c.want("2024300", c.bank("Q", "9900001248", 10_000, object{"additionalInfo": object{"needNotify": "false"}}))
	w.order(200, "outcome", object{"reference": "Q", "status": "00"})
	w.silent()
}

// TestDelayedIsShort: the money of a transfer that moves later may be gone.
func TestDelayedIsShort(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	c.want("5044300", c.bank("B", "9900001250", 10_000))
	c.want("2024300", c.bank("B", "9900001250", 10_000))
	w.order(200, "balance", object{"amount": 12_499})
	w.clock.Advance(2 * time.Second)
	if e := w.next(); text(e.body, "latestTransactionStatus") != "06" {
		t.Errorf("%s", e.raw)
	}
	if c.balance() != 12_499 || w.states("B") != "" || c.state("00", "B") != "2000000 06" {
		t.Errorf("balance %s, witness %q", c.balance(), w.states("B"))
	}
}

// TestNoticeIsSentAgain signs each try over its own time.
func TestNoticeIsSentAgain(t *testing.T) {
	t.Parallel()
	w := open(t)
	hooks := w.hooks.URL
	w.order(200, "hooks", object{"account": w.main.clientID, "callback_url": "http://127.0.0.1:1/in", "callback_token": "token"})
	w.main.bank("B", "9900001248", 10_000)
	w.order(200, "outcome", object{"reference": "B", "status": "00"})
	w.order(200, "hooks", object{"account": w.main.clientID, "callback_url": hooks + "/in", "callback_token": "token"})
	w.clock.Advance(10 * time.Minute)
	if e := w.next(); !e.signed(w.main) || e.header.Get("X-Timestamp") != "2026-01-15T10:10:00+07:00" {
		t.Errorf("%v", e.header)
	}
}
