package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// upstream is a plugin of one kind and the provider behind it. It knows what really
// happened, whatever it says, and what it may never be asked.
type upstream struct {
	of  *kindCase
	now func() time.Time

	mu       sync.Mutex
	things   map[string]*thing // what exists, by account and our reference
	times    map[string]int    // how often it was made, by our reference
	calls    []sdk.Call        // creations
	quotes   []sdk.Quote
	lookups  []time.Time
	asks     map[string][]time.Time // lookups by our reference
	cancels  int
	again    int       // creations of what existed
	deadline time.Time // of the last lookup
	sendBy   time.Time // of the last lookup
	wrong    []string  // what it may never be asked, and was

	// The script; the zero value is a provider where all is well.
	way           way
	quote         func(sdk.Quote, sdk.Quoted) sdk.Quoted
	beforeQuote   func()
	before, after func(sdk.Call) // of a creation: nothing was done yet; it was done and not answered
	find          func(sdk.Lookup) sdk.StatusUpdate
	cancel        func(sdk.Call) sdk.Result
	ask           func(sdk.Call) sdk.Result // of queries
	available     error
	ack           sdk.Acknowledgement
	ackErr        error
	products      []product
	refunds       refunds

	// The statement. Of transfers it is made of what has moved.
	rows      []sdk.StatementLine
	page      int       // lines of a page at most
	through   time.Time // up to when it is complete
	reads     int
	statement func(sdk.Statement, sdk.StatementPage) sdk.StatementPage
}

// thing is what really exists: a payment, what was bought, what has moved, a code.
type thing struct {
	of          *kindCase
	reference   string
	to          string       // the destination of a transfer
	amount      money.Amount // of an order what it costs
	ends        sdk.Status
	made        time.Time
	seen, endAt time.Time // from when lookups see it, and when it ends
	offer       json.RawMessage
	paid        string // the id of the payment that paid it
}

// way is what becomes of a creation: whether the call makes something, by how much its
// amount differs from what was agreed, when lookups see it, how and when it ends, and
// what the call says of it, which is the truth unless a test says otherwise.
type way struct {
	name   string
	unmade bool
	more   money.Amount
	slow   time.Duration
	fails  bool
	after  time.Duration
	says   func(sdk.Call) sdk.Result
}

// saying is a result whatever was called.
func saying(r sdk.Result) func(sdk.Call) sdk.Result { return func(sdk.Call) sdk.Result { return r } }

var (
	cut      = saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))
	silent   = sdk.NoStatus(sdk.BlameUpstream, "no answer")
	notFound = sdk.StatusUpdate{Status: sdk.StatusNotFound}
)

// blind and missing are lookups that are told nothing, and that there is no such thing.
func blind(sdk.Lookup) sdk.StatusUpdate { return silent }

func missing(sdk.Lookup) sdk.StatusUpdate { return notFound }

func newUpstream(of *kindCase, now func() time.Time) *upstream {
	return &upstream{of: of, now: now, things: map[string]*thing{}, times: map[string]int{}, asks: map[string][]time.Time{}, page: 1000, products: products}
}

// set changes the script while calls may be under way.
func (u *upstream) set(change func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change()
}

func fire(hook func()) {
	if hook != nil {
		hook()
	}
}

// accountOf is the account at the provider that a connection opens, for orders: others
// are told apart by their references.
func accountOf(c sdk.Connection) string {
	var named struct{ Username string }
	if err := json.Unmarshal(c.Credentials, &named); err != nil {
		return ""
	}
	return named.Username
}

func nameAt(c sdk.Connection, reference string) string { return accountOf(c) + " " + reference }

// Quote is for the engine.
func (u *upstream) Quote(ctx context.Context, _ host.Use, q sdk.Quote, _ time.Duration) sdk.Quoted {
	if ctx.Err() != nil {
		return sdk.NoQuote(sdk.DidNotSend(sdk.BlameNone, "the caller has gone"))
	}
	fire(u.beforeQuote)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.quotes = append(u.quotes, q)
	told := u.of.quote(u, q)
	if u.quote != nil {
		return u.quote(q, told)
	}
	return told
}

// Call is for the engine.
func (u *upstream) Call(ctx context.Context, _ host.Use, call sdk.Call, _ time.Duration) sdk.Result {
	switch {
	case ctx.Err() != nil:
		return sdk.DidNotSend(sdk.BlameNone, "the caller has gone")
	case call.Operation == cancelPath:
		return u.end(call)
	case call.Operation == productsPath, call.Operation == inquiryPath:
		return u.query(call)
	case call.Operation == refundPath:
		return u.refunds.call(call)
	}
	u.mu.Lock()
	before, after := u.before, u.after
	u.mu.Unlock()
	if before != nil {
		before(call)
	}
	if u.of.kind == manifest.Transfer && u.now().After(call.SendBy) {
		return sdk.DidNotSend(sdk.BlameNone, "send_by had passed") // as every plugin does
	}
	w := u.take(call)
	if after != nil {
		after(call)
	}
	if w.says != nil {
		return w.says(call)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.things[nameAt(call.Connection, call.Reference)].stands(u.now())
	result := sdk.Result{Outcome: sdk.Pending, Data: f.Data, Amount: f.Amount, ProviderReference: f.ProviderReference}
	switch f.Status {
	case sdk.StatusDone:
		result.Outcome = sdk.Done
	case sdk.StatusFailed:
		return sdk.Refuse(sdk.RefuseOther, "Out of stock.")
	case sdk.StatusPending:
		if u.of.life > 0 {
			result.Amount, result.ExpiresAt = 0, u.now().Add(u.of.life)
		}
	case sdk.StatusUnknown, sdk.StatusNotFound, sdk.StatusExpired:
		return sdk.DontKnow(sdk.BlameUpstream, "cut")
	}
	return result
}

// take does what a call asks for.
func (u *upstream) take(call sdk.Call) way {
	u.mu.Lock()
	defer u.mu.Unlock()
	there := u.things[nameAt(call.Connection, call.Reference)]
	if u.calls = append(u.calls, call); there != nil {
		u.again++
	}
	if u.now().After(call.SendBy) {
		u.wrong = append(u.wrong, "called too late: "+call.Reference)
	}
	u.of.called(u, call)
	switch to, _ := askedFor(call.Body); {
	case there != nil && u.of.kind == manifest.Transfer && (there.amount != call.Amount || there.to != to):
		return way{says: saying(sdk.Refuse(sdk.RefuseOther, "Inconsistent request."))}
	case u.way.unmade, there != nil && u.of.kind == manifest.Transfer:
	default:
		u.make(nameAt(call.Connection, call.Reference), call.Reference, u.of.agreed(call), call.Body)
	}
	return u.way
}

// make makes a thing, whatever was made before. The caller holds the lock.
func (u *upstream) make(name, reference string, agreed money.Amount, body json.RawMessage) {
	to, _ := askedFor(body)
	t := &thing{
		of: u.of, reference: reference, to: to, amount: agreed + u.way.more, ends: sdk.StatusDone,
		made: u.now(), seen: u.now().Add(u.way.slow), endAt: u.now().Add(u.way.after), offer: u.of.offer(reference, agreed, body),
	}
	switch {
	case u.of.life > 0: // it waits for its payer
		t.ends = sdk.StatusPending
	case u.way.fails:
		t.ends = sdk.StatusFailed
	}
	u.things[name] = t
	u.times[reference]++
}

// stands is the truth about a thing.
func (t *thing) stands(now time.Time) sdk.StatusUpdate {
	switch {
	case t == nil || now.Before(t.seen):
		return notFound
	case now.Before(t.endAt):
		return t.says(sdk.StatusPending)
	}
	return t.says(t.ends)
}

// says is a status update about a thing.
func (t *thing) says(status sdk.Status) sdk.StatusUpdate {
	f := sdk.StatusUpdate{Reference: t.reference, Status: status, Amount: t.amount, Currency: "IDR"}
	t.of.says(t, &f)
	return f
}

// eventOf names a status update about the end of a thing.
func eventOf(f *sdk.StatusUpdate) string {
	if f.Status == sdk.StatusDone || f.Status == sdk.StatusFailed {
		return f.Reference + "-" + f.Status.String()
	}
	return ""
}

// end cancels a payment.
func (u *upstream) end(call sdk.Call) sdk.Result {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cancels++
	if u.cancel != nil {
		return u.cancel(call)
	}
	t := u.things[nameAt(call.Connection, call.Reference)]
	switch {
	case t == nil:
		return sdk.DidNotSend(sdk.BlameNone, "nothing there")
	case t.ends == sdk.StatusDone:
		return sdk.Refuse(sdk.RefuseOther, "It has been paid.")
	}
	t.ends = sdk.StatusExpired
	return sdk.Finished("", struct{}{})
}

// Lookup is for the engine. Of orders it is the same request again, and buys what the
// provider does not know, or knows no more.
func (u *upstream) Lookup(ctx context.Context, _ host.Use, l sdk.Lookup, _ time.Duration) sdk.StatusUpdate {
	if ctx.Err() != nil {
		return sdk.NoStatus(sdk.BlameNone, "the caller has gone")
	}
	if l.Operation == refundPath {
		return u.refunds.lookup(l)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.of.asked(u, l)
	u.deadline, _ = ctx.Deadline()
	u.sendBy = l.SendBy
	u.lookups, u.asks[l.Reference] = append(u.lookups, u.now()), append(u.asks[l.Reference], u.now())
	if u.find != nil {
		return u.find(l)
	}
	if t := u.things[nameAt(l.Connection, l.Reference)]; u.of.kind == manifest.Order && (t == nil || u.now().Sub(t.made) >= forgets) {
		u.make(nameAt(l.Connection, l.Reference), l.Reference, l.Cost, l.Body)
	}
	return u.things[nameAt(l.Connection, l.Reference)].stands(u.now())
}

// query answers the list of products and the inquiry of a bill.
func (u *upstream) query(call sdk.Call) sdk.Result {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ask != nil {
		return u.ask(call)
	}
	if call.Operation == productsPath {
		return sdk.Finished("", u.products)
	}
	var body struct{ SKU, Target string }
	_ = json.Unmarshal(call.Body, &body)
	var asked product
	if err := json.Unmarshal(call.Product, &asked); err != nil || asked.SKU != body.SKU {
		u.wrong = append(u.wrong, "an inquiry without its product")
	}
	return sdk.Finished("", map[string]any{
		"sku": body.SKU, "target": body.Target, "customer_name": "Nama", "amount": billTotal - billAdmin, "admin": billAdmin, "qty": billTotal, "period": "202611",
	})
}

// Statement is for the engine: the lines that tests write, or the mutations of all
// transfers, as if of one account, a row to a page.
func (u *upstream) Statement(_ context.Context, _ string, s sdk.Statement, _ time.Duration) sdk.StatementPage {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reads++
	rows, size := u.rows, min(u.page, s.Limit)
	if u.of.kind == manifest.Transfer {
		rows, size = nil, 1
		for _, t := range u.things {
			if !t.made.Before(s.From) {
				rows = append(rows, sdk.StatementLine{ID: t.reference, Amount: t.amount, Currency: "IDR", At: t.made, Outgoing: true})
			}
		}
		slices.SortFunc(rows, func(a, b sdk.StatementLine) int { return strings.Compare(a.ID, b.ID) })
	}
	from, _ := strconv.Atoi(s.Cursor) // "" is none
	to := min(from+size, len(rows))
	page := sdk.StatementPage{Known: true, Lines: slices.Clone(rows[min(from, to):to]), Cursor: strconv.Itoa(to), More: to < len(rows)}
	if !page.More {
		page.Through = u.through
	}
	if u.statement != nil {
		return u.statement(s, page)
	}
	return page
}

var errNoPlugin = errors.New("its process is down")

// Notify is for the engine.
func (u *upstream) Notify(context.Context, string, sdk.Notification, time.Duration) (sdk.Acknowledgement, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.ack, u.ackErr
}

// Available is for the engine.
func (u *upstream) Available(host.Use, sdk.Connection) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.available
}

// pay is a payer's doing. It returns what the notification of it says.
func (u *upstream) pay(reference, payment string) sdk.StatusUpdate {
	u.mu.Lock()
	defer u.mu.Unlock()
	t := u.things[" "+reference]
	t.ends, t.paid = sdk.StatusDone, payment
	return t.stands(u.now())
}

// stands is the truth about a reference, where accounts do not tell things apart. The
// caller holds the lock.
func (u *upstream) stands(reference string) sdk.StatusUpdate {
	return u.things[" "+reference].stands(u.now())
}

func (u *upstream) asked() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.lookups)
}

// made is how much exists, and the most often that one reference was called.
func (u *upstream) made() (things, calls int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	called := map[string]int{}
	for _, call := range u.calls {
		called[call.Reference]++
		calls = max(calls, called[call.Reference])
	}
	return len(u.things), calls
}

// called is how often a reference was called.
func (u *upstream) called(reference string) (times int) {
	for _, call := range u.calls {
		if call.Reference == reference {
			times++
		}
	}
	return times
}

// under is what was made under one movement's names, over all attempts and accounts, and
// how often.
func (u *upstream) under(name string) (last *thing, times int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, t := range u.things {
		if strings.HasPrefix(t.reference, name) {
			last = t
		}
	}
	for reference, n := range u.times {
		if strings.HasPrefix(reference, name) {
			times += n
		}
	}
	return last, times
}

// total is how often something was made, whatever it is called.
func (u *upstream) total() (times int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, n := range u.times {
		times += n
	}
	return times
}

// write adds lines to the statement.
func (u *upstream) write(rows ...sdk.StatementLine) {
	u.set(func() { u.rows = append(u.rows, rows...) })
}

// paid is a line of a statement.
func paid(name string, amount money.Amount, at time.Time) sdk.StatementLine {
	return sdk.StatementLine{ID: name, Reference: name, Amount: amount, Currency: "IDR", At: at.Truncate(time.Second)}
}

// back is the line that takes a payment back.
func back(name string, amount money.Amount, at time.Time) sdk.StatementLine {
	return sdk.StatementLine{ID: name + "-back", Reference: name, Amount: amount, Currency: "IDR", At: at.Truncate(time.Second), Reversed: true}
}

// askedFor is the destination of a transfer as its provider writes it, and whether it
// is a bank.
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

// sessionOf is what the provider of transfers wants back with each.
func sessionOf(reference string) json.RawMessage {
	return json.RawMessage(`{"session":"` + reference + `"}`)
}

func isSession(quote json.RawMessage, reference string) bool {
	return bytes.Equal(quote, sessionOf(reference))
}
