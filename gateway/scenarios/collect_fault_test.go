package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// deaf is a store that can't move one sale on.
type deaf struct {
	keeper
	reference string
}

var errDeaf = broken{errors.New("it can't be told")}

func (d *deaf) Apply(ctx context.Context, c movement.Change) (bool, error) {
	if c.Movement.Reference == d.reference && c.To == movement.Succeeded {
		return false, errDeaf
	}
	return d.keeper.Apply(ctx, c)
}

// TestOneFailingCollectionDelaysNoOther: one collection can not be told that it is
// paid, and more lines than a page wait behind it. All others are paid or expire. That
// one does not expire.
func TestOneFailingCollectionDelaysNoOther(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	poor, last, unpaid := w.sold("poor", 10_000), w.sold("last", 20_000), w.sold("unpaid", 30_000)
	at := w.now().Add(time.Minute)
	w.up.write(paid("a", poor.Amount, at))
	for i := range pageSize {
		w.up.write(paid(fmt.Sprintf("b%04d", i), unpaid.Amount, unpaid.ExpiresAt.Add(time.Minute)))
	}
	w.up.write(paid("c", last.Amount, at))
	stuck := &deaf{w.faults, "poor"}
	w.Store = stuck
	w.pass(time.Hour)
	w.complete()
	for _, reference := range []string{"last", "unpaid"} {
		if err := w.Resolve(t.Context(), w.stored(reference)); err != nil {
			t.Errorf("%s: %v", reference, err)
		}
	}
	if err := w.Resolve(t.Context(), w.stored("poor")); !errors.Is(err, errDeaf) {
		t.Errorf("the poor one: %v", err)
	}
	for reference, want := range map[string]movement.State{"poor": movement.Pending, "last": movement.Succeeded, "unpaid": movement.Expired} {
		if now := w.stored(reference); now.State != want {
			t.Errorf("%s is %s, want %s", reference, now.State, want)
		}
	}
	stuck.reference = ""
	w.pass(readEvery)
	w.status(unpaid.Reference)
	w.pass(readEvery)
	w.status("poor")
	if now := w.stored("poor"); now.State != movement.Succeeded || now.FactID != "a" {
		t.Errorf("the poor one is %s", now.State)
	}
}

// TestLateMoneyIsTakenBack: late money that goes back is a return where the merchant
// was told of it, and nothing where not.
func TestLateMoneyIsTakenBack(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for _, atOnce := range []bool{true, false} {
		w := newCollections(t, s)
		m := w.sold("INV/1", 10_000)
		w.work("INV/1", time.Hour)
		w.complete()
		w.work("INV/1", time.Hour)
		late, gone := paid("late", m.Amount, m.ExpiresAt.Add(time.Minute)), back("late", m.Amount, w.now())
		want := []string{"wallet2.paid_late INV/1 EXPIRED", "wallet2.returned INV/1 EXPIRED", "wallet2.status_update INV/1 EXPIRED"}
		if atOnce {
			w.up.write(late, gone)
			want = want[2:] // nobody was told of it
		} else {
			w.up.write(late)
		}
		w.work("INV/1", time.Hour)
		if !atOnce {
			w.up.write(gone, gone)
			w.readStatement()
			w.up.write(gone)
			w.readStatement()
		}
		w.wantTold(want...)
		if now := w.stored("INV/1"); now.State != movement.Expired || now.ReturnedAt.IsZero() != atOnce || now.PaidLateAt.IsZero() != atOnce {
			t.Errorf("it is %s, paid late at %v, taken back at %v", now.State, now.PaidLateAt, now.ReturnedAt)
		}
		if atOnce {
			w.wantListed()
		} else {
			w.wantListed(movement.ReasonPaidLate, movement.ReasonReturned)
		}
	}
}

// TestStatementIsReadForDaysAfterTheLastSale: a payment that appears days later is
// late money of its collection.
func TestStatementIsReadForDaysAfterTheLastSale(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	m := w.sold("INV/1", 10_000)
	w.work("INV/1", time.Hour)
	w.complete()
	w.work("INV/1", 72*time.Hour)
	if now := w.stored("INV/1"); now.State != movement.Expired || !now.DueAt.IsZero() {
		t.Fatalf("it is %s, due at %v", now.State, now.DueAt)
	}
	w.up.write(paid("late", m.Amount, m.CreatedAt.Add(time.Minute)), paid("foreign", 123, m.CreatedAt))
	reads := w.up.reads
	w.work("INV/1", 12*time.Hour)
	if n := w.up.reads - reads; n < 2 || n > 8 { // in twelve hours, and soon after lines came
		t.Errorf("the books were read %d times", n)
	}
	w.wantTold("wallet2.paid_late INV/1 EXPIRED", "wallet2.status_update INV/1 EXPIRED")
	w.wantListed(movement.ReasonPaidLate)
	if p := w.line("foreign"); p.State != movement.LineUnmatched {
		t.Errorf("the foreign payment is %s", p.State)
	}
}

// TestVeryLatePaymentIsLeftToOperators: a payment beyond the quarantine matches
// nothing. Its exception names the collection that it may be meant for, and an
// operator assigns it.
func TestVeryLatePaymentIsLeftToOperators(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	m := w.sold("INV/1", 10_000)
	w.work("INV/1", time.Hour)
	w.complete()
	w.work("INV/1", 30*time.Hour)
	w.up.write(paid("late", m.Amount, m.ExpiresAt.Add(20*time.Hour)), paid("later", m.Amount, m.ExpiresAt.Add(25*time.Hour)))
	w.readStatement()
	w.wantTold("wallet2.status_update INV/1 EXPIRED")
	w.wantListed(movement.ReasonUnmatched)
	listed, err := w.keeper.ExceptionsOf(t.Context(), m.Owner, "payment late")
	if err != nil || len(listed) != 1 || !strings.Contains(listed[0].Detail, m.ID.String()) {
		t.Errorf("the exception is %+v, %v", listed, err)
	}
	if _, err := w.Assign(t.Context(), Assignment{Account: w.wallet, Payment: "late", Movement: m.ID, Operator: "ani", Reason: "the payer showed it"}); err != nil {
		t.Fatal(err)
	}
	w.wantTold("wallet2.paid_late INV/1 EXPIRED", "wallet2.status_update INV/1 EXPIRED")
	w.wantListed(movement.ReasonPaidLate)
}

// leave takes the merchant's connection away, or changes it to another account.
func (w *world) leave(removed bool) {
	w.Helper()
	connections := w.account.Connections()
	for i := range connections {
		connections[i].Sealed = []byte(`{"merchant_code":"another"}`)
	}
	if removed {
		connections = nil
	}
	w.reconnected(connections)
}

// TestDisconnectedAccountIsReadNoMore: lines read before the merchant left the account
// are still applied. Collections that stay open become exceptions.
func TestDisconnectedAccountIsReadNoMore(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for _, removed := range []bool{true, false} {
		t.Run(fmt.Sprint("removed ", removed), func(t *testing.T) {
			t.Parallel()
			w := newCollections(t, s)
			paidInTime, takenBack, late := w.sold("paid", 10_000), w.sold("back", 20_000), w.sold("late", 30_000)
			at := w.now().Add(time.Minute)
			w.up.write(paid("p1", takenBack.Amount, at))
			w.pass(time.Minute)
			w.readStatement()
			w.up.write(paid("p2", paidInTime.Amount, at), back("p1", takenBack.Amount, at), paid("p3", late.Amount, late.ExpiresAt.Add(time.Minute)))
			w.faults.at = func(step string) {
				if step == "after import" {
					panic(crash{})
				}
			}
			if !w.dies(func() { w.readStatement() }) {
				t.Fatal("it did not end behind the import")
			}
			w.restart()
			w.leave(removed)
			reads := w.up.reads
			w.readStatement()
			w.wantTold("wallet2.returned back FAILED", "wallet2.status_update back PAID", "wallet2.status_update paid PAID")
			w.work("late", 20*time.Hour)
			w.wantListed(movement.ReasonReturned, movement.ReasonUnresolved)
			if p := w.line("p3"); p.State != movement.LineNew {
				t.Errorf("the late payment is %s before its time is over", p.State)
			}
			w.pass(5 * time.Hour)
			w.readStatement()
			w.wantListed(movement.ReasonReturned, movement.ReasonUnmatched, movement.ReasonUnresolved)
			if w.up.reads != reads {
				t.Errorf("the books were read %d times", w.up.reads-reads)
			}
			if p, m := w.line("p3"), w.stored("late"); p.State != movement.LineUnmatched || m.State != movement.Pending {
				t.Errorf("the late payment is %s, its sale %s", p.State, m.State)
			}
			if _, err := w.Assign(t.Context(), Assignment{Account: w.wallet, Payment: "p3", Movement: late.ID, Operator: "ani", Reason: "the payer showed it"}); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStatementOfRemovedProviderIsNotRead are not read.
func TestStatementOfRemovedProviderIsNotRead(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	w.sold("INV/1", 10_000)
	gone, err := w.keeper.Statement(t.Context(), w.wallet)
	if err != nil {
		t.Fatal(err)
	}
	gone.Provider = "no plugin"
	if err := w.ReadStatement(t.Context(), gone); err != nil || w.up.reads != 0 {
		t.Errorf("%v, %d reads", err, w.up.reads)
	}
}

// TestStatementCompleteInTheFutureEndsNothing: a statement that says to be complete
// until next year is complete until now, so a collection lives its whole life.
func TestStatementCompleteInTheFutureEndsNothing(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	w.up.set(func() { w.up.through = w.now().Add(365 * 24 * time.Hour) })
	w.sold("INV/1", 10_000)
	w.work("INV/1", 29*time.Minute)
	if now := w.stored("INV/1"); now.State != movement.Pending {
		t.Fatalf("it is %s in its life", now.State)
	}
	if b, err := w.keeper.Statement(t.Context(), w.wallet); err != nil || b.Through.After(w.now()) {
		t.Errorf("complete until %v at %v, %v", b.Through, w.now(), err)
	}
	w.up.set(func() { w.up.through = time.Time{} })
	b, err := w.keeper.Statement(t.Context(), w.wallet)
	if err != nil {
		t.Fatal(err)
	}
	next := w.sold("INV/2", 10_000)
	tomorrow := w.now().Add(24 * time.Hour) // as a replica has it whose clock is ahead
	if ok, err := w.keeper.Import(t.Context(), tomorrow, b, nil, b.Cursor, tomorrow); err != nil || !ok {
		t.Fatal(ok, err)
	}
	w.work("INV/2", 29*time.Minute)
	if now := w.stored("INV/2"); now.State != movement.Pending {
		t.Errorf("the next is %s at %v, and lives until %v", now.State, w.now(), next.ExpiresAt)
	}
}

// TestPartlyReversedPaymentIsAmbiguous: a payment of which a part went back is an
// exception, and pays nothing by itself.
func TestPartlyReversedPaymentIsAmbiguous(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	m := w.sold("INV/1", 10_000)
	at := w.now().Add(time.Minute)
	w.up.write(paid("r", m.Amount, at), back("r", 500, at.Add(time.Second)))
	w.pass(readEvery)
	w.status("INV/1")
	w.wantListed(movement.ReasonAmbiguous)
	if p := w.line("r"); p.State != movement.LineAmbiguous {
		t.Errorf("the payment is %s", p.State)
	}
	w.wantTold()
}

// TestPaymentWaitsForItsCollectionsCreation: a line that fits a collection whose
// creation is unknown waits until that is known.
func TestPaymentWaitsForItsCollectionsCreation(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for _, proven := range []bool{true, false} {
		w := newCollections(t, s)
		w.up.way = way{says: saying(sdk.DontKnow(sdk.BlameNone, "crashed"))}
		w.up.find = func(l sdk.Lookup) sdk.StatusUpdate { return sdk.NoStatus(sdk.BlameNone, "away") }
		w.sell("INV/1", 10_000)
		m := w.stored("INV/1")
		w.up.write(paid("r", m.Amount, m.CreatedAt.Add(time.Minute)))
		w.readStatement()
		if p, now := w.line("r"), w.stored("INV/1"); p.State != movement.LineNew || now.State != movement.Submitting {
			t.Fatalf("the payment is %s, the sale %s", p.State, now.State)
		}
		want := movement.LinePaid
		if w.up.set(func() { w.up.find = nil }); proven {
			want = movement.LineUnmatched
			w.up.set(func() {
				w.up.find = func(l sdk.Lookup) sdk.StatusUpdate {
					return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusNotFound}
				}
			})
		}
		w.work("INV/1", 10*time.Minute)
		w.readStatement()
		if p := w.line("r"); p.State != want {
			t.Errorf("proven never sent %v: the payment is %s, the sale %s", proven, p.State, w.stored("INV/1").State)
		}
	}
}

// TestClockAheadStopsNoStatementRead: a replica whose clock was a day ahead read the
// statement. The next one reads it all the same.
func TestClockAheadStopsNoStatementRead(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	m := w.sold("INV/1", 10_000)
	tomorrow := w.now().Add(24 * time.Hour)
	if ours, err := w.keeper.PollStatement(t.Context(), w.wallet, tomorrow, tomorrow, tomorrow); err != nil || !ours {
		t.Fatal(ours, err)
	}
	w.up.write(paid("r", m.Amount, w.now().Add(time.Second)))
	w.pass(readEvery)
	w.status("INV/1")
	if now := w.stored("INV/1"); now.State != movement.Succeeded {
		t.Errorf("it is %s", now.State)
	}
}

// TestAssignedPaymentWithoutATime: a payment without a time that an operator assigns
// was paid when it was assigned.
func TestAssignedPaymentWithoutATime(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	m := w.sold("INV/1", 10_000)
	row := paid("r", m.Amount, w.now())
	row.At = time.Time{}
	w.up.write(row)
	w.readStatement()
	if _, err := w.Assign(t.Context(), Assignment{Account: w.wallet, Payment: "r", Movement: m.ID, Operator: "ani", Reason: "seen at the till"}); err != nil {
		t.Fatal(err)
	}
	if now := w.stored("INV/1"); now.State != movement.Succeeded || !now.PaidAt.Equal(w.now().Truncate(time.Microsecond)) {
		t.Errorf("it is %s, paid at %v", now.State, now.PaidAt)
	}
}
