package app_test

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

	"github.com/seed-f006e74d/gerbang/gateway/fault"
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

// remit is money for somebody: a phone number, or an account at bank 014.
type remit struct {
	route
	to     string
	amount int64
}

// nextRemit numbers amounts, so that what moved upstream can be told apart by
// them.
var nextRemit atomic.Int64

const firstRemit = 10_000

// newRemit is money for somebody of whom the simulator knows nothing.
func (r route) newRemit() remit {
	if r.path == toBank.path {
		return r.to("7" + fmt.Sprintf("%010d", uuid.New().ID()))
	}
	return r.to(anybody())
}

// to is money for a certain receiver.
func (r route) to(receiver string) remit { return remit{r, receiver, firstRemit + nextRemit.Add(1)} }

// story is money for the receiver of whom the simulator's plan with this number
// is told; see its page.
func (r route) story(digits string) remit {
	if r.path == toBank.path {
		return r.to("99000012" + digits)
	}
	return r.to("0878000012" + digits)
}

func (m remit) of(amount int64) remit {
	m.amount = amount
	return m
}

// body is the least that sends the money, with a reference unless that is "".
func (m remit) body(reference string) fields {
	f := fields{"amount": m.amount, "phone": m.to}
	if m.path == toBank.path {
		f = fields{"amount": m.amount, "bank_code": "014", "account_no": m.to}
	}
	if reference != "" {
		f["external_id"] = reference
	}
	return f
}

// destination is the receiver as the simulator's witness names it.
func (m remit) destination() string {
	if m.path == toBank.path {
		return "014/" + m.to
	}
	return "62" + strings.TrimPrefix(m.to, "0")
}

// remitted is the data of a transfer's answer or status.
type remitted struct {
	RefID      string  `json:"refId"`
	TxID       string  `json:"txId"`
	Amount     int64   `json:"amount"`
	Fee        int64   `json:"fee"`
	Status     string  `json:"status"`
	ExternalID *string `json:"external_id"`
	NameMatch  *bool   `json:"name_match"`
	ReversedAt string  `json:"reversed_at"`
}

func (r remitted) id() string { return r.RefID + r.TxID }

func (a answer) remitted() remitted {
	var r remitted
	_ = json.Unmarshal(a.Data, &r)
	return r
}

// sends transfers money, which must be answered with a status, and holds the
// answer against the contract byte for byte.
func (s shop) sends(t testing.TB, m remit, reference, status string, headers ...string) remitted {
	t.Helper()
	a := s.ask(t, m.path, m.body(reference), headers...)
	m.wantAnswer(t, a, reference, status)
	return a.remitted()
}

var ourID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// wantAnswer holds a transfer's answer against the contract byte for byte.
func (m remit) wantAnswer(t testing.TB, a answer, reference, status string) {
	t.Helper()
	message := map[string]string{"Success": "The transfer has succeeded.", "Pending": "The transfer is being processed."}[status]
	id := a.remitted().id()
	data := fmt.Sprintf(`"%s":%q,"amount":%d`, m.idField, id, m.amount)
	if m.path == toBank.path {
		data += fmt.Sprintf(`,"fee":%d`, m.fee)
	}
	data += fmt.Sprintf(`,"status":%q,"external_id":%s`, status, jsonText(reference))
	if m.path == toBank.path {
		data += `,"name_match":null`
	}
	wantBody(t, a, fmt.Sprintf(`{"success":true,"message":%q,"data":{%s}}`, message, data))
	if !ourID.MatchString(id) {
		t.Errorf("%s is no id of ours", id)
	}
}

// jsonText is a text as JSON, null for none.
func jsonText(text string) string {
	if text == "" {
		return "null"
	}
	encoded, _ := json.Marshal(text)
	return string(encoded)
}

// stands asks how a transfer stands, by its reference or else by our own name,
// and holds the answer against the contract byte for byte.
func (s shop) stands(t testing.TB, m remit, reference, id string) remitted {
	t.Helper()
	asked := fields{"external_id": reference}
	if reference == "" {
		asked = fields{m.idField: id}
	}
	a := s.ask(t, "/wallet1/transfer/status", asked)
	wantBody(t, a, fmt.Sprintf(`{"success":true,"data":%s}`, m.standing(a.remitted(), reference, "")))
	return a.remitted()
}

// standing is the data of a status, or with a time that of a callback.
func (m remit) standing(r remitted, reference, timestamp string) string {
	data := fmt.Sprintf(`"%s":%q,"external_id":%s,"amount":%d,"fee":%d,"status":%q`, m.idField, r.id(), jsonText(reference), m.amount, m.fee, r.Status)
	if r.ReversedAt != "" {
		data += fmt.Sprintf(`,"reversed_at":%q`, r.ReversedAt)
	}
	if timestamp != "" {
		data += fmt.Sprintf(`,"timestamp":%q`, timestamp)
	}
	return "{" + data + "}"
}

// stood waits until a transfer has a status.
func (s shop) stood(t testing.TB, m remit, reference, id, status string, within time.Duration) remitted {
	t.Helper()
	var last remitted
	if err := until(within, func() bool {
		last = s.stands(t, m, reference, id)
		return last.Status == status
	}); err != nil {
		t.Fatalf("%s%s to %s is %s after %v, want %s", reference, id, m.to, last.Status, within, status)
	}
	return last
}

// isCallback holds a callback against the contract byte for byte.
func (m remit) isCallback(t testing.TB, body, event, reference string, r remitted) {
	t.Helper()
	want := fmt.Sprintf(`{"event":%q,"data":%s}`, event, m.standing(r, reference, "TIME"))
	form := strings.Replace(regexp.QuoteMeta(want), "TIME", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, 1)
	if !regexp.MustCompile("^" + form + "$").MatchString(body) {
		t.Errorf("told %s, want %s", body, want)
	}
}

// moved is what the simulator has moved of an amount, of whatever came of it.
func (p *program) moved(t testing.TB, amount int64) []witnessed {
	t.Helper()
	return slices.DeleteFunc(p.movements(t), func(w witnessed) bool { return w.Provider != "wallet1" || w.Amount != amount })
}

// wantMoved wants an amount to have moved so often, to its receiver.
func (m remit) wantMoved(t testing.TB, p *program, times int) {
	t.Helper()
	all := p.moved(t, m.amount)
	if len(all) != times || slices.ContainsFunc(all, func(w witnessed) bool { return w.Destination != m.destination() }) {
		t.Errorf("%d to %s moved %v upstream, want %d times", m.amount, m.destination(), all, times)
	}
}

// wallet gives the simulator of wallets one of its own orders, which must work.
func (p *program) wallet(t testing.TB, order string, body fields) {
	t.Helper()
	var done json.RawMessage
	if status := p.door(t, "/providers/wallet1/"+order, body, &done); status != http.StatusOK {
		t.Fatalf("%s %v: %d %s", order, body, status, done)
	}
}

// refusal is what an error tells a merchant to do.
type refusal struct {
	code  fault.Code
	sent  fault.Sent
	retry fault.Retry
}

var (
	wrongInput   = refusal{fault.InvalidRequest, fault.SentNo, fault.RetryAfterChange}
	nobodyThere  = refusal{fault.DestinationInvalid, fault.SentNo, fault.RetryAfterChange}
	asked        = refusal{fault.ProviderRejected, fault.SentNo, fault.RetryAfterChange}
	refusedThere = refusal{fault.DestinationInvalid, fault.SentRefused, fault.RetryNever}
	refusedElse  = refusal{fault.ProviderRejected, fault.SentRefused, fault.RetryNever}
	notNow       = refusal{fault.ProviderUnavailable, fault.SentNo, fault.RetryLater}
	noAnswer     = refusal{fault.ProviderTimeout, fault.SentUnknown, fault.RetryLookupFirst}
	unknownHere  = refusal{fault.NotFound, fault.SentNo, fault.RetryNever}
	usedBefore   = refusal{fault.DuplicateReference, fault.SentNo, fault.RetryNever}
	notAllowed   = refusal{fault.ScopeMissing, fault.SentNo, fault.RetryAfterChange}
	denied       = refusal{fault.PolicyDenied, fault.SentNo, fault.RetryAfterChange}
)

// want holds an answer against the row of the table; the fields at fault are
// those that are named.
func (r refusal) want(t testing.TB, what string, a answer, reference string, names ...string) {
	t.Helper()
	var told []string
	for _, f := range a.Errors {
		told = append(told, f.Field)
	}
	slices.Sort(told)
	if a.Success || (refusal{a.Code, a.Sent, a.Retry}) != r || a.ExternalID != reference || !slices.Equal(told, names) {
		t.Errorf("%s: %s, want %v of %q about %q", what, a, r, reference, names)
	}
}
