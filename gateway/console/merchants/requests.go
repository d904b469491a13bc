package merchants

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/tenants"
)

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
	sums, since, err := c.deps.Decided(r.Request.Context(), r.Member.MerchantID)
	if err != nil {
		return err
	}
	var rows []counted
	for _, sum := range sums {
		if sum.Live == (r.Mode == tenants.Live) {
			rows = append(rows, counted{
				Path: sum.Operation, Verdict: sum.Rule.Verdict(), Rule: sum.Rule.String(), Refused: sum.Rule.Refuses(), N: sum.N, Last: sum.Last,
			})
		}
	}
	slices.SortFunc(rows, func(a, b counted) int {
		if a.Refused != b.Refused {
			return map[bool]int{true: -1, false: 1}[a.Refused]
		}
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Rule, b.Rule))
	})
	return r.Show("requests.html", r.T("Requests"), map[string]any{"Room": r, "Rows": rows, "Since": since})
}
