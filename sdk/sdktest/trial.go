package sdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
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

// trial is one check under way.
type trial struct {
	*testing.T
	suite    Suite
	manifest *manifest.Manifest
	plugin   *process
	upstream Upstream
}

func newTrial(t *testing.T, s Suite, m *manifest.Manifest) *trial {
	t.Helper()
	upstream := s.Open(t)
	return &trial{T: t, suite: s, manifest: m, plugin: startProcess(t, s.Command), upstream: upstream}
}

// order is one movement that a check asks for, and is then looked up.
type order struct {
	example Example
	call    sdk.Call
	noQuote *sdk.Result // why there is no price, and so no call
	priced  bool        // what it moves is what was quoted
}

// order makes a call of an example for merchant A in test mode.
func (tr *trial) order(e Example) order {
	tr.Helper()
	return tr.orderFor(e, tr.upstream.Connect("A", "test"))
}

func (tr *trial) orderFor(e Example, c sdk.Connection) order {
	tr.Helper()
	o := order{example: e, call: sdk.Call{
		Operation: e.Operation, RequestID: uuid.NewString(), Connection: c, Reference: uuid.NewString(),
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

// amount reads the amount of an example where the manifest says that it is.
func (tr *trial) amount(e Example) money.Amount {
	tr.Helper()
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
	tr.Helper()
	if err := json.Unmarshal(document, &fields); err != nil {
		tr.Fatal(err)
	}
	return fields
}

// send makes the call with time enough. A broken transport fails the test.
func (tr *trial) send(o order) sdk.Result {
	tr.Helper()
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
	tr.Helper()
	r := tr.send(o)
	if r.Outcome != o.example.Want {
		tr.Fatalf("outcome %d, want %d: %+v", r.Outcome, o.example.Want, r)
	}
	return r
}

// find looks a movement up, with the provider's reference or without.
func (tr *trial) find(o order, providerReference string) sdk.StatusUpdate {
	tr.Helper()
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
		Cost: o.call.Cost, Quote: o.call.Quote,
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
	tr.Helper()
	want := Movement{
		Reference: o.call.Reference, Amount: o.moved(),
		Merchant: o.call.Connection.MerchantID, Mode: o.call.Connection.Mode,
	}
	if got := tr.upstream.Movements(o.call.Reference); len(got) != 1 || got[0] != want {
		tr.Errorf("the upstream has %+v, want exactly %+v", got, want)
	}
}

func (tr *trial) mustNotExist(o order) {
	tr.Helper()
	if got := tr.upstream.Movements(o.call.Reference); len(got) != 0 {
		tr.Errorf("the upstream has %+v, want nothing", got)
	}
}

// mustBeFound insists that a lookup knows the movement as it was ordered.
func (tr *trial) mustBeFound(o order, f sdk.StatusUpdate) {
	tr.Helper()
	switch f.Status {
	case sdk.StatusPending, sdk.StatusDone:
	case sdk.StatusUnknown, sdk.StatusNotFound, sdk.StatusFailed, sdk.StatusExpired:
		tr.Fatalf("status %d of a movement that exists: %+v", f.Status, f)
	}
	named := f.ProviderReference != "" || tr.isOrder(o) // an order may have our name alone
	known := f.Amount == o.moved() || f.Amount == 0 && tr.isOrder(o)
	if f.Reference != o.call.Reference || !known || f.Currency != "IDR" || !named {
		tr.Errorf("found %+v, want reference %s, amount %d, IDR and a provider reference", f, o.call.Reference, o.moved())
	}
}

// mustFit insists that the data is what the manifest declares.
func (tr *trial) mustFit(e Example, data json.RawMessage) {
	tr.Helper()
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
