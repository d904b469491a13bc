package adapter

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	opRefund = "/payments/refund"

	// A refund that is sent directly is answered with the provider's own decision. Others
	// are approved by the upstream, and confirmed by the bank within days.
	pathDirect = "/refund/online/direct"
	pathRefund = "/refund"
)

// refundPaths are the ways to pay of which the upstream gives money back by its API. It
// documents the direct path for cards only at some of the acquiring banks, so they go by
// the other one, which finds its own way. What is missing here, bank transfers and
// convenience stores, has no refund there.
var refundPaths = map[string]string{
	"gopay": pathDirect, "qris": pathDirect, "shopeepay": pathDirect,
	"credit_card": pathRefund, "dana": pathRefund, "ovo": pathRefund, "kredivo": pathRefund, "akulaku": pathRefund,
}

// Codes of the Core API that mean something of their own in the answer to a refund.
const (
	codeApproved  = "200"
	codeDenied    = "202" // by the bank
	codeDuplicate = 406
)

// refundRefusals are the codes with which the upstream says that it has not made a refund.
var refundRefusals = map[int]bool{
	http.StatusBadRequest:            true,
	http.StatusGone:                  true, // the payer is blocked
	http.StatusPreconditionFailed:    true, // the transaction's status allows none
	http.StatusRequestEntityTooLarge: true, // 413: the request's syntax
	http.StatusRequestURITooLong:     true, // 414: more than is left, or than the merchant has
}

type refundRequest struct {
	Key    string       `json:"refund_key"`
	Amount money.Amount `json:"amount"`
	Reason string       `json:"reason,omitempty"`
}

// refund gives money of a payment back. The transaction is read first: it tells the path
// that a refund takes, and whether this one has been made before.
func (a *adapter) refund(ctx context.Context, call sdk.Call) sdk.Result {
	acc, err := a.account(call.Connection)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	var wanted struct {
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(call.Body, &wanted); err != nil {
		return sdk.DidNotSend(sdk.BlameNone, "read the request: "+err.Error())
	}
	if tooLate(call) {
		return sendByPassed()
	}
	t, p := acc.status(ctx, call.Payment.Reference)
	if p != nil {
		return sdk.DidNotSend(p.blame, p.detail)
	}
	if made, listed := t.refundOf(call.Reference); listed {
		return made.result(call)
	}
	path, why := acc.refundPath(t)
	switch {
	case why != "":
		return sdk.Refuse(sdk.RefuseOther, why)
	case tooLate(call):
		return sendByPassed()
	}
	path = "/v2/" + url.PathEscape(call.Payment.Reference) + path
	t, p = acc.core(ctx, http.MethodPost, path, refundRequest{call.Reference, call.Amount, wanted.Reason})
	switch {
	case p != nil:
	case t.Code == codeDenied:
		p = acc.judge("POST "+path, http.StatusAccepted, t.Message)
		p.verdict = refused
	case !t.approves(call):
		return garbled("POST "+path, "the answer approves another refund, or none").result()
	case strings.HasSuffix(path, pathDirect):
		return sdk.Finished(call.Reference, struct{}{})
	default:
		return sdk.Accepted(call.Reference, time.Time{}, struct{}{})
	}
	return acc.notRefunded(ctx, call, p)
}

// refundPath is where a refund of a transaction is sent, or why it can't be.
func (c *client) refundPath(t transaction) (path, why string) {
	path, can := refundPaths[t.PaymentType]
	switch {
	case !can:
		return "", "The payment was made by " + cmp.Or(c.clean(t.PaymentType), "unknown means") +
			", of which the provider gives nothing back by its API. Transfer the money to the payer instead."
	case t.Status == "capture":
		return "", "The card payment is not settled yet, and until then the provider refunds nothing of it. " +
			"Void it at the provider, or refund it under another refund_id once it is settled, on the next day."
	}
	return path, ""
}

// approves tells that an answer approves the refund that was asked for. Its refund_amount
// may be that of all refunds of the transaction.
func (t transaction) approves(call sdk.Call) bool {
	amount, err := money.Parse(string(t.RefundAmount))
	return t.Code == codeApproved && t.OrderID == call.Payment.Reference && t.RefundKey == call.Reference && err == nil && amount >= call.Amount
}

// notRefunded is what a problem says of a refund that was sent. An earlier request for it may
// have been cut off and still have come through: then this one is a duplicate, or finds
// nothing left. So no refusal is believed before the transaction has been read again.
func (c *client) notRefunded(ctx context.Context, call sdk.Call, p *problem) sdk.Result {
	no := p.verdict == refused || refundRefusals[p.code]
	switch {
	case p.ended:
		return sdk.UpstreamError(p.detail)
	case !no && p.code != codeDuplicate:
		return p.result()
	}
	t, again := c.status(ctx, call.Payment.Reference)
	if again != nil {
		return sdk.DontKnow(again.blame, p.detail+"; "+again.detail)
	}
	if made, listed := t.refundOf(call.Reference); listed {
		return made.result(call)
	}
	if !no {
		return sdk.DontKnow(p.blame, p.detail)
	}
	r := sdk.Refuse(sdk.RefuseOther, "The provider refused: "+p.message)
	r.Detail = p.detail
	return r
}

// refundOf finds a refund among those that a transaction lists.
func (t transaction) refundOf(key string) (refund, bool) {
	for _, r := range t.Refunds {
		if r.Key == key {
			return r, true
		}
	}
	return refund{}, false
}

// underWay tells of a refund that the upstream has approved, and the bank not confirmed.
// One that was sent online has the provider's answer: there the confirmation is no more
// than told once more.
func (r refund) underWay() bool { return r.Method == "offline" && r.Confirmed == "" }

// denied tells of a refund that the bank denied: none of the money went back.
func (r refund) denied() bool {
	amount, err := money.Parse(string(r.Amount))
	return err == nil && amount == 0
}

// result is what a refund that the transaction lists says to its call.
func (r refund) result(call sdk.Call) sdk.Result {
	amount, err := money.Parse(string(r.Amount))
	switch {
	case r.denied():
		return sdk.Refuse(sdk.RefuseOther, "The payer's bank or wallet denied the refund.")
	case err != nil || amount != call.Amount:
		return sdk.DontKnow(sdk.BlameUpstream, "the transaction lists the refund with another refund_amount")
	case r.underWay():
		return sdk.Accepted(call.Reference, time.Time{}, struct{}{})
	}
	return sdk.Finished(call.Reference, struct{}{})
}

// lookupRefund tells how a refund stands, by what its payment's transaction lists.
func (c *client) lookupRefund(ctx context.Context, l sdk.Lookup) sdk.StatusUpdate {
	t, p := c.status(ctx, l.Payment.Reference)
	if p != nil {
		return sdk.NoStatus(p.blame, p.detail) // also where there is no transaction: what is missing then is the payment
	}
	r, listed := t.refundOf(l.Reference)
	switch {
	case !listed && len(t.Refunds) == 0 && (t.Status == "refund" || t.Status == "partial_refund"):
		return sdk.NoStatus(sdk.BlameUpstream, "the transaction tells that money went back, and lists no refunds")
	case !listed:
		return sdk.StatusUpdate{Status: sdk.StatusNotFound, Detail: "the transaction does not list the refund"}
	}
	u := sdk.StatusUpdate{
		Reference: l.Reference, ProviderReference: l.Reference, Status: sdk.StatusPending, Amount: l.Amount,
		Currency: cmp.Or(t.Currency, currencyIDR), At: r.at(),
	}
	if r.denied() {
		u.Status, u.EventID = sdk.StatusFailed, l.Reference+"-denied"
		return u
	}
	var err error
	if u.Amount, err = money.Parse(string(r.Amount)); err != nil {
		return sdk.NoStatus(sdk.BlameUpstream, "refund_amount "+err.Error())
	}
	if !r.underWay() {
		u.Status, u.EventID = sdk.StatusDone, l.Reference+"-refunded"
	}
	return u
}

// at is when the money went back: when the bank has confirmed it, where that is told.
func (r refund) at() time.Time { return readTime(cmp.Or(r.Confirmed, r.Created)) }

// ordered is the gateway's reference of a refund: its key, where that has the form of one.
func (r refund) ordered() string {
	if len(r.Key) == manifest.ReferenceLength && strings.Trim(r.Key, manifest.ReferenceAlphabet) == "" {
		return r.Key
	}
	return ""
}
