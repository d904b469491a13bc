package snap

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// readMutations reads all pages of the mutations since a moment.
func readMutations(t *testing.T, a *adapter, c sdk.Connection, from time.Time) (lines []sdk.StatementLine, last sdk.StatementPage) {
	t.Helper()
	for last.More = true; last.More; {
		last = a.statement(t.Context(), sdk.Statement{Connection: c, From: from, Cursor: last.Cursor, Limit: 1000})
		lines = append(lines, last.Lines...)
	}
	return lines, last
}

// TestMutationsAreJoined reads mutations over the windows and pages of the upstream:
// all of them, each once, from the first moment to those of a clock that is ahead.
func TestMutationsAreJoined(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows  []time.Time
		since time.Duration
		want  int
	}{
		"none":               {nil, time.Hour, 0},
		"one page":           {rowsAt(3), 10 * time.Hour, 3},
		"a page to its end":  {rowsAt(50), 100 * time.Hour, 50},
		"three pages":        {rowsAt(120), 30 * 24 * time.Hour, 120},
		"two windows":        {rowsAt(60, 60), 60 * 24 * time.Hour, 120},
		"the first moment":   {[]time.Time{today.Add(-time.Hour), today.Add(-time.Hour - time.Second)}, time.Hour, 1},
		"a clock ahead":      {[]time.Time{today.Add(ahead)}, time.Hour, 1},
		"older than a month": {rowsAt(1, 1, 1), 40 * 24 * time.Hour, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &books{t: t, rows: c.rows}
			lines, last := readMutations(t, newAdapter(t), connect(t, withToken(t, b.ServeHTTP)), today.Add(-c.since))
			amounts := map[money.Amount]bool{}
			for _, line := range lines {
				amounts[line.Amount] = line.Outgoing
			}
			if !last.Known || len(lines) != c.want || len(amounts) != c.want || amounts[0] {
				t.Errorf("%d lines of %d amounts, want %d: %+v", len(lines), len(amounts), c.want, last)
			}
		})
	}
}

// TestMutationsThatEndInNoTransaction: some upstreams say so behind their last page.
func TestMutationsThatEndInNoTransaction(t *testing.T) {
	t.Parallel()
	page := `{"responseCode":"2001200","detailData":[{"dateTime":"` + today.Format(time.RFC3339) + `","amount":{"value":"10.00"},"type":"SEND_MONEY"}]}`
	var asked atomic.Int32
	base := withToken(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) > 2 {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"responseCode":"4041201"}`))
			return
		}
		_, _ = w.Write([]byte(page))
	})
	if lines, last := readMutations(t, newAdapter(t), connect(t, base), today.Add(-time.Hour)); !last.Known || len(lines) != 2 {
		t.Errorf("%d lines, %+v", len(lines), last)
	}
}

// TestMutationsThatBreakOff: behind a full page more is to be expected, so "no such
// transaction" is no end of it.
func TestMutationsThatBreakOff(t *testing.T) {
	t.Parallel()
	for rows, known := range map[int]bool{pageRows: false, pageRows - 1: true} {
		b := &books{t: t, rows: rowsAt(rows)}
		var asked atomic.Int32
		base := withToken(t, func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 1 {
				b.ServeHTTP(w, r)
				return
			}
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(`{"responseCode":"4041201"}`))
		})
		if _, last := readMutations(t, newAdapter(t), connect(t, base), today.Add(-100*time.Hour)); last.Known != known {
			t.Errorf("behind %d rows: %+v", rows, last)
		}
	}
}

// TestMutationsIncomplete: what can't be read to its end is no list.
func TestMutationsIncomplete(t *testing.T) {
	t.Parallel()
	row := func(amount string) string {
		return `{"responseCode":"2001200","detailData":[{"dateTime":"` + today.Format(time.RFC3339) + `","amount":{"value":"` + amount + `"},"type":"SEND_MONEY"}]}`
	}
	for name, answer := range map[string]string{
		"an error":                   `{"responseCode":"5001200"}`,
		"no such transaction":        `{"responseCode":"4041201"}`,
		"a service that is refused":  `{"responseCode":"4031201"}`,
		"a row that can't be read":   row("ten"),
		"a row that is not in whole": row("10.50"),
		"another service's answer":   `{"responseCode":"2003900"}`,
	} {
		base := withToken(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) })
		if _, last := readMutations(t, newAdapter(t), connect(t, base), today.Add(-time.Hour)); last.Known {
			t.Errorf("%s: %+v", name, last)
		}
	}
	a, c := newAdapter(t), connect(t, withToken(t, (&books{t: t}).ServeHTTP))
	for _, s := range []sdk.Statement{{}, {From: today, Cursor: "none"}, {From: today, Cursor: `{"to":0}`}, {From: today, Cursor: `{"to":9999999999,"window":-1}`}} {
		s.Connection = c
		if page := a.statement(t.Context(), s); page.Known {
			t.Errorf("%+v is answered %+v", s, page)
		}
	}
}

// TestWhatGoesOut: what may go out does.
func TestWhatGoesOut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind, value, direction text
		out                    bool
	}{
		{"SEND_MONEY", "1.00", "", true},
		{"DISBURSMENT", "1.00", "DEBIT", true},
		{"TOP_UP", "1.00", "", false},
		{"RECEIVE_MONEY", "1.00", "CREDIT", false},
		{"REFUND", "-1.00", "", true},
		{"TOP_UP", "1.00", "debit", true},
		{"PAYMENT", "1.00", "CREDIT", false},
		{"SOMETHING_NEW", "1.00", "", true},
	} {
		r := row{Type: c.kind}
		r.Amount.Value, r.Info.DebitCredit = c.value, c.direction
		if r.outgoing() != c.out {
			t.Errorf("%+v: goes out: %t", c, !c.out)
		}
	}
}
