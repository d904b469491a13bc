package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

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
		if ours, err := s.PollStatement(t.Context(), wallet, now, now.Add(-5*time.Second), now.Add(time.Minute)); err != nil || ours != c.want {
			t.Errorf("%d, after %v: %v, %v", i, c.at, ours, err)
		}
	}
}

// TestDueStatements reads of each bucket the oldest that are due. What an older gateway
// has made is due.
func TestDueStatements(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	const accounts = 40
	var buckets []int
	in := map[int]int{}
	for i := range accounts {
		m := sale(fmt.Sprint(i), 100)
		m.ConnectionAccount = fmt.Sprint("wallet ", i)
		m.Reserved.Account = movement.NewAccountID("wallet2", "live", m.ConnectionAccount)
		in[m.Reserved.Account.Bucket()]++
		reserve(t, s, m)
	}
	for bucket := range movement.Buckets {
		buckets = append(buckets, bucket)
	}
	due := func(since, now time.Time, most, want int) {
		t.Helper()
		found, err := s.DueStatements(t.Context(), buckets, since, now, most)
		if err != nil || len(found) != want {
			t.Fatalf("%d are due, want %d, %v", len(found), want, err)
		}
		if !slices.IsSortedFunc(found, func(a, b movement.Statement) int { return a.DueAt.Compare(b.DueAt) }) {
			t.Errorf("not in order: %+v", found)
		}
	}
	soon := epoch.Add(movement.ReadEvery)
	due(time.Time{}, soon.Add(-1), accounts, 0)
	due(time.Time{}, soon, accounts, accounts)
	due(soon.Add(time.Second), soon.Add(time.Minute), accounts, 0)
	few := 0
	for _, n := range in {
		few += min(n, 2)
	}
	due(time.Time{}, soon, 2, few)
	busy := movement.NewAccountID("wallet2", "live", "wallet 3")
	if ours, err := s.PollStatement(t.Context(), busy, epoch, epoch, epoch.Add(time.Hour)); err != nil || !ours {
		t.Fatal(ours, err)
	}
	due(time.Time{}, soon, accounts, accounts-1)
	execute(t, url, "INSERT INTO statements (account_id, merchant_id, mode, provider, cursor, through) "+
		"VALUES (gen_random_uuid(), 'mer_1', 'live', 'wallet2', '', '2026-01-01 00:00:00+00')")
	due(time.Time{}, soon, accounts, accounts)
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
	return b
}

func rowOf(payment string, amount money.Amount) movement.ImportedLine {
	return movement.ImportedLine{Payment: payment, ID: payment, Amount: amount, Currency: "IDR", At: epoch, Paid: true}
}

// TestImportIsAllOrNothing has two readers of one cursor: one of them imports.
func TestImportIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	if _, err := s.Statement(t.Context(), wallet); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a statement that nobody opened: %v", err)
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
	// Rows that were read before, and an older word on how far the statement was read.
	b = statement(t, s)
	if ok, err := s.Import(t.Context(), epoch, b, []movement.ImportedLine{rowOf("b", 160), rowOf("c", 170)}, "3", epoch); err != nil || !ok {
		t.Error(ok, err)
	}
	if b = statement(t, s); b.Cursor != "3" || !b.Through.Equal(epoch.Add(time.Hour).Truncate(time.Microsecond)) {
		t.Errorf("the statement is at %+v", b)
	}
	open, err := s.OpenLines(t.Context(), wallet, "", 10)
	if err != nil || len(open) != 3 || open[1].Payment != "b" || open[1].Amount != 160 || open[1].Differs {
		t.Errorf("%+v, %v", open, err)
	}
	if open, _ = s.OpenLines(t.Context(), wallet, "b", 10); len(open) != 1 {
		t.Errorf("after b: %+v", open)
	}
}
