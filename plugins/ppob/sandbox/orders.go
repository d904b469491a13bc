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
		kit.NewOrder("deposit", `{"amount":0,"username":"…"} sets the deposit of an account, or of all`, s.setDeposit),
		kit.NewOrder("product", `{"sku":"xld10","price":11000} changes price, stock, buyer_product_status or seller_product_status; bill and admin of a postpaid one`, s.changeProduct),
		kit.NewOrder("catalogue", `{"more":10000} adds so many prepaid products, as long as a real price list is`, s.addProducts),
		kit.NewOrder("refund", `{"reference":"…"} takes a success back (rc 74): a ref_id, a serial number, or a customer number for its newest`, s.refund),
		kit.NewOrder("delay", `{"delay":"10s"} is how long results of purchases to come take`, s.setDelay),
		kit.NewOrder("plan", `{"plan":"twice","count":1,"sku":"…"} decides what becomes of the next purchases: `+planNames(), s.planNext),
	}
}

func planNames() string {
	names := make([]string, len(planEffects))
	for i, e := range planEffects {
		names[i] = string(e.plan)
	}
	return strings.Join(names, ", ") + " or rcNN"
}

type depositOrder struct {
	Username string       `json:"username,omitempty"`
	Amount   money.Amount `json:"amount"`
}

func (s *Simulator) setDeposit(o depositOrder) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var entries []kit.Entry
	for id, a := range s.accounts {
		if o.Username == "" || o.Username == a.Username {
			entries = append(entries, s.buyerTopic.Entry(buyerEvent{ID: id, Deposit: o.Amount}))
		}
	}
	if entries == nil {
		return nil, kit.ErrUnknown
	}
	return o, s.env.Journal.Append(entries...).Wait()
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

// plannedNext is an order for purchases to come. It is forgotten at a restart,
// as faults are.
type plannedNext struct {
	Plan  plan   `json:"plan"`
	SKU   string `json:"sku,omitempty"`
	Count int    `json:"count"`
}

func (s *Simulator) planNext(o plannedNext) (any, error) {
	if o.Count == 0 {
		o.Count = 1
	}
	if !o.Plan.valid() || o.Count < 1 {
		return nil, fmt.Errorf("plan must be one of %s, and count at least 1", planNames())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.SKU != "" && s.bySKU[o.SKU] == nil {
		return nil, errors.New("there is no such sku")
	}
	s.planned = append(s.planned, o)
	return o, nil
}

// takePlan uses up an ordered plan that fits, or returns the usual one.
func (s *Simulator) takePlan(sku string, usual plan) plan {
	for i := range s.planned {
		o := &s.planned[i]
		if o.SKU != "" && o.SKU != sku {
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

type refundOrder struct {
	Reference string `json:"reference"`
	Username  string `json:"username,omitempty"`
}

// refund takes back the newest success that a reference names.
func (s *Simulator) refund(o refundOrder) (any, error) {
	if o.Reference == "" {
		return nil, errors.New("reference is required")
	}
	s.mu.Lock()
	p := s.purchases.newest(func(p *purchase) bool {
		return p.State == stateSucceeded && (p.Ref == o.Reference || p.Serial == o.Reference || p.Customer == o.Reference) &&
			(o.Username == "" || p.Account == kit.AccountOf(o.Username))
	})
	if p == nil {
		s.mu.Unlock()
		return nil, kit.ErrUnknown
	}
	commit := s.become(p, stateRefunded, s.now())
	answer := s.render(p)
	s.mu.Unlock()
	return answer, commit.Wait()
}
