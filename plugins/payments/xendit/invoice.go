package xendit

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

const currencyIDR = "IDR"

// invoice is an invoice of the upstream, in an answer or in a webhook.
type invoice struct {
	ID         string        `json:"id"`
	ExternalID string        `json:"external_id"`
	Status     string        `json:"status"`
	Amount     money.Amount  `json:"amount"`
	Currency   string        `json:"currency"`
	URL        string        `json:"invoice_url"`
	ExpiryDate upstream.Time `json:"expiry_date"`
	PaidAmount *money.Amount `json:"paid_amount"`
	PaidAt     upstream.Time `json:"paid_at"`
	Updated    upstream.Time `json:"updated"`
	Method     string        `json:"payment_method"`
	Channel    string        `json:"payment_channel"`
}

type invoiceRequest struct {
	ExternalID  string       `json:"external_id"`
	Amount      money.Amount `json:"amount"`
	PayerEmail  string       `json:"payer_email,omitempty"`
	Description string       `json:"description,omitempty"`
	Duration    int64        `json:"invoice_duration"`
	SuccessURL  string       `json:"success_redirect_url,omitempty"`
	Currency    string       `json:"currency"`
}

func (acc *account) createInvoice(ctx context.Context, call sdk.Call, o order, now time.Time) sdk.Result {
	request := invoiceRequest{
		ExternalID:  call.Reference,
		Amount:      call.Amount,
		PayerEmail:  o.PayerEmail,
		Description: o.Description,
		Duration:    int64(o.life() / time.Second),
		SuccessURL:  o.SuccessURL,
		Currency:    currencyIDR,
	}
	if tooLate(call) {
		return sendByPassed()
	}
	var made invoice
	if p := acc.client.post(ctx, "/v2/invoices", v1.header(), request, &made); p != nil {
		return p.result()
	}
	if why := made.differs(call); why != "" {
		return garbled("POST /v2/invoices", why).result()
	}
	expires := made.ExpiryDate.Time
	if expires.IsZero() {
		expires = now.Add(o.life())
	}
	return sdk.Accepted(made.ID, expires, payable{PaymentURL: made.URL})
}

// resumeInvoice is for a reference that was tried before: what was made then is
// the result, and where nothing is to be seen nobody knows. It tells whether the
// upstream says that there is none.
func (acc *account) resumeInvoice(ctx context.Context, call sdk.Call) (result sdk.Result, missing bool) {
	found := acc.findInvoiceByReference(ctx, call.Reference)
	if found.Status == sdk.StatusPending && found.Amount == call.Amount {
		return sdk.Accepted(found.ProviderReference, found.ExpiresAt, found.Data), false
	}
	return sdk.DontKnow(found.Blame, "this reference was tried before: "+found.Detail), found.Status == sdk.StatusNotFound
}

// differs says what of the answer is not what was asked for, or "".
func (inv invoice) differs(call sdk.Call) string {
	switch {
	case inv.ID == "" || isQR(inv.ID):
		return "the invoice has no id"
	case inv.ExternalID != call.Reference:
		return "the invoice has another external_id"
	case inv.Amount != call.Amount:
		return "the invoice has another amount"
	case inv.Currency != "" && inv.Currency != currencyIDR:
		return "the invoice has another currency"
	case !inv.payable():
		return "the invoice has no usable invoice_url"
	}
	return ""
}

func (inv invoice) payable() bool {
	return strings.HasPrefix(inv.URL, "https://") || strings.HasPrefix(inv.URL, "http://")
}

// statusUpdate is what the upstream says of the movement behind the invoice.
func (inv invoice) statusUpdate() sdk.StatusUpdate {
	f := sdk.StatusUpdate{
		Reference:         inv.ExternalID,
		ProviderReference: inv.ID,
		Amount:            inv.Amount,
		// All we create is in rupiah; an answer without a currency says no other.
		Currency:  cmp.Or(inv.Currency, currencyIDR),
		ExpiresAt: inv.ExpiryDate.Time,
	}
	switch {
	case inv.Status == "PAID" || inv.Status == "SETTLED":
		f.Status = sdk.StatusDone
		if inv.PaidAmount != nil {
			f.Amount = *inv.PaidAmount
		}
		// An invoice is paid once, and settling is no new fact about it. Its
		// payment_id would not do as a name: not every answer has it.
		f.EventID = inv.ID + "-PAID"
		f.At = inv.PaidAt.Time
		f.Channel = cmp.Or(inv.Channel, inv.Method)
	case inv.Status == "EXPIRED":
		f.Status = sdk.StatusExpired
		f.EventID = inv.ID + "-EXPIRED"
		f.At = inv.Updated.Time
	case inv.Status == "PENDING" && inv.payable():
		f.Status = sdk.StatusPending
		f.Data = payable{PaymentURL: inv.URL}.json()
	default:
		return sdk.NoStatus(sdk.BlameUpstream, "the invoice has no known status, or no usable invoice_url")
	}
	return f
}

func (acc *account) findInvoice(ctx context.Context, id string) sdk.StatusUpdate {
	var inv invoice
	if p := acc.client.get(ctx, "/v2/invoices/"+url.PathEscape(id), v1, &inv); p != nil {
		return p.statusUpdate()
	}
	if inv.ID != id {
		return sdk.NoStatus(sdk.BlameUpstream, "the upstream answered with another invoice")
	}
	return inv.statusUpdate()
}

// findInvoiceByReference is for a movement whose answer was lost.
func (acc *account) findInvoiceByReference(ctx context.Context, reference string) sdk.StatusUpdate {
	var list []invoice
	if p := acc.client.get(ctx, "/v2/invoices?external_id="+url.QueryEscape(reference), v1, &list); p != nil {
		return p.statusUpdate()
	}
	if list == nil {
		return sdk.NoStatus(sdk.BlameUpstream, "the upstream answered null for a list")
	}
	list = slices.DeleteFunc(list, func(inv invoice) bool { return inv.ExternalID != reference })
	if len(list) == 0 {
		return sdk.StatusUpdate{Status: sdk.StatusNotFound, Detail: "no invoice has this external_id"}
	}
	// It is not certain that the upstream keeps external_id unique: money first,
	// then what may still be paid.
	slices.SortStableFunc(list, func(a, b invoice) int { return cmp.Compare(a.rank(), b.rank()) })
	return list[0].statusUpdate()
}

func (inv invoice) rank() int {
	switch inv.Status {
	case "PAID", "SETTLED":
		return 0
	case "PENDING":
		return 1
	}
	return 2
}
