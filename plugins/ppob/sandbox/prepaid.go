package sandbox

import (
	"strings"
	"time"
)

// buy buys a prepaid product, or answers the status of a purchase with the same
// ref_id: the request for both is one.
func (s *Simulator) buy(c call) (any, error) {
	return s.transact(c, func(now time.Time) (notice, func() error, error) {
		if p := s.purchases.current(c.ref(), now); p != nil {
			return s.again(p, c, now)
		}
		if _, inquired := s.inquiry(c.ref(), now); inquired {
			return notice{}, nil, refuse(rcReference)
		}
		p, err := s.prepaid(c, now)
		if err != nil {
			return notice{}, nil, err
		}
		return s.accept(p, c, now)
	})
}

// transact runs a step of /transaction under the lock, and answers once what
// it answers is on disk.
func (s *Simulator) transact(c call, step func(now time.Time) (notice, func() error, error)) (any, error) {
	if c.Ref == "" || c.SKU == "" || c.Customer == "" {
		return nil, refuseBecause(rcPayload, "ref_id, buyer_sku_code dan customer_no wajib diisi")
	}
	s.mu.Lock()
	answer, wait, err := step(s.now())
	s.mu.Unlock()
	if err == nil {
		err = wait()
	}
	if err != nil {
		return nil, err
	}
	return answer, nil
}

func (c call) ref() reference { return reference{c.account, c.Ref} }

// prepaid judges a purchase and decides what becomes of it.
func (s *Simulator) prepaid(c call, now time.Time) (purchase, error) {
	product, err := s.find(c.SKU, false)
	if err != nil {
		return purchase{}, err
	}
	if product.Stock != nil && *product.Stock == 0 {
		return purchase{}, refuse(rcOutOfStock)
	}
	p := purchase{Price: product.Price, Serial: product.serial(c.Ref, now)}
	if err := s.affordable(p, c); err != nil {
		return purchase{}, err
	}
	customer := c.Customer
	if c.AllowDot {
		customer = strings.ReplaceAll(customer, ".", "")
	}
	code := product.targetCode(customer)
	if code == rcSuccess && product.SellerOff {
		code = rcSellerOff
	}
	if code != rcSuccess {
		p.Plan = planOf(code)
		return p, nil
	}
	p.Plan = s.takePlan(c.SKU, planFor(c.Customer))
	return p, nil
}

// affordable refuses what is dearer than the buyer wants or can pay.
func (s *Simulator) affordable(p purchase, c call) error {
	if c.MaxPrice != nil && p.Price > *c.MaxPrice {
		return refuse(rcPrice)
	}
	if p.Price > s.accounts[c.account].deposit {
		return refuse(rcDeposit)
	}
	return nil
}
