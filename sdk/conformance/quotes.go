package conformance

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// quote asks what an order or a transfer costs, as the gateway does before the
// reservation, and gives the call what it needs of the answer.
func (tr *trial) quote(op manifest.Operation, o *order) {
	q := sdk.Quote{
		Operation: o.call.Operation, RequestID: o.call.RequestID, Connection: o.call.Connection,
		Reference: o.call.Reference, Body: o.call.Body, Product: tr.product(op, o.call),
	}
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	quoted, err := tr.plugin.Quote(ctx, q)
	if err != nil {
		tr.Fatalf("the quote broke the transport: %v", err)
	}
	if quoted.Outcome != sdk.Done {
		o.noQuote = &sdk.Result{Outcome: quoted.Outcome, Blame: quoted.Blame, Refusal: quoted.Refusal, Detail: quoted.Detail}
		return
	}
	if quoted.Fee < 0 || !json.Valid(quoted.Data) || !fits(op, o.call.Amount, quoted) {
		tr.Fatalf("quoted %+v, want price, cost and data", quoted)
	}
	o.call.Cost, o.call.Quote, o.priced = quoted.Cost, quoted.Data, op.Kind == manifest.Order
}

// fits reports whether a quote is one of its kind. Of an order the fee is a part
// of the price; of a transfer the price is its amount, and the fee comes beside
// it, where the upstream names one.
func fits(op manifest.Operation, amount money.Amount, quoted sdk.Quoted) bool {
	if op.Kind == manifest.Transfer {
		return quoted.Price == amount && (quoted.Cost == 0 || quoted.Cost >= amount)
	}
	return quoted.Price > 0 && quoted.Cost > 0 && quoted.Fee <= quoted.Price
}

// product finds the item of the product list that a body names.
func (tr *trial) product(op manifest.Operation, call sdk.Call) json.RawMessage {
	if op.Product == nil {
		return nil
	}
	name := string(tr.fields(call.Body)[op.Product.RequestField()])
	call.Operation, call.Reference, call.RequestID, call.Body = op.Product.List, "", uuid.NewString(), json.RawMessage(`{}`)
	listed := tr.send(order{call: call})
	var items []json.RawMessage
	if err := json.Unmarshal(listed.Data, &items); err != nil || listed.Outcome != sdk.Done {
		tr.Fatalf("no list of products: %+v, %v", listed, err)
	}
	for _, item := range items {
		if string(tr.fields(item)[op.Product.KeyField()]) == name {
			return item
		}
	}
	tr.Fatalf("the list has no product %s", name)
	return nil
}

// resubmits reports whether a lookup is the same request again, which does what
// was asked where the first one never arrived.
func (tr *trial) resubmits() bool { return tr.manifest.Lookup == manifest.LookupResubmit }

func (tr *trial) isOrder(o order) bool {
	op, _ := tr.manifest.Operation(o.call.Operation)
	return op.Kind == manifest.Order
}

// checkQuote: a price is answered as often as it is asked for, and nothing is
// bought by asking, whatever goes wrong.
func checkQuote(tr *trial, e Example) {
	op, _ := tr.manifest.Operation(e.Operation)
	if !op.Quote {
		tr.Skip("this operation has no quote")
	}
	a := tr.connect("A", "test")
	var requests int
	for range 2 {
		a.renew()
		before := a.requests()
		o := tr.orderFor(e, a)
		requests = a.requests() - before
		if o.noQuote != nil {
			tr.Fatalf("no quote: %+v", *o.noQuote)
		}
		tr.mustNotExist(o)
	}
	listed := 0
	if op.Product != nil {
		a.renew()
		before := a.requests()
		tr.product(op, sdk.Call{Connection: a.Connection, Body: e.Body})
		listed = a.requests() - before
	}
	if requests == listed {
		return // the list, which the gateway asks for, has all that is needed
	}
	tr.each(a, requests, func(f fault, n int, where string) {
		if n <= listed {
			return
		}
		a.renew()
		a.arm(f, n)
		before := a.requests()
		o := tr.orderFor(e, a)
		switch {
		case !a.calm():
		case o.noQuote == nil && a.requests()-before <= requests:
			tr.Errorf("%s: quoted all the same: %+v", where, o.call)
		case o.noQuote != nil && o.noQuote.Outcome == sdk.Refused:
			tr.Errorf("%s: a fault is no refusal: %+v", where, *o.noQuote)
		}
		tr.mustNotExist(o)
	})
}
