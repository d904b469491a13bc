package console_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// budi is a client of the second operator.
func (w *world) budi() *adminapi.Client { return adminapi.NewClient(w.url, otherToken) }

// available is what a merchant can spend in a mode.
func (w *world) available(merchant, mode string) adminapi.Rupiah {
	w.Helper()
	balance, err := adminapi.ShowBalance.Call(w.Context(), w, adminapi.BalanceQuery{Merchant: merchant, Mode: mode})
	if err != nil || len(balance.Accounts) != 2 || balance.Accounts[0].Account != "available" {
		w.Fatalf("balance %+v, %v", balance, err)
	}
	return balance.Accounts[0].Amount
}

func TestACreditIsPostedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	order := adminapi.NewAdjustment{Amount: 5000, Reason: "transfer 17", Reference: "bank 17"}
	order.Merchant = id
	posted, err := adminapi.Credit.Call(t.Context(), w, order)
	if err != nil {
		t.Fatal(err)
	}
	if posted.Kind != "credit" || posted.Amount != 5000 || posted.Mode != "live" || posted.State != "posted" || posted.RequestedBy != "ayu" || posted.Existed {
		t.Errorf("posted %+v", posted)
	}
	again, err := adminapi.Credit.Call(t.Context(), w.budi(), order)
	if err != nil || !again.Existed {
		t.Errorf("again: %+v, %v", again, err)
	}
	if again.Existed = false; again != posted {
		t.Errorf("again: %+v, want %+v", again, posted)
	}
	for name, other := range map[string]adminapi.NewAdjustment{
		"amount": {Amount: 5001, Reason: "transfer 17", Reference: "bank 17"},
		"reason": {Amount: 5000, Reason: "transfer 18", Reference: "bank 17"},
	} {
		other.Merchant = id
		_, err := adminapi.Credit.Call(t.Context(), w, other)
		if failure := w.refused(err, http.StatusConflict, "reference"); failure.Code != "DUPLICATE_REFERENCE" {
			t.Errorf("another %s: %v", name, failure)
		}
	}
	_, err = adminapi.Debit.Call(t.Context(), w, order)
	w.refused(err, http.StatusConflict, "reference")
	if got := w.available(id, "live"); got != 5000 {
		t.Errorf("the balance is %s", got)
	}
	order.Mode = "test" // has names of its own
	if _, err := adminapi.Credit.Call(t.Context(), w, order); err != nil || w.available(id, "test") != 5000 {
		t.Errorf("in test mode: %v", err)
	}
	entries, err := adminapi.ListAudit.Call(t.Context(), w, adminapi.AuditFilter{Merchant: id})
	if err != nil || len(entries) != 3 || entries[1].Action != "merchant.credit" || entries[1].Operator != "ayu" ||
		entries[1].Detail != "Rp5.000, reference bank 17, mode live: transfer 17" {
		t.Errorf("audit %+v, %v", entries, err)
	}
}

func TestADebitTakesNoMoreThanThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	if _, err := adminapi.Credit.Call(t.Context(), w, adminapi.NewAdjustment{Merchant: id, Amount: 5000, Reason: "r", Reference: "in"}); err != nil {
		t.Fatal(err)
	}
	_, err := adminapi.Debit.Call(t.Context(), w, adminapi.NewAdjustment{Merchant: id, Amount: 5001, Reason: "r", Reference: "out"})
	failure := w.refused(err, http.StatusPaymentRequired, "")
	if failure.Message != "The balance is Rp5.000, which is less than the debit of Rp5.001." {
		t.Errorf("told %q", failure.Message)
	}
	debited, err := adminapi.Debit.Call(t.Context(), w, adminapi.NewAdjustment{Merchant: id, Amount: 5000, Reason: "r", Reference: "out"})
	if err != nil || debited.Kind != "debit" || debited.Amount != 5000 || w.available(id, "live") != 0 {
		t.Errorf("debited %+v, %v", debited, err)
	}
	if got := w.actions(id); !slices.Equal(got, []string{"ayu merchant.create", "ayu merchant.credit", "ayu merchant.debit"}) {
		t.Errorf("audit %q", got)
	}
}

func TestALargeAmountWaitsForAnotherOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *console.Config, _ *console.Dependencies) { c.ApprovalAbove = 100 })
	ctx, id := t.Context(), w.merchant().MerchantID
	if small, err := adminapi.Credit.Call(ctx, w, adminapi.NewAdjustment{Merchant: id, Amount: 100, Reason: "r", Reference: "small"}); err != nil || small.State != "posted" {
		t.Errorf("at the limit: %+v, %v", small, err)
	}
	for _, reference := range []string{"a", "b"} {
		asked, err := adminapi.Credit.Call(ctx, w, adminapi.NewAdjustment{Merchant: id, Amount: 101, Reason: "r", Reference: reference})
		if err != nil || asked.State != "waiting" || asked.DecidedAt != nil {
			t.Fatalf("asked %+v, %v", asked, err)
		}
	}
	if waiting, err := adminapi.ListAdjustments.Call(ctx, w, adminapi.AdjustmentFilter{Limit: adminapi.MostListed}); err != nil || len(waiting) != 2 || w.available(id, "live") != 100 {
		t.Errorf("waiting %+v, %v", waiting, err)
	}
	a, b := adminapi.AdjustmentKey{MerchantID: id, Reference: "a"}, adminapi.AdjustmentKey{MerchantID: id, Reference: "b"}
	for _, decide := range []adminapi.Endpoint[adminapi.AdjustmentKey, adminapi.Adjustment]{adminapi.ApproveAdjustment, adminapi.RejectAdjustment} {
		_, err := decide.Call(ctx, w, a)
		if failure := w.refused(err, http.StatusForbidden, ""); !strings.Contains(failure.Message, "Another operator than ayu") {
			t.Errorf("told %q", failure.Message)
		}
	}
	approved, err := adminapi.ApproveAdjustment.Call(ctx, w.budi(), a)
	if err != nil || approved.State != "posted" || approved.DecidedBy != "budi" || approved.DecidedAt == nil || w.available(id, "live") != 201 {
		t.Errorf("approved %+v, %v", approved, err)
	}
	rejected, err := adminapi.RejectAdjustment.Call(ctx, w.budi(), b)
	if err != nil || rejected.State != "rejected" || w.available(id, "live") != 201 {
		t.Errorf("rejected %+v, %v", rejected, err)
	}
	_, err = adminapi.ApproveAdjustment.Call(ctx, w.budi(), b)
	w.refused(err, http.StatusConflict, "")
	_, err = adminapi.ApproveAdjustment.Call(ctx, w.budi(), adminapi.AdjustmentKey{MerchantID: id, Mode: "test", Reference: "a"})
	w.refused(err, http.StatusNotFound, "")
	if waiting, err := adminapi.ListAdjustments.Call(ctx, w, adminapi.AdjustmentFilter{Limit: adminapi.MostListed}); err != nil || len(waiting) != 0 {
		t.Errorf("still waiting %+v, %v", waiting, err)
	}
	entries, err := adminapi.ListAudit.Call(ctx, w, adminapi.AuditFilter{Merchant: id})
	if err != nil || entries[0].Action != "ledger.reject" || entries[0].Operator != "budi" || entries[0].Detail != "reference b, mode live" ||
		!strings.HasPrefix(entries[2].Detail, "waits for another operator: Rp101, reference b") {
		t.Errorf("audit %+v, %v", entries, err)
	}
}

func TestAnApprovedDebitTakesNoMoreThanThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *console.Config, _ *console.Dependencies) { c.ApprovalAbove = 100 })
	id := w.merchant().MerchantID
	if _, err := adminapi.Debit.Call(t.Context(), w, adminapi.NewAdjustment{Merchant: id, Amount: 101, Reason: "r", Reference: "out"}); err != nil {
		t.Fatal(err)
	}
	_, err := adminapi.ApproveAdjustment.Call(t.Context(), w.budi(), adminapi.AdjustmentKey{MerchantID: id, Reference: "out"})
	if failure := w.refused(err, http.StatusPaymentRequired, ""); !strings.Contains(failure.Message, "The balance is Rp0") {
		t.Errorf("told %q", failure.Message)
	}
	if waiting, err := adminapi.ListAdjustments.Call(t.Context(), w, adminapi.AdjustmentFilter{Limit: adminapi.MostListed}); err != nil || len(waiting) != 1 {
		t.Errorf("waiting %+v, %v", waiting, err)
	}
}

// limits is a ledger that only tells the limit it was asked with.
type limits struct {
	console.Ledger
	limit chan money.Amount
}

func (l limits) Adjust(_ context.Context, _ store.Audit, a store.Adjustment, limit money.Amount) (store.Adjustment, error) {
	l.limit <- limit
	return a, nil
}

func TestTheLimitUnlessConfigured(t *testing.T) {
	t.Parallel()
	l := limits{limit: make(chan money.Amount, 1)}
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) { d.Ledger = l })
	if _, err := adminapi.Credit.Call(t.Context(), w, adminapi.NewAdjustment{Merchant: "mer_1", Amount: 1, Reason: "r", Reference: "x"}); err != nil {
		t.Fatal(err)
	}
	if got := <-l.limit; got != 100_000_000 {
		t.Errorf("the limit is %s", got)
	}
}

func TestWhatACreditMayNotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	for body, want := range map[string]string{
		`{"reason":"r","reference":"x"}`:                                           "amount must be at least 1",
		`{"amount":0,"reason":"r","reference":"x"}`:                                "amount must be at least 1",
		`{"amount":-5,"reason":"r","reference":"x"}`:                               "amount must not be negative",
		`{"amount":1.5,"reason":"r","reference":"x"}`:                              "amount must be whole rupiah",
		`{"amount":"5","reason":"r","reference":"x"}`:                              "amount must be a number",
		`{"amount":1000000000001,"reason":"r","reference":"x"}`:                    "amount must be at most",
		`{"amount":5,"reference":"x"}`:                                             "reason must have 1 to 500",
		`{"amount":5,"reason":"a\nb","reference":"x"}`:                             "reason must have 1 to 500",
		`{"amount":5,"reason":"r"}`:                                                "reference must have 1 to 100",
		`{"amount":5,"reason":"r","reference":"` + strings.Repeat("x", 101) + `"}`: "reference must have 1 to 100",
		`{"amount":5,"reason":"r","reference":"x","mode":"prod"}`:                  "mode must be live or test",
	} {
		for _, what := range []string{"credit", "debit"} {
			status, _, answer := w.send(http.MethodPost, "/admin/merchants/"+id+"/"+what, "Bearer "+token, body)
			if status != http.StatusBadRequest || !strings.Contains(answer, want) {
				t.Errorf("%s %s: %d %s", what, body, status, answer)
			}
		}
	}
	order := adminapi.NewAdjustment{Amount: 5, Reason: "r", Reference: "x"}
	order.Merchant = "mer_nobody"
	_, err := adminapi.Credit.Call(t.Context(), w, order)
	w.refused(err, http.StatusNotFound, "")
	_, err = adminapi.Debit.Call(t.Context(), w, order)
	w.refused(err, http.StatusNotFound, "")
	_, err = adminapi.ApproveAdjustment.Call(t.Context(), w, adminapi.AdjustmentKey{MerchantID: id, Mode: "prod", Reference: "x"})
	w.refused(err, http.StatusBadRequest, "mode")
	if w.available(id, "live") != 0 {
		t.Error("something was credited")
	}
}

// checkedLedger is a ledger whose check finds what a test says.
type checkedLedger struct {
	console.Ledger
	report store.LedgerReport
}

func (l checkedLedger) CheckLedger(_ context.Context, scope store.LedgerScope) (store.LedgerReport, error) {
	if scope.Full {
		l.report.Since, l.report.Earliest = 0, time.Time{}
	}
	return l.report, nil
}

func TestTheLedgerIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := adminapi.Credit.Call(t.Context(), w, adminapi.NewAdjustment{Merchant: w.merchant().MerchantID, Amount: 5, Reason: "r", Reference: "x"}); err != nil {
		t.Fatal(err)
	}
	found, err := adminapi.CheckLedger.Call(t.Context(), w, adminapi.LedgerScope{Full: false})
	if err != nil || !found.OK || len(found.Invariants) == 0 {
		t.Fatalf("found %+v, %v", found, err)
	}
	var checked int64
	for _, i := range found.Invariants {
		checked += i.Checked
		if !i.OK || i.Invariant == "" || len(i.Offences) > 0 {
			t.Errorf("found %+v", i)
		}
	}
	if checked == 0 {
		t.Error("nothing was checked")
	}
}

func TestABrokenLedgerIsTold(t *testing.T) {
	t.Parallel()
	day := time.Date(2026, 1, 2, 17, 0, 0, 0, time.UTC)
	offence := store.LedgerOffence{Owner: movement.Owner{MerchantID: "mer_1", Mode: "live"}, Subject: "s1", Detail: "has 5, entries say 7"}
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		d.Ledger = checkedLedger{report: store.LedgerReport{Accounts: 3, Since: 2, Earliest: day, Invariants: []store.LedgerCheck{
			{Invariant: "sums", Checked: 12}, {Invariant: "balances", Checked: 3, Offences: []store.LedgerOffence{offence}},
		}}}
	})
	found, err := adminapi.CheckLedger.Call(t.Context(), w, adminapi.LedgerScope{Full: false})
	if err != nil || found.OK || len(found.Invariants) != 2 || !found.Invariants[0].OK || found.Invariants[0].Checked != 12 || found.Invariants[1].OK {
		t.Fatalf("found %+v, %v", found, err)
	}
	if found.Accounts != 3 || found.SinceVerified != 2 || found.VerifiedUntil == nil || !found.VerifiedUntil.Equal(day) {
		t.Errorf("found %+v", found)
	}
	if found, err := adminapi.CheckLedger.Call(t.Context(), w, adminapi.LedgerScope{Full: true}); err != nil || found.Accounts != 3 || found.SinceVerified != 0 || found.VerifiedUntil != nil {
		t.Errorf("found %+v, %v", found, err)
	}
	want := adminapi.Offence{MerchantID: "mer_1", Mode: "live", Subject: "s1", Detail: "has 5, entries say 7"}
	if got := found.Invariants[1].Offences; len(got) != 1 || got[0] != want {
		t.Errorf("offences %+v", got)
	}
}
