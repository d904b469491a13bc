package sandbox

import (
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"maps"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// codes are the upstream's own codes of a transaction's states.
var codes = map[string]string{statePending: "201", stateCapture: "200", stateSettlement: "200", stateExpire: "407", stateCancel: "200",
	stateRefund: "200", "partial_" + stateRefund: "200", stateChargeback: "200", "partial_" + stateChargeback: "200",
}

var jakarta = time.FixedZone("WIB", 7*60*60)

// stamp is how the upstream writes a time.
func stamp(t time.Time) string { return t.In(jakarta).Format("2006-01-02 15:04:05") }

// body is an order as answers and notifications tell it.
func (s *Simulator) body(o order, code, message string) map[string]any {
	body := map[string]any{
		"status_code": code, "status_message": message, "transaction_id": o.Tx.ID, "order_id": o.OrderID,
		"merchant_id": o.Account, "gross_amount": o.Amount.Decimal2(), "currency": "IDR", "payment_type": o.Tx.paymentType(),
		"transaction_time": stamp(o.Tx.Begun), "transaction_status": o.state(s.now()), "fraud_status": "accept", "expiry_time": stamp(o.Expiry),
	}
	qris, settled := o.Tx.paymentType() == typeQRIS, !o.Tx.Settled.IsZero()
	if qris {
		body["acquirer"] = "gopay"
	}
	if settled {
		body["settlement_time"] = stamp(o.Tx.Settled)
	}
	if qris && settled {
		body["issuer"] = "gopay"
	}
	var refunds []map[string]any
	var refunded money.Amount
	for _, b := range o.Tx.Returns {
		told := map[string]any{"refund_chargeback_id": b.ID, "refund_amount": b.Amount.Decimal2(), "created_at": stamp(b.At)}
		if b.Key != "" {
			told["refund_key"] = b.Key
		}
		if b.Chargeback {
			maps.Copy(body, told)
			continue
		}
		told["reason"], told["refund_method"] = b.Reason, map[bool]string{true: "offline", false: "online"}[b.Offline]
		if !b.underWay() {
			told["bank_confirmed_at"] = stamp(latest(b.At, b.Confirmed))
		}
		refunds, refunded = append(refunds, told), refunded+b.Amount
	}
	if refunds != nil {
		body["refunds"] = refunds
		if _, taken := body["refund_amount"]; !taken { // by a chargeback
			body["refund_amount"] = refunded.Decimal2()
		}
	}
	return body
}

// latest is the later of two moments.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// notices are the messages about an order that has just changed, signed as the upstream
// does: with the server key, over three members and no others.
func (s *Simulator) notices(o order, how kit.Telling) []kit.Entry {
	at, copies := s.env.Clock.Now(), 1
	switch {
	case how == kit.TellNever || o.Amount == magicLost:
		return nil
	case how == kit.TellLate:
		at = at.Add(kit.LateGap)
	case o.Amount == magicTwice:
		copies = 2
	}
	return s.notice(o, at, copies)
}

// notice is so many copies of the message about an order as it is.
func (s *Simulator) notice(o order, at time.Time, copies int) []kit.Entry {
	if account, _ := s.env.Accounts.Get(o.Account); account.CallbackURL == "" {
		return nil
	}
	body := s.body(o, codes[o.Tx.State], "midtrans payment notification")
	sum := sha512.Sum512([]byte(o.OrderID + codes[o.Tx.State] + o.Amount.Decimal2() + o.Key))
	body["signature_key"] = hex.EncodeToString(sum[:])
	encoded, err := json.Marshal(body)
	if err != nil {
		s.env.Log.Error("notification left out", "err", err)
		return nil
	}
	entries := make([]kit.Entry, copies)
	for n := range entries {
		entries[n] = s.env.Webhooks.Entry(kit.Webhook{Account: o.Account, Body: encoded, Subject: o.page(), Says: o.Tx.State, At: at})
	}
	return entries
}
