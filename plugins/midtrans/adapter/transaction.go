package adapter

import (
	"cmp"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/upstream"
)

const (
	currencyIDR = "IDR"

	plainTime = "2006-01-02 15:04:05" // in Jakarta
	zonedTime = "2006-01-02 15:04:05 -0700"
)

// jakarta is the zone of the upstream's times.
var jakarta = time.FixedZone("WIB", 7*60*60)

// readTime reads a time of the upstream's. What can't be read counts as missing, so
// that a date's format never hides that money moved.
func readTime(text string) time.Time {
	t, err := time.ParseInLocation(plainTime, text, jakarta)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// transaction is what the Core API says of an order: a charge, or what the payer of a
// link has chosen.
type transaction struct {
	Code           upstream.Text `json:"status_code"`
	Message        string        `json:"status_message"`
	Faults         []string      `json:"validation_messages"`
	ID             string        `json:"transaction_id"`
	OrderID        string        `json:"order_id"`
	GrossAmount    upstream.Text `json:"gross_amount"`
	Currency       string        `json:"currency"`
	PaymentType    string        `json:"payment_type"`
	Status         string        `json:"transaction_status"`
	FraudStatus    string        `json:"fraud_status"`
	Issuer         string        `json:"issuer"`
	Bank           string        `json:"bank"`
	QRString       string        `json:"qr_string"`
	TransactionAt  string        `json:"transaction_time"`
	SettlementTime string        `json:"settlement_time"`
	ExpiryTime     string        `json:"expiry_time"`
}

// amount reads gross_amount, which has two decimals. One with a fraction is an error.
func (t transaction) amount() (money.Amount, error) { return money.Parse(string(t.GrossAmount)) }

// failedTry tells that a way to pay did not work. On a link's page the payer may try
// another.
func (t transaction) failedTry() bool {
	return t.Status == "deny" || t.Status == "failure" || t.Status == "capture" && t.FraudStatus == "deny"
}

// statusUpdate is what the upstream says of the movement behind the order.
func (t transaction) statusUpdate() sdk.StatusUpdate {
	switch t.Status {
	case "pending", "authorize":
		return t.open()
	case "settlement", "partial_refund", "partial_chargeback":
		return t.paid()
	case "capture":
		switch t.FraudStatus {
		case "challenge":
			return t.open() // the merchant has yet to accept it
		case "deny":
			return t.ended(sdk.StatusFailed)
		}
		return t.paid()
	case "expire", "cancel":
		return t.ended(sdk.StatusExpired)
	case "deny", "failure", "refund", "chargeback":
		return t.ended(sdk.StatusFailed)
	}
	return sdk.NoStatus(sdk.BlameUpstream, "the transaction has no known transaction_status")
}

// base is a status update with what all have.
func (t transaction) base(status sdk.Status) sdk.StatusUpdate {
	amount, err := t.amount()
	if err != nil {
		return sdk.NoStatus(sdk.BlameUpstream, "gross_amount "+err.Error())
	}
	if t.ID == "" {
		return sdk.NoStatus(sdk.BlameUpstream, "the transaction has no transaction_id")
	}
	return sdk.StatusUpdate{
		Reference: t.OrderID, ProviderReference: t.OrderID, Status: status, Amount: amount,
		// All we create is in rupiah; an answer without a currency says no other.
		Currency:  cmp.Or(t.Currency, currencyIDR),
		ExpiresAt: readTime(t.ExpiryTime),
	}
}

func (t transaction) open() sdk.StatusUpdate { return t.base(sdk.StatusPending) }

// paid has one name whether it is captured or settled: settling is no new fact.
func (t transaction) paid() sdk.StatusUpdate {
	u := t.base(sdk.StatusDone)
	if u.Status == sdk.StatusDone {
		u.EventID, u.Channel = t.ID+"-paid", cmp.Or(t.Issuer, t.Bank, t.PaymentType)
		if u.At = readTime(t.SettlementTime); u.At.IsZero() {
			u.At = readTime(t.TransactionAt)
		}
	}
	return u
}

// ended is an end without money, or with money that went back.
func (t transaction) ended(status sdk.Status) sdk.StatusUpdate {
	u := t.base(status)
	if u.Status == status {
		u.EventID = t.ID + "-" + t.Status
	}
	return u
}
