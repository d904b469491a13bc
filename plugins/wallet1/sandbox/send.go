package sandbox

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// topup is service 38: money to another user's wallet.
func (s *Simulator) topup(ctx context.Context, c *call) (result, fields, error) {
	f := c.form
	t := transfer{Service: serviceTopup, Silent: true}
	t.Ref = f.text("partnerReferenceNo", 64, true)
	t.To = f.matching("customerNumber", phoneForm)
	f.text("customerName", 255, false)
	t.Amount = f.amount("amount", 1)
	if _, given := f.raw("feeAmount", false); given {
		f.amount("feeAmount", 0)
	}
	f.moment("transactionDate", s.now())
	session := f.text("sessionId", 64, false)
	f.text("categoryId", 64, false)
	f.text("notes", 255, false)
	c.fund(f.object("additionalInfo", c.dana), fundTopup)
	if err := f.err(); err != nil {
		return "", nil, err
	}
	usual := inputOf(phones, t.To).transfer
	if t.Amount == magicShortTopup {
		usual = planOf(resultFunds)
	}
	return s.send(ctx, c, order{t, opTopup, session, usual, s.options.MaxTopup})
}

// transferToBank is service 43.
func (s *Simulator) transferToBank(ctx context.Context, c *call) (result, fields, error) {
	f := c.form
	t := transfer{Service: serviceBank}
	t.Ref = f.text("partnerReferenceNo", 64, true)
	payer := f.matching("customerNumber", phoneForm)
	number := f.matching("beneficiaryAccountNumber", accountForm)
	code := f.matching("beneficiaryBankCode", bankForm)
	t.Amount = f.amount("amount", 1)
	session := f.text("sessionId", 64, false)
	info := f.object("additionalInfo", c.dana)
	c.fund(info, fundBank)
	t.Silent = !info.says("needNotify", true)
	t.To = code + "/" + number
	if err := f.err(); err != nil {
		return "", nil, err
	}
	if err := s.checkBank(c, payer, code); err != nil {
		return "", nil, err
	}
	usual := inputOf(accounts, number).transfer
	if t.Amount == magicShortBank {
		usual = planOf(resultFunds)
	}
	return s.send(ctx, c, order{t, opBank, session, usual, s.options.MaxBank})
}

// order is a transfer that was asked for, in good form.
type order struct {
	transfer
	operation string
	session   string
	usual     plan         // of its destination or amount
	most      money.Amount // of one transfer
}

// send makes a transfer, or finds the one that its reference names.
func (s *Simulator) send(ctx context.Context, c *call, o order) (result, fields, error) {
	t, made, wait, err := s.accept(c, o)
	if err == nil {
		err = wait()
	}
	if err != nil {
		return "", nil, err
	}
	if !made {
		return t.again(&o.transfer)
	}
	if t.Plan == planTimeout {
		s.hang(ctx)
	}
	if r := t.Plan.answer(); r.status() >= 400 {
		return "", nil, refuse(r)
	}
	return t.Plan.answer(), t.receipt(o.session, t.Plan == planWrongAmount), nil
}

// accept decides under the lock. What it returns is a copy, to be answered once
// wait says that it is on disk; made is false for one that was there before.
func (s *Simulator) accept(c *call, o order) (t transfer, made bool, wait func() error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w, now := c.wallet, s.now()
	if o.session != "" && o.session != w.session(o.To, o.Amount) {
		return t, false, nil, refuseFor(resultFormat, "sessionId")
	}
	if old := s.transfers.byRef[reference{w.id, o.Ref}]; old != nil && !s.options.Careless {
		return *old, false, s.env.Journal.Sync, nil
	}
	t = o.transfer
	t.ID, t.Account, t.ExternalID, t.Created = newID(), w.id, c.externalID, now
	t.Plan, t.Fee = s.takePlan(o.operation, o.usual), s.fees.Wallet
	if t.Service == serviceBank {
		t.Fee = s.fees.Bank
	}
	if err := t.Plan.refusal(t.To); err != nil {
		return t, false, nil, err
	}
	if t.Plan == planTokenExpired {
		s.env.Journal.Append(s.tokenTopic.Entry(tokenEvent{w.id}))
		return t, false, nil, refuse(resultToken)
	}
	if t.Amount+t.Fee > w.balance {
		return t, false, nil, refuse(resultFunds)
	}
	if err := s.bounds(t.Amount, o.most); err != nil {
		return t, false, nil, err
	}
	t.State = t.Plan.first()
	if t.State == stateDone {
		t.Finished = now
	}
	if t.Plan.then() != "" {
		t.Due = now.Add(s.delay)
	}
	return t, true, s.env.Journal.Append(s.transferTopic.Entry(transferEvent{New: &t})).Wait, nil
}

// again answers a reference that was used before.
func (t *transfer) again(asked *transfer) (result, fields, error) {
	switch {
	case !t.same(asked):
		return "", nil, refuse(resultInconsistent)
	case t.open():
		return resultPending, t.receipt("", false), nil
	case t.State == stateDone || t.State == stateRefunded:
		return "", nil, refuse(resultReference)
	default:
		return "", nil, refuse(resultStatus)
	}
}

// wrongFactor is how much too high a wrong amount is.
const wrongFactor = 10

// receipt is the answer to a transfer.
func (t *transfer) receipt(session string, wrong bool) fields {
	body := fields{"referenceNo": t.ID, "partnerReferenceNo": t.Ref}
	if t.Service == serviceBank {
		body["transactionDate"], body["referenceNumber"] = stamp(t.Created), digitsOf(t.ID, 12)
		return body
	}
	amount := t.Amount
	if wrong {
		amount *= wrongFactor
	}
	body["customerNumber"], body["amount"], body["sessionId"] = t.To, rupiah(amount), session
	return body
}

// resultOf brings what a transfer was waiting for.
func (s *Simulator) resultOf(id string) error {
	s.mu.Lock()
	t := s.transfers.byID[id]
	to := t.Plan.then()
	if !t.open() && (t.State != stateDone || to != stateRefunded) {
		s.mu.Unlock()
		return nil // also after a restart: it came before, or by order
	}
	if t.State == stateQueued && t.Amount+t.Fee > s.wallets[t.Account].balance {
		to = stateFailed
	}
	commit := s.become(t, to)
	s.mu.Unlock()
	return commit.Wait()
}

// become moves a transfer to a state, together with its notifications.
func (s *Simulator) become(t *transfer, to state) kit.Commit {
	now := s.now()
	after := *t
	after.State, after.Finished = to, now
	change := s.transferTopic.Entry(transferEvent{ID: t.ID, State: to, At: now})
	return s.env.Journal.Append(append([]kit.Entry{change}, s.notices(&after, now)...)...)
}

// unseenAt reports whether the status does not know it yet at a moment.
func (t *transfer) unseenAt(now time.Time) bool {
	return t.Plan == planUnseen && now.Before(t.Created.Add(unseenFor))
}

// wrongAt reports whether a wrong amount is still answered at a moment.
func (t *transfer) wrongAt(now time.Time, delay time.Duration) bool {
	return t.Plan == planWrongStatus || t.Plan == planWrongAmount && now.Before(t.Created.Add(delay))
}
