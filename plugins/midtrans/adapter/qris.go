package adapter

import (
	"context"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// acquirer is the one whose codes the Core API gives unless asked otherwise.
const acquirer = "gopay"

type chargeRequest struct {
	PaymentType string             `json:"payment_type"`
	Transaction transactionDetails `json:"transaction_details"`
	Customer    customer           `json:"customer_details"`
	QRIS        struct {
		Acquirer string `json:"acquirer"`
	} `json:"qris"`
	Expiry struct {
		OrderTime string `json:"order_time"`
		Duration  int64  `json:"expiry_duration"`
		Unit      string `json:"unit"`
	} `json:"custom_expiry"`
}

func newChargeRequest(call sdk.Call, o order, now time.Time) chargeRequest {
	request := chargeRequest{
		PaymentType: typeQRIS,
		Transaction: transactionDetails{call.Reference, call.Amount},
		Customer:    customer{o.PayerEmail},
	}
	request.QRIS.Acquirer = acquirer
	request.Expiry.OrderTime = now.In(jakarta).Format(zonedTime)
	request.Expiry.Duration = int64(o.life() / time.Minute)
	request.Expiry.Unit = "minute"
	return request
}

// charge makes a QR code. What exists under our reference already is no refusal: it is
// our own earlier attempt, whose code the upstream does not tell again.
func (c *client) charge(ctx context.Context, call sdk.Call, o order, now time.Time) sdk.Result {
	request := newChargeRequest(call, o, now)
	if tooLate(call) {
		return sendByPassed()
	}
	t, p := c.core(ctx, http.MethodPost, "/v2/charge", request)
	switch {
	case p != nil && p.ended: // a charge can be looked up from now on, as a link can't
		return sdk.UpstreamError(p.detail)
	case p != nil:
		return p.result()
	}
	if why := t.differs(call); why != "" {
		return garbled("POST /v2/charge", why).result()
	}
	expires := readTime(t.ExpiryTime)
	if expires.IsZero() {
		expires = now.Add(o.life()).Truncate(time.Second)
	}
	return sdk.Accepted(call.Reference, expires, payable{QRString: t.QRString})
}

// differs says what of the answer is not what was asked for, or "".
func (t transaction) differs(call sdk.Call) string {
	amount, err := t.amount()
	switch {
	case t.OrderID != call.Reference:
		return "the charge has another order_id"
	case err != nil || amount != call.Amount:
		return "the charge has another gross_amount"
	case t.Currency != "" && t.Currency != currencyIDR:
		return "the charge has another currency"
	case t.Status != "pending":
		return "the charge is not pending"
	case t.QRString == "":
		return "the charge has no qr_string"
	}
	return ""
}
