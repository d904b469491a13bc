package sandbox

import (
	"cmp"
	"net/http"
	"time"

	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// find returns what a page is about: an invoice or a QR code.
func (s *Simulator) find(id string) (kit.Payment, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := s.now()
	if found, ok := s.invoices.byID[id]; ok {
		return s.invoicePayment(found.at(now)), true
	}
	if found, ok := s.codes.byID[id]; ok {
		return s.codePayment(*found, now), true
	}
	return kit.Payment{}, false
}

func (s *Simulator) invoicePayment(i invoice) kit.Payment {
	pending := i.State == statePending
	return kit.Payment{
		Merchant: i.Merchant, Amount: i.Amount.Format(), Reference: i.ExternalID, Description: i.Description,
		State: i.State, Expiry: stamp(i.Expiry), Pending: pending, SuccessURL: i.SuccessURL, Lookup: "invoices.get",
		// What is paid after its time is late money, for the amount that allows it.
		Open:  pending || i.State == stateExpired && i.Amount == magicPaidAfterTime,
		Ended: !pending,
		Pay: func(how kit.Telling) error {
			_, err := s.payInvoice(i.ID, 0, how)
			return err
		},
		Fail:   func() error { return s.endInvoice(i.ID, s.now(), func(invoice) bool { return true }) },
		Notify: func() []kit.Entry { return s.invoiceWebhook(i, s.now(), 1) },
	}
}

func (s *Simulator) codePayment(q qrCode, now time.Time) kit.Payment {
	p := kit.Payment{
		Merchant: q.Merchant, Amount: q.Amount.Format(), Reference: q.Reference, State: q.state(now), Expiry: stamp(q.Expiry), Lookup: "qr_codes.get",
		Open:  q.Type == typeDynamic && len(q.Payments) == 0, // one that has run out, too: late money
		Ended: len(q.Payments) > 0,
		Pay: func(how kit.Telling) error {
			_, _, err := s.payQR(q.ID, 0, how)
			return err
		},
		Fail: func() error { return s.endQR(q.ID, s.now(), func(qrCode) bool { return true }) },
	}
	p.Pending = p.Open && p.State == stateActive
	switch {
	case p.Ended:
		p.State = statePaid
		p.Notify = func() []kit.Entry { return s.qrWebhook(q, q.Payments[len(q.Payments)-1], s.now(), 1) }
	case q.Type == typeStatic:
		p.Amount = "any amount"
	}
	return p
}

// named are the invoices and codes that a call names, in its path or its query, also by a
// refund.
func (s *Simulator) named(r *http.Request) []string {
	account, query := accountOf(r).ID, r.URL.Query()
	s.mu.RLock()
	defer s.mu.RUnlock()
	var ids []string
	for _, name := range []string{r.PathValue("id"), query.Get("external_id"), query.Get("reference_id"), query.Get("invoice_id")} {
		if name == "" {
			continue
		}
		if i, ok := s.invoices.byID[cmp.Or(s.refunds.invoices[name], name)]; ok && i.Account == account {
			ids = append(ids, i.ID)
		}
		for _, i := range s.invoices.byReference[reference{account, name}] {
			ids = append(ids, i.ID)
		}
		if q, ok := s.codes.find(account, name); ok {
			ids = append(ids, q.ID)
		}
	}
	return ids
}
