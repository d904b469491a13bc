package scenarios

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// TestMatchingProperties has books tell of payments in any order, late, twice,
// reversed in whole or in part, and of foreign amounts, in pages of any size, with
// processes that end anywhere and a second replica beside them, and checks that every row pays one sale at most, every sale is paid by
// one row at most, and the sums add up.
func TestMatchingProperties(t *testing.T) {
	tier.Long(t, "orders of lines and crashes that no table names, on the database")
	t.Parallel()
	s := databaseFor(t)
	rapid.Check(t, func(r *rapid.T) {
		w := newCollections(t, s)
		w.up.page = rapid.IntRange(1, 9).Draw(r, "page")
		sales := map[movement.ID]movement.Movement{}
		var list []movement.Movement
		for i := range rapid.IntRange(1, 8).Draw(r, "sales") {
			m := w.sold(fmt.Sprint(i), 10_000)
			sales[m.ID], list = m, append(list, m)
			w.pass(time.Duration(rapid.IntRange(0, 600).Draw(r, "pause")) * time.Second)
		}
		rows, paidOnce := anyRows(r, list)
		for len(rows) > 0 { // a part at a time
			n := rapid.IntRange(1, len(rows)).Draw(r, "part")
			w.up.write(rows[:n]...)
			rows = rows[n:]
			if rapid.Bool().Draw(r, "complete") && len(rows) == 0 {
				w.complete()
			}
			w.pass(readEvery)
			w.crashSometimes(r, s)
		}
		w.pass(4 * time.Hour)
		w.complete()
		w.restart()
		w.readStatement() // unpaid ones end, and then their late money is known
		w.addsUp(r, sales, paidOnce)
	})
}

// anyRows are the rows of a wallet's books, in any order; and the payments in them.
func anyRows(r *rapid.T, sales []movement.Movement) (rows []sdk.StatementLine, payments map[string]sdk.StatementLine) {
	payments = map[string]sdk.StatementLine{}
	for i := range rapid.IntRange(0, 14).Draw(r, "payments") {
		m := rapid.SampledFrom(sales).Draw(r, "of")
		offset := rapid.SampledFrom([]time.Duration{-time.Hour, -time.Minute, time.Second, 10 * time.Minute, 30 * time.Minute, 31 * time.Minute, 2 * time.Hour, 5 * time.Hour}).Draw(r, "at")
		amount := m.Amount + money.Amount(rapid.SampledFrom([]int64{0, 0, 0, 1_000}).Draw(r, "foreign"))
		row := paid(fmt.Sprint("r", i), amount, m.CreatedAt.Add(offset))
		payments[row.ID] = row
		for range rapid.IntRange(1, 2).Draw(r, "told") {
			rows = append(rows, row)
		}
		if rapid.IntRange(0, 4).Draw(r, "back") == 0 {
			part := money.Amount(rapid.SampledFrom([]int64{0, 0, 10}).Draw(r, "a part"))
			rows = append(rows, back(row.ID, row.Amount-part, row.At.Add(time.Minute)))
		}
	}
	return rapid.Permutation(rows).Draw(r, "order"), payments
}

// crashSometimes looks at the books with a process that may end at any write.
func (w *world) crashSometimes(r *rapid.T, s keeper) {
	w.restart()
	left := rapid.IntRange(0, 20).Draw(r, "writes")
	w.faults.at = func(string) {
		if left--; left < 0 {
			panic(crash{})
		}
	}
	other := w.replica(s)
	var both sync.WaitGroup
	both.Go(func() { _ = other.ReadStatement(context.WithoutCancel(w.Context()), w.statement()) })
	w.dies(func() {
		if err := w.ReadStatement(context.WithoutCancel(w.Context()), w.statement()); err != nil {
			r.Error(err)
		}
	})
	both.Wait()
}

func (w *world) addsUp(r *rapid.T, sales map[movement.ID]movement.Movement, payments map[string]sdk.StatementLine) {
	paying, fromRows, fromSales := map[movement.ID]string{}, money.Amount(0), money.Amount(0)
	for name, row := range payments {
		p, err := w.keeper.Line(context.WithoutCancel(w.Context()), w.wallet, name)
		if err != nil {
			r.Fatalf("%s was lost: %v", name, err)
		}
		if p.Amount != row.Amount || !p.At.Equal(row.At) || p.State == movement.LineNew || p.State == movement.LineMatched {
			r.Fatalf("%s stands as %+v", name, p)
		}
		if p.Movement == (movement.ID{}) {
			continue
		}
		m, ours := sales[p.Movement]
		if earlier, twice := paying[p.Movement]; twice || !ours || m.Amount != p.Amount {
			r.Fatalf("%s pays %s of %v, which %q pays", name, m.Reference, m.Amount, earlier)
		}
		paying[p.Movement] = name
		if now := w.stored(m.Reference); now.State == movement.Succeeded {
			fromRows += p.Amount
		} else if now.PaidLateAt.IsZero() {
			r.Fatalf("%s pays %s, which stands at %s and knows nothing of it", name, m.Reference, now.State)
		}
	}
	for id, m := range sales {
		now := w.stored(m.Reference)
		switch {
		case !now.State.Final():
			r.Fatalf("%s is %s", m.Reference, now.State)
		case now.State == movement.Succeeded:
			fromSales += now.Amount
			row := payments[now.FactID]
			if paying[id] != now.FactID || row.At.Before(now.CreatedAt.Add(-movement.Skew)) || row.At.After(now.ExpiresAt) || !row.At.Equal(now.PaidAt) {
				r.Fatalf("%s is paid by %q of %v, %q has it", m.Reference, now.FactID, row.At, paying[id])
			}
		case paying[id] == "" && !now.PaidLateAt.IsZero():
			r.Fatalf("%s is paid late by nothing", m.Reference)
		}
	}
	if fromRows != fromSales {
		r.Fatalf("rows pay %v, sales are paid %v", fromRows, fromSales)
	}
}
