package conformance

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
			if out[line.Amount]++; line.Reference != "" && len(tr.movements(line.Reference)) == 0 {
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

// mustMutate skips where there are none.
func (tr *trial) mustMutate(e Example) {
	op, declared := tr.manifest.Operation(e.Operation)
	if !declared || !tr.manifest.Mutations || op.Kind != manifest.Transfer {
		tr.Skip("this provider does not list the mutations of an account")
	}
}

// checkMutations: what has moved stands in the account's own mutations, also where its
// call was cut: they are what proves that a transfer was not made. Its row may have the
// fee in it, and names it or nothing: a reference of the upstream's own is none.
func checkMutations(tr *trial, e Example) {
	tr.mustMutate(e)
	from := time.Now().Add(-time.Minute)
	mine, other := tr.open("A", "test"), tr.open("B", "test")
	before, theirs := tr.mutations(mine.Connection, from, 100), tr.mutations(other.Connection, from, 100)
	_, moving := tr.requestsOf(e, mine)
	o := tr.fresh(e, mine)
	mine.arm(faults[1], moving)
	tr.send(o)
	mine.calm()
	tr.mustExist(o)
	after := tr.mutations(mine.Connection, from, 100)
	listed := 0
	for amount, times := range after {
		if o.call.Amount <= amount && amount <= o.call.Amount+manifest.HighestFee(o.call.Amount) {
			listed += times - before[amount]
		}
	}
	if listed < 2 {
		tr.Errorf("two transfers of %d have moved, and the mutations were %v and are %v", o.call.Amount, before, after)
	}
	if singly := tr.mutations(mine.Connection, from, 1); !maps.Equal(singly, after) {
		tr.Errorf("one by one the mutations are %v, at once %v", singly, after)
	}
	if now := tr.mutations(other.Connection, from, 100); !maps.Equal(now, theirs) {
		tr.Errorf("nothing has moved on another account, and its mutations were %v and are %v", theirs, now)
	}
}

// checkMutationFaults: a row that is missing is taken for a transfer that was not made.
func checkMutationFaults(tr *trial, e Example) {
	tr.mustMutate(e)
	from := time.Now().Add(-time.Minute)
	a := tr.open("A", "test")
	tr.sendAccepted(tr.orderFor(e, a))
	a.renew()
	before := a.requests()
	clean := tr.mutations(a.Connection, from, 100)
	requests := a.requests() - before
	tr.each(a, requests, func(f fault, n int, where string) {
		a.renew()
		a.arm(f, n)
		tr.mustReadAll(a, sdk.Statement{From: from, Limit: 100}, func(lines []sdk.StatementLine) bool {
			out := collected{}
			for _, line := range lines {
				if line.Outgoing {
					out[line.Amount]++
				}
			}
			return maps.Equal(out, clean)
		}, where)
	})
}

// mustReadAll reads a page under a fault: it was not read, or has all.
func (tr *trial) mustReadAll(a *account, s sdk.Statement, whole func([]sdk.StatementLine) bool, where string) {
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	s.RequestID, s.Connection = uuid.NewString(), a.Connection
	page, err := tr.plugin.Statement(ctx, s)
	switch {
	case err != nil:
		tr.Errorf("%s: %v", where, err)
	case a.calm() && page.Known && !page.More && !whole(page.Lines):
		tr.Errorf("%s: the statement is said to have been read, and lines are missing: %+v", where, page)
	}
}
