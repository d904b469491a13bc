package store_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// TestAPaymentPaysOnce matches two payments to one sale, and one payment twice.
func TestAPaymentPaysOnce(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	one, other := reserve(t, s, sale("1", 100)), reserve(t, s, sale("2", 100))
	if _, err := s.Import(t.Context(), epoch, statement(t, s), []movement.ImportedLine{rowOf("a", one.Amount), rowOf("b", one.Amount)}, "1", epoch); err != nil {
		t.Fatal(err)
	}
	match := func(matches ...movement.Match) {
		t.Helper()
		if _, err := s.Match(t.Context(), epoch, statement(t, s), matches); err != nil {
			t.Error(err)
		}
	}
	match(movement.Match{Payment: "a", State: movement.LineMatched, Movement: one.ID},
		movement.Match{Payment: "b", State: movement.LineMatched, Movement: one.ID}) // both for one sale: the first has it
	match(movement.Match{Payment: "a", State: movement.LineMatched, Movement: other.ID}) // it is matched already
	a, err := s.Line(t.Context(), wallet, "a")
	if err != nil || a.Movement != one.ID || a.State != movement.LineMatched {
		t.Errorf("a: %+v, %v", a, err)
	}
	b, _ := s.Line(t.Context(), wallet, "b")
	if b.Movement != (movement.ID{}) || b.State != movement.LineNew {
		t.Errorf("b: %+v", b)
	}
	found, err := s.Candidates(t.Context(), statement(t, s), []money.Amount{one.Amount, other.Amount}, epoch, epoch)
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	for _, c := range found {
		if c.Taken != (c.ID == one.ID) {
			t.Errorf("%+v", c)
		}
	}
	match(movement.Match{Payment: "b", State: movement.LineAgain, Reason: "paid_again", Detail: "IDR 100"})
	match(movement.Match{Payment: "a", State: movement.LineAgain, Reason: "paid_again"}) // of a stale reader
	if open, err := s.OpenExceptions(t.Context(), 10); err != nil || len(open) != 1 || open[0].Subject != "payment b" || open[0].Reason != "paid_again" {
		t.Errorf("the operators' list: %+v, %v", open, err)
	}
	listed, err := s.ListLines(t.Context(), movement.LineRange{MerchantID: "mer_1", Most: 10})
	if err != nil || len(listed) != 1 || listed[0].Payment != "b" || listed[0].State != movement.LineAgain {
		t.Fatalf("%+v, %v", listed, err)
	}
	for _, c := range []struct {
		to   movement.ID
		want bool
	}{{one.ID, false}, {other.ID, true}, {other.ID, false}} { // taken; free; no longer as it was seen
		if ok, err := s.Assign(t.Context(), epoch, listed[0].StatementLine, c.to, "ani", "the payer has called"); err != nil || ok != c.want {
			t.Errorf("assigned: %v, %v, want %v", ok, err, c.want)
		}
	}
	entries, err := s.AuditOf(t.Context(), store.AuditRange{MerchantID: "mer_1", Action: "statement.assign", Most: 10})
	want := "payment b to movement " + other.ID.String() + ": the payer has called, mode " + other.Owner.Mode
	if err != nil || len(entries) != 1 || entries[0].Operator != "ani" || entries[0].Detail != want {
		t.Errorf("audit: %+v, %v, want %q once", entries, err, want)
	}
}

// TestAPaymentAndASaleMeetOnce has two replicas match and an operator assign the
// same payments to the same sales at once, each otherwise.
func TestAPaymentAndASaleMeetOnce(t *testing.T) {
	t.Parallel()
	url := database(t)
	replicas := []*store.Store{open(t, url, store.Options{MaxConns: 8}), open(t, url, store.Options{MaxConns: 8})}
	const many = 60
	sales, rows := make([]movement.Movement, many), make([]movement.ImportedLine, many)
	for i := range many {
		sales[i] = reserve(t, replicas[0], sale(fmt.Sprint(i), 100))
		rows[i] = rowOf(fmt.Sprint("p", i), sales[i].Amount)
	}
	b := statement(t, replicas[0])
	if ok, err := replicas[0].Import(t.Context(), epoch, b, rows, "1", epoch); err != nil || !ok {
		t.Fatal(ok, err)
	}
	seen, err := replicas[0].OpenLines(t.Context(), wallet, "", many)
	if err != nil || len(seen) != many {
		t.Fatal(len(seen), err)
	}
	given := make(chan string, 4*many) // each payment that somebody has given away
	var all sync.WaitGroup
	for n, replica := range replicas {
		all.Go(func() {
			for from := 0; from < many; from += 15 {
				var matches []movement.Match
				for i := from; i < from+15; i++ {
					matches = append(matches, movement.Match{Payment: seen[i].Payment, State: movement.LineMatched, Movement: sales[(i+n)%many].ID})
				}
				decided, err := replica.Match(t.Context(), epoch, b, matches)
				if err != nil {
					t.Error(err)
				}
				for _, payment := range decided {
					given <- payment
				}
			}
		})
		all.Go(func() {
			for i := range many {
				switch ok, err := replica.Assign(t.Context(), epoch, seen[i], sales[(i+2+n)%many].ID, "ani", "at once"); {
				case err != nil:
					t.Error(err)
				case ok:
					given <- seen[i].Payment
				}
			}
		})
	}
	all.Wait()
	close(given)
	won := map[string]int{}
	for payment := range given {
		won[payment]++
	}
	now, err := replicas[1].LinesNamed(t.Context(), wallet, slices.Collect(maps.Keys(won)))
	if err != nil || len(now) != len(won) {
		t.Fatal(len(now), len(won), err)
	}
	paid := map[movement.ID]bool{}
	for _, s := range now {
		if won[s.Payment] != 1 || paid[s.Movement] || s.Movement == (movement.ID{}) {
			t.Errorf("%s was given away %d times, to %s", s.Payment, won[s.Payment], s.Movement)
		}
		paid[s.Movement] = true
	}
	if n := count(t, url, "SELECT COUNT(*) FROM statement_lines WHERE movement_id IS NOT NULL"); n != len(won) {
		t.Errorf("%d payments have a sale, %d were given away", n, len(won))
	}
	t.Logf("%d payments for %d sales, each matched twice and assigned twice at once: %d met, each once", many, many, len(won))
}

// TestAPartTakenBackIsForOperators tells of a payment and of a part of it that was
// taken back, in any order: it is never taken for all of it.
func TestAPartTakenBackIsForOperators(t *testing.T) {
	t.Parallel()
	for name, state := range map[string]movement.LineState{"matched between": movement.LineUnmatched, "not matched": ""} {
		for _, first := range []bool{true, false} {
			s := fresh(t)
			reserve(t, s, sale("1", 100))
			pay, part := rowOf("a", 150), rowOf("a", 20)
			part.ID, part.Paid, part.ReversedAt = "a-", false, epoch.Add(time.Minute)
			rows := []movement.ImportedLine{pay, part}
			if !first {
				slices.Reverse(rows)
			}
			for i, row := range rows {
				b := statement(t, s)
				if ok, err := s.Import(t.Context(), epoch, b, []movement.ImportedLine{row}, fmt.Sprint(i), epoch); err != nil || !ok {
					t.Fatal(ok, err)
				}
				if i > 0 || state == "" {
					continue
				}
				as := state
				if !row.Paid {
					as = movement.LineReversed
				}
				if _, err := s.Match(t.Context(), epoch, b, []movement.Match{{Payment: "a", State: as}}); err != nil {
					t.Fatal(err)
				}
			}
			a, err := s.Line(t.Context(), wallet, "a")
			if err != nil || !a.Differs || a.State == movement.LineReversed || a.Amount != pay.Amount || a.ID != "a" {
				t.Errorf("%s, paid first %v: %+v, %v", name, first, a, err)
			}
		}
	}
}

// TestLaterLinesOpenAPayment imports of a closed payment that it was taken back, and
// of another that it was more.
func TestLaterLinesOpenAPayment(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	one, other := reserve(t, s, sale("1", 100)), reserve(t, s, sale("2", 100))
	enter := func(entries ...movement.ImportedLine) {
		t.Helper()
		b := statement(t, s)
		if ok, err := s.Import(t.Context(), epoch, b, entries, b.Cursor+"+", epoch); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	open := func() []movement.StatementLine {
		t.Helper()
		open, err := s.OpenLines(t.Context(), wallet, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		return open
	}
	enter(rowOf("a", one.Amount), rowOf("b", other.Amount))
	if _, err := s.Match(t.Context(), epoch, statement(t, s), []movement.Match{
		{Payment: "a", State: movement.LineMatched, Movement: one.ID}, {Payment: "b", State: movement.LineMatched, Movement: other.ID},
	}); err != nil {
		t.Fatal(err)
	}
	back := rowOf("a", one.Amount)
	back.ID, back.Paid, back.ReversedAt = "a-", false, epoch.Add(time.Minute)
	seen := open()
	enter(back) // while it is closed as it was seen
	if err := s.CloseLines(t.Context(), wallet, seen, epoch.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if left := open(); len(left) != 1 || left[0].Payment != "a" || left[0].ReversedAt.IsZero() || left[0].ID != "a" {
		t.Fatalf("open: %+v", left)
	}
	if err := s.CloseLines(t.Context(), wallet, open(), epoch.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	enter(back, rowOf("b", other.Amount+1))
	left := open()
	if len(left) != 1 || left[0].Payment != "b" || !left[0].Differs || left[0].Amount != other.Amount {
		t.Errorf("open: %+v", left)
	}
}
