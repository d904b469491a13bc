package sandbox

import (
	"net/http"
	"slices"
)

// listInvoices answers a bare array of an account's invoices, or of those with an
// external_id, the newest first.
func (s *Simulator) listInvoices(r *http.Request) (int, any, error) {
	limit, err := readLimit(r)
	if err != nil {
		return 0, nil, err
	}
	account, now := accountOf(r).ID, s.now()
	found := []invoiceBody{}
	s.mu.RLock()
	candidates := s.invoices.byAccount[account]
	if external := r.URL.Query().Get("external_id"); external != "" {
		candidates = s.invoices.byReference[reference{account, external}]
	}
	for _, i := range slices.Backward(candidates) {
		if len(found) == limit {
			break
		}
		found = append(found, i.at(now).body(r))
	}
	s.mu.RUnlock()
	// What is answered must not be undone by a crash.
	return http.StatusOK, found, s.env.Journal.Sync()
}
