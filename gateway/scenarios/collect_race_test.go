package scenarios

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// slowStatement answers once it is let.
type slowStatement struct {
	*upstream
	asking, let chan struct{}
}

func (s *slowStatement) Statement(ctx context.Context, provider string, asked sdk.Statement, within time.Duration) sdk.StatementPage {
	close(s.asking)
	select {
	case <-ctx.Done():
		return sdk.NoStatement(sdk.BlameNone, "cut")
	case <-s.let:
		return s.upstream.Statement(ctx, provider, asked, within)
	}
}

// wantWithin waits for what must come, with time enough.
func wantWithin[T any](t testing.TB, comes <-chan T, what string) (got T) {
	t.Helper()
	select {
	case got = <-comes:
	case <-time.After(30 * time.Second):
		t.Fatal("waited in vain: " + what)
	}
	return got
}

// TestStatementReadSurvivesClientDisconnect: a client that disconnects stops waiting
// for the statement. The read goes on, and applies what it finds.
func TestStatementReadSurvivesClientDisconnect(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	m := w.sold("INV/1", 10_000)
	w.up.write(paid("r", m.Amount, w.now()))
	slow := &slowStatement{upstream: w.up, asking: make(chan struct{}), let: make(chan struct{})}
	w.readsFrom(slow, w.faults)
	settled := make(chan struct{})
	w.faults.at = func(step string) {
		if step == "after close" {
			close(settled)
		}
	}
	w.pass(readEvery)
	impatient, leave := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		gone <- w.ReadStatement(impatient, w.statement())
	}()
	wantWithin(t, slow.asking, "the question")
	leave()
	if err := wantWithin(t, gone, "the end of its patience"); !errors.Is(err, context.Canceled) {
		t.Errorf("it goes on waiting: %v", err)
	}
	close(slow.let)
	wantWithin(t, settled, "what is found is settled")
	if now := w.stored("INV/1"); now.State != movement.Succeeded {
		t.Errorf("it is %s", now.State)
	}
}

// TestMoneyForWhatHadLateMoney: a collection whose late money an operator has given
// to another gets no second one by a guess.
func TestMoneyForWhatHadLateMoney(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	old := w.sold("INV/1", 10_000)
	w.work("INV/1", time.Hour)
	w.complete()
	w.work("INV/1", time.Hour)
	w.up.write(paid("first", old.Amount, old.ExpiresAt.Add(time.Minute)))
	w.work("INV/1", time.Hour)
	next := w.sold("INV/2", 10_000)
	assign := Assignment{Account: w.wallet, Payment: "first", Movement: next.ID, Operator: "ani", Reason: "the payer showed it"}
	for range 2 { // once more changes nothing
		if got, err := w.Assign(t.Context(), assign); err != nil || got.State != movement.Succeeded {
			t.Fatal(got.State, err)
		}
	}
	w.up.write(paid("second", old.Amount, old.ExpiresAt.Add(2*time.Minute)))
	w.readStatement()
	if second := w.line("second"); second.State != movement.LineAgain {
		t.Errorf("the second is %s", second.State)
	}
	w.wantTold("wallet2.paid_late INV/1 EXPIRED", "wallet2.status_update INV/1 EXPIRED", "wallet2.status_update INV/2 PAID")
	story, err := w.keeper.History(t.Context(), old.ID)
	if err != nil || story[len(story)-1].Event != "given_away" {
		t.Errorf("the story says %+v, %v", story, err)
	}
	if again := w.line("first"); again.Operator != "ani" || again.Movement != next.ID {
		t.Errorf("it is %+v", again)
	}
}

// TestAnAssignmentSurvives: an assignment whose process dies at one of its commits is
// applied once by the next read, or when it is given again.
func TestAnAssignmentSurvives(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for _, dies := range []string{"before assign", "after assign", "before late", "after late", "before close", "after close"} {
		t.Run(dies, func(t *testing.T) {
			t.Parallel()
			w := newCollections(t, s)
			m := w.sold("INV/1", 10_000)
			w.work("INV/1", time.Hour)
			w.complete()
			w.work("INV/1", time.Hour)
			w.up.write(paid("r", m.Amount+1, m.CreatedAt)) // nobody's
			w.readStatement()
			if stray := w.line("r"); stray.State != movement.LineUnmatched {
				t.Fatalf("it is %s", stray.State)
			}
			given := Assignment{Account: w.wallet, Payment: "r", Movement: m.ID, Operator: "ani", Reason: "the payer showed it"}
			reached := false
			w.faults.at = func(step string) {
				if step == dies {
					reached = true
					panic(crash{})
				}
			}
			if died := w.dies(func() { _, _ = w.Assign(t.Context(), given) }); !died || !reached {
				t.Fatal("it has not died")
			}
			w.restart()
			w.readStatement()
			if _, err := w.Assign(t.Context(), given); err != nil {
				t.Error(err)
			}
			if now := w.stored("INV/1"); now.State != movement.Expired || now.PaidLateAt.IsZero() {
				t.Errorf("it is %s, paid late at %v", now.State, now.PaidLateAt)
			}
			w.wantTold("wallet2.paid_late INV/1 EXPIRED", "wallet2.status_update INV/1 EXPIRED")
		})
	}
}

// TestUnsentCollectionReservesNoAmount: creations that were proven unsent give their
// amounts back.
func TestUnsentCollectionReservesNoAmount(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	w.up.set(func() {
		w.up.way = way{says: saying(sdk.DidNotSend(sdk.BlameAccount, "no such code"))}
	})
	for range movement.MostCodes + 1 {
		if s := w.sell("INV/1", 10_000); s.word() != notSentLater {
			t.Fatal(s.word(), s.err)
		}
	}
}

// TestPaymentsOfManyDaysFindTheirCollections: payments of several days are matched day
// by day.
func TestPaymentsOfManyDaysFindTheirCollections(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	var sales []movement.Movement
	for _, reference := range []string{"1", "2", "3", "4"} {
		m := w.sold(reference, 10_000)
		sales = append(sales, m)
		w.up.write(paid("r"+reference, m.Amount, w.now()))
		w.pass(20 * time.Hour)
	}
	w.up.write(paid("ancient", sales[0].Amount, time.Unix(0, 0)), paid("far ahead", sales[1].Amount, w.now().Add(90*365*24*time.Hour)))
	w.readStatement()
	for i, m := range sales {
		if now := w.stored(m.Reference); now.State != movement.Succeeded || now.FactID != "r"+m.Reference {
			t.Errorf("sale %d is %s by %q", i, now.State, now.FactID)
		}
	}
	for _, stray := range []string{"ancient", "far ahead"} {
		if got := w.line(stray); got.State != movement.LineUnmatched {
			t.Errorf("%s is %s", stray, got.State)
		}
	}
}
