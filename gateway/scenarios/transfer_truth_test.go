package scenarios

import (
	"errors"
	"fmt"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	transferEnds  = "transfer.status_update"
	transferTaken = "transfer.reversed"
)

// movements are all of this merchant's.
func (p *purse) movements() []movement.Movement {
	p.Helper()
	var all []movement.Movement
	add := func(reference string) bool {
		m, err := p.keeper.MovementByKey(p.Context(), p.keyOf(reference))
		switch {
		case err == nil:
			all = append(all, m)
		case !errors.Is(err, store.ErrNotFound):
			p.Fatal(err)
		}
		return err == nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, reference := range p.used {
		if _, promised := p.promised[reference]; !add(reference) && promised {
			p.Errorf("%s was told to be pending, and is nowhere", reference)
		}
	}
	for _, stem := range p.stems {
		n := 1
		for add(fmt.Sprintf("%s%08d", stem, n)) {
			n++
		}
	}
	return all
}

// addUp proves all that must be true of this merchant's transfers at any time:
// what has moved, what was told, and what counts against its limits.
func (p *purse) addUp() {
	p.Helper()
	for _, wrong := range p.up.wrong {
		p.Error("the provider was " + wrong)
	}
	type limit struct{ period, name string }
	counts := map[limit]int64{}
	periods := map[string]bool{}
	for _, m := range p.movements() {
		p.moved(m)
		p.toldOf(m)
		for _, s := range m.Usage {
			periods[s.Period] = true
			if m.State != movement.Failed && m.State != movement.NotSubmitted {
				counts[limit{s.Period, s.Name}] += s.Amount
			}
		}
	}
	for period := range periods {
		used, err := p.keeper.(counted).Usage(p.Context(), p.keyOf("").Owner, period)
		if err != nil {
			p.Fatal(err)
		}
		for _, u := range used {
			if want := counts[limit{period, u.Name}]; u.Units != want {
				p.Errorf("%s %s: %d is used, want %d", period, u.Name, u.Units, want)
			}
			delete(counts, limit{period, u.Name})
		}
	}
	if len(counts) > 0 {
		p.Errorf("not counted: %v", counts)
	}
}

// moved checks a transfer against what has moved.
func (p *purse) moved(m movement.Movement) {
	p.Helper()
	pay, times := p.up.of(nameOfMovement(m.ID))
	if times > 1 {
		p.Errorf("%s has moved %d times", m.Reference, times)
	}
	if pay != nil && pay.reference != m.UpstreamReference() {
		p.Errorf("%s stands at attempt %d, and has moved as %s", m.Reference, m.Attempt, pay.reference)
	}
	if calls := callsOf(p.up.calls, m); calls > m.Attempt {
		p.Errorf("%s was called %d times in %d attempts", m.Reference, calls, m.Attempt)
	}
	p.mu.Lock()
	_, promised := p.promised[m.Reference]
	p.mu.Unlock()
	if promised && m.State == movement.NotSubmitted {
		p.Errorf("%s was told to be pending, and is free", m.Reference)
	}
	ended := pay != nil && !p.now().Before(pay.endAt)
	switch arrived := ended && pay.ends == sdk.StatusDone; {
	case m.State == movement.Succeeded && (!arrived || pay.amount != m.Amount):
		p.Errorf("%s is done, and of %v has moved %+v", m.Reference, m.Amount, pay)
	case m.State == movement.Failed && (arrived || pay != nil && !ended), m.State == movement.NotSubmitted && pay != nil:
		p.Errorf("%s stands at %s, and has moved: %+v", m.Reference, m.State, pay)
	}
}

// wordOf is what a merchant reads of a transfer.
func wordOf(m movement.Movement) string {
	return map[movement.State]string{
		movement.Submitting: "Pending", movement.Acknowledged: "Pending", movement.Pending: "Pending", movement.Succeeded: "Success", movement.Failed: "Failed",
	}[m.State]
}

// ours is a caller's reference as JSON, null where it gave none.
func ours(m movement.Movement) string {
	if strings.HasPrefix(m.Reference, movement.UnnamedMark) {
		return "null"
	}
	return fmt.Sprintf("%q", m.Reference)
}

// answerOf is what the contract has a transfer answered.
func answerOf(m movement.Movement) string {
	if m.Operation == walletPath {
		return fmt.Sprintf(`{"refId":%q,"amount":%d,"status":%q,"external_id":%s}`, nameOfMovement(m.ID), m.Amount, wordOf(m), ours(m))
	}
	match := "null"
	if m.NameMatch != nil {
		match = fmt.Sprint(*m.NameMatch)
	}
	return fmt.Sprintf(`{"txId":%q,"amount":%d,"fee":%d,"status":%q,"external_id":%s,"name_match":%s}`,
		nameOfMovement(m.ID), m.Amount, m.Fee, wordOf(m), ours(m), match)
}

// statusOf is what the contract has a status answered.
func statusOf(m movement.Movement) string {
	name := "txId"
	if m.Operation == walletPath {
		name = "refId"
	}
	reversedAt := ""
	if !m.ReversedAt.IsZero() {
		reversedAt = `,"reversed_at":"` + lifecycle.Stamp(m.ReversedAt) + `"`
	}
	return fmt.Sprintf(`{%q:%q,"external_id":%s,"amount":%d,"fee":%d,"status":%q%s}`,
		name, nameOfMovement(m.ID), ours(m), m.Amount, m.Fee, wordOf(m), reversedAt)
}

// toldOf checks a transfer's callbacks: one for its end and one for its reversal,
// byte for byte, each the status and when it was told.
func (p *purse) toldOf(m movement.Movement) {
	p.Helper()
	var ends, reversals int
	for _, c := range p.world.told() {
		if c.MovementID != m.ID {
			continue
		}
		then := m
		switch c.Event {
		case transferEnds:
			ends++
			then.ReversedAt = then.PaidLateAt
		case transferTaken:
			reversals++
		default:
			p.Errorf("%s: nobody knows the event %s", m.Reference, c.Event)
		}
		want := fmt.Sprintf(`{"event":%q,"data":%s,"timestamp":%q}}`, c.Event, strings.TrimSuffix(statusOf(then), "}"), lifecycle.Stamp(c.CreatedAt))
		if string(c.Body) != want {
			p.Errorf("told\n%s\nwant\n%s", c.Body, want)
		}
	}
	if final := m.State.Final(); ends > 1 || final != (ends == 1) || m.ReversedAt.IsZero() != (reversals == 0) || reversals > 1 {
		p.Errorf("%s stands at %s and was told %d times, and %d times that it was taken back", m.Reference, m.State, ends, reversals)
	}
}

// truthful checks one answer against what stands and what has moved now.
func (p *purse) truthful(r Request, a said) {
	p.Helper()
	m, there := p.latest(r)
	p.mu.Lock()
	_, promised := p.promised[m.Reference]
	p.mu.Unlock()
	if stem := strings.Trim(p.stemOf(r), "-"+movement.UnnamedMark); stem != "" && strings.Contains(fmt.Sprintf("%s %+v", a.data, a.err), stem) {
		p.Errorf("an answer tells the gateway's own reference: %s %v", a.data, a.err)
	}
	switch {
	case a.crashed:
	case a.err == nil && (!there || a.data != answerOf(m)):
		p.Errorf("answered %s, stands at %s, want %s", a.data, m.State, answerOf(m))
	case a.err == nil:
	case a.err.Reference != r.Operation.ReferenceOf(r.Body):
		p.Errorf("%v names %q", a.err, a.err.Reference)
	case a.err.Sent == fault.SentRefused && (m.State != movement.Failed || a.err.Retry != fault.RetryNever):
		p.Errorf("%v, and it stands at %s", a.err, m.State)
	case a.err.Sent == fault.SentUnknown && (a.err.Code != fault.Internal || a.err.Retry != fault.RetryLookupFirst):
		p.Errorf("what is unknown is pending: %v", a.err)
	case a.err.Code == fault.InProgress && promised:
		p.Errorf("in progress, after it was told to be pending: %v", a.err)
	case a.err.Code == fault.InProgress:
	case a.err.Sent == fault.SentNo:
		pay, times := p.up.of(nameOfMovement(m.ID))
		over := m.State == movement.Failed && pay == nil && a.err.Retry == fault.RetryNever
		if there && (times > 0 || promised && !over) {
			p.Errorf("told that it was not sent (%v): moved %d times, told before to be pending: %t", a.err, times, promised)
		}
	}
}
