package xendit

import (
	"context"
	"net/http"
	"net/url"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// refund is money of a payment that went back, in a list or in a webhook. It names the
// invoice that was paid, and our reference nowhere.
type refund struct {
	ID        string        `json:"id"`
	InvoiceID string        `json:"invoice_id"`
	PaymentID string        `json:"payment_id"`
	Amount    money.Amount  `json:"amount"`
	Currency  string        `json:"currency"`
	Status    string        `json:"status"`
	Created   upstream.Time `json:"created"`
	Updated   upstream.Time `json:"updated"`
}

// told is the refund as the gateway reads it, and whether it is one: what is under way is
// none. One that failed came again, where the gateway has heard of it before, and never
// went where it has not.
func (r refund) told() (sdk.Return, bool) {
	back := sdk.Return{ID: r.ID, Sort: sdk.ReturnRefund, Amount: r.Amount, At: r.Created.Time}
	if r.Status == "FAILED" {
		back.Undone, back.UndoneAt = true, r.Updated.Time
	}
	return back, r.Status == "SUCCEEDED" || back.Undone
}

// addRefunds adds to a paid invoice what went back of it. An account whose key may not
// read refunds has none that we know of; where the upstream can't be asked the payment is
// told without, and asked about again on the manifest's schedule.
func (acc *account) addRefunds(ctx context.Context, u sdk.StatusUpdate) sdk.StatusUpdate {
	if u.Status != sdk.StatusDone {
		return u
	}
	var list struct {
		Data []refund `json:"data"`
	}
	if p := acc.client.get(ctx, "/refunds?limit=100&invoice_id="+url.QueryEscape(u.ProviderReference), v1, &list); p != nil {
		if p.status != http.StatusForbidden && p.status != http.StatusNotFound {
			u.Detail = "its refunds can't be read: " + p.detail
		}
		return u
	}
	for _, r := range list.Data {
		if told, is := r.told(); is && r.InvoiceID == u.ProviderReference {
			u.Returns = append(u.Returns, told)
		}
	}
	return u
}
