package store_test

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// order is a draft that is paid from its merchant's balance.
func order(reference string, charge movement.Charge) movement.Movement {
	m := draft(reference)
	m.Kind, m.Operation, m.Provider, m.Charge = manifest.Order, "/ppob/order", "ppob", charge
	m.Amount, m.Cost, m.Quote = 1_500, 1_400, []byte(`{"sku":"xld10"}`)
	m.ConnectionOwner, m.ConnectionVersion, m.ConnectionAccount = manifest.OwnerPlatform, 3, "acme"
	return m
}

// posted is a move with the posting that it needs.
func posted(m movement.Movement, to movement.State) movement.Change {
	change := move(m, to)
	if !to.Final() && to != movement.NotSubmitted || m.Charge == movement.Unpaid {
		return change
	}
	posting := ledger.GiveBack(m.Amount)
	switch held := m.Charge == movement.Held; {
	case to == movement.Succeeded && held:
		posting = ledger.EndCapture(m.Amount, m.Cost)
	case to == movement.Succeeded:
		posting = ledger.EndCost(m.Cost)
	case held:
		posting = ledger.LetGo(m.Amount)
	}
	change.Posting = &posting
	return change
}

func reversal(m movement.Movement) movement.Change {
	c, posting := record(m, movement.MoneyBack, time.Time{}), ledger.TakeBack(m.Amount, m.Cost)
	c.Posting = &posting
	return c
}

var payer = movement.Owner{MerchantID: "mer_1", Mode: "live"}

// credit fills a balance, of a merchant that must be there.
func credit(tb testing.TB, s *store.Store, reference string, amount money.Amount) store.Adjustment {
	tb.Helper()
	before := by("merchant.credit")
	before.Operator, before.At = "treasury", epoch.Add(-time.Hour)
	a, err := s.Adjust(tb.Context(), before, adjustment(reference, amount), money.Max)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

func adjustment(reference string, amount money.Amount) store.Adjustment {
	return store.Adjustment{Owner: payer, Reference: reference, Amount: amount, Reason: "a transfer"}
}

// payerWith is a store whose merchant mer_1 has a balance, and the URL behind it.
func payerWith(tb testing.TB, balance money.Amount, options store.Options) (*store.Store, string) {
	tb.Helper()
	url := database(tb)
	s := open(tb, url, options)
	insert(tb, s, payer.MerchantID)
	credit(tb, s, "opening", balance)
	return s, url
}

func wantBalance(tb testing.TB, s *store.Store, available, held money.Amount) {
	tb.Helper()
	got, err := s.Balance(tb.Context(), payer)
	if want := (ledger.Balance{Available: available, Held: held}); err != nil || got != want {
		tb.Errorf("the balance is %+v, %v; want %+v", got, err, want)
	}
}

// wantClean is that every invariant holds, over something.
func wantClean(tb testing.TB, s *store.Store) {
	tb.Helper()
	report, err := s.CheckLedger(tb.Context(), store.LedgerScope{Full: true})
	if err != nil || !report.Clean() || len(report.Invariants) != 9 {
		tb.Fatalf("%+v, %v", report, err)
	}
}

// postings are what was posted under a reference, in order.
func postings(tb testing.TB, s *store.Store, reference string) (kinds []ledger.Kind) {
	tb.Helper()
	entries, err := s.AccountStatement(tb.Context(), payer, time.Time{}, epoch.Add(24*time.Hour), nil, 1000)
	if err != nil {
		tb.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Reference == reference {
			kinds = append(kinds, entry.Kind)
		}
	}
	return kinds
}

// TestPaidLife takes orders through everything that can become of them.
func TestPaidLife(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 100_000, store.Options{MaxConns: 4})
	balance := ledger.Balance{Available: 100_000}
	for _, c := range []struct {
		charge      movement.Charge
		to          movement.State
		taken, held money.Amount // afterwards
		kinds       []ledger.Kind
	}{
		{movement.Charged, movement.Submitting, 1_500, 0, []ledger.Kind{ledger.Charge}},
		{movement.Charged, movement.Pending, 1_500, 0, []ledger.Kind{ledger.Charge}},
		{movement.Charged, movement.Succeeded, 1_500, 0, []ledger.Kind{ledger.Charge, ledger.Cost}},
		{movement.Charged, movement.Failed, 0, 0, []ledger.Kind{ledger.Charge, ledger.Refund}},
		{movement.Charged, movement.NotSubmitted, 0, 0, []ledger.Kind{ledger.Charge, ledger.Refund}},
		{movement.Held, movement.Submitting, 1_500, 1_500, []ledger.Kind{ledger.Hold}},
		{movement.Held, movement.Pending, 1_500, 1_500, []ledger.Kind{ledger.Hold}},
		{movement.Held, movement.Succeeded, 1_500, 0, []ledger.Kind{ledger.Hold, ledger.Capture}},
		{movement.Held, movement.Failed, 0, 0, []ledger.Kind{ledger.Hold, ledger.Release}},
		{movement.Held, movement.NotSubmitted, 0, 0, []ledger.Kind{ledger.Hold, ledger.Release}},
	} {
		want := order(string(c.charge)+" "+string(c.to), c.charge)
		m := reserve(t, s, want)
		want.Attempt, want.Sequence, want.UpdatedAt, want.Version = 1, 1, epoch, movement.FirstVersion(1)
		if got := byID(t, s, m.ID); !reflect.DeepEqual(m, want) || !reflect.DeepEqual(got, want) {
			t.Errorf("reserved %+v\nstored %+v\nwant %+v", m, got, want)
		}
		if c.to != movement.Submitting {
			moved(t, s, posted(m, c.to))
			if again, err := apply(t.Context(), s, epoch, posted(m, c.to)); again || err != nil {
				t.Errorf("%s, twice: %v, %v", m.Reference, again, err)
			}
		}
		balance.Available, balance.Held = balance.Available-c.taken, balance.Held+c.held
		wantBalance(t, s, balance.Available, balance.Held)
		if kinds := postings(t, s, m.Reference); !reflect.DeepEqual(kinds, c.kinds) {
			t.Errorf("%s: %v", m.Reference, kinds)
		}
	}
	wantClean(t, s)
}

// TestReversalOnce gives a success back once, whoever says so how often.
func TestReversalOnce(t *testing.T) {
	t.Parallel()
	for _, charge := range []movement.Charge{movement.Charged, movement.Held} {
		s, _ := payerWith(t, 10_000, store.Options{MaxConns: 8})
		m := reserve(t, s, order("ORD/1", charge))
		if ok, err := apply(t.Context(), s, epoch, reversal(m)); ok || err == nil {
			t.Errorf("what is not done: %v, %v", ok, err)
		}
		change := posted(m, movement.Succeeded)
		change.Cost = 1_300
		paid := ledger.EndCost(1_300)
		if charge == movement.Held {
			paid = ledger.EndCapture(m.Amount, 1_300)
		}
		change.Posting = &paid
		if m = moved(t, s, change); m.Cost != 1_300 {
			t.Errorf("it cost %d", m.Cost)
		}
		if ok, err := apply(t.Context(), s, epoch, record(m, movement.MoneyBack, time.Time{})); ok || err == nil {
			t.Errorf("without a posting: %v, %v", ok, err)
		}
		wantClean(t, s)
		var wait sync.WaitGroup
		oks := make(chan bool, 10)
		for range cap(oks) {
			wait.Go(func() {
				ok, err := apply(t.Context(), s, epoch, reversal(m))
				if err != nil {
					t.Error(err)
				}
				oks <- ok
			})
		}
		wait.Wait()
		close(oks)
		times := 0
		for ok := range oks {
			if ok {
				times++
			}
		}
		if times != 1 {
			t.Errorf("reversed %d times", times)
		}
		wantBalance(t, s, 10_000, 0)
		wantClean(t, s)
	}
}

func TestReserveThatCannotBePaid(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 1_499, store.Options{MaxConns: 4})
	for name, change := range map[string]func(*movement.Movement){
		"short by one":       func(*movement.Movement) {},
		"held, short by one": func(m *movement.Movement) { m.Charge = movement.Held },
		"another's balance":  func(m *movement.Movement) { m.Owner.MerchantID, m.Amount = "mer_2", 1 },
		"another mode's":     func(m *movement.Movement) { m.Owner.Mode, m.Amount = "test", 1 },
	} {
		m := order("ORD/1", movement.Charged)
		change(&m)
		if _, ours, err := s.Reserve(t.Context(), m); ours || !errors.Is(err, movement.ErrInsufficient) {
			t.Errorf("%s: %v, %v", name, ours, err)
		}
	}
	odd := order("ORD/1", "free")
	if _, ours, err := s.Reserve(t.Context(), odd); ours || err == nil || errors.Is(err, movement.ErrInsufficient) {
		t.Errorf("an unknown charge: %v, %v", ours, err)
	}
	wantBalance(t, s, 1_499, 0)
	exact := order("ORD/1", movement.Charged)
	exact.Amount = 1_499
	reserve(t, s, exact)
	wantBalance(t, s, 0, 0)
	// A taken reference is found also when nothing is left, and nothing is taken.
	if existing, ours, err := s.Reserve(t.Context(), order("ORD/1", movement.Charged)); ours || err != nil || existing.ID != exact.ID {
		t.Errorf("taken: %+v, %v, %v", existing, ours, err)
	}
	wantClean(t, s)
}

// TestPaidAgain reserves a reference again of which nothing was sent: it is charged
// anew, under the attempt that the caller has a quote for.
func TestPaidAgain(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 4_000, store.Options{MaxConns: 4})
	first := reserve(t, s, order("ORD/1", movement.Charged))
	for _, attempt := range []int{1, 2, 3} {
		next := order("ORD/1", movement.Charged)
		next.Attempt = attempt
		if existing, ours, err := s.Reserve(t.Context(), next); ours || err != nil || existing.Attempt != 1 {
			t.Errorf("while it stands: %+v, %v, %v", existing, ours, err)
		}
	}
	moved(t, s, posted(first, movement.NotSubmitted))
	wantBalance(t, s, 4_000, 0)

	next := order("ORD/1", movement.Held)
	next.Amount, next.Cost, next.Quote, next.ConnectionAccount = 4_001, 3_900, nil, "other"
	if _, ours, err := s.Reserve(t.Context(), next); ours || !errors.Is(err, movement.ErrInsufficient) {
		t.Errorf("too dear: %v, %v", ours, err)
	}
	next.Amount = 4_000
	for _, attempt := range []int{-1, 1} {
		next.Attempt = attempt
		if existing, ours, err := s.Reserve(t.Context(), next); ours || err != nil || existing.State != movement.NotSubmitted {
			t.Errorf("as attempt %d: %+v, %v, %v", attempt, existing, ours, err)
		}
	}
	next.Attempt = 3 // the caller leaves out as many as it likes
	reserved := reserve(t, s, next)
	want := next
	want.ID, want.Sequence, want.UpdatedAt, want.Version = first.ID, 3, epoch, movement.FirstVersion(3)
	if got := byID(t, s, first.ID); !reflect.DeepEqual(reserved, want) || !reflect.DeepEqual(got, want) {
		t.Errorf("reserved %+v\nstored %+v\nwant %+v", reserved, got, want)
	}
	wantBalance(t, s, 0, 4_000)
	if again, err := apply(t.Context(), s, epoch, posted(first, movement.Failed)); again || err != nil {
		t.Errorf("the first attempt is given back twice: %v, %v", again, err)
	}
	moved(t, s, posted(reserved, movement.Succeeded))
	wantBalance(t, s, 0, 0)
	wantClean(t, s)
}

// TestMovesWithoutTheirPosting are refused before anything is written, as are
// postings that don't belong there.
func TestMovesWithoutTheirPosting(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 10_000, store.Options{MaxConns: 4})
	paid, unpaid := reserve(t, s, order("ORD/1", movement.Held)), reserve(t, s, draft("INV/1"))
	with := func(change movement.Change, posting ledger.Transaction) movement.Change {
		change.Posting = &posting
		return change
	}
	unbalanced := ledger.LetGo(1_500)
	unbalanced.Available++
	for name, change := range map[string]movement.Change{
		"an end without one":       move(paid, movement.Succeeded),
		"a failure without one":    move(paid, movement.Failed),
		"freed, without one":       move(paid, movement.NotSubmitted),
		"one that ends nothing":    with(move(paid, movement.Pending), ledger.LetGo(1_500)),
		"one that begins":          with(move(paid, movement.Failed), ledger.BeginHold(1_500)),
		"one that is not balanced": with(move(paid, movement.Failed), unbalanced),
		"one of what is not paid":  with(move(unpaid, movement.Succeeded), ledger.EndCost(1_400)),
		"more than is held":        with(move(paid, movement.Failed), ledger.LetGo(1_501)),
	} {
		if ok, err := apply(t.Context(), s, epoch, change); ok || err == nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
	// The database does not believe what the caller says about the movement either.
	lied, other := paid, unpaid
	lied.Charge, other.Charge = movement.Unpaid, movement.Charged
	for _, change := range []movement.Change{move(lied, movement.Succeeded), with(move(other, movement.Succeeded), ledger.EndCost(1_400))} {
		if ok, _ := apply(t.Context(), s, epoch, change); ok {
			t.Errorf("%s is moved", change.Movement.Reference)
		}
	}
	if ok, err := apply(t.Context(), s, epoch, with(record(paid, movement.MoneyBack, time.Time{}), ledger.LetGo(1))); ok || err == nil {
		t.Errorf("a reversal that ends: %v, %v", ok, err)
	}
	wantBalance(t, s, 8_500, 1_500)
	wantClean(t, s)
}

// every runs something many times at once and counts what came of it.
func every(n int, do func(i int) string) map[string]int {
	var wait sync.WaitGroup
	var mu sync.Mutex
	counts := map[string]int{}
	for i := range n {
		wait.Go(func() {
			what := do(i)
			mu.Lock()
			defer mu.Unlock()
			counts[what]++
		})
	}
	wait.Wait()
	return counts
}

// reserves tells in a word what became of a reservation.
func reserves(ctx context.Context, s *store.Store, m movement.Movement) string {
	switch _, ours, err := s.Reserve(ctx, m); {
	case errors.Is(err, movement.ErrInsufficient):
		return "insufficient"
	case err != nil:
		return err.Error()
	case ours:
		return "reserved"
	}
	return "taken"
}
