package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// verified is a payer whose orders of days ago were verified, with an order of now.
func verified(t *testing.T) (*store.Store, string, time.Time) {
	t.Helper()
	s, url := busy(t)
	now, err := s.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	old := now.Add(-100 * time.Hour).Format(time.RFC3339)
	execute(t, url, fmt.Sprintf("UPDATE ledger_transactions SET at = '%s', written_at = '%s'", old, old),
		fmt.Sprintf("UPDATE movements SET created_at = '%s'", old), fmt.Sprintf("UPDATE ledger_adjustments SET requested_at = '%s'", old))
	closeAll(t, s, now)
	if numbers, report := broken(t, s, store.LedgerScope{}); len(numbers) > 0 || report.Accounts != 1 || report.Since != 0 {
		t.Fatalf("%+v", report)
	}
	moved(t, s, posted(reserve(t, s, order("new succeeded", movement.Charged)), movement.Succeeded))
	execute(t, url, `UPDATE ledger_transactions SET at = now() WHERE subject = (SELECT id FROM movements WHERE reference = 'new succeeded')`,
		`UPDATE movements SET created_at = now() WHERE reference = 'new succeeded'`)
	return s, url, ledger.DayEnd(now.Add(-100 * time.Hour))
}

// TestCheckGoesOnFromWhatWasVerified reads what is new, and what is under way.
func TestCheckGoesOnFromWhatWasVerified(t *testing.T) {
	t.Parallel()
	s, url, day := verified(t)
	numbers, report := broken(t, s, store.LedgerScope{})
	if len(numbers) > 0 || report.Accounts != 1 || report.Since != 1 || !report.Earliest.Equal(day) {
		t.Errorf("%+v", report)
	}
	checked := func(report store.LedgerReport) (numbers []int64) {
		for _, check := range report.Invariants {
			numbers = append(numbers, check.Checked)
		}
		return numbers
	}
	// Two transactions of the new order; six orders are under way, two after another attempt.
	if got, want := checked(report), []int64{2, 1, 1, 7, 9, 2, 0, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("checked %v, want %v", got, want)
	}
	_, report = broken(t, s, whole)
	if got, want := checked(report), []int64{31, 1, 1, 15, 17, 31, 1, 2, 1}; !slices.Equal(got, want) || report.Since != 0 || !report.Earliest.IsZero() {
		t.Errorf("checked %v, want %v: %+v", got, want, report)
	}
	// Without marks, nothing was verified.
	execute(t, url, "UPDATE ledger_snapshots SET verified_at = NULL")
	for range 2 {
		if _, report := broken(t, s, store.LedgerScope{Unmarked: true}); report.Since != 0 {
			t.Errorf("%+v", report)
		}
	}
	if n := count(t, url, "SELECT count(*) FROM ledger_snapshots WHERE verified_at IS NOT NULL"); n != 0 {
		t.Errorf("%d days were marked", n)
	}
}

// TestCheckFindsWhatIsNew plants wrongs in what was verified and in what is new. Of the
// first a whole check tells, and from then on every one; of the second, each.
func TestCheckFindsWhatIsNew(t *testing.T) {
	t.Parallel()
	const of = ` WHERE subject = (SELECT id FROM movements WHERE reference = '%s')`
	for name, c := range map[string]struct {
		plant            string
		inNew, inOld     []int // what a check of each finds that begins with what was verified
		inWhole          []int // what a whole check finds in what was verified, beyond what is in new
		newOnly, oldOnly bool
	}{
		"a changed entry": {
			plant: `UPDATE ledger_transactions SET available = available - 1, margin = margin + 1` + of + ` AND step = 1`,
			inNew: []int{balances, attempts, zero}, inWhole: []int{balances, attempts, snapshots, zero},
		},
		"a missing entry": {
			plant: `DELETE FROM ledger_transactions` + of + ` AND step = 2`, inNew: []int{attempts}, inWhole: []int{attempts, snapshots},
		},
		"an entry too many": {
			plant: `INSERT INTO ledger_transactions (merchant_id, mode, subject, attempt, step, kind, provider, at, written_at, available, held, margin, cost, deposit, adjustments)
				SELECT merchant_id, mode, subject, attempt, 3, 'reversal', provider, at, written_at, 0, 0, 0, 0, 0, 0 FROM ledger_transactions` + of + ` AND step = 2`,
			inNew: []int{attempts}, inWhole: []int{attempts, snapshots},
		},
		"money from air": {
			plant: `ALTER TABLE ledger_transactions DROP CONSTRAINT ledger_transactions_balanced;
				UPDATE ledger_transactions SET deposit = deposit + 1` + of + ` AND step = 2`,
			inNew: []int{balanced, attempts, zero}, inWhole: []int{balanced, attempts, snapshots, zero},
		},
		"a changed end": {
			plant: `UPDATE movements SET state = 'failed' WHERE reference = '%s'`, inNew: []int{attempts}, inWhole: []int{attempts},
		},
		"a changed balance": {
			plant: `UPDATE ledger_balances SET available = available + 1; SELECT '%s'`,
			inNew: []int{balances, zero}, inOld: []int{balances, zero}, inWhole: []int{balances, zero},
		},
		"a changed snapshot": {
			plant: `UPDATE ledger_snapshots SET available = available + 1, margin = margin - 1 WHERE provider = 'ppob' AND '%s' <> ''`,
			inOld: []int{balances, zero}, inWhole: []int{snapshots}, oldOnly: true,
		},
		"an old order that ended since": {
			plant: `UPDATE movements SET state = 'succeeded' WHERE reference = 'charged pending' AND '%s' <> '';
				INSERT INTO callbacks (merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts, created_at, due_bucket)
				SELECT merchant_id, mode, gen_random_uuid(), id, 3, 'ppob.status_update', reference, '', '{}', 'none', 0, now(), 0
				FROM movements WHERE reference = 'charged pending'`,
			inNew: []int{attempts}, newOnly: true,
		},
	} {
		for _, era := range []string{"new", "charged"} {
			if era == "new" && c.oldOnly || era != "new" && c.newOnly {
				continue
			}
			t.Run(name+", "+era, func(t *testing.T) {
				t.Parallel()
				s, url, _ := verified(t)
				execute(t, url, strings.Split(strings.ReplaceAll(c.plant, "%s", era+" succeeded"), ";")...)
				first, entire := c.inNew, c.inNew
				if era != "new" {
					first, entire = c.inOld, c.inWhole
				}
				for i, want := range []struct {
					scope store.LedgerScope
					found []int
				}{{store.LedgerScope{Unmarked: true}, first}, {whole, entire}, {store.LedgerScope{}, entire}} {
					if numbers, report := broken(t, s, want.scope); !slices.Equal(numbers, want.found) {
						t.Errorf("check %d found %v, want %v: %+v", i, numbers, want.found, report)
					}
				}
			})
		}
	}
}
