package movement_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// example is a fact about a movement in a state, and what of the transition counts:
// what the truth table has no column for.
type example struct {
	state  movement.State
	change func(*movement.Movement)
	fact   movement.Fact
	want   func(movement.Transition) any
	is     any
}

// runs applies examples to the movements of a section.
func (s section) runs(t *testing.T, examples map[string]example) {
	t.Helper()
	for name, e := range examples {
		m, f := s.movement(e.state), e.fact
		if e.change != nil {
			e.change(&m)
		}
		if f.Now.IsZero() {
			f.Now = epoch.Add(seen)
		}
		if f.Reference == "" {
			f.Reference = m.UpstreamReference()
		}
		if got := e.want(movement.Apply(s.rules, m, f)); !reflect.DeepEqual(got, e.is) {
			t.Errorf("%s, %s: %v, want %v", s.title, name, got, e.is)
		}
	}
}

func titled(t *testing.T, title string) section {
	t.Helper()
	for _, s := range sections(t) {
		if s.title == title {
			return s
		}
	}
	t.Fatalf("no section %q", title)
	return section{}
}

func history(t movement.Transition) any { return t.Event + " " + t.Detail }

func exceptions(t movement.Transition) any { return t.Exceptions }

func next(t movement.Transition) any { return t.NextPoll.Sub(epoch) }

var refusal = &movement.Refusal{Code: "INSUFFICIENT", Message: "no"}

func TestApplyToPayments(t *testing.T) {
	t.Parallel()
	success := movement.Fact{
		Source: movement.FromNotification, Says: movement.SaysSucceeded, EventID: "event-1", ProviderReference: "TX-1", Amount: asked, At: epoch.Add(time.Minute), Raw: "{}",
	}
	pending, expired := success, success
	pending.Says, pending.ExpiresAt, expired.Says = movement.SaysPending, epoch.Add(2*life), movement.SaysExpired
	accepted := movement.Fact{Source: movement.FromCall, Says: movement.SaysAccepted, Data: json.RawMessage(`{}`), ProviderReference: "TX-1", Offers: true}
	other := success
	other.Reference, other.EventID = "INV-9", "event-9"
	titled(t, "Payment").runs(t, map[string]example{
		"the history of a call": {movement.Submitting, nil, accepted, history, `accepted {"source":"call"}`},
		"the history of a no": {
			movement.Submitting, nil, movement.Fact{Source: movement.FromCall, Says: movement.SaysRefused, Refusal: refusal, Detail: "code 51"}, history,
			`refused {"source":"call","detail":"code 51"}`,
		},
		"the history of a success, without money": {
			movement.Pending, nil, success, history, `succeeded {"source":"notification","fact":"event-1","at":"2026-01-01T00:01:00Z","provider_reference":"TX-1"}`,
		},
		"the names of an end": {
			movement.Pending, nil, success, func(t movement.Transition) any { return t.FactID + " " + t.ProviderReference }, "event-1 TX-1",
		},
		"no name of what goes on": {
			movement.Submitting, nil, pending, func(t movement.Transition) any { return t.FactID + " " + t.ProviderReference }, " TX-1",
		},
		"a fact of either unknown state": {
			movement.Submitting, nil, pending, func(t movement.Transition) any { return t.From }, []movement.State{movement.Submitting, movement.Acknowledged},
		},
		"what nobody was answered about": {
			movement.Submitting, nil, movement.Fact{Says: movement.SaysNotSent}, func(t movement.Transition) any { return t.From }, []movement.State{movement.Submitting},
		},
		"polls by the end that is told now": {movement.Submitting, nil, pending, next, 15 * time.Minute},
		"polls without an end, as a call says": {
			movement.Submitting, nil, changed(accepted, func(f *movement.Fact) { f.Now = epoch.Add(20 * time.Minute) }), next, time.Hour,
		},
		"one more poll for late money":           {movement.Pending, nil, expired, next, seen + time.Hour},
		"an amount that differs":                 {movement.Pending, nil, changed(success, func(f *movement.Fact) { f.Amount = 9 }), exceptions, []movement.Cause{{movement.ReasonAmount, "event-1", "asked 10000, the provider says 9"}}},
		"another reference, before its currency": {movement.Pending, nil, changed(other, func(f *movement.Fact) { f.Currency = "USD" }), exceptions, []movement.Cause{{movement.ReasonContradiction, "event-9", "it is asked for as " + reference + ", the provider speaks of INV-9"}}},
		"late money, when it came": {
			movement.Expired, nil, success, func(t movement.Transition) any { return t.HappenedAt.Sub(epoch) }, time.Minute,
		},
		"late money, when nobody tells": {
			movement.Expired, nil, changed(success, func(f *movement.Fact) { f.At = time.Time{} }), func(t movement.Transition) any { return t.HappenedAt.Sub(epoch) }, seen,
		},
		"paid, when the provider says": {
			movement.Pending, nil, success, func(t movement.Transition) any { return t.PaidAt.Sub(epoch) }, time.Minute,
		},
		"paid, when nobody says": {
			movement.Pending, nil, changed(success, func(f *movement.Fact) { f.At = time.Time{} }), func(t movement.Transition) any { return t.PaidAt.IsZero() }, true,
		},
		"paid, how the provider says": {
			movement.Pending, nil, changed(success, func(f *movement.Fact) { f.Channel = "BCA" }), func(t movement.Transition) any { return t.Channel }, "BCA",
		},
		"an end that is no payment": {
			movement.Pending, nil, expired, func(t movement.Transition) any { return t.PaidAt.IsZero() }, true,
		},
		"a second payment": {movement.Succeeded, nil, success, exceptions, []movement.Cause{{movement.ReasonPaidAgain, "event-1", "it was paid before by " + earlier}}},
		"a success without a name, once more": {
			movement.Succeeded, nil, changed(success, func(f *movement.Fact) { f.EventID = "" }), exceptions, []movement.Cause(nil),
		},
		"a call that made nothing, of what is paid": {
			movement.Succeeded, nil, movement.Fact{Source: movement.FromCall, Says: movement.SaysNotSent}, exceptions,
			[]movement.Cause{{movement.ReasonContradiction, reference, "the call was not sent, but it is succeeded"}},
		},
		"a month, where the provider tells no end": {
			movement.Pending, func(m *movement.Movement) { m.ExpiresAt = time.Time{} },
			movement.Fact{Source: movement.FromClock, Says: movement.SaysOverdue, Now: epoch.Add(30 * 24 * time.Hour)}, exceptions,
			[]movement.Cause{{movement.ReasonUnresolved, reference + " after a month", "the provider has told no end of its life, and it has waited for a month"}},
		},
		"a day": {
			movement.Submitting, nil, movement.Fact{Source: movement.FromClock, Says: movement.SaysOverdue, Now: epoch.Add(movement.OverdueAfter)}, exceptions,
			[]movement.Cause{{movement.ReasonUnresolved, reference + " after a day", "nobody knows yet whether it was sent"}},
		},
	})
}

// reference is the upstream's of the movements here.
const reference = "01000000000000000000000000000000-1"

func changed(f movement.Fact, change func(*movement.Fact)) movement.Fact {
	change(&f)
	return f
}

// TestApplyCountsMisses follows "not found" to its proof.
func TestApplyCountsMisses(t *testing.T) {
	t.Parallel()
	proof := epoch.Add(5*time.Second + 30*time.Second + 2*movement.ClockSkew) // SendBy, what the provider takes, clocks
	missing := movement.Fact{Source: movement.FromLookup, Says: movement.SaysNotFound, Proves: true, Now: proof}
	until := func(t movement.Transition) any { return t.MissUntil.Sub(proof) }
	ends := func(t movement.Transition) any { return t.To }
	for _, s := range sections(t) {
		if s.rules.NotFound.Mutations {
			continue
		}
		missed := func(due time.Time) func(*movement.Movement) {
			return func(m *movement.Movement) { m.Misses, m.DueAt, m.PolledAt = s.rules.NotFound.Times-1, due, proof }
		}
		s.runs(t, map[string]example{
			"a moment too early": {movement.Submitting, nil, changed(missing, func(f *movement.Fact) { f.Now = proof.Add(-1) }), func(t movement.Transition) any { return t.MissUntil.IsZero() }, true},
			"the first":          {movement.Submitting, nil, missing, until, s.rules.NotFound.Apart},
			"the last, too soon": {movement.Submitting, missed(proof.Add(1)), missing, ends, movement.State("")},
			"the last":           {movement.Submitting, missed(proof), missing, ends, movement.NotSubmitted},
		})
	}
	slow := titled(t, "Payment")
	slow.rules.Pace.Every = time.Minute
	slow.runs(t, map[string]example{"the first of a slow provider": {movement.Submitting, nil, missing, until, time.Minute}})
}

// TestApplyWantsMutations: of money that goes out "not found" is counted on and on,
// and the account's mutations beside it are the proof.
func TestApplyWantsMutations(t *testing.T) {
	t.Parallel()
	proof := epoch.Add(5*time.Second + 30*time.Second + 2*movement.ClockSkew)
	missing := movement.Fact{Source: movement.FromLookup, Says: movement.SaysNotFound, Proves: true, Now: proof.Add(time.Hour)}
	absent := movement.Fact{
		Source: movement.FromStatement, Says: movement.SaysAbsent, Proves: true, Now: proof.Add(time.Hour),
		From: epoch.Add(-movement.ProviderSkew), Begun: proof, Detail: "0 rows",
	}
	transfer := titled(t, "Transfer")
	often := transfer.rules.NotFound.Times
	missed := func(times int) func(*movement.Movement) {
		return func(m *movement.Movement) { m.Misses, m.DueAt, m.PolledAt = times, proof, proof }
	}
	until := func(t movement.Transition) any { return t.MissUntil.Sub(missing.Now) }
	ends := func(t movement.Transition) any { return t.To }
	const open = movement.State("")
	transfer.runs(t, map[string]example{
		"the last ends nothing":           {movement.Submitting, missed(often - 1), missing, ends, open},
		"the last is counted":             {movement.Submitting, missed(often - 1), missing, until, transfer.rules.NotFound.Apart},
		"one more comes later":            {movement.Submitting, missed(often), missing, until, 15 * time.Minute},
		"absent":                          {movement.Submitting, missed(often), absent, ends, movement.NotSubmitted},
		"absent, long after":              {movement.Submitting, missed(often + 7), absent, ends, movement.NotSubmitted},
		"absent after one lookup too few": {movement.Submitting, missed(often - 1), absent, ends, open},
		"absent where nobody looked":      {movement.Submitting, nil, absent, ends, open},
		"absent on another account":       {movement.Submitting, missed(often), changed(absent, func(f *movement.Fact) { f.Proves = false }), ends, open},
		"read from a moment too late":     {movement.Submitting, missed(often), changed(absent, func(f *movement.Fact) { f.From = f.From.Add(1) }), ends, open},
		"read a moment too early":         {movement.Submitting, missed(often), changed(absent, func(f *movement.Fact) { f.Begun = f.Begun.Add(-1) }), ends, open},
		"of what is pending":              {movement.Pending, missed(often), absent, ends, open},
		"of what has succeeded":           {movement.Succeeded, nil, absent, ends, open},
		"what operators read":             {movement.Submitting, missed(often), absent, history, `not_sent {"source":"statement","from":"2025-12-31T23:55:00Z","begun":"2026-01-01T00:00:39Z","detail":"0 rows"}`},
		"limits are given back":           {movement.Submitting, missed(often), absent, func(t movement.Transition) any { return t.GivesBack }, 1},
		"what a merchant has read ends":   {movement.Acknowledged, missed(often), absent, ends, movement.Failed},
		"what a merchant has read is pending": {
			movement.Acknowledged, missed(often), absent, func(t movement.Transition) any { return t.Refusal },
			&movement.Refusal{Unsent: true, Message: "The transfer was never sent to the provider. No money was moved. " +
				"It was told as pending, so its reference stays used: ask for it again under a new one."},
		},
	})
	titled(t, "Payment").runs(t, map[string]example{"money that comes in needs none": {movement.Submitting, missed(often), absent, ends, open}})
}

func TestApplyToCollections(t *testing.T) {
	t.Parallel()
	line := movement.Fact{Source: movement.FromStatement, Says: movement.SaysSucceeded, EventID: "line-1", Amount: asked, Currency: "IDR", At: epoch.Add(time.Minute)}
	given := changed(line, func(f *movement.Fact) { f.By = "operator ops@example.com: paid twice" })
	paidAt := func(t movement.Transition) any { return t.PaidAt.Sub(epoch) }
	through := movement.Fact{Source: movement.FromStatement, Says: movement.SaysReadThrough, Now: epoch.Add(life + time.Hour), Through: epoch.Add(life + time.Minute)}
	accepted := movement.Fact{Source: movement.FromCall, Says: movement.SaysAccepted, Data: json.RawMessage(`{}`), ExpiresAt: epoch.Add(time.Hour)}
	offered := movement.Fact{Source: movement.FromLookup, Says: movement.SaysPending, Amount: asked, ExpiresAt: epoch.Add(time.Hour)}
	expires := func(t movement.Transition) any { return t.ExpiresAt }
	titled(t, "Collection").runs(t, map[string]example{
		"its life is ours, also as a call says":   {movement.Submitting, nil, accepted, expires, epoch.Add(life)},
		"its life is ours, also as a lookup says": {movement.Submitting, nil, offered, expires, time.Time{}},
		"paid, when the line says":                {movement.Pending, nil, line, paidAt, time.Minute},
		"paid, when nobody says":                  {movement.Pending, nil, changed(line, func(f *movement.Fact) { f.At = time.Time{} }), paidAt, seen},
		"a line that an operator gave": {
			movement.Pending, nil, given, history,
			`succeeded {"source":"operator ops@example.com: paid twice","fact":"line-1","at":"2026-01-01T00:01:00Z"}`,
		},
		"readings find what is taken back": {movement.Pending, nil, line, func(t movement.Transition) any { return t.NextPoll.IsZero() }, true},
		"unpaid":                           {movement.Pending, nil, through, history, `expired {"source":"statement","through":"2026-01-01T00:31:00Z"}`},
		"unpaid by a clock that is behind": {
			movement.Pending, nil, changed(through, func(f *movement.Fact) { f.Now = epoch.Add(life) }), func(t movement.Transition) any { return t.Effect }, movement.Nothing,
		},
		"what the provider itself says": {
			movement.Pending, nil, changed(line, func(f *movement.Fact) { f.Source = movement.FromLookup }), exceptions,
			[]movement.Cause{{movement.ReasonContradiction, "line-1", "a lookup says succeeded, which the statement alone may say"}},
		},
	})
}

func TestApplyToOrders(t *testing.T) {
	t.Parallel()
	success := movement.Fact{
		Source: movement.FromLookup, Says: movement.SaysSucceeded, EventID: "event-1", Amount: agreed - 100, Data: json.RawMessage(`{"sn":"1"}`), Raw: `{"sn":"1"}`,
	}
	override := movement.Override{Operator: "one@example.com", ConfirmedBy: "two@example.com", Outcome: movement.OverrideSucceeded, Reason: "seen", ConfirmedReason: "seen too"}
	decided := movement.Fact{Source: movement.FromOperators, Says: movement.SaysOverridden, Override: &override, Begun: epoch.Add(seen), Message: "ok"}
	polled := func(after time.Duration) func(*movement.Movement) {
		return func(m *movement.Movement) { m.PolledAt = epoch.Add(after) }
	}
	legsOf := func(t movement.Transition) any {
		if t.Posting == nil {
			return nil
		}
		return t.Posting.Legs
	}
	titled(t, "Order, prepaid").runs(t, map[string]example{
		"costs what the provider says":             {movement.Pending, nil, success, func(t movement.Transition) any { return t.Cost }, agreed - 100},
		"posts what the provider says":             {movement.Pending, nil, success, legsOf, ledger.EndCost(agreed - 100).Legs},
		"keeps what the provider gave":             {movement.Pending, nil, success, func(t movement.Transition) any { return string(t.Result) }, `{"sn":"1"}`},
		"an override costs what was agreed":        {movement.Pending, nil, decided, legsOf, ledger.EndCost(agreed).Legs},
		"an override has words of its own":         {movement.Pending, func(m *movement.Movement) { m.Result = json.RawMessage(`{"message":"busy"}`) }, decided, func(t movement.Transition) any { return string(t.Result) }, `{"message":"ok"}`},
		"gives the price back":                     {movement.Pending, nil, movement.Fact{Source: movement.FromLookup, Says: movement.SaysFailed}, legsOf, ledger.GiveBack(asked).Legs},
		"a reversal gives price and cost back":     {movement.Succeeded, nil, movement.Fact{Source: movement.FromLookup, Says: movement.SaysFailed}, legsOf, ledger.TakeBack(asked, agreed).Legs},
		"the history, with money and what is told": {movement.Pending, nil, success, history, `succeeded {"source":"lookup","fact":"event-1","amount":"9400","data":"{\"sn\":\"1\"}"}`},
		"the history of an override": {
			movement.Pending, nil, decided, history,
			`overridden {"source":"operators","operators":"one@example.com, two@example.com","outcome":"success","reason":"seen","confirmation":"seen too"}`,
		},
		"cheaper, after it was booked": {
			movement.Succeeded, nil, success, exceptions, []movement.Cause{{movement.ReasonAmount, "event-1", "booked at 9500, the provider says 9400"}},
		},
		"cheaper, and with what was missing": {
			movement.Succeeded, nil, changed(success, func(f *movement.Fact) { f.Late, f.Fuller = "sn", f.Data }), exceptions,
			[]movement.Cause{
				{movement.ReasonAmount, "event-1", "booked at 9500, the provider says 9400"},
				{movement.ReasonContradiction, "event-1", "the provider told sn late, after the success: the callback went without it"},
			},
		},
		"a reversal, and a call that comes after it": {
			movement.Succeeded, nil, movement.Fact{Source: movement.FromCall, Says: movement.SaysFailed}, exceptions,
			[]movement.Cause{{movement.ReasonContradiction, "", "it is succeeded, the provider says failed"}},
		},
	})
	resubmitted := titled(t, "Order, bill")
	resubmitted.rules.Resubmits = true
	resubmitted.runs(t, map[string]example{
		"captures the price":                  {movement.Pending, nil, changed(success, func(f *movement.Fact) { f.Amount = agreed }), legsOf, ledger.EndCapture(asked, agreed).Legs},
		"releases the price":                  {movement.Pending, nil, movement.Fact{Source: movement.FromLookup, Says: movement.SaysFailed}, legsOf, ledger.LetGo(asked).Legs},
		"an override waits for a poll to end": {movement.Pending, polled(seen - movement.PollLasts + 1), decided, func(t movement.Transition) any { return t.Effect }, movement.Nothing},
		"an override after a poll":            {movement.Pending, polled(seen - movement.PollLasts), decided, func(t movement.Transition) any { return t.Effect }, movement.Move},
	})
}

func TestApplyToTransfers(t *testing.T) {
	t.Parallel()
	sent := movement.Fact{Source: movement.FromNotification, Says: movement.SaysSucceeded, EventID: "event-1", Amount: asked, Data: json.RawMessage(`{}`)}
	alone := movement.Override{Operator: "one@example.com", Outcome: movement.OverrideFailed, Reason: "never arrived", Alone: true}
	from := func(t movement.Transition) any { return t.From }
	titled(t, "Transfer").runs(t, map[string]example{
		"moved against all proof":      {movement.NotSubmitted, nil, sent, from, []movement.State{movement.NotSubmitted}},
		"never sent, and read pending": {movement.Acknowledged, nil, movement.Fact{Source: movement.FromCall, Says: movement.SaysNotSent}, from, []movement.State{movement.Acknowledged}},
		"refused, and read pending":    {movement.Acknowledged, nil, movement.Fact{Source: movement.FromCall, Says: movement.SaysRefused, Refusal: refusal}, from, []movement.State{movement.Submitting, movement.Acknowledged}},
		"without limits there is nothing to give back": {
			movement.Submitting, func(m *movement.Movement) { m.Usage = nil }, movement.Fact{Says: movement.SaysNotSent}, func(t movement.Transition) any { return t.GivesBack }, 0,
		},
		"an override of one": {
			movement.Pending, nil, movement.Fact{Source: movement.FromOperators, Says: movement.SaysOverridden, Override: &alone}, history,
			`overridden {"source":"operators","operators":"one@example.com","alone":"yes","outcome":"failed","reason":"never arrived"}`,
		},
		"a call that was refused, of what goes on": {
			movement.Pending, nil, movement.Fact{Source: movement.FromCall, Says: movement.SaysRefused}, exceptions,
			[]movement.Cause{{movement.ReasonContradiction, reference, "the call was refused, but it is pending"}},
		},
		"another name of a success": {movement.Succeeded, nil, sent, exceptions, []movement.Cause{{movement.ReasonContradiction, "event-1", "it had succeeded before as " + earlier}}},
		"the provider does not tell its end": {
			movement.Pending, nil, movement.Fact{Source: movement.FromClock, Says: movement.SaysOverdue, Now: epoch.Add(movement.OverdueAfter)}, exceptions,
			[]movement.Cause{{movement.ReasonUnresolved, reference + " after a day", "the provider has it and does not tell its end"}},
		},
	})
}
