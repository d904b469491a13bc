package movement_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

var states = []movement.State{
	movement.Submitting, movement.Pending, movement.Succeeded, movement.Failed, movement.Expired, movement.NotSubmitted,
}

func rules(t testing.TB) movement.Rules {
	t.Helper()
	r, ok := movement.RulesOf(manifest.Payment)
	if !ok {
		t.Fatal("payments have no rules")
	}
	return r
}

// judges wants a whole table.
func judges(t *testing.T, rules movement.Rules, want map[movement.State][6]movement.Effect) {
	t.Helper()
	for _, from := range states {
		for i, to := range states {
			if got := rules.Judge(from, to); got != want[from][i] {
				t.Errorf("%s, told %s: %d, want %d", from, to, got, want[from][i])
			}
		}
	}
}

// TestJudge holds the whole table, so that a row that changes money is changed
// in two places.
func TestJudge(t *testing.T) {
	t.Parallel()
	const (
		same = movement.Nothing
		move = movement.Move
		late = movement.LateMoney
		back = movement.Reversal
		odd  = movement.Contradiction
	)
	want := map[movement.State][6]movement.Effect{
		//                    Submitting Pending Succeeded Failed Expired NotSubmitted
		movement.Submitting:   {same, move, move, move, move, move},
		movement.Pending:      {odd, same, move, move, move, odd},
		movement.Succeeded:    {odd, same, same, back, same, odd},
		movement.Failed:       {odd, same, late, same, same, odd},
		movement.Expired:      {odd, same, late, same, same, odd},
		movement.NotSubmitted: {move, odd, odd, odd, odd, same},
	}
	judges(t, rules(t), want)
	if got := rules(t).Judge(movement.Pending, "refunded"); got != odd {
		t.Errorf("an unknown state: %d", got)
	}
}

// TestJudgeMoneyOut holds the table of orders and transfers, which have no life
// and no late money: a success after a failure was told is nobody's guess.
func TestJudgeMoneyOut(t *testing.T) {
	t.Parallel()
	const (
		same = movement.Nothing
		move = movement.Move
		back = movement.Reversal
		odd  = movement.Contradiction
	)
	want := map[movement.State][6]movement.Effect{
		//                    Submitting Pending Succeeded Failed Expired NotSubmitted
		movement.Submitting:   {same, move, move, move, odd, move},
		movement.Pending:      {odd, same, move, move, odd, odd},
		movement.Succeeded:    {odd, same, same, back, odd, odd},
		movement.Failed:       {odd, same, odd, same, odd, odd},
		movement.NotSubmitted: {move, odd, odd, odd, odd, same},
	}
	for _, kind := range []manifest.Kind{manifest.Order, manifest.Transfer} {
		rules, served := movement.RulesOf(kind)
		if !served {
			t.Fatalf("a kind without rules: %s", kind)
		}
		if kind == manifest.Transfer { // what has moved against all proof
			want[movement.NotSubmitted] = [6]movement.Effect{move, move, move, odd, odd, same}
		}
		for from, row := range want {
			for i, to := range states {
				if got := rules.Judge(from, to); got != row[i] {
					t.Errorf("%s: %s, told %s: %d, want %d", kind, from, to, got, row[i])
				}
			}
		}
	}
}

// TestFinalStatesNeverChange applies any news, in any order, to a movement.
func TestFinalStatesNeverChange(t *testing.T) {
	t.Parallel()
	r := rules(t)
	rapid.Check(t, func(t *rapid.T) {
		state, ended := movement.Submitting, movement.State("")
		for _, told := range rapid.SliceOf(rapid.SampledFrom(states)).Draw(t, "news") {
			if r.Judge(state, told) == movement.Move {
				state = told
			}
			if ended == "" && state.Final() {
				ended = state
			}
			if ended != "" && state != ended {
				t.Fatalf("%s became %s", ended, state)
			}
		}
	})
}

// TestMoneyIsNeverLost says that news of money is acted on wherever a movement
// stands, unless it is known already.
func TestMoneyIsNeverLost(t *testing.T) {
	t.Parallel()
	for _, from := range states {
		if effect := rules(t).Judge(from, movement.Succeeded); effect == movement.Nothing && from != movement.Succeeded {
			t.Errorf("%s, told that it was paid: nothing", from)
		}
	}
}

func TestOnlyNotSubmittedFreesTheReference(t *testing.T) {
	t.Parallel()
	for _, from := range states {
		if got := rules(t).Judge(from, movement.Submitting) == movement.Move; got != (from == movement.NotSubmitted) {
			t.Errorf("%s may be claimed again: %v", from, got)
		}
		if from != movement.Submitting && rules(t).Judge(from, movement.NotSubmitted) == movement.Move {
			t.Errorf("%s, of which somebody was told, becomes free", from)
		}
	}
}

// TestAcknowledged judges everything as it does of what is submitting, but that the
// reference is never free again. Kinds that answer no creation with a promise have no
// such state.
func TestAcknowledged(t *testing.T) {
	t.Parallel()
	for _, kind := range movement.Kinds() {
		rules, served := movement.RulesOf(kind)
		if !served {
			t.Fatalf("a kind without rules: %s", kind)
		}
		if got := rules.Judge(movement.Submitting, movement.Acknowledged) == movement.Move; got != rules.Pends {
			t.Errorf("%s may be acknowledged: %v", kind, got)
		}
		if !rules.Pends {
			continue
		}
		if got, want := rules.Word(movement.Acknowledged), rules.Word(movement.Pending); got != want {
			t.Errorf("%s reads %q, not %q", kind, got, want)
		}
		for _, to := range states {
			want := rules.Judge(movement.Submitting, to)
			if to == movement.Submitting || to == movement.NotSubmitted {
				want = movement.Contradiction
			}
			if got := rules.Judge(movement.Acknowledged, to); got != want {
				t.Errorf("%s, acknowledged, told %s: %d, want %d", kind, to, got, want)
			}
			if to != movement.Submitting && rules.Judge(to, movement.Acknowledged) == movement.Move {
				t.Errorf("%s, %s, becomes acknowledged", kind, to)
			}
		}
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	want := map[manifest.Kind]movement.Reserves{
		manifest.Payment: movement.ReserveNothing, manifest.Collection: movement.ReserveAmount,
		manifest.Order: movement.ReserveBalance, manifest.Transfer: movement.ReserveLimits,
	}
	for _, kind := range movement.Kinds() {
		if rules, served := movement.RulesOf(kind); !served || rules.Reserves != want[kind] {
			t.Errorf("%s reserves %q", kind, rules.Reserves)
		}
		delete(want, kind)
	}
	if len(want) != 0 {
		t.Errorf("no rows for %v", want)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	want := map[movement.State]string{
		movement.Submitting: "PENDING", movement.Pending: "PENDING", movement.Succeeded: "PAID",
		movement.Failed: "FAILED", movement.Expired: "EXPIRED", movement.NotSubmitted: "", // nobody is told of it
	}
	for state, word := range want {
		if got := rules(t).Word(state); got != word {
			t.Errorf("%s reads %q", state, got)
		}
	}
	for _, kind := range []manifest.Kind{manifest.Query, "", "lottery"} {
		if _, ok := movement.RulesOf(kind); ok {
			t.Errorf("%q has rules about money", kind)
		}
	}
}
