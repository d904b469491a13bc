package sandbox

import (
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// qrBodyV1 is a code in the first shape.
type qrBodyV1 struct {
	ID          string          `json:"id"`
	ExternalID  string          `json:"external_id"`
	Amount      money.Amount    `json:"amount"`
	Description string          `json:"description"`
	QRString    string          `json:"qr_string"`
	CallbackURL string          `json:"callback_url"`
	Type        string          `json:"type"`
	Status      string          `json:"status"`
	Created     string          `json:"created"`
	Updated     string          `json:"updated"`
	Metadata    json.RawMessage `json:"metadata"`
}

func (q qrCode) bodyV1(now time.Time) qrBodyV1 {
	return qrBodyV1{
		ID: q.ID, ExternalID: q.Reference, Amount: q.Amount, QRString: q.Text, CallbackURL: q.HookURL,
		Type: q.Type, Status: q.state(now), Created: stamp(q.Created), Updated: stamp(q.Updated),
		Metadata: orNull(q.Metadata),
	}
}

// qrBodyV2 is a code in the second shape.
type qrBodyV2 struct {
	ID          string          `json:"id"`
	ReferenceID string          `json:"reference_id"`
	BusinessID  kit.AccountID   `json:"business_id"`
	Currency    string          `json:"currency"`
	Amount      money.Amount    `json:"amount"`
	QRString    string          `json:"qr_string"`
	WebhookURL  *string         `json:"webhook_url"`
	ChannelCode string          `json:"channel_code"`
	ExpiresAt   string          `json:"expires_at"`
	Type        string          `json:"type"`
	Status      string          `json:"status"`
	Created     string          `json:"created"`
	Updated     string          `json:"updated"`
	Basket      json.RawMessage `json:"basket"`
	Metadata    json.RawMessage `json:"metadata"`
}

func (q qrCode) bodyV2(now time.Time) qrBodyV2 {
	body := qrBodyV2{
		ID: q.ID, ReferenceID: q.Reference, BusinessID: q.Account, Currency: "IDR", Amount: q.Amount,
		QRString: q.Text, ChannelCode: q.channel(), ExpiresAt: stamp(q.Expiry), Type: q.Type,
		Status: q.state(now), Created: stamp(q.Created), Updated: stamp(q.Updated),
		Basket: orNull(q.Basket), Metadata: orNull(q.Metadata),
	}
	if q.HookURL != "" {
		body.WebhookURL = &q.HookURL
	}
	return body
}

func (q qrCode) channel() string {
	if q.Channel == "" {
		return "ID_DANA"
	}
	return q.Channel
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// paymentDetail is who paid.
type paymentDetail struct {
	ReceiptID      string  `json:"receipt_id"`
	Source         string  `json:"source"`
	Name           *string `json:"name"`
	AccountDetails *string `json:"account_details"`
}

func (p qrPayment) detail() paymentDetail {
	return paymentDetail{ReceiptID: p.ID[len(p.ID)-12:], Source: "DANA"}
}

// qrPaymentV2 is a payment in the second shape.
type qrPaymentV2 struct {
	ID          string          `json:"id"`
	BusinessID  kit.AccountID   `json:"business_id"`
	Currency    string          `json:"currency"`
	Amount      money.Amount    `json:"amount"`
	Status      string          `json:"status"`
	Created     string          `json:"created"`
	QRID        string          `json:"qr_id"`
	QRString    string          `json:"qr_string"`
	ReferenceID string          `json:"reference_id"`
	Type        string          `json:"type"`
	ChannelCode string          `json:"channel_code"`
	ExpiresAt   string          `json:"expires_at"`
	Description *string         `json:"description"`
	Basket      json.RawMessage `json:"basket"`
	Metadata    json.RawMessage `json:"metadata"`
	Detail      paymentDetail   `json:"payment_detail"`
}

func (q qrCode) paymentV2(p qrPayment) qrPaymentV2 {
	status := stateSucceeded
	if p.Refunded {
		status = stateRefunded
	}
	return qrPaymentV2{
		ID: p.ID, BusinessID: q.Account, Currency: "IDR", Amount: p.Amount, Status: status,
		Created: stamp(p.Created), QRID: q.ID, QRString: q.Text, ReferenceID: q.Reference, Type: q.Type,
		ChannelCode: q.channel(), ExpiresAt: stamp(q.Expiry), Basket: orNull(q.Basket),
		Metadata: orNull(q.Metadata), Detail: p.detail(),
	}
}

// qrNoticeV2 is the event of a payment in the second shape.
type qrNoticeV2 struct {
	Event      string        `json:"event"`
	APIVersion string        `json:"api_version"`
	BusinessID kit.AccountID `json:"business_id"`
	Created    string        `json:"created"`
	Data       qrPaymentV2   `json:"data"`
}

func (q qrCode) noticeV2(p qrPayment) qrNoticeV2 {
	return qrNoticeV2{"qr.payment", version2, q.Account, stamp(p.Created), q.paymentV2(p)}
}
