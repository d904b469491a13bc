package xendit

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

const refundOperation = "/payments/refund"

// refund is money of a payment that goes back, in an answer, a list or a webhook. It names
// the invoice that was paid. Its reference_id is ours where we have ordered it.
type refund struct {
	ID          string        `json:"id"`
	InvoiceID   string        `json:"invoice_id"`
	PaymentID   string        `json:"payment_id"`
	ReferenceID string        `json:"reference_id"`
	Amount      money.Amount  `json:"amount"`
	Currency    string        `json:"currency"`
	Status      string        `json:"status"`
	FailureCode string        `json:"failure_code"`
	Created     upstream.Time `json:"created"`
	Updated     upstream.Time `json:"updated"`
}

type refundRequest struct {
	InvoiceID   string            `json:"invoice_id"`
	ReferenceID string            `json:"reference_id"`
	Amount      money.Amount      `json:"amount"`
	Currency    string            `json:"currency"`
	Reason      string            `json:"reason"`
	Metadata    map[string]string `json:"metadata,omitempty"`
}

// reasons are the upstream's. A merchant's own words go along as metadata.
var reasons = []string{"FRAUDULENT", "DUPLICATE", "REQUESTED_BY_CUSTOMER", "CANCELLATION", "OTHERS"}

func reasonOf(words string) string {
	if known := strings.ToUpper(strings.TrimSpace(words)); slices.Contains(reasons, known) {
		return known
	}
	return "OTHERS"
}

// told is the refund as the gateway reads it, and whether it is one: what is under way is
// none. One that failed came again, where the gateway has heard of it before, and never
// went where it has not.
func (r refund) told() (sdk.Return, bool) {
	back := sdk.Return{ID: r.ID, Sort: sdk.ReturnRefund, Amount: r.Amount, At: r.Created.Time, Reference: r.ReferenceID}
	if r.Status == "FAILED" {
		back.Undone, back.UndoneAt = true, r.Updated.Time
	}
	return back, r.Status == "SUCCEEDED" || back.Undone
}

// refund gives money of a payment back. An invoice is refunded under our reference. A QR
// code is not: the upstream refunds its payments at an endpoint that takes no name of
// ours, so a refund whose answer is lost could not be found again, nor told from another.
func (a *adapter) refund(ctx context.Context, call sdk.Call) sdk.Result {
	acc, err := a.account(call.Connection)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameAccount, err.Error())
	}
	var body struct {
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(call.Body, &body); err != nil {
		return sdk.DidNotSend(sdk.BlameNone, "read the request: "+err.Error())
	}
	id := call.Payment.ProviderReference
	switch {
	case isQR(id):
		return sdk.Refuse(sdk.RefuseOther, "Payments by QR code can't be refunded from here. Refund this one in the provider's dashboard.")
	case id == "":
		return sdk.DidNotSend(sdk.BlameNone, "the payment has no invoice of the upstream's")
	}
	request := refundRequest{
		InvoiceID: id, ReferenceID: call.Reference, Amount: call.Amount, Currency: currencyIDR, Reason: reasonOf(body.Reason),
	}
	if body.Reason != "" {
		request.Metadata = map[string]string{"reason": body.Reason}
	}
	return a.once(call.Reference, func() (sdk.Result, bool) {
		return acc.resumeRefund(ctx, call)
	}, func(time.Time) sdk.Result {
		return acc.createRefund(ctx, call, request)
	})
}

// createRefund makes a refund that the upstream does not have yet: a gateway whose database
// was restored, and whose plugin was started anew, knows nothing of what it has ordered.
func (acc *account) createRefund(ctx context.Context, call sdk.Call, request refundRequest) sdk.Result {
	if tooLate(call) {
		return sendByPassed()
	}
	before, p := acc.readRefundByReference(ctx, call.Payment.ProviderReference, call.Reference)
	switch {
	case p != nil && p.status == http.StatusForbidden: // of the account nothing else is wrong
		return sdk.DidNotSend(sdk.BlameNone, "the key may not read refunds, and without that none is made: give it the permission: "+p.detail)
	case p != nil:
		return sdk.DidNotSend(p.blame, "what went back of the payment can't be read: "+p.detail)
	case before != nil:
		return before.result(call)
	case tooLate(call):
		return sendByPassed()
	}
	var made refund
	p = acc.client.post(ctx, "/refunds", http.Header{"Idempotency-Key": {call.Reference}}, request, &made)
	switch {
	case p == nil:
		return made.result(call)
	case p.verdict != refused && !p.taken():
		return p.result()
	}
	// Something of that name exists, or the refund was refused: perhaps because an earlier
	// attempt of this very call has succeeded and left too little, so it is looked for first.
	found, missing := acc.resumeRefund(ctx, call)
	if missing {
		return p.result()
	}
	return found
}

// taken reports whether the upstream says that the name was used before.
func (p *problem) taken() bool { return p.verdict == unclear && p.status/100 == 4 && p.code != "" }

// resumeRefund is for a reference that may exist: what was made under it is the result,
// and where nothing is to be seen nobody knows. It tells whether the upstream says that
// there is none.
func (acc *account) resumeRefund(ctx context.Context, call sdk.Call) (result sdk.Result, missing bool) {
	made, p := acc.readRefundByReference(ctx, call.Payment.ProviderReference, call.Reference)
	switch {
	case p != nil:
		return sdk.DontKnow(p.blame, "this reference may have been used before: "+p.detail), false
	case made == nil:
		return sdk.DontKnow(sdk.BlameNone, "this reference was tried before, and the upstream has no refund of it yet"), true
	}
	return made.result(call), false
}

// result is what a call says of the refund. One that has failed already is a refusal.
func (r refund) result(call sdk.Call) sdk.Result {
	if why := r.differs(call); why != "" {
		return garbled("POST /refunds", why).result()
	}
	switch r.Status {
	case "SUCCEEDED":
		return sdk.Finished(r.ID, struct{}{})
	case "PENDING":
		return sdk.Accepted(r.ID, time.Time{}, struct{}{})
	case "FAILED", "CANCELLED":
		return sdk.Refuse(sdk.RefuseOther, r.failure())
	}
	return garbled("POST /refunds", "the refund has no known status").result()
}

// differs says what of the refund is not what was asked for, or "".
func (r refund) differs(call sdk.Call) string {
	switch {
	case r.ID == "":
		return "the refund has no id"
	case r.ReferenceID != call.Reference:
		return "the refund has another reference_id"
	case r.InvoiceID != "" && r.InvoiceID != call.Payment.ProviderReference:
		return "the refund is of another invoice"
	case r.Amount != call.Amount:
		return "the refund has another amount"
	case r.Currency != "" && r.Currency != currencyIDR:
		return "the refund has another currency"
	}
	return ""
}

// failure is why the refund failed, in words that a merchant reads.
func (r refund) failure() string {
	if r.Status == "CANCELLED" {
		return "The refund was cancelled at the provider."
	}
	return cmp.Or(refundCodes[r.FailureCode], "The refund has failed at the provider.")
}

// statusUpdate is what a lookup says of the refund.
func (r refund) statusUpdate() sdk.StatusUpdate {
	u := sdk.StatusUpdate{
		Reference: r.ReferenceID, ProviderReference: r.ID, Amount: r.Amount, Currency: cmp.Or(r.Currency, currencyIDR),
		EventID: r.ID + "-" + r.Status, At: r.Updated.Time,
	}
	if u.At.IsZero() {
		u.At = r.Created.Time
	}
	switch r.Status {
	case "SUCCEEDED":
		u.Status, u.Data = sdk.StatusDone, json.RawMessage(`{}`)
	case "PENDING":
		u.Status, u.Data = sdk.StatusPending, json.RawMessage(`{}`)
	case "FAILED", "CANCELLED":
		u.Status, u.Detail = sdk.StatusFailed, strings.TrimSpace(r.Status+" "+r.FailureCode)
	default:
		return sdk.NoStatus(sdk.BlameUpstream, "the refund has no known status")
	}
	return u
}

// findRefund looks a refund up, by its id where it is known, else among those of its
// invoice. Not found is only what a complete list does not have.
func (acc *account) findRefund(ctx context.Context, l sdk.Lookup) sdk.StatusUpdate {
	switch id := l.Payment.ProviderReference; {
	case isQR(id):
		return sdk.StatusUpdate{Status: sdk.StatusNotFound, Detail: "payments of QR codes are not refunded from here"}
	case id == "" && l.ProviderReference == "":
		return sdk.NoStatus(sdk.BlameNone, "neither the refund nor its payment has an id of the upstream's")
	}
	if l.ProviderReference != "" {
		var r refund
		p := acc.client.get(ctx, "/refunds/"+url.PathEscape(l.ProviderReference), v1, &r)
		switch {
		case p != nil:
			return sdk.NoStatus(p.blame, p.detail) // never "not found": the upstream has named it
		case r.ID != l.ProviderReference || r.ReferenceID != l.Reference:
			return sdk.NoStatus(sdk.BlameUpstream, "the upstream answered with another refund")
		}
		return r.safe(acc).statusUpdate()
	}
	r, p := acc.readRefundByReference(ctx, l.Payment.ProviderReference, l.Reference)
	switch {
	case p != nil:
		return sdk.NoStatus(p.blame, p.detail)
	case r == nil:
		return sdk.StatusUpdate{Status: sdk.StatusNotFound, Detail: "no refund of the invoice has this reference_id"}
	}
	return r.safe(acc).statusUpdate()
}

// safe is the refund with its foreign text fit to be shown.
func (r refund) safe(acc *account) refund {
	r.FailureCode = acc.client.clean(r.FailureCode)
	return r
}

// readRefundByReference finds the refund that we have ordered under a reference; nil where
// the invoice has none. Of several, money that moved comes first.
func (acc *account) readRefundByReference(ctx context.Context, invoiceID, reference string) (*refund, *problem) {
	list, p := acc.readRefunds(ctx, invoiceID)
	if p != nil {
		return nil, p
	}
	var found *refund
	for i, r := range list {
		if r.ReferenceID == reference && (found == nil || r.rank() < found.rank()) {
			found = &list[i]
		}
	}
	return found, nil
}

func (r refund) rank() int {
	switch r.Status {
	case "SUCCEEDED":
		return 0
	case "FAILED", "CANCELLED":
		return 2
	}
	return 1
}

// refundsPages is how many pages of 100 the refunds of one invoice fill at most: more is no
// list that ends.
const refundsPages = 20

// readRefunds reads all refunds of an invoice.
func (acc *account) readRefunds(ctx context.Context, invoiceID string) ([]refund, *problem) {
	var all []refund
	path, after := "/refunds?limit=100&invoice_id="+url.QueryEscape(invoiceID), ""
	for range refundsPages {
		var page struct {
			Data    []refund `json:"data"`
			HasMore bool     `json:"has_more"`
		}
		if p := acc.client.get(ctx, path+after, v1, &page); p != nil {
			return nil, p
		}
		if page.Data == nil {
			return nil, garbled("GET /refunds", "the upstream answered without a list")
		}
		for _, r := range page.Data {
			if r.InvoiceID == invoiceID {
				all = append(all, r)
			}
		}
		if !page.HasMore {
			return all, nil
		}
		if len(page.Data) == 0 {
			break
		}
		after = "&after_id=" + url.QueryEscape(page.Data[len(page.Data)-1].ID)
	}
	return nil, garbled("GET /refunds", "the list does not end")
}

// addRefunds adds to a paid invoice what went back of it. Where that can't be read the
// payment is told without, and asked about again on the manifest's schedule.
func (acc *account) addRefunds(ctx context.Context, u sdk.StatusUpdate) sdk.StatusUpdate {
	u, p := acc.withRefunds(ctx, u)
	if p != nil {
		u.Detail = "its refunds can't be read: " + p.detail
	}
	return u
}

func (acc *account) withRefunds(ctx context.Context, u sdk.StatusUpdate) (sdk.StatusUpdate, *problem) {
	if u.Status != sdk.StatusDone {
		return u, nil
	}
	list, p := acc.readRefunds(ctx, u.ProviderReference)
	for _, r := range list {
		if told, is := r.told(); is {
			u.Returns = append(u.Returns, told)
		}
	}
	return u, p
}
