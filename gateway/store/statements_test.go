package store_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

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

// TestAReadingWaitsForASale that is being made when it begins: it sees the sale, or the
// statement is due soon after.
func TestAReadingWaitsForASale(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	if s.Engine() != store.PostgreSQL {
		t.Skip("what a trigger may do differs; its transactions are in an order anyway")
	}
	reserve(t, s, sale("1", 100)) // and the account's next reading is overdue when the next one is made
	execute(t, url, "CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END'",
		"CREATE TRIGGER stall BEFORE INSERT ON reserved_amounts FOR EACH ROW EXECUTE FUNCTION stall()")
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_lock(1)"); err != nil {
		t.Fatal(err)
	}
	waits := func(most int) bool {
		return count(t, url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") >= most
	}
	now := epoch.Add(10 * time.Second)
	made, read := make(chan error, 1), make(chan error, 1)
	go func() {
		second := sale("2", 100)
		second.CreatedAt = now
		_, _, err := s.Reserve(t.Context(), second)
		made <- err
	}()
	for !waits(1) {
		runtime.Gosched()
	}
	var open []movement.Candidate
	go func() {
		until := now.Add(time.Minute)
		_, err := s.PollStatement(t.Context(), wallet, now, now.Add(-movement.ReadEvery), until)
		if err == nil {
			open, err = s.OpenSales(t.Context(), movement.Statement{Account: wallet, MerchantID: "mer_1", Mode: "live", Provider: "wallet2"}, movement.Candidate{}, 10)
		}
		read <- cmp.Or(err, s.RestStatement(t.Context(), wallet, until, now.Add(6*time.Hour)))
	}()
	for !waits(2) && len(read) == 0 {
		runtime.Gosched()
	}
	if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_unlock(1)"); err != nil {
		t.Fatal(err)
	}
	if err := cmp.Or(<-made, <-read); err != nil {
		t.Fatal(err)
	}
	if due := statement(t, s).DueAt; len(open) != 2 && due.After(now.Add(movement.ReadEvery)) {
		t.Errorf("a reading saw %d sales of two, and the next one is at %v", len(open), due)
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

// TestOpenSalesBehindOthers reads whole pages where most that is open is of a former
// account, and tells no more than it was asked for.
func TestOpenSalesBehindOthers(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	const first, others, last = 9, 40, 5
	for i := range first + others + last {
		m := sale(fmt.Sprint(i), 100)
		if i >= first && i < first+others {
			m.ConnectionAccount = "former"
			m.Reserved.Account = movement.NewAccountID("wallet2", "live", m.ConnectionAccount)
		}
		m.CreatedAt = epoch.Add(time.Duration(i) * time.Second)
		reserve(t, s, m)
	}
	var reads int
	s.CountReads(&reads)
	open, err := s.OpenSales(t.Context(), statement(t, s), movement.Candidate{}, 10)
	if err != nil || len(open) != 10 || reads > 6 {
		t.Fatalf("%d sales in %d reads, %v", len(open), reads, err)
	}
	if rest, err := s.OpenSales(t.Context(), statement(t, s), open[9], 10); err != nil || len(rest) != last-1 {
		t.Errorf("%d sales behind them, %v", len(rest), err)
	}
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
