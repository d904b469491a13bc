package sandbox

import (
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// refLife is how long a ref_id names one purchase. After it the same ref_id
// begins another one, which the witness shows as what it is: a second.
const refLife = 90 * 24 * time.Hour

// state is the state of a purchase.
type state string

// The closed set of states.
const (
	statePending   = state(pending)
	stateSucceeded = state(succeeded)
	stateFailed    = state(failed)
	// stateRefunded is a success that was taken back; answers call it failed.
	stateRefunded state = "Refund"
)

// purchase is a transaction as the journal keeps it.
type purchase struct {
	ID       string        `json:"id"`
	Account  kit.AccountID `json:"account"`
	Ref      string        `json:"ref"`
	SKU      string        `json:"sku"`
	Customer string        `json:"customer"`
	Price    money.Amount  `json:"price"`
	Bill     *bill         `json:"bill,omitempty"` // nil is prepaid
	Serial   string        `json:"serial"`         // shown once it has succeeded
	Plan     plan          `json:"plan"`
	HookURL  string        `json:"hook_url,omitempty"`
	Created  time.Time     `json:"created"`
	Due      time.Time     `json:"due,omitzero"` // when something becomes of it
	State    state         `json:"state"`
	Code     rc            `json:"rc"`

	balance money.Amount // what was left of the deposit
	polled  time.Time    // forgotten at a restart
}

func (p *purchase) reference() reference { return reference{p.Account, p.Ref} }

// purchaseEvent is a new purchase, or what became of one.
type purchaseEvent struct {
	New   *purchase `json:"new,omitempty"`
	ID    string    `json:"id,omitempty"`
	State state     `json:"state,omitempty"`
	Code  rc        `json:"rc,omitempty"`
}

// purchaseBook finds purchases.
type purchaseBook struct {
	byID  map[string]*purchase
	byRef map[reference]*purchase // the newest of each
	all   []*purchase             // the oldest first
}

func newPurchaseBook() purchaseBook {
	return purchaseBook{byID: map[string]*purchase{}, byRef: map[reference]*purchase{}}
}

// newest returns the newest purchase that fits, or nil.
func (b *purchaseBook) newest(fits func(*purchase) bool) *purchase {
	for i := len(b.all) - 1; i >= 0; i-- {
		if fits(b.all[i]) {
			return b.all[i]
		}
	}
	return nil
}

// current returns the purchase that a ref_id names now, or nil.
func (b *purchaseBook) current(ref reference, now time.Time) *purchase {
	if p := b.byRef[ref]; p != nil && now.Sub(p.Created) < refLife {
		return p
	}
	return nil
}

// applyPurchase writes an event into the state.
func (s *Simulator) applyPurchase(e purchaseEvent) {
	if e.New != nil {
		s.addPurchase(*e.New)
		return
	}
	p, ok := s.purchases.byID[e.ID]
	if !ok {
		return
	}
	p.State, p.Code = e.State, e.Code
	if e.State == stateFailed || e.State == stateRefunded {
		s.pay(p, -p.Price, 1)
	}
	p.balance = s.accounts[p.Account].deposit
	s.env.Movements.SetState(p.ID, string(p.State))
}

func (s *Simulator) addPurchase(p purchase) {
	index := &s.purchases
	index.byID[p.ID], index.byRef[p.reference()] = &p, &p
	index.all = append(index.all, &p)
	if p.State != stateFailed {
		s.pay(&p, p.Price, -1)
	}
	p.balance = s.accounts[p.Account].deposit
	s.env.Movements.Record(p.ID, kit.Movement{
		Account: p.Account, Reference: p.Ref, Destination: p.Customer, Amount: p.Price, State: string(p.State), At: p.Created,
	})
	if !p.Due.IsZero() {
		s.agenda.Add(p.Due, p.ID)
	}
}

// pay takes a price out of the deposit and a piece out of the stock, or gives
// them back.
func (s *Simulator) pay(p *purchase, price money.Amount, pieces int64) {
	s.accounts[p.Account].deposit -= price
	if product := s.bySKU[p.SKU]; product != nil && product.Stock != nil {
		left := *product.Stock + pieces
		product.Stock = &left
	}
}

// accept makes the purchase that a plan leads to, or refuses it. It returns
// what the caller is shown once wait says that it is on disk.
func (s *Simulator) accept(p purchase, c call, now time.Time) (answer notice, wait func() error, err error) {
	p.Code = p.Plan.first()
	m := meanings[p.Code]
	if !m.recorded {
		return notice{}, nil, refuse(p.Code)
	}
	p.ID, p.Account, p.Ref, p.SKU, p.Customer = newID(), c.account, c.Ref, c.SKU, c.Customer
	p.HookURL, p.Created, p.State = c.HookURL, now, state(m.status)
	p.balance = s.accounts[c.account].deposit
	if p.State != stateFailed {
		p.balance -= p.Price
	}
	if p.Plan.then() != "" {
		p.Due = now.Add(s.delay)
	}
	entries := []kit.Entry{s.purchaseTopic.Entry(purchaseEvent{New: &p})}
	if s.options.AnnounceAll {
		entries = append(entries, s.news(&p, eventCreate, now)...)
	}
	commit := s.env.Journal.Append(entries...)
	return s.render(&p), commit.Wait, nil
}

// again answers a repeated request with what its purchase has come to.
func (s *Simulator) again(p *purchase, c call, now time.Time) (answer notice, wait func() error, err error) {
	if p.SKU != c.SKU || p.Customer != c.Customer || (p.Bill != nil) != (c.Commands != "") {
		return notice{}, nil, refuse(rcReference)
	}
	last := p.Created
	if p.polled.After(last) {
		last = p.polled
	}
	if now.Sub(last) < s.options.PollEvery {
		return notice{}, nil, refuse(rcPollLimit)
	}
	p.polled = now
	// What is answered must not be undone by a crash.
	return s.render(p), s.env.Journal.Sync, nil
}
