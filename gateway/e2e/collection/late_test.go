package collection_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// The times of a collection: its life, how late reports may be, and how long after
// its life its amount is kept for it.
const (
	collectionLife = 30 * time.Minute
	reportsLate    = 2 * time.Hour
	coolDown       = reportsLate + 10*time.Minute
)

// checkLateMoney lets sales expire. A sale is open until the reports have passed
// its end, and money after that is late.
func checkLateMoney(t *testing.T, p *harness.Program) {
	w, box := newOutlet(t, p), harness.NewReceiver(t, 0)
	inTime, expired, never := collect(t, w.Shop, nil, "X-Callback-URL", box.URL), collect(t, w.Shop, nil, "X-Callback-URL", box.URL), collect(t, w.Shop, nil)
	w.age(t, inTime, collectionLife+5*time.Minute)
	w.age(t, expired, collectionLife+reportsLate+5*time.Minute)
	w.age(t, never, collectionLife+reportsLate-5*time.Minute)
	w.looked(t, expired.ExternalID)
	w.wantStanding(t, "without a report nobody knows", []collectionData{inTime, expired, never}, 0)

	w.report(t)
	awaitCollection(t, w.Shop, expired.ExternalID, "EXPIRED")
	box.Wait(t, expired.ExternalID, 1)
	w.wantStanding(t, "the reports have not passed the end", []collectionData{inTime, never}, 0)
	row, late := inTime.paid(time.Now().Add(-10*time.Minute)), expired.paid(time.Now())
	w.report(t, row, late)
	paid := awaitCollection(t, w.Shop, inTime.ExternalID, "PAID")
	if want := row.at.UTC().Format(time.RFC3339); *paid.PaidAt != want {
		t.Errorf("paid_at %s, want the report's %s", *paid.PaidAt, want)
	}
	var last collectionData
	harness.Await(t, collectedWithin, "paid_late_at", func() bool {
		last = statusOfCollection(t, w.Shop, expired.ExternalID)
		return last.PaidLateAt != ""
	})
	if last.Status != "EXPIRED" || last.PaidAt != nil {
		t.Errorf("late money made it %+v", last)
	}
	told := box.Wait(t, expired.ExternalID, 2)
	last.wantCallback(t, told[1], "wallet2.paid_late")
	harness.WantVerified(t, told[1], w.secret)
	if told[0].Field("status") != "EXPIRED" || told[1].Sequence() <= told[0].Sequence() {
		t.Errorf("told %s\nand %s", told[0].Raw, told[1].Raw)
	}
	w.WantException(t, "paid_late", w.MerchantID, fmt.Sprint(expired.Amount))

	// An operator may give late money to a sale that waits.
	out, err := w.assign(t, late.id, never)
	if err != nil {
		t.Fatalf("assign late money: %v\n%s", err, out)
	}
	awaitCollection(t, w.Shop, never.ExternalID, "PAID")
}

// checkTwoCandidates makes two sales of one amount that a payment could belong
// to, which clock skew makes possible, and has an operator match it.
func checkTwoCandidates(t *testing.T, p *harness.Program) {
	w := newOutlet(t, p)
	first := collect(t, w.Shop, nil)
	w.age(t, first, collectionLife+coolDown+30*time.Second) // its amount has been free for half a minute
	w.report(t)
	awaitCollection(t, w.Shop, first.ExternalID, "EXPIRED")
	w.takeAllBut(t, first, 0)
	second := collect(t, w.Shop, nil)
	if second.Amount != first.Amount {
		t.Fatalf("%+v is not of the amount of %+v", second, first)
	}
	row := second.paid(time.Now().Add(-time.Minute))
	w.report(t, row)
	w.looked(t, second.ExternalID)
	w.WantException(t, "ambiguous", w.MerchantID, "payment "+row.id, fmt.Sprint(row.amount))
	w.wantWaiting(t, fmt.Sprintf("ambiguous %d", row.amount))
	w.wantStanding(t, "two candidates", []collectionData{second}, 0)
	if out, err := w.assign(t, row.id, second); err != nil {
		t.Fatalf("assign: %v\n%s", err, out)
	}
	w.wantStanding(t, "an operator's word", []collectionData{second}, 1)
	w.wantWaiting(t)
	if now := statusOfCollection(t, w.Shop, first.ExternalID); now.Status != "EXPIRED" || now.PaidLateAt != "" {
		t.Errorf("the first sale is %+v", now)
	}
}

// takeAllBut takes all amounts that a new sale like a given one could have, but for that
// one's and so many of the largest.
func (w *outlet) takeAllBut(t *testing.T, c collectionData, largest int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), w.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	const sql = `INSERT INTO reserved_amounts (account_id, amount, movement_id, taken_at, free_at)
		SELECT account_id, $1::INT8 + code, movement_id, now(), now() + INTERVAL '160 minutes'
		FROM reserved_amounts, generate_series(1, 999 - $3::INT8) AS codes(code) WHERE movement_id = $2 AND $1::INT8 + code <> amount`
	if _, err := conn.Exec(t.Context(), sql, c.Base, w.movementIDOf(t, c), largest); err != nil {
		t.Fatal(err)
	}
}

// checkAssignments has an operator match payments to sales, both payments without
// a sale and payments for a paid one: each to one sale, and none twice.
func checkAssignments(t *testing.T, p *harness.Program) {
	w, other := newOutlet(t, p), newOutlet(t, p)
	box := harness.NewReceiver(t, 0)
	sales := w.manySales(t, 3, "X-Callback-URL", box.URL)
	foreign := collect(t, other.Shop, nil)
	now := time.Now()
	wrong, again := reportRow{id: "WRONG", at: now, amount: 9_999}, sales[0].paid(now)
	again.id = "AGAIN"
	w.report(t, wrong, sales[0].paid(now.Add(-time.Second)), again)
	awaitCollection(t, w.Shop, sales[0].ExternalID, "PAID")
	w.WantException(t, "paid_again", w.MerchantID, "payment AGAIN")
	w.wantWaiting(t, "unmatched 9999", fmt.Sprintf("again %d", again.amount))

	for what, refused := range map[string]func() (string, error){
		"another merchant's sale": func() (string, error) { return w.assign(t, wrong.id, foreign) },
		"a sale that is paid":     func() (string, error) { return w.assign(t, wrong.id, sales[0]) },
		"no such payment":         func() (string, error) { return w.assign(t, "NONE", sales[1]) },
		"no such sale": func() (string, error) {
			return w.Run(t, "statement", "assign", "--yes", wrong.id, "00000000-0000-0000-0000-000000000000", "--reason", "x")
		},
		"no reason": func() (string, error) {
			return w.Run(t, "statement", "assign", "--yes", wrong.id, w.movementIDOf(t, sales[1]))
		},
	} {
		if out, err := refused(); err == nil {
			t.Errorf("%s: %s", what, out)
		}
	}
	for i, payment := range []string{wrong.id, again.id} {
		out, err := w.assign(t, payment, sales[1+i])
		if err != nil || !strings.Contains(out, "assigned") {
			t.Fatalf("assign %s: %v\n%s", payment, err, out)
		}
		told := box.Wait(t, sales[1+i].ExternalID, 1)
		statusOfCollection(t, w.Shop, sales[1+i].ExternalID).wantCallback(t, told[0], "wallet2.status_update")
	}
	w.wantStanding(t, "assigned", sales, 3)
	w.wantWaiting(t)
	if out, err := w.assign(t, wrong.id, collect(t, w.Shop, nil)); err == nil {
		t.Errorf("a payment twice: %s", out)
	}
	var noted int
	if w.QueryRow(t, &noted, "SELECT count(*) FROM audit WHERE action = 'statement.assign' AND merchant_id = $1 AND detail LIKE '%the payer has called%'", w.MerchantID); noted != 2 { // none of those that were refused
		t.Errorf("%d assignments stand in the audit, want 2", noted)
	}
}
