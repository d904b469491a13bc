package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// TestPaymentShownPendingFailsWhenUnsent: a payment that a status has shown as PENDING and that was
// never sent has FAILED, which is told, and its reference is spent.
func TestPaymentShownPendingFailsWhenUnsent(t *testing.T) {
	t.Parallel()
	for name, proven := range map[string]func(w *world){
		"not found twice": func(w *world) { w.work("A", 5*time.Minute) },
		"not sent, says a slow call": func(w *world) {
			m := w.stored("A")
			_, err := w.Engine.Apply(w.Context(), operation(createPath), m, movement.Fact{Source: movement.FromCall, Says: movement.SaysNotSent})
			if err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.unanswered("A")
				w.pass(15 * time.Second)
				w.want(w.status("A"), "PENDING")
				if m := w.stored("A"); m.State != movement.Acknowledged || m.Answered() {
					t.Fatalf("shown, it is %s with the answer %s", m.State, m.Answer)
				}
				w.want(w.create("A"), timedOut)
				proven(w)
				w.want(w.status("A"), "FAILED")
				w.want(w.cancel("A"), "FAILED")
				s := w.create("A")
				w.want(s, "PROVIDER_REJECTED no never")
				if s.err != nil && !strings.Contains(s.err.Message, "reference stays used") {
					t.Errorf("its reference: %s", s.err.Message)
				}
				w.wantTold("payments.status_update FAILED")
				if _, calls := w.up.made(); calls != 1 {
					t.Errorf("called %d times", calls)
				}
			})
		})
	}
}

// TestShownPaymentIsAnswered: what was shown as PENDING before its creation was
// answered is answered as any other, with what there is to pay.
func TestShownPaymentIsAnswered(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.up.way, w.up.find = wayNamed("unknown, made"), blind
		w.want(w.create("A"), timedOut)
		w.pass(15 * time.Second)
		w.want(w.status("A"), "PENDING")
		w.up.find = nil
		w.pass(lookEvery)
		s := w.create("A")
		w.want(s, "PENDING")
		if !strings.Contains(s.data, "checkout_url") {
			t.Errorf("answered %s", s.data)
		}
	})
}

// TestCollectionShownPendingFailsWhenUnsent is the same of a sale, whose amount is free at once.
func TestCollectionShownPendingFailsWhenUnsent(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	w.up.way = way{says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}
	w.up.find = missing
	if s := w.sell("A", 50_000); s.word() != timedOut {
		t.Fatal(s.word())
	}
	w.pass(15 * time.Second)
	if s := w.status("A"); s.word() != "PENDING" || w.stored("A").State != movement.Acknowledged {
		t.Fatal(s.word(), w.stored("A").State)
	}
	w.work("A", 5*time.Minute)
	if s := w.status("A"); s.word() != "FAILED" {
		t.Error(s.word())
	}
	if s := w.sell("A", 50_000); s.word() != "PROVIDER_REJECTED no never" || !strings.Contains(s.err.Message, "reference stays used") {
		t.Error(s.word(), s.err)
	}
	w.wantTold("wallet2.status_update A FAILED")
}
