package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/console"
)

// manySales makes sales of one amount.
func (w *stall) manySales(t *testing.T, count int, headers ...string) []collected {
	t.Helper()
	var sales []collected
	for range count {
		sales = append(sales, w.collect(t, nil, headers...))
	}
	return sales
}

// wantStanding wants the first of the sales paid, and the others open.
func (w *stall) wantStanding(t *testing.T, what string, sales []collected, paid int) {
	t.Helper()
	for i, sale := range sales {
		want := "PENDING"
		if i < paid {
			want = "PAID"
		}
		if now := w.collectionOf(t, sale.ExternalID); now.Status != want || (now.PaidAt != nil) != (want == "PAID") {
			t.Errorf("%s: sale %d is %+v, want %s", what, i, now, want)
		}
	}
}

// settlements counts what was read of the stall's reports.
func (w *stall) settlements(t *testing.T) (count int) {
	t.Helper()
	w.query(t, &count, "SELECT count(*) FROM statement_lines WHERE "+ofAccount, w.merchant)
	return count
}

// checkUntidyReports tells payments late, twice, backwards and in files whose names
// are out of order. Each pays its sale, once.
func checkUntidyReports(t *testing.T, p *program) {
	w, box := p.newStall(t), newMailbox(t, 0)
	sales := w.manySales(t, 6, "X-Callback-URL", box.url)
	now := time.Now()
	var rows []settled
	for i, sale := range sales[:4] {
		rows = append(rows, sale.paid(now.Add(-time.Duration(i)*time.Second)))
	}
	w.report(t, rows[2], rows[1], rows[1], settled{id: "FOREIGN1", at: now, amount: 77_777})
	w.looked(t, sales[0].ExternalID)
	slices.Reverse(rows)
	w.report(t, slices.Concat(rows, rows[:2])...)
	w.drop(t, "settlement-00000-20260101T000000Z.csv", reportHeader+w.lines(rows[3], settled{id: "OTHERS", at: now, amount: sales[4].Amount, merchant: "ID1099999999999"},
		settled{id: "FAILED", at: now, amount: sales[5].Amount, status: "FAILED"}))
	for _, sale := range sales[:4] {
		w.collects(t, sale.ExternalID, "PAID")
	}
	w.looked(t, sales[0].ExternalID)
	w.wantStanding(t, "untidy reports", sales, 4)
	w.wantWaiting(t, "unmatched 77777")
	for i, sale := range sales {
		if i < 4 {
			box.wait(t, sale.ExternalID, 1)
		}
		if told := len(box.of(sale.ExternalID)); told != min(1, max(0, 4-i)) {
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
}

// altered changes a part of one line.
func altered(line int, from, to string) func([]string) []string {
	return func(lines []string) []string {
		lines[line-1] = strings.Replace(lines[line-1], from, to, 1)
		return lines
	}
}

var brokenReports = []brokenReport{
	{"no header", func(lines []string) []string { return lines[1:] }, "line 1"},
	{"a column missing", altered(1, "amount", "sum"), "amount"},
	{"no amount in the middle", altered(58, ".00", ".50"), "line 58"},
	{"an unknown word at the end", altered(101, "SETTLED", "SETLED"), "line 101"},
	{"a time of no calendar", altered(3, "202", "2O2"), "line 3"},
	{"a field too many", altered(10, "K19", "K19,x"), "line 10"},
	{"a quote in a field", altered(21, "K19", `K"19`), "line 21"},
	{"a quote that is open", altered(21, "X", `"X`), "line 21"},
}

// checkBrokenReports drops files that can't be read, beside others. Nothing of
// them counts until they are mended; an operator is told where they are broken.
func checkBrokenReports(t *testing.T, p *program) {
	const named = "settlement-broken.csv"
	stalls, sales, whole := make([]*stall, len(brokenReports)), make([][]collected, len(brokenReports)), make([][]string, len(brokenReports))
	for i, c := range brokenReports {
		w, now := p.newStall(t), time.Now()
		stalls[i], sales[i] = w, w.manySales(t, 3)
		rows := []settled{sales[i][1].paid(now)}
		for n := range 98 {
			rows = append(rows, settled{id: fmt.Sprintf("X%d", n), at: now, amount: 500_000 + int64(n)})
		}
		rows = append(rows, sales[i][2].paid(now))
		whole[i] = strings.Split(strings.TrimSuffix(reportHeader+w.lines(rows...), "\n"), "\n")
		w.report(t, sales[i][0].paid(now)) // it is whole, and comes first
		w.drop(t, named, strings.Join(c.spoil(slices.Clone(whole[i])), "\n")+"\n")
	}
	for i, c := range brokenReports {
		w := stalls[i]
		w.collects(t, sales[i][0].ExternalID, "PAID")
		await(t, collectedWithin, c.what+" on the operators' list", func() bool { return w.complained(t, named, c.named) })
		w.wantStanding(t, c.what, sales[i], 1)
		if read := w.settlements(t); read != 1 {
			t.Errorf("%s: %d rows were read beside a broken file, want 1", c.what, read)
		}
		w.drop(t, named, strings.Join(whole[i], "\n")+"\n")
	}
	for i, c := range brokenReports {
		stalls[i].collects(t, sales[i][2].ExternalID, "PAID")
		stalls[i].wantStanding(t, c.what+", mended", sales[i], 3)
		if read := stalls[i].settlements(t); read != 101 {
			t.Errorf("%s: %d rows were read once it was mended, want 101", c.what, read)
		}
	}
	stalls[0].listed(t, "reports", stalls[0].merchant, named, brokenReports[0].named)
}

// complained tells whether the operators' list names parts of what is wrong with a
// stall's reports.
func (w *stall) complained(t *testing.T, parts ...string) bool {
	t.Helper()
	list, err := w.admin().Attention(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range list {
		missing := slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(entry.Detail, part) })
		if entry.MerchantID == w.merchant && entry.Reason == "reports" && !missing {
			return true
		}
	}
	return false
}

// checkFormsOfReports reads whole reports of other forms, and waits for the rest of
// half a line.
func checkFormsOfReports(t *testing.T, p *program) {
	w := p.newStall(t)
	sales := w.manySales(t, 4)
	now := time.Now()
	row := func(i int) string {
		r := sales[i].paid(now)
		return fmt.Sprintf("%s,K19,paid,%q,%d,%s,%s\r\n", w.national, "a, b", r.amount, now.UTC().Format(time.RFC3339), r.id)
	}
	foreign := "\ufeff Merchant_ID ,TERMINAL_ID,Status,issuer,Amount,transaction_time,SETTLEMENT_ID\r\n"
	half := row(2)
	w.drop(t, "2.csv", foreign+row(0)+row(1)+half[:len(half)/2])
	w.collects(t, sales[1].ExternalID, "PAID")
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
	w.collects(t, sales[3].ExternalID, "PAID")
	w.wantStanding(t, "the rest of it", sales, 4)
	w.wantWaiting(t)
}

// checkLongReport reads a report of a hundred thousand rows, most of them of the
// wallet's other merchants.
func checkLongReport(t *testing.T, p *program) {
	w := p.newStall(t)
	sales := w.manySales(t, 8)
	long := w.longReport(sales, 100_000, 2_000)
	began := time.Now()
	w.drop(t, "long.csv", long)
	for _, sale := range sales {
		w.collects(t, sale.ExternalID, "PAID")
	}
	t.Logf("100,000 rows, 2,000 of them ours, were read and settled within %v", time.Since(began).Round(time.Millisecond))
	if read := w.settlements(t); read != 2_000 {
		t.Errorf("%d rows were read, want 2,000", read)
	}
}

// longReport has so many rows in a random order, of which so many are the stall's;
// among those the sales are paid.
func (w *stall) longReport(sales []collected, count, ours int) string {
	now := time.Now()
	rows := make([]settled, count)
	for i := range rows {
		rows[i] = settled{id: fmt.Sprintf("L%06d", i), at: now, amount: 1_000_000 + int64(i)}
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

// checkReversals takes payments back: after they paid, in the same report, and
// before they are told of.
func checkReversals(t *testing.T, p *program) {
	w, box := p.newStall(t), newMailbox(t, 0)
	sales := w.manySales(t, 3, "X-Callback-URL", box.url)
	now := time.Now()
	after, beside, before := sales[0].paid(now), sales[1].paid(now), sales[2].paid(now)
	w.report(t, after, beside, beside.back(), before.back())
	w.collects(t, sales[0].ExternalID, "PAID")
	box.wait(t, sales[0].ExternalID, 1)
	w.report(t, after.back(), before)
	var last collected
	await(t, collectedWithin, "reversed_at", func() bool {
		last = w.collectionOf(t, sales[0].ExternalID)
		return last.ReversedAt != ""
	})
	told := box.wait(t, sales[0].ExternalID, 2)
	if last.Status != "PAID" || told[0].Event != "wallet2.status_update" || told[1].Event != "wallet2.reversed" {
		t.Errorf("%+v, told %s and %s", last, told[0].raw, told[1].raw)
	}
	wantVerified(t, told[1], w.secret)
	last.wantTold(t, told[1], "wallet2.reversed")
	w.listed(t, "reversed", w.merchant, fmt.Sprint(last.Amount))
	w.looked(t, sales[0].ExternalID)
	w.wantStanding(t, "taken back before anybody heard of it", sales[1:], 0)
	w.wantWaiting(t)
	if n := len(box.of(sales[1].ExternalID)) + len(box.of(sales[2].ExternalID)); n != 0 {
		t.Errorf("%d callbacks of what never was", n)
	}
}

// checkRemoteReport fetches one report that grows, from a server that asks for a
// token and that fails at times.
func checkRemoteReport(t *testing.T, p *program) {
	const token = "a token for reports"
	w := p.newStall(t)
	var mu sync.Mutex
	body, status := reportHeader, http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
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
	t.Cleanup(server.Close)
	tell := func(code int, text string) {
		mu.Lock()
		defer mu.Unlock()
		status, body = code, text
	}
	at := func(token string) fields {
		return w.credentials(w.code).with(fields{"reports": fields{"url": server.URL + "/settlements.csv?shop=secret", "token": token}})
	}
	if out, err := w.connect(t, at("another")); err == nil || !strings.Contains(out, "403") || strings.Contains(out, "shop=secret") {
		t.Errorf("a wrong token: %v\n%s", err, out)
	}
	if out, err := w.connect(t, at(token)); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	await(t, actsWithin, "the new connection", func() bool { return w.ask(t, "/wallet2/create", w.collection(fields{"amount": 300_000})).Success })
	sales, now := w.manySales(t, 2), time.Now()
	tell(http.StatusOK, reportHeader+w.lines(sales[0].paid(now)))
	w.collects(t, sales[0].ExternalID, "PAID")
	tell(http.StatusServiceUnavailable, reportHeader+w.lines(sales[1].paid(now)))
	w.looked(t, sales[1].ExternalID)
	w.wantStanding(t, "a server that fails", sales, 1)
	tell(http.StatusOK, reportHeader+w.lines(sales[1].paid(now), sales[0].paid(now)))
	w.collects(t, sales[1].ExternalID, "PAID")
	w.wantWaiting(t)
	if log := p.log.String(); strings.Contains(log, token) || strings.Contains(log, "shop=secret") {
		t.Error("the log holds what leads to the reports")
	}
}

// checkSandboxWallet uses what the simulated wallet can be ordered to do at the
// sandbox's door.
func checkSandboxWallet(t *testing.T, p *program) {
	w := &stall{shop: p.shop(large, "test")}
	sale := w.collect(t, fields{"amount": 70_000})
	paid := p.pay(t, fields{"qr_string": sale.QRString})
	order := func(name string, body fields) {
		t.Helper()
		var done json.RawMessage
		if status := p.door(t, "/providers/wallet2/"+name, body, &done); status != http.StatusOK {
			t.Fatalf("%s %v: %d %s", name, body, status, done)
		}
	}
	w.collects(t, sale.ExternalID, "PAID")
	seen := p.movements(t)
	at := slices.IndexFunc(seen, func(m witnessed) bool { return m.Provider == "wallet2" && m.Reference == paid.Reference })
	if at < 0 {
		t.Fatalf("the witness has not seen %+v", paid)
	}
	shop := seen[at].Destination
	order("reverse", fields{"settlement_id": paid.Reference})
	order("settle", fields{"merchant_code": shop, "amount": 4_321})
	order("report", fields{"merchant_code": shop, "damage": "header"})
	await(t, collectedWithin, "reversed_at", func() bool { return w.collectionOf(t, sale.ExternalID).ReversedAt != "" })
	await(t, collectedWithin, "the damaged report on the list", func() bool {
		w.collectionOf(t, sale.ExternalID)
		return w.complained(t, "settlement-damaged.csv", "line 1")
	})
	order("report", fields{"merchant_code": shop})
	for _, what := range []fields{
		{"qr_string": strings.Replace(sale.QRString, "NamaKota1", "NamaKota2", 1)},
		{"qr_string": sale.QRString, "amount": sale.Amount + 1},
	} {
		var refusal json.RawMessage
		if status := p.door(t, "/pay", what, &refusal); status == http.StatusOK {
			t.Errorf("paid by a code that is not the shop's: %s", refusal)
		}
	}
	await(t, collectedWithin, "what nobody asked for on the list", func() bool {
		w.collectionOf(t, sale.ExternalID)
		return slices.ContainsFunc(w.waiting(t), func(s console.Settlement) bool { return s.Amount == 4_321 && s.State == "unmatched" })
	})
}
