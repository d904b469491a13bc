package collection_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// collectedWithin is how long a test waits at most until a payment that a report has is
// known here, too: reports are read every five seconds at most.
const collectedWithin = 5 * time.Minute

// collectionData is the data of a collection's create and of its status.
type collectionData struct {
	ExternalID string  `json:"external_id"`
	QRString   string  `json:"qr_string"`
	Amount     int64   `json:"amount"`
	Base       int64   `json:"base_amount"`
	Code       int64   `json:"random_code"`
	Status     string  `json:"status"`
	PaidAt     *string `json:"paid_at"`
	PaidLateAt string  `json:"paid_late_at"`
	Returned   int64   `json:"returned_amount"`
	ReturnedAt string  `json:"returned_at"`
	Remaining  *int64  `json:"remaining_quota"`
}

func collectionOf(a harness.Answer) collectionData {
	var c collectionData
	_ = json.Unmarshal(a.Data, &c)
	return c
}

// collectionBody is the least that a collection needs, under a reference of its
// own.
func collectionBody(s harness.Shop, others harness.Fields) harness.Fields {
	return harness.Fields{"amount": 10_000, "payer_email": "payer@example.com", "external_id": harness.NewReference()}.With(others)
}

// collect makes a collection, which must succeed, and holds the answer against
// the contract byte for byte.
func collect(t testing.TB, s harness.Shop, others harness.Fields, headers ...string) collectionData {
	t.Helper()
	order := collectionBody(s, others)
	a := s.Ask(t, "/wallet2/create", order, headers...)
	made := collectionOf(a)
	made.want(t, a, order)
	return made
}

// want holds a create's answer against the contract byte for byte.
func (c collectionData) want(t testing.TB, a harness.Answer, order harness.Fields) {
	t.Helper()
	base := int64(order["amount"].(int))
	if c.Remaining == nil || c.Code < 1 || c.Code > 999 || c.Base != base || c.Amount != base+c.Code {
		t.Fatalf("create of %v: %s", order, a)
	}
	code, err := qris.Parse(c.QRString)
	if err != nil {
		t.Fatalf("qr_string %q: %v", c.QRString, err)
	}
	if asked, ok := code.Amount(); !ok || int64(asked) != c.Amount || code.Point() != qris.Dynamic {
		t.Errorf("the QR code %s asks for %v, want %d", c.QRString, asked, c.Amount)
	}
	reference, _ := json.Marshal(order["external_id"])
	harness.WantBody(t, a, fmt.Sprintf(`{"success":true,"data":{"external_id":%s,"qr_string":%q,"amount":%d,"base_amount":%d,"random_code":%d,"status":"PENDING","remaining_quota":%d}}`,
		reference, c.QRString, c.Amount, c.Base, c.Code, *c.Remaining))
}

// statusOfCollection asks how a collection stands, and holds the answer against the
// contract byte for byte.
func statusOfCollection(t testing.TB, s harness.Shop, reference string) collectionData {
	t.Helper()
	a := s.Ask(t, "/wallet2/status", harness.Fields{"external_id": reference})
	c := collectionOf(a)
	if c.Remaining == nil {
		t.Fatalf("status of %s: %s", reference, a)
	}
	harness.WantBody(t, a, fmt.Sprintf(`{"success":true,"data":{%s,"remaining_quota":%d}}`, c.statusBody(reference), *c.Remaining))
	return c
}

// statusBody is what a status and a callback tell of a collection.
func (c collectionData) statusBody(reference string) string {
	text, paid := harness.JSONText(reference), "null"
	if c.PaidAt != nil {
		paid = harness.JSONText(*c.PaidAt)
	}
	text = fmt.Sprintf(`"external_id":%s,"status":%q,"amount":%d,"paid_at":%s`, text, c.Status, c.Amount, paid)
	if c.PaidLateAt != "" {
		text += fmt.Sprintf(`,"paid_late_at":%q`, c.PaidLateAt)
	}
	if c.Returned != 0 {
		text += fmt.Sprintf(`,"returned_amount":%d`, c.Returned)
	}
	if c.ReturnedAt != "" {
		text += fmt.Sprintf(`,"returned_at":%q`, c.ReturnedAt)
	}
	return text
}

// wantCallback holds a callback against the contract byte for byte, but for its
// time.
func (c collectionData) wantCallback(t testing.TB, one harness.Callback, event string) {
	t.Helper()
	want := fmt.Sprintf(`{"event":%q,"data":{%s,"timestamp":"TIME"}}`, event, c.statusBody(c.ExternalID))
	if event == "wallet2.returned" {
		want = strings.TrimSuffix(want, "}}") + fmt.Sprintf(`,"return":{"id":"","sort":"reversal","amount":%d,"at":%q}}}`, c.Returned, c.ReturnedAt)
	}
	form := strings.Replace(regexp.QuoteMeta(want), "TIME", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, 1)
	if !regexp.MustCompile("^" + form + "$").Match(one.Raw) {
		t.Errorf("told\n%s, want\n%s", one.Raw, want)
	}
}

// awaitCollection waits until a collection has a status.
func awaitCollection(t testing.TB, s harness.Shop, reference, status string) collectionData {
	t.Helper()
	var last collectionData
	if err := harness.Until(collectedWithin, func() bool {
		last = statusOfCollection(t, s, reference)
		return last.Status == status
	}); err != nil {
		t.Fatalf("%s is %s after %v, want %s", reference, last.Status, collectedWithin, status)
	}
	return last
}

// looked waits until the reports were surely looked at after now, asking for a sale
// of their account.
func (w *outlet) looked(t testing.TB, reference string) {
	t.Helper()
	since := time.Now()
	harness.Await(t, collectedWithin, "a look at the reports", func() bool {
		statusOfCollection(t, w.Shop, reference)
		var asked time.Time
		w.QueryRow(t, &asked, "SELECT polled_at FROM statements WHERE merchant_id = $1", w.MerchantID)
		return asked.After(since)
	})
	statusOfCollection(t, w.Shop, reference) // the look is over when it is answered; one that somebody else began is not
}

// outlet is a merchant that collects in live mode, and its wallet, whose reports
// the test writes.
type outlet struct {
	harness.Shop
	dir, code, national string
	secret              string // of its callbacks

	mu      sync.Mutex
	reports int
}

// printed is the published example of a static code; the numbers of its merchant
// are replaced. Its checksum is left away.
const printed = "00020101021126670018ID.CO.EXAMPLE2.WWW01159360001404567890215MIDCONTOH1234560303UMI" +
	"51370014ID.CO.QRIS.WWW0215ID10191234567815204123453033605802ID5914NamaMerchantC16009NamaKota1" +
	"6110123456789062070703K196304"

// newCode is a static code of nobody's.
func newCode() (code, national string) {
	national = fmt.Sprintf("ID10%011d", rand.Int64N(100_000_000_000))
	code = strings.Replace(printed, "ID1019123456781", national, 1)
	return code + qris.Checksum(code), national
}

// newOutlet makes a merchant with a wallet of its own.
func newOutlet(t testing.TB, p *harness.Program) *outlet {
	t.Helper()
	w := &outlet{dir: t.TempDir()}
	made := p.NewMerchant(t)
	w.Shop, w.secret = harness.Shop{Program: p, MerchantID: made.MerchantID, Key: made.LiveKey}, made.CallbackSecret
	w.code, w.national = newCode()
	if err := w.connect(t, w.credentials(w.code)); err != nil {
		t.Fatal(err)
	}
	return w
}

// credentials are those of a wallet with a code, whose reports are the outlet's.
func (w *outlet) credentials(code string) harness.Fields {
	return harness.Fields{"static_code": code, "merchant_code": w.national, "reports": harness.Fields{"directory": w.dir}}
}

// connect sets the connection as an operator does.
func (w *outlet) connect(t testing.TB, credentials harness.Fields) error {
	t.Helper()
	text, err := json.Marshal(credentials)
	if err != nil {
		t.Fatal(err)
	}
	_, err = adminapi.SetConnection.Call(t.Context(), w.Admin(), adminapi.ConnectionSpec{Merchant: w.MerchantID, Provider: "wallet2", Mode: "live", Credentials: text})
	return err
}

// reportRow is a row of a report.
type reportRow struct {
	id       string
	at       time.Time
	amount   int64
	status   string // SETTLED unless given
	merchant string // the outlet's unless given
}

// paid is the row that pays a sale.
func (c collectionData) paid(at time.Time) reportRow {
	return reportRow{id: "S" + strings.ReplaceAll(c.ExternalID[len("INV/2026/#"):], "-", ""), at: at, amount: c.Amount}
}

// reversed is the row that takes a payment back.
func (r reportRow) reversed() reportRow {
	r.status = "REVERSED"
	return r
}

const reportHeader = "settlement_id,transaction_time,amount,currency,merchant_id,terminal_id,status\n"

// lines are rows as reports have them.
func (w *outlet) lines(rows ...reportRow) string {
	var text strings.Builder
	for _, r := range rows {
		status, whose := r.status, r.merchant
		if status == "" {
			status = "SETTLED"
		}
		if whose == "" {
			whose = w.national
		}
		fmt.Fprintf(&text, "%s,%s,%d.00,IDR,%s,K19,%s\n", r.id, r.at.In(harness.Jakarta).Format(time.DateTime), r.amount, whose, status)
	}
	return text.String()
}

// report drops a whole report, complete up to now, and returns its name.
func (w *outlet) report(t testing.TB, rows ...reportRow) string {
	t.Helper()
	w.mu.Lock()
	w.reports++
	name := fmt.Sprintf("settlement-%05d-%s.csv", w.reports, time.Now().UTC().Format("20060102T150405Z"))
	w.mu.Unlock()
	w.drop(t, name, reportHeader+w.lines(rows...))
	return name
}

// drop moves a file into place, as wallets do.
func (w *outlet) drop(t testing.TB, name, content string) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path+".part", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		t.Fatal(err)
	}
}

// movementIDOf is the id under which operators know a sale.
func (w *outlet) movementIDOf(t testing.TB, c collectionData) (id string) {
	t.Helper()
	w.QueryRow(t, &id, "SELECT id::TEXT FROM movements WHERE merchant_id = $1 AND kind = 'collection' AND reference = $2", w.MerchantID, c.ExternalID)
	return id
}

// age makes a sale as old as if it had been made so much earlier, since no test
// can wait out its life.
func (w *outlet) age(t testing.TB, c collectionData, by time.Duration) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), w.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	id := w.movementIDOf(t, c)
	for _, sql := range []string{
		"UPDATE movements SET created_at = created_at - $2::INTERVAL, expires_at = expires_at - $2::INTERVAL WHERE id = $1",
		"UPDATE reserved_amounts SET taken_at = taken_at - $2::INTERVAL, free_at = free_at - $2::INTERVAL WHERE movement_id = $1",
	} {
		if tag, err := conn.Exec(t.Context(), sql, id, by); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s: %v, %v", sql, tag, err)
		}
	}
}

// waiting are the payments that wait for an operator.
func (w *outlet) waiting(t testing.TB) []adminapi.StatementLine {
	t.Helper()
	list, err := adminapi.ListStatementLines.Call(t.Context(), w.Admin(), adminapi.LineFilter{MerchantID: tenants.MerchantID(w.MerchantID), Limit: adminapi.MostListed})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// wantWaiting wants exactly these payments on that list, as "state amount".
func (w *outlet) wantWaiting(t testing.TB, want ...string) {
	t.Helper()
	left := map[string]int{}
	for _, s := range w.waiting(t) {
		left[fmt.Sprintf("%s %d", s.State, money.Amount(s.Amount))]++
	}
	for _, one := range want {
		left[one]--
	}
	for one, n := range left {
		if n != 0 {
			t.Errorf("%s is listed %d times too often; want %q", one, n, want)
		}
	}
}

// assign gives a payment to a sale as an operator does.
func (w *outlet) assign(t testing.TB, payment string, c collectionData) (string, error) {
	t.Helper()
	return w.Run(t, "statement", "assign", "--yes", payment, w.movementIDOf(t, c), "--reason", "the payer has called")
}

// usedOf is how much of the quota wallet2 a merchant has used.
func usedOf(t testing.TB, s harness.Shop) int64 {
	t.Helper()
	stand, err := adminapi.ShowQuotas.Call(t.Context(), s.Admin(), adminapi.InMode{Merchant: s.MerchantID, Mode: s.Mode()})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range stand.Quotas {
		if q.Quota == "wallet2" {
			return q.Used
		}
	}
	t.Fatalf("no quota wallet2: %+v", stand)
	return 0
}

// refuses wants a request refused, and that it has used no quota.
func refuses(t testing.TB, s harness.Shop, what, path string, body harness.Fields, want harness.Refusal, names ...string) harness.Answer {
	t.Helper()
	before := usedOf(t, s)
	a := s.Ask(t, path, body)
	reference, _ := body["external_id"].(string)
	want.Want(t, what, a, reference, names...)
	if after := usedOf(t, s); after != before {
		t.Errorf("%s has used %d of the quota: %s", what, after-before, a)
	}
	return a
}
