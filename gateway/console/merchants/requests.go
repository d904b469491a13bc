package merchants

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// requestSpan is how far back requests are counted on the page.
const requestSpan = time.Hour

// counted is how often an operation was decided in one way.
type counted struct {
	Path, Verdict, Rule string
	Refused             bool
	N                   int64
	Last                time.Time
}

// requests counts what was decided on this merchant's requests in the last hour: refusals
// by their rule, and what was admitted by operation.
func (c *Console) requests(r *room) error {
	since := c.deps.Now().Add(-requestSpan).Truncate(time.Minute)
	minutes, err := c.deps.Decided(r.Request.Context(), r.Member.MerchantID, since)
	if err != nil {
		return err
	}
	type key struct {
		path string
		rule decision.Rule
	}
	sums := map[key]*counted{}
	for _, minute := range minutes {
		for _, one := range minute.Counted {
			if one.Live != (r.Mode == tenants.Live) || one.Outcome == decision.Unused || one.Outcome == decision.Later && !one.Rule.Refuses() {
				continue // of those that are counted already
			}
			k := key{one.Operation, one.Rule}
			if sums[k] == nil {
				sums[k] = &counted{Path: one.Operation, Verdict: one.Rule.Verdict(), Rule: one.Rule.String(), Refused: one.Rule.Refuses()}
			}
			for _, n := range one.Counts {
				sums[k].N += int64(n.N)
			}
			if minute.Start.After(sums[k].Last) {
				sums[k].Last = minute.Start
			}
		}
	}
	var rows []counted
	for _, sum := range sums {
		rows = append(rows, *sum)
	}
	slices.SortFunc(rows, func(a, b counted) int {
		if a.Refused != b.Refused {
			return map[bool]int{true: -1, false: 1}[a.Refused]
		}
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule))
	})
	return r.Show("requests.html", r.T("Requests"), map[string]any{"Room": r, "Rows": rows, "Since": since})
}
