package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	productsPath, inquiryPath          = "/ppob/products", "/ppob/inquiry"
	orderPath, orderStatusPath         = "/ppob/order", "/ppob/status"
	prepaidSKU, billSKU, openSKU       = "xld10", "pln", "ovo"
	prepaidPrice, billTotal, billAdmin = money.Amount(10_000), money.Amount(21_000), money.Amount(2_500)
	billMargin                         = money.Amount(1_000) // of the platform, without a markup
)

// biller is a plugin for orders and what is behind it. It knows what was really
// bought, whatever it says, and like its model it takes a request under a name
// that it does not know, or knows no more, for a purchase.
type biller struct {
	now func() time.Time

	mu        sync.Mutex
	purchases map[string]*purchase // the last one, by account and our reference
	bought    map[string]int       // how often, by our reference
	calls     []sdk.Call
	quotes    []sdk.Quote
	lookups   []time.Time
	sendBy    time.Time // of the last one
	wrong     []string  // what it may never be asked

	// The script; the zero value is an upstream where all is well.
	deal                       deal
	products                   []product
	quote                      func(sdk.Quote) sdk.Quoted
	beforeQuote, before, after func() // hooks: nothing was done yet; it was done and not answered
	find                       func(sdk.Lookup) sdk.StatusUpdate
	ask                        func(sdk.Call) sdk.Result // of queries
	available                  error
	ack                        sdk.Acknowledgement
}

// product is an item of the list, with what only the quote knows.
type product struct {
	SKU       string       `json:"buyer_sku_code"`
	Name      string       `json:"product_name"`
	Category  string       `json:"category"`
	Brand     string       `json:"brand"`
	Type      string       `json:"type"`
	Price     money.Amount `json:"price"`
	Available bool         `json:"buyer_product_status"`
	Desc      string       `json:"desc"`
}

// purchase is what was really bought.
type purchase struct {
	reference string
	cost      money.Amount
	ends      sdk.Status
	at, endAt time.Time
}

// deal is what becomes of an order: whether the call makes it, what it costs
// beside what was agreed, how and when it ends, and what the call says of it,
// which is the truth unless told otherwise.
type deal struct {
	name   string
	unmade bool
	dearer money.Amount
	fails  bool
	after  time.Duration
	says   func(agreed money.Amount) sdk.Result
}

// forgets is after how long the upstream knows a reference no more.
const forgets = 90 * 24 * time.Hour

func newBiller(now func() time.Time) *biller {
	return &biller{
		now: now, purchases: map[string]*purchase{}, bought: map[string]int{},
		products: []product{
			{prepaidSKU, "XL 10.000", "Pulsa", "XL", "Prepaid", prepaidPrice, true, "-"},
			{billSKU, "PLN", "Pascabayar", "PLN", "Pasca", billAdmin, true, "-"},
			{openSKU, "OVO", "Pascabayar", "E-MONEY", "Pasca", billAdmin, true, "-"},
			{"off", "Off", "Pulsa", "XL", "Prepaid", prepaidPrice, false, "-"},
		},
	}
}

func (b *biller) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func fire(hook func()) {
	if hook != nil {
		hook()
	}
}

// Quote is for the engine.
func (b *biller) Quote(_ context.Context, _ host.Use, q sdk.Quote, _ time.Duration) sdk.Quoted {
	fire(b.beforeQuote)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.quotes = append(b.quotes, q)
	if b.quote != nil {
		return b.quote(q)
	}
	var p product
	if err := json.Unmarshal(q.Product, &p); err != nil {
		b.wrong = append(b.wrong, "a quote without its product")
	}
	data := json.RawMessage(`{"sku":"` + p.SKU + `"}`)
	if p.Type == "Prepaid" {
		return sdk.Quoted{Outcome: sdk.Done, Price: p.Price, Cost: p.Price, Data: data}
	}
	total, open := billTotal, p.SKU == openSKU
	if open {
		var body struct{ Qty money.Amount }
		if err := json.Unmarshal(q.Body, &body); err != nil || body.Qty == 0 {
			return sdk.NoQuote(sdk.Refuse(sdk.RefuseRequest, "qty must be given.", sdk.FieldFault{Field: "qty", Message: "must be given"}))
		}
		total = body.Qty + billAdmin
	}
	return sdk.Quoted{Outcome: sdk.Done, Price: total, Fee: billAdmin, Cost: total - billMargin, Held: true, Open: open, Data: data}
}

// Call is for the engine.
func (b *biller) Call(ctx context.Context, _ host.Use, call sdk.Call, _ time.Duration) sdk.Result {
	if ctx.Err() != nil {
		return sdk.DidNotSend(sdk.BlameNone, "the caller has gone")
	}
	if call.Operation != orderPath {
		return b.query(call)
	}
	fire(b.before)
	d := b.take(call)
	fire(b.after)
	if d.says != nil {
		return d.says(call.Cost)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.found(accountOf(call.Connection), call.Reference)
	switch f.Status {
	case sdk.StatusDone:
		return sdk.Result{Outcome: sdk.Done, Data: f.Data, Amount: f.Amount}
	case sdk.StatusFailed:
		return sdk.Refuse(sdk.RefuseOther, "Out of stock.")
	case sdk.StatusPending:
		return sdk.Result{Outcome: sdk.Pending, Data: f.Data, Amount: f.Amount}
	case sdk.StatusUnknown, sdk.StatusNotFound, sdk.StatusExpired:
	}
	return sdk.DontKnow(sdk.BlameUpstream, "cut")
}

// take does what a call asks for.
func (b *biller) take(call sdk.Call) deal {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.purchases[accountOf(call.Connection)+" "+call.Reference] != nil {
		b.wrong = append(b.wrong, "called again, and it exists: "+call.Reference)
	}
	b.calls = append(b.calls, call)
	if b.now().After(call.SendBy) {
		b.wrong = append(b.wrong, "called too late: "+call.Reference)
	}
	if len(call.Quote) == 0 || call.Cost <= 0 {
		b.wrong = append(b.wrong, "called without its quote: "+call.Reference)
	}
	if !b.deal.unmade {
		b.buy(accountOf(call.Connection), call.Reference, call.Cost)
	}
	return b.deal
}

// buy makes a purchase, whatever was bought before. The caller holds the lock.
func (b *biller) buy(account, reference string, agreed money.Amount) {
	p := &purchase{reference: reference, cost: agreed + b.deal.dearer, ends: sdk.StatusDone, at: b.now(), endAt: b.now().Add(b.deal.after)}
	if b.deal.fails {
		p.ends = sdk.StatusFailed
	}
	b.purchases[account+" "+reference] = p
	b.bought[reference]++
}

func accountOf(c sdk.Connection) string {
	var named struct{ Username string }
	if err := json.Unmarshal(c.Credentials, &named); err != nil || named.Username == "" {
		return "nobody"
	}
	return named.Username
}

// Lookup is the same request again: it buys what the upstream does not know.
func (b *biller) Lookup(ctx context.Context, _ host.Use, l sdk.Lookup, _ time.Duration) sdk.StatusUpdate {
	if ctx.Err() != nil {
		return sdk.NoStatus(sdk.BlameNone, "the caller has gone")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if now.Before(l.SentAt.Add(time.Minute)) || len(b.lookups) > 0 && now.Before(b.lookups[len(b.lookups)-1].Add(time.Minute)) {
		b.wrong = append(b.wrong, "asked within a minute: "+l.Reference)
	}
	b.lookups, b.sendBy = append(b.lookups, now), l.SendBy
	if l.SendBy.Before(now) || l.SendBy.After(now.Add(sendWindow)) || len(l.Quote) == 0 || l.Cost <= 0 {
		b.wrong = append(b.wrong, "asked without its quote, or a time to be sent by: "+l.Reference)
	}
	if b.find != nil {
		return b.find(l)
	}
	account := accountOf(l.Connection)
	if p := b.purchases[account+" "+l.Reference]; p == nil || now.Sub(p.at) >= forgets {
		b.buy(account, l.Reference, l.Cost)
	}
	return b.found(account, l.Reference)
}

// found is the truth about a reference. The caller holds the lock.
func (b *biller) found(account, reference string) sdk.StatusUpdate {
	p := b.purchases[account+" "+reference]
	if p == nil {
		return sdk.StatusUpdate{Reference: reference}
	}
	standing := sdk.StatusPending
	if !b.now().Before(p.endAt) {
		standing = p.ends
	}
	return p.says(standing)
}

// says is a finding about a purchase.
func (p *purchase) says(standing sdk.Status) sdk.StatusUpdate {
	f := sdk.StatusUpdate{Reference: p.reference, Status: standing, Amount: p.cost, Currency: "IDR", EventID: p.reference + "-" + standing.String()}
	switch standing {
	case sdk.StatusDone:
		f.Data = json.RawMessage(fmt.Sprintf(`{"sn":"SN-%s","message":"Sukses"}`, p.reference))
	case sdk.StatusFailed:
		f.Data = json.RawMessage(`{"sn":"","message":"Gagal"}`)
	default:
		f.EventID, f.Data = "", json.RawMessage(`{"message":"Menunggu"}`)
	}
	return f
}

// query answers the list of products and the inquiry of a bill.
func (b *biller) query(call sdk.Call) sdk.Result {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ask != nil {
		return b.ask(call)
	}
	if call.Operation == productsPath {
		return sdk.Finished("", b.products)
	}
	var body struct{ SKU, Target string }
	_ = json.Unmarshal(call.Body, &body)
	var asked product
	if err := json.Unmarshal(call.Product, &asked); err != nil || asked.SKU != body.SKU {
		b.wrong = append(b.wrong, "an inquiry without its product")
	}
	return sdk.Finished("", map[string]any{
		"sku": body.SKU, "target": body.Target, "customer_name": "Nama", "amount": billTotal - billAdmin, "admin": billAdmin, "qty": billTotal, "period": "202611",
	})
}

// Notify is for the engine.
func (b *biller) Notify(context.Context, string, sdk.Notification, time.Duration) (sdk.Acknowledgement, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ack, nil
}

// Available is for the engine.
func (b *biller) Available(host.Use, sdk.Connection) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.available
}

// of is what was bought under one movement's names, over all attempts and
// accounts, and how often.
func (b *biller) of(name string) (last *purchase, times int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.purchases {
		if strings.HasPrefix(p.reference, name) {
			last = p
		}
	}
	for reference, n := range b.bought {
		if strings.HasPrefix(reference, name) {
			times += n
		}
	}
	return last, times
}

func (b *biller) asked() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.lookups)
}
