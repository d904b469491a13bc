package xendit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

// maxQRLife is how long the QRIS channel keeps a code open.
const maxQRLife = 48 * time.Hour

// isQR tells a QR code's id from an invoice's, which is hexadecimal.
func isQR(id string) bool { return strings.HasPrefix(id, "qr_") }

// qrCode is a QR code of the upstream, of either generation: the first names
// our reference external_id, and knows neither currency nor expiry.
type qrCode struct {
	ID          string        `json:"id"`
	ReferenceID string        `json:"reference_id"`
	ExternalID  string        `json:"external_id"`
	Status      string        `json:"status"`
	Amount      money.Amount  `json:"amount"`
	Currency    string        `json:"currency"`
	QRString    string        `json:"qr_string"`
	ExpiresAt   upstream.Time `json:"expires_at"`
}

type qrRequest struct {
	ReferenceID string       `json:"reference_id"`
	Type        string       `json:"type"`
	Currency    string       `json:"currency"`
	Amount      money.Amount `json:"amount"`
	ExpiresAt   time.Time    `json:"expires_at"`
}

func (acc *account) createQR(ctx context.Context, call sdk.Call, o order, now time.Time) sdk.Result {
	request := qrRequest{
		ReferenceID: call.Reference,
		Type:        "DYNAMIC",
		Currency:    currencyIDR,
		Amount:      call.Amount,
		ExpiresAt:   now.Add(min(o.life(), maxQRLife)).UTC().Truncate(time.Millisecond),
	}
	if tooLate(call) {
		return sendByPassed()
	}
	var made qrCode
	p := acc.client.post(ctx, "/qr_codes", v2.header(), request, &made)
	if p != nil && p.status == http.StatusConflict {
		// The reference is ours alone, so what stands in the way is an earlier
		// attempt of this very call.
		made, p = acc.readBack(ctx, call.Reference, p)
	}
	if p != nil {
		return p.result()
	}
	if why := made.differs(call); why != "" {
		return garbled("POST /qr_codes", why).result()
	}
	expires := made.ExpiresAt.Time
	if expires.IsZero() {
		expires = request.ExpiresAt
	}
	return sdk.Accepted(made.ID, expires, payable{QRString: made.QRString})
}

// readBack reads what a conflict says exists. Where it can't, nobody knows.
func (acc *account) readBack(ctx context.Context, reference string, conflict *problem) (qrCode, *problem) {
	code, p := acc.readQRByReference(ctx, reference)
	if p != nil {
		return qrCode{}, garbled(conflict.detail, p.detail)
	}
	return code, nil
}

// differs says what of the answer is not what was asked for, or "".
func (q qrCode) differs(call sdk.Call) string {
	switch {
	case !isQR(q.ID):
		return "the QR code has no usable id"
	case q.ReferenceID != call.Reference:
		return "the QR code has another reference_id"
	case q.Amount != call.Amount:
		return "the QR code has another amount"
	case q.Currency != "" && q.Currency != currencyIDR:
		return "the QR code has another currency"
	case q.QRString == "":
		return "the QR code has no qr_string"
	}
	return ""
}

func (acc *account) readQR(ctx context.Context, id string) (qrCode, *problem) {
	var code qrCode
	if p := acc.client.get(ctx, "/qr_codes/"+url.PathEscape(id), v2, &code); p != nil {
		return qrCode{}, p
	}
	if code.ID != id {
		return qrCode{}, garbled("GET /qr_codes", "the upstream answered with another QR code")
	}
	return code, nil
}

// readQRByReference asks the first generation, which reads by our reference,
// for the id, and the second for the rest: the second reads by id alone.
func (acc *account) readQRByReference(ctx context.Context, reference string) (qrCode, *problem) {
	var old qrCode
	if p := acc.client.get(ctx, "/qr_codes/"+url.PathEscape(reference), v1, &old); p != nil {
		return qrCode{}, p
	}
	if !isQR(old.ID) || cmp.Or(old.ExternalID, old.ReferenceID) != reference {
		return qrCode{}, garbled("GET /qr_codes", "the upstream answered with another QR code")
	}
	return acc.readQR(ctx, old.ID)
}

func (acc *account) findQR(ctx context.Context, id string, expires, now time.Time) sdk.StatusUpdate {
	code, p := acc.readQR(ctx, id)
	if p != nil {
		return p.statusUpdate()
	}
	return acc.judgeQR(ctx, code, expires, now)
}

func (acc *account) findQRByReference(ctx context.Context, reference string, expires, now time.Time) sdk.StatusUpdate {
	code, p := acc.readQRByReference(ctx, reference)
	if p != nil {
		return p.statusUpdate()
	}
	return acc.judgeQR(ctx, code, expires, now)
}

// judgeQR tells how a code stands: paid is known from its payments, and that
// it ended from its time, because the upstream has no word for either. Now was
// taken before the payments are read, so none is missed at the last moment.
func (acc *account) judgeQR(ctx context.Context, code qrCode, expires, now time.Time) sdk.StatusUpdate {
	paid, p := acc.readPayment(ctx, code.ID)
	if p != nil {
		return sdk.NoStatus(p.blame, p.detail) // never "not found": the code is there
	}
	f := sdk.StatusUpdate{
		Reference:         code.ReferenceID,
		ProviderReference: code.ID,
		Amount:            code.Amount,
		Currency:          cmp.Or(code.Currency, currencyIDR),
		ExpiresAt:         code.ExpiresAt.Time,
	}
	if f.ExpiresAt.IsZero() {
		f.ExpiresAt = expires
	}
	switch {
	case paid != nil:
		f.Status, f.Amount, f.EventID, f.At = sdk.StatusDone, paid.Amount, paid.ID, paid.Created.Time
		f.Currency, f.Channel = cmp.Or(paid.Currency, f.Currency), paid.Detail.Source
		if paid.refunded() {
			f.Returns = []sdk.Return{paid.refund()}
		}
	case !f.ExpiresAt.IsZero() && now.After(f.ExpiresAt), f.ExpiresAt.IsZero() && code.Status == "INACTIVE":
		f.Status, f.EventID, f.At = sdk.StatusExpired, code.ID+"-EXPIRED", f.ExpiresAt
	case code.QRString == "":
		return sdk.NoStatus(sdk.BlameUpstream, "the QR code has no qr_string")
	default:
		// INACTIVE before its time is no end: a code may be switched off by the
		// very payment that is not in the list yet.
		f.Status, f.Data = sdk.StatusPending, payable{QRString: code.QRString}.json()
	}
	return f
}

// qrPayment is a payment of a QR code, in a list or in a webhook.
type qrPayment struct {
	ID          string        `json:"id"`
	QRID        string        `json:"qr_id"`
	ReferenceID string        `json:"reference_id"`
	Status      string        `json:"status"`
	Amount      money.Amount  `json:"amount"`
	Currency    string        `json:"currency"`
	Created     upstream.Time `json:"created"`
	Detail      struct {
		Source string `json:"source"` // the wallet or bank of who paid
	} `json:"payment_detail"`
}

func (q qrPayment) succeeded() bool { return q.Status == "SUCCEEDED" || q.Status == "COMPLETED" }

func (q qrPayment) refunded() bool { return q.Status == "REFUNDED" }

// refund is all of a payment, gone back: the upstream tells no more of it.
func (q qrPayment) refund() sdk.Return {
	return sdk.Return{ID: q.ID + "-refund", Sort: sdk.ReturnRefund, Amount: q.Amount}
}

// qrPayments is a list of payments: bare, as the first generation has it, or
// in an envelope, as the upstream's newer lists are. Which of them this one is
// can't be learned from its public description.
type qrPayments []qrPayment

// UnmarshalJSON reads either form.
func (list *qrPayments) UnmarshalJSON(data []byte) error {
	var envelope struct {
		Data []qrPayment `json:"data"`
	}
	if bytes.HasPrefix(data, []byte("[")) {
		return json.Unmarshal(data, (*[]qrPayment)(list))
	}
	if err := json.Unmarshal(data, &envelope); err != nil {
		return err
	}
	*list = envelope.Data
	return nil
}

// readPayment returns the payment of a code, or nil where it has none.
func (acc *account) readPayment(ctx context.Context, id string) (*qrPayment, *problem) {
	var list qrPayments
	if p := acc.client.get(ctx, "/qr_codes/"+url.PathEscape(id)+"/payments", v2, &list); p != nil {
		return nil, p
	}
	if list == nil {
		return nil, garbled("GET /qr_codes/payments", "the upstream answered without a list")
	}
	var first *qrPayment
	for i, payment := range list {
		if (payment.succeeded() || payment.refunded()) && (first == nil || payment.Created.Before(first.Created.Time)) {
			first = &list[i]
		}
	}
	return first, nil
}
