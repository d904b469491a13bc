package sandbox

import (
	"cmp"
	"net/url"
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
	id := ""
	s.mu.RLock()
	for key, o := range s.byName {
		if key.orderID == r.Reference {
			id = o.ID
		}
	}
	s.mu.RUnlock()
	o, err := s.giveBack(id, "", r.Amount, chargeback, kit.TellAsUsual)
	if err != nil {
		return kit.Returned{}, err
	}
	last := o.Tx.Returns[len(o.Tx.Returns)-1]
	return kit.Returned{ID: strconv.Itoa(last.ID), Amount: last.Amount}, nil
}

// Orders implements the kit's Orderer.
func (s *Simulator) Orders() []kit.Order {
	type body struct {
		URL string `json:"url"`
	}
	return []kit.Order{kit.NewOrder("choose", `{"url":"..."}: the payer of a link chooses how to pay, and does not pay yet`, func(b body) (any, error) {
		o, err := s.offered("", b.URL)
		if err != nil {
			return nil, err
		}
		if o, err = s.choose(o.ID); err != nil {
			return nil, err
		}
		return map[string]string{"reference": o.OrderID, "state": o.Tx.State}, nil
	})}
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
		},
	}
}
