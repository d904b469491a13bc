package transfer_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// route is one of the two ways to send money out, with the simulator's names of
// what it uses.
type route struct {
	path     string
	idField  string // of our own name of a transfer
	fee      int64
	inquiry  string
	upstream string
	status   string
}

var (
	toWallet = route{"/wallet1/transfer/wallet", "refId", 0, "account-inquiry", "topup", "topup-status"}
	toBank   = route{"/wallet1/transfer/bank", "txId", 2500, "bank-account-inquiry", "transfer-bank", "transfer-bank-status"}
	routes   = []route{toWallet, toBank}
)

func (r route) String() string { return r.path[strings.LastIndex(r.path, "/")+1:] }

// transfer is money for somebody: a phone number, or an account at bank 014.
type transfer struct {
	route
	to     string
	amount int64
}

// nextTransfer numbers amounts, so that what moved upstream can be told apart by
// them.
var nextTransfer atomic.Int64

const firstTransfer = 10_000

// newTransfer is money for somebody of whom the simulator knows nothing.
func (r route) newTransfer() transfer {
	if r.path == toBank.path {
		return r.to("7" + fmt.Sprintf("%010d", uuid.New().ID()))
	}
	return r.to(harness.UnknownPhone())
}

// to is money for a certain receiver.
func (r route) to(receiver string) transfer {
	return transfer{r, receiver, firstTransfer + nextTransfer.Add(1)}
}

// withPlan is money for the receiver of whom the simulator's plan with this number
// is told; see its page.
func (r route) withPlan(digits string) transfer {
	if r.path == toBank.path {
		return r.to("99000012" + digits)
	}
	return r.to("0878000012" + digits)
}

func (m transfer) of(amount int64) transfer {
	m.amount = amount
	return m
}

// body is the least that sends the money, with a reference unless that is "".
func (m transfer) body(reference string) harness.Fields {
	f := harness.Fields{"amount": m.amount, "phone": m.to}
	if m.path == toBank.path {
		f = harness.Fields{"amount": m.amount, "bank_code": "014", "account_no": m.to}
	}
	if reference != "" {
		f["external_id"] = reference
	}
	return f
}

// destination is the receiver as the simulator's witness names it.
func (m transfer) destination() string {
	if m.path == toBank.path {
		return "014/" + m.to
	}
	return "62" + strings.TrimPrefix(m.to, "0")
}

// transferData is the data of a transfer's answer or status.
type transferData struct {
	RefID      string  `json:"refId"`
	TxID       string  `json:"txId"`
	Amount     int64   `json:"amount"`
	Fee        int64   `json:"fee"`
	Status     string  `json:"status"`
	ExternalID *string `json:"external_id"`
	NameMatch  *bool   `json:"name_match"`
	Returned   int64   `json:"returned_amount"`
	ReturnedAt string  `json:"returned_at"`
}

func (r transferData) id() string { return r.RefID + r.TxID }

func transferOf(a harness.Answer) transferData {
	var r transferData
	_ = json.Unmarshal(a.Data, &r)
	return r
}

// sends transfers money, which must be answered with a status, and holds the
// answer against the contract byte for byte.
func sends(t testing.TB, s harness.Shop, m transfer, reference, status string, headers ...string) transferData {
	t.Helper()
	a := s.Ask(t, m.path, m.body(reference), headers...)
	m.wantAnswer(t, a, reference, status)
	return transferOf(a)
}

var ourID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// wantAnswer holds a transfer's answer against the contract byte for byte.
func (m transfer) wantAnswer(t testing.TB, a harness.Answer, reference, status string) {
	t.Helper()
	message := map[string]string{"Success": "The transfer has succeeded.", "Pending": "The transfer is being processed."}[status]
	id := transferOf(a).id()
	data := fmt.Sprintf(`"%s":%q,"amount":%d`, m.idField, id, m.amount)
	if m.path == toBank.path {
		data += fmt.Sprintf(`,"fee":%d`, m.fee)
	}
	data += fmt.Sprintf(`,"status":%q,"external_id":%s`, status, harness.JSONText(reference))
	if m.path == toBank.path {
		data += `,"name_match":null`
	}
	harness.WantBody(t, a, fmt.Sprintf(`{"success":true,"message":%q,"data":{%s}}`, message, data))
	if !ourID.MatchString(id) {
		t.Errorf("%s is no id of ours", id)
	}
}

// statusOfTransfer asks how a transfer stands, by its reference or else by our
// own name, and holds the answer against the contract byte for byte.
func statusOfTransfer(t testing.TB, s harness.Shop, m transfer, reference, id string) transferData {
	t.Helper()
	asked := harness.Fields{"external_id": reference}
	if reference == "" {
		asked = harness.Fields{m.idField: id}
	}
	a := s.Ask(t, "/wallet1/transfer/status", asked)
	harness.WantBody(t, a, fmt.Sprintf(`{"success":true,"data":%s}`, m.standing(transferOf(a), reference, "")))
	return transferOf(a)
}

// standing is the data of a status, or with a time that of a callback.
func (m transfer) standing(r transferData, reference, timestamp string) string {
	data := fmt.Sprintf(`"%s":%q,"external_id":%s,"amount":%d,"fee":%d,"status":%q`, m.idField, r.id(), harness.JSONText(reference), m.amount, m.fee, r.Status)
	if r.Returned != 0 {
		data += fmt.Sprintf(`,"returned_amount":%d`, r.Returned)
	}
	if r.ReturnedAt != "" {
		data += fmt.Sprintf(`,"returned_at":%q`, r.ReturnedAt)
	}
	if timestamp != "" {
		data += fmt.Sprintf(`,"timestamp":%q`, timestamp)
	}
	return "{" + data + "}"
}

// awaitTransfer waits until a transfer has a status.
func awaitTransfer(t testing.TB, s harness.Shop, m transfer, reference, id, status string, within time.Duration) transferData {
	t.Helper()
	var last transferData
	if err := harness.Until(within, func() bool {
		last = statusOfTransfer(t, s, m, reference, id)
		return last.Status == status
	}); err != nil {
		t.Fatalf("%s%s to %s is %s after %v, want %s", reference, id, m.to, last.Status, within, status)
	}
	return last
}

// isCallback holds a callback against the contract byte for byte.
func (m transfer) isCallback(t testing.TB, body, event, reference string, r transferData) {
	t.Helper()
	want := fmt.Sprintf(`{"event":%q,"data":%s}`, event, m.standing(r, reference, "TIME"))
	if event == "transfer.returned" {
		want = strings.TrimSuffix(want, "}}") + fmt.Sprintf(`,"return":{"id":"","sort":"reversal","amount":%d,"at":%q}}}`, r.Returned, r.ReturnedAt)
	}
	form := strings.Replace(regexp.QuoteMeta(want), "TIME", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, 1)
	if !regexp.MustCompile("^" + form + "$").MatchString(body) {
		t.Errorf("told %s, want %s", body, want)
	}
}

// moved is what the simulator has moved of an amount, of whatever came of it.
func moved(t testing.TB, p *harness.Program, amount int64) []harness.UpstreamMovement {
	t.Helper()
	return slices.DeleteFunc(p.UpstreamMovements(t), func(w harness.UpstreamMovement) bool { return w.Provider != "wallet1" || w.Amount != amount })
}

// wantMoved wants an amount to have moved so often, to its receiver.
func (m transfer) wantMoved(t testing.TB, p *harness.Program, times int) {
	t.Helper()
	all := moved(t, p, m.amount)
	if len(all) != times || slices.ContainsFunc(all, func(w harness.UpstreamMovement) bool { return w.Destination != m.destination() }) {
		t.Errorf("%d to %s moved %v upstream, want %d times", m.amount, m.destination(), all, times)
	}
}

// wallet gives the simulator of wallets one of its own orders, which must work.
func wallet(t testing.TB, p *harness.Program, order string, body harness.Fields) {
	t.Helper()
	var done json.RawMessage
	if status := p.Sandbox(t, "/providers/wallet1/"+order, body, &done); status != http.StatusOK {
		t.Fatalf("%s %v: %d %s", order, body, status, done)
	}
}
