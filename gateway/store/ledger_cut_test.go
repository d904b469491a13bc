package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// cuttableShop is cuttable with a merchant who has a balance.
func cuttableShop(t *testing.T, balance money.Amount) (p *proxy, cut, truth *store.Store, url string) {
	t.Helper()
	p, s, truth, url := cuttable(t)
	insert(t, truth, payer.MerchantID)
	credit(t, truth, "opening", balance)
	return p, s, truth, url
}

// nth is the message that runs the nth statement from now on.
func nth(n int) func(kind byte, _ string) bool {
	return func(kind byte, _ string) bool {
		if kind == 'E' {
			n--
		}
		return n == 0 && kind == 'E'
	}
}

func TestPaidReservationThatIsCut(t *testing.T) {
	t.Parallel()
	for _, charge := range []movement.Charge{movement.Charged, movement.Held} {
		p, s, truth, _ := cuttableShop(t, 3_000)
		held := money.Amount(0)
		if charge == movement.Held {
			held = 1_500
		}
		m := order("ORD/1", charge)
		p.arm(cut{at: execution})
		if _, ours, err := s.Reserve(t.Context(), m); err == nil || errors.Is(err, movement.ErrInsufficient) || ours || p.happened() != 1 {
			t.Errorf("before it: %v, %v", ours, err)
		}
		wantBalance(t, truth, 3_000, 0)

		p.arm(cut{at: execution, after: true})
		reserved, ours, err := s.Reserve(t.Context(), m)
		if err != nil || !ours || reserved.ID != m.ID || reserved.Attempt != 1 || reserved.Charge != charge || p.happened() != 1 {
			t.Errorf("after it: %+v, %v, %v", reserved, ours, err)
		}
		wantBalance(t, truth, 1_500, held)

		p.arm(cut{at: execution, after: true, stay: true})
		other := order("ORD/2", charge)
		if _, ours, err := s.Reserve(t.Context(), other); err == nil || ours {
			t.Errorf("for good: %v, %v", ours, err)
		}
		// It is charged and never sent. Who finds that out frees it.
		wantBalance(t, truth, 0, 2*held)
		moved(t, truth, posted(byID(t, truth, other.ID), movement.NotSubmitted))
		wantBalance(t, truth, 1_500, held)
		wantClean(t, truth)
	}
}

// TestPaidMoveThatIsCut ends an order whose commit is cut, and tries again as the
// engine does: the money moves once.
func TestPaidMoveThatIsCut(t *testing.T) {
	t.Parallel()
	for _, to := range []movement.State{movement.Succeeded, movement.Failed, movement.NotSubmitted} {
		for _, after := range []bool{false, true} {
			p, s, truth, _ := cuttableShop(t, 2_000)
			m := reserve(t, truth, order("ORD/1", movement.Held))
			p.arm(cut{at: execution, after: after})
			if ok, err := apply(t.Context(), s, epoch, posted(m, to)); ok != after || (err == nil) != after || p.happened() != 1 {
				t.Errorf("%s, after %v: %v, %v", to, after, ok, err)
			}
			if ok, err := apply(t.Context(), s, epoch, posted(m, to)); ok == after || err != nil {
				t.Errorf("%s, after %v, again: %v, %v", to, after, ok, err)
			}
			if to == movement.Succeeded {
				wantBalance(t, truth, 500, 0)
			} else {
				wantBalance(t, truth, 2_000, 0)
			}
			wantClean(t, truth)
		}
	}
}

// TestPaidBatchThatIsCut cuts the connection at the commit of many paid reservations at
// once: what is charged is what was reserved.
func TestPaidBatchThatIsCut(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]cut{"before the commit": {}, "after it": {after: true}, "in its answer": {after: true, part: true}} {
		p, s, truth, url := cuttableShop(t, 20*1_500)
		if s.Engine() != store.PostgreSQL {
			t.Skip("commits are shared on PostgreSQL alone")
		}
		how.at = batch()
		p.arm(how)
		reserved := 0
		for round := 0; p.happened() == 0 && round < 100; round++ { // until reservations meet
			got := every(16, func(i int) string {
				m := order(fmt.Sprint(round, "/", i), movement.Charged)
				m.Amount = 1
				return reserves(t.Context(), s, m)
			})
			reserved += got["reserved"]
		}
		if p.happened() != 1 {
			t.Fatalf("%s: no two reservations met", name)
		}
		if n := count(t, url, rows); n != reserved {
			t.Errorf("%s: %d reserved, %d rows", name, reserved, n)
		}
		wantBalance(t, truth, money.Amount(20*1_500-reserved), 0)
		wantClean(t, truth)
	}
}

func TestAcknowledgementThatIsCut(t *testing.T) {
	t.Parallel()
	p, s, truth, _ := cuttableShop(t, 4_000)
	m := reserve(t, truth, order("ORD/1", movement.Charged))
	p.arm(cut{at: execution})
	if _, err := s.Acknowledge(t.Context(), m, []byte(`{}`)); err == nil || byID(t, truth, m.ID).Answer != nil {
		t.Errorf("before it: %v", err)
	}
	p.arm(cut{at: execution, after: true})
	if got, err := s.Acknowledge(t.Context(), m, []byte(`{}`)); err != nil || got.State != movement.Acknowledged || string(got.Answer) != `{}` || p.happened() != 1 {
		t.Errorf("after it: %+v, %v", got, err)
	}
	// Freed and reserved again by another meanwhile: that is what stands.
	other := reserve(t, truth, order("ORD/2", movement.Held))
	p.arm(cut{at: execution, then: func() { moved(t, truth, posted(other, movement.NotSubmitted)) }})
	if got, err := s.Acknowledge(t.Context(), other, []byte(`{}`)); err != nil || got.State != movement.NotSubmitted || got.Answer != nil {
		t.Errorf("freed meanwhile: %+v, %v", got, err)
	}
	wantClean(t, truth)
}

func TestReversalThatIsCut(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		p, s, truth, _ := cuttableShop(t, 2_000)
		m := moved(t, truth, posted(reserve(t, truth, order("ORD/1", movement.Charged)), movement.Succeeded))
		p.arm(cut{at: execution, after: after})
		if ok, err := apply(t.Context(), s, epoch, reversal(m)); ok != after || (err == nil) != after || p.happened() != 1 {
			t.Errorf("after %v: %v, %v", after, ok, err)
		}
		if ok, err := apply(t.Context(), s, epoch, reversal(m)); ok == after || err != nil {
			t.Errorf("after %v, again: %v, %v", after, ok, err)
		}
		wantBalance(t, truth, 2_000, 0)
		wantClean(t, truth)
	}
}

func TestAdjustmentThatIsCut(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		p, s, truth, url := cuttableShop(t, 2_000)
		p.arm(cut{at: nth(3), after: after})
		a, err := s.Adjust(t.Context(), by("credit"), adjustment("ADJ/1", 1_000), 10_000)
		if (err == nil) != after || after && a.State != store.Posted || p.happened() != 1 {
			t.Errorf("after %v: %+v, %v", after, a, err)
		}
		again, err := s.Adjust(t.Context(), by("credit"), adjustment("ADJ/1", 1_000), 10_000)
		if err != nil || after && again != a {
			t.Errorf("after %v, again: %+v, %v", after, again, err)
		}
		wantBalance(t, truth, 3_000, 0)
		waiting(t, truth, "ADJ/2", 20_000)
		p.arm(cut{at: nth(2), after: after})
		second := by("approve")
		second.Operator = "ops-2"
		if _, err := s.DecideAdjustment(t.Context(), second, payer, "ADJ/2", true); (err == nil) != after || p.happened() != 1 {
			t.Errorf("after %v, decided: %v", after, err)
		}
		if b, err := s.DecideAdjustment(t.Context(), second, payer, "ADJ/2", true); err != nil || b.State != store.Posted {
			t.Errorf("after %v, decided again: %+v, %v", after, b, err)
		}
		wantBalance(t, truth, 23_000, 0)
		if n := count(t, url, "SELECT count(*) FROM audit"); n != 4 {
			t.Errorf("after %v: %d audit entries of four actions", after, n)
		}
		wantClean(t, truth)
	}
}
