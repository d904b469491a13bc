package sandbox

import (
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// Products that want more than a customer number.
const (
	skuPLN    = "pln"
	skuPBB    = "cimahi"
	skuEMoney = "emoney"
)

// nominalStep is what an amount of electronic money is a multiple of.
const nominalStep = 1_000

// inquiry is a bill that was asked for and can be paid on the same day.
type inquiry struct {
	Account  kit.AccountID `json:"account"`
	Ref      string        `json:"ref"`
	SKU      string        `json:"sku"`
	Customer string        `json:"customer"`
	Price    money.Amount  `json:"price"`
	Bill     bill          `json:"bill"`
	At       time.Time     `json:"at"`
}

func (s *Simulator) applyInquiry(i inquiry) { s.inquiries[reference{i.Account, i.Ref}] = i }

// inquiry returns what a ref_id was last used to ask.
func (s *Simulator) inquiry(ref reference, now time.Time) (inquiry, bool) {
	i, ok := s.inquiries[ref]
	return i, ok && now.Sub(i.At) < refLife
}

// inquire answers inq-pasca: it may be repeated until the bill is paid.
func (s *Simulator) inquire(c call) (any, error) {
	return s.transact(c, func(now time.Time) (notice, func() error, error) {
		old, asked := s.inquiry(c.ref(), now)
		if s.purchases.current(c.ref(), now) != nil || asked && (old.SKU != c.SKU || old.Customer != c.Customer) {
			return notice{}, nil, refuse(rcReference)
		}
		i, err := s.billFor(c, now)
		if err != nil {
			return notice{}, nil, err
		}
		commit := s.env.Journal.Append(s.inquiryTopic.Entry(i))
		n := s.render(&purchase{
			Account: c.account, Ref: c.Ref, SKU: c.SKU, Customer: c.Customer, Price: i.Price, Bill: &i.Bill,
			State: stateSucceeded, Code: rcSuccess, balance: s.accounts[c.account].deposit,
		})
		return n, commit.Wait, nil
	})
}

// billFor finds the bill of a test number.
func (s *Simulator) billFor(c call, now time.Time) (inquiry, error) {
	product, err := s.find(c.SKU, true)
	if err != nil {
		return inquiry{}, err
	}
	if product.SellerOff {
		return inquiry{}, refuse(rcSellerOff)
	}
	p := *product
	switch c.SKU {
	case skuPBB:
		year := strings.Trim(string(c.Year), `"`)
		if len(year) != 4 || digitsWithin(year, 4, 4) != rcSuccess {
			return inquiry{}, refuseBecause(rcPayload, "year wajib diisi untuk PBB")
		}
	case skuEMoney:
		if c.Amount == nil || *c.Amount == 0 || *c.Amount%nominalStep != 0 {
			return inquiry{}, refuse(rcMultiple)
		}
		p.Bill = *c.Amount
	}
	number, ok := testNumbers[c.SKU][c.Customer]
	if !ok {
		return inquiry{}, refuse(rcCustomer)
	}
	if number.plan == "" {
		return inquiry{}, refuse(rcNoBill)
	}
	made, price := p.bill(number.bills, now)
	return inquiry{c.account, c.Ref, c.SKU, c.Customer, price, made, now}, nil
}

// payBill answers pay-pasca. What it answers where the documents say nothing is
// our choice: rc 50 without an inquiry, rc 88 for one of another day.
func (s *Simulator) payBill(c call) (any, error) {
	return s.transact(c, func(now time.Time) (notice, func() error, error) {
		if p := s.purchases.current(c.ref(), now); p != nil {
			return s.again(p, c, now)
		}
		i, ok := s.inquiry(c.ref(), now)
		switch {
		case !ok:
			return notice{}, nil, refuseBecause(rcNotFound, "Tagihan belum dicek")
		case i.SKU != c.SKU || i.Customer != c.Customer:
			return notice{}, nil, refuse(rcReference)
		case day(i.At) != day(now):
			return notice{}, nil, refuseBecause(rcNotAllowed, "Tagihan harus dibayar di hari pengecekannya")
		}
		product, err := s.find(c.SKU, true)
		if err != nil {
			return notice{}, nil, err
		}
		p := purchase{Price: i.Price, Bill: &i.Bill, Serial: "S" + digitsOf("bill:"+c.Ref, 10) + "N"}
		if err := s.affordable(p, c); err != nil {
			return notice{}, nil, err
		}
		p.Plan = planOf(rcSellerOff)
		if !product.SellerOff {
			p.Plan = s.takePlan(c.SKU, testNumbers[c.SKU][c.Customer].plan)
		}
		return s.accept(p, c, now)
	})
}

// billStatus answers status-pasca.
func (s *Simulator) billStatus(c call) (any, error) {
	return s.transact(c, func(now time.Time) (notice, func() error, error) {
		p := s.purchases.current(c.ref(), now)
		if p == nil {
			return notice{}, nil, refuseBecause(rcNotFound, "Data transaksi belum ada")
		}
		return s.again(p, c, now)
	})
}

// day is a calendar day where the upstream is.
func day(t time.Time) string { return t.In(jakarta).Format(time.DateOnly) }
