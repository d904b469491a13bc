package xendit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// notify reads a webhook. Its token proves whose account it is, not what it
// says: the gateway checks reference and amount against its own record. A fact
// has the id of the payment that a lookup would give it, and not that of the
// webhook, so that one payment that is reported in two ways is one fact.
func (a *adapter) notify(ctx context.Context, n sdk.Notification) sdk.Acknowledgement {
	acc, err := a.account(n.Connection)
	if err != nil {
		return sdk.Acknowledgement{Status: http.StatusServiceUnavailable, Detail: err.Error()}
	}
	if !equal(n.Header.Get("X-Callback-Token"), acc.callbackToken) {
		return sdk.Acknowledgement{Status: http.StatusUnauthorized, Detail: "wrong x-callback-token"}
	}
	// An account has webhooks of many kinds. What is not one of ours is not read
	// any further, and accepted, or it would come again and again.
	var event struct {
		Event  string          `json:"event"`
		Data   json.RawMessage `json:"data"`
		Status string          `json:"status"`
	}
	if err := json.Unmarshal(n.Body, &event); err != nil {
		return unreadable(acc, err)
	}
	switch {
	case event.Event == "qr.payment" && event.Data != nil:
		var payment qrPayment
		if err := json.Unmarshal(event.Data, &payment); err != nil {
			return unreadable(acc, err)
		}
		return noted(payment.statusUpdates()...)
	case event.Event == "" && (event.Status == "PAID" || event.Status == "SETTLED" || event.Status == "EXPIRED"):
		var inv invoice
		if err := json.Unmarshal(n.Body, &inv); err != nil {
			return unreadable(acc, err)
		}
		return acc.noteInvoice(ctx, inv)
	}
	return noted()
}

func (acc *account) noteInvoice(ctx context.Context, inv invoice) sdk.Acknowledgement {
	switch {
	case inv.ID == "" || inv.ExternalID == "":
		return noted()
	case inv.Status == "EXPIRED":
		return acc.confirmExpiry(ctx, inv.ID)
	}
	return noted(inv.statusUpdate())
}

// confirmExpiry reads the invoice that a webhook calls expired. Webhooks come
// out of order, an invoice can be paid meanwhile, and an end is final.
func (acc *account) confirmExpiry(ctx context.Context, invoiceID string) sdk.Acknowledgement {
	found := acc.findInvoice(ctx, invoiceID)
	switch found.Status {
	case sdk.StatusExpired, sdk.StatusDone:
		return noted(found)
	case sdk.StatusUnknown:
		return sdk.Acknowledgement{Status: http.StatusServiceUnavailable, Detail: found.Detail} // it comes again
	case sdk.StatusNotFound, sdk.StatusPending, sdk.StatusFailed:
	}
	return sdk.Acknowledgement{Status: http.StatusOK, Detail: "an expiry that the upstream itself denies"}
}

func (q qrPayment) statusUpdates() []sdk.StatusUpdate {
	if !q.succeeded() {
		return nil
	}
	return []sdk.StatusUpdate{{
		Reference:         q.ReferenceID,
		ProviderReference: q.QRID,
		Status:            sdk.StatusDone,
		Amount:            q.Amount,
		Currency:          cmp.Or(q.Currency, currencyIDR),
		EventID:           q.ID,
		At:                q.Created.Time,
		Channel:           q.Detail.Source,
	}}
}

func noted(updates ...sdk.StatusUpdate) sdk.Acknowledgement {
	return sdk.Acknowledgement{Updates: updates, Status: http.StatusOK}
}

func unreadable(acc *account, err error) sdk.Acknowledgement {
	return sdk.Acknowledgement{Status: http.StatusBadRequest, Detail: acc.client.clean("webhook: " + err.Error())}
}

// equal compares without telling by its time how much was right. The sums hide
// the length as well.
func equal(given, secret string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
