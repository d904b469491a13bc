package sandbox

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// payment is money that a payer has sent.
type payment struct {
	ID       string       `json:"id"` // of its settlement
	Merchant string       `json:"merchant"`
	Amount   money.Amount `json:"amount"`
	At       time.Time    `json:"at"`
}

// reversal is money that the payer's bank has taken back.
type reversal struct {
	ID string    `json:"id"` // of the settlement
	At time.Time `json:"at"`
}

// States of a payment, as the witness knows them.
const (
	statePaid     = "PAID"
	stateReversed = "REVERSED"
)

// Pay takes a payment by a code of one of our accounts: the printed one, with
// an amount of the payer's, or one for a sale that was made of it. As with any
// wallet, nothing stops two payers from paying the same code.
func (s *Simulator) Pay(r kit.PayRequest) (kit.Receipt, error) {
	code, err := qris.Parse(r.QRString)
	if err != nil {
		return kit.Receipt{}, kit.ErrUnknown
	}
	merchant, amount, err := s.judge(code, r.Amount)
	if err != nil {
		return kit.Receipt{}, err
	}
	p := payment{ID: newID(), Merchant: merchant, Amount: amount, At: s.now().Truncate(time.Second)}
	if err := s.commit(s.paymentTopic.Entry(p)); err != nil {
		return kit.Receipt{}, err
	}
	return kit.Receipt{Reference: p.ID, Amount: amount, State: statePaid}, s.reportLater(merchant)
}

// judge finds whom a code pays, and how much.
func (s *Simulator) judge(code qris.Code, typed *money.Amount) (merchant string, amount money.Amount, err error) {
	s.mu.Lock()
	a, ok := s.accounts[code.NationalID()]
	s.mu.Unlock()
	if !ok {
		return "", 0, kit.ErrUnknown
	}
	if code.String() == a.code.String() {
		if typed == nil {
			return "", 0, &kit.NotPayable{Reason: "the printed code has no amount: give one"}
		}
		return a.merchant, *typed, nil
	}
	asked, _ := code.Amount()
	made, err := a.code.Dynamic(asked)
	if err != nil || made.String() != code.String() {
		return "", 0, kit.ErrUnknown // not made of the code that is printed
	}
	if typed != nil && *typed != asked {
		return "", 0, &kit.NotPayable{Reason: "this code asks for " + asked.Format() + ", and payers can't change that"}
	}
	return a.merchant, asked, nil
}

// reportLater has a payment reported: now, or once it is late enough.
func (s *Simulator) reportLater(merchant string) error {
	if s.options.Late <= 0 {
		return s.publish(merchant, false)
	}
	s.agenda.Add(s.env.Clock.Now().Add(s.options.Late), task{merchant: merchant})
	return nil
}

func (s *Simulator) applyPayment(p payment) {
	a, ok := s.accounts[p.Merchant]
	if !ok {
		return
	}
	a.waiting = append(a.waiting, line{payment: p, Due: p.At.Add(s.options.Late)})
	s.payments[p.ID] = p
	s.env.Movements.Record(p.ID, kit.Movement{
		Reference: p.ID, Destination: p.Merchant, Amount: p.Amount, State: statePaid, At: p.At,
	})
}

// reverse takes a payment back.
func (s *Simulator) reverse(id string) error {
	s.mu.Lock()
	p, ok := s.payments[id]
	if !ok || s.reversed[id] {
		s.mu.Unlock()
		if !ok {
			return kit.ErrUnknown
		}
		return fmt.Errorf("settlement %s was taken back already", id)
	}
	commit := s.env.Journal.Append(s.reversalTopic.Entry(reversal{id, s.now().Truncate(time.Second)}))
	s.mu.Unlock()
	if err := commit.Wait(); err != nil {
		return err
	}
	return s.reportLater(p.Merchant)
}

func (s *Simulator) applyReversal(r reversal) {
	back, ok := s.payments[r.ID]
	if !ok {
		return
	}
	back.At = r.At
	a := s.accounts[back.Merchant]
	a.waiting = append(a.waiting, line{payment: back, Reversed: true, Due: r.At.Add(s.options.Late)})
	s.reversed[r.ID] = true
	s.env.Movements.SetState(r.ID, stateReversed)
}

// newID is a number that was never used.
func newID() string { return "STL" + rand.Text()[:16] }
