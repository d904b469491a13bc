package simulator

import (
	"context"
	"slices"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// resolve has an operator take an exception of a movement off the list.
func (w *world) resolve() {
	r := w.someReplica()
	if r == nil || len(w.books.ids) == 0 {
		return
	}
	id := w.books.ids[w.rand.IntN(len(w.books.ids))]
	open := slices.DeleteFunc(w.recordOf(id).exceptions, func(x movement.Exception) bool { return !x.ResolvedAt.IsZero() })
	if len(open) == 0 {
		return
	}
	x := open[w.rand.IntN(len(open))]
	w.begin(r, "resolution of "+x.Reason+" of "+w.books.name(id), func(ctx context.Context) {
		_ = r.store.ResolveException(ctx, w.now.Add(r.skew), x, "operator 1", "phoned") // it stays on the list
	}, func(bool) {})
}

// checkResolved: what an operator has resolved does not come back.
func (w *world) checkResolved(r record) {
	for _, x := range w.books.resolved[r.ID] {
		if !slices.ContainsFunc(r.exceptions, func(y movement.Exception) bool {
			return y.Reason == x.Reason && y.FactID == x.FactID && y.ResolvedBy != "" && !y.ResolvedAt.IsZero()
		}) {
			w.violate("what is resolved stays resolved", "%s of %s", x.Reason, r.name)
		}
	}
}
