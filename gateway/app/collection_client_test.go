package app_test

import (
	"context"
	"encoding/json"
	"errors"
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

	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
)

// collectedWithin is when a payment that stands in a report is known here, too:
// reports are looked at every five seconds at most.
const collectedWithin = 30 * time.Second

// collected is the data of a collection's create and of its status.
type collected struct {
	ExternalID string  `json:"external_id"`
	QRString   string  `json:"qr_string"`
	Amount     int64   `json:"amount"`
	Base       int64   `json:"base_amount"`
	Code       int64   `json:"random_code"`
	Status     string  `json:"status"`
	PaidAt     *string `json:"paid_at"`
	PaidLateAt string  `json:"paid_late_at"`
	ReversedAt string  `json:"reversed_at"`
	Remaining  *int64  `json:"remaining_quota"`
}

func (a answer) collected() collected {
	var c collected
	_ = json.Unmarshal(a.Data, &c)
	return c
}

// collection is the least that a collection needs, under a reference of its own.
func (s shop) collection(others fields) fields {
	return fields{"amount": 10_000, "payer_email": "payer@example.com", "external_id": newReference()}.with(others)
}

// collect makes a collection, which must succeed, and holds the answer against
// the contract byte for byte.
func (s shop) collect(t testing.TB, others fields, headers ...string) collected {
	t.Helper()
	order := s.collection(others)
	a := s.ask(t, "/wallet2/create", order, headers...)
	made := a.collected()
	made.want(t, a, order)
	return made
}

// want holds a create's answer against the contract byte for byte.
func (c collected) want(t testing.TB, a answer, order fields) {
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
	wantBody(t, a, fmt.Sprintf(`{"success":true,"data":{"external_id":%s,"qr_string":%q,"amount":%d,"base_amount":%d,"random_code":%d,"status":"PENDING","remaining_quota":%d}}`,
		reference, c.QRString, c.Amount, c.Base, c.Code, *c.Remaining))
}

// collectionOf asks how a collection stands, and holds the answer against the
// contract byte for byte.
func (s shop) collectionOf(t testing.TB, reference string) collected {
	t.Helper()
	a := s.ask(t, "/wallet2/status", fields{"external_id": reference})
	c := a.collected()
	if c.Remaining == nil {
		t.Fatalf("status of %s: %s", reference, a)
	}
	wantBody(t, a, fmt.Sprintf(`{"success":true,"data":{%s,"remaining_quota":%d}}`, c.standing(reference), *c.Remaining))
	return c
}

// standing is what a status and a callback tell of a collection.
func (c collected) standing(reference string) string {
	text, paid := jsonText(reference), "null"
	if c.PaidAt != nil {
		paid = jsonText(*c.PaidAt)
	}
	text = fmt.Sprintf(`"external_id":%s,"status":%q,"amount":%d,"paid_at":%s`, text, c.Status, c.Amount, paid)
	for _, member := range []struct{ name, value string }{{"paid_late_at", c.PaidLateAt}, {"reversed_at", c.ReversedAt}} {
		if member.value != "" {
			text += fmt.Sprintf(`,%q:%q`, member.name, member.value)
		}
	}
	return text
}

// wantTold holds a callback against the contract byte for byte, but for its time.
func (c collected) wantTold(t testing.TB, one letter, event string) {
	t.Helper()
	want := fmt.Sprintf(`{"event":%q,"data":{%s,"timestamp":"TIME"}}`, event, c.standing(c.ExternalID))
	form := strings.Replace(regexp.QuoteMeta(want), "TIME", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, 1)
	if !regexp.MustCompile("^" + form + "$").Match(one.raw) {
		t.Errorf("told\n%s, want\n%s", one.raw, want)
	}
}

// collects waits until a collection has a status.
func (s shop) collects(t testing.TB, reference, status string) collected {
	t.Helper()
	var last collected
	if err := until(collectedWithin, func() bool {
		last = s.collectionOf(t, reference)
		return last.Status == status
	}); err != nil {
		t.Fatalf("%s is %s after %v, want %s", reference, last.Status, collectedWithin, status)
	}
	return last
}

// looked waits until the reports were surely looked at after now, asking for a sale
// of their account.
func (w *stall) looked(t testing.TB, reference string) {
	t.Helper()
	since := time.Now()
	await(t, collectedWithin, "a look at the reports", func() bool {
		w.collectionOf(t, reference)
		var asked time.Time
		w.query(t, &asked, "SELECT polled_at FROM statements WHERE merchant_id = $1", w.merchant)
		return asked.After(since)
	})
	w.collectionOf(t, reference) // the look is over when it is answered; one that somebody else began is not
}

// stall is a wallet whose reports a test writes, and the merchant that collects
// with it in live mode.
type stall struct {
	shop
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

// newStall makes a merchant with a wallet of its own.
func (p *program) newStall(t testing.TB) *stall {
	t.Helper()
	w := &stall{dir: t.TempDir()}
	made := p.register(t)
	w.shop, w.secret = shop{p, made.MerchantID, made.LiveKey}, made.CallbackSecret
	w.code, w.national = newCode()
	if out, err := w.connect(t, w.credentials(w.code)); err != nil {
		t.Fatalf("connection set: %v\n%s", err, out)
	}
	return w
}

// credentials are those of a wallet with a code, whose reports are the stall's.
func (w *stall) credentials(code string) fields {
	return fields{"static_code": code, "merchant_code": w.national, "reports": fields{"directory": w.dir}}
}

// connect sets the connection as an operator does.
func (w *stall) connect(t testing.TB, credentials fields) (string, error) {
	t.Helper()
	text, err := json.Marshal(credentials)
	if err != nil {
		t.Fatal(err)
	}
	return w.runWith(t, string(text), "connection", "set", w.merchant, "wallet2", "--mode", "live", "--credentials-file", "-")
}

// settled is a row of a report.
type settled struct {
	id       string
	at       time.Time
	amount   int64
	status   string // SETTLED unless given
	merchant string // the stall's unless given
}

// paid is the row that pays a sale.
func (c collected) paid(at time.Time) settled {
	return settled{id: "S" + strings.ReplaceAll(c.ExternalID[len("INV/2026/#"):], "-", ""), at: at, amount: c.Amount}
}

// back is the row that takes a payment back.
func (r settled) back() settled {
	r.status = "REVERSED"
	return r
}

const reportHeader = "settlement_id,transaction_time,amount,currency,merchant_id,terminal_id,status\n"

var wib = time.FixedZone("WIB", 7*60*60)

// lines are rows as reports have them.
func (w *stall) lines(rows ...settled) string {
	var text strings.Builder
	for _, r := range rows {
		status, whose := r.status, r.merchant
		if status == "" {
			status = "SETTLED"
		}
		if whose == "" {
			whose = w.national
		}
		fmt.Fprintf(&text, "%s,%s,%d.00,IDR,%s,K19,%s\n", r.id, r.at.In(wib).Format(time.DateTime), r.amount, whose, status)
	}
	return text.String()
}

// report drops a whole report, complete up to now, and returns its name.
func (w *stall) report(t testing.TB, rows ...settled) string {
	t.Helper()
	w.mu.Lock()
	w.reports++
	name := fmt.Sprintf("settlement-%05d-%s.csv", w.reports, time.Now().UTC().Format("20060102T150405Z"))
	w.mu.Unlock()
	w.drop(t, name, reportHeader+w.lines(rows...))
	return name
}

// drop moves a file into place, as wallets do.
func (w *stall) drop(t testing.TB, name, content string) {
	t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path+".part", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".part", path); err != nil {
		t.Fatal(err)
	}
}

// query reads one value of the gateway's database.
func (p *program) query(t testing.TB, into any, sql string, arguments ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), sql, arguments...).Scan(into); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
}

// movementIDOf is the id under which operators know a sale.
func (w *stall) movementIDOf(t testing.TB, c collected) (id string) {
	t.Helper()
	w.query(t, &id, "SELECT id::TEXT FROM movements WHERE merchant_id = $1 AND kind = 'collection' AND reference = $2", w.merchant, c.ExternalID)
	return id
}

// age makes a sale as old as if it had been made so much earlier, since no test
// can wait out its life.
func (w *stall) age(t testing.TB, c collected, by time.Duration) {
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

// waiting are the payments that wait for an operator, as its command lists them.
func (w *stall) waiting(t testing.TB) []console.Settlement {
	t.Helper()
	var list []console.Settlement
	w.succeed(t, "", &list, "settlement", "list", w.merchant)
	return list
}

// wantWaiting wants exactly these payments on that list, as "state amount".
func (w *stall) wantWaiting(t testing.TB, want ...string) {
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
func (w *stall) assign(t testing.TB, payment string, c collected) (string, error) {
	t.Helper()
	return w.run(t, "settlement", "assign", payment, w.movementIDOf(t, c), "--reason", "the payer has called")
}

// usedOf is how much of the quota wallet2 a merchant has used.
func (s shop) usedOf(t testing.TB) int64 {
	t.Helper()
	stand, err := s.admin().Quotas(t.Context(), s.merchant, s.mode())
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
func (s shop) refuses(t testing.TB, what, path string, body fields, want refusal, names ...string) answer {
	t.Helper()
	before := s.usedOf(t)
	a := s.ask(t, path, body)
	reference, _ := body["external_id"].(string)
	want.want(t, what, a, reference, names...)
	if after := s.usedOf(t); after != before {
		t.Errorf("%s has used %d of the quota: %s", what, after-before, a)
	}
	return a
}
