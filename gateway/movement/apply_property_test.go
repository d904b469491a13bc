package movement_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// applied is Apply's input, a copy of it from before, and what came of it.
type applied struct {
	section
	m, seen    movement.Movement
	fact, said movement.Fact
	movement.Transition
}

// checkApplied wants something of every transition: of any movement, with each fact in
// any words.
func checkApplied(t *testing.T, want func(*rapid.T, applied)) {
	t.Helper()
	all := sections(t)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(all).Draw(t, "section")
		s.rules.Resubmits = rapid.Bool().Draw(t, "resubmits")
		m := s.movement(rapid.SampledFrom(s.states()).Draw(t, "state"))
		s.live(t, &m)
		for _, told := range s.facts() {
			f := s.fact(t, told, m)
			seen, said := copied(m, f)
			want(t, applied{s, m, seen, f, said, movement.Apply(s.rules, m, f)})
		}
	})
}

// live gives a movement a past.
func (s section) live(t *rapid.T, m *movement.Movement) {
	moment := func(label string) time.Time {
		return epoch.Add(time.Duration(rapid.IntRange(-60, 26*60).Draw(t, label)) * time.Minute)
	}
	if m.State != movement.Submitting && rapid.Bool().Draw(t, "answered") {
		m.Answer = json.RawMessage(`{"status":"PENDING"}`)
	}
	if rapid.Bool().Draw(t, "polled") {
		m.PolledAt, m.DueAt, m.Misses = moment("polled at"), moment("due at"), rapid.IntRange(0, 2).Draw(t, "misses")
	}
	if m.State == movement.Succeeded && rapid.Bool().Draw(t, "returned") {
		m.ReturnedAt = moment("returned at")
		m.Returns = []movement.Return{{ID: "r-1", Sort: movement.Refund, Amount: asked, At: m.ReturnedAt}}
	}
	if s.rules.Events.PaidLate != "" && m.State.Final() && m.State != movement.Succeeded && rapid.Bool().Draw(t, "late") {
		m.PaidLateAt = moment("paid late at")
	}
	if s.rules.Reserves == movement.ReserveBalance {
		m.Charge = rapid.SampledFrom([]movement.Charge{s.charge, movement.Unpaid}).Draw(t, "charge")
	}
}

// fact draws other words for a fact.
func (s section) fact(t *rapid.T, told told, m movement.Movement) movement.Fact {
	f := told.fact(&m)
	f.Source, f.Now = told.source, epoch.Add(time.Duration(rapid.IntRange(0, 30*60).Draw(t, "now"))*time.Minute)
	f.EventID = rapid.SampledFrom([]string{"", earlier, "fact-2"}).Draw(t, "event")
	f.Amount = money.Amount(rapid.SampledFrom([]int64{0, int64(asked), int64(agreed), 1, int64(f.Amount)}).Draw(t, "amount"))
	f.At = rapid.SampledFrom([]time.Time{{}, epoch}).Draw(t, "at")
	return f
}

// legs are a posting's, or none.
func legs(t *ledger.Transaction) ledger.Legs {
	if t == nil {
		return ledger.Legs{}
	}
	return t.Legs
}

func TestApplyNeverLeavesAFinalState(t *testing.T) {
	t.Parallel()
	checkApplied(t, func(t *rapid.T, a applied) {
		if a.m.State.Final() && a.Effect == movement.Move {
			t.Fatalf("%s becomes %s", a.m.State, a.To)
		}
	})
}

// TestApplyMovesByTheRules says that a move leaves the state that was seen, and no
// state from which the rules do not lead there.
func TestApplyMovesByTheRules(t *testing.T) {
	t.Parallel()
	checkApplied(t, func(t *rapid.T, a applied) {
		if a.Effect != movement.Move {
			if a.To != "" || a.From != nil {
				t.Fatalf("effect %d moves from %v to %s", a.Effect, a.From, a.To)
			}
			return
		}
		if !slices.Contains(a.From, a.m.State) {
			t.Fatalf("%s moves, from %v", a.m.State, a.From)
		}
		for _, from := range a.From {
			if slices.Contains(a.states(), from) && !slices.Contains(a.rules.From[a.To], from) {
				t.Fatalf("%s: no rule leads from %s to %s", a.title, from, a.To)
			}
		}
	})
}

// TestApplyPostsEachEnd says that what is paid from a balance ends with one sound
// posting, is given back with one, and that nothing else posts.
func TestApplyPostsEachEnd(t *testing.T) {
	t.Parallel()
	checkApplied(t, func(t *rapid.T, a applied) {
		ends := a.Effect == movement.Move && (a.To.Final() || a.To == movement.NotSubmitted)
		back := a.Effect == movement.MoneyBack
		if want := a.m.Charge != movement.Unpaid && (ends || back); want != (a.Posting != nil) {
			t.Fatalf("%s, %s: posts %+v", a.m.State, a.m.Charge, a.Posting)
		}
		if a.Posting == nil {
			return
		}
		if err := a.Posting.Check(); err != nil || (a.Posting.Step == ledger.Reverses) != back || a.Posting.Attempt != a.m.Attempt || !a.Posting.At.Equal(a.fact.Now) {
			t.Fatalf("posts %+v: %v", a.Posting, err)
		}
	})
}

// TestApplyTellsEachEnd says that every final state is a callback event of the kind,
// late money, returns and other amounts are theirs, and nothing else is one.
func TestApplyTellsEachEnd(t *testing.T) {
	t.Parallel()
	checkApplied(t, func(t *rapid.T, a applied) {
		want := movement.NoEvent
		switch {
		case a.Effect == movement.Move && a.To.Final():
			want = movement.EndedEvent
		case a.Effect == movement.LateMoney:
			want = movement.PaidLateEvent
		case a.Effect == movement.MoneyBack:
			want = movement.ReturnedEvent
		case a.Effect == movement.OtherAmount:
			want = movement.AmountEvent
		}
		if a.Tells != want || (a.rules.Event(a.Tells) == "") != (want == movement.NoEvent) {
			t.Fatalf("effect %d, to %s: tells %d, %q", a.Effect, a.To, a.Tells, a.rules.Event(a.Tells))
		}
		if receipt := a.rules.Receipts && a.To == movement.Succeeded; a.Receipt != receipt {
			t.Fatalf("a receipt for %s: %v", a.To, a.Receipt)
		}
	})
}

// TestApplyForgetsNothingOpen says that what moves and stays open is polled again.
func TestApplyForgetsNothingOpen(t *testing.T) {
	t.Parallel()
	checkApplied(t, func(t *rapid.T, a applied) {
		if a.Effect == movement.Move && a.To.Open() && !a.NextPoll.After(a.fact.Now) {
			t.Fatalf("%s is polled at %v, now %v", a.To, a.NextPoll, a.fact.Now)
		}
	})
}

// TestApplyChangesNothingByHalves says that an effect that changes nothing has nothing
// to commit but what a "not found" counts.
func TestApplyChangesNothingByHalves(t *testing.T) {
	t.Parallel()
	checkApplied(t, func(t *rapid.T, a applied) {
		if a.Effect != movement.Nothing && a.Effect != movement.Contradiction {
			return
		}
		rest := a.Transition
		rest.Effect, rest.Exceptions, rest.MissUntil = movement.Nothing, nil, time.Time{}
		if !reflect.DeepEqual(rest, movement.Transition{}) {
			t.Fatalf("%+v", rest)
		}
		if a.Effect == movement.Contradiction && a.Exceptions == nil {
			t.Fatal("a contradiction that nobody hears of")
		}
	})
}

// TestApplyIsPure says that the same input means the same, and stays as it is.
func TestApplyIsPure(t *testing.T) {
	t.Parallel()
	checkApplied(t, func(t *rapid.T, a applied) {
		again := movement.Apply(a.rules, a.m, a.fact)
		if !reflect.DeepEqual(again, a.Transition) {
			t.Fatalf("first %+v, then %+v", a.Transition, again)
		}
		then := movement.Change{Transition: a.Transition, Movement: a.m, At: a.fact.Now}.After()
		if moved := a.Effect == movement.Move; a.Effect == movement.Renewal && !then.SendBy.After(a.m.SendBy) || moved && then.State != a.To || !moved && then.State != a.m.State {
			t.Fatalf("after effect %d to %s it is %s", a.Effect, a.To, then.State)
		}
		if !reflect.DeepEqual(a.m, a.seen) || !reflect.DeepEqual(a.fact, a.said) {
			t.Fatalf("%+v became %+v, %+v became %+v", a.seen, a.m, a.said, a.fact)
		}
	})
}

// copied share nothing with what they are copied from.
func copied(m movement.Movement, f movement.Fact) (movement.Movement, movement.Fact) {
	m.Answer, m.Result, m.Usage = bytes.Clone(m.Answer), bytes.Clone(m.Result), slices.Clone(m.Usage)
	f.Data, f.Fuller = bytes.Clone(f.Data), bytes.Clone(f.Fuller)
	if f.Refusal != nil {
		refusal := *f.Refusal
		f.Refusal = &refusal
	}
	if f.Override != nil {
		override := *f.Override
		f.Override = &override
	}
	return m, f
}

// TestAnyHistory applies any facts, one after another, as the store commits them: late
// money and reversals once. The balance and the limits agree with the state all the
// time, and each end is told once.
func TestAnyHistory(t *testing.T) {
	t.Parallel()
	all := sections(t)
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(all).Draw(t, "section")
		s.rules.Resubmits = rapid.Bool().Draw(t, "resubmits")
		m := s.movement(movement.Submitting)
		balance, err := ledger.Balance{Available: asked}.Apply(legs(m.Begins()))
		if err != nil {
			t.Fatal(err)
		}
		used, ends := 1, 0
		for range rapid.IntRange(1, 12).Draw(t, "facts") {
			if m.State == movement.Submitting && rapid.Bool().Draw(t, "acknowledged") {
				m.State, m.Answer = movement.Acknowledged, s.movement(movement.Acknowledged).Answer
			}
			f := s.fact(t, rapid.SampledFrom(s.facts()).Draw(t, "fact"), m)
			c := movement.Change{Transition: movement.Apply(s.rules, m, f), Movement: m, At: f.Now}
			if c.Effect == movement.LateMoney && !m.PaidLateAt.IsZero() {
				t.Fatalf("late money for the second time: %+v", c.Transition)
			}
			if !c.MissUntil.IsZero() && c.Effect != movement.Move {
				m.Misses, m.DueAt = m.Misses+1, c.MissUntil
				continue
			}
			if c.Answers {
				c.Answer = json.RawMessage(`{}`)
			}
			if balance, err = balance.Apply(legs(c.Posting)); err != nil {
				t.Fatalf("%s, then %+v: %v", m.State, c.Transition, err)
			}
			if used -= c.GivesBack; c.Tells == movement.EndedEvent {
				ends++
			}
			m = c.After()
			s.agrees(t, m, balance, used, ends)
		}
	})
}

// agrees wants of the books what a movement's state says.
func (s section) agrees(t *rapid.T, m movement.Movement, balance ledger.Balance, used, ends int) {
	nothing := m.State == movement.Failed || m.State == movement.NotSubmitted
	if s.rules.Kind == manifest.Transfer && (used == 1) == nothing {
		t.Fatalf("%s counts %d times against its limits", m.State, used)
	}
	want := ledger.Balance{Available: asked}
	switch {
	case s.charge == movement.Unpaid, nothing, !m.ReturnedAt.IsZero():
	case m.State.Open() && s.charge == movement.Held:
		want = ledger.Balance{Held: asked}
	default:
		want = ledger.Balance{}
	}
	if balance != want {
		t.Fatalf("%s, returned at %v: a balance of %+v, want %+v", m.State, m.ReturnedAt, balance, want)
	}
	if (ends == 1) != m.State.Final() || ends > 1 {
		t.Fatalf("%s was told %d times", m.State, ends)
	}
}
