package xendit

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// cancel ends an unpaid payment. Done means that it is ended and unpaid.
func (a *adapter) cancel(ctx context.Context, call sdk.Call) sdk.Result {
	acc, err := a.account(call.Connection)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	if isQR(call.ProviderReference) {
		return endQR(acc.findQR(ctx, call.ProviderReference, time.Time{}, a.now()))
	}
	if call.ProviderReference != "" {
		return acc.expire(ctx, call, call.ProviderReference)
	}
	found := acc.findInvoiceByReference(ctx, call.Reference)
	if found.ProviderReference != "" {
		return acc.expire(ctx, call, found.ProviderReference)
	}
	if found.Status == sdk.StatusNotFound {
		found = acc.findQRByReference(ctx, call.Reference, time.Time{}, a.now())
	}
	return endQR(found)
}

// endQR is how the cancel of a code ends. The upstream can't end one; the
// gateway does, unless it is paid already, and what still comes for it is late
// money.
func endQR(found sdk.StatusUpdate) sdk.Result {
	switch found.Status {
	case sdk.StatusPending, sdk.StatusExpired:
		return ended(found.ProviderReference)
	case sdk.StatusDone:
		return alreadyPaid()
	case sdk.StatusNotFound:
		return sdk.DidNotSend(sdk.BlameNone, "the upstream has nothing under this reference")
	case sdk.StatusUnknown, sdk.StatusFailed:
	}
	return sdk.DontKnow(found.Blame, found.Detail)
}

// expire ends an invoice. Whatever the upstream answers but "expired", its
// invoice is read again and tells how it stands.
func (acc *account) expire(ctx context.Context, call sdk.Call, id string) sdk.Result {
	if tooLate(call) {
		return sendByPassed()
	}
	var now invoice
	p := acc.client.send(ctx, http.MethodPost, "/invoices/"+url.PathEscape(id)+"/expire!", v1.header(), nil, &now)
	switch {
	case p == nil && now.ID == id && now.Status == "EXPIRED":
		return ended(id)
	case p == nil:
		p = garbled("POST /invoices/expire!", "the answer is not an expired invoice")
	case p.verdict == turnedAway:
		return p.result()
	}
	switch found := acc.findInvoice(ctx, id); found.Status {
	case sdk.StatusExpired:
		return ended(id)
	case sdk.StatusDone:
		return alreadyPaid()
	case sdk.StatusPending:
		return p.result()
	case sdk.StatusUnknown, sdk.StatusNotFound, sdk.StatusFailed:
	}
	return sdk.DontKnow(p.blame, p.detail)
}

func ended(id string) sdk.Result { return sdk.Finished(id, struct{}{}) }

func alreadyPaid() sdk.Result {
	return sdk.Refuse(sdk.RefuseOther, "The payment has been paid.")
}
