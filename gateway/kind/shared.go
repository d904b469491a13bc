package kind

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// offer is what a provider gives of a payment or a collection, as the result schemas of
// both kinds have it.
type offer struct {
	PaymentURL string `json:"payment_url"`
	QR         string `json:"qr_string"`
}

func offerOf(result json.RawMessage) offer {
	var o offer
	if len(result) > 0 {
		_ = json.Unmarshal(result, &o) // the result schema has said that it fits; nothing known is an empty offer
	}
	return o
}

// paidAt is when a movement was paid, which not every provider tells: then it is when
// we learned it.
func paidAt(m movement.Movement) time.Time {
	if m.PaidAt.IsZero() {
		return m.UpdatedAt
	}
	return m.PaidAt
}

// receiptOf is the receipt of a movement that is paid, in the name of its merchant's
// id, and the payer's address, "" for none. A receipt is written in the commit of the
// payment, and nothing about it delays that.
func receiptOf(m movement.Movement) (r mail.Receipt, payer string) {
	return mail.Receipt{
		Merchant: m.Owner.MerchantID, Reference: m.Reference, Description: lifecycle.TextOf(m.Field("description")),
		Amount: m.Amount, PaidAt: paidAt(m), Test: m.Owner.Mode != string(tenants.Live),
	}, lifecycle.TextOf(m.Field("payer_email"))
}

func mailTo(payer string, r mail.Receipt) *movement.Mail {
	subject, text := r.Render()
	return &movement.Mail{To: payer, Subject: subject, Text: text}
}

// failed is the result of a quote that an order or a transfer did not get.
func failed(q sdk.Quoted) sdk.Result {
	return sdk.Result{Outcome: q.Outcome, Blame: q.Blame, Refusal: q.Refusal, Detail: q.Detail}
}

// longestQuote bounds the data of a quote, in bytes.
const longestQuote = 16 << 10

// keepable tells whether the data of a quote can be kept and given back.
func keepable(data json.RawMessage) bool {
	return len(data) == 0 || len(data) <= longestQuote && utf8.Valid(data) && json.Valid(data)
}
