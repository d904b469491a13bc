package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// lookEvery is how often something is looked up that is bound to come.
const lookEvery = 50 * time.Millisecond

// refundOperation is the operation that gives back payments of an example.
func (tr *trial) refundOperation(e Example) manifest.Operation {
	for _, op := range tr.manifest.Operations {
		if op.Kind == manifest.Refund && op.RefundOf == e.Operation {
			return op
		}
	}
	tr.Skip("the provider takes no refunds of it")
	return manifest.Operation{}
}

// paidPayment is a payment that was paid, and what the upstream calls it.
type paidPayment struct {
	order

	paid              money.Amount
	providerReference string
}

// payment makes a payment of an example and has it paid.
func (tr *trial) payment(e Example, a *account) paidPayment {
	o := tr.orderFor(e, a)
	r := tr.sendAccepted(o)
	paid, err := tr.pay(r, 0)
	tr.unless(err, "let a payer pay this example")
	f := tr.awaited(o, r.ProviderReference)
	if f.Status != sdk.StatusDone {
		tr.Fatalf("a payment was paid, and a lookup says %+v", f)
	}
	return paidPayment{o, paid, cmp.Or(f.ProviderReference, r.ProviderReference)}
}

// awaited looks a movement up until it has ended, or patience has.
func (tr *trial) awaited(o order, providerReference string) sdk.StatusUpdate {
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	for {
		f := tr.find(o, providerReference)
		if f.Status != sdk.StatusPending {
			return f
		}
		select {
		case <-ctx.Done():
			return f
		case <-time.After(lookEvery):
		}
	}
}

// refund is a call that gives so much of a payment back. Its body is that of the example
// where there is one.
func (tr *trial) refund(op manifest.Operation, p paidPayment, amount money.Amount) order {
	all := tr.suite.examples.Examples
	body := json.RawMessage(`{}`)
	if i := slices.IndexFunc(all, func(e Example) bool { return e.Operation == op.Path }); i >= 0 {
		body = all[i].Body
	}
	body, err := merged(body, map[string]json.RawMessage{
		op.PaymentField(): json.RawMessage(`"INV/1"`), op.ReferenceField(): json.RawMessage(`"R/1"`), op.AmountField(): json.RawMessage(amount.String()),
	})
	if err != nil {
		tr.Fatal(err)
	}
	if err := validate("request", op.Request, body); err != nil {
		tr.Fatalf("no refund can be made without an example of %s: %v", op.Path, err)
	}
	return order{example: Example{Operation: op.Path}, account: p.account, call: sdk.Call{
		Operation: op.Path, RequestID: uuid.NewString(), Connection: p.account.Connection, Reference: newReference(),
		Amount: amount, Body: body, SendBy: time.Now().Add(patience),
		Payment: sdk.Payment{Reference: p.call.Reference, ProviderReference: p.providerReference},
	}}
}

// checkRefunds: a part of a paid payment is given back, once, and no more than is left. An
// upstream that knows no parts gives all back. One that gives none of the example's
// payments back has refused, and has given nothing.
func checkRefunds(tr *trial, e Example) {
	op := tr.refundOperation(e)
	p := tr.payment(e, tr.open("A", "test"))
	tr.mustBeDeclined(p, tr.refund(op, p, p.paid+1), "more than was paid")
	late := tr.refund(op, p, p.paid)
	late.call.SendBy = time.Now().Add(-time.Second)
	before := p.account.requests()
	if r := tr.send(late); r.Outcome != sdk.NotSent || p.account.requests() != before {
		tr.Errorf("after send_by %d requests reached the upstream, and the plugin says %s", p.account.requests()-before, shown(r))
	}
	tr.mustHaveGivenBack(p)

	o := tr.refund(op, p, max(p.paid/2, 1))
	first := tr.send(o)
	if first.Outcome == sdk.Refused {
		o = tr.refund(op, p, p.paid)
		if first = tr.send(o); first.Outcome == sdk.Refused {
			tr.mustHaveGivenBack(p)
			tr.Skip("the provider gives none of these payments back: " + first.Refusal.Message)
		}
	}
	if !accepted(first.Outcome) {
		tr.Fatalf("a refund of a paid payment: %s", shown(first))
	}
	if err := validate("result", op.Result, first.Data); len(op.Result) > 0 && err != nil {
		tr.Errorf("the result is not as declared: %v", err)
	}
	tr.mustBeRefunded(o, first.ProviderReference)
	tr.mustHaveGivenBack(p, o)

	tr.mustBeTheSame(o, first)
	tr.mustHaveGivenBack(p, o)
	tr.own() // this process remembers nothing of the first call
	tr.mustBeTheSame(o, first)
	tr.mustHaveGivenBack(p, o)
	tr.mustBeDeclined(p, tr.refund(op, p, p.paid-o.call.Amount+1), "more than is left")
	tr.mustHaveGivenBack(p, o)
}

// mustBeTheSame insists that a refund that is called again is the one that was made.
func (tr *trial) mustBeTheSame(o order, first sdk.Result) {
	again := tr.send(o)
	if again.Outcome == sdk.NotSent || again.Outcome == sdk.Refused || accepted(again.Outcome) && again.ProviderReference != first.ProviderReference {
		tr.Errorf("called again with the reference of %q the plugin says %s", first.ProviderReference, shown(again))
	}
}

// mustBeDeclined insists that a refund is refused, and that a lookup knows of none.
func (tr *trial) mustBeDeclined(p paidPayment, o order, what string) {
	if r := tr.send(o); r.Outcome != sdk.Refused || r.Refusal.Message == "" {
		tr.Errorf("a refund of %s: %s, want refused with a message", what, shown(r))
	}
	if f := tr.find(o, ""); f.Status != sdk.StatusNotFound && f.Status != sdk.StatusFailed {
		tr.Errorf("a refund of %s of %d was refused, and a lookup says %+v", what, p.paid, f)
	}
}

// mustBeRefunded insists that a refund has succeeded, by its reference and by the id that
// the call has told.
func (tr *trial) mustBeRefunded(o order, providerReference string) {
	for _, known := range slices.Compact([]string{providerReference, ""}) {
		f := tr.awaited(o, known)
		if f.Status != sdk.StatusDone || f.Reference != o.call.Reference || f.Amount != o.call.Amount || f.Currency != "IDR" ||
			providerReference != "" && f.ProviderReference != providerReference {
			tr.Errorf("looked up by %q: %+v, want done, reference %s, amount %d and IDR", known, f, o.call.Reference, o.call.Amount)
		}
	}
}

// mustHaveGivenBack looks a paid payment up, of which exactly these refunds went back.
func (tr *trial) mustHaveGivenBack(p paidPayment, refunds ...order) {
	f := tr.find(p.order, p.providerReference)
	if f.Status != sdk.StatusDone {
		tr.Errorf("a paid payment is %v, want done: what went back is told beside", f.Status)
	}
	gone := slices.DeleteFunc(slices.Clone(f.Returns), func(r sdk.Return) bool { return r.Undone })
	if len(gone) != len(refunds) {
		tr.Errorf("%d refunds were made, and as returns are told %+v", len(refunds), f.Returns)
		return
	}
	for _, o := range refunds {
		if !slices.ContainsFunc(gone, func(r sdk.Return) bool {
			return r.Reference == o.call.Reference && r.Amount == o.call.Amount && r.Sort == sdk.ReturnRefund
		}) {
			tr.Errorf("the refund of %d with the reference %s is told as %+v", o.call.Amount, o.call.Reference, f.Returns)
		}
	}
}

// checkRefundFaults lets each request of a refund go wrong, each time of another payment,
// and then each request of a lookup.
func checkRefundFaults(tr *trial, e Example) {
	op := tr.refundOperation(e)
	a := tr.open("A", "test")
	begin := func() (paidPayment, order) {
		p := tr.payment(e, a)
		a.renew() // what a call prepares, such as a token, is prepared again
		o := tr.refund(op, p, p.paid)
		return p, o
	}
	_, o := begin()
	before := a.requests()
	sound := tr.send(o)
	if sound.Outcome == sdk.Refused {
		tr.Skip("the provider gives none of these payments back: " + sound.Refusal.Message)
	}
	requests := a.requests() - before
	tr.each(a, requests, func(f fault, n int, where string) {
		p, o := begin()
		a.arm(f, n)
		r := tr.send(o)
		if !a.calm() {
			return
		}
		tr.judgeRefund(p, o, r, f, where)
	})
	tr.awaited(o, sound.ProviderReference)
	tr.lookupsUnderFaults(a, o, sound.ProviderReference)
}

// judgeRefund compares what a refund said under a fault with a lookup, and both with what
// the payment says went back.
func (tr *trial) judgeRefund(p paidPayment, o order, r sdk.Result, f fault, where string) {
	found := tr.awaited(o, "")
	made := found.Status == sdk.StatusDone
	switch {
	case r.Outcome == sdk.Refused:
		tr.Errorf("%s: a fault is no refusal: %s", where, shown(r))
	case r.Outcome == sdk.NotSent && found.Status != sdk.StatusNotFound:
		tr.Errorf("%s: said not to be sent, and a lookup says %+v", where, found)
	case accepted(r.Outcome) && !made:
		tr.Errorf("%s: accepted, and a lookup says %+v", where, found)
	case !accepted(r.Outcome) && !f.blames(r.Blame):
		tr.Errorf("%s: blame %d is not whose fault it is: %s", where, r.Blame, shown(r))
	}
	switch {
	case made:
		tr.mustHaveGivenBack(p, o)
	case found.Status == sdk.StatusNotFound:
		tr.mustHaveGivenBack(p)
	default:
		tr.Errorf("%s: a lookup says %+v, want done or not found", where, found)
	}
}
