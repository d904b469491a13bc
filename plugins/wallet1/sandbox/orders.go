package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// Orders are the control orders of this upstream.
func (s *Simulator) Orders() []kit.Order {
	return []kit.Order{
		kit.NewOrder("incoming", `{"amount":50000,"client_id":"…","type":"TOP_UP","from":"…","at":"…"} lets money come in: TOP_UP or RECEIVE_MONEY, to one account or all`, s.incoming),
		kit.NewOrder("balance", `{"amount":0,"client_id":"…"} sets the balance of an account, or of all, by a row in the history`, s.setBalance),
		kit.NewOrder("tokens", `{"client_id":"…"} expires the tokens of an account, or of all`, s.expireTokens),
		kit.NewOrder("outcome", `{"reference":"…","status":"00"} ends a pending transfer: 00 success, 05 cancelled or 06 failed`, s.setOutcome),
		kit.NewOrder("refund", `{"reference":"…"} takes a success back (04)`, s.refund),
		kit.NewOrder("fees", `{"bank":2500,"wallet":0} sets what is taken beside an amount from now on`, s.setFees),
		kit.NewOrder("delay", `{"delay":"10s"} is how long results of transfers to come take`, s.setDelay),
		kit.NewOrder("plan", `{"plan":"twice","operation":"transfer-bank","count":1} decides what becomes of the next transfers: `+planNames()+
			`, codeHHHCC (refused with HTTP status and case; any operation) or doneHHHCC (done, and answered so)`, s.planNext),
	}
}

func planNames() string {
	names := make([]string, len(courses))
	for i, c := range courses {
		names[i] = string(c.plan)
	}
	return strings.Join(names, ", ")
}

// whose is an account, or all of them.
type whose struct {
	ClientID string `json:"client_id,omitempty"`
}

// entries makes an entry for each account that is meant, under the lock, and
// appends them as one.
func (s *Simulator) entries(of whose, entryOf func(*wallet) kit.Entry) error {
	s.mu.Lock()
	var entries []kit.Entry
	for _, w := range s.wallets {
		if of.ClientID == "" || of.ClientID == w.ClientID {
			entries = append(entries, entryOf(w))
		}
	}
	if entries == nil {
		s.mu.Unlock()
		return kit.ErrUnknown
	}
	commit := s.env.Journal.Append(entries...)
	s.mu.Unlock()
	return commit.Wait()
}

type incomingOrder struct {
	whose
	Amount money.Amount `json:"amount"`
	Type   kind         `json:"type,omitempty"`
	From   string       `json:"from,omitempty"`
	At     time.Time    `json:"at,omitzero"`
}

func (s *Simulator) incoming(o incomingOrder) (any, error) {
	if o.Type == "" {
		o.Type = kindTopup
	}
	if o.Amount < 1 || o.Type != kindTopup && o.Type != kindReceive {
		return nil, errors.New("amount must be at least 1, and type TOP_UP or RECEIVE_MONEY")
	}
	remark := "Top up saldo"
	if o.Type == kindReceive {
		remark = "Terima uang"
	}
	if o.From != "" {
		remark += " dari " + o.From
	}
	if o.At.IsZero() {
		o.At = s.now()
	}
	return o, s.entries(o.whose, func(w *wallet) kit.Entry {
		return s.entryTopic.Entry(entry{w.id, row{At: o.At.UTC(), Amount: o.Amount, In: true, Kind: o.Type, Remark: remark}})
	})
}

type balanceOrder struct {
	whose
	Amount money.Amount `json:"amount"`
}

func (s *Simulator) setBalance(o balanceOrder) (any, error) {
	now := s.now()
	return o, s.entries(o.whose, func(w *wallet) kit.Entry {
		r := row{At: now, Amount: o.Amount - w.balance, In: true, Kind: kindTopup, Remark: "Penyesuaian saldo"}
		if r.Amount < 0 {
			r.Amount, r.In, r.Kind = -r.Amount, false, kindPayment
		}
		return s.entryTopic.Entry(entry{w.id, r})
	})
}

func (s *Simulator) expireTokens(o whose) (any, error) {
	return o, s.entries(o, func(w *wallet) kit.Entry { return s.tokenTopic.Entry(tokenEvent{w.id}) })
}

func (s *Simulator) setFees(o fees) (any, error) {
	s.mu.Lock()
	commit := s.env.Journal.Append(s.feeTopic.Entry(o))
	s.mu.Unlock()
	return o, commit.Wait()
}

type delayOrder struct {
	Delay string `json:"delay"`
}

func (s *Simulator) setDelay(o delayOrder) (any, error) {
	delay, err := time.ParseDuration(o.Delay)
	if err != nil || delay < 0 {
		return nil, errors.New("delay must be a duration like 2s")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = delay
	return o, nil
}

type outcomeOrder struct {
	whose
	Reference string `json:"reference"`
	Status    state  `json:"status"`
}

func (s *Simulator) setOutcome(o outcomeOrder) (any, error) {
	if !slices.Contains([]state{stateDone, stateCancelled, stateFailed}, o.Status) {
		return nil, errors.New("status must be 00, 05 or 06")
	}
	return s.change(o, func(t *transfer) bool { return t.open() }, o.Status)
}

type refundOrder struct {
	whose
	Reference string `json:"reference"`
}

func (s *Simulator) refund(o refundOrder) (any, error) {
	return s.change(outcomeOrder{o.whose, o.Reference, stateRefunded}, func(t *transfer) bool { return t.State == stateDone }, stateRefunded)
}

// change moves the newest transfer that a reference names, the merchant's or
// ours, to a state.
func (s *Simulator) change(o outcomeOrder, fits func(*transfer) bool, to state) (any, error) {
	if o.Reference == "" {
		return nil, errors.New("reference is required")
	}
	s.mu.Lock()
	var found *transfer
	for _, t := range s.transfers.byID {
		if (t.Ref == o.Reference || t.ID == o.Reference) && (o.ClientID == "" || t.Account == kit.AccountOf(o.ClientID)) &&
			fits(t) && (found == nil || t.Created.After(found.Created)) {
			found = t
		}
	}
	if found == nil {
		s.mu.Unlock()
		return nil, kit.ErrUnknown
	}
	commit := s.become(found, to)
	answer := found.statusAnswer(string(found.Service), false)
	s.mu.Unlock()
	return answer, commit.Wait()
}

// plannedNext is an order for calls to come. It is forgotten at a restart, as
// faults are.
type plannedNext struct {
	Plan      plan   `json:"plan"`
	Operation string `json:"operation,omitempty"`
	Count     int    `json:"count"`
}

var transferring = []string{opTopup, opBank}

func (s *Simulator) planNext(o plannedNext) (any, error) {
	if o.Count == 0 {
		o.Count = 1
	}
	if !o.Plan.valid() || o.Count < 1 {
		return nil, fmt.Errorf("plan must be one of %s, codeHHHCC or doneHHHCC, and count at least 1", planNames())
	}
	if o.Operation != "" {
		known := []string{opToken, opBalance, opHistory, opInquiry, opTopup, opTopupStatus, opBankInquiry, opBank, opBankStatus}
		if !slices.Contains(known, o.Operation) {
			return nil, fmt.Errorf("operation must be one of %s", strings.Join(known, ", "))
		}
		if _, refused := o.Plan.named(refusing); !refused && !slices.Contains(transferring, o.Operation) {
			return nil, errors.New("only a transfer can have this plan")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.planned = append(s.planned, o)
	return o, nil
}

// takePlan uses up an ordered plan that fits, or returns the usual one. Without
// an operation an order is meant for transfers. The lock is held.
func (s *Simulator) takePlan(operation string, usual plan) plan {
	for i := range s.planned {
		o := &s.planned[i]
		if o.Operation != operation && (o.Operation != "" || !slices.Contains(transferring, operation)) {
			continue
		}
		p := o.Plan
		if o.Count--; o.Count == 0 {
			s.planned = slices.Delete(s.planned, i, i+1)
		}
		return p
	}
	return usual
}

// plannedRefusal is the refusal that was ordered for an operation that is no
// transfer.
func (s *Simulator) plannedRefusal(operation string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takePlan(operation, planSuccess).refusal("")
}
