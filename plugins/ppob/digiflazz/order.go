package digiflazz

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// order buys what was quoted.
func (a *adapter) order(ctx context.Context, call sdk.Call) sdk.Result {
	acc, err := a.account(call.Connection)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	p, err := readPurchase(call.Quote)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameNone, err.Error())
	}
	if why := acc.elsewhere(p); why != "" {
		return sdk.DidNotSend(sdk.BlameAccount, why)
	}
	switch {
	case p.Type == prepaid && call.Cost <= 0:
		return sdk.DidNotSend(sdk.BlameNone, "a cost of 0 would be no bound for the price")
	case p.Type == prepaid:
		return acc.transact(ctx, p.order(call.Cost), call.Reference, call.SendBy).result()
	case p.Before:
		r := acc.transact(ctx, p.bill(commandStatus), call.Reference, call.SendBy)
		if r.verdict == refused && r.answer.RC == codeNotFound || r.onlyAsked() {
			return sdk.DontKnow(sdk.BlameUpstream, "it was there a moment ago: "+r.detail)
		}
		return r.result()
	case p.Day != a.today():
		return sdk.DidNotSend(sdk.BlameNone, "the bill was asked for on "+p.Day+" and can be paid on that day alone")
	}
	return acc.transact(ctx, p.bill(commandPay), call.Reference, call.SendBy).result()
}

// lookupWithin is how long after it was sent an order may be asked for. After 90
// days the upstream takes a ref_id for a new purchase and forgets the old one.
const lookupWithin = 85 * 24 * time.Hour

// lookup asks what became of an order: a prepaid one by the same request again,
// which is answered with the state of the first where there was one, and buys
// where there was none; a bill by its status.
func (a *adapter) lookup(ctx context.Context, l sdk.Lookup) sdk.StatusUpdate {
	acc, err := a.account(l.Connection)
	if err != nil {
		return sdk.NoStatus(sdk.BlameAccount, err.Error())
	}
	p, err := readPurchase(l.Quote)
	if err != nil {
		return sdk.NoStatus(sdk.BlameNone, err.Error())
	}
	if why := acc.elsewhere(p); why != "" {
		return sdk.NoStatus(sdk.BlameAccount, why)
	}
	if age := a.now().Sub(l.SentAt); l.SentAt.IsZero() || age > lookupWithin {
		return sdk.NoStatus(sdk.BlameNone, fmt.Sprintf("it was sent at %s: after 85 days the upstream could take the same ref_id for a new purchase", l.SentAt.Format(time.DateOnly)))
	}
	if p.Type == prepaid {
		if l.Cost <= 0 {
			return sdk.NoStatus(sdk.BlameNone, "a cost of 0 would be no bound for the price")
		}
		return acc.transact(ctx, p.order(l.Cost), l.Reference, l.SendBy).statusUpdate(l.Reference)
	}
	return acc.transact(ctx, p.bill(commandStatus), l.Reference, l.SendBy).statusOfBill(l.Reference)
}

// statusOfBill is what status-pasca says of a bill. The inquiry has the same
// ref_id as the payment, so two answers need care.
//
// Success must have a serial number: it is what a payment's answer has and an
// inquiry's has not, and it is not known which of them the upstream tells where
// there was no payment.
//
// "Not found" proves that nothing was paid, because the upstream keeps what was
// paid for 90 days, which have not passed. What is still on its way to it is
// left to the gateway, which waits for settles_within and asks twice. Nothing
// is ever paid on the strength of it: pay-pasca is sent by the call alone.
func (r reply) statusOfBill(reference string) sdk.StatusUpdate {
	if r.verdict == refused && r.answer.RC == codeNotFound {
		return sdk.StatusUpdate{Reference: reference, Status: sdk.StatusNotFound, Detail: r.detail}
	}
	if r.onlyAsked() {
		return sdk.NoStatus(sdk.BlameNone, "this may be the inquiry and not the payment, it has no serial number: "+r.detail)
	}
	return r.statusUpdate(reference)
}

// onlyAsked tells of a bill's success that it may be its inquiry's.
func (r reply) onlyAsked() bool { return r.verdict == succeeded && r.answer.SN == "" }

// statusUpdate is what an answer to the same request again, or a webhook, says of
// the order.
func (r reply) statusUpdate(reference string) sdk.StatusUpdate {
	f := sdk.StatusUpdate{Reference: reference, Amount: r.answer.Price.Amount, Currency: "IDR", Detail: r.detail}
	outcome := r.outcome()
	switch failed := r.answer.Status == statusFailed && !aboutRequest(string(r.answer.RC)); {
	case r.verdict == succeeded:
		f.Status = sdk.StatusDone
	case r.verdict == pending:
		f.Status = sdk.StatusPending
	// A code that this adapter does not know still fails an order, together with
	// the status.
	case r.verdict == refused && failed, r.class == unlisted && failed && string(r.answer.RefID) == reference:
		f.Status = sdk.StatusFailed
		outcome.Message = cmp.Or(outcome.Message, reasons["02"].text)
	default:
		return sdk.StatusUpdate{Reference: reference, Blame: r.blame, Detail: r.detail}
	}
	data, err := json.Marshal(outcome)
	if err != nil {
		return sdk.NoStatus(sdk.BlameNone, "encode the status update: "+err.Error())
	}
	f.Data = data
	if f.Status != sdk.StatusPending {
		f.EventID = r.answer.event(reference)
	}
	return f
}

// event names a fact by what makes it one, so that a webhook and a lookup of it
// give it the same name. It is a sum, because a serial number can be worth money.
func (a answer) event(reference string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", a.Status, a.RC, a.SN))
	return reference + "-" + hex.EncodeToString(sum[:8])
}
