package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

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
		if err := s.CloseLines(t.Context(), wallet, stale); err != nil {
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
