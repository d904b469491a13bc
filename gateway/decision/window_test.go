package decision_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
)

func TestWindow(t *testing.T) {
	t.Parallel()
	series := func(rule decision.Rule, outcome decision.Outcome, counts ...decision.Count) decision.Counted {
		return decision.Counted{Series: decision.Series{Merchant: "a", Operation: "/a", Rule: rule, Outcome: outcome}, Counts: counts}
	}
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	w := decision.NewWindow(noon.Add(30*time.Second), 10*time.Second, 4)
	for i, part := range [][]decision.Counted{
		{
			series(decision.Admitted, decision.Decided, decision.Count{Second: 29, N: 100}, decision.Count{Second: 30, N: 1}, decision.Count{Second: 59, N: 2}),
			series(decision.Rate(0), decision.Decided, decision.Count{Second: 45, N: 4}), series(decision.Admitted, decision.Unused, decision.Count{Second: 45, N: 100}),
		},
		{series(decision.Quota(1), decision.Decided, decision.Count{Second: 9, N: 8}, decision.Count{Second: 10, N: 100}), series(decision.Policy(2), decision.Spent, decision.Count{N: 16})},
	} {
		if err := w.Add(noon.Add(time.Duration(i)*time.Minute), decision.Pack(part)); err != nil {
			t.Fatal(err)
		}
	}
	want := []decision.Slice{{Admitted: 1}, {Slowed: 4}, {Admitted: 2}, {OverQuota: 8, Denied: 16}}
	if !slices.Equal(w.Slices, want) || *w.Operations["/a"] != (decision.Slice{Admitted: 3, Slowed: 4, OverQuota: 8, Denied: 16}) || w.Operations["/a"].Refused() != 28 {
		t.Errorf("summed %+v, %+v", w.Slices, w.Operations["/a"])
	}
	if most := w.MostRefused(2); len(most) != 2 || most[0].Rule != decision.Policy(2) || w.Refusals[most[1]] != 8 {
		t.Errorf("most refused %+v", most)
	}
}
