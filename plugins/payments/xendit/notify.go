package xendit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// notify reads a webhook. Its token proves whose account it is, not what it says, so the
// manifest does not call it signed: the gateway looks the payment up. A fact has the id of
// the payment that a lookup would give it, and not that of the webhook, so that one payment
// that is reported in two ways is one fact.
func (a *adapter) notify(ctx context.Context, n sdk.Notification) sdk.Acknowledgement {
	acc, err := a.account(n.Connection)
	if err != nil {
		return sdk.Acknowledgement{Status: http.StatusServiceUnavailable, Detail: err.Error()}
	}
	if !equal(n.Header.Get("X-Callback-Token"), acc.callbackToken) {
		return sdk.Acknowledgement{Status: http.StatusUnauthorized, Detail: "wrong x-callback-token"}
	}
	var told event
	if err := json.Unmarshal(n.Body, &told); err != nil {
		return unreadable(acc, err)
	}
	switch {
	case told.Event == "qr.payment" && told.Data != nil:
		var payment qrPayment
		if err := json.Unmarshal(told.Data, &payment); err != nil {
			return unreadable(acc, err)
		}
		if payment.Status == "PENDING" || payment.Status == "FAILED" { // no end: a payer may try again
			return noted()
		}
		return noted(payment.statusUpdate())
	case strings.HasPrefix(told.Event, "refund.") && told.Data != nil:
		return acc.noteRefund(ctx, told)
	case told.Event == "" && (told.Status == "PAID" || told.Status == "SETTLED" || told.Status == "EXPIRED"):
		var inv invoice
		if err := json.Unmarshal(n.Body, &inv); err != nil {
			return unreadable(acc, err)
		}
		if inv.ID == "" {
			return noted()
		}
		return noted(inv.statusUpdate())
	}
	// An account has webhooks of many kinds. One that names a payment of ours is read by a
	// person; the gateway knows its names.
	what := cmp.Or(told.Event, "status "+told.Status)
	return noted(sdk.Unread(told.reference(), what, "a webhook "+what))
}

// event is what all webhooks have: the older ones are flat, the newer ones in an
// envelope.
type event struct {
	Event      string          `json:"event"`
	Data       json.RawMessage `json:"data"`
	Status     string          `json:"status"`
	ExternalID string          `json:"external_id"`
}

// reference is the name of a payment that a webhook has, "" for none.
func (w event) reference() string {
	var data struct {
		ReferenceID string `json:"reference_id"`
		ExternalID  string `json:"external_id"`
	}
	_ = json.Unmarshal(w.Data, &data) // what has no data names nothing there
	return cmp.Or(data.ReferenceID, data.ExternalID, w.ExternalID)
}

// qrPaymentPrefix begins the upstream's names of payments by QR code.
const qrPaymentPrefix = "qrpy_"

// noteRefund finds the payment that a refund is of. One that the invoice does not show yet
// comes again; one of a QR code's payment names nothing of ours, and is for a person.
func (acc *account) noteRefund(ctx context.Context, told event) sdk.Acknowledgement {
	var r refund
	if err := json.Unmarshal(told.Data, &r); err != nil {
		return unreadable(acc, err)
	}
	switch {
	case r.InvoiceID == "" && !strings.HasPrefix(r.PaymentID, qrPaymentPrefix): // of a product that is not used here
		return sdk.Acknowledgement{Status: http.StatusOK, Detail: "a refund of the payment " + r.PaymentID + ", which is of no invoice"}
	case r.InvoiceID == "":
		u := sdk.Unread("", r.ID+" "+r.Status, "refund "+r.ID+" ("+r.Amount.String()+", "+r.Status+
			") of a payment by QR code: find the payment whose history has the fact "+r.PaymentID+", and see what went back")
		u.ProviderReference = r.PaymentID
		return noted(u)
	}
	found, p := acc.withRefunds(ctx, acc.findInvoice(ctx, r.InvoiceID))
	switch {
	case found.Status == sdk.StatusNotFound:
		return noted() // of another program on this account
	case p != nil && p.status == http.StatusForbidden: // and it never will be
		return noted(sdk.Unread(found.Reference, r.ID+" "+r.Status, "a refund "+r.ID+" of "+r.Amount.String()+" that is "+r.Status+
			", and the key may not read refunds: give it the permission, and see what went back"))
	}
	shown := slices.ContainsFunc(found.Returns, func(shown sdk.Return) bool { return shown.ID == r.ID })
	if _, is := r.told(); found.Status == sdk.StatusUnknown || is && !shown {
		return sdk.Acknowledgement{Status: http.StatusServiceUnavailable, Detail: "a refund that the upstream does not show yet: " + found.Detail}
	}
	return noted(found)
}

// statusUpdate is what the webhook of a QR code's payment says. A payment that was given
// back stays one.
func (q qrPayment) statusUpdate() sdk.StatusUpdate {
	u := sdk.StatusUpdate{
		Reference:         q.ReferenceID,
		ProviderReference: q.QRID,
		Status:            sdk.StatusDone,
		Amount:            q.Amount,
		Currency:          cmp.Or(q.Currency, currencyIDR),
		EventID:           q.ID,
		At:                q.Created.Time,
		Channel:           q.Detail.Source,
	}
	switch {
	case q.refunded():
		u.Returns = []sdk.Return{q.refund()}
	case !q.succeeded():
		return sdk.Unread(q.ReferenceID, q.ID+" "+q.Status, "a qr.payment that is "+q.Status)
	}
	return u
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
