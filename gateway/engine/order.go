package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// price completes the draft of an order with what it costs, as the provider
// tells it now. Its error is one from before the money call: nothing was sent.
func (e *Engine) price(ctx context.Context, r Request, draft *movement.Movement, c connection) error {
	op := r.Operation
	product, name, err := e.product(ctx, r, c)
	if err != nil {
		return err
	}
	quoted := e.Providers.Quote(ctx, op.Provider, sdk.Quote{
		Operation: op.Path, RequestID: r.RequestID, Connection: c.Connection,
		Reference: draft.UpstreamReference(), Body: draft.Body(), Product: product,
	}, time.Duration(op.Timeout))
	if quoted.Outcome != sdk.Done {
		return e.unanswered(ctx, op, c, sdk.Result{
			Outcome: quoted.Outcome, Blame: quoted.Blame, Refusal: quoted.Refusal, Detail: quoted.Detail,
		})
	}
	price, err := quoted.Price.Add(added(r, c)(name))
	if err != nil || quoted.Price <= 0 || quoted.Fee < 0 || quoted.Fee > quoted.Price || quoted.Cost <= 0 || quoted.Cost > price {
		// Sold below its cost, or no price at all: somebody has to see to it first.
		cause := fmt.Errorf("quote: price %v, fee %v, cost %v, sold for %v", quoted.Price, quoted.Fee, quoted.Cost, price)
		e.Log.ErrorContext(ctx, "a product has no price that can be charged", "operation", op.Path, "product", name, "error", cause)
		return fault.New(fault.ProductUnavailable, "This product can't be sold at the moment.").Because(cause)
	}
	if !keepable(quoted.Data) {
		return unpriced(errors.New("quote: its data can't be kept"))
	}
	if err := agreed(op, r.Body, quoted, price); err != nil {
		return err
	}
	if r.Reconsider != nil {
		if err := r.Reconsider(ctx, map[string]any{"price": int64(price)}); err != nil {
			return err
		}
	}
	if !quoted.Held && !quoted.Open {
		if draft.Request, err = withoutAmount(op, *draft); err != nil {
			return err
		}
	}
	draft.Amount, draft.Cost, draft.Quote = price, quoted.Cost, quoted.Data
	switch {
	case c.owner != manifest.OwnerPlatform: // the merchant pays the provider itself
	case quoted.Held:
		draft.Charge = movement.Held
	default:
		draft.Charge = movement.Charged
	}
	return nil
}

// withoutAmount is a request without its amount. So is the order of a product kept
// that has a price of its own: the amount means nothing there, and another one
// under the same reference makes no other request.
func withoutAmount(op *catalog.Operation, m movement.Movement) (json.RawMessage, error) {
	body := catalog.Document{}
	for name, value := range m.Fields() {
		if name != op.AmountField() {
			body[name] = value
		}
	}
	return op.Canonical(body)
}

// asKept is a request as it would have been kept where an earlier one under
// its reference was kept without its amount.
func asKept(op *catalog.Operation, draft, earlier movement.Movement) movement.Movement {
	if op.Kind != manifest.Order || op.AmountField() == "" || earlier.Fields()[op.AmountField()] != nil {
		return draft
	}
	if request, err := withoutAmount(op, draft); err == nil {
		draft.Request = request
	}
	return draft
}

// longestQuote bounds the data of a quote, in bytes.
const longestQuote = 16 << 10

// keepable tells whether the data of a quote can be kept and given back.
func keepable(data json.RawMessage) bool {
	return len(data) == 0 || len(data) <= longestQuote && utf8.Valid(data) && json.Valid(data)
}

// added is what this merchant pays beside the provider's price: nothing where it
// pays the provider itself.
func added(r Request, c connection) catalog.Added {
	if c.owner != manifest.OwnerPlatform {
		return func(string) money.Amount { return 0 }
	}
	return r.Limits.Markup.Of
}

// product finds what a request names in the list of what can be bought. The list
// is shared and some minutes old; what has changed since, the provider refuses.
func (e *Engine) product(ctx context.Context, r Request, c connection) (item json.RawMessage, name string, err error) {
	op := r.Operation
	if op.Product == nil {
		return nil, "", nil
	}
	name, _ = r.Body[op.Product.RequestField()].(string)
	list, err := e.listing(ctx, r, op.Products, nil, c, op.Product.KeyField())
	if err != nil {
		return nil, "", unlisted(err)
	}
	item, listed := list.Find(name)
	if !listed {
		return nil, "", fault.New(fault.ProductUnavailable, "There is no such product.")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(item, &fields); err != nil || string(fields[op.Product.AvailableField()]) != "true" {
		return nil, "", fault.New(fault.ProductUnavailable, "This product is switched off at the moment.")
	}
	return item, name, nil
}

// unlisted is the error of a request whose list of products can't be had: unlike
// that of the list itself, nothing of it may have been sent.
func unlisted(err error) error {
	return fault.New(fault.ProviderUnavailable, "The provider's products can't be read at the moment. Nothing was sent.").Because(err)
}

// unpriced is the error of a quote that can't be used.
func unpriced(cause error) error {
	return fault.New(fault.ProviderUnavailable, "The provider could not tell the price. Nothing was sent.").Because(cause)
}

// agreed compares what the caller has given as the amount with the quote: where
// it is the caller's to choose with what is bought, else with the price if it is held.
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

// firstWord settles what the provider said to money that goes out. An order is
// answered that it is pending, whatever that is: its end comes by callback and
// status. A transfer is answered what is known.
func (e *Engine) firstWord(ctx context.Context, op *catalog.Operation, m movement.Movement, result sdk.Result) (Answer, error) {
	f := sdk.StatusUpdate{
		Reference: m.UpstreamReference(), ProviderReference: result.ProviderReference,
		Amount: result.Amount, Data: result.Data, ExpiresAt: result.ExpiresAt,
	}
	if f.Amount == 0 && !op.Rules.Quiet {
		f.Amount = m.Amount // an answer that tells none is about what was asked
	}
	switch result.Outcome {
	case sdk.NotSent:
		return e.unsent(ctx, op, m)
	case sdk.Done:
		f.Status = sdk.StatusDone
	case sdk.Pending:
		f.Status = sdk.StatusPending
	case sdk.Refused:
		if !op.Rules.Quiet {
			return e.refused(ctx, op, m, result)
		}
		f.Status, f.Data = sdk.StatusFailed, (&object{}).set("message", printable(result.Refusal.Message)).json()
	case sdk.Unknown:
		return e.promise(ctx, op, m)
	}
	seen, err := e.settle(ctx, op, m, f, fromCall)
	if err != nil {
		e.Log.ErrorContext(ctx, "settle the provider's answer", "movement", m.ID.String(), "error", err)
		seen = m // the worker finds out
	}
	if seen.Attempt != m.Attempt || seen.State == movement.NotSubmitted {
		return e.contradicted(ctx, op, m, "the provider has "+m.UpstreamReference()+" after it had been proven never sent")
	}
	return e.promise(ctx, op, seen)
}

// promise answers an order that it is pending, a transfer how it stands, and
// records where that is a promise: from then on the reference is never free again,
// and the end is told.
func (e *Engine) promise(ctx context.Context, op *catalog.Operation, m movement.Movement) (Answer, error) {
	attempt := m.Attempt
	if m.Answer == nil && (op.Rules.Quiet || m.State == movement.Submitting) {
		var err error
		if m, err = e.promised(ctx, op, m); err != nil {
			return Answer{}, fault.From(err).Unknown().WithReference(nameFor(m))
		}
	}
	if m.State == movement.NotSubmitted || m.Attempt != attempt { // also where somebody has claimed it again since
		return Answer{}, nothingSent(m)
	}
	if !op.Rules.Quiet {
		return e.transferred(op, m)
	}
	return Answer{Data: m.Answer, Message: messageOf(op.Rules, movement.Movement{State: movement.Pending})}, nil
}

func (e *Engine) promised(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error) {
	answer := e.firstAnswer(op, m, nil)
	if m.State != movement.Submitting {
		if err := e.complete(ctx, store.Move{Movement: m, Answer: answer}); err != nil {
			return m, err
		}
		return e.reread(ctx, m.ID)
	}
	then, err := persist(ctx, e.patience, func(ctx context.Context) (movement.Movement, error) {
		return e.Movements.Acknowledge(ctx, m, answer)
	})
	if err != nil {
		return m, err
	}
	if op.Rules.Quiet && then.Answer == nil && then.State != movement.Submitting && then.State != movement.NotSubmitted {
		return e.promised(ctx, op, then) // moved on by somebody else, who gave no answer
	}
	return then, nil
}

const (
	// awaitFirst and awaitEvery say how often somebody who has sent an order again
	// looks whether the first one was answered.
	awaitFirst = 20 * time.Millisecond
	awaitEvery = 200 * time.Millisecond
)

// awaited waits for the first word on an order that another request is sending
// at this moment, so that all who ask the same are answered the same.
func (e *Engine) awaited(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error) {
	pause := awaitFirst
	for m.State == movement.Submitting && m.Answer == nil && e.Now().Before(m.SendBy.Add(time.Duration(op.Timeout))) {
		select {
		case <-ctx.Done():
			return m, nil
		case <-time.After(pause):
		}
		pause = min(2*pause, awaitEvery)
		next, err := e.Movements.MovementByID(ctx, m.ID)
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			return m, nil
		case err != nil:
			return m, err
		}
		m = next
	}
	return m, nil
}
