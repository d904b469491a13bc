package store_test

import (
	"errors"
	"fmt"
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

// TestFirstReservationsOfTwoMerchants has two merchants reserve on a wallet that nobody has
// used yet at the same moment: it is one's.
func TestFirstReservationsOfTwoMerchants(t *testing.T) {
	t.Parallel()
	url := database(t)
	replicas := []*store.Store{open(t, url, store.Options{MaxConns: 4}), open(t, url, store.Options{MaxConns: 4})}
	for i := range 40 {
		name := fmt.Sprint("wallet ", i)
		reserved := make([]bool, len(replicas))
		var group sync.WaitGroup
		for n, s := range replicas {
			group.Go(func() {
				m := sale("INV/1", 100)
				m.Owner.MerchantID, m.ConnectionAccount = fmt.Sprint("mer_", i, n), name
				m.Reserved.Account = movement.NewAccountID("wallet2", "live", name)
				_, ours, err := s.Reserve(t.Context(), m)
				if reserved[n] = err == nil && ours; err != nil && !errors.Is(err, movement.ErrForeignAccount) {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if reserved[0] == reserved[1] {
			t.Errorf("%s: reserved %v", name, reserved)
		}
	}
}

// TestReleaseAmount gives an amount back once, and not from who has it since.
func TestReleaseAmount(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	var all []movement.Movement
	for i := range movement.MostCodes {
		all = append(all, reservedSale(t, s, sale(fmt.Sprint(i), 100)))
	}
	full := sale("full", 100)
	if _, _, err := s.Reserve(t.Context(), full); err == nil {
		t.Fatal("there was an amount left")
	}
	for range 2 {
		if err := s.ReleaseAmount(t.Context(), all[7]); err != nil {
			t.Fatal(err)
		}
		full = sale("full", 100)
		full.CreatedAt, full.ExpiresAt, full.Reserved.FreeAt = epoch.Add(time.Second), full.ExpiresAt.Add(time.Second), full.Reserved.FreeAt.Add(time.Second)
		if got := reservedSale(t, s, full); got.Amount != all[7].Amount {
			t.Errorf("it has %v, want %v", got.Amount, all[7].Amount)
		}
	}
	if _, _, err := s.Reserve(t.Context(), sale("more", 100)); err == nil {
		t.Error("an amount was given back that another has")
	}
}

// reservedSale reserves a sale, or finds it.
func reservedSale(t *testing.T, s *store.Store, m movement.Movement) movement.Movement {
	t.Helper()
	got, _, err := s.Reserve(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	got.Reserved = m.Reserved
	return got
}

// TestAStaleReaderClosesNothing: a payment that an operator has given to another
// sale since is not closed by who saw it with the first.
func TestAStaleReaderClosesNothing(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	one, other := reserve(t, s, sale("1", 100)), reserve(t, s, sale("2", 100))
	if _, err := s.Import(t.Context(), epoch, statement(t, s), []movement.ImportedLine{rowOf("a", one.Amount)}, "1", epoch); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Match(t.Context(), epoch, statement(t, s), []movement.Match{{Payment: "a", State: movement.LineMatched, Movement: one.ID}}); err != nil {
		t.Fatal(err)
	}
	stale, err := s.OpenLines(t.Context(), wallet, "", 10)
	if err != nil || len(stale) != 1 {
		t.Fatal(stale, err)
	}
	closes := func(want movement.LineState, to movement.ID) {
		t.Helper()
		if err := s.CloseLines(t.Context(), wallet, stale, epoch.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if a, err := s.Line(t.Context(), wallet, "a"); err != nil || a.State != want || a.Movement != to {
			t.Errorf("it is %s for %s: %v", a.State, a.Movement, err)
		}
	}
	closes(movement.LinePaid, one.ID)
	seen, err := s.Line(t.Context(), wallet, "a")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := s.Assign(t.Context(), epoch, seen, other.ID, "ani", "the payer showed it"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	closes(movement.LineMatched, other.ID)
}

// TestCandidatesOfASpan leaves out what was made at other times.
func TestCandidatesOfASpan(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	m := reserve(t, s, sale("1", 100))
	for name, c := range map[string]struct {
		earliest, latest time.Time
		want             int
	}{
		"around it": {epoch.Add(-time.Hour), epoch.Add(time.Hour), 1},
		"before it": {epoch.Add(-2 * time.Hour), epoch.Add(-time.Hour), 0},
		"after it":  {epoch.Add(time.Hour), epoch.Add(2 * time.Hour), 0},
	} {
		found, err := s.Candidates(t.Context(), statement(t, s), []money.Amount{m.Amount}, c.earliest, c.latest)
		if err != nil || len(found) != c.want {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
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
