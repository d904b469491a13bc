package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/override"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	createPath, statusPath, cancelPath = "/payments/create", "/payments/status", "/payments/cancel"
	collectPath, collectedPath         = "/wallet2/create", "/wallet2/status"
	orderPath, orderStatusPath         = "/ppob/order", "/ppob/status"
	bankPath, transferStatusPath       = "/wallet1/transfer/bank", "/wallet1/transfer/status"

	prepaidSKU, billSKU, openSKU = "xld10", "pln", "ovo"

	prepaidPrice, billTotal = money.Amount(10_000), money.Amount(21_000)
	markup, opening         = money.Amount(500), money.Amount(120_000)
)

// products are what can be bought.
var products = json.RawMessage(`[
	{"buyer_sku_code":"xld10","product_name":"XL","category":"Pulsa","brand":"XL","type":"Prepaid","price":10000,"buyer_product_status":true,"desc":"-"},
	{"buyer_sku_code":"pln","product_name":"PLN","category":"Pascabayar","brand":"PLN","type":"Pasca","price":2500,"buyer_product_status":true,"desc":"-"},
	{"buyer_sku_code":"ovo","product_name":"OVO","category":"Pascabayar","brand":"E-MONEY","type":"Pasca","price":2500,"buyer_product_status":true,"desc":"-"}]`)

// routes are the orders of providers that policies answer.
var routes = [][]string{{"payments", "midtrans"}, {"midtrans", "payments"}, {"midtrans"}, {"payments"}}

// merchant is one with its intents.
type merchant struct {
	name    string
	account *tenants.Account
	limits  policy.Limits
	// receiver is where its callbacks go, "" for nowhere.
	receiver string
	events   []uuid.UUID // that it has read in the list
	quota    int64       // of its creations in a month, 0 for none
}

func (m *merchant) owner() movement.Owner {
	return movement.Owner{MerchantID: string(m.account.ID()), Mode: string(tenants.Live)}
}

// intent is a movement that a merchant wants, under a reference of its own.
type intent struct {
	of        *merchant
	kind      manifest.Kind
	reference string // "" for none
	body      catalog.Document
	changed   catalog.Document // another request under the same reference
	answers   []answer
	paid      bool // a payer has read what to pay
}

// answer is what a merchant heard.
type answer struct {
	what         string // create, changed, status, cancel
	asked, heard int    // the numbers of the steps
	askedAt      time.Time
	data         string
	err          *fault.Error
	crashed      bool
}

var paths = map[manifest.Kind][2]string{
	manifest.Payment: {createPath, statusPath}, manifest.Collection: {collectPath, collectedPath},
	manifest.Order: {orderPath, orderStatusPath}, manifest.Transfer: {bankPath, transferStatusPath}, manifest.Refund: {refundPath, refundStatusPath},
}

// open makes the merchants and the replicas.
func (w *world) open() {
	for i, name := range []string{"A", "B", "C"} {
		id := tenants.MerchantID("mer_" + w.options.Prefix + name)
		limit, count := int64(90_000), int64(4+3*i)
		m := &merchant{name: name, limits: policy.Limits{Markup: policy.Markup{Default: markup}, RepeatWithin: repeatWithin}}
		m.limits.Transfers.Day.Amount, m.limits.Transfers.Day.Count = &limit, &count
		m.limits.Transfers.DestinationDay.Count = &count
		w.books.merchants[string(id)] = name
		if w.chance(50) {
			m.quota = int64(3 + w.rand.IntN(12))
		}
		if name != "B" {
			m.receiver = "https://shop.example/callback"
		}
		w.connect(id, name, 1, "")
		m.account = w.books.holders[id]
		w.merchants = append(w.merchants, m)
		if err := w.store.Credit(w.ctx, m.owner(), opening); err != nil {
			w.violate("the store answers", "%v", err)
		}
	}
	w.books.merchants[string(tenants.Platform)] = "platform"
	w.connect(tenants.Platform, "platform", 1, "")
	for number := range 2 + w.rand.IntN(2) {
		w.replicas = append(w.replicas, w.start(number))
	}
}

// connect gives a merchant accounts at the providers, or others in their place.
func (w *world) connect(id tenants.MerchantID, name string, version int64, suffix string) {
	providers := []string{"payments", "wallet1", "wallet2"}
	switch {
	case id == tenants.Platform:
		providers = []string{"ppob"}
	case name == "C": // which pays the provider itself
		providers = append(providers, "midtrans", "ppob")
	case name == "A":
		providers = append(providers, "midtrans")
	}
	var connections []tenants.Connection
	for _, provider := range providers {
		account := w.options.Prefix + name + suffix
		connections = append(connections, connection(id, provider, account, version, tokenOf(w.options.Prefix+name+"/"+provider)))
		now := movement.NewAccountID(provider, string(tenants.Live), account)
		if w.books.accounts[now] == "" {
			w.books.known = append(w.books.known, now)
		}
		w.books.accounts[now] = name + suffix
	}
	account, err := tenants.NewAccount(tenants.Merchant{ID: id, Name: "Toko", Tier: "scale", Status: tenants.Active}, nil, connections, nil)
	if err != nil {
		panic(err) // of the simulator's own
	}
	w.books.holders[id] = account
	for _, m := range w.merchants {
		if m.account.ID() == id {
			m.account = account
		}
	}
}

// plan draws what merchants and operators do.
func (w *world) plan() {
	const busy = 3 * time.Hour
	for number := range w.options.Intents {
		in := w.intend(number)
		w.intents = append(w.intents, in)
		begins := w.between(0, busy)
		w.later(begins, func() { w.create(in, false) })
		for w.chance(45) {
			after := begins + w.pause()
			w.later(after, func() { w.create(in, false) })
		}
		for range w.rand.IntN(4) {
			w.later(begins+w.pause(), func() { w.ask(in, paths[in.kind][1], "status") })
		}
		if w.chance(15) {
			w.later(begins+w.pause(), func() { w.create(in, true) })
		}
		if in.kind == manifest.Payment && w.chance(35) {
			w.willRefund(in, begins)
		}
		if in.kind == manifest.Payment && w.chance(25) {
			w.later(begins+w.pause(), func() { w.ask(in, cancelPath, "cancel") })
		}
	}
	for range w.rand.IntN(6) {
		w.later(w.between(0, 40*time.Hour), w.override)
	}
	for range w.rand.IntN(4) {
		w.later(w.between(0, 8*time.Hour), w.assign)
	}
	for range w.rand.IntN(3) {
		w.later(w.between(0, busy), w.up.forge)
	}
	for range w.rand.IntN(6) {
		w.later(w.between(0, 40*time.Hour), w.resolve)
	}
	if !w.planRecovery(busy) && w.chance(15) {
		w.later(w.between(0, busy), w.rotate)
	}
	w.later(w.between(busy, 48*time.Hour), func() {
		w.faults = false
		w.log("faults end")
		for _, r := range w.replicas {
			if r.skew.Abs() > movement.ClockSkew {
				w.crash(r)
			}
		}
	})
	for range max(w.rand.IntN(3), w.options.Outages) {
		w.later(w.between(0, busy), func() {
			w.away = w.now.Add(w.between(time.Second, 40*time.Second))
			w.log("the database is away for %v", w.away.Sub(w.now).Truncate(time.Millisecond))
		})
	}
	if w.chance(30) {
		provider := []string{"payments", "midtrans", "ppob", "wallet1"}[w.rand.IntN(4)]
		w.later(w.between(0, busy), func() {
			w.up.away[provider] = w.now.Add(w.between(time.Minute, 8*time.Hour))
			w.log("UPSTREAM %s is away until %v", provider, w.up.away[provider].Sub(w.epoch).Truncate(time.Second))
		})
	}
	for range w.rand.IntN(3) {
		w.later(w.between(0, busy), func() { w.crash(w.replicas[w.rand.IntN(len(w.replicas))]) })
	}
}

// pause is how long after the first request a merchant does something else.
func (w *world) pause() time.Duration {
	most := []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, 2 * time.Hour, 30 * time.Hour}
	return w.between(0, most[w.rand.IntN(len(most))])
}

// intend draws a movement that a merchant wants.
func (w *world) intend(number int) *intent {
	in := &intent{of: w.merchants[w.rand.IntN(len(w.merchants))], reference: "r" + strconv.Itoa(number)}
	amount := json.Number(strconv.Itoa(1000 * (1 + w.rand.IntN(20))))
	other := json.Number(strconv.Itoa(100_000 + number))
	switch n := w.rand.IntN(100); {
	case n < 28:
		in.kind = manifest.Payment
		in.body = catalog.Document{"amount": amount, "payer_email": "payer@shop.example", "external_id": in.reference}
		if w.chance(30) {
			in.body["type"] = "qris"
		}
	case n < 52:
		in.kind = manifest.Collection
		in.body = catalog.Document{"amount": json.Number("1000"), "payer_email": "payer@shop.example", "external_id": in.reference}
	case n < 78:
		in.kind = manifest.Order
		in.body = catalog.Document{"sku": prepaidSKU, "target": "081200001111", "ref_id": in.reference}
		in.changed = maps.Clone(in.body)
		if in.changed["target"] = "081200002222"; w.chance(30) {
			in.body["sku"], in.body["qty"] = billSKU, json.Number((billTotal + markup).String())
			if in.of.name == "C" {
				in.body["qty"] = json.Number(billTotal.String())
			}
		} else if w.chance(20) {
			in.body["sku"], in.body["qty"] = openSKU, json.Number("5000")
		}
		return in
	default:
		in.kind = manifest.Transfer
		in.body = catalog.Document{"bank_code": "014", "account_no": "246" + strconv.Itoa(w.rand.IntN(3)), "amount": amount, "external_id": in.reference}
		if w.chance(50) {
			in.body["account_name"] = []string{"Budi", "Agus"}[w.rand.IntN(2)]
		}
		if w.chance(12) {
			in.reference = ""
			delete(in.body, "external_id")
		}
	}
	in.changed = maps.Clone(in.body)
	in.changed["amount"] = other
	return in
}

// create sends an intent's request, or another one under its reference.
func (w *world) create(in *intent, changed bool) {
	body, what := in.body, "create"
	if changed {
		body, what = in.changed, "changed"
	}
	w.send(in, paths[in.kind][0], what, body)
}

// ask sends a status or a cancel.
func (w *world) ask(in *intent, path, what string) {
	if name := in.ourName(); in.kind == manifest.Transfer && name != "" && (in.reference == "" || w.chance(40)) {
		w.send(in, path, what, catalog.Document{"txId": name})
		return
	}
	if in.reference == "" {
		return
	}
	field := "external_id"
	switch in.kind { //nolint:exhaustive // the others have an external_id
	case manifest.Order:
		field = "ref_id"
	case manifest.Refund:
		field = "refund_id"
	}
	w.send(in, path, what, catalog.Document{field: in.reference})
}

// ourName is the gateway's name of a transfer, as its merchant has read it.
func (in *intent) ourName() string {
	for _, a := range in.answers {
		if id := transferID(a.data); id != "" {
			return id
		}
	}
	return ""
}

// send runs a merchant's request on a replica. The merchant may hang up before it has
// an answer.
func (w *world) send(in *intent, path, what string, body catalog.Document) {
	r := w.someReplica()
	op, known := w.books.catalog.Current().ByPath(path)
	if r == nil || !known {
		return
	}
	if wrong := op.Check(body); len(wrong) > 0 {
		w.violate("requests are valid", "%v", wrong)
		return
	}
	request := lifecycle.Request{
		Identity: tenants.Identity{Account: in.of.account, Mode: tenants.Live}, Operation: op, Body: maps.Clone(body),
		CallbackURL: in.of.receiver, RequestID: "request " + strconv.Itoa(w.tasks), Ticket: policy.Ticket{Limits: in.of.limits, Zone: time.UTC},
	}
	if op.Routed() && w.chance(80) { // as the policy has it at this moment
		request.Route = routes[w.rand.IntN(len(routes))]
	}
	a := answer{what: what, asked: w.steps, askedAt: w.now}
	refused := what == "create" && len(in.answers) > 0 && w.chance(10) // by admission, which looks the reference up
	name := fmt.Sprintf("%s of %s/%s/%s", what, in.of.name, in.kind, in.reference)
	unit := counted{}
	hangUp := w.begin(r, name, func(ctx context.Context) {
		told, err := r.run(ctx, in.of, request, refused, &unit)
		if err != nil {
			a.err = fault.From(err)
			return
		}
		encoded, _ := json.Marshal(told.Data) // our own
		a.data = string(encoded)
	}, func(crashed bool) {
		a.crashed, a.heard = crashed, w.steps
		w.count(r, unit, crashed)
		w.hear(in, name, a)
	})
	if w.faults && w.chance(10) {
		w.later(w.between(0, 3*time.Second), hangUp)
	}
}

// run runs a request, or where it is refused answers it as an earlier one was.
func (r *replica) run(ctx context.Context, m *merchant, request lifecycle.Request, refused bool, unit *counted) (lifecycle.Answer, error) {
	creates := request.Operation.StatusOf == "" && request.Operation.CancelOf == ""
	switch {
	case !refused && creates && m.quota > 0:
		return r.admit(ctx, m, request, unit)
	case !refused:
		return r.lifecycle.Run(ctx, request)
	}
	told, stored, err := r.lifecycle.Stored(ctx, request)
	if err == nil && !stored {
		err = fault.New(fault.RateLimited, "Too many requests.")
	}
	return told, err
}

// hear takes in an answer: a payer may pay by it, and who does not know asks again.
func (w *world) hear(in *intent, name string, a answer) {
	in.answers = append(in.answers, a)
	switch {
	case a.crashed:
	case a.err != nil:
		w.log("%s is answered %s, sent %s", name, a.err.Code, a.err.Sent)
	default:
		w.log("%s is answered %s", name, w.unnamed(a.data))
	}
	if a.what == "create" && in.kind == manifest.Collection && a.data != "" && !in.paid {
		in.paid = true
		w.willPay(in, a.data)
	}
	if in.reference == "" && strings.Contains(a.data, `"Success"`) && w.chance(50) { // the next, as soon as it was read
		w.later(w.between(0, 50*time.Millisecond), func() { w.create(in, false) })
	}
	if unsure := a.crashed || a.err != nil && a.err.Retry != fault.RetryNever; unsure && a.what == "create" && w.chance(60) {
		w.later(w.between(0, 2*time.Minute), func() { w.create(in, false) })
	}
}

// unnamed is an answer without our random ids.
func (w *world) unnamed(data string) string {
	var told map[string]any
	if json.Unmarshal([]byte(data), &told) != nil {
		return data
	}
	delete(told, "txId")
	delete(told, "checkout_url")
	encoded, _ := json.Marshal(told) // it was JSON
	return string(encoded)
}

// willPay has payers pay what a collection asks for: in time or late, something else,
// twice, or nothing.
func (w *world) willPay(in *intent, data string) {
	var told struct {
		Amount money.Amount `json:"amount"`
	}
	if json.Unmarshal([]byte(data), &told) != nil {
		return
	}
	account := w.options.Prefix + in.of.name
	pay := func(after time.Duration, amount money.Amount) {
		w.later(after, func() { w.up.pay(account, amount) })
	}
	switch n := w.rand.IntN(100); {
	case n < 50:
		pay(w.between(0, 29*time.Minute), told.Amount)
	case n < 60:
		pay(w.between(30*time.Minute, 6*time.Hour), told.Amount)
	case n < 67:
		pay(w.between(0, 29*time.Minute), told.Amount)
		pay(w.between(0, 3*time.Hour), told.Amount)
	case n < 75:
		pay(w.between(0, 2*time.Hour), 5000)
	}
}

// override has an operator decide a movement.
func (w *world) override() {
	r := w.someReplica()
	if r == nil || len(w.books.ids) == 0 {
		return
	}
	id := w.books.ids[w.rand.IntN(len(w.books.ids))]
	for range 20 { // rather one that is open
		if m, err := w.store.MovementByID(w.ctx, id); err != nil || m.State.Open() {
			break
		}
		id = w.books.ids[w.rand.IntN(len(w.books.ids))]
	}
	decision := override.Request{
		Movement: id, Operator: "operator " + strconv.Itoa(1+w.rand.IntN(2)), Outcome: movement.OverrideFailed, Reason: "phoned", Alone: w.chance(30),
	}
	switch n := w.rand.IntN(100); {
	case n < 40:
		decision.Outcome = movement.OverrideSucceeded
	case n < 60:
		decision.Outcome = movement.OverrideResubmit
	}
	w.begin(r, "override of "+w.books.name(id), func(ctx context.Context) {
		_, _ = r.overrides.Override(ctx, decision) // refused or not, the invariants hold
	}, func(bool) {})
	if !decision.Alone && w.chance(80) {
		decision.Operator = "operator 3"
		w.later(w.between(0, time.Hour), func() {
			if r := w.someReplica(); r != nil {
				w.begin(r, "confirmation of "+w.books.name(id), func(ctx context.Context) {
					_, _ = r.overrides.Override(ctx, decision)
				}, func(bool) {})
			}
		})
	}
}

// assign has an operator give a line to a collection of its account.
func (w *world) assign() {
	r, m := w.someReplica(), w.merchants[w.rand.IntN(len(w.merchants))]
	listed, err := w.store.ListLines(w.ctx, movement.LineRange{MerchantID: m.owner().MerchantID, Most: 100})
	if r == nil || err != nil || len(listed) == 0 {
		return
	}
	line := listed[w.rand.IntN(len(listed))]
	for _, id := range w.books.ids {
		to, err := w.store.MovementByID(w.ctx, id)
		if err != nil || to.Owner != m.owner() || to.Kind != manifest.Collection || !w.chance(50) {
			continue
		}
		w.begin(r, "assignment of "+line.Payment+" to "+w.books.name(id), func(ctx context.Context) {
			_, _ = r.reconciler.Assign(ctx, reconcile.Assignment{
				Account: line.Account, Payment: line.Payment, Movement: id, Operator: "operator 1", Reason: "phoned",
			})
		}, func(bool) {})
		return
	}
}

// rotate changes credentials, to the same account or to another.
func (w *world) rotate() {
	id, name := tenants.Platform, "platform"
	if n := w.rand.IntN(len(w.merchants) + 1); n < len(w.merchants) {
		id, name = w.merchants[n].account.ID(), w.merchants[n].name
	}
	suffix := ""
	if w.chance(50) {
		suffix = "2"
	}
	w.log("the credentials of %s change, to account %s", name, name+suffix)
	w.connect(id, name, 2, suffix)
}
