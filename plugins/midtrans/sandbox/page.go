package sandbox

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// pagePrefix begins the path of a page to pay on.
const pagePrefix = "/snap/v4/redirection/"

// Amounts that make something special happen.
const (
	magicNotActivated money.Amount = 10100
	magicTwice        money.Amount = 10110
	magicLost         money.Amount = 10112
	magicPaidByItself money.Amount = 10114
	magicDenied       money.Amount = 10116

	// selfPayGap is when magicPaidByItself is paid.
	selfPayGap = 3 * time.Second
)

// page is the id of an order's page: a link's is its token.
func (o order) page() string { return cmp.Or(o.Token, o.ID) }

// room finds what a page is about.
func (s *Simulator) room(id string) (kit.Payment, bool) {
	o, ok, err := s.find(func() *order {
		if o := s.byToken[id]; o != nil {
			return o
		}
		if o := s.byID[id]; o != nil && o.page() == id {
			return o
		}
		return nil
	})
	if err != nil || !ok {
		return kit.Payment{}, false
	}
	state := o.state(s.now())
	open := state == statePending || state == stateUntouched
	return kit.Payment{
		Merchant: o.Merchant, Amount: o.Amount.Format(), Reference: o.OrderID, State: state, Expiry: o.Expiry.Format(time.RFC3339),
		SuccessURL: o.Finish, Pending: open, Open: open, Ended: o.Tx != nil && o.Tx.State != statePending, Lookup: "status",
		Pay: func(how kit.Telling) error {
			_, err := s.pay(o.ID, how)
			return err
		},
		Fail:   func() error { return s.fail(o.ID) },
		Notify: func() []kit.Entry { return s.notice(o, s.env.Clock.Now(), 1) },
	}, true
}

// offered finds what a payer has before them.
func (s *Simulator) offered(qr, page string) (order, error) {
	token := ""
	if target, err := url.Parse(page); err == nil {
		token, _ = strings.CutPrefix(target.Path, pagePrefix)
	}
	o, ok, err := s.find(func() *order {
		if qr != "" {
			return s.byQR[qr]
		}
		return s.byToken[token]
	})
	if err == nil && !ok {
		err = kit.ErrUnknown
	}
	return o, err
}

// Pay pays a code or a page as a payer would. The upstream takes no other amount than
// the one asked for.
func (s *Simulator) Pay(request kit.PayRequest) (kit.Receipt, error) {
	o, err := s.offered(request.QRString, request.URL)
	if err != nil {
		return kit.Receipt{}, err
	}
	if request.Amount != nil && *request.Amount != 0 && *request.Amount != o.Amount {
		return kit.Receipt{}, &kit.NotPayable{Reason: "an order is paid whole, and no more"}
	}
	o, err = s.pay(o.ID, kit.TellAsUsual)
	if err != nil {
		return kit.Receipt{}, err
	}
	return kit.Receipt{Reference: o.OrderID, Amount: o.Amount, State: o.Tx.State}, nil
}

// Return implements the kit's Returner. What went back never comes again here.
func (s *Simulator) Return(r kit.ReturnRequest) (kit.Returned, error) {
	chargeback := r.Sort == stateChargeback
	if r.ID != "" || r.Sort != stateRefund && !chargeback {
		return kit.Returned{}, &kit.NotPayable{Reason: "this upstream knows refunds and chargebacks, and takes none of them back"}
	}
	o, err := s.giveBack(s.referred(r.Reference), back{Amount: r.Amount, Chargeback: chargeback}, kit.TellAsUsual)
	if refusal, is := errors.AsType[*apiError](err); is {
		return kit.Returned{}, &kit.NotPayable{Reason: refusal.message}
	}
	if err != nil {
		return kit.Returned{}, err
	}
	last := o.Tx.Returns[len(o.Tx.Returns)-1]
	return kit.Returned{ID: strconv.Itoa(last.ID), Amount: last.Amount}, nil
}

// referred finds an order by its merchant's name of it: what nobody has is "".
func (s *Simulator) referred(reference string) (id string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for key, o := range s.byName {
		if key.orderID == reference {
			id = o.ID
		}
	}
	return id
}

// Orders implements the kit's Orderer.
func (s *Simulator) Orders() []kit.Order {
	type choice struct {
		URL  string `json:"url"`
		Type string `json:"payment_type"`
	}
	type named struct {
		Reference string `json:"reference"`
	}
	told := func(o order, err error) (any, error) {
		if err != nil {
			return nil, err
		}
		return map[string]string{"reference": o.OrderID, "state": o.Tx.State}, nil
	}
	return []kit.Order{
		kit.NewOrder("choose", `{"url":"...","payment_type":"qris"}: the payer of a link chooses how to pay, and does not pay yet`, func(c choice) (any, error) {
			if c.Type != "" && !slices.Contains(payable, c.Type) {
				return nil, &kit.NotPayable{Reason: "payment_type is none of " + strings.Join(slices.Sorted(slices.Values(payable)), ", ")}
			}
			o, err := s.offered("", c.URL)
			if err != nil {
				return nil, err
			}
			return told(s.choose(o.ID, c.Type))
		}),
		kit.NewOrder("settle", `{"reference":"..."}: what was paid by a card settles, and can be refunded from then on`, func(n named) (any, error) {
			return told(s.settle(s.referred(n.Reference)))
		}),
		kit.NewOrder("confirm", `{"reference":"..."}: the bank confirms the refunds of a payment that are under way`, func(n named) (any, error) {
			return told(s.confirm(s.referred(n.Reference)))
		}),
	}
}

// Describe lists the magic amounts and where the pages are.
func (s *Simulator) Describe(base string) kit.Description {
	return kit.Description{
		Prefixes: []string{base + pagePrefix},
		Magic: []kit.Magic{
			{Value: magicNotActivated.String(), Effect: "QRIS: the charge is turned away: 402, the channel is not activated"},
			{Value: magicTwice.String(), Effect: "each notification is sent twice"},
			{Value: magicLost.String(), Effect: "no notification at all: only a look-up finds out"},
			{Value: magicPaidByItself.String(), Effect: "is paid by itself after 3 s"},
			{Value: magicDenied.String(), Effect: "a refund of it is denied by the bank: 202"},
		},
	}
}
