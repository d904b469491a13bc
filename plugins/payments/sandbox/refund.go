package sandbox

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

const (
	stateRefunded  = "REFUNDED" // of a code's payment: all of it
	stateSucceeded = "SUCCEEDED"
	stateFailed    = "FAILED"
)

// refund is money of an invoice that goes back. One that failed is kept.
type refund struct {
	ID        string          `json:"id"`
	Amount    money.Amount    `json:"amount"`
	Reference string          `json:"reference,omitempty"`
	Key       string          `json:"key,omitempty"` // idempotency-key
	Reason    string          `json:"reason,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	Created   time.Time       `json:"created"`
	Settles   time.Time       `json:"settles,omitzero"` // of a pending one: when it ends
	Updated   time.Time       `json:"updated,omitzero"`
	Failed    time.Time       `json:"failed,omitzero"`
	Failure   string          `json:"failure,omitempty"` // the upstream's failure_code
}

func (r refund) status() string {
	switch {
	case !r.Failed.IsZero():
		return stateFailed
	case !r.Settles.IsZero():
		return statePending
	}
	return stateSucceeded
}

// ended is the refund once its time has come: it failed, where its amount says so.
func (r refund) ended(now time.Time) refund {
	r.Settles, r.Updated = time.Time{}, now
	if r.Failure = magicRefundFailure[r.Amount]; r.Failure != "" {
		r.Failed = now
	}
	return r
}

// left is what of an invoice's money has not gone back, and is not on its way.
func (i invoice) left() money.Amount {
	left := i.PaidAmount
	for _, r := range i.Refunds {
		if r.Failed.IsZero() {
			left -= r.Amount
		}
	}
	return left
}

// refund finds a refund of an invoice.
func (i invoice) refund(id string) (refund, bool) {
	n := slices.IndexFunc(i.Refunds, func(r refund) bool { return r.ID == id })
	if n < 0 {
		return refund{}, false
	}
	return i.Refunds[n], true
}

// refundBook finds the invoice and the refund of an id, of a reference_id and of an
// idempotency-key. The last two are unique in an account.
type refundBook struct {
	invoices    map[string]string
	byReference map[reference]string
	byKey       map[reference]string
}

func newRefundBook() refundBook {
	return refundBook{map[string]string{}, map[reference]string{}, map[reference]string{}}
}

// applyRefund keeps a refund, or what became of one.
func (s *Simulator) applyRefund(i *invoice, r refund) {
	s.refunds.invoices[r.ID] = i.ID
	if r.Reference != "" {
		s.refunds.byReference[reference{i.Account, r.Reference}] = r.ID
	}
	if r.Key != "" {
		s.refunds.byKey[reference{i.Account, r.Key}] = r.ID
	}
	if !r.Settles.IsZero() {
		s.agenda.Add(r.Settles, task{(*Simulator).settleRefund, r.ID})
	}
	refunds := slices.Clone(i.Refunds) // a copy, so that readers who hold the old one see no half of it
	if n := slices.IndexFunc(refunds, func(known refund) bool { return known.ID == r.ID }); n >= 0 {
		refunds[n] = r
	} else {
		refunds = append(refunds, r)
	}
	i.Refunds = refunds
}

type refundBody struct {
	ID          string          `json:"id"`
	InvoiceID   string          `json:"invoice_id"`
	PaymentID   *string         `json:"payment_id"`
	Amount      money.Amount    `json:"amount"`
	Currency    string          `json:"currency"`
	Status      string          `json:"status"`
	Reason      string          `json:"reason"`
	ReferenceID *string         `json:"reference_id"`
	FailureCode *string         `json:"failure_code"`
	Metadata    json.RawMessage `json:"metadata"`
	Created     string          `json:"created"`
	Updated     string          `json:"updated"`
}

func (i invoice) refundBody(r refund) refundBody {
	updated := r.Created
	for _, later := range []time.Time{r.Updated, r.Failed} {
		if later.After(updated) {
			updated = later
		}
	}
	return refundBody{
		ID: r.ID, InvoiceID: i.ID, Amount: r.Amount, Currency: "IDR", Status: r.status(),
		Reason: cmp.Or(r.Reason, "REQUESTED_BY_CUSTOMER"), ReferenceID: textOrNull(r.Reference), FailureCode: textOrNull(r.Failure),
		Metadata: orNull(r.Metadata), Created: stamp(r.Created), Updated: stamp(updated),
	}
}

func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

type refundNotice struct {
	Event      string        `json:"event"`
	BusinessID kit.AccountID `json:"business_id"`
	Created    string        `json:"created"`
	Data       refundBody    `json:"data"`
}

// refundEntries keep a refund, and send its webhook where it has ended.
func (s *Simulator) refundEntries(i invoice, r refund, now time.Time) []kit.Entry {
	entries := []kit.Entry{s.invoiceTopic.Entry(invoiceEvent{ID: i.ID, Refund: &r})}
	event := map[string]string{stateSucceeded: "refund.succeeded", stateFailed: "refund.failed"}[r.status()]
	if event == "" || i.Amount == magicLost {
		return entries
	}
	notice := refundNotice{event, i.Account, stamp(now), i.refundBody(r)}
	return append(entries, s.webhook(kit.Webhook{Account: i.Account, Subject: i.ID, Says: event, At: now}, 1, notice)...)
}

// Return implements the kit's Returner: an invoice is refunded in parts, and a refund may
// fail afterwards; of a code's payment all goes back, and stays away.
func (s *Simulator) Return(r kit.ReturnRequest) (kit.Returned, error) {
	if r.Sort != "refund" {
		return kit.Returned{}, &kit.NotPayable{Reason: "this upstream's invoices and codes know refunds alone"}
	}
	now := s.now()
	s.mu.Lock()
	for _, i := range s.invoices.byID {
		if i.ExternalID == r.Reference {
			return s.refundInvoice(*i, r, now)
		}
	}
	for _, q := range s.codes.byID {
		if q.Reference == r.Reference {
			return s.refundQR(*q, r, now)
		}
	}
	s.mu.Unlock()
	return kit.Returned{}, kit.ErrUnknown
}

// refundInvoice gives the lock back that its caller holds.
func (s *Simulator) refundInvoice(i invoice, r kit.ReturnRequest, now time.Time) (kit.Returned, error) {
	one, left := refund{ID: "rfd-" + kit.RandomHex(16), Amount: r.Amount, Created: now}, i.left()
	if one.Amount == 0 {
		one.Amount = left
	}
	known := r.ID == ""
	for _, before := range i.Refunds {
		if before.ID == r.ID && before.status() == stateSucceeded {
			one, known, left = before, true, before.Amount
			one.Failed = now
		}
	}
	if !known || one.Amount < 1 || one.Amount > left {
		s.mu.Unlock()
		return kit.Returned{}, &kit.NotPayable{Reason: "of the invoice " + left.String() + " are left, and it has no such refund"}
	}
	commit := s.env.Journal.Append(s.refundEntries(i, one, now)...)
	s.mu.Unlock()
	return kit.Returned{ID: one.ID, Amount: one.Amount}, commit.Wait()
}

// refundQR gives the lock back that its caller holds.
func (s *Simulator) refundQR(q qrCode, r kit.ReturnRequest, now time.Time) (kit.Returned, error) {
	if len(q.Payments) == 0 || q.Payments[0].Refunded || r.ID != "" || r.Amount != 0 && r.Amount != q.Payments[0].Amount {
		s.mu.Unlock()
		return kit.Returned{}, &kit.NotPayable{Reason: "a code's payment is refunded whole, once it is paid"}
	}
	p := q.Payments[0]
	p.Refunded = true
	entries := []kit.Entry{s.qrTopic.Entry(qrEvent{ID: q.ID, Payment: &p})}
	if q.Amount != magicLost {
		entries = append(entries, s.qrWebhook(q, p, now, 1)...)
	}
	commit := s.env.Journal.Append(entries...)
	s.mu.Unlock()
	return kit.Returned{ID: p.ID + "-refund", Amount: p.Amount}, commit.Wait()
}
