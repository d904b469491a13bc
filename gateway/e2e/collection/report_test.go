package collection_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// manySales makes sales of one amount.
func (w *outlet) manySales(t *testing.T, count int, headers ...string) []collectionData {
	t.Helper()
	var sales []collectionData
	for range count {
		sales = append(sales, collect(t, w.Shop, nil, headers...))
	}
	return sales
}

// wantStanding wants the first of the sales paid, and the others open.
func (w *outlet) wantStanding(t *testing.T, what string, sales []collectionData, paid int) {
	t.Helper()
	for i, sale := range sales {
		want := "PENDING"
		if i < paid {
			want = "PAID"
		}
		if now := statusOfCollection(t, w.Shop, sale.ExternalID); now.Status != want || (now.PaidAt != nil) != (want == "PAID") {
			t.Errorf("%s: sale %d is %+v, want %s", what, i, now, want)
		}
	}
}

// statementLines counts what was read of the outlet's reports.
func (w *outlet) statementLines(t *testing.T) (count int) {
	t.Helper()
	w.QueryRow(t, &count, "SELECT count(*) FROM statement_lines WHERE "+ofAccount, w.MerchantID)
	return count
}

// checkUntidyReports reports payments late, twice, backwards and in files whose
// names are out of order. Each pays its sale once.
func checkUntidyReports(t *testing.T, p *harness.Program) {
	w, box := newOutlet(t, p), harness.NewReceiver(t, 0)
	sales := w.manySales(t, 6, "X-Callback-URL", box.URL)
	now := time.Now()
	var rows []reportRow
	for i, sale := range sales[:4] {
		rows = append(rows, sale.paid(now.Add(-time.Duration(i)*time.Second)))
	}
	w.report(t, rows[2], rows[1], rows[1], reportRow{id: "FOREIGN1", at: now, amount: 77_777})
	w.looked(t, sales[0].ExternalID)
	slices.Reverse(rows)
	w.report(t, slices.Concat(rows, rows[:2])...)
	w.drop(t, "settlement-00000-20260101T000000Z.csv", reportHeader+w.lines(rows[3], reportRow{id: "OTHERS", at: now, amount: sales[4].Amount, merchant: "ID1099999999999"},
		reportRow{id: "FAILED", at: now, amount: sales[5].Amount, status: "FAILED"}))
	for _, sale := range sales[:4] {
		awaitCollection(t, w.Shop, sale.ExternalID, "PAID")
	}
	w.looked(t, sales[0].ExternalID)
	w.wantStanding(t, "untidy reports", sales, 4)
	w.wantWaiting(t, "unmatched 77777")
	for i, sale := range sales {
		if i < 4 {
			box.Wait(t, sale.ExternalID, 1)
		}
		if told := len(box.Of(sale.ExternalID)); told != min(1, max(0, 4-i)) {
			t.Errorf("sale %d was told %d times", i, told)
		}
	}
}

// brokenReport is a way to spoil the lines of a report of 101 lines, of which the
// header is the first, and what an operator must be told of it.
type brokenReport struct {
	what  string
	spoil func(lines []string) []string
	named string
	paid  int // of the three sales, while it is broken: a line that can't be read holds up no other
	rows  int // that were read by then, with the one of the good file
}

// altered changes a part of one line.
func altered(line int, from, to string) func([]string) []string {
	return func(lines []string) []string {
		lines[line-1] = strings.Replace(lines[line-1], from, to, 1)
		return lines
	}
}

var brokenReports = []brokenReport{
	{"no header", func(lines []string) []string { return lines[1:] }, "line 1", 1, 1},
	{"a column missing", altered(1, "amount", "sum"), "amount", 1, 1},
	{"no amount in the middle", altered(58, ".00", ".50"), "line 58", 3, 100},
	{"an unknown word at the end", altered(101, "SETTLED", "SETLED"), "line 101", 2, 100},
	{"a time of no calendar", altered(3, "202", "2O2"), "line 3", 3, 100},
	{"a field too many", altered(10, "K19", "K19,x"), "line 10", 1, 1},
	{"a quote in a field", altered(21, "K19", `K"19`), "line 21", 1, 1},
	{"a quote that is open", altered(21, "X", `"X`), "line 21", 1, 1},
}

// checkBrokenReports drops unreadable files beside good ones. Where the form is broken none
// of their lines count until they are repaired, and a line that can't be read counts not;
// an operator sees where they are broken.
func checkBrokenReports(t *testing.T, p *harness.Program) {
	const named = "settlement-broken.csv"
	stalls, sales, whole := make([]*outlet, len(brokenReports)), make([][]collectionData, len(brokenReports)), make([][]string, len(brokenReports))
	for i, c := range brokenReports {
		w, now := newOutlet(t, p), time.Now()
		stalls[i], sales[i] = w, w.manySales(t, 3)
		rows := []reportRow{sales[i][1].paid(now)}
		for n := range 98 {
			rows = append(rows, reportRow{id: fmt.Sprintf("X%d", n), at: now, amount: 500_000 + int64(n)})
		}
		rows = append(rows, sales[i][2].paid(now))
		whole[i] = strings.Split(strings.TrimSuffix(reportHeader+w.lines(rows...), "\n"), "\n")
		w.report(t, sales[i][0].paid(now)) // it is whole, and comes first
		w.drop(t, named, strings.Join(c.spoil(slices.Clone(whole[i])), "\n")+"\n")
	}
	for i, c := range brokenReports {
		w := stalls[i]
		awaitCollection(t, w.Shop, sales[i][0].ExternalID, "PAID")
		harness.Await(t, collectedWithin, c.what+" on the operators' list", func() bool { return w.complained(t, named, c.named) })
		for _, sale := range sales[i][:c.paid] {
			awaitCollection(t, w.Shop, sale.ExternalID, "PAID")
		}
		w.wantStanding(t, c.what, sales[i], c.paid)
		if read := w.statementLines(t); read != c.rows {
			t.Errorf("%s: %d rows were read beside a broken file, want %d", c.what, read, c.rows)
		}
		w.drop(t, named, strings.Join(whole[i], "\n")+"\n")
	}
	for i, c := range brokenReports {
		awaitCollection(t, stalls[i].Shop, sales[i][2].ExternalID, "PAID")
		stalls[i].wantStanding(t, c.what+", mended", sales[i], 3)
		harness.Await(t, collectedWithin, c.what+": 101 rows once it was mended", func() bool {
			statusOfCollection(t, stalls[i].Shop, sales[i][2].ExternalID) // who asks has it read; nothing is open that would, for five minutes
			return stalls[i].statementLines(t) == 101
		})
	}
	stalls[0].WantException(t, "statement", stalls[0].MerchantID, named, brokenReports[0].named)
}

// complained tells whether the operators' list names parts of what is wrong with a
// outlet's reports.
func (w *outlet) complained(t *testing.T, parts ...string) bool {
	t.Helper()
	list, err := adminapi.ListExceptions.Call(t.Context(), w.Admin(), adminapi.ExceptionFilter{Limit: adminapi.MostListed})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		missing := slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(entry.Detail, part) })
		if entry.MerchantID == w.MerchantID && entry.Reason == "statement" && !missing {
			return true
		}
	}
	return false
}

// checkFormsOfReports reads reports in other forms, and waits for the rest of
// half a line.
func checkFormsOfReports(t *testing.T, p *harness.Program) {
	w := newOutlet(t, p)
	sales := w.manySales(t, 4)
	now := time.Now()
	row := func(i int) string {
		r := sales[i].paid(now)
		return fmt.Sprintf("%s,K19,paid,%q,%d,%s,%s\r\n", w.national, "a, b", r.amount, now.UTC().Format(time.RFC3339), r.id)
	}
	foreign := "\ufeff Merchant_ID ,TERMINAL_ID,Status,issuer,Amount,transaction_time,SETTLEMENT_ID\r\n"
	half := row(2)
	w.drop(t, "2.csv", foreign+row(0)+row(1)+half[:len(half)/2])
	awaitCollection(t, w.Shop, sales[1].ExternalID, "PAID")
	w.looked(t, sales[0].ExternalID)
	w.wantStanding(t, "half a line", sales, 2)
	file, err := os.OpenFile(filepath.Join(w.dir, "2.csv"), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(half[len(half)/2:] + row(3))
	if closing := file.Close(); err != nil || closing != nil {
		t.Fatal(err, closing)
	}
	awaitCollection(t, w.Shop, sales[3].ExternalID, "PAID")
	w.wantStanding(t, "the rest of it", sales, 4)
	w.wantWaiting(t)
}

// checkLongReport reads a report of ten thousand rows, in the long tier of a hundred
// thousand, most of them of the wallet's other merchants.
func checkLongReport(t *testing.T, p *harness.Program) {
	rows, ours := 10_000, 400
	if tier.IsLong() {
		rows, ours = 100_000, 2_000
	}
	w := newOutlet(t, p)
	sales := w.manySales(t, 8)
	long := w.longReport(sales, rows, ours)
	began := time.Now()
	w.drop(t, "long.csv", long)
	for _, sale := range sales {
		awaitCollection(t, w.Shop, sale.ExternalID, "PAID")
	}
	t.Logf("%d rows, %d of them ours, were read and matched within %v", rows, ours, time.Since(began).Round(time.Millisecond))
	if read := w.statementLines(t); read != ours {
		t.Errorf("%d rows were read, want %d", read, ours)
	}
}

// longReport has so many rows in a random order, of which so many are the outlet's;
// among those the sales are paid.
func (w *outlet) longReport(sales []collectionData, count, ours int) string {
	now := time.Now()
	rows := make([]reportRow, count)
	for i := range rows {
		rows[i] = reportRow{id: fmt.Sprintf("L%06d", i), at: now, amount: 1_000_000 + int64(i)}
		switch {
		case i < len(sales):
			rows[i] = sales[i].paid(now)
		case i >= ours:
			rows[i].merchant = "ID1099999999999"
		}
	}
	rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	return reportHeader + w.lines(rows...)
}

// checkReversals reverses payments: after they paid a sale, in the same report,
// and before they are reported.
func checkReversals(t *testing.T, p *harness.Program) {
	w, box := newOutlet(t, p), harness.NewReceiver(t, 0)
	sales := w.manySales(t, 3, "X-Callback-URL", box.URL)
	now := time.Now()
	after, beside, before := sales[0].paid(now), sales[1].paid(now), sales[2].paid(now)
	w.report(t, after, beside, beside.reversed(), before.reversed())
	awaitCollection(t, w.Shop, sales[0].ExternalID, "PAID")
	box.Wait(t, sales[0].ExternalID, 1)
	w.report(t, after.reversed(), before)
	var last collectionData
	harness.Await(t, collectedWithin, "returned_at", func() bool {
		last = statusOfCollection(t, w.Shop, sales[0].ExternalID)
		return last.ReturnedAt != ""
	})
	told := box.Wait(t, sales[0].ExternalID, 2)
	if last.Status != "FAILED" || last.Returned != last.Amount || told[0].Event != "wallet2.status_update" || told[1].Event != "wallet2.returned" {
		t.Errorf("%+v, told %s and %s", last, told[0].Raw, told[1].Raw)
	}
	harness.WantVerified(t, told[1], w.secret)
	last.wantCallback(t, told[1], "wallet2.returned")
	w.WantException(t, "returned", w.MerchantID, fmt.Sprint(last.Amount))
	w.looked(t, sales[0].ExternalID)
	w.wantStanding(t, "taken back before anybody heard of it", sales[1:], 0)
	w.wantWaiting(t)
	if n := len(box.Of(sales[1].ExternalID)) + len(box.Of(sales[2].ExternalID)); n != 0 {
		t.Errorf("%d callbacks of what never was", n)
	}
}

// checkRemoteReport fetches one report that grows, from a server that asks for a
// token and that fails at times.
func checkRemoteReport(t *testing.T, p *harness.Program, listener net.Listener) {
	const token = "a token for reports"
	w := newOutlet(t, p)
	var mu sync.Mutex
	body, status := reportHeader, http.StatusOK
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+token {
			rw.WriteHeader(http.StatusForbidden)
			return
		}
		rw.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		rw.WriteHeader(status)
		_, _ = io.WriteString(rw, body)
	}))
	_ = server.Listener.Close() // whose port the plugin may not connect to
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	tell := func(code int, text string) {
		mu.Lock()
		defer mu.Unlock()
		status, body = code, text
	}
	at := func(token string) harness.Fields {
		return w.credentials(w.code).With(harness.Fields{"reports": harness.Fields{"url": server.URL + "/settlements.csv?shop=secret", "token": token}})
	}
	if err := w.connect(t, at("another")); err == nil || !strings.Contains(err.Error(), "403") || strings.Contains(err.Error(), "shop=secret") {
		t.Errorf("a wrong token: %v", err)
	}
	if err := w.connect(t, at(token)); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, harness.ActsWithin, "the new connection", func() bool {
		return w.Ask(t, "/wallet2/create", collectionBody(w.Shop, harness.Fields{"amount": 300_000})).Success
	})
	sales, now := w.manySales(t, 2), time.Now()
	tell(http.StatusOK, reportHeader+w.lines(sales[0].paid(now)))
	awaitCollection(t, w.Shop, sales[0].ExternalID, "PAID")
	tell(http.StatusServiceUnavailable, reportHeader+w.lines(sales[1].paid(now)))
	w.looked(t, sales[1].ExternalID)
	w.wantStanding(t, "a server that fails", sales, 1)
	tell(http.StatusOK, reportHeader+w.lines(sales[1].paid(now), sales[0].paid(now)))
	awaitCollection(t, w.Shop, sales[1].ExternalID, "PAID")
	w.wantWaiting(t)
	if log := p.Log.String(); strings.Contains(log, token) || strings.Contains(log, "shop=secret") {
		t.Error("the log holds what leads to the reports")
	}
}

// checkSandboxWallet uses the commands that the simulated wallet takes at the
// sandbox.
func checkSandboxWallet(t *testing.T, p *harness.Program) {
	w := &outlet{Shop: p.Shop(harness.Large, "test")}
	sale := collect(t, w.Shop, harness.Fields{"amount": 70_000})
	paid := p.Pay(t, harness.Fields{"qr_string": sale.QRString})
	order := func(name string, body harness.Fields) {
		t.Helper()
		var done json.RawMessage
		if status := p.Sandbox(t, "/providers/wallet2/"+name, body, &done); status != http.StatusOK {
			t.Fatalf("%s %v: %d %s", name, body, status, done)
		}
	}
	awaitCollection(t, w.Shop, sale.ExternalID, "PAID")
	seen := p.UpstreamMovements(t)
	at := slices.IndexFunc(seen, func(m harness.UpstreamMovement) bool { return m.Provider == "wallet2" && m.Reference == paid.Reference })
	if at < 0 {
		t.Fatalf("the upstream has not seen %+v", paid)
	}
	shop := seen[at].Destination
	order("reverse", harness.Fields{"settlement_id": paid.Reference})
	order("settle", harness.Fields{"merchant_code": shop, "amount": 4_321})
	order("report", harness.Fields{"merchant_code": shop, "damage": "header"})
	harness.Await(t, collectedWithin, "returned_at", func() bool { return statusOfCollection(t, w.Shop, sale.ExternalID).ReturnedAt != "" })
	harness.Await(t, collectedWithin, "the damaged report on the list", func() bool {
		statusOfCollection(t, w.Shop, sale.ExternalID)
		return w.complained(t, "settlement-damaged.csv", "line 1")
	})
	order("report", harness.Fields{"merchant_code": shop})
	for _, what := range []harness.Fields{
		{"qr_string": strings.Replace(sale.QRString, "NamaKota1", "NamaKota2", 1)},
		{"qr_string": sale.QRString, "amount": sale.Amount + 1},
	} {
		var refusal json.RawMessage
		if status := p.Sandbox(t, "/pay", what, &refusal); status == http.StatusOK {
			t.Errorf("paid by a code that is not the shop's: %s", refusal)
		}
	}
	harness.Await(t, collectedWithin, "what nobody asked for on the list", func() bool {
		statusOfCollection(t, w.Shop, sale.ExternalID)
		return slices.ContainsFunc(w.waiting(t), func(s adminapi.StatementLine) bool { return s.Amount == 4_321 && s.State == "unmatched" })
	})
}
