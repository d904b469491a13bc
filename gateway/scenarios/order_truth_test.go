package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	orderEnds  = "ppob.status_update"
	orderTaken = "ppob.reversed"
)

// addUp proves all that must be true of this merchant's orders at any time: what
// was bought, what was paid for it, and what was told. The orders have one price
// over all their attempts.
func (s *shop) addUp() {
	s.Helper()
	for _, wrong := range s.up.wrong {
		s.Error("the provider was " + wrong)
	}
	balance := ledger.Balance{Available: s.opening}
	transactions := 1 // the opening
	for _, reference := range s.used {
		m, err := s.keeper.MovementByKey(s.Context(), s.keyOf(reference))
		if errors.Is(err, store.ErrNotFound) {
			if _, promised := s.pending[reference]; promised {
				s.Errorf("%s was told to be pending, and is nowhere", reference)
			}
			continue
		}
		if err != nil {
			s.Fatal(err)
		}
		s.bought(m)
		wanted := s.entriesOf(m, &balance)
		transactions += len(wanted)
		s.posted(m, wanted)
		s.toldOf(m)
	}
	if got := s.balance(); got != balance {
		s.Errorf("the balance is %+v, want %+v", got, balance)
	}
	if got := len(s.postings()); got != transactions {
		s.Errorf("%d transactions, want %d", got, transactions)
	}
}

// bought checks a movement against what exists at the provider.
func (s *shop) bought(m movement.Movement) {
	s.Helper()
	p, times := s.up.of(nameOfMovement(m.ID))
	if times > 1 {
		s.Errorf("%s was bought %d times", m.Reference, times)
	}
	if p != nil && p.reference != m.UpstreamReference() {
		s.Errorf("%s stands at attempt %d, and was bought as %s", m.Reference, m.Attempt, p.reference)
	}
	if calls := callsOf(s.up.calls, m); calls > m.Attempt {
		s.Errorf("%s was called %d times in %d attempts", m.Reference, calls, m.Attempt)
	}
	if _, promised := s.pending[m.Reference]; promised && m.State == movement.NotSubmitted {
		s.Errorf("%s was told to be pending, and is free", m.Reference)
	}
	ended := p != nil && !s.now().Before(p.endAt)
	switch delivered := ended && p.ends == sdk.StatusDone; {
	case m.State == movement.Succeeded && !delivered:
		s.Errorf("%s is done, and was not delivered: %+v", m.Reference, p)
	case m.State == movement.Succeeded && m.Cost != p.cost:
		s.Errorf("%s is booked at a cost of %v and did cost %v", m.Reference, m.Cost, p.cost)
	case m.State == movement.Failed && (delivered || p != nil && !ended), m.State == movement.NotSubmitted && p != nil:
		s.Errorf("%s stands at %s, and was bought: %+v", m.Reference, m.State, p)
	}
}

// callsOf is how often a movement was called, under its present name.
func callsOf(calls []sdk.Call, m movement.Movement) (times int) {
	for _, call := range calls {
		if call.Reference == m.UpstreamReference() {
			times++
		}
	}
	return times
}

// entriesOf are the transactions that a movement must have, applied to a balance.
func (s *shop) entriesOf(m movement.Movement, balance *ledger.Balance) []string {
	s.Helper()
	begin, well, not := ledger.BeginCharge(m.Amount), ledger.EndCost(m.Cost), ledger.GiveBack(m.Amount)
	switch m.Charge {
	case movement.Held:
		begin, well, not = ledger.BeginHold(m.Amount), ledger.EndCapture(m.Amount, m.Cost), ledger.LetGo(m.Amount)
	case movement.Unpaid:
		return nil
	case movement.Charged:
	}
	var wanted []string
	add := func(attempt int, tx ledger.Transaction) {
		after, err := balance.Apply(tx.Legs)
		if err != nil {
			s.Fatal(err)
		}
		*balance = after
		wanted = append(wanted, entry(attempt, tx))
	}
	for attempt := 1; attempt <= m.Attempt; attempt++ {
		add(attempt, begin)
		if attempt < m.Attempt {
			add(attempt, not)
		}
	}
	switch m.State {
	case movement.Succeeded:
		add(m.Attempt, well)
	case movement.Failed, movement.NotSubmitted:
		add(m.Attempt, not)
	case movement.Submitting, movement.Acknowledged, movement.Pending, movement.Expired:
	}
	if !m.ReversedAt.IsZero() {
		add(m.Attempt, ledger.TakeBack(m.Amount, m.Cost))
	}
	return wanted
}

func entry(attempt int, tx ledger.Transaction) string {
	return fmt.Sprintf("attempt %d step %d %s %+v", attempt, tx.Step, tx.Kind, tx.Legs)
}

// posted checks a movement's transactions: each balanced, each step once, and
// just those.
func (s *shop) posted(m movement.Movement, wanted []string) {
	s.Helper()
	var got []string
	steps := map[string]int{}
	for _, tx := range s.postings() {
		if tx.Subject != uuid.UUID(m.ID) {
			continue
		}
		if steps[fmt.Sprint(tx.Attempt, tx.Step)]++; !tx.Balanced() || steps[fmt.Sprint(tx.Attempt, tx.Step)] > 1 || tx.Provider != ppob {
			s.Errorf("a transaction that can't be: %+v", tx)
		}
		got = append(got, entry(tx.Attempt, tx))
	}
	slices.Sort(got)
	if slices.Sort(wanted); !slices.Equal(got, wanted) {
		s.Errorf("%s stands at %s, attempt %d; posted\n%s\nwant\n%s", m.Reference, m.State, m.Attempt, strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}

// toldOf checks a movement's callbacks: one for its end and one for its reversal,
// byte for byte.
func (s *shop) toldOf(m movement.Movement) {
	s.Helper()
	var ends, reversals int
	for _, c := range s.world.told() {
		if c.Reference != m.Reference {
			continue
		}
		reports := lifecycle.Reports(m)
		sn, reversedAt := `""`, ""
		if m.State == movement.Succeeded {
			sn = `"SN-` + m.UpstreamReference() + `"`
		}
		switch c.Event {
		case orderEnds:
			ends++
		case orderTaken:
			reversals++
			reversedAt = `,"reversed_at":"` + lifecycle.Stamp(m.ReversedAt) + `"`
		default:
			s.Errorf("%s: nobody knows the event %s", m.Reference, c.Event)
		}
		message := cmp.Or(reports["message"], lifecycle.Message(ordersOf(orderPath).Rules, m))
		want := fmt.Sprintf(`{"event":%q,"data":{"ref_id":%q,"sku":%s,"target":%s,"status":%q,"sn":%s,"message":%q,"timestamp":%q%s}}`,
			c.Event, m.Reference, m.Field("sku"), m.Field("target"), map[movement.State]string{movement.Succeeded: "Success", movement.Failed: "Failed"}[m.State],
			sn, message, lifecycle.Stamp(c.CreatedAt), reversedAt)
		if string(c.Body) != want {
			s.Errorf("told\n%s\nwant\n%s", c.Body, want)
		}
	}
	if final := m.State.Final(); ends > 1 || final != (ends == 1) || m.ReversedAt.IsZero() != (reversals == 0) || reversals > 1 {
		s.Errorf("%s stands at %s and was told %d times, and %d times that it was taken back", m.Reference, m.State, ends, reversals)
	}
}

// truthful checks one answer to an order against what exists at the provider
// now.
func (s *shop) truthful(reference string, a said) {
	s.Helper()
	want := fmt.Sprintf(`{"ref_id":%q,"sku":%q,"target":"081200001111","status":"Pending"}`, reference, s.sku)
	times := 0
	if m, err := s.keeper.MovementByKey(s.Context(), s.keyOf(reference)); err == nil {
		_, times = s.up.of(nameOfMovement(m.ID))
	}
	_, promised := s.pending[reference]
	switch {
	case a.crashed:
	case a.err == nil && a.data != want:
		s.Errorf("answered %s, want %s", a.data, want)
	case a.err == nil:
	case a.err.Reference != reference || a.err.Sent == "refused" || (a.err.Sent == "unknown") != (a.err.Retry == "lookup_first"):
		s.Errorf("%v: reference %q, sent %s, retry %s", a.err, a.err.Reference, a.err.Sent, a.err.Retry)
	case a.err.Sent == "no" && (times > 0 || promised):
		s.Errorf("told that it was not sent (%v): bought %d times, told before to be pending: %t", a.err, times, promised)
	}
}

// priceOf is what this merchant pays.
func (s *shop) priceOf() money.Amount {
	if s.sku == billSKU {
		return billTotal + markup
	}
	return prepaidPrice + markup
}
