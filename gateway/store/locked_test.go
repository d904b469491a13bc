package store_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// lockBalance locks a merchant's balance as somebody does who does not let go.
func lockBalance(tb testing.TB, url, merchant string) (letGo func()) {
	tb.Helper()
	return lockRow(tb, url, takesBalance, merchant)
}

func lockRow(tb testing.TB, url, takes string, row any) (letGo func()) {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close(context.WithoutCancel(tb.Context())) })
	tx, err := conn.Begin(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	if tag, err := tx.Exec(tb.Context(), takes, row); err != nil || tag.RowsAffected() != 1 {
		tb.Fatal(tag, err)
	}
	return func() {
		if err := tx.Rollback(tb.Context()); err != nil {
			tb.Error(err)
		}
	}
}

const takesBalance = "UPDATE ledger_balances SET held = held WHERE merchant_id = $1"

// TestOneLockedBalance has one merchant's balance locked while twenty others order and
// it does, too: all the others' orders go through, none of its own before the lock is
// gone, and then they do.
func TestOneLockedBalance(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]store.Options{"shared commits": {MaxConns: 8}, "own commits": {MaxConns: 8, OwnCommits: true}} {
		url := database(t)
		s := open(t, url, options)
		execute(t, url, `INSERT INTO ledger_balances (merchant_id, mode, available, held)
			SELECT 'mer_' || i, 'live', 1000000, 0 FROM generate_series(0, 20) AS i`)
		letGo := lockBalance(t, url, "mer_0")
		locked, cancel := context.WithCancel(t.Context())
		var its, others sync.WaitGroup
		for i := range 40 {
			its.Go(func() { reserves(locked, s, orderOf("mer_0", fmt.Sprint("locked/", i))) })
		}
		for merchant := range 20 {
			others.Go(func() {
				for i := range 10 {
					if got := reserves(t.Context(), s, orderOf(fmt.Sprint("mer_", merchant+1), fmt.Sprint(i))); got != "reserved" {
						t.Errorf("%s: another's order: %s", name, got)
					}
				}
			})
		}
		others.Wait()
		cancel()
		its.Wait()
		if n := count(t, url, rows+" WHERE merchant_id = 'mer_0'"); n != 0 {
			t.Errorf("%s: %d orders of the locked balance", name, n)
		}
		letGo()
		if got := reserves(t.Context(), s, orderOf("mer_0", "afterwards")); got != "reserved" {
			t.Errorf("%s: once it is free: %s", name, got)
		}
		if n := count(t, url, rows); n != 201 {
			t.Errorf("%s: %d orders", name, n)
		}
	}
}

func orderOf(merchant, reference string) movement.Movement {
	m := order(reference, movement.Charged)
	m.Owner.MerchantID = merchant
	return m
}

// TestALockedMovementHoldsNoReader: while somebody keeps a movement locked,
// answers and polls that are to be written to it take no connection from those who read.
func TestALockedMovementHoldsNoReader(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	if s.Engine() != store.PostgreSQL {
		t.Skip("who waits for a lock is told otherwise")
	}
	m := moved(t, s, move(reserve(t, s, draft("INV/1")), movement.Pending))
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"polls SET due = due WHERE movement_id = $1", "movements SET fee = fee WHERE id = $1"} {
		if _, err := tx.Exec(t.Context(), "UPDATE "+row, m.ID); err != nil {
			t.Fatal(err)
		}
	}
	var (
		writes sync.WaitGroup
		polls  atomic.Int32
	)
	for range 4 {
		writes.Go(func() {
			ours, err := s.Poll(t.Context(), m, epoch, epoch, epoch)
			if err != nil {
				t.Error(err)
			}
			if ours {
				polls.Add(1)
			}
		})
		writes.Go(func() {
			answers := movement.Change{Transition: movement.Transition{Effect: movement.KeepAnswer}, Movement: m, At: epoch, Answer: []byte(`{}`)}
			if ok, err := s.Apply(t.Context(), answers); !ok || err != nil {
				t.Error(ok, err)
			}
		})
	}
	for count(t, url, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") == 0 {
		runtime.Gosched()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := s.MovementByID(ctx, m.ID); err != nil {
		t.Error("a reader waits:", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	writes.Wait()
	if got := byID(t, s, m.ID); string(got.Answer) != `{}` || polls.Load() != 1 {
		t.Errorf("answered %s, polled %d times", got.Answer, polls.Load())
	}
}

// TestALockedRowHoldsAdministrationForSeconds: what operators write gives up a row that
// somebody keeps locked, and its connection, long before its caller does.
func TestALockedRowHoldsAdministrationForSeconds(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 2})
	if s.Engine() != store.PostgreSQL {
		t.Skip("who waits for a lock is told otherwise")
	}
	x := fact("connection to ppob", "our_account", "3")
	if _, err := s.AddException(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "UPDATE exceptions SET detail = detail"); err != nil {
		t.Fatal(err)
	}
	err = s.ResolveExceptions(t.Context(), epoch, x.Owner, x.Subject, []string{x.Reason}, "ayu", "phoned")
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "55P03" {
		t.Errorf("it waits for as long as its caller: %v", err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.ResolveExceptions(t.Context(), epoch, x.Owner, x.Subject, []string{x.Reason}, "ayu", "phoned"); err != nil {
		t.Error(err)
	}
}

// TestASlowStatement: the database ends a statement that takes too long, and says so.
// Nobody has to find out whether it was committed, and its connection goes on.
func TestASlowStatement(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	if s.Engine() != store.PostgreSQL {
		t.Skip("what a trigger may do differs")
	}
	execute(t, url, `CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NEW; END'`,
		`CREATE TRIGGER stall BEFORE INSERT ON movements FOR EACH ROW WHEN (NEW.reference = 'slow') EXECUTE FUNCTION stall()`)
	_, _, err := s.Reserve(t.Context(), draft("slow"))
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "57014" || errors.Is(err, store.ErrNotFound) {
		t.Errorf("it is not the database's word: %v", err)
	}
	reserve(t, s, draft("quick"))
}

// holdsFor is the environment of a process that locks a row and is killed.
const holdsFor = "GERBANG_TEST_HOLDS_A_ROW_OF"

// touch is a transaction that has locked a merchant's row when it calls then.
func touch(ctx context.Context, s *store.Store, then func()) error {
	return s.Tx(ctx, func(q *dbsqlc.Queries) error {
		if _, err := q.TouchMerchant(ctx, dbsqlc.TouchMerchantParams{MerchantID: "mer_1", Now: epoch}); err != nil {
			return err
		}
		then()
		_, err := q.TouchMerchant(ctx, dbsqlc.TouchMerchantParams{MerchantID: "mer_1", Now: epoch})
		return err
	})
}

// TestHoldsARow is the process that TestKilledGateway kills.
func TestHoldsARow(t *testing.T) { //nolint:paralleltest // it is alone in its process
	url := os.Getenv(holdsFor)
	if url == "" {
		t.Skip("it is run by TestKilledGateway")
	}
	_ = touch(t.Context(), open(t, url, store.Options{MaxConns: 2}), func() {
		fmt.Fprintln(os.Stderr, "it is locked")
		select {}
	})
}

// TestKilledGateway kills a process that holds a lock: the row is free again.
func TestKilledGateway(t *testing.T) {
	t.Parallel()
	url := database(t)
	insert(t, open(t, url, store.Options{MaxConns: 2}), "mer_1")
	process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHoldsARow$")
	process.Env = append(os.Environ(), holdsFor+"="+url)
	says, err := process.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(says); !strings.Contains(lines.Text(), "it is locked"); {
		if !lines.Scan() {
			t.Fatal("it locked nothing", lines.Err())
		}
	}
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	freed(t, url)
	_ = process.Wait() // killed
}

// TestVanishedGateway loses a gateway that holds a lock in a transaction, and of which
// the server hears nothing any more.
func TestVanishedGateway(t *testing.T) {
	t.Parallel()
	url := database(t)
	insert(t, open(t, url, store.Options{MaxConns: 2}), "mer_1")
	p, through := between(t, url)
	if err := touch(t.Context(), open(t, through, store.Options{MaxConns: 2}), p.vanish); err == nil {
		t.Fatal("it did not vanish")
	}
	freed(t, url)
}

// freed waits until the merchant's row can be written, which it must be within seconds.
func freed(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(ctx, "UPDATE merchants SET name = name WHERE merchant_id = 'mer_1'"); err != nil {
		t.Error("it is locked still:", err)
	}
}
