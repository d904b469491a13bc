package store_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// claim is an operator's on a payment of the merchant that payerWith makes.
func claim(operator, subject string, amount money.Amount, after time.Duration) movement.Claim {
	return movement.Claim{
		Owner: adjustment("", 0).Owner, Subject: subject, Movement: movement.ID(uuid.NewSHA1(uuid.Nil, []byte(subject))), Payment: subject,
		Operator: operator, Amount: amount, Reason: "because " + operator, At: epoch.Add(after), AloneUpTo: 1_000,
	}
}

// decidedAlone is an override that one operator decides.
func decidedAlone(m movement.Movement, operator string, after time.Duration) movement.Override {
	o := word(operator + " success!")
	o.At, o.AloneUpTo = epoch.Add(after), 1_000
	return o
}

// TestClaimsAreSummed: credits, debits, overrides and assignments of one operator on one
// merchant together.
func TestClaimsAreSummed(t *testing.T) {
	t.Parallel()
	s, _ := payerWith(t, 1_000, store.Options{MaxConns: 4})
	credit := func(amount money.Amount) func(string, time.Duration) bool {
		return func(operator string, after time.Duration) bool {
			audit := as(operator)
			audit.At = epoch.Add(after)
			a, err := s.Adjust(t.Context(), audit, adjustment(fmt.Sprint(operator, after), amount), 1_000)
			if err != nil {
				t.Error(err)
			}
			return a.State == store.Posted
		}
	}
	overrides := func(amount money.Amount) func(string, time.Duration) bool {
		return func(operator string, after time.Duration) bool {
			m := draft(fmt.Sprint("INV/", operator, after))
			m.Owner, m.Amount = adjustment("", 0).Owner, amount
			m = reserve(t, s, m)
			o, err := s.Override(t.Context(), m, decidedAlone(m, operator, after), review(m))
			if err != nil || o.AloneUpTo != 0 {
				t.Errorf("%+v, %v", o, err)
			}
			return o.Made()
		}
	}
	assigns := func(amount money.Amount) func(string, time.Duration) bool {
		return func(operator string, after time.Duration) bool {
			c, err := s.Claim(t.Context(), claim(operator, fmt.Sprint("payment of ", operator, after), amount, after))
			if err != nil {
				t.Error(err)
			}
			return c.Made()
		}
	}
	for _, step := range []struct {
		what     string
		claim    func(string, time.Duration) bool
		operator string
		after    time.Duration
		made     bool
	}{
		{"a credit", credit(400), "ops-1", 0, true},
		{"an override", overrides(300), "ops-1", time.Hour, true},
		{"an override too much", overrides(301), "ops-1", 2 * time.Hour, false},
		{"a line too much", assigns(301), "ops-1", 3 * time.Hour, false},
		{"a line", assigns(300), "ops-1", 4 * time.Hour, true},
		{"a debit too much", credit(-1), "ops-1", 5 * time.Hour, false},
		{"another operator's", overrides(1_000), "ops-2", 5 * time.Hour, true},
		{"too much of another operator", assigns(1), "ops-2", 5 * time.Hour, false},
		{"before the credit is a day old", overrides(1), "ops-1", 24*time.Hour - time.Microsecond, false},
		{"after the credit is a day old", overrides(400), "ops-1", 24 * time.Hour, true},
		{"after the override is a day old", credit(300), "ops-1", 25 * time.Hour, true},
	} {
		if made := step.claim(step.operator, step.after); made != step.made {
			t.Errorf("%s: made alone %t", step.what, made)
		}
	}
	wantClean(t, s)
}

// TestClaimsAtOnceAreSummed: no two fit where there is room for one, whatever they are, on
// two replicas.
func TestClaimsAtOnceAreSummed(t *testing.T) {
	t.Parallel()
	s, url := payerWith(t, 1_000, store.Options{MaxConns: 8})
	other := open(t, url, store.Options{MaxConns: 8})
	open := make([]movement.Movement, 30)
	for i := range open {
		m := draft(fmt.Sprint("INV/", i))
		m.Owner, m.Amount = adjustment("", 0).Owner, 100
		open[i] = reserve(t, s, m)
	}
	got := every(30, func(i int) string {
		on := []*store.Store{s, other}[i%2]
		switch i % 3 {
		case 0:
			a, err := on.Adjust(t.Context(), as("ops-1"), adjustment(fmt.Sprint("ADJ/", i), 100), 1_000)
			return fmt.Sprint(a.State == store.Posted, err)
		case 1:
			o, err := on.Override(t.Context(), open[i], decidedAlone(open[i], "ops-1", time.Minute), review(open[i]))
			return fmt.Sprint(o.Made(), err)
		}
		c, err := on.Claim(t.Context(), claim("ops-1", fmt.Sprint("payment ", i), 100, time.Minute))
		return fmt.Sprint(c.Made(), err)
	})
	if want := map[string]int{"true <nil>": 10, "false <nil>": 20}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	wantClean(t, s)
}

// TestAClaimIsConfirmed by another operator who claims the same, once.
func TestAClaimIsConfirmed(t *testing.T) {
	t.Parallel()
	s, url := payerWith(t, 1_000, store.Options{MaxConns: 4})
	first := claim("ayu", "payment p", 1_001, 0)
	for range 2 {
		if c, err := s.Claim(t.Context(), first); err != nil || c.Made() || c.Operator != "ayu" {
			t.Errorf("one's own: %+v, %v", c, err)
		}
	}
	if waits, err := s.WaitingClaims(t.Context(), 10); err != nil || len(waits) != 1 || waits[0].Payment != "payment p" || waits[0].Amount != 1_001 {
		t.Errorf("waits %+v, %v", waits, err)
	}
	if c, err := s.Claim(t.Context(), claim("budi", "payment p", 1_002, 0)); err != nil || c.Made() || c.Operator != "budi" {
		t.Errorf("another amount is another claim: %+v, %v", c, err)
	}
	for range 2 {
		c, err := s.Claim(t.Context(), claim("ayu", "payment p", 1_002, time.Minute))
		if err != nil || !c.Made() || c.Alone || c.Operator != "budi" || c.ConfirmedBy != "ayu" {
			t.Errorf("confirmed: %+v, %v", c, err)
		}
	}
	if waits, err := s.WaitingClaims(t.Context(), 10); err != nil || len(waits) != 0 {
		t.Errorf("still waits %+v, %v", waits, err)
	}
	if c, err := s.Claim(t.Context(), claim("ayu", "payment q", 1_000, 2*time.Minute)); err != nil || !c.Alone {
		t.Errorf("what two say is not summed: %+v, %v", c, err)
	}
	if n := count(t, url, "SELECT count(*) FROM audit WHERE action IN ('claim.propose', 'claim.confirm')"); n != 4 {
		t.Errorf("%d audit entries", n)
	}
}
