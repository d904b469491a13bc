package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/override"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// stuck makes a payment whose creation nobody answered, and on whose account nobody
// can ask any more: its keys are another account's.
func stuck(t *testing.T, s keeper) *world {
	t.Helper()
	w := newWorld(t, payments, s, handClock())
	w.unanswered("A")
	w.rekeyed(`{"account":"another"}`, 2)
	return w
}

// rekeyed gives the merchant other credentials.
func (w *world) rekeyed(credentials string, version int64) {
	w.Helper()
	connections := slices.Clone(w.account.Connections())
	for i := range connections {
		connections[i].Version, connections[i].Sealed = version, []byte(credentials)
	}
	w.reconnected(connections)
}

// TestOperatorsEndAPayment: a payment that nobody can ask about any more is an
// exception after a day, and two operators end it. Its merchant is told, no balance is
// touched, and what the provider says later is late money or an exception.
func TestOperatorsEndAPayment(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for outcome, c := range map[movement.OverrideOutcome]struct {
		state   movement.State
		word    string
		replays string
		later   sdk.Status // against it
		told    []string
		listed  string
	}{
		movement.OverrideSucceeded: {movement.Succeeded, "PAID", "PENDING", sdk.StatusExpired, nil, movement.ReasonContradiction},
		movement.OverrideFailed:    {movement.Failed, "FAILED", "PROVIDER_REJECTED refused never", sdk.StatusDone, []string{"payments.paid_late FAILED"}, movement.ReasonPaidLate},
	} {
		o := stuck(t, s)
		o.work("A", 23*time.Hour)
		_, err := o.says(ayu, outcome)
		o.refused(err, fault.InProgress, "younger than 24 hours")
		o.work("A", 25*time.Hour)
		o.wantListed(movement.ReasonUnresolved)
		for _, operator := range []string{ayu, budi} {
			if _, err := o.says(operator, outcome); err != nil {
				t.Fatal(err)
			}
		}
		m := o.stored("A")
		due := time.Time{}
		if c.state == movement.Succeeded { // whose money may go back
			due = m.UpdatedAt.Add(operation(createPath).Rules.Polls.Succeeded[0])
		}
		if m.State != c.state || !m.DueAt.Equal(due) {
			t.Errorf("%s: it is %s, due %v, want %v", outcome, m.State, m.DueAt, due)
		}
		o.wantListed()
		o.want(o.status("A"), c.word)
		o.want(o.create("A"), c.replays)
		told := []string{"payments.status_update " + c.word}
		o.wantTold(told...)
		o.hear(sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: c.later, Amount: m.Amount, Currency: "IDR", EventID: "late"})
		o.wantTold(append(told, c.told...)...)
		o.wantListed(c.listed)
		if o.stored("A").State != c.state {
			t.Errorf("%s: it became %s", outcome, o.stored("A").State)
		}
		_, err = o.says(ayu, movement.OverrideFailed)
		if outcome == movement.OverrideSucceeded {
			o.refused(err, fault.DuplicateReference, "ended already")
		}
	}
	cleanLedger(t, s)
}

// TestPaidAfterAnOverride: each payment that the provider tells of what operators have
// ended as paid is an exception, once, since a payer may have paid twice.
func TestPaidAfterAnOverride(t *testing.T) {
	t.Parallel()
	o := stuck(t, keeperFor(t))
	o.work("A", 25*time.Hour)
	for _, operator := range []string{ayu, budi} {
		if _, err := o.says(operator, movement.OverrideSucceeded); err != nil {
			t.Fatal(err)
		}
	}
	m := o.stored("A")
	for _, payment := range []string{"one", "one", "two"} {
		o.hear(sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: sdk.StatusDone, Amount: m.Amount, Currency: "IDR", EventID: payment})
	}
	o.wantListed(movement.ReasonPaidAgain, movement.ReasonPaidAgain)
	o.wantTold("payments.status_update PAID")
}

// TestAnotherAmountPaid: what its payer paid otherwise is an exception and an event at
// once, from which operators decide, however young the payment is. Said again it is no
// other event, and what they decide books what arrived.
func TestAnotherAmountPaid(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	w := newWorld(t, payments, s, handClock())
	o := w
	o.want(o.create("A"), "PENDING")
	m := o.stored("A")
	_, err := o.says(ayu, movement.OverrideSucceeded)
	o.refused(err, fault.InProgress, "waits for its payer")
	paid := sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: sdk.StatusDone, Amount: m.Amount + 1, Currency: "IDR", EventID: "p"}
	o.hear(paid)
	o.wantListed(movement.ReasonAmount)
	resolved := func() {
		t.Helper()
		if err := s.ResolveExceptions(t.Context(), o.now(), m.Owner, m.ID.String(), []string{movement.ReasonAmount}, ayu, "phoned"); err != nil {
			t.Fatal(err)
		}
	}
	resolved()
	o.pass(time.Hour)
	o.hear(paid)
	o.wantListed(movement.ReasonAmount) // it holds the payment up still
	resolved()                          // and what is off the list for a while can be decided all the same
	for i, operator := range []string{ayu, budi} {
		if _, err := o.says(operator, movement.OverrideSucceeded); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			o.pass(time.Hour)
			o.hear(paid)
			o.wantListed(movement.ReasonAmount)
		}
	}
	o.wantListed() // what was decided is settled
	o.want(o.status("A"), "PAID")
	o.hear(paid)
	o.wantTold("payments.amount_differs PENDING", "payments.status_update PAID")
	o.wantListed()
	arrived := fmt.Sprintf(`"amount":%d,"payer_email":"payer@shop.example","paid_amount":%d`, m.Amount, m.Amount+1)
	for _, said := range append(w.told(), movement.Callback{Body: json.RawMessage(o.status("A").data)}) {
		if !strings.Contains(string(said.Body), arrived) {
			t.Errorf("does not say what arrived: %s", said.Body)
		}
	}
}

// TestEndlessPayment: a payment of whose life the provider tells no end is an exception
// after a month, from which operators decide.
func TestEndlessPayment(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	w := newWorld(t, payments, s, handClock())
	o := w
	w.up.way = way{says: func(call sdk.Call) sdk.Result {
		return sdk.Result{Outcome: sdk.Pending, Data: payments.offer(call.Reference, call.Amount, call.Body)}
	}}
	o.want(o.create("A"), "PENDING")
	if m := o.stored("A"); !m.ExpiresAt.IsZero() {
		t.Fatalf("it ends at %v", m.ExpiresAt)
	}
	w.pass(29 * 24 * time.Hour)
	w.work("A", 2*time.Hour)
	o.wantListed()
	w.work("A", 25*time.Hour)
	o.wantListed(movement.ReasonUnresolved)
	for _, operator := range []string{ayu, budi} {
		if _, err := o.says(operator, movement.OverrideFailed); err != nil {
			t.Fatal(err)
		}
	}
	o.want(o.status("A"), "FAILED")
}

// TestOverdueLife: a payment whose life has been over for a day, and of which nobody
// hears, is an exception.
func TestOverdueLife(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.want(w.create("A"), "PENDING")
		w.up.find = blind
		ends := w.stored("A").ExpiresAt
		w.work("A", ends.Add(23*time.Hour).Sub(w.now()))
		w.wantListed()
		w.work("A", 26*time.Hour)
		w.wantListed(movement.ReasonUnresolved)
	})
}

// TestNewKeysOfOneAccount: keys that name the same account prove what they do not
// find, and others do not.
func TestNewKeysOfOneAccount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		state         movement.State
	}{
		"the same":       {`{"account":"one"}`, `{"account":"one"}`, movement.NotSubmitted},
		"another":        {`{"account":"one"}`, `{"account":"two"}`, movement.Submitting},
		"named only now": {`{}`, `{"account":"one"}`, movement.Submitting},
		"named no more":  {`{"account":"one"}`, `{}`, movement.Submitting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.rekeyed(c.before, 1)
				w.unanswered("A")
				w.rekeyed(c.after, 2)
				w.work("A", 5*time.Minute)
				if m := w.stored("A"); m.State != c.state {
					t.Errorf("it is %s, want %s", m.State, c.state)
				}
			})
		})
	}
}

// TestOperatorsEndACollection: a sale that nobody knows of fails, one whose statement nobody
// reads any more has expired or is paid. A line that comes later is late money, or
// listed until operators assign it to the sale.
func TestOperatorsEndACollection(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for name, c := range map[string]struct {
		made    bool
		outcome movement.OverrideOutcome
		state   movement.State
		word    string
		listed  string
	}{
		"unknown, failed": {false, movement.OverrideFailed, movement.Failed, "FAILED", movement.ReasonUnmatched},
		"unknown, paid":   {false, movement.OverrideSucceeded, movement.Succeeded, "PAID", movement.ReasonPaidAgain},
		"pending, failed": {true, movement.OverrideFailed, movement.Expired, "EXPIRED", movement.ReasonPaidLate},
		"pending, paid":   {true, movement.OverrideSucceeded, movement.Succeeded, "PAID", movement.ReasonPaidAgain},
	} {
		w := newCollections(t, s)
		if !c.made {
			w.up.way = way{says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}
			w.up.find = blind
		}
		w.sell("A", 50_000)
		m := w.stored("A")
		w.pass(25 * time.Hour)
		for _, operator := range []string{ayu, budi} {
			if _, err := w.Decide(w.Context(), override.Request{Movement: m.ID, Operator: operator, Outcome: c.outcome, Reason: "phoned"}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		m = w.stored("A")
		status := w.status("A")
		if m.State != c.state || status.word() != c.word {
			t.Errorf("%s: it is %s, told %s", name, m.State, status.word())
		}
		var shown struct {
			PaidAt *string `json:"paid_at"`
		}
		if err := json.Unmarshal([]byte(status.data), &shown); err != nil || (shown.PaidAt != nil) != (c.word == "PAID") {
			t.Errorf("%s: %s, %v", name, status.data, err)
		}
		w.wantTold("wallet2.status_update A " + c.word)
		w.up.write(paid("p1", m.Amount, m.CreatedAt.Add(time.Minute)))
		w.complete()
		w.readStatement()
		w.wantListed(c.listed)
		assigned, err := w.Assign(t.Context(), Assignment{Account: w.wallet, Payment: "p1", Movement: m.ID, Operator: "ani", Reason: "the payer showed it"})
		if err != nil || assigned.State != c.state || assigned.PaidLateAt.IsZero() != (c.word == "PAID") {
			t.Errorf("%s: assigned: %s, late at %v, %v", name, assigned.State, assigned.PaidLateAt, err)
		}
		if p := w.line("p1"); p.State != movement.LinePaid || p.Movement != m.ID {
			t.Errorf("%s: the payment is %s, of %s", name, p.State, p.Movement)
		}
		if c.word == "PAID" {
			w.wantListed()
			continue
		}
		w.wantListed(movement.ReasonPaidLate)
		w.up.way, w.up.find = way{}, nil
		right := w.sold("B", 50_000) // and it was meant for this one
		given, err := w.Assign(t.Context(), Assignment{Account: w.wallet, Payment: "p1", Movement: right.ID, Operator: "ani", Reason: "the wrong sale"})
		if err != nil || given.State != movement.Succeeded {
			t.Errorf("%s: given on: %s, %v", name, given.State, err)
		}
	}
}

// TestProvidersOwnName: a notification that has another name of the provider's changes
// nothing.
func TestProvidersOwnName(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.want(w.create("A"), "PENDING")
		m := w.stored("A")
		if m.ProviderReference == "" {
			t.Fatal("the provider has given no name")
		}
		told := w.up.pay(m.UpstreamReference(), "p")
		told.ProviderReference = "another's"
		w.hear(told)
		if m := w.stored("A"); m.State != movement.Pending {
			t.Errorf("it is %s", m.State)
		}
		w.wantListed(movement.ReasonContradiction)
		told.ProviderReference = m.ProviderReference
		w.hear(told)
		w.want(w.status("A"), "PAID")
	})
}
