package console

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
)

// mostRefusals is how many refusals are listed.
const mostRefusals = 50

// showTraffic tells what was decided on all replicas, and how this one answered.
func (c *Console) showTraffic(x *call, _ adminapi.None) (out adminapi.Traffic, err error) {
	w, err := c.deps.Traffic(x.request.Context())
	if err != nil {
		return out, err
	}
	out = adminapi.Traffic{
		From: w.From, SliceSeconds: int(w.Width / time.Second), ReplicaID: c.deps.Replica.String(),
		Slices: append([]decision.Slice{}, w.Slices...), Operations: []adminapi.OperationCount{}, Refusals: []adminapi.RefusalCount{},
	}
	for _, operation := range slices.SortedFunc(maps.Keys(w.Operations), func(a, b string) int {
		total := func(s *decision.Slice) int64 { return s.Admitted + s.Refused() }
		return cmp.Or(cmp.Compare(total(w.Operations[b]), total(w.Operations[a])), cmp.Compare(a, b))
	}) {
		out.Operations = append(out.Operations, adminapi.OperationCount{Operation: operation, Slice: *w.Operations[operation]})
	}
	for _, r := range w.MostRefused(mostRefusals) {
		out.Refusals = append(out.Refusals, adminapi.RefusalCount{
			MerchantID: r.Merchant, Mode: decision.ModeOf(r.Live), Operation: r.Operation, Verdict: r.Rule.Verdict(), Rule: r.Rule.String(), N: w.Refusals[r],
		})
	}
	out.Routes, out.Providers, out.MeasuredSince = c.deps.Metrics.answered(x.now)
	return out, nil
}
