package adminapi

import (
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// NewRefund gives a payment back. The same refund_id is the same refund, whoever says it.
type NewRefund struct {
	Movement string        `path:"movement" json:"-"` // the payment's id
	RefundID string        `json:"refund_id"`
	Amount   *money.Amount `json:"amount,omitempty"` // all that is left unless given
	Reason   string        `json:"reason"`           // 1 to 200 characters
}

// Refunded is what the merchant would have been answered, or that the refund waits.
type Refunded struct {
	RefundID string          `json:"refund_id"`
	Answer   json.RawMessage `json:"answer,omitempty"`
	Waiting  bool            `json:"waiting"` // for another operator, who says the same: nothing was sent
}

// WaitingRefund is a payment that one operator wants to give back.
type WaitingRefund struct {
	Movement   string       `json:"movement"`
	RefundID   string       `json:"refund_id"`
	MerchantID string       `json:"merchant_id"`
	Mode       string       `json:"mode"`
	Amount     money.Amount `json:"amount"`
	Operator   string       `json:"operator"`
	Reason     string       `json:"reason"`
	At         time.Time    `json:"at"`
}

// RefundPayment gives a payment back.
var RefundPayment = Endpoint[NewRefund, Refunded]{Act{
	Route: "POST /admin/movements/{movement}/refund", Takes: MoveMoney, Text: "Give a payment back, all that is left or a part.",
}}
