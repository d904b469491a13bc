package decision_test

import (
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
)

func TestTally(t *testing.T) {
	t.Parallel()
	series := func(merchant string, rule decision.Rule, outcome decision.Outcome, n ...uint32) decision.Counted {
		c := decision.Counted{Series: decision.Series{Merchant: merchant, Operation: "/a", Version: "v", Live: true, Rule: rule, Outcome: outcome}}
		for i, many := range n {
			c.Counts = append(c.Counts, decision.Count{Second: uint8(i), N: many})
		}
		return c
	}
	var tally decision.Tally
	first := time.Date(2026, 1, 31, 3, 4, 0, 0, time.UTC)
	for i, part := range [][]decision.Counted{
		{series("a", decision.Admitted, decision.Decided, 3, 4), series("b", decision.Admitted, decision.Decided, 1)},
		{series("a", decision.Rate(0), decision.Decided, 5), series("a", decision.Admitted, decision.Unused, 9), series("a", decision.Admitted, decision.Later, 9)},
		{series("a", decision.Admitted, decision.Spent, 2)},
	} {
		if err := tally.Add(first.Add(time.Duration(i)*time.Minute), decision.Pack(part)); err != nil {
			t.Fatal(err)
		}
	}
	got := tally.Of("a")
	if len(got) != 3 || got[0].N != 7 || got[0].Invalid || got[0].Last != first || !got[2].Invalid || got[2].N != 2 || got[1].N != 5 || got[1].Rule != decision.Rate(0) || got[1].Last != first.Add(time.Minute) {
		t.Errorf("summed %+v", got)
	}
	old := series("b", decision.Admitted, decision.Decided, 1)
	old.Version = "u"
	if err := tally.Add(first, decision.Pack([]decision.Counted{old})); err != nil || len(tally.Of("b")) != 2 {
		t.Errorf("two versions are summed as one: %+v, %v", tally.Of("b"), err)
	}
	tally.Of("b")[1].N = 0
	if got := tally.Of("b")[:1]; len(got) != 1 || got[0].N != 1 {
		t.Errorf("summed %+v", got)
	}
	if tally.Add(first, []byte("x")) == nil {
		t.Error("what is no part is summed")
	}
}
