package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// States of an invoice and, in the witness, of every movement.
const (
	statePending = "PENDING"
	statePaid    = "PAID"
	stateExpired = "EXPIRED"
)

const (
	// defaultDuration is how long an invoice lives, in seconds: 24 h observed.
	defaultDuration = 86_400
	// maxDuration is a year.
	maxDuration = 31_536_000
)

// invoice is an invoice as the journal keeps it.
type invoice struct {
	ID          string          `json:"id"`
	Account     kit.AccountID   `json:"account"`
	Merchant    string          `json:"merchant"`
	ExternalID  string          `json:"external_id"`
	Amount      money.Amount    `json:"amount"`
	PayerEmail  string          `json:"payer_email,omitempty"`
	Description string          `json:"description,omitempty"`
	SuccessURL  string          `json:"success_url,omitempty"`
	FailureURL  string          `json:"failure_url,omitempty"`
	Methods     []string        `json:"methods,omitempty"`
	Items       json.RawMessage `json:"items,omitempty"`
	Fees        json.RawMessage `json:"fees,omitempty"`
	Customer    json.RawMessage `json:"customer,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	Created     time.Time       `json:"created"`
	Expiry      time.Time       `json:"expiry"`
	Updated     time.Time       `json:"updated"`
	State       string          `json:"state"`
	PaidAmount  money.Amount    `json:"paid_amount,omitempty"`
	PaidAt      time.Time       `json:"paid_at,omitzero"`
	Refunds     []refund        `json:"refunds,omitempty"`
}

// at returns the invoice as it is at a moment: one whose time is over has
// expired, also when its event is still to come.
func (i invoice) at(now time.Time) invoice {
	if i.State == statePending && !now.Before(i.Expiry) {
		i.State, i.Updated = stateExpired, i.Expiry
	}
	return i
}

// invoiceEvent is a new invoice, or what became of one.
type invoiceEvent struct {
	New    *invoice     `json:"new,omitempty"`
	ID     string       `json:"id,omitempty"`
	State  string       `json:"state,omitempty"`
	Paid   money.Amount `json:"paid,omitempty"`
	Refund *refund      `json:"refund,omitempty"`
	At     time.Time    `json:"at,omitzero"`
}

// invoiceBook finds invoices.
type invoiceBook struct {
	byID        map[string]*invoice
	byAccount   map[kit.AccountID][]*invoice // the oldest first
	byReference map[reference][]*invoice     // the oldest first
}

// reference is the merchant's own name for a payment.
type reference struct {
	account kit.AccountID
	text    string
}

func newInvoiceBook() invoiceBook {
	return invoiceBook{map[string]*invoice{}, map[kit.AccountID][]*invoice{}, map[reference][]*invoice{}}
}

// applyInvoice writes an event into the state.
func (s *Simulator) applyInvoice(e invoiceEvent) {
	if e.New != nil {
		s.addInvoice(*e.New)
		return
	}
	i, ok := s.invoices.byID[e.ID]
	if !ok {
		return
	}
	if e.Refund != nil {
		s.applyRefund(i, *e.Refund)
		return
	}
	i.State, i.Updated = e.State, e.At
	if e.State == statePaid {
		i.PaidAmount, i.PaidAt = e.Paid, e.At
	}
	s.env.Movements.SetState(i.ID, i.State)
}

func (s *Simulator) addInvoice(i invoice) {
	index := &s.invoices
	index.byID[i.ID] = &i
	index.byAccount[i.Account] = append(index.byAccount[i.Account], &i)
	ref := reference{i.Account, i.ExternalID}
	index.byReference[ref] = append(index.byReference[ref], &i)
	s.env.Movements.Record(i.ID, kit.Movement{
		Account: i.Account, Reference: i.ExternalID, Destination: i.Merchant, Amount: i.Amount, State: i.State, At: i.Created,
		Page: pagePrefix + i.ID,
	})
	s.agenda.Add(i.Expiry, task{(*Simulator).expireInvoice, i.ID})
	if i.Amount == magicPaidByItself {
		s.agenda.Add(i.Created.Add(selfPayGap), task{(*Simulator).selfPayInvoice, i.ID})
	}
}

func (s *Simulator) createInvoice(r *http.Request) (int, any, error) {
	i, err := s.readInvoice(r)
	if err != nil {
		return 0, nil, err
	}
	s.mu.Lock()
	commit := s.env.Journal.Append(s.invoiceTopic.Entry(invoiceEvent{New: &i}))
	s.mu.Unlock()
	if err := commit.Wait(); err != nil {
		return 0, nil, err
	}
	kit.Concern(r.Context(), i.ID)
	return http.StatusOK, i.body(r), nil
}

func (s *Simulator) readInvoice(r *http.Request) (invoice, error) {
	f, err := readForm(r)
	if err != nil {
		return invoice{}, err
	}
	account, now := accountOf(r), s.now()
	i := invoice{
		ID: kit.RandomHex(12), Account: account.ID, Merchant: account.Name,
		ExternalID:  f.text("external_id", true, 255),
		Amount:      f.rupiah("amount", true),
		PayerEmail:  f.email("payer_email"),
		Description: f.text("description", false, 2000),
		SuccessURL:  f.link("success_redirect_url"),
		FailureURL:  f.link("failure_redirect_url"),
		Methods:     f.strings("payment_methods"),
		Items:       f.raw("items"),
		Fees:        f.raw("fees"),
		Customer:    f.raw("customer"),
		Metadata:    f.metadata(),
		Created:     now,
		Updated:     now,
		State:       statePending,
	}
	i.Expiry = now.Add(time.Duration(f.seconds("invoice_duration", maxDuration, defaultDuration)) * time.Second)
	f.oneOf("currency", false, "IDR")
	if err := f.err(); err != nil {
		return invoice{}, err
	}
	if i.Amount < s.options.MinAmount {
		return invoice{}, problem(http.StatusBadRequest, "MINIMAL_TRANSFER_AMOUNT_ERROR",
			fmt.Sprintf("The minimum amount is %s IDR", s.options.MinAmount))
	}
	if i.Amount > s.options.MaxInvoice {
		return invoice{}, problem(http.StatusBadRequest, "MAXIMUM_TRANSFER_AMOUNT_ERROR",
			fmt.Sprintf("The maximum amount is %s IDR", s.options.MaxInvoice))
	}
	return i, magicRefusal(i.Amount)
}

// link reads a URL to send the payer to.
func (f *form) link(field string) string {
	value := f.text(field, false, 255)
	if target, err := url.Parse(value); value != "" && (err != nil || target.Host == "" ||
		!slices.Contains([]string{"http", "https"}, target.Scheme)) {
		f.wrong(field, "must be a valid uri", "string.uri")
		return ""
	}
	return value
}

// findInvoice returns a copy of an account's invoice, as it is now.
func (s *Simulator) findInvoice(account kit.AccountID, id string) (invoice, error) {
	s.mu.RLock()
	found, ok := s.invoices.byID[id]
	var i invoice
	if ok {
		i = found.at(s.now())
	}
	s.mu.RUnlock()
	if !ok || i.Account != account {
		return invoice{}, errInvoiceNotFound
	}
	// What is answered must not be undone by a crash.
	return i, s.env.Journal.Sync()
}

func (s *Simulator) getInvoice(r *http.Request) (int, any, error) {
	i, err := s.findInvoice(accountOf(r).ID, r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, i.body(r), nil
}

// expireInvoiceNow is the merchant's order to end an invoice. One that has
// ended stays as it is.
func (s *Simulator) expireInvoiceNow(r *http.Request) (int, any, error) {
	id := r.PathValue("id")
	i, err := s.findInvoice(accountOf(r).ID, id)
	if err == nil && i.State == statePending {
		if err = s.endInvoice(id, s.now(), func(invoice) bool { return true }); err == nil {
			i, err = s.findInvoice(i.Account, id)
		}
	}
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, i.body(r), nil
}

// expireInvoice ends an invoice whose time is over.
func (s *Simulator) expireInvoice(id string) error {
	now := s.now()
	return s.endInvoice(id, now, func(i invoice) bool { return !now.Before(i.Expiry) })
}

// endInvoice makes a pending invoice EXPIRED when a condition holds.
func (s *Simulator) endInvoice(id string, now time.Time, when func(invoice) bool) error {
	s.mu.Lock()
	i, ok := s.invoices.byID[id]
	if !ok || i.State != statePending || !when(*i) {
		s.mu.Unlock()
		return nil
	}
	commit := s.env.Journal.Append(s.expiryEntries(*i, now)...)
	s.mu.Unlock()
	return commit.Wait()
}

func (s *Simulator) expiryEntries(i invoice, now time.Time) []kit.Entry {
	change := s.invoiceTopic.Entry(invoiceEvent{ID: i.ID, State: stateExpired, At: now})
	i.State, i.Updated = stateExpired, now
	return append([]kit.Entry{change}, s.invoiceWebhooks(i, now, kit.TellAsUsual)...)
}

// payInvoice pays an invoice; zero is the amount asked for.
func (s *Simulator) payInvoice(id string, amount money.Amount, how kit.Telling) (invoice, error) {
	now := s.now()
	s.mu.Lock()
	found, ok := s.invoices.byID[id]
	if !ok {
		s.mu.Unlock()
		return invoice{}, kit.ErrUnknown
	}
	i := found.at(now)
	late := i.State == stateExpired && i.Amount == magicPaidAfterTime
	if i.State != statePending && !late {
		s.mu.Unlock()
		return i, &kit.NotPayable{Reason: "the invoice is " + i.State}
	}
	var entries []kit.Entry
	if late && found.State == statePending {
		entries = s.expiryEntries(i, i.Expiry) // its own event is still to come
	}
	if amount == 0 {
		amount = i.Amount
	}
	i.State, i.Updated, i.PaidAmount, i.PaidAt = statePaid, now, amount, now
	entries = append(entries, s.invoiceTopic.Entry(invoiceEvent{ID: id, State: statePaid, Paid: amount, At: now}))
	commit := s.env.Journal.Append(append(entries, s.invoiceWebhooks(i, now, how)...)...)
	s.mu.Unlock()
	return i, commit.Wait()
}

func (s *Simulator) selfPayInvoice(id string) error {
	s.mu.RLock()
	i, ok := s.invoices.byID[id]
	open := ok && i.at(s.now()).State == statePending
	s.mu.RUnlock()
	if !open {
		return nil // also after a restart: it was paid, or ended, before
	}
	_, err := s.payInvoice(id, 0, kit.TellAsUsual)
	return err
}
