package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	walletPath, bankPath, transferStatusPath = "/wallet1/transfer/wallet", "/wallet1/transfer/bank", "/wallet1/transfer/status"

	sending = money.Amount(10_000)
	bankFee = money.Amount(2_500)
	holder  = "BUDI SANTOSO"
)

// issuer is a plugin for transfers and the wallet behind it. It knows what has
// really moved, whatever it says, and is asked how one stands without moving it.
type issuer struct {
	now func() time.Time

	mu      sync.Mutex
	payouts map[string]*payout // by our reference
	moved   map[string]int     // how often, by our reference
	calls   []sdk.Call
	quotes  []sdk.Quote
	lookups map[string][]time.Time
	wrong   []string // what it may never be asked

	// The script; the zero value is an upstream where all is well.
	way                        way
	quote                      func(sdk.Quote, sdk.Quoted) sdk.Quoted
	beforeQuote, before, after func() // hooks: nothing was done yet; it was done and not answered
	find                       func(sdk.Lookup) sdk.StatusUpdate
	books                      func(sdk.Statement, sdk.StatementPage) sdk.StatementPage
	available                  error
	ack                        sdk.Acknowledgement
}

// payout is what has really moved.
type payout struct {
	reference, to string
	amount        money.Amount
	ends          sdk.Status // failed money is back
	made          time.Time
	seen, endAt   time.Time // from when lookups see it, and its end
}

// way is what becomes of a transfer: whether the call makes it, how much moves
// beside what was asked, when lookups see it, how and when it ends, and what the
// call says of it, which is the truth unless told otherwise.
type way struct {
	name   string
	unmade bool
	more   money.Amount
	slow   time.Duration
	fails  bool
	after  time.Duration
	says   func(asked money.Amount) sdk.Result
}

func newIssuer(now func() time.Time) *issuer {
	return &issuer{now: now, payouts: map[string]*payout{}, moved: map[string]int{}, lookups: map[string][]time.Time{}}
}

func (u *issuer) set(change func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change()
}

// askedFor is the destination of a transfer as this upstream writes it, and whether
// it is a bank.
func askedFor(body json.RawMessage) (to string, bank bool) {
	var b struct {
		Phone string `json:"phone"`
		Bank  string `json:"bank_code"`
		No    string `json:"account_no"`
	}
	_ = json.Unmarshal(body, &b)
	digits := strings.NewReplacer(" ", "", "-", "", ".", "", "+", "")
	if b.Bank != "" {
		return b.Bank + "/" + digits.Replace(b.No), true
	}
	return "phone:62" + strings.TrimPrefix(strings.TrimPrefix(digits.Replace(b.Phone), "0"), "62"), false
}

// Quote is for the engine.
func (u *issuer) Quote(ctx context.Context, _ host.Use, q sdk.Quote, _ time.Duration) sdk.Quoted {
	if ctx.Err() != nil {
		return sdk.NoQuote(sdk.DidNotSend(sdk.BlameNone, "the caller has gone"))
	}
	fire(u.beforeQuote)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.quotes = append(u.quotes, q)
	var body struct{ Amount money.Amount }
	if err := json.Unmarshal(q.Body, &body); err != nil || body.Amount <= 0 {
		u.wrong = append(u.wrong, "a quote without its amount")
	}
	to, bank := askedFor(q.Body)
	said := sdk.Quoted{Outcome: sdk.Done, Price: body.Amount, Cost: body.Amount, Name: holder, Destination: to, Data: sessionOf(q.Reference)}
	if bank {
		said.Fee, said.Cost = bankFee, body.Amount+bankFee
	}
	if u.quote != nil {
		return u.quote(q, said)
	}
	return said
}

// sessionOf is what this upstream wants back with the transfer.
func sessionOf(reference string) json.RawMessage {
	return json.RawMessage(`{"session":"` + reference + `"}`)
}

// Call is for the engine.
func (u *issuer) Call(ctx context.Context, _ host.Use, call sdk.Call, _ time.Duration) sdk.Result {
	if ctx.Err() != nil {
		return sdk.DidNotSend(sdk.BlameNone, "the caller has gone")
	}
	fire(u.before)
	if u.now().After(call.SendBy) {
		return sdk.DidNotSend(sdk.BlameNone, "send_by had passed") // as every plugin does
	}
	w := u.take(call)
	fire(u.after)
	if w.says != nil {
		return w.says(call.Amount)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.payouts[call.Reference].stands(u.now())
	switch f.Status {
	case sdk.StatusDone:
		return sdk.Result{Outcome: sdk.Done, Data: f.Data, Amount: f.Amount, ProviderReference: f.ProviderReference}
	case sdk.StatusPending:
		return sdk.Result{Outcome: sdk.Pending, Data: f.Data, Amount: f.Amount, ProviderReference: f.ProviderReference}
	case sdk.StatusFailed:
		return sdk.Refuse(sdk.RefuseOther, "The balance of the wallet is too low.")
	case sdk.StatusUnknown, sdk.StatusNotFound, sdk.StatusExpired:
	}
	return sdk.DontKnow(sdk.BlameUpstream, "cut")
}

// take does what a call asks for, once for each reference.
func (u *issuer) take(call sdk.Call) way {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.payouts[call.Reference] != nil {
		u.wrong = append(u.wrong, "called again, and it exists: "+call.Reference)
	}
	u.calls = append(u.calls, call)
	if !bytes.Equal(call.Quote, sessionOf(call.Reference)) {
		u.wrong = append(u.wrong, "called without the quote of this name: "+call.Reference)
	}
	to, _ := askedFor(call.Body)
	if p := u.payouts[call.Reference]; p != nil && (p.amount != call.Amount || p.to != to) {
		return way{says: outcomeOf(sdk.Refuse(sdk.RefuseOther, "Inconsistent request."))}
	} else if p != nil || u.way.unmade {
		return u.way
	}
	u.moved[call.Reference]++
	p := &payout{
		reference: call.Reference, to: to, amount: call.Amount + u.way.more, ends: sdk.StatusDone,
		made: u.now(), seen: u.now().Add(u.way.slow), endAt: u.now().Add(u.way.after),
	}
	if u.way.fails {
		p.ends = sdk.StatusFailed
	}
	u.payouts[call.Reference] = p
	return u.way
}

func outcomeOf(r sdk.Result) func(money.Amount) sdk.Result {
	return func(money.Amount) sdk.Result { return r }
}

// stands is the truth about a payout.
func (p *payout) stands(now time.Time) sdk.StatusUpdate {
	switch {
	case p == nil || now.Before(p.seen):
		return sdk.StatusUpdate{Status: sdk.StatusNotFound}
	case now.Before(p.endAt):
		return p.says(sdk.StatusPending)
	}
	return p.says(p.ends)
}

// says is a finding about a payout.
func (p *payout) says(standing sdk.Status) sdk.StatusUpdate {
	f := sdk.StatusUpdate{
		Reference: p.reference, ProviderReference: "R-" + p.reference, Status: standing, Amount: p.amount, Currency: "IDR",
		Data: json.RawMessage(fmt.Sprintf(`{"referenceNo":"R-%s"}`, p.reference)),
	}
	if standing != sdk.StatusPending {
		f.EventID = p.reference + "-" + standing.String()
	}
	return f
}

// Lookup reads how a transfer stands.
func (u *issuer) Lookup(ctx context.Context, _ host.Use, l sdk.Lookup, _ time.Duration) sdk.StatusUpdate {
	if ctx.Err() != nil {
		return sdk.NoStatus(sdk.BlameNone, "the caller has gone")
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	asked := u.lookups[l.Reference]
	if now := u.now(); len(asked) > 0 && now.Before(asked[len(asked)-1].Add(5*time.Second)) {
		u.wrong = append(u.wrong, "asked within 5 s: "+l.Reference)
	}
	if !bytes.Equal(l.Quote, sessionOf(l.Reference)) || !l.SendBy.IsZero() {
		u.wrong = append(u.wrong, "asked without the quote of this name, or to send it: "+l.Reference)
	}
	u.lookups[l.Reference] = append(asked, u.now())
	if u.find != nil {
		return u.find(l)
	}
	return u.payouts[l.Reference].stands(u.now())
}

// Statement is for the engine: the account's mutations, a row to a page. It lets the
// rows of all merchants' transfers be one account's.
func (u *issuer) Statement(_ context.Context, _ string, s sdk.Statement, _ time.Duration) sdk.StatementPage {
	u.mu.Lock()
	defer u.mu.Unlock()
	var rows []sdk.StatementLine
	for _, p := range u.payouts {
		if !p.made.Before(s.From) {
			rows = append(rows, sdk.StatementLine{ID: p.reference, Amount: p.amount, Currency: "IDR", At: p.made, Outgoing: true})
		}
	}
	slices.SortFunc(rows, func(a, b sdk.StatementLine) int { return strings.Compare(a.ID, b.ID) })
	from, _ := strconv.Atoi(s.Cursor) // "" is none
	to := min(from+1, len(rows))
	page := sdk.StatementPage{Known: true, Lines: rows[min(from, to):to], Cursor: strconv.Itoa(to), More: to < len(rows)}
	if u.books != nil {
		return u.books(s, page)
	}
	return page
}

// Notify is for the engine.
func (u *issuer) Notify(context.Context, string, sdk.Notification, time.Duration) (sdk.Acknowledgement, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ack, nil
}

// Available is for the engine.
func (u *issuer) Available(host.Use, sdk.Connection) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.available
}

// of is what has moved under one movement's names, over all attempts, and how
// often.
func (u *issuer) of(name string) (last *payout, times int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for reference, p := range u.payouts {
		if strings.HasPrefix(reference, name) {
			last = p
		}
	}
	for reference, n := range u.moved {
		if strings.HasPrefix(reference, name) {
			times += n
		}
	}
	return last, times
}

// total is how much has moved, of how many transfers, whatever they are called.
func (u *issuer) total() (times int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, n := range u.moved {
		times += n
	}
	return times
}
