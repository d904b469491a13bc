package movement

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// every is the order of the columns of the tables below.
var every = []State{Submitting, Acknowledged, Pending, Succeeded, Failed, Expired, NotSubmitted}

func rulesFor(t testing.TB, kind manifest.Kind) Rules {
	t.Helper()
	r, ok := RulesOf(kind)
	if !ok {
		t.Fatalf("%s has no rules", kind)
	}
	return r
}

// judges wants a whole table, and a row in it for each state of the kind.
func judges(t *testing.T, rules Rules, want map[State][7]Effect) {
	t.Helper()
	for from := range rules.Words {
		if _, given := want[from]; rules.From[from] != nil && !given {
			t.Errorf("%s: no row for %s", rules.Kind, from)
		}
	}
	for from, row := range want {
		for i, to := range every {
			if got := rules.judge(from, to); got != row[i] {
				t.Errorf("%s: %s, said to be %s: %d, want %d", rules.Kind, from, to, got, row[i])
			}
		}
	}
}

// The effects, as short as the tables need them.
const (
	same = Nothing
	to   = Move
	late = LateMoney
	back = MoneyBack
	odd  = Contradiction
)

// TestJudge holds the whole table, so that a row that changes money is changed in two
// places.
func TestJudge(t *testing.T) {
	t.Parallel()
	payments := rulesFor(t, manifest.Payment)
	judges(t, payments, map[State][7]Effect{
		//            Submitting Acknowledged Pending Succeeded Failed Expired NotSubmitted
		Submitting:   {same, to, to, to, to, to, to},
		Acknowledged: {odd, same, to, to, to, to, odd},
		Pending:      {odd, odd, same, to, to, to, odd},
		Succeeded:    {odd, odd, same, same, back, same, odd},
		Failed:       {odd, odd, same, late, same, same, odd},
		Expired:      {odd, odd, same, late, same, same, odd},
		NotSubmitted: {to, odd, odd, odd, odd, odd, same},
	})
	if got := payments.judge(Pending, "refunded"); got != odd {
		t.Errorf("an unknown state: %d", got)
	}
}

// TestJudgeCollections holds the table: only a collection's statement ends it, as paid
// or not.
func TestJudgeCollections(t *testing.T) {
	t.Parallel()
	rules := rulesFor(t, manifest.Collection)
	if rules.Life != 30*time.Minute {
		t.Fatalf("a life of %v", rules.Life)
	}
	judges(t, rules, map[State][7]Effect{
		//            Submitting Acknowledged Pending Succeeded Failed Expired NotSubmitted
		Submitting:   {same, to, to, to, to, odd, to},
		Acknowledged: {odd, same, to, to, to, odd, odd},
		Pending:      {odd, odd, same, to, odd, to, odd},
		Succeeded:    {odd, odd, same, same, back, same, odd},
		Failed:       {odd, odd, same, late, same, same, odd},
		Expired:      {odd, odd, same, late, same, same, odd},
		NotSubmitted: {to, odd, odd, odd, odd, odd, same},
	})
}

// TestJudgeMoneyOut holds the table of orders and transfers, which have no life and no
// late money: a success after a merchant has read of a failure is nobody's guess.
func TestJudgeMoneyOut(t *testing.T) {
	t.Parallel()
	want := map[State][7]Effect{
		//            Submitting Acknowledged Pending Succeeded Failed Expired NotSubmitted
		Submitting:   {same, to, to, to, to, odd, to},
		Acknowledged: {odd, same, to, to, to, odd, odd},
		Pending:      {odd, odd, same, to, to, odd, odd},
		Succeeded:    {odd, odd, same, same, back, odd, odd},
		Failed:       {odd, odd, same, odd, same, odd, odd},
		NotSubmitted: {to, odd, odd, odd, odd, odd, same},
	}
	judges(t, rulesFor(t, manifest.Order), want)
	want[NotSubmitted] = [7]Effect{to, odd, to, to, odd, odd, same} // what has moved against all proof
	judges(t, rulesFor(t, manifest.Transfer), want)
}

// TestFinalStatesNeverChange judges any news, in any order.
func TestFinalStatesNeverChange(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		r := rulesFor(t, kind)
		rapid.Check(t, func(t *rapid.T) {
			state, ended := Submitting, State("")
			for _, said := range rapid.SliceOf(rapid.SampledFrom(every)).Draw(t, "news") {
				if r.judge(state, said) == Move {
					state = said
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
}

// TestMoneyIsNeverLost says that news of money is acted on wherever a movement stands,
// unless it is known already.
func TestMoneyIsNeverLost(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		for _, from := range every {
			if effect := rulesFor(t, kind).judge(from, Succeeded); effect == Nothing && from != Succeeded {
				t.Errorf("%s: %s, said to be paid: nothing", kind, from)
			}
		}
	}
}

func TestOnlyNotSubmittedFreesTheReference(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		r := rulesFor(t, kind)
		for _, from := range every {
			if got := r.judge(from, Submitting) == Move; got != (from == NotSubmitted) {
				t.Errorf("%s: %s may be reserved again: %v", kind, from, got)
			}
			if from != Submitting && r.judge(from, NotSubmitted) == Move {
				t.Errorf("%s: %s, of which a merchant may have read, becomes free", kind, from)
			}
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	want := map[State]string{
		Submitting: "PENDING", Acknowledged: "PENDING", Pending: "PENDING", Succeeded: "PAID",
		Failed: "FAILED", Expired: "EXPIRED", NotSubmitted: "", // nobody reads of it
	}
	for state, word := range want {
		if got := rulesFor(t, manifest.Payment).Word(state); got != word {
			t.Errorf("%s reads %q", state, got)
		}
	}
	for _, kind := range []manifest.Kind{manifest.Query, "", "lottery"} {
		if _, ok := RulesOf(kind); ok || slices.Contains(Kinds(), kind) {
			t.Errorf("%q has rules about money", kind)
		}
	}
}
