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

	Refunds      []refund      `json:"refunds"`
	RefundAmount upstream.Text `json:"refund_amount"` // of all of them, or of the one that the answer is about
	RefundKey    string        `json:"refund_key"`
	RefundID     upstream.Text `json:"refund_chargeback_id"`
}

// refund is money that went back. Its key is the merchant's name of it, or the upstream's
// where the merchant gave none.
type refund struct {
	ID      upstream.Text `json:"refund_chargeback_id"`
	Key     string        `json:"refund_key"`
	Amount  upstream.Text `json:"refund_amount"`
	Created string        `json:"created_at"`
	// Method is "online", or "offline" for what the bank is asked for later. Confirmed is
	// when the bank has confirmed it.
	Method    string `json:"refund_method"`
	Confirmed string `json:"bank_confirmed_at"`
}

// amount reads gross_amount, which has two decimals. One with a fraction is an error.
func (t transaction) amount() (money.Amount, error) { return money.Parse(string(t.GrossAmount)) }

// failedTry tells that a way to pay did not work. On a link's page the payer may try
// another.
func (t transaction) failedTry() bool {
	if t.settled() {
		return false
	}
	return t.Status == "deny" || t.Status == "failure" || t.Status == "capture" && t.FraudStatus == "deny"
}

// settled tells that the money had arrived, whatever became of it since.
func (t transaction) settled() bool { return t.SettlementTime != "" }

// card tells that it was paid by a card: what is captured has arrived before it settles.
func (t transaction) card() bool { return t.PaymentType == "credit_card" }

// statusUpdate is what the upstream says of the movement behind the order.
func (t transaction) statusUpdate() sdk.StatusUpdate {
	gross, err := t.amount()
	if err != nil {
		return noAmount(err)
	}
	switch t.Status {
	case "pending", "authorize":
		return t.open()
	case "settlement":
		return t.paid()
	case "capture":
		switch t.FraudStatus {
		case "challenge":
			return t.open() // the merchant has yet to accept it
		case "deny":
			return t.ended(sdk.StatusFailed)
		}
		return t.paid()
	case "refund", "partial_refund":
		return t.paid(t.refunds(gross, t.Status == "refund")...)
	case "chargeback", "partial_chargeback":
		return t.paid(t.chargebacks(gross, t.Status == "chargeback")...)
	case "expire", "cancel", "deny", "failure":
		if t.settled() {
			return t.paid(sdk.Return{Sort: sdk.ReturnReversal, Amount: gross})
		}
	default:
		return sdk.NoStatus(sdk.BlameUpstream, "the transaction has no known transaction_status")
	}
	if t.Status == "expire" || t.Status == "cancel" {
		u := t.ended(sdk.StatusExpired)
		if t.card() && t.Status == "cancel" && u.Status == sdk.StatusExpired {
			u.Returns = []sdk.Return{{Sort: sdk.ReturnVoid, Amount: gross}}
		}
		return u
	}
	return t.ended(sdk.StatusFailed)
}

// refunds are those that the answer lists, or the one that it is about, without those that
// are under way or denied. Where it says no more than that some of the money went back, a
// person has to look.
func (t transaction) refunds(gross money.Amount, all bool) []sdk.Return {
	listed := t.Refunds
	if len(listed) == 0 && t.RefundAmount != "" {
		listed = []refund{{ID: t.RefundID, Key: t.RefundKey, Amount: t.RefundAmount}}
	}
	var told []sdk.Return
	for _, r := range listed {
		if r.underWay() || r.denied() {
			continue
		}
		amount, err := money.Parse(string(r.Amount))
		sort := sdk.ReturnRefund
		if err != nil {
			sort = sdk.ReturnUnknown
		}
		told = append(told, sdk.Return{ID: cmp.Or(r.Key, string(r.ID)), Sort: sort, Amount: amount, At: r.at(), Reference: r.ordered()})
	}
	switch {
	case len(listed) > 0:
		return told
	case all:
		return []sdk.Return{{Sort: sdk.ReturnRefund, Amount: gross}}
	}
	return []sdk.Return{{ID: t.Status}}
}

// chargebacks are what the payer's bank took back: the amount that the answer has, or all
// that no refund gave back before. Where the status says all and the amount says less, a
// person has to look.
func (t transaction) chargebacks(gross money.Amount, all bool) []sdk.Return {
	var told []sdk.Return
	if len(t.Refunds) > 0 {
		told = t.refunds(gross, false)
	}
	back := sdk.Return{Sort: sdk.ReturnChargeback, Amount: gross}
	for _, r := range told {
		back.Amount -= r.Amount
	}
	amount, err := money.Parse(string(t.RefundAmount))
	switch {
	case err == nil && len(t.Refunds) == 0: // else it may be that of the refunds
		if all && amount != gross {
			told = append(told, sdk.Return{ID: t.Status})
		}
		back.Amount, back.ID = amount, string(t.RefundID)
	case !all:
		back = sdk.Return{ID: t.Status}
	}
	return append(told, back)
}

// noAmount is of a transaction whose gross_amount can't be read: nothing that it tells of
// money can be believed.
func noAmount(err error) sdk.StatusUpdate {
	return sdk.NoStatus(sdk.BlameUpstream, "gross_amount "+err.Error())
}

// base is a status update with what all have.
func (t transaction) base(status sdk.Status) sdk.StatusUpdate {
	amount, err := t.amount()
	if err != nil {
		return noAmount(err)
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
func (t transaction) paid(returns ...sdk.Return) sdk.StatusUpdate {
	u := t.base(sdk.StatusDone)
	if u.Status == sdk.StatusDone {
		u.Returns = returns
		u.EventID, u.Channel = t.ID+"-paid", cmp.Or(t.Issuer, t.Bank, t.PaymentType)
		if u.At = readTime(t.SettlementTime); u.At.IsZero() {
			u.At = readTime(t.TransactionAt)
		}
	}
	return u
}

// ended is an end without money.
func (t transaction) ended(status sdk.Status) sdk.StatusUpdate {
	u := t.base(status)
	if u.Status == status {
		u.EventID = t.ID + "-" + t.Status
	}
	return u
}
