package sandbox_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/plugins/wallet1/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

func (c *client) history(query object) []object {
	c.w.t.Helper()
	answer := c.want("2001200", c.post("/v1.0/transaction-history-list", query))
	rows, ok := answer["detailData"].([]any)
	if !ok {
		c.w.t.Fatalf("%v", answer)
	}
	var out []object
	for _, r := range rows {
		row, _ := r.(object)
		out = append(out, row)
	}
	return out
}

// line is a row in short.
func line(row object) string {
	info, _ := row["additionalInfo"].(object)
	return fmt.Sprintf("%s %s%s %s %s", text(row, "dateTime")[8:16], map[string]string{"DEBIT": "-", "CREDIT": "+"}[text(info, "debitCredit")],
		strings.TrimSuffix(value(row, "amount"), ".00"), text(row, "type"), text(row, "status"))
}

func lines(rows []object) string {
	var out []string
	for _, row := range rows {
		out = append(out, line(row))
	}
	return strings.Join(out, "\n")
}

func TestHistory(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	w.clock.Advance(time.Hour)
	c.topup("T", good, 10_000)
	w.clock.Advance(time.Minute)
	c.bank("B", accountNo, 20_000)
	c.bank("P", "9900001248", 30_000)
	w.clock.Advance(time.Minute)
	w.order(200, "incoming", object{"amount": 40_000, "type": "RECEIVE_MONEY", "from": "628111"})
	w.order(200, "incoming", object{"amount": 50_000, "at": "2026-01-15T03:30:00Z"})
	w.order(200, "refund", object{"reference": "T"})
	w.order(200, "outcome", object{"reference": "P", "status": "06"})
	want := `15T11:02 +10000 REFUND SUCCESS
15T11:02 +40000 RECEIVE_MONEY SUCCESS
15T11:01 -2500 PAYMENT CANCELLED
15T11:01 -30000 DISBURSMENT CANCELLED
15T11:01 -2500 PAYMENT SUCCESS
15T11:01 -20000 DISBURSMENT SUCCESS
15T11:00 -10000 SEND_MONEY SUCCESS
15T10:30 +50000 TOP_UP SUCCESS
15T10:00 +1000000000 TOP_UP SUCCESS`
	rows := c.history(object{"pageSize": 50, "pageNumber": 0})
	if got := lines(rows); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if text(rows[1], "remark") != "Terima uang dari 628111" || text(rows[5], "remark") != "Transfer ke BCA "+accountNo {
		t.Errorf("%v %v", rows[1], rows[5])
	}
	w.kill()
	if again := c.history(object{"pageSize": 50}); !reflect.DeepEqual(again, rows) {
		t.Errorf("after a restart\n%s", lines(again))
	}
	// Pages, in both ways of writing numbers, are the whole in pieces.
	var paged []object
	for page := 0; ; page++ {
		query := object{"pageSize": 4, "pageNumber": page}
		if page%2 == 1 {
			query = object{"pageSize": "4", "pageNumber": fmt.Sprint(page)}
		}
		part := c.history(query)
		paged = append(paged, part...)
		if len(part) < 4 {
			break
		}
	}
	if !reflect.DeepEqual(paged, rows) {
		t.Errorf("in pages\n%s", lines(paged))
	}
	if got := c.history(object{"pageNumber": 7}); len(got) != 0 {
		t.Errorf("beyond the end: %v", got)
	}
}

func TestHistoryWindows(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	w.order(200, "incoming", object{"amount": 1, "at": "2025-12-01T00:00:00.9+07:00"})
	w.order(200, "incoming", object{"amount": 2, "at": "2025-12-01T00:00:01+07:00"})
	for i, check := range []struct {
		from, to string
		size     any
		want     string // amounts, or a code
	}{
		{"2025-12-01T00:00:00+07:00", "2025-12-01T00:00:00+07:00", 10, "1"},
		{"2025-12-01T00:00:01+07:00", "2025-12-01T00:00:01+07:00", 10, "2"},
		{"2025-11-30T17:00:00Z", "2025-11-30T17:00:01Z", 10, "2 1"},
		{"2025-12-01T00:00:00+07:00", "2026-01-01T00:00:00+07:00", 10, "2 1"},
		{"2025-12-01T00:00:00+07:00", "2026-01-01T00:00:01+07:00", 10, "4001201"},
		{"2025-12-01T00:00:02+07:00", "2025-12-01T00:00:01+07:00", 10, "4001201"},
		{"2025-01-15T10:00:00+07:00", "2025-01-16T10:00:00+07:00", 10, ""},
		{"2025-01-15T09:59:59+07:00", "2025-01-16T10:00:00+07:00", 10, "4001201"},
		{"", "2025-12-05T10:00:00+07:00", 10, "2 1"},
		{"", "", 10, "1000000000"},
		{"", "", 50, "1000000000"},
		{"", "", 51, "4001201"},
		{"", "", 0, "4001201"},
		{"", "", "ten", "4001201"},
		{"yesterday", "", 10, "4001201"},
	} {
		answer := c.post("/v1.0/transaction-history-list", object{"fromDateTime": check.from, "toDateTime": check.to, "pageSize": check.size})
		got := text(answer, "responseCode")
		if got == "2001200" {
			var amounts []string
			for _, r := range answer["detailData"].([]any) {
				amounts = append(amounts, strings.TrimSuffix(value(r.(object), "amount"), ".00"))
			}
			got = strings.Join(amounts, " ")
		}
		if got != check.want {
			t.Errorf("%d: %q, want %q", i, got, check.want)
		}
	}
}

func TestBalance(t *testing.T) {
	t.Parallel()
	w := open(t)
	c := w.main
	answer := c.want("2001100", c.post("/v1.0/balance-inquiry", object{}))
	infos, _ := answer["accountInfos"].([]any)
	info, _ := infos[0].(object)
	if text(answer, "accountNo") != c.payer || value(info, "amount") != "1000000000.00" || text(info, "status") != "0001" {
		t.Errorf("%v", answer)
	}
	c.want("4041111", c.post("/v1.0/balance-inquiry", object{"accountNo": good}))
}

// TestHistoryAddsUp does whatever comes to mind, kills included: the rows that
// are not cancelled always are the balance, the balance never is below zero, and
// the witness has each reference once.
func TestHistoryAddsUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := open(t, func(o *sandbox.Options) { o.Delay = time.Second })
		c := w.main
		w.order(200, "balance", object{"amount": 200_000})
		var refs []string
		for i := range rapid.IntRange(1, 12).Draw(rt, "steps") {
			ref := fmt.Sprint("R", i)
			if len(refs) > 0 && rapid.IntRange(0, 3).Draw(rt, "again") == 0 {
				ref = rapid.SampledFrom(refs).Draw(rt, "ref")
			}
			refs = append(refs, ref)
			amount := money.Amount(rapid.Int64Range(1, 60_000).Draw(rt, "amount"))
			digits := rapid.SampledFrom([]string{"00", "33", "34", "35", "44", "48", "50"}).Draw(rt, "plan")
			switch rapid.IntRange(0, 6).Draw(rt, "step") {
			case 0, 1:
				c.topup(ref, "62878000012"+digits, amount)
			case 2, 3:
				c.bank(ref, "99000012"+digits, amount)
			case 4:
				w.order(200, "incoming", object{"amount": amount})
			case 5:
				w.clock.Advance(time.Duration(rapid.IntRange(0, 1500).Draw(rt, "ms")) * time.Millisecond)
			case 6:
				c.addsUp(rt)
				w.kill()
			}
		}
		c.addsUp(rt)
		seen := map[string]bool{}
		for _, m := range w.env.Movements.All() {
			if seen[m.Reference] {
				rt.Errorf("%s has moved twice: %v", m.Reference, w.env.Movements.All())
			}
			seen[m.Reference] = true
		}
	})
}

// addsUp compares the history with the balance. What is due may happen between
// the two, so they are read until the balance is the same before and after.
func (c *client) addsUp(t interface{ Fatalf(string, ...any) }) {
	c.w.t.Helper()
	for {
		before, total := c.balance(), money.Amount(0)
		for page := 0; ; page++ {
			rows := c.history(object{"pageSize": 50, "pageNumber": page})
			for _, row := range rows {
				info, _ := row["additionalInfo"].(object)
				amount := parse(c.w.t, value(row, "amount"))
				switch {
				case text(row, "status") == "CANCELLED":
				case text(info, "debitCredit") == "DEBIT":
					total -= amount
				default:
					total += amount
				}
			}
			if len(rows) < 50 {
				break
			}
		}
		if c.balance() != before {
			continue
		}
		if total != before || before < 0 {
			t.Fatalf("rows make %s, the balance is %s", total, before)
		}
		return
	}
}
