package sandbox

import (
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// state is what a transfer has come to: the standard's latestTransactionStatus.
type state string

// The states that occur here.
const (
	stateDone      state = "00"
	statePending   state = "03"
	stateRefunded  state = "04"
	stateCancelled state = "05"
	stateFailed    state = "06"
	stateNotFound  state = "07"
	// stateQueued is a transfer that was received and that nobody is notified of
	// yet: its money has not moved.
	stateQueued state = "queued"
)

// descriptions are the words for each state, also the witness's.
var descriptions = map[state]string{
	stateDone: "Success", statePending: "Pending", stateRefunded: "Refunded", stateCancelled: "Cancelled",
	stateFailed: "Failed", stateNotFound: "Not Found",
}

// transfer is a top-up or a transfer to a bank as the journal keeps it.
type transfer struct {
	ID         string        `json:"id"`
	Account    kit.AccountID `json:"account"`
	Service    service       `json:"service"`
	Ref        string        `json:"ref"`
	ExternalID string        `json:"external_id"`
	To         string        `json:"to"` // a phone number, or a bank's code, a slash and an account number
	Amount     money.Amount  `json:"amount"`
	Fee        money.Amount  `json:"fee"`
	Plan       plan          `json:"plan"`
	Silent     bool          `json:"silent,omitempty"` // the merchant wants no notice
	Created    time.Time     `json:"created"`
	Due        time.Time     `json:"due,omitzero"` // when something becomes of it
	State      state         `json:"state"`
	Finished   time.Time     `json:"finished,omitzero"`

	rows []*row
}

// reference is a merchant's own name for a transfer.
type reference struct {
	account kit.AccountID
	text    string
}

func (t *transfer) reference() reference { return reference{t.Account, t.Ref} }

// same reports whether two calls ask for the same. A destination tells the
// service, too.
func (t *transfer) same(o *transfer) bool { return t.To == o.To && t.Amount == o.Amount }

// open reports whether something can still become of it.
func (t *transfer) open() bool { return t.State == statePending || t.State == stateQueued }

// transferEvent is a new transfer, or what became of one.
type transferEvent struct {
	New   *transfer `json:"new,omitempty"`
	ID    string    `json:"id,omitempty"`
	State state     `json:"state,omitempty"`
	At    time.Time `json:"at,omitzero"`
}

// transferBook finds transfers.
type transferBook struct {
	byID  map[string]*transfer
	byRef map[reference]*transfer // the newest of each
}

func newTransferBook() transferBook {
	return transferBook{map[string]*transfer{}, map[reference]*transfer{}}
}

// applyTransfer writes an event into the state.
func (s *Simulator) applyTransfer(e transferEvent) {
	if e.New != nil {
		s.addTransfer(*e.New)
		return
	}
	t, ok := s.transfers.byID[e.ID]
	if !ok {
		return
	}
	before := t.State
	t.State, t.Finished = e.State, e.At
	w := s.wallets[t.Account]
	switch {
	case before == stateQueued && e.State == stateDone:
		s.move(w, t, e.At)
	case e.State == stateDone:
		settleAll(w, t, "")
	case e.State == stateRefunded:
		w.post(&row{At: e.At, Amount: t.Amount + t.Fee, In: true, Kind: kindRefund, Remark: "Pengembalian " + t.remark()})
	default:
		settleAll(w, t, rowCancelled) // one that was queued has no rows
	}
	s.env.Movements.SetState(t.ID, descriptions[t.State])
}

func settleAll(w *wallet, t *transfer, status string) {
	for _, r := range t.rows {
		w.settle(r, status)
	}
}

func (s *Simulator) addTransfer(t transfer) {
	s.transfers.byID[t.ID], s.transfers.byRef[t.reference()] = &t, &t
	if t.State != stateQueued {
		s.move(s.wallets[t.Account], &t, t.Created)
	}
	if !t.Due.IsZero() {
		s.agenda.Add(t.Due, t.ID)
	}
}

// move takes amount and fee out of a wallet and lets the witness know.
func (s *Simulator) move(w *wallet, t *transfer, at time.Time) {
	status := ""
	if t.State == statePending {
		status = rowOpen
	}
	kind := kindSend
	if t.Service == serviceBank {
		kind = kindBank
	}
	t.rows = append(t.rows, &row{At: at, Amount: t.Amount, Kind: kind, Remark: t.remark(), status: status})
	if t.Fee > 0 {
		t.rows = append(t.rows, &row{At: at, Amount: t.Fee, Kind: kindPayment, Remark: "Biaya " + t.remark(), status: status})
	}
	for _, r := range t.rows {
		w.post(r)
	}
	s.env.Movements.Record(t.ID, kit.Movement{
		Account: t.Account, Reference: t.Ref, Destination: t.To, Amount: t.Amount, State: descriptions[t.State], At: at,
	})
}

// remark is what the history says of a transfer.
func (t *transfer) remark() string {
	if t.Service == serviceBank {
		return fmt.Sprintf("Transfer ke %s %s", bankOf(t.To[:3]), t.To[4:])
	}
	return "Kirim uang ke " + nameOfPhone(t.To)
}
