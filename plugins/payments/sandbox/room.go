package sandbox

import (
	"context"
	"errors"
	"net/http"
	"time"

	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// telling is how the upstream tells of a payment.
type telling int

const (
	// tellAsUsual is at once, unless the amount is a magic one.
	tellAsUsual telling = iota
	// tellLate is lateGap after the payment.
	tellLate
	// tellNever leaves it to a look-up.
	tellNever
)

// heard is how long an order waits for its notifications to be tried, so that
// the page that follows shows them.
const heard = 3 * time.Second

// maxOrder is the largest form of the control room.
const maxOrder = 4 << 10

// Orders of the control room.
const (
	orderPay    = "pay"
	orderLate   = "pay-late"
	orderLost   = "pay-lost"
	orderFail   = "fail"
	orderNotify = "notify"
	orderDelay  = "delay"
	orderDrop   = "drop"
)

// button is one order as the page offers it.
type button struct{ Order, Label, Effect string }

// subject is an invoice or a QR code, as the control room treats both.
type subject struct {
	pay    func(telling) error
	fail   func() error
	notify func() []kit.Entry
	lookup string // the operation by which the gateway asks for it

	open  bool // can be paid and can fail
	ended bool // the upstream has something to notify of
	view  pageView
}

// buttons are the orders that can be given now.
func (u subject) buttons() []button {
	var offered []button
	if u.open {
		offered = append(offered,
			button{orderPay, "Pay", "and stay on this page"},
			button{orderLate, "Pay, notify late", "the notification is delayed by 4 s"},
			button{orderLost, "Pay, don't notify", "the notification is dropped: only a look-up finds out"},
			button{orderFail, "Fail", "ends it unpaid"})
	}
	if u.ended {
		offered = append(offered, button{orderNotify, "Notify again", "sends its latest state once more"})
	}
	return append(offered,
		button{orderDelay, "Delay a look-up", "the next " + u.lookup + ", of any payment, waits 3 s"},
		button{orderDrop, "Drop a look-up", "the next " + u.lookup + ", of any payment, is cut off"})
}

// find returns what a page is about.
func (s *Simulator) find(id string) (subject, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := s.now()
	if found, ok := s.invoices.byID[id]; ok {
		return s.invoiceSubject(found.at(now)), true
	}
	if found, ok := s.codes.byID[id]; ok {
		return s.qrSubject(*found, now), true
	}
	return subject{}, false
}

func (s *Simulator) invoiceSubject(i invoice) subject {
	pending := i.State == statePending
	return subject{
		pay: func(how telling) error {
			_, err := s.payInvoice(i.ID, 0, how)
			return err
		},
		fail:   func() error { return s.endInvoice(i.ID, s.now(), func(invoice) bool { return true }) },
		notify: func() []kit.Entry { return s.invoiceWebhook(i, s.now(), 1) },
		lookup: "invoices.get",
		// What is paid after its time is late money, for the amount that allows it.
		open:  pending || i.State == stateExpired && i.Amount == magicPaidAfterTime,
		ended: !pending,
		view: pageView{
			Merchant: i.Merchant, Amount: i.Amount.Format(), Reference: i.ExternalID, Description: i.Description,
			State: i.State, Expiry: stamp(i.Expiry), Pending: pending, SuccessURL: i.SuccessURL,
		},
	}
}

func (s *Simulator) qrSubject(q qrCode, now time.Time) subject {
	u := subject{
		pay: func(how telling) error {
			_, _, err := s.payQR(q.ID, 0, how)
			return err
		},
		fail:   func() error { return s.endQR(q.ID, s.now(), func(qrCode) bool { return true }) },
		lookup: "qr_codes.get",
		open:   q.Type == typeDynamic && len(q.Payments) == 0, // one that has run out, too: late money
		ended:  len(q.Payments) > 0,
		view: pageView{
			Merchant: q.Merchant, Amount: q.Amount.Format(), Reference: q.Reference, State: q.state(now), Expiry: stamp(q.Expiry),
		},
	}
	u.view.Pending = u.open && u.view.State == stateActive
	switch {
	case u.ended:
		u.view.State = statePaid
		u.notify = func() []kit.Entry { return s.qrWebhook(q, q.Payments[len(q.Payments)-1], s.now(), 1) }
	case q.Type == typeStatic:
		u.view.Amount = "any amount"
	}
	return u
}

// give carries an order of the control room out. What the state does not allow is
// not done; the page that follows shows the state.
func (s *Simulator) give(ctx context.Context, u subject, order string) error {
	var err error
	switch order {
	case orderPay:
		err = u.pay(tellAsUsual)
	case orderLate:
		err = u.pay(tellLate)
	case orderLost:
		err = u.pay(tellNever)
	case orderFail:
		err = u.fail()
	case orderNotify:
		if u.ended {
			err = s.env.Journal.Append(u.notify()...).Wait()
		}
	case orderDelay:
		return s.env.Faults.Add(kit.FaultLatency, u.lookup, 1)
	case orderDrop:
		return s.env.Faults.Add(kit.FaultDropBefore, u.lookup, 1)
	default:
		return errOrder
	}
	if _, refused := errors.AsType[*kit.NotPayable](err); err != nil && !refused {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, heard)
	defer cancel()
	s.env.Webhooks.Tried(waiting)
	return nil
}

// errOrder says that the form named none of the orders.
var errOrder = errors.New("the control room has no such order")

// named are the invoices and codes that a call names, in its path or its query.
func (s *Simulator) named(r *http.Request) []string {
	account, query := accountOf(r).ID, r.URL.Query()
	s.mu.RLock()
	defer s.mu.RUnlock()
	var ids []string
	for _, name := range []string{r.PathValue("id"), query.Get("external_id"), query.Get("reference_id")} {
		if name == "" {
			continue
		}
		if i, ok := s.invoices.byID[name]; ok && i.Account == account {
			ids = append(ids, i.ID)
		}
		for _, i := range s.invoices.byReference[reference{account, name}] {
			ids = append(ids, i.ID)
		}
		if q, ok := s.codes.find(account, name); ok {
			ids = append(ids, q.ID)
		}
	}
	return ids
}
