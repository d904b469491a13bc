package sandbox

import "context"

// topupStatus is service 39.
func (s *Simulator) topupStatus(_ context.Context, c *call) (result, fields, error) {
	return s.status(c, serviceTopup, string(serviceTopup))
}

// bankStatus is service 00, which calls itself so.
func (s *Simulator) bankStatus(_ context.Context, c *call) (result, fields, error) {
	return s.status(c, serviceBank, string(serviceBankStatus))
}

// status answers what became of a transfer of a service.
func (s *Simulator) status(c *call, of service, code string) (result, fields, error) {
	f := c.form
	own := f.text("originalReferenceNo", 64, false)
	ref := f.text("originalPartnerReferenceNo", 64, own == "")
	f.text("originalExternalId", 36, false)
	f.oneOf("serviceCode", code)
	if err := f.err(); err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	t := s.transfers.byID[own]
	if own == "" {
		t = s.transfers.byRef[reference{c.wallet.id, ref}]
	}
	found := t != nil && t.Account == c.wallet.id && t.Service == of && t.State != stateQueued && !t.unseenAt(s.now()) && (ref == "" || t.Ref == ref)
	var body fields
	if found {
		body = t.statusAnswer(code, t.wrongAt(s.now(), s.delay))
	}
	s.mu.Unlock()
	if !found && !s.options.NotFoundAs07 {
		return "", nil, refuse(resultNotFound)
	}
	if !found {
		body = fields{
			"originalPartnerReferenceNo": ref, "originalReferenceNo": own, "serviceCode": code,
			"latestTransactionStatus": stateNotFound, "transactionStatusDesc": descriptions[stateNotFound],
		}
	}
	return resultOK, body, nil
}

// statusAnswer renders a transfer as it is.
func (t *transfer) statusAnswer(code string, wrong bool) fields {
	amount := t.Amount
	if wrong {
		amount *= wrongFactor
	}
	body := fields{
		"originalPartnerReferenceNo": t.Ref, "originalReferenceNo": t.ID, "originalExternalId": t.ExternalID,
		"serviceCode": code, "amount": rupiah(amount),
		"latestTransactionStatus": t.State, "transactionStatusDesc": descriptions[t.State],
	}
	if !t.Finished.IsZero() {
		body["transactionDate"] = stamp(t.Finished)
	}
	return body
}
