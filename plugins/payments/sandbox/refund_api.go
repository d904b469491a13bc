package sandbox

import (
	"net/http"
	"slices"

	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// createRefund makes a refund of a paid invoice. The same idempotency-key is the same
// refund, answered again; another request of the same reference_id is a duplicate.
func (s *Simulator) createRefund(r *http.Request) (int, any, error) {
	account, invoiceID, wanted, err := s.readRefund(r)
	if err != nil {
		return 0, nil, err
	}
	s.mu.Lock()
	if i, before, known := s.refundOfKey(account, wanted.Key); known {
		s.mu.Unlock()
		if i.ID != invoiceID || wanted.Reference != before.Reference || wanted.Amount != 0 && wanted.Amount != before.Amount {
			return 0, nil, errRefundKey
		}
		// What is answered must not be undone by a crash.
		return http.StatusOK, i.refundBody(before), s.env.Journal.Sync()
	}
	i, ok := s.invoices.byID[invoiceID]
	if err = errInvoiceNotFound; ok && i.Account == account {
		wanted, err = s.acceptRefund(*i, wanted)
	}
	if err != nil {
		s.mu.Unlock()
		return 0, nil, err
	}
	of := *i
	commit := s.env.Journal.Append(s.refundEntries(of, wanted, wanted.Created)...)
	s.mu.Unlock()
	if err := commit.Wait(); err != nil {
		return 0, nil, err
	}
	kit.Concern(r.Context(), of.ID)
	return http.StatusOK, of.refundBody(wanted), nil
}

func (s *Simulator) readRefund(r *http.Request) (kit.AccountID, string, refund, error) {
	f, err := readForm(r)
	if err != nil {
		return "", "", refund{}, err
	}
	invoiceID := f.text("invoice_id", true, 255)
	wanted := refund{
		ID: "rfd-" + kit.RandomHex(16), Key: r.Header.Get("idempotency-key"), Created: s.now(),
		Reference: f.text("reference_id", false, 255),
		Amount:    f.rupiah("amount", false),
		Reason:    f.oneOf("reason", true, "FRAUDULENT", "DUPLICATE", "REQUESTED_BY_CUSTOMER", "CANCELLATION", "OTHERS"),
		Metadata:  f.metadata(),
	}
	f.oneOf("currency", false, "IDR")
	if _, given := f.fields["amount"]; given && wanted.Amount < 1 {
		f.wrong("amount", "must be larger than or equal to 1", "number.min")
	}
	return accountOf(r).ID, invoiceID, wanted, f.err()
}

// refundOfKey finds the refund that was made with an idempotency-key. Its caller holds the
// lock.
func (s *Simulator) refundOfKey(account kit.AccountID, key string) (invoice, refund, bool) {
	id, known := s.refunds.byKey[reference{account, key}]
	if !known || key == "" {
		return invoice{}, refund{}, false
	}
	i := s.invoices.byID[s.refunds.invoices[id]]
	before, is := i.refund(id)
	return *i, before, is
}

// acceptRefund decides what becomes of a refund. Its caller holds the lock.
func (s *Simulator) acceptRefund(i invoice, wanted refund) (refund, error) {
	if _, taken := s.refunds.byReference[reference{i.Account, wanted.Reference}]; taken {
		return refund{}, errRefundDuplicate
	}
	left := i.left()
	switch {
	case i.State != statePaid:
		return refund{}, errRefundIneligible
	case wanted.Amount == 0:
		wanted.Amount = left
	}
	if wanted.Amount < 1 || wanted.Amount > left {
		return refund{}, errRefundMaximum
	}
	if err := magicRefundRefusal(wanted.Amount); err != nil {
		return refund{}, err
	}
	if magicRefundFailure[wanted.Amount] != "" || wanted.Amount == magicRefundPending {
		wanted.Settles = wanted.Created.Add(selfPayGap)
	}
	return wanted, nil
}

// settleRefund ends a pending refund.
func (s *Simulator) settleRefund(id string) error {
	now := s.now()
	s.mu.Lock()
	i, ok := s.invoices.byID[s.refunds.invoices[id]]
	if !ok {
		s.mu.Unlock()
		return nil
	}
	one, ok := i.refund(id)
	if !ok || one.Settles.IsZero() {
		s.mu.Unlock()
		return nil // also after a restart: it has ended before
	}
	commit := s.env.Journal.Append(s.refundEntries(*i, one.ended(now), now)...)
	s.mu.Unlock()
	return commit.Wait()
}

func (s *Simulator) getRefund(r *http.Request) (int, any, error) {
	id := r.PathValue("id")
	s.mu.RLock()
	invoiceID := s.refunds.invoices[id]
	s.mu.RUnlock()
	i, err := s.findInvoice(accountOf(r).ID, invoiceID)
	if err != nil {
		return 0, nil, errRefundNotFound
	}
	one, ok := i.refund(id)
	if !ok {
		return 0, nil, errRefundNotFound
	}
	return http.StatusOK, i.refundBody(one), nil
}

// listRefunds answers the refunds of an invoice, the oldest first, those after after_id
// where it is given.
func (s *Simulator) listRefunds(r *http.Request) (int, any, error) {
	limit, err := readLimit(r)
	if err != nil {
		return 0, nil, err
	}
	query := r.URL.Query()
	i, err := s.findInvoice(accountOf(r).ID, query.Get("invoice_id"))
	if err != nil {
		return 0, nil, err
	}
	refunds := i.Refunds
	if after := query.Get("after_id"); after != "" {
		refunds = refunds[slices.IndexFunc(refunds, func(one refund) bool { return one.ID == after })+1:]
	}
	list := []refundBody{}
	for _, one := range refunds[:min(limit, len(refunds))] {
		list = append(list, i.refundBody(one))
	}
	return http.StatusOK, map[string]any{"data": list, "has_more": len(list) < len(refunds)}, nil
}
