package sandbox

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/qris"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// demoCode is a published example of a static code: it belongs to nobody.
const demoCode = "00020101021126670018ID.CO.EXAMPLE2.WWW01159360001404567890215MIDCONTOH1234560303UMI" +
	"51370014ID.CO.QRIS.WWW0215ID10191234567815204123453033605802ID5914NamaMerchantC16009NamaKota1" +
	"6110123456789062070703K196304B22E"

// States of a transaction, and in the witness of a link that nobody has touched.
const (
	stateUntouched  = "untouched"
	statePending    = "pending"
	stateCapture    = "capture" // a card, before it settles
	stateSettlement = "settlement"
	stateExpire     = "expire"
	stateCancel     = "cancel"
	stateRefund     = "refund"     // and partial_refund
	stateChargeback = "chargeback" // and partial_chargeback
)

// order is a link or a charge as the journal keeps it.
type order struct {
	ID       string        `json:"id"` // ours
	Account  kit.AccountID `json:"account"`
	Key      string        `json:"key"` // it signs the notifications
	Merchant string        `json:"merchant"`
	OrderID  string        `json:"order_id"`
	Amount   money.Amount  `json:"amount"`
	Token    string        `json:"token,omitempty"` // of a link
	Finish   string        `json:"finish,omitempty"`
	Created  time.Time     `json:"created"`
	Expiry   time.Time     `json:"expiry"`
	Tx       *transaction  `json:"tx,omitempty"` // nil before the payer of a link has chosen
}

// Ways to pay. A QR code is what a transaction without one is: the journal knew no other.
const (
	typeQRIS = "qris"
	typeCard = "credit_card"
)

// refundable are the ways to pay of which the upstream gives money back by its API, and
// whether it asks the provider at once to do so: of the others it does that itself, later.
var refundable = map[string]bool{typeQRIS: true, "gopay": true, "shopeepay": true, typeCard: false, "dana": false, "ovo": false}

// payable are all ways to pay that a payer can choose.
var payable = slices.AppendSeq([]string{"bank_transfer"}, maps.Keys(refundable))

// transaction is a way to pay that was chosen.
type transaction struct {
	ID      string    `json:"id"`
	Type    string    `json:"type,omitempty"`
	State   string    `json:"state"`
	QR      string    `json:"qr,omitempty"`
	Begun   time.Time `json:"begun"`
	Settled time.Time `json:"settled,omitzero"`
	Returns []back    `json:"returns,omitempty"`
}

// paymentType is the transaction's way to pay.
func (t transaction) paymentType() string { return cmp.Or(t.Type, typeQRIS) }

// back is money that went back: a refund, or a chargeback.
type back struct {
	ID         int          `json:"id"`
	Key        string       `json:"key,omitempty"`
	Amount     money.Amount `json:"amount"`
	Reason     string       `json:"reason,omitempty"`
	At         time.Time    `json:"at"`
	Chargeback bool         `json:"chargeback,omitempty"`
	Offline    bool         `json:"offline,omitempty"`  // the bank has yet to be asked
	Confirmed  time.Time    `json:"confirmed,omitzero"` // by the bank, of an offline one
}

// returned is how much of a transaction went back.
func (t transaction) returned() money.Amount {
	var sum money.Amount
	for _, b := range t.Returns {
		sum += b.Amount
	}
	return sum
}

// disputed tells that the payer's bank took money of a transaction back, which it does once.
func (t transaction) disputed() bool {
	return slices.ContainsFunc(t.Returns, func(b back) bool { return b.Chargeback })
}

// giveBack takes money of a settled order back, all that is left where no amount is given.
func (s *Simulator) giveBack(id string, b back, how kit.Telling) (order, error) {
	now := s.now()
	return s.moveTelling(id, how, func(o order) (*transaction, error) {
		if o.Tx != nil && b.Key != "" && slices.ContainsFunc(o.Tx.Returns, func(has back) bool { return has.Key == b.Key }) {
			return nil, errDuplicate
		}
		if o.Tx == nil || o.Tx.Settled.IsZero() || o.Tx.returned() == o.Amount || o.Tx.disputed() {
			return nil, errUnchangeable
		}
		left := o.Amount - o.Tx.returned()
		if b.Amount == 0 {
			b.Amount = left
		}
		if b.Amount > left || b.Amount < 1 {
			return nil, errAmount
		}
		if b.Amount == magicDenied && !b.Chargeback {
			return nil, errDenied
		}
		tx := o.Tx.as(map[bool]string{true: stateChargeback, false: stateRefund}[b.Chargeback])
		if b.Amount < left {
			tx.State = "partial_" + tx.State
		}
		b.ID, b.At = len(tx.Returns)+1, now
		tx.Returns = append(slices.Clone(tx.Returns), b)
		return tx, nil
	})
}

// confirm has the bank confirm what it has yet to give back of an order.
func (s *Simulator) confirm(id string) (order, error) {
	now := s.now()
	return s.move(id, func(o order) (*transaction, error) {
		if o.Tx == nil || !slices.ContainsFunc(o.Tx.Returns, back.underWay) {
			return nil, &kit.NotPayable{Reason: "no refund of the order is under way"}
		}
		tx := o.Tx.as(o.Tx.State)
		tx.Returns = slices.Clone(tx.Returns)
		for i, b := range tx.Returns {
			if b.underWay() {
				tx.Returns[i].Confirmed = now
			}
		}
		return tx, nil
	})
}

// underWay tells of a refund that the bank has not confirmed.
func (b back) underWay() bool { return b.Offline && b.Confirmed.IsZero() }

// settle settles a card payment.
func (s *Simulator) settle(id string) (order, error) {
	now := s.now()
	return s.move(id, func(o order) (*transaction, error) {
		if state := o.state(now); state != stateCapture {
			return nil, &kit.NotPayable{Reason: "the order is " + state}
		}
		tx := o.Tx.as(stateSettlement)
		tx.Settled = now
		return tx, nil
	})
}

// state is how an order stands at a moment: one whose time is over has expired, also
// when its notification is still to come.
func (o order) state(now time.Time) string {
	over := !now.Before(o.Expiry)
	switch {
	case o.Tx == nil && over:
		return stateExpire
	case o.Tx == nil:
		return stateUntouched
	case o.Tx.State == statePending && over:
		return stateExpire
	}
	return o.Tx.State
}

type orderKey struct {
	account kit.AccountID
	orderID string
}

// change is a new order, or an order's transaction as it is now.
type change struct {
	New *order       `json:"new,omitempty"`
	ID  string       `json:"id,omitempty"`
	Tx  *transaction `json:"tx,omitempty"`
}

// Simulator is the upstream: its state in memory, its journal on disk.
type Simulator struct {
	env    *kit.Env
	demo   qris.Code
	agenda *kit.Agenda[func() error]
	topic  *kit.Topic[change]

	// mu guards the state. apply runs under it, or in Replay.
	mu      sync.RWMutex
	byID    map[string]*order
	byName  map[orderKey]*order
	byToken map[string]*order
	byQR    map[string]*order
}

// New replays the journal of env and returns the upstream as it was.
func New(env *kit.Env) (*Simulator, error) {
	demo, err := qris.Parse(demoCode)
	if err != nil {
		return nil, err
	}
	s := &Simulator{
		env: env, demo: demo,
		byID: map[string]*order{}, byName: map[orderKey]*order{}, byToken: map[string]*order{}, byQR: map[string]*order{},
	}
	s.agenda = kit.NewAgenda(env.Clock, func(_ context.Context, due func() error) {
		if err := due(); err != nil {
			env.Log.Warn("something due did not happen", "err", err)
		}
	})
	s.topic = kit.NewTopic(env.Journal, "order", s.apply)
	env.Faults.ServerError = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fail(w, r, errServer) })
	if err := env.Begin(); err != nil {
		return nil, err
	}
	env.Go(s.agenda.Run)
	return s, nil
}

// Program is the simulator as a process, for the plugin's main.
func Program() kit.Program {
	return kit.Program{Provider: "midtrans", Build: func(env *kit.Env) (kit.Upstream, error) { return New(env) }}
}

// apply writes a change into the state.
func (s *Simulator) apply(c change) {
	if c.New == nil {
		if o := s.byID[c.ID]; o != nil {
			o.Tx = c.Tx
			s.env.Movements.SetState(o.ID, o.Tx.State)
		}
		return
	}
	o := *c.New
	s.byID[o.ID], s.byName[orderKey{o.Account, o.OrderID}] = &o, &o
	state := stateUntouched
	if o.Tx != nil {
		s.byQR[o.Tx.QR], state = &o, o.Tx.State
	} else {
		s.byToken[o.Token] = &o
	}
	s.env.Movements.Record(o.ID, kit.Movement{
		Account: o.Account, Reference: o.OrderID, Destination: o.Merchant, Amount: o.Amount, State: state, At: o.Created, Page: pagePrefix + o.page(),
	})
	s.agenda.Add(o.Expiry, func() error { return s.runOut(o.ID) })
	if o.Amount == magicPaidByItself {
		s.agenda.Add(o.Created.Add(selfPayGap), func() error { return s.payByItself(o.ID) })
	}
}

// make adds an order, unless there is one of its name.
func (s *Simulator) make(o order) error {
	s.mu.Lock()
	if _, taken := s.byName[orderKey{o.Account, o.OrderID}]; taken {
		s.mu.Unlock()
		return errTaken
	}
	commit := s.env.Journal.Append(s.topic.Entry(change{New: &o}))
	s.mu.Unlock()
	return commit.Wait()
}

// find returns a copy of an order that a condition holds for.
func (s *Simulator) find(in func() *order) (order, bool, error) {
	s.mu.RLock()
	found := in()
	var o order
	if found != nil {
		o = *found
	}
	s.mu.RUnlock()
	// What is answered must not be undone by a crash.
	return o, found != nil, s.env.Journal.Sync()
}

// move changes an order's transaction as next says, which returns nil to leave it, and
// queues the notifications of it.
func (s *Simulator) move(id string, next func(order) (*transaction, error)) (order, error) {
	return s.moveTelling(id, kit.TellAsUsual, next)
}

func (s *Simulator) moveTelling(id string, how kit.Telling, next func(order) (*transaction, error)) (order, error) {
	s.mu.Lock()
	found := s.byID[id]
	if found == nil {
		s.mu.Unlock()
		return order{}, kit.ErrUnknown
	}
	o := *found
	tx, err := next(o)
	if err != nil || tx == nil {
		s.mu.Unlock()
		return o, err
	}
	o.Tx = tx
	entries := append([]kit.Entry{s.topic.Entry(change{ID: id, Tx: tx})}, s.notices(o, how)...)
	commit := s.env.Journal.Append(entries...)
	s.mu.Unlock()
	return o, commit.Wait()
}

// runOut ends an order whose time is over. An untouched link just can't be paid any
// more, and nobody is told.
func (s *Simulator) runOut(id string) error {
	now := s.now()
	_, err := s.move(id, func(o order) (*transaction, error) {
		if o.Tx == nil || o.Tx.State != statePending || now.Before(o.Expiry) {
			return nil, nil
		}
		return o.Tx.as(stateExpire), nil
	})
	return err
}

// as is the transaction in another state.
func (t transaction) as(state string) *transaction {
	t.State = state
	return &t
}

// choose begins a transaction of a link, as a payer who picks a way to pay does.
func (s *Simulator) choose(id, by string) (order, error) {
	now := s.now()
	return s.move(id, func(o order) (*transaction, error) {
		if state := o.state(now); state != stateUntouched {
			return nil, &kit.NotPayable{Reason: "the order is " + state}
		}
		return &transaction{ID: newID(), Type: by, State: statePending, Begun: now}, nil
	})
}

// pay settles an order, of which a payer may have chosen how before.
func (s *Simulator) pay(id string, how kit.Telling) (order, error) {
	return s.end(id, stateSettlement, how)
}

// fail ends an order unpaid before its time, as if its payer had chosen how to pay and never did.
func (s *Simulator) fail(id string) error {
	_, err := s.end(id, stateExpire, kit.TellAsUsual)
	return err
}

// end ends what can still be paid.
func (s *Simulator) end(id, as string, how kit.Telling) (order, error) {
	now := s.now()
	return s.moveTelling(id, how, func(o order) (*transaction, error) {
		state := o.state(now)
		if state != statePending && state != stateUntouched {
			return nil, &kit.NotPayable{Reason: "the order is " + state}
		}
		tx := &transaction{ID: newID(), Begun: now}
		if o.Tx != nil {
			tx = o.Tx
		}
		switch {
		case as != stateSettlement:
			tx = tx.as(as)
		case tx.paymentType() == typeCard:
			tx = tx.as(stateCapture) // settles later
		default:
			tx = tx.as(as)
			tx.Settled = now
		}
		return tx, nil
	})
}

func (s *Simulator) payByItself(id string) error {
	now := s.now()
	o, ok, err := s.find(func() *order { return s.byID[id] })
	if state := o.state(now); err != nil || !ok || state != statePending && state != stateUntouched {
		return err // also after a restart: it was paid, or ended, before
	}
	_, err = s.pay(id, kit.TellAsUsual)
	return err
}

// now is the present as the upstream tells it: seconds.
func (s *Simulator) now() time.Time { return s.env.Clock.Now().UTC().Truncate(time.Second) }

// newID has the form of the upstream's own ids.
func newID() string {
	id := kit.RandomHex(16)
	return id[:8] + "-" + id[8:12] + "-" + id[12:16] + "-" + id[16:20] + "-" + id[20:]
}
