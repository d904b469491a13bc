package store_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// busy makes a payer with one order of each sort, under names of their states.
func busy(t *testing.T) (*store.Store, string) {
	t.Helper()
	s, url := payerWith(t, 100_000, store.Options{MaxConns: 4})
	for _, charge := range []movement.Charge{movement.Charged, movement.Held} {
		for _, state := range []movement.State{movement.Submitting, movement.Pending, movement.Succeeded, movement.Failed, movement.NotSubmitted} {
			m := reserve(t, s, order(fmt.Sprint(charge, " ", state), charge))
			if state != movement.Submitting {
				moved(t, s, posted(m, state))
			}
		}
		m := moved(t, s, posted(reserve(t, s, order(fmt.Sprint(charge, " reversed"), charge)), movement.Succeeded))
		if ok, err := apply(t.Context(), s, epoch, reversal(m)); !ok || err != nil {
			t.Fatal(ok, err)
		}
		again := fmt.Sprint(charge, " again")
		moved(t, s, posted(reserve(t, s, order(again, charge)), movement.NotSubmitted))
		reserve(t, s, order(again, charge))
	}
	waiting(t, s, "waiting", 5_000)
	reserve(t, s, draft("unpaid"))
	return s, url
}

// broken are the invariants that a report says are, by their number in it.
func broken(tb testing.TB, s *store.Store, scope store.LedgerScope) (numbers []int, report store.LedgerReport) {
	tb.Helper()
	report, err := s.CheckLedger(tb.Context(), scope)
	if err != nil {
		tb.Fatal(err)
	}
	for i, check := range report.Invariants {
		if len(check.Offences) > 0 {
			numbers = append(numbers, i)
		}
	}
	return numbers, report
}

func TestCheckLedgerOfWhatIsRight(t *testing.T) {
	t.Parallel()
	s, _ := busy(t)
	numbers, report := broken(t, s, whole)
	checked := make([]int64, len(report.Invariants))
	for i, check := range report.Invariants {
		checked[i] = check.Checked
	}
	// 14 orders of 16 attempts, of which 6 are under way, and one credit.
	if want := []int64{29, 1, 1, 14, 16, 29, 1, 0, 1}; len(numbers) != 0 || !report.Clean() || !slices.Equal(checked, want) {
		t.Errorf("checked %v, want %v; broken %v: %+v", checked, want, numbers, report)
	}
	empty, report := broken(t, fresh(t), whole)
	if len(empty) != 0 || len(report.Invariants) != 9 || report.Accounts != 0 {
		t.Errorf("of nothing: %v", report)
	}
}

var whole = store.LedgerScope{Full: true}

// The invariants' places in a report.
const (
	balanced = iota
	balances
	heldFor
	movements
	attempts
	subjects
	adjustments
	snapshots
	zero
)

// TestCheckLedgerFindsCorruption plants one wrong at a time, as only a hand in the
// database can, and wants it found for what it is.
func TestCheckLedgerFindsCorruption(t *testing.T) {
	t.Parallel()
	const (
		of  = ` WHERE subject = (SELECT id FROM movements WHERE reference = '%s')`
		add = `INSERT INTO ledger_transactions (merchant_id, mode, subject, attempt, step, kind, provider, at, available, held, margin, cost, deposit, adjustments) `
	)
	for name, c := range map[string]struct {
		plant string
		found []int
		say   string // in an offence
	}{
		"money from air": {
			`ALTER TABLE ledger_transactions DROP CONSTRAINT ledger_transactions_balanced;
			UPDATE ledger_transactions SET deposit = deposit + 1` + fmt.Sprintf(of, "charged succeeded") + ` AND step = 2`,
			[]int{balanced, attempts, zero}, "sums to 1",
		},
		"a balance too large":   {`UPDATE ledger_balances SET available = available + 1`, []int{balances, zero}, "its entries sum to 88000, 4500"},
		"a balance that is not": {`DELETE FROM ledger_balances`, []int{balances, heldFor, zero}, "the balance is none"},
		"a balance below zero": {
			`ALTER TABLE ledger_balances DROP CONSTRAINT ledger_balances_available;
			UPDATE ledger_balances SET available = -1`, []int{balances, zero}, "is -1 available",
		},
		"a balance of nobody":     {`INSERT INTO ledger_balances (merchant_id, mode, available, held) VALUES ('mer_2', 'live', 5, 0)`, []int{balances, zero}, "its entries sum to 0"},
		"held moved to available": {`UPDATE ledger_balances SET available = available + 1, held = held - 1`, []int{balances, heldFor}, "4499 is held"},
		"a hold that ended nowhere": {
			`UPDATE movements SET state = 'failed' WHERE reference = 'held pending'`, []int{heldFor, attempts}, "should have hold, release",
		},
		"an order bought for nothing": {
			`INSERT INTO movements (merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence, amount, request,
				connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id, send_by, created_at, updated_at,
				misses, due_bucket, cost, charge, connection_owner, connection_account)
			VALUES ('mer_1', 'live', 'order', 'free', gen_random_uuid(), 1, '/ppob/order', 'ppob', 'succeeded', 1, 1500, '{}',
				1, '', '', '', '', '', '', now(), now(), now(), 0, 1, 1400, '', 'platform', '')`,
			[]int{movements}, "attempt 1 of free",
		},
		"a charge that was not made": {
			`DELETE FROM ledger_transactions` + fmt.Sprintf(of, "charged submitting"), []int{balances, movements, zero}, "with transactions of 0 attempts",
		},
		"the last attempt without its transactions": {
			`DELETE FROM ledger_transactions` + fmt.Sprintf(of, "charged again") + ` AND attempt = 2`, []int{balances, movements, zero}, "attempt 2 of charged again",
		},
		"an attempt too many": {
			`UPDATE movements SET attempt = 1, state = 'not_submitted' WHERE reference = 'charged again'`, []int{movements, attempts}, "attempt 1 of charged again",
		},
		"a success that was not paid": {
			`UPDATE movements SET state = 'succeeded' WHERE reference = 'charged pending'`, []int{attempts}, "it should have charge, cost, none",
		},
		"a failure that kept the money": {
			`UPDATE movements SET state = 'failed' WHERE reference = 'charged succeeded'`, []int{attempts}, "it should have charge, refund, none",
		},
		"another cost":       {`UPDATE movements SET cost = 1 WHERE reference = 'held succeeded'`, []int{attempts}, "0, 1500, -1400, 1400"},
		"another price":      {`UPDATE movements SET amount = amount + 1 WHERE reference = 'charged pending'`, []int{attempts}, "over -1501"},
		"another way to pay": {`UPDATE movements SET charge = 'held' WHERE reference = 'charged succeeded'`, []int{attempts}, "it should have hold, capture"},
		"a reversal without its posting": {
			`UPDATE movements SET reversed_at = now() WHERE reference = 'charged succeeded'`, []int{attempts}, "cost, reversal",
		},
		"a reversal that nobody saw": {
			`UPDATE movements SET reversed_at = NULL WHERE reference = 'held reversed'`, []int{attempts}, "has hold, capture, reversal",
		},
		"a begin without its attempt's": {
			`DELETE FROM ledger_transactions` + fmt.Sprintf(of, "charged failed") + ` AND step = 1`, []int{balances, attempts, zero}, "has none, refund",
		},
		"a transaction of nothing": {
			add + `VALUES ('mer_1', 'live', gen_random_uuid(), 1, 1, 'charge', 'ppob', now(), 0, 0, 0, 0, 0, 0)`, []int{subjects}, "belongs to nothing",
		},
		"a transaction of what is not paid": {
			add + `SELECT merchant_id, mode, id, 1, 1, 'charge', 'ppob', now(), 0, 0, 0, 0, 0, 0 FROM movements WHERE reference = 'unpaid'`,
			[]int{movements, attempts}, "attempt 1 of unpaid",
		},
		"a transaction of another's": {
			`UPDATE ledger_transactions SET mode = 'test'` + fmt.Sprintf(of, "charged failed"), []int{balances, movements, subjects}, "belongs to nothing",
		},
		"an adjustment that still waits": {
			add + `SELECT merchant_id, mode, id, 0, 1, 'credit', '', now(), 0, 0, 0, 0, 0, 0 FROM ledger_adjustments WHERE state = 'waiting'`,
			[]int{subjects}, "belongs to nothing",
		},
		"an adjustment that was not posted": {
			`UPDATE ledger_adjustments SET state = 'posted' WHERE state = 'waiting'`, []int{adjustments}, "waiting over 5000",
		},
		"an adjustment over another amount": {
			`UPDATE ledger_adjustments SET amount = amount - 1 WHERE state = 'posted'`, []int{adjustments}, "opening over 99999",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, url := busy(t)
			execute(t, url, strings.Split(c.plant, ";")...)
			for _, scope := range []store.LedgerScope{{}, {}, whole} {
				numbers, report := broken(t, s, scope)
				said := fmt.Sprintf("%+v", report)
				if !slices.Equal(numbers, c.found) || report.Clean() || !strings.Contains(said, c.say) {
					t.Errorf("%+v: %v: %s", scope, numbers, said)
				}
			}
		})
	}
}

// TestCheckLedgerShowsAHundred of an invariant's offences.
func TestCheckLedgerShowsAHundred(t *testing.T) {
	t.Parallel()
	s, url := payerWith(t, 100, store.Options{MaxConns: 4})
	execute(t, url, `INSERT INTO ledger_balances (merchant_id, mode, available, held) SELECT 'mer_' || i, 'live', 1, 0 FROM generate_series(10, 300) AS i`)
	_, report := broken(t, s, whole)
	if check := report.Invariants[balances]; len(check.Offences) != 100 || check.Checked != 292 {
		t.Errorf("%d of %d", len(check.Offences), check.Checked)
	}
}

// TestAnyWorkload runs orders of every sort at once, on two replicas, and wants
// the ledger right, of which the account statement is one more proof.
func TestAnyWorkload(t *testing.T) {
	t.Parallel()
	s, url := payerWith(t, 40_000, store.Options{MaxConns: 8})
	stores := []*store.Store{s, open(t, url, store.Options{MaxConns: 8, OwnCommits: true})}
	got := every(16, func(client int) string {
		dice := rand.New(rand.NewPCG(1, uint64(client)))
		for i := range 25 {
			if err := live(t, stores[client%2], dice, fmt.Sprint(client, "/", i)); err != nil {
				return err.Error()
			}
		}
		return "fine"
	})
	if !reflect.DeepEqual(got, map[string]int{"fine": 16}) {
		t.Errorf("%v", got)
	}
	wantClean(t, s)
	wantStatement(t, s)
}

// live takes one order through a life of chance.
func live(t *testing.T, s *store.Store, dice *rand.Rand, name string) error {
	if dice.IntN(5) == 0 {
		_, err := s.Adjust(t.Context(), by("adjust"), adjustment(name, money.Amount(1+dice.IntN(2_000))), money.Max)
		return err
	}
	m := order(name, []movement.Charge{movement.Charged, movement.Held}[dice.IntN(2)])
	m.Amount, m.Cost = money.Amount(1+dice.IntN(3_000)), money.Amount(dice.IntN(3_000))
	m.CreatedAt = epoch.Add(time.Duration(dice.IntN(100)) * time.Second)
	if word := reserves(t.Context(), s, m); word != "reserved" {
		if word == "insufficient" {
			return nil
		}
		return fmt.Errorf("reserve of %s: %s", name, word)
	}
	m.Attempt, m.Sequence, m.State, m.Version = 1, 1, movement.Submitting, movement.FirstVersion(1)
	for _, to := range [][]movement.State{
		{}, {movement.Pending}, {movement.Succeeded}, {movement.Pending, movement.Failed}, {movement.NotSubmitted}, {movement.Pending, movement.Succeeded},
	}[dice.IntN(6)] {
		ok, err := apply(t.Context(), s, m.CreatedAt.Add(time.Second), posted(m, to))
		if err != nil || !ok {
			return fmt.Errorf("move of %s to %s: %v, %w", name, to, ok, err)
		}
		m.State = to
		m.Version++
		m.Sequence++
	}
	if m.State == movement.Succeeded && dice.IntN(2) == 0 {
		ok, err := apply(t.Context(), s, m.CreatedAt.Add(time.Minute), reversal(m))
		if err != nil || !ok {
			return fmt.Errorf("reversal of %s: %v, %w", name, ok, err)
		}
	}
	return nil
}

// wantStatement reads the payer's statement in pages and wants it to come to the
// balance, and to that of every moment.
func wantStatement(t *testing.T, s *store.Store) {
	t.Helper()
	end := epoch.Add(24 * time.Hour)
	whole, err := s.AccountStatement(t.Context(), payer, time.Time{}, end, nil, 100_000)
	if err != nil || len(whole) < 100 {
		t.Fatalf("%d entries, %v", len(whole), err)
	}
	var last *store.Entry
	var paged []store.Entry
	for {
		page, err := s.AccountStatement(t.Context(), payer, time.Time{}, end, last, 37)
		if err != nil {
			t.Fatal(err)
		}
		if paged = append(paged, page...); len(page) == 0 {
			break
		}
		last = &paged[len(paged)-1]
	}
	if !reflect.DeepEqual(paged, whole) {
		t.Errorf("%d entries in pages, %d at once", len(paged), len(whole))
	}
	sum := ledger.Balance{}
	for _, entry := range whole {
		sum.Available, sum.Held = sum.Available+entry.Available, sum.Held+entry.Held
		if err := entry.Check(); err != nil || entry.Balance != sum || entry.Reference == "" {
			t.Fatalf("%+v, %v", entry, err)
		}
	}
	wantBalance(t, s, sum.Available, sum.Held)
	middle := whole[len(whole)/2].At
	at, err := s.BalanceAt(t.Context(), payer, middle)
	rest, restErr := s.AccountStatement(t.Context(), payer, middle.Add(time.Microsecond), end, nil, 1)
	if err != nil || restErr != nil || len(rest) != 1 {
		t.Fatal(err, restErr, len(rest))
	}
	before := ledger.Balance{Available: rest[0].Balance.Available - rest[0].Available, Held: rest[0].Balance.Held - rest[0].Held}
	if at != before {
		t.Errorf("at %v it was %+v, the next entry goes on from %+v", middle, at, before)
	}
	platform, err := s.PlatformAt(t.Context(), payer.Mode, end)
	if err != nil || len(platform) != 2 || platform[0].Provider != "" || platform[1].Provider != "ppob" {
		t.Fatalf("%+v, %v", platform, err)
	}
	total := sum.Available + sum.Held
	for _, p := range platform {
		total += p.Margin + p.Cost + p.Deposit + p.Adjustments
	}
	if total != 0 || platform[1].Cost+platform[1].Deposit != 0 || platform[1].Margin == 0 {
		t.Errorf("it all sums to %d: %+v", total, platform)
	}
}

// What has to begin anew, as readers now and then have to on CockroachDB, begins
// anew.
func TestCheckIsTriedAgainAfterAConflict(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{})
	if s.Engine() != store.PostgreSQL {
		t.Skip("the conflict is made with what PostgreSQL alone has")
	}
	// A session's lock is what a transaction that is rolled back leaves behind.
	execute(t, url,
		`CREATE FUNCTION conflict() RETURNS boolean LANGUAGE plpgsql AS 'BEGIN
			IF NOT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = ''advisory'' AND pid = pg_backend_pid()) THEN
				PERFORM pg_advisory_lock(1);
				RAISE EXCEPTION ''restart'' USING ERRCODE = ''40001'';
			END IF;
			RETURN true;
		END' `,
		`ALTER TABLE ledger_adjustments RENAME TO kept_adjustments`,
		`CREATE VIEW ledger_adjustments AS SELECT * FROM kept_adjustments WHERE (SELECT conflict())`)
	report, err := s.CheckLedger(t.Context(), whole)
	if err != nil || !report.Clean() {
		t.Errorf("found %+v, %v", report, err)
	}
	if n := count(t, url, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"); n != 1 {
		t.Errorf("there were %d conflicts", n)
	}
}
