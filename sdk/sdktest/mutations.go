package sdktest

import (
	"context"
	"maps"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// mutations reads what went out of an account since a moment, to its end, in pages of
// a size.
func (tr *trial) mutations(c sdk.Connection, from time.Time, limit int) collected {
	tr.Helper()
	out, cursor, reading := collected{}, "", uuid.NewString()
	for range 1000 {
		ctx, cancel := context.WithTimeout(tr.Context(), patience)
		page, err := tr.plugin.Statement(ctx, sdk.Statement{RequestID: reading, Connection: c, From: from, Cursor: cursor, Limit: limit})
		cancel()
		if err != nil || !page.Known || len(page.Lines) > limit {
			tr.Fatalf("the mutations can't be read, or are more than %d to a page: %+v, %v", limit, page, err)
		}
		for _, line := range page.Lines {
			if !line.Outgoing {
				continue
			}
			if out[line.Amount]++; line.Reference != "" && len(tr.upstream.Movements(line.Reference)) == 0 {
				tr.Errorf("a mutation's reference %q is none of ours: leave it empty", line.Reference)
			}
		}
		if cursor = page.Cursor; !page.More {
			return out
		}
	}
	tr.Fatal("the mutations have no end")
	return nil
}

// checkMutations: what has moved stands in the account's own mutations, also where its
// call was cut: they are what proves that a transfer was not made. Its row may have the
// fee in it, and names it or nothing: a reference of the upstream's own is none.
func checkMutations(tr *trial, e Example) {
	op, declared := tr.manifest.Operation(e.Operation)
	if !declared || !tr.manifest.Mutations || op.Kind != manifest.Transfer {
		tr.Skip("this provider does not list the mutations of an account")
	}
	from := time.Now().Add(-time.Minute)
	o, other := tr.order(e), tr.upstream.Connect("B", "test")
	before, theirs := tr.mutations(o.call.Connection, from, 100), tr.mutations(other, from, 100)
	tr.upstream.Fail(CutAfter)
	tr.send(o)
	tr.mustExist(o)
	after := tr.mutations(o.call.Connection, from, 100)
	listed := false
	for amount, times := range after {
		fits := o.call.Amount <= amount && amount <= o.call.Amount+manifest.HighestFee(o.call.Amount)
		listed = listed || fits && times > before[amount]
	}
	if !listed {
		tr.Errorf("a transfer of %d has moved, and the mutations were %v and are %v", o.call.Amount, before, after)
	}
	if singly := tr.mutations(o.call.Connection, from, 1); !maps.Equal(singly, after) {
		tr.Errorf("one by one the mutations are %v, at once %v", singly, after)
	}
	if now := tr.mutations(other, from, 100); !maps.Equal(now, theirs) {
		tr.Errorf("nothing has moved on another account, and its mutations were %v and are %v", theirs, now)
	}
}
