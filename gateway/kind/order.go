package kind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Order buys something for a merchant's balance: airtime, a token, a bill. It is
// answered as pending whatever the provider says; how it ended comes by callback and
// status.
type Order struct {
	lifecycle *lifecycle.Lifecycle
	products  Products
}

// Products finds what a request names in the list of what can be bought.
type Products interface {
	Product(ctx context.Context, r lifecycle.Request, c lifecycle.Connection) (item json.RawMessage, name string, err error)
}

// AddOrder has orders run.
func AddOrder(l *lifecycle.Lifecycle, p Products) { l.Add(manifest.Order, &Order{l, p}) }

// Draft leaves the amount to the quote.
func (k *Order) Draft(_ context.Context, r lifecycle.Request, draft *movement.Movement) error {
	return lifecycle.Named(r, draft)
}

// Prepare asks what the order costs now, at the provider and for this merchant.
func (k *Order) Prepare(ctx context.Context, r lifecycle.Request, draft *movement.Movement, c lifecycle.Connection) (remark string, err error) {
	op := r.Operation
	if !op.Quote {
		return "", nil
	}
	product, name, err := k.products.Product(ctx, r, c)
	if err != nil {
		return "", err
	}
	quoted := k.lifecycle.Providers.Quote(ctx, r.Use(), sdk.Quote{
		Operation: op.Path, RequestID: r.RequestID, Connection: c.Connection,
		Reference: draft.UpstreamReference(), Body: draft.Body(), Product: product,
	}, op.Rules.Timeout)
	if quoted.Outcome != sdk.Done {
		return "", k.lifecycle.Unanswered(ctx, op, c, failed(quoted), "what it costs")
	}
	price, err := quoted.Price.Add(lifecycle.Added(r, c.Owner).Of(name))
	if err != nil || quoted.Price <= 0 || quoted.Fee < 0 || quoted.Fee > quoted.Price || quoted.Cost <= 0 || quoted.Cost > price {
		// Sold below its cost, or no price at all: somebody has to see to it first.
		cause := fmt.Errorf("quote: price %v, fee %v, cost %v, sold for %v", quoted.Price, quoted.Fee, quoted.Cost, price)
		k.lifecycle.Log.ErrorContext(ctx, "a product has no price that can be charged", "operation", op.Path, "product", name, "error", cause)
		return "", fault.New(fault.ProductUnavailable, "This product can't be sold at the moment.").Because(cause)
	}
	if !keepable(quoted.Data) {
		return "", unpriced(errors.New("quote: its data can't be kept"))
	}
	if err := agreed(op, r.Body, quoted, price); err != nil {
		return "", err
	}
	if r.Reconsider != nil {
		if err := r.Reconsider(ctx, map[string]any{"price": int64(price)}); err != nil {
			return "", err
		}
	}
	if !quoted.Held && !quoted.Open {
		if draft.Request, err = withoutAmount(op, *draft); err != nil {
			return "", err
		}
	}
	draft.Amount, draft.Cost, draft.Quote, draft.Charge = price, quoted.Cost, quoted.Data, chargeOf(quoted, c)
	return "", nil
}

// chargeOf is how an order is paid from the balance.
func chargeOf(quoted sdk.Quoted, c lifecycle.Connection) movement.Charge {
	switch {
	case c.Owner != manifest.OwnerPlatform: // the merchant pays the provider itself
		return movement.Unpaid
	case quoted.Held:
		return movement.Held
	}
	return movement.Charged
}

// unpriced is the error of a quote that can't be used.
func unpriced(cause error) error {
	return fault.New(fault.ProviderUnavailable, "The provider could not tell the price. Nothing was sent.").Because(cause)
}

// agreed compares what the caller has given as the amount with the quote: where it is
// the caller's to choose with what is bought, else with the price if it is held.
func agreed(op *catalog.Operation, body catalog.Document, quoted sdk.Quoted, price money.Amount) error {
	switch {
	case quoted.Open:
		return chosen(op, body, quoted)
	case quoted.Held:
		return expected(op, body, price)
	}
	return nil
}

// chosen compares the amount that the caller has chosen with what is bought: the
// provider's price without its fee, and without the markup. Without an amount the
// order would be kept as one of a product that has a price of its own.
func chosen(op *catalog.Operation, body catalog.Document, quoted sdk.Quoted) error {
	if op.AmountField() == "" {
		return unpriced(errors.New("quote: leaves the amount to the caller, and the operation has none"))
	}
	if !op.HasAmount(body) {
		return fault.Invalid(op.AmountField(), "is required for this product: it is the amount")
	}
	given, err := op.AmountOf(body)
	if err != nil {
		return err
	}
	if given != quoted.Price-quoted.Fee {
		return unpriced(fmt.Errorf("quote: asked for %v, told %v with a fee of %v in it", given, quoted.Price, quoted.Fee))
	}
	return nil
}

// expected compares what the caller expects to pay with the price.
func expected(op *catalog.Operation, body catalog.Document, price money.Amount) error {
	field := op.AmountField()
	if !op.HasAmount(body) {
		return fault.Invalid(field, "is required for this product; it is "+price.String()+" now")
	}
	given, err := op.AmountOf(body)
	if err != nil {
		return err
	}
	if given != price {
		return fault.Invalid(field, "must be "+price.String()+", which is what this costs now")
	}
	return nil
}

// Reserve takes the price from the balance, which tops itself up in test mode.
func (k *Order) Reserve(ctx context.Context, _ *catalog.Operation, draft movement.Movement, reserve lifecycle.Reserving) (movement.Movement, bool, error) {
	m, ours, err := reserve(ctx, draft)
	if errors.Is(err, movement.ErrInsufficient) && k.lifecycle.ToppedUp(ctx, draft.Owner) {
		m, ours, err = reserve(ctx, draft)
	}
	if errors.Is(err, movement.ErrInsufficient) {
		err = fault.Newf(fault.InsufficientBalance, "The balance is too low: this costs %s.", draft.Amount).WithReference(draft.Reference)
	}
	return m, ours, err
}

// withoutAmount is a request without its amount. So is the order of a product kept
// that has a price of its own: the amount means nothing there, and another one under
// the same reference makes no other request.
func withoutAmount(op *catalog.Operation, m movement.Movement) (json.RawMessage, error) {
	if m.Field(op.AmountField()) == nil {
		return m.Request, nil
	}
	var body catalog.Document
	decoder := json.NewDecoder(bytes.NewReader(m.Body()))
	decoder.UseNumber()
	if err := decoder.Decode(&body); err != nil {
		return nil, err
	}
	delete(body, op.AmountField())
	return op.Canonical(body)
}

// Kept is the request without its amount where the earlier one was kept so.
func (k *Order) Kept(op *catalog.Operation, draft, earlier movement.Movement) json.RawMessage {
	if op.AmountField() == "" || earlier.Field(op.AmountField()) != nil {
		return draft.Request
	}
	if request, err := withoutAmount(op, draft); err == nil {
		return request
	}
	return draft.Request
}

// Answer is that the order is pending, whatever has become of it.
func (k *Order) Answer(op *catalog.Operation, m movement.Movement) (lifecycle.Answer, error) {
	pending := movement.Movement{State: movement.Pending}
	answer := lifecycle.Answer{Data: m.Answer, Message: lifecycle.Message(op.Rules, pending)}
	if m.Answer == nil {
		answer.Data = (&lifecycle.Object{}).SetText(op.Rules.ReferenceField, m.Reference).Echo(op, m).
			SetText("status", op.Rules.Word(movement.Pending)).JSON()
	}
	return answer, nil
}

// Describe is the state of an order, at the top too, with those of its reports that
// the status shows and the provider has given.
func (k *Order) Describe(asked, op *catalog.Operation, m movement.Movement) lifecycle.Answer {
	rules, reports := op.Rules, lifecycle.Reports(m)
	o := (&lifecycle.Object{}).SetText(rules.ReferenceField, m.Reference).Echo(asked, m).SetText("status", rules.Status(m))
	for _, name := range rules.Reports {
		if asked.Answers(name) && reports[name] != "" {
			o.SetText(name, reports[name])
		}
	}
	return lifecycle.Answer{
		Data: o.Returned(m).Results(asked, op, m.Result).JSON(), Status: rules.Status(m), Message: lifecycle.Message(rules, m),
	}
}

// Event is what the contract shows, and no other field but when it was taken back.
func (k *Order) Event(op *catalog.Operation, m movement.Movement, at time.Time) *lifecycle.Object {
	rules := op.Rules
	return (&lifecycle.Object{}).SetText(rules.ReferenceField, m.Reference).Echo(op.Status, m).
		SetText("status", rules.Status(m)).SetText("sn", lifecycle.Reports(m)["sn"]).SetText("message", lifecycle.Message(rules, m)).
		SetTime("timestamp", at).Returned(m).Results(op.Status, op, m.Result)
}
