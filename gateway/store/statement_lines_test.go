package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

var wallet = movement.NewAccountID("wallet2", "live", "ID1020012345678")

const (
	life       = 30 * time.Minute
	quarantine = 3 * time.Hour
)

// sale is a collection before its reservation.
func sale(reference string, base money.Amount) movement.Movement {
	m := draft(reference)
	m.Kind, m.Operation, m.Provider, m.Amount = manifest.Collection, "/wallet2/create", "wallet2", base
	m.ConnectionAccount, m.ConnectionOwner = "ID1020012345678", manifest.OwnerMerchant
	m.ExpiresAt = m.CreatedAt.Add(life)
	m.Reserved = movement.ReservedAmount{Account: wallet, FreeAt: m.ExpiresAt.Add(quarantine)}
	return m
}

// TestEveryPayableAmountIsItsOwn has two replicas reserve 900 sales of one amount at
// once, and then more than there are amounts.
func TestEveryPayableAmountIsItsOwn(t *testing.T) {
	t.Parallel()
	url := database(t)
	replicas := []*store.Store{open(t, url, store.Options{MaxConns: 8}), open(t, url, store.Options{MaxConns: 8})}
	const base, atOnce = 25_000, 900
	reserveAll := func(from, to int) (amounts []money.Amount, full []time.Time) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := from; i < to; i++ {
			all.Go(func() {
				m, ours, err := replicas[i%2].Reserve(t.Context(), sale(fmt.Sprintf("INV/%d", i), base))
				mu.Lock()
				defer mu.Unlock()
				none, isNone := errors.AsType[*movement.NoAmountError](err)
				switch {
				case isNone:
					full = append(full, none.FreeAt)
				case err != nil || !ours:
					t.Errorf("INV/%d: %v, %v", i, ours, err)
				default:
					amounts = append(amounts, m.Amount)
				}
			})
		}
		all.Wait()
		return amounts, full
	}
	taken := map[money.Amount]bool{}
	small := 0
	amounts, full := reserveAll(0, atOnce)
	for _, amount := range amounts {
		taken[amount] = true
		if code := amount - base; code < 1 || code > movement.MostCodes {
			t.Errorf("a code of %d", code)
		} else if code <= movement.SmallCodes {
			small++
		}
	}
	if len(taken) != atOnce || len(full) != 0 || small != movement.SmallCodes {
		t.Fatalf("%d sales have %d amounts, %d with small codes; %d had none", len(amounts), len(taken), small, len(full))
	}
	amounts, full = reserveAll(atOnce, 1000) // one more than there are
	for _, amount := range amounts {
		taken[amount] = true
	}
	if len(taken) != movement.MostCodes || len(full) != 1 || !full[0].Equal(epoch.Add(life+quarantine).Truncate(time.Microsecond)) {
		t.Errorf("%d amounts, %d refused until %v", len(taken), len(full), full)
	}
	if n := count(t, url, "SELECT COUNT(DISTINCT amount) FROM movements"); n != movement.MostCodes {
		t.Errorf("%d amounts are stored", n)
	}
	t.Logf("900 sales of %d at once over two replicas: 900 amounts", base)
}

// TestSmallCodesComeFirst takes all of them but one.
func TestSmallCodesComeFirst(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	for i := range movement.SmallCodes {
		if m := reserve(t, s, sale(fmt.Sprint(i), 100)); m.Amount-100 > movement.SmallCodes {
			t.Fatalf("sale %d has the code %d", i, m.Amount-100)
		}
	}
	if m := reserve(t, s, sale("wider", 100)); m.Amount-100 <= movement.SmallCodes {
		t.Errorf("the code %d again", m.Amount-100)
	}
	// A neighbour's codes reach into the same amounts, and take none that is taken.
	for i := range 50 {
		if m := reserve(t, s, sale(fmt.Sprint("next", i), 150)); m.Amount <= 199 {
			t.Errorf("%d is payable twice", m.Amount)
		}
	}
}

// TestAnAmountIsFreeAfterItsTime reserves the same base again before and after, while
// the sales that had it are open and when they are not.
func TestAnAmountIsFreeAfterItsTime(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	taken := "" // of a sale that stays as it is
	for i := range movement.MostCodes {
		if m := reserve(t, s, sale(fmt.Sprint(i), 5000)); m.Amount == 5001 {
			taken = m.Reference
		}
	}
	again := func(reference string, after time.Duration) (movement.Movement, error) {
		m := sale(reference, 5000)
		m.CreatedAt = m.CreatedAt.Add(after)
		m.ExpiresAt, m.Reserved.FreeAt = m.ExpiresAt.Add(after), m.Reserved.FreeAt.Add(after)
		m, _, err := s.Reserve(t.Context(), m)
		return m, err
	}
	refused := func(what string, after time.Duration) {
		t.Helper()
		_, err := again(what, after)
		if _, none := errors.AsType[*movement.NoAmountError](err); !none {
			t.Errorf("an amount was given away %s: %v", what, err)
		}
	}
	refused("while its sale is being made", life+quarantine)
	execute(t, url, "UPDATE movements SET state = 'pending'")
	refused("while its sale is open, whatever its life was", life+100*quarantine)
	execute(t, url, "UPDATE movements SET state = 'expired' WHERE amount = 5042", "UPDATE movements SET state = 'not_submitted' WHERE amount = 5043")
	refused("in its quarantine", life+quarantine-time.Second)
	for range 2 {
		m, err := again(fmt.Sprint("in time ", time.Now()), life+quarantine)
		if err != nil || m.Amount != 5042 && m.Amount != 5043 {
			t.Errorf("%v, %v", m.Amount, err)
		}
	}
	refused("while its next sale is open", life+quarantine)
	// A taken reference is answered as such, also where no amount is free.
	existing, ours, err := s.Reserve(t.Context(), sale(taken, 5000))
	if err != nil || ours || existing.Reference != taken {
		t.Errorf("%v, %v, %v", existing.Reference, ours, err)
	}
}

// TestReadersTakeTurns has clocks that differ: one that is ahead keeps nobody from
// reading for long.
func TestReadersTakeTurns(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	reserve(t, s, sale("1", 100))
	for i, c := range []struct {
		at   time.Duration
		want bool
	}{
		{0, true}, {0, false}, {4 * time.Second, false}, {-4 * time.Second, false}, // a clock that is a little behind
		{5 * time.Second, true}, {time.Hour, true}, // of a replica that is an hour ahead
		{6 * time.Second, true}, {7 * time.Second, false}, {11 * time.Second, true},
	} {
		now := epoch.Add(c.at)
		if ours, err := s.PollStatement(t.Context(), wallet, now, now.Add(-5*time.Second)); err != nil || ours != c.want {
			t.Errorf("%d, after %v: %v, %v", i, c.at, ours, err)
		}
	}
}

// TestUnreadStatements finds accounts that nobody has read for a while, page by page.
func TestUnreadStatements(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	const accounts = 7
	for i := range accounts {
		m := sale(fmt.Sprint(i), 100)
		m.ConnectionAccount = fmt.Sprint("wallet ", i)
		m.Reserved.Account = movement.NewAccountID("wallet2", "live", m.ConnectionAccount)
		reserve(t, s, m)
	}
	busy := movement.NewAccountID("wallet2", "live", "wallet 3")
	if ours, err := s.PollStatement(t.Context(), busy, epoch, epoch); err != nil || !ours {
		t.Fatal(ours, err)
	}
	for before, want := range map[time.Time]int{epoch.Add(-time.Second): accounts - 1, epoch: accounts} {
		var found []movement.Statement
		for page := []movement.Statement{{}}; len(page) > 0; found = append(found, page...) {
			var err error
			if page, err = s.UnreadStatements(t.Context(), page[len(page)-1].Account, epoch, before, 2); err != nil {
				t.Fatal(err)
			}
		}
		if len(found) != want || found[0].MerchantID != "mer_1" || found[0].Mode != "live" || found[0].Provider != "wallet2" {
			t.Errorf("before %v: %+v", before, found)
		}
	}
}

// TestAccountsHaveOneOwner refuses another merchant's sale on the same wallet; in
// another mode, or on another wallet, it has amounts of its own.
func TestAccountsHaveOneOwner(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	reserve(t, s, sale("1", 100))
	foreign := sale("1", 100)
	foreign.Owner.MerchantID = "mer_2"
	if _, _, err := s.Reserve(t.Context(), foreign); !errors.Is(err, movement.ErrForeignAccount) {
		t.Errorf("another merchant: %v", err)
	}
	foreign.Reserved.Account = movement.NewAccountID("wallet2", "test", "ID1020012345678")
	reserve(t, s, foreign)
}

// statement is the wallet's, after its first sale.
func statement(t *testing.T, s *store.Store) movement.Statement {
	t.Helper()
	b, err := s.Statement(t.Context(), wallet)
	if err != nil {
		t.Fatal(err)
	}
	b.Name = "ID1020012345678"
	return b
}

func rowOf(payment string, amount money.Amount) movement.ImportedLine {
	return movement.ImportedLine{Payment: payment, ID: payment, Amount: amount, Currency: "IDR", At: epoch, Paid: true}
}

// TestEnterIsAllOrNothing has two readers of one cursor: one of them enters.
func TestEnterIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	if _, err := s.Statement(t.Context(), wallet); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a book that nobody opened: %v", err)
	}
	reserve(t, s, sale("1", 100))
	b := statement(t, s)
	if b.MerchantID != "mer_1" || b.Cursor != "" || !b.Through.IsZero() {
		t.Errorf("opened as %+v", b)
	}
	entered := make(chan bool, 2)
	for range 2 {
		go func() {
			ok, err := s.Import(context.WithoutCancel(t.Context()), epoch, b, []movement.ImportedLine{rowOf("a", 150), rowOf("b", 160)}, "2", epoch.Add(time.Hour))
			if err != nil {
				t.Error(err)
			}
			entered <- ok
		}()
	}
	if first, second := <-entered, <-entered; first == second {
		t.Errorf("entered %v and %v", first, second)
	}
	// Rows that were read before, and an older word on how far the books are.
	b = statement(t, s)
	if ok, err := s.Import(t.Context(), epoch, b, []movement.ImportedLine{rowOf("b", 160), rowOf("c", 170)}, "3", epoch); err != nil || !ok {
		t.Error(ok, err)
	}
	if b = statement(t, s); b.Cursor != "3" || !b.Through.Equal(epoch.Add(time.Hour).Truncate(time.Microsecond)) {
		t.Errorf("the book is at %+v", b)
	}
	open, err := s.OpenLines(t.Context(), wallet, "", 10)
	if err != nil || len(open) != 3 || open[1].Payment != "b" || open[1].Amount != 160 || open[1].Differs {
		t.Errorf("%+v, %v", open, err)
	}
	if open, _ = s.OpenLines(t.Context(), wallet, "b", 10); len(open) != 1 {
		t.Errorf("after b: %+v", open)
	}
}

// TestAPaymentPaysOnce judges two payments for one sale, and one payment twice.
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
	match(movement.Match{Payment: "a", State: movement.LineMatched, Movement: other.ID}) // it is judged already
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
	listed, err := s.ListLines(t.Context(), "mer_1", 10)
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
}

// TestAPaymentAndASaleMeetOnce has two replicas judge and an operator assign the
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
	given := make(chan string, 4*many) // each payment that somebody was told to have given away
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
	t.Logf("%d payments for %d sales, each judged twice and assigned twice at once: %d met, each once", many, many, len(won))
}

// TestAPartTakenBackIsForOperators tells of a payment and of a part of it that was
// taken back, in any order: it is never taken for all of it.
func TestAPartTakenBackIsForOperators(t *testing.T) {
	t.Parallel()
	for name, verdict := range map[string]movement.LineState{"judged between": movement.LineUnmatched, "not judged": ""} {
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
				if i > 0 || verdict == "" {
					continue
				}
				as := verdict
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

// TestWhatIsToldLaterOpensAPayment tells of a settled payment that it was taken
// back, and of another that it was more.
func TestWhatIsToldLaterOpensAPayment(t *testing.T) {
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
	enter(back) // while it is settled as it was seen
	if err := s.CloseLines(t.Context(), wallet, seen); err != nil {
		t.Fatal(err)
	}
	if left := open(); len(left) != 1 || left[0].Payment != "a" || left[0].ReversedAt.IsZero() || left[0].ID != "a" {
		t.Fatalf("open: %+v", left)
	}
	if err := s.CloseLines(t.Context(), wallet, open()); err != nil {
		t.Fatal(err)
	}
	enter(back, rowOf("b", other.Amount+1))
	left := open()
	if len(left) != 1 || left[0].Payment != "b" || !left[0].Differs || left[0].Amount != other.Amount {
		t.Errorf("open: %+v", left)
	}
}
