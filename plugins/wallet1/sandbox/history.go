package sandbox

import (
	"context"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// kind is what a row of the history is about.
type kind string

// The kinds that occur here, in the standard's words; one is spelled so there.
const (
	kindTopup   kind = "TOP_UP"
	kindReceive kind = "RECEIVE_MONEY"
	kindSend    kind = "SEND_MONEY"
	kindBank    kind = "DISBURSMENT"
	kindPayment kind = "PAYMENT"
	kindRefund  kind = "REFUND"
)

// How far a row has come.
const (
	rowOpen      = "INIT"
	rowDone      = "SUCCESS"
	rowCancelled = "CANCELLED"
)

// row is a line of the history. Those that are not cancelled add up to the
// balance.
type row struct {
	At     time.Time    `json:"at"`
	Amount money.Amount `json:"amount"`
	In     bool         `json:"in"`
	Kind   kind         `json:"kind"`
	Remark string       `json:"remark"`
	status string       // empty is done
}

// effect is what a row does to the balance.
func (r *row) effect() money.Amount {
	switch {
	case r.status == rowCancelled:
		return 0
	case r.In:
		return r.Amount
	default:
		return -r.Amount
	}
}

// post writes a row into history and balance.
func (w *wallet) post(r *row) {
	i := len(w.rows)
	for i > 0 && w.rows[i-1].At.After(r.At) {
		i-- // one that is dated back, by order
	}
	w.rows = slices.Insert(w.rows, i, r)
	w.balance += r.effect()
}

// settle changes how far a row has come, and the balance with it.
func (w *wallet) settle(r *row, status string) {
	w.balance -= r.effect()
	r.status = status
	w.balance += r.effect()
}

// entry is a row that no transfer has made.
type entry struct {
	Account kit.AccountID `json:"account"`
	Row     row           `json:"row"`
}

func (s *Simulator) applyEntry(e entry) {
	if w := s.wallets[e.Account]; w != nil {
		w.post(&e.Row)
	}
}

const (
	usualPage = 10
	maxPage   = 50
	// maxPages is far beyond what anybody turns.
	maxPages = 1_000_000
)

// detail is a row as it is answered.
type detail struct {
	DateTime string            `json:"dateTime"`
	Amount   sum               `json:"amount"`
	Remark   string            `json:"remark"`
	Sources  []source          `json:"sourceOfFunds"`
	Status   string            `json:"status"`
	Type     kind              `json:"type"`
	Info     map[string]string `json:"additionalInfo"`
}

// source is where the money of a row came from.
type source struct {
	Source string `json:"source"`
	Amount sum    `json:"amount"`
}

func (r *row) render() detail {
	status, direction := r.status, "DEBIT"
	if status == "" {
		status = rowDone
	}
	if r.In {
		direction = "CREDIT"
	}
	return detail{
		DateTime: stamp(r.At), Amount: rupiah(r.Amount), Remark: r.Remark, Sources: []source{{"BALANCE", rupiah(r.Amount)}},
		Status: status, Type: r.Kind, Info: map[string]string{"debitCredit": direction},
	}
}

// history is service 12: the rows of a time of a month at most, both its ends
// included, as the standard writes times: in whole seconds.
func (s *Simulator) history(_ context.Context, c *call) (result, fields, error) {
	f, now := c.form, s.now()
	reference := f.text("partnerReferenceNo", 64, false)
	to := f.moment("toDateTime", now)
	from := f.moment("fromDateTime", to.AddDate(0, -1, 0))
	size := f.number("pageSize", 1, maxPage, usualPage)
	page := f.number("pageNumber", 0, maxPages, 0)
	if to.Before(from) || to.After(from.AddDate(0, 1, 0)) {
		f.wrong(resultFormat, "toDateTime")
	}
	if from.Before(now.AddDate(-1, 0, 0)) {
		f.wrong(resultFormat, "fromDateTime")
	}
	if err := f.err(); err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	rows := c.wallet.between(from, to)
	details := []detail{}
	for i := len(rows) - 1 - page*size; i >= 0 && len(details) < size; i-- {
		details = append(details, rows[i].render())
	}
	s.mu.Unlock()
	return resultOK, fields{"referenceNo": newID(), "partnerReferenceNo": reference, "detailData": details}, nil
}

// between returns the rows of a time; the simulator's lock is held.
func (w *wallet) between(from, to time.Time) []*row {
	compare := func(r *row, at time.Time) int { return r.At.Compare(at) }
	first, _ := slices.BinarySearchFunc(w.rows, from.Truncate(time.Second), compare)
	last, _ := slices.BinarySearchFunc(w.rows, to.Truncate(time.Second).Add(time.Second), compare)
	return w.rows[first:max(first, last)]
}

// active is the standard's code of an account in order.
const active = "0001"

// balance is service 11.
func (s *Simulator) balance(_ context.Context, c *call) (result, fields, error) {
	number := c.form.text("accountNo", 34, false)
	reference := c.form.text("partnerReferenceNo", 64, false)
	if err := c.form.err(); err != nil {
		return "", nil, err
	}
	s.mu.Lock()
	own, left := c.wallet.CustomerNumber, c.wallet.balance
	s.mu.Unlock()
	if number != "" && number != own {
		return "", nil, refuse(resultInvalidAccount)
	}
	account, _ := s.env.Accounts.Get(c.wallet.id)
	info := map[string]any{"balanceType": "BALANCE", "registrationStatusCode": active, "status": active}
	for _, name := range []string{"amount", "availableBalance", "ledgerBalance"} {
		info[name] = rupiah(left)
	}
	for _, name := range []string{"floatAmount", "holdAmount", "currentMultilateralLimit"} {
		info[name] = rupiah(0)
	}
	return resultOK, fields{
		"referenceNo": newID(), "partnerReferenceNo": reference, "accountNo": own, "name": account.Name, "accountInfos": []any{info},
	}, nil
}
