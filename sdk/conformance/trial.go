package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	patience = 20 * time.Second        // for what should work
	hurry    = 1500 * time.Millisecond // for what should run out of time
)

// trial is one case under way: its accounts, its proxies, and what it found.
type trial struct {
	suite    *Suite
	manifest *manifest.Manifest
	plugin   client
	name     string // in the names of its merchants
	ctx      context.Context

	mu       sync.Mutex
	failed   bool
	skipped  bool
	words    []string
	accounts map[string]*account
	ends     []func()
}

// over ends a case from inside.
type over struct{}

// Context ends with the case.
func (tr *trial) Context() context.Context { return tr.ctx }

// Errorf says that the plugin failed; the case goes on.
func (tr *trial) Errorf(format string, args ...any) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.failed = true
	tr.words = append(tr.words, fmt.Sprintf(format, args...))
}

// Error is Errorf without a format.
func (tr *trial) Error(args ...any) { tr.Errorf("%s", fmt.Sprint(args...)) }

// Fatalf says that the plugin failed, and ends the case.
func (tr *trial) Fatalf(format string, args ...any) {
	tr.Errorf(format, args...)
	panic(over{})
}

// Fatal is Fatalf without a format.
func (tr *trial) Fatal(args ...any) { tr.Fatalf("%s", fmt.Sprint(args...)) }

// Skip ends a case that proves nothing, and says why. What was found before counts.
func (tr *trial) Skip(why string) {
	tr.mu.Lock()
	if !tr.failed {
		tr.skipped, tr.words = true, []string{why}
	}
	tr.mu.Unlock()
	panic(over{})
}

// unless ends the case where the simulator's door failed; where it has no such order,
// nothing is proven.
func (tr *trial) unless(err error, orders string) {
	if unable(err) {
		tr.Skip("the simulator does not " + orders + ": " + err.Error())
	}
	if err != nil {
		tr.Fatal(err)
	}
}

func (tr *trial) at(end func()) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.ends = append(tr.ends, end)
}

func (tr *trial) close() {
	for _, end := range slices.Backward(tr.ends) {
		end()
	}
}

// own gives the trial a process of its own.
func (tr *trial) own() {
	p, err := tr.suite.start()
	if err != nil {
		tr.Fatal(err)
	}
	tr.at(p.end)
	tr.plugin.process = p
}

// account is an account of a merchant as the plugin gets to see it: the upstream's own,
// behind a proxy of this trial.
type account struct {
	sdk.Connection
	*proxy
	id       string // of its movements
	upstream string // the door's name of it
	mail     *mailbox
}

// connect gives a merchant's account in a mode: for the same names the same, for others
// another. Trials share it at the upstream, so what is asked about the account as a
// whole belongs to one that [trial.open] opens.
func (tr *trial) connect(merchant, mode string) *account {
	return tr.account(merchant, merchant, mode, 1)
}

// open gives an account that no other trial has.
func (tr *trial) open(merchant, mode string) *account {
	return tr.account(merchant, tr.name+"-"+merchant, mode, 1)
}

func (tr *trial) account(merchant, upstreams, mode string, version int64) *account {
	key := fmt.Sprint(merchant, " ", upstreams, "/", mode, "/", version)
	tr.mu.Lock()
	known := tr.accounts[key]
	tr.mu.Unlock()
	if known != nil {
		return known
	}
	o, box, err := tr.suite.open(tr.ctx, upstreams, mode, version)
	if err != nil {
		tr.unless(err, "open accounts")
	}
	p, err := openProxy(tr.suite.simulator.url, tr.suite.doors)
	if err != nil {
		tr.Fatal(err)
	}
	tr.at(p.close)
	a := &account{proxy: p, id: o.id, upstream: o.Account, mail: box, Connection: sdk.Connection{
		MerchantID: tr.name + "-" + merchant, Mode: mode, Version: version,
		Credentials: bytes.ReplaceAll(o.Credentials, []byte(tr.suite.simulator.url), []byte(p.server.URL)),
	}}
	tr.suite.secrets.learn(a.Credentials)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.accounts[key] = a
	return a
}

// renew makes the plugin begin anew with an account: it has the same credentials under
// a higher version.
func (a *account) renew() { a.Version++ }

// movements are what the upstream did under a reference.
func (tr *trial) movements(reference string) []movement {
	made, err := tr.suite.simulator.movements(tr.ctx, reference)
	if err != nil {
		tr.Fatal(err)
	}
	return made
}

// order is one movement that a check asks for, and is then looked up.
type order struct {
	example Example
	account *account
	call    sdk.Call
	noQuote *sdk.Result // why there is no price, and so no call
	priced  bool        // what it moves is what was quoted
}

// order makes a call of an example for merchant A in test mode.
func (tr *trial) order(e Example) order {
	return tr.orderFor(e, tr.connect("A", "test"))
}

func (tr *trial) orderFor(e Example, a *account) order {
	o := order{example: e, account: a, call: sdk.Call{
		Operation: e.Operation, RequestID: uuid.NewString(), Connection: a.Connection, Reference: newReference(),
		Amount: tr.amount(e), Body: e.Body, SendBy: time.Now().Add(patience),
	}}
	switch op, _ := tr.manifest.Operation(e.Operation); {
	case op.Quote:
		tr.quote(op, &o)
	case op.Product != nil:
		o.call.Product = tr.product(op, o.call)
	}
	return o
}

// fresh is an order whose call the plugin begins anew with: what its quote has prepared,
// such as a token, is prepared again.
func (tr *trial) fresh(e Example, a *account) order {
	o := tr.orderFor(e, a)
	a.renew()
	o.call.Connection = a.Connection
	return o
}

// amount reads the amount of an example where the manifest says that it is.
func (tr *trial) amount(e Example) money.Amount {
	op, _ := tr.manifest.Operation(e.Operation)
	if op.AmountField() == "" {
		return 0
	}
	fields := tr.fields(e.Body)
	if op.Quote && fields[op.AmountField()] == nil {
		return 0 // the price is what counts
	}
	amount, err := money.Parse(string(fields[op.AmountField()]))
	if err != nil {
		tr.Fatal(err)
	}
	return amount
}

func (tr *trial) fields(document json.RawMessage) (fields map[string]json.RawMessage) {
	if err := json.Unmarshal(document, &fields); err != nil {
		tr.Fatal(err)
	}
	return fields
}

// send makes the call with time enough. A broken transport fails the test.
func (tr *trial) send(o order) sdk.Result {
	if o.noQuote != nil {
		return *o.noQuote
	}
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	result, err := tr.plugin.Call(ctx, o.call)
	if err != nil {
		tr.Fatalf("the call broke the transport: %v", err)
	}
	return result
}

// sendAccepted makes the call and insists on the example's good outcome.
func (tr *trial) sendAccepted(o order) sdk.Result {
	r := tr.send(o)
	if r.Outcome != o.example.want() {
		tr.Fatalf("outcome %v, want %v: %+v", r.Outcome, o.example.want(), shown(r))
	}
	return r
}

// find looks a movement up, with the provider's reference or without.
func (tr *trial) find(o order, providerReference string) sdk.StatusUpdate {
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	update, err := tr.plugin.Lookup(ctx, tr.lookup(o, providerReference))
	if err != nil {
		tr.Fatalf("the lookup broke the transport: %v", err)
	}
	return update
}

// lookup asks for a movement. One that is the same request again is bounded as
// a call is.
func (tr *trial) lookup(o order, providerReference string) sdk.Lookup {
	l := sdk.Lookup{
		Operation: o.call.Operation, RequestID: uuid.NewString(), Connection: o.call.Connection,
		Reference: o.call.Reference, ProviderReference: providerReference,
		Amount: o.call.Amount, Body: o.call.Body, SentAt: time.Now().Add(-time.Second),
		Cost: o.call.Cost, Quote: o.call.Quote, Payment: o.call.Payment,
	}
	if tr.resubmits() {
		l.SendBy = o.call.SendBy
	}
	return l
}

// moved is what a movement is at the upstream: what was ordered, or where that
// has a price, what was quoted.
func (o order) moved() money.Amount {
	if o.priced {
		return o.call.Cost
	}
	return o.call.Amount
}

// mustExist insists that the upstream did exactly what was ordered, once.
func (tr *trial) mustExist(o order) {
	if o.example.PayerFirst {
		return // nobody has paid yet
	}
	got := tr.movements(o.call.Reference)
	if len(got) != 1 || got[0].Amount != o.moved() || got[0].Account != o.account.id {
		tr.Errorf("the upstream has %+v, want exactly one of %d in the account %s", got, o.moved(), o.account.id)
	}
}

func (tr *trial) mustNotExist(o order) {
	if got := tr.movements(o.call.Reference); len(got) != 0 {
		tr.Errorf("the upstream has %+v, want nothing", got)
	}
}

// mustBeFound insists that a lookup knows the movement as it was ordered.
func (tr *trial) mustBeFound(o order, f sdk.StatusUpdate) {
	if o.example.PayerFirst && (f.Status == sdk.StatusNotFound || f.Status == sdk.StatusUnknown) {
		return
	}
	switch f.Status {
	case sdk.StatusPending, sdk.StatusDone:
	case sdk.StatusUnknown, sdk.StatusNotFound, sdk.StatusFailed, sdk.StatusExpired:
		tr.Fatalf("status %v of a movement that exists: %+v", f.Status, f)
	}
	named := f.ProviderReference != "" || tr.isOrder(o) // an order may have our name alone
	known := f.Amount == o.moved() || f.Amount == 0 && tr.isOrder(o)
	if f.Reference != o.call.Reference || !known || f.Currency != "IDR" || !named {
		tr.Errorf("found %+v, want reference %s, amount %d, IDR and a provider reference", f, o.call.Reference, o.moved())
	}
}

// mustFit insists that the data is what the manifest declares.
func (tr *trial) mustFit(e Example, data json.RawMessage) {
	op, _ := tr.manifest.Operation(e.Operation)
	if len(op.Result) == 0 {
		return
	}
	if err := validate("result", op.Result, data); err != nil {
		tr.Errorf("the result is not as declared: %v", err)
	}
}

func validate(name string, schema, document json.RawMessage) error {
	compiled, err := manifest.CompileSchema(name, schema)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return compiled.Validate(value)
}

// newReference has the form that the gateway's own references have.
func newReference() string {
	a, b := uuid.New(), uuid.New()
	return fmt.Sprintf("%x%x", a[:], b[:4])
}

// shown is a call's answer as it is shown: its data as text.
func shown(r sdk.Result) string {
	data := r.Data
	r.Data = nil
	return fmt.Sprintf("%+v data %s", r, data)
}
