package store_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// waiting is an adjustment above the limit.
func waiting(tb testing.TB, s *store.Store, reference string, amount money.Amount) store.Adjustment {
	tb.Helper()
	a, err := s.Adjust(tb.Context(), by("adjust"), adjustment(reference, amount), max(amount, -amount)-1)
	if err != nil || a.State != store.Waiting {
		tb.Fatalf("%+v, %v", a, err)
	}
	return a
}

func as(operator string) store.Audit {
	audit := by("decide")
	audit.Operator, audit.At = operator, epoch.Add(time.Minute)
	return audit
}

func TestAdjust(t *testing.T) {
	t.Parallel()
	s, url := payerWith(t, 1_000, store.Options{MaxConns: 4})
	audits := count(t, url, "SELECT count(*) FROM audit")
	first, err := s.Adjust(t.Context(), by("credit"), adjustment("ADJ/1", 500), 500)
	want := adjustment("ADJ/1", 500)
	want.ID, want.State, want.RequestedBy, want.RequestedAt = first.ID, store.Posted, "ops-1", epoch
	if err != nil || first != want || first.ID == uuid.Nil {
		t.Errorf("%+v, %v", first, err)
	}
	later := as("ops-2")
	if again, err := s.Adjust(t.Context(), later, adjustment("ADJ/1", 500), 1); err != nil || again != first {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	reason := adjustment("ADJ/1", 500)
	reason.Reason = "another"
	for _, other := range []store.Adjustment{adjustment("ADJ/1", 501), adjustment("ADJ/1", -500), reason} {
		if _, err := s.Adjust(t.Context(), later, other, money.Max); !errors.Is(err, store.ErrAdjusted) {
			t.Errorf("another under its reference: %v", err)
		}
	}
	test := adjustment("ADJ/1", 7) // the same reference in the other mode is another
	test.Owner.Mode = "test"
	if _, err := s.Adjust(t.Context(), by("credit"), test, 500); err != nil {
		t.Error(err)
	}
	if _, err := s.Adjust(t.Context(), by("debit"), adjustment("ADJ/2", -1_501), money.Max); !errors.Is(err, movement.ErrInsufficient) {
		t.Errorf("more than there is: %v", err)
	}
	wantBalance(t, s, 1_500, 0)
	if _, err := s.Adjust(t.Context(), by("debit"), adjustment("ADJ/2", -1_500), money.Max); err != nil {
		t.Errorf("all there is: %v", err)
	}
	wantBalance(t, s, 0, 0)
	if n := count(t, url, "SELECT count(*) FROM audit") - audits; n != 3 {
		t.Errorf("%d audit entries of three adjustments", n)
	}
	wantClean(t, s)
}

func TestAdjustmentsThatAreRefused(t *testing.T) {
	t.Parallel()
	s, url := payerWith(t, 1_000, store.Options{MaxConns: 4})
	audits := count(t, url, "SELECT count(*) FROM audit")
	for name, c := range map[string]struct {
		change func(*store.Audit, *store.Adjustment)
		err    error
	}{
		"no such merchant": {func(_ *store.Audit, a *store.Adjustment) { a.Owner.MerchantID = "mer_2" }, store.ErrNotFound},
		"the platform":     {func(_ *store.Audit, a *store.Adjustment) { a.Owner.MerchantID = string(tenants.Platform) }, store.ErrNotFound},
		"no such mode":     {func(_ *store.Audit, a *store.Adjustment) { a.Owner.Mode = "live " }, store.ErrInvalid},
		"nothing":          {func(_ *store.Audit, a *store.Adjustment) { a.Amount = 0 }, store.ErrInvalid},
		"too much":         {func(_ *store.Audit, a *store.Adjustment) { a.Amount = money.Max + 1 }, store.ErrInvalid},
		"too much off":     {func(_ *store.Audit, a *store.Adjustment) { a.Amount = -money.Max - 1 }, store.ErrInvalid},
		"no reference":     {func(_ *store.Audit, a *store.Adjustment) { a.Reference = "" }, store.ErrInvalid},
		"no reason":        {func(_ *store.Audit, a *store.Adjustment) { a.Reason = "" }, store.ErrInvalid},
		"nobody":           {func(by *store.Audit, _ *store.Adjustment) { by.Operator = "" }, store.ErrInvalid},
		"no time":          {func(by *store.Audit, _ *store.Adjustment) { by.At = time.Time{} }, store.ErrInvalid},
	} {
		audit, a := by("credit"), adjustment("ADJ/1", 500)
		c.change(&audit, &a)
		if _, err := s.Adjust(t.Context(), audit, a, money.Max); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantBalance(t, s, 1_000, 0)
	if n := count(t, url, "SELECT count(*) FROM audit"); n != audits {
		t.Errorf("%d audit entries of nothing", n-audits)
	}
	if n := count(t, url, "SELECT count(*) FROM ledger_balances"); n != 1 {
		t.Errorf("%d balances", n)
	}
}

// TestTwoOperators has what is above the limit wait for another operator.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	s, url := payerWith(t, 1_000, store.Options{MaxConns: 4})
	credit, debit, no := waiting(t, s, "ADJ/1", 5_000), waiting(t, s, "ADJ/2", -6_001), waiting(t, s, "ADJ/3", 9_000)
	wantBalance(t, s, 1_000, 0)
	if list, err := s.Adjustments(t.Context(), store.Waiting, 10); err != nil || !reflect.DeepEqual(list, []store.Adjustment{credit, debit, no}) {
		t.Errorf("%+v, %v", list, err)
	}
	for name, c := range map[string]struct {
		operator, reference string
		err                 error
	}{
		"who requested it":     {"ops-1", "ADJ/1", store.ErrSameOperator},
		"more than there is":   {"ops-2", "ADJ/2", movement.ErrInsufficient},
		"what is not there":    {"ops-2", "ADJ/4", store.ErrNotFound},
		"what never waited":    {"ops-2", "opening", store.ErrAdjusted},
		"nobody in particular": {"", "ADJ/1", store.ErrInvalid},
	} {
		if _, err := s.DecideAdjustment(t.Context(), as(c.operator), payer, c.reference, true); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	decided := func(reference string, approve bool, want store.Adjustment) {
		t.Helper()
		want.DecidedBy, want.DecidedAt = "ops-2", epoch.Add(time.Minute)
		for range 2 { // the same again is what stands
			if got, err := s.DecideAdjustment(t.Context(), as("ops-2"), payer, reference, approve); err != nil || got != want {
				t.Errorf("%s: %+v, %v", reference, got, err)
			}
		}
		for operator, yes := range map[string]bool{"ops-2": !approve, "ops-3": approve} {
			if _, err := s.DecideAdjustment(t.Context(), as(operator), payer, reference, yes); !errors.Is(err, store.ErrAdjusted) {
				t.Errorf("%s, by %s: %v", reference, operator, err)
			}
		}
	}
	credit.State, no.State = store.Posted, store.Rejected
	decided("ADJ/1", true, credit)
	wantBalance(t, s, 6_000, 0)
	decided("ADJ/3", false, no)
	wantBalance(t, s, 6_000, 0)
	if list, err := s.Adjustments(t.Context(), "", 2); err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if n := count(t, url, "SELECT count(*) FROM audit WHERE action = 'decide'"); n != 2 {
		t.Errorf("%d audit entries of two decisions", n)
	}
	wantClean(t, s)
}

// TestOneDecision races two operators, and those who requested it.
func TestOneDecision(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 1_000, store.Options{MaxConns: 8})
	waiting(t, s, "ADJ/1", 5_000)
	waiting(t, s, "ADJ/2", -600) // of which one can be paid
	waiting(t, s, "ADJ/3", -700)
	got := every(30, func(i int) string {
		_, err := s.DecideAdjustment(t.Context(), as([]string{"ops-2", "ops-3"}[i%2]), payer, "ADJ/1", i%3 == 0)
		if err == nil {
			return "decided"
		}
		return "not"
	})
	if got["decided"] == 0 || got["not"] < 20 {
		t.Errorf("%v", got)
	}
	list, err := s.Adjustments(t.Context(), store.Waiting, 10)
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	balance, err := s.Balance(t.Context(), payer)
	if err != nil || balance.Available != 1_000 && balance.Available != 6_000 {
		t.Errorf("%+v, %v", balance, err)
	}
	wantClean(t, s)
	s, _ = payerWith(t, 1_000, store.Options{MaxConns: 8})
	waiting(t, s, "ADJ/2", -600)
	waiting(t, s, "ADJ/3", -700)
	got = every(2, func(i int) string {
		_, err := s.DecideAdjustment(t.Context(), as("ops-2"), payer, []string{"ADJ/2", "ADJ/3"}[i], true)
		if errors.Is(err, movement.ErrInsufficient) {
			return "insufficient"
		}
		if err != nil {
			return err.Error()
		}
		return "decided"
	})
	if want := map[string]int{"decided": 1, "insufficient": 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	wantClean(t, s)
}

// TestAdjustmentsAreSummed for each operator and merchant over 24 hours: an amount in
// small parts needs two operators as well.
func TestAdjustmentsAreSummed(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 1_000, store.Options{MaxConns: 4})
	for _, step := range []struct {
		operator string
		after    time.Duration
		amount   money.Amount
		want     store.AdjustmentState
	}{
		{"ops-1", 0, 600, store.Posted},
		{"ops-1", time.Hour, -300, store.Posted},
		{"ops-1", 2 * time.Hour, 101, store.Waiting}, // what waits is not summed
		{"ops-1", 3 * time.Hour, 100, store.Posted},
		{"ops-1", 4 * time.Hour, -1, store.Waiting},
		{"ops-2", 4 * time.Hour, 1_000, store.Posted},
		{"ops-1", 24*time.Hour - 1, 1, store.Waiting},
		{"ops-1", 24 * time.Hour, 600, store.Posted},
	} {
		audit := as(step.operator)
		audit.At = epoch.Add(step.after)
		a, err := s.Adjust(t.Context(), audit, adjustment(step.operator+step.after.String(), step.amount), 1_000)
		if err != nil || a.State != step.want {
			t.Errorf("%s's %d after %v: %+v, %v", step.operator, step.amount, step.after, a, err)
		}
	}
	test := adjustment("test", 1_000)
	test.Owner.Mode = "test"
	if a, err := s.Adjust(t.Context(), as("ops-1"), test, 1_000); err != nil || a.State != store.Posted {
		t.Errorf("of test mode: %+v, %v", a, err)
	}
	wantBalance(t, s, 1_000+600-300+100+1_000+600, 0)
	wantClean(t, s)
}

// TestAdjustmentsAtOnceAreSummed: no two fit where there is room for one.
func TestAdjustmentsAtOnceAreSummed(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 1_000, store.Options{MaxConns: 8})
	got := every(20, func(i int) string {
		a, err := s.Adjust(t.Context(), as("ops-1"), adjustment(fmt.Sprint("ADJ/", i), 100), 1_000)
		return fmt.Sprint(a.State, " ", err)
	})
	if want := map[string]int{"posted <nil>": 10, "waiting <nil>": 10}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	wantBalance(t, s, 2_000, 0)
	wantClean(t, s)
}

// TestEqualAdjustmentsAtOnce posts one reference once.
func TestEqualAdjustmentsAtOnce(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 1_000, store.Options{MaxConns: 8})
	got := every(30, func(int) string {
		a, err := s.Adjust(t.Context(), by("debit"), adjustment("ADJ/1", -1_000), money.Max)
		if err != nil {
			return err.Error()
		}
		return a.ID.String()
	})
	if len(got) != 1 {
		t.Errorf("%v", got)
	}
	wantBalance(t, s, 0, 0)
	wantClean(t, s)
}
