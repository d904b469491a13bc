package sandbox

import (
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

const (
	stateRefunded  = "REFUNDED" // of a code's payment: all of it
	stateSucceeded = "SUCCEEDED"
	stateFailed    = "FAILED"
)

// refund is money of an invoice that went back. One that failed afterwards is kept.
type refund struct {
	ID      string       `json:"id"`
	Amount  money.Amount `json:"amount"`
	Created time.Time    `json:"created"`
	Failed  time.Time    `json:"failed,omitzero"`
}

func (r refund) status() string {
	if r.Failed.IsZero() {
		return stateSucceeded
	}
	return stateFailed
}

// left is what of an invoice's money has not gone back.
func (i invoice) left() money.Amount {
	left := i.PaidAmount
	for _, r := range i.Refunds {
		if r.Failed.IsZero() {
			left -= r.Amount
		}
	}
	return left
}

// applyRefund keeps a refund, or what became of one.
func (i *invoice) applyRefund(r refund) {
	refunds := append([]refund{}, i.Refunds...) // a copy, so that readers who hold the old one see no half of it
	for n := range refunds {
		if refunds[n].ID == r.ID {
			refunds[n], i.Refunds = r, refunds
			return
		}
	}
	i.Refunds = append(refunds, r)
}

type refundBody struct {
	ID        string       `json:"id"`
	InvoiceID string       `json:"invoice_id"`
	PaymentID *string      `json:"payment_id"`
	Amount    money.Amount `json:"amount"`
	Currency  string       `json:"currency"`
	Status    string       `json:"status"`
	Reason    string       `json:"reason"`
	Created   string       `json:"created"`
	Updated   string       `json:"updated"`
}

func (i invoice) refundBody(r refund) refundBody {
	body := refundBody{
		ID: r.ID, InvoiceID: i.ID, Amount: r.Amount, Currency: "IDR", Status: r.status(), Reason: "REQUESTED_BY_CUSTOMER",
		Created: stamp(r.Created), Updated: stamp(r.Created),
	}
	if !r.Failed.IsZero() {
		body.Updated = stamp(r.Failed)
	}
	return body
}

type refundNotice struct {
	Event      string        `json:"event"`
	BusinessID kit.AccountID `json:"business_id"`
	Created    string        `json:"created"`
	Data       refundBody    `json:"data"`
}

// listRefunds answers the refunds of an invoice, the oldest first.
func (s *Simulator) listRefunds(r *http.Request) (int, any, error) {
	i, err := s.findInvoice(accountOf(r).ID, r.URL.Query().Get("invoice_id"))
	if err != nil {
		return 0, nil, err
	}
	list := []refundBody{}
	for _, one := range i.Refunds {
		list = append(list, i.refundBody(one))
	}
	return http.StatusOK, map[string]any{"data": list, "has_more": false}, nil
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
		if before.ID == r.ID && before.Failed.IsZero() {
			one, known, left = before, true, before.Amount
			one.Failed = now
		}
	}
	if !known || one.Amount < 1 || one.Amount > left {
		s.mu.Unlock()
		return kit.Returned{}, &kit.NotPayable{Reason: "of the invoice " + left.String() + " are left, and it has no such refund"}
	}
	event := map[string]string{stateSucceeded: "refund.succeeded", stateFailed: "refund.failed"}[one.status()]
	notice := refundNotice{event, i.Account, stamp(now), i.refundBody(one)}
	entries := []kit.Entry{s.invoiceTopic.Entry(invoiceEvent{ID: i.ID, Refund: &one})}
	if i.Amount != magicLost {
		entries = append(entries, s.webhook(kit.Webhook{Account: i.Account, Subject: i.ID, Says: event, At: now}, 1, notice)...)
	}
	commit := s.env.Journal.Append(entries...)
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
