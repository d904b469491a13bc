package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// TestCollectionIsPaid tells the contract's answers from the creation to the payment,
// beside sales of the same amount.
func TestCollectionIsPaid(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	first, m := w.sell("INV/1", 10_000), w.stored("INV/1")
	code := int64(m.Amount) - 10_000
	want := fmt.Sprintf(`{"external_id":"INV/1","qr_string":"QR-%d","amount":%d,"base_amount":10000,"random_code":%d,"status":"PENDING","remaining_quota":41}`,
		m.Amount, m.Amount, code)
	if first.data != want || code < 1 || code > movement.SmallCodes {
		t.Errorf("answered %s %v\nwant %s", first.data, first.err, want)
	}
	if again := w.sell("INV/1", 10_000); again.data != first.data || !again.replayed {
		t.Errorf("replayed as %s", again.data)
	}
	if m.ExpiresAt.Sub(m.CreatedAt) != 30*time.Minute {
		t.Errorf("it lives %v", m.ExpiresAt.Sub(m.CreatedAt))
	}
	others := []movement.Movement{w.sold("INV/2", 10_000), w.sold("INV/3", 10_000)}
	want = fmt.Sprintf(`{"external_id":"INV/1","status":"PENDING","amount":%d,"paid_at":null,"remaining_quota":41}`, m.Amount)
	if s := w.status("INV/1"); s.data != want {
		t.Errorf("status %s\nwant %s", s.data, want)
	}
	w.pass(4 * time.Minute)
	at := w.now()
	w.up.write(paid("r1", m.Amount, at), paid("foreign", 123, at))
	w.pass(readEvery)
	want = fmt.Sprintf(`{"external_id":"INV/1","status":"PAID","amount":%d,"paid_at":%q,"remaining_quota":41}`, m.Amount, lifecycle.Stamp(at))
	if s := w.status("INV/1"); s.data != want {
		t.Errorf("status %s %v\nwant %s", s.data, s.err, want)
	}
	w.wantTold("wallet2.status_update INV/1 PAID")
	for _, other := range others {
		if now := w.stored(other.Reference); now.State != movement.Pending {
			t.Errorf("%s is %s", other.Reference, now.State)
		}
	}
	if s := w.line("foreign"); s.State != movement.LineUnmatched {
		t.Errorf("a foreign payment is %s", s.State)
	}
	if s := w.sell("INV/1", 10_000); s.data != first.data {
		t.Errorf("replayed after the end as %s", s.data)
	}
	w.wantListed()
}

// TestStatementIsReadOnceInItsInterval asks for many states at once.
func TestStatementIsReadOnceInItsInterval(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	for i := range 5 {
		w.sold(fmt.Sprint(i), 10_000)
	}
	for range 3 {
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() { w.status(fmt.Sprint(i)) })
		}
		all.Wait()
		w.pass(readEvery)
	}
	if w.up.reads != 3 {
		t.Errorf("the books were read %d times", w.up.reads)
	}
}

// TestOneStatementReadServesAllCollections: many open collections of one account cost
// no more reads than one.
func TestOneStatementReadServesAllCollections(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	const sales = 30
	for i := range sales {
		w.sold(fmt.Sprint(i), 10_000)
		w.work("0", 10*time.Second)
	}
	young := w.up.reads
	if young > sales*3 {
		t.Errorf("the books were read %d times in five minutes", young)
	}
	w.work("0", 5*time.Minute)
	before := w.up.reads
	w.work("0", 15*time.Minute)
	if reads := w.up.reads - before; reads < 3 || reads > 8 {
		t.Errorf("the books were read %d times in a quarter of an hour", reads)
	}
	m := w.stored("0")
	w.up.write(paid("r", m.Amount, w.now()))
	w.work("0", 5*time.Minute)
	if now := w.stored("0"); now.State != movement.Succeeded {
		t.Errorf("it is %s", now.State)
	}
}

// TestCollectionExpiresOnlyWhenStatementIsComplete: a collection expires once the
// statement is complete beyond its life, and not before. A payment of its last second
// pays it.
func TestCollectionExpiresOnlyWhenStatementIsComplete(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for name, c := range map[string]struct {
		rows func(w *world, m movement.Movement)
		want movement.State
	}{
		"never paid":              {func(*world, movement.Movement) {}, movement.Expired},
		"paid at the last second": {func(w *world, m movement.Movement) { w.up.write(paid("r", m.Amount, m.ExpiresAt)) }, movement.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCollections(t, s)
			m := w.sold("INV/1", 10_000)
			w.work("INV/1", 90*time.Minute)
			if now := w.stored("INV/1"); now.State != movement.Pending {
				t.Fatalf("it is %s before the books are complete", now.State)
			}
			w.up.set(func() { w.up.through = m.ExpiresAt }) // up to it, and not beyond
			w.work("INV/1", time.Hour)
			if now := w.stored("INV/1"); now.State != movement.Pending {
				t.Fatalf("it is %s before the books are complete", now.State)
			}
			c.rows(w, m)
			w.complete()
			w.work("INV/1", 24*time.Hour)
			if now := w.stored("INV/1"); now.State != c.want || now.FactID != map[bool]string{true: "r"}[c.want == movement.Succeeded] {
				t.Errorf("it is %s by %q, want %s", now.State, now.FactID, c.want)
			}
		})
	}
}

// TestLateMoney is paid after the life of its sale, and read before or after that
// has ended.
func TestLateMoney(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for _, early := range []bool{true, false} {
		t.Run(fmt.Sprint("read before the end ", early), func(t *testing.T) {
			t.Parallel()
			w := newCollections(t, s)
			m := w.sold("INV/1", 10_000)
			late := paid("late", m.Amount, m.ExpiresAt.Add(10*time.Minute))
			if early {
				w.up.write(late)
			}
			w.work("INV/1", time.Hour)
			if now := w.stored("INV/1"); now.State != movement.Pending {
				t.Fatalf("it is %s", now.State)
			}
			w.complete()
			w.work("INV/1", time.Hour)
			if !early {
				w.up.write(late, late) // a duplicate
				w.work("INV/1", 24*time.Hour)
			}
			now := w.stored("INV/1")
			if now.State != movement.Expired || !now.PaidLateAt.Equal(late.At) || !now.PaidAt.IsZero() {
				t.Errorf("it is %s, paid late at %v", now.State, now.PaidLateAt)
			}
			w.wantTold("wallet2.paid_late INV/1 EXPIRED", "wallet2.status_update INV/1 EXPIRED")
			w.wantListed(movement.ReasonPaidLate)
			if p := w.line("late"); p.State != movement.LinePaid || p.Movement != m.ID {
				t.Errorf("the payment %+v", p)
			}
		})
	}
}

// TestStatementLinesInAnyOrder: a payment told twice, taken back, or told otherwise, in
// any order, is applied once.
func TestStatementLinesInAnyOrder(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	const announced, returned = "wallet2.status_update INV/1 PAID", "wallet2.returned INV/1 FAILED"
	for name, c := range map[string]struct {
		rows   func(pay, back sdk.StatementLine) [][]sdk.StatementLine // one look at a time
		state  movement.State
		told   []string
		listed []string
	}{
		"told twice": {func(pay, _ sdk.StatementLine) [][]sdk.StatementLine { return [][]sdk.StatementLine{{pay, pay}, {pay}} }, movement.Succeeded, []string{announced}, nil},
		"taken back": {func(pay, back sdk.StatementLine) [][]sdk.StatementLine {
			return [][]sdk.StatementLine{{pay}, {back}, {pay, back}}
		},
			movement.Succeeded, []string{returned, announced}, []string{movement.ReasonReturned}},
		"taken back at once": {func(pay, back sdk.StatementLine) [][]sdk.StatementLine { return [][]sdk.StatementLine{{pay, back}} }, movement.Pending, nil, nil},
		"taken back before":  {func(pay, back sdk.StatementLine) [][]sdk.StatementLine { return [][]sdk.StatementLine{{back}, {pay}} }, movement.Pending, nil, nil},
		"paid once more": {func(pay, _ sdk.StatementLine) [][]sdk.StatementLine {
			more := paid("r2", pay.Amount, pay.At.Add(time.Second))
			return [][]sdk.StatementLine{{more, pay}}
		}, movement.Succeeded, []string{announced}, []string{movement.ReasonPaidAgain}},
		"told otherwise at once": {func(pay, _ sdk.StatementLine) [][]sdk.StatementLine {
			other := pay
			other.Amount++
			return [][]sdk.StatementLine{{pay, other}}
		}, movement.Pending, nil, []string{movement.ReasonAmbiguous}},
		"told otherwise later": {func(pay, _ sdk.StatementLine) [][]sdk.StatementLine {
			other := pay
			other.Amount++
			return [][]sdk.StatementLine{{pay}, {other}, {other}}
		}, movement.Succeeded, []string{announced}, []string{movement.ReasonAmount}},
		"in dollars": {func(pay, _ sdk.StatementLine) [][]sdk.StatementLine {
			pay.Currency = "USD"
			return [][]sdk.StatementLine{{pay}}
		}, movement.Pending, nil, []string{movement.ReasonUnmatched}},
		"without a name": {func(pay, _ sdk.StatementLine) [][]sdk.StatementLine {
			pay.ID, pay.Reference = strings.Repeat("x", 300)+"\n", ""
			return [][]sdk.StatementLine{{pay}, {pay}}
		}, movement.Succeeded, []string{announced}, nil},
		"without a time": {func(pay, _ sdk.StatementLine) [][]sdk.StatementLine {
			pay.At = time.Time{}
			return [][]sdk.StatementLine{{pay}}
		}, movement.Pending, nil, nil},
		"before it was made": {func(pay, _ sdk.StatementLine) [][]sdk.StatementLine {
			pay.At = pay.At.Add(-time.Hour)
			return [][]sdk.StatementLine{{pay}}
		}, movement.Pending, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCollections(t, s)
			m := w.sold("INV/1", 10_000)
			w.pass(time.Minute)
			for _, rows := range c.rows(paid("r1", m.Amount, w.now()), back("r1", m.Amount, w.now().Add(time.Minute))) {
				w.up.write(rows...)
				w.pass(readEvery)
				other := w.sold(fmt.Sprint("look ", len(w.up.rows)), 99_000) // whose status is a look at the books
				w.status(other.Reference)
			}
			if now := w.stored("INV/1"); now.State != c.state {
				t.Errorf("it is %s, want %s", now.State, c.state)
			}
			w.wantTold(c.told...)
			w.wantListed(c.listed...)
		})
	}
}

// TestTwoCandidates has one payment that may be late for one sale, or of a skewed
// clock for the next with this amount.
func TestTwoCandidates(t *testing.T) {
	t.Parallel()
	op := operationIn(collections.catalog(), collectPath)
	w := newCollections(t, keeperFor(t))
	old := w.sold("old", 10_000)
	w.work("old", time.Hour)
	w.complete()
	w.work("old", time.Hour)
	free := old.ExpiresAt.Add(op.Rules.Quarantine)
	w.pass(free.Sub(w.now()))
	var next movement.Movement
	for i := range 400 { // until the amount is drawn again
		if m := w.sold(fmt.Sprint("next ", i), 10_000); m.Amount == old.Amount {
			next = m
			break
		}
	}
	if next.ID == (movement.ID{}) {
		t.Fatal("the amount never became free")
	}
	w.up.write(paid("r", old.Amount, next.CreatedAt.Add(-10*time.Second)))
	w.pass(readEvery)
	w.status(next.Reference)
	if p := w.line("r"); p.State != movement.LineAmbiguous {
		t.Errorf("the payment is %s", p.State)
	}
	w.wantListed(movement.ReasonAmbiguous)
	if now := w.stored(next.Reference); now.State != movement.Pending {
		t.Errorf("a guess: %s", now.State)
	}
	// The operator knows.
	assigned, err := w.Assign(t.Context(), Assignment{Account: w.wallet, Payment: "r", Movement: next.ID, Operator: "ani", Reason: "the payer showed it"})
	if err != nil || assigned.State != movement.Succeeded || assigned.FactID != "r" {
		t.Errorf("assigned: %s, %v", assigned.State, err)
	}
	if _, err := w.Assign(t.Context(), Assignment{Account: w.wallet, Payment: "r", Movement: old.ID, Operator: "ani", Reason: "no"}); err == nil {
		t.Error("one payment was given to two sales")
	}
}

// TestLineTimedBeforeItsCollection: statements whose clock or time zone is wrong tell times before
// the sale was made. Such a line pays nothing, and is an exception once the sale has ended
// unpaid; where another line has paid the sale it is none. Nor is the same amount in another
// currency passed over.
func TestLineTimedBeforeItsCollection(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for name, c := range map[string]struct {
		before   time.Duration
		currency string
		paid     bool
		state    movement.State
		listed   []string
	}{
		"of another time zone":           {7 * time.Hour, "IDR", false, movement.Expired, []string{movement.ReasonUnmatched}},
		"a little more than clocks may":  {movement.Skew + time.Second, "IDR", false, movement.Expired, []string{movement.ReasonUnmatched}},
		"beside the payment of the sale": {7 * time.Hour, "IDR", true, movement.Succeeded, nil},
		"of long before":                 {25 * time.Hour, "IDR", false, movement.Expired, nil},
		"in another currency":            {-time.Minute, "USD", false, movement.Expired, []string{movement.ReasonUnmatched}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCollections(t, s)
			m := w.sold("A", 10_000)
			odd := paid("odd", m.Amount, m.CreatedAt.Add(-c.before))
			odd.Currency = c.currency
			w.up.write(odd)
			w.pass(time.Minute)
			w.readStatement()
			if c.currency == "IDR" {
				w.wantListed() // it may be paid still
			}
			if c.paid {
				w.up.write(paid("p", m.Amount, w.now()))
				w.pass(time.Minute)
				w.readStatement()
			}
			w.pass(time.Hour)
			w.complete()
			w.work("A", time.Hour)
			if now, line := w.stored("A"), w.line("odd"); now.State != c.state || line.State != movement.LineUnmatched {
				t.Errorf("the sale is %s, the line %s", now.State, line.State)
			}
			w.wantListed(c.listed...)
		})
	}
}

// TestDisconnectedAccountIsPolledSeldom: the statement of a disconnected account is
// due hourly after a day, and its collections are exceptions.
func TestDisconnectedAccountIsPolledSeldom(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	m := w.sold("A", 10_000)
	w.reconnected(nil)
	w.readStatement()
	if s := w.statement(); !s.DueAt.After(w.now().Add(readEvery - time.Second)) {
		t.Errorf("it is due again at %v", s.DueAt)
	}
	w.wantListed(movement.ReasonUnresolved)
	w.pass(24 * time.Hour)
	w.readStatement()
	if s := w.statement(); !s.DueAt.Equal(w.now().Add(time.Hour)) || w.up.reads != 0 {
		t.Errorf("it is due again at %v, was read %d times", s.DueAt, w.up.reads)
	}
	if now := w.stored("A"); now.State != movement.Pending {
		t.Errorf("%s is %s", m.Reference, now.State)
	}
}

// TestStatementIsReadAgainSoonDuringACreation when its account is read has it read again soon.
func TestStatementIsReadAgainSoonDuringACreation(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	w.up.way = way{says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}
	w.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.StatusUpdate{} }
	w.sell("A", 50_000)
	w.readStatement()
	if s := w.statement(); s.DueAt.After(w.now().Add(2*readEvery)) || w.stored("A").State != movement.Submitting {
		t.Errorf("it is due again at %v, and the sale is %s", s.DueAt, w.stored("A").State)
	}
}

// TestOneStatementReadEndsAllCollections: one read expires a thousand collections,
// each with one callback.
func TestOneStatementReadEndsAllCollections(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	const sales = 1000
	var all []movement.Movement
	for i := range sales {
		all = append(all, w.sold(fmt.Sprint(i), int64(10_000+1000*(i%5))))
	}
	w.work("0", 29*time.Minute)
	w.up.write(paid("r", all[7].Amount, w.now()))
	w.complete()
	w.work("0", 10*time.Second)
	reads := w.up.reads
	w.pass(30 * time.Minute)
	w.complete()
	w.readStatement()
	if n := w.up.reads - reads; n > 2 {
		t.Errorf("the books were read %d times", n)
	}
	for i, m := range all {
		want := movement.Expired
		if i == 7 {
			want = movement.Succeeded
		}
		if now := w.stored(m.Reference); now.State != want || !now.PolledAt.IsZero() || !now.DueAt.IsZero() {
			t.Fatalf("%s is %s, polled at %v, due at %v", m.Reference, now.State, now.PolledAt, now.DueAt)
		}
	}
	if told := len(w.told()); told != sales {
		t.Errorf("%d are told", told)
	}
	if s := w.statement(); !s.DueAt.After(w.now().Add(4 * time.Minute)) {
		t.Errorf("it is due again at %v", s.DueAt)
	}
}

// TestLateMoneyIsAssigned gives what came late for one sale to the one that was
// made in its place.
func TestLateMoneyIsAssigned(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	first := w.sold("first", 10_000)
	w.complete()
	w.work("first", time.Hour)
	w.complete()
	w.work("first", time.Hour)
	w.up.write(paid("late", first.Amount, first.ExpiresAt.Add(time.Minute)))
	w.work("first", time.Hour)
	second := w.sold("second", 10_000)
	for _, c := range []struct {
		payment string
		to      movement.ID
		want    fault.Code
	}{
		{"nobody's", second.ID, fault.NotFound}, {"late", movement.NewID(), fault.NotFound}, {"late", second.ID, ""}, {"late", first.ID, fault.DuplicateReference},
	} {
		_, err := w.Assign(t.Context(), Assignment{Account: w.wallet, Payment: c.payment, Movement: c.to, Operator: "ani", Reason: "made anew"})
		if f, _ := errors.AsType[*fault.Error](err); (c.want == "") != (err == nil) || err != nil && f.Code != c.want {
			t.Errorf("%s: %v, want %s", c.payment, err, c.want)
		}
	}
	if now := w.stored("second"); now.State != movement.Succeeded || now.FactID != "late" {
		t.Errorf("the second is %s", now.State)
	}
	w.wantTold("wallet2.paid_late first EXPIRED", "wallet2.status_update first EXPIRED", "wallet2.status_update second PAID")
	if p := w.line("late"); p.Movement != second.ID || p.Operator != "ani" {
		t.Errorf("%+v", p)
	}
}

// TestOnlyStatementEndsACollection: a lookup that says done, expired or failed is an
// exception.
func TestOnlyStatementEndsACollection(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for _, standing := range []sdk.Status{sdk.StatusDone, sdk.StatusExpired, sdk.StatusFailed} {
		w := newCollections(t, s)
		w.up.way = way{says: saying(sdk.DontKnow(sdk.BlameNone, "crashed"))}
		w.up.find = func(l sdk.Lookup) sdk.StatusUpdate {
			return sdk.StatusUpdate{Reference: l.Reference, Status: standing, Amount: l.Amount, Currency: "IDR", EventID: "e"}
		}
		if got := w.sell("INV/1", 10_000); got.word() != "PROVIDER_TIMEOUT unknown lookup_first" {
			t.Errorf("%s: %s", standing, got.word())
		}
		if m := w.stored("INV/1"); m.State != movement.Submitting {
			t.Errorf("%s: it is %s", standing, m.State)
		}
		w.wantListed(movement.ReasonContradiction)
	}
}

// TestNoFreeAmountIsInProgress is the documented answer.
func TestNoFreeAmountIsInProgress(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	for i := range movement.MostCodes {
		w.sold(fmt.Sprint(i), 10_000)
	}
	got := w.sell("one more", 10_000)
	if got.word() != "IN_PROGRESS no later" || got.err.RetryAt.IsZero() {
		t.Errorf("%s %+v", got.word(), got.err)
	}
	if again := w.sell("7", 10_000); again.word() != "PENDING" || !again.replayed {
		t.Errorf("a replay: %s", again.word())
	}
}

// TestPaidAmountIsFreeAfterTenMinutes: all amounts of a wallet are reserved. Ten
// minutes after one is paid another collection has it, and each line pays the right
// one.
func TestPaidAmountIsFreeAfterTenMinutes(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	for i := range movement.MostCodes {
		w.sold(fmt.Sprint(i), 10_000)
	}
	first := w.stored("7")
	w.pass(time.Minute)
	w.up.write(paid("first", first.Amount, w.now()))
	w.pass(readEvery)
	if s := w.status("7"); !strings.Contains(s.data, `"PAID"`) {
		t.Fatalf("status %s", s.data)
	}
	w.pass(movement.FreeAfterPaid - time.Second)
	if got := w.sell("too soon", 10_000); got.word() != "IN_PROGRESS no later" {
		t.Errorf("%s", got.word())
	}
	w.pass(time.Second)
	next := w.sold("next", 10_000)
	if next.Amount != first.Amount {
		t.Errorf("it has %v, want %v", next.Amount, first.Amount)
	}
	w.pass(time.Minute)
	w.up.write(paid("again", first.Amount, next.CreatedAt.Add(-3*time.Minute)))
	w.pass(readEvery)
	w.status("next")
	if p, now := w.line("again"), w.stored("next"); p.State != movement.LineAgain || now.State != movement.Pending {
		t.Errorf("the second payment of the first is %s, the next sale %s", p.State, now.State)
	}
	w.up.write(paid("next", first.Amount, w.now()))
	w.pass(readEvery)
	w.status("next")
	if now := w.stored("next"); now.State != movement.Succeeded || now.FactID != "next" {
		t.Errorf("the next is %s by %q", now.State, now.FactID)
	}
	w.wantListed(movement.ReasonPaidAgain)
}

// TestConnectionSetsTheQuarantine: a connection says how late its lines may be, and so
// how long amounts stay reserved.
func TestConnectionSetsTheQuarantine(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for late, quarantine := range map[string]time.Duration{"": 130 * time.Minute, "15m": 25 * time.Minute, "9h": 130 * time.Minute, "soon": 130 * time.Minute} {
		w := newCollections(t, s)
		connections := w.account.Connections()
		connections[0].Sealed = []byte(strings.Replace(string(connections[0].Sealed), "{", `{"reports_late":"`+late+`",`, 1))
		w.reconnected(connections)
		for i := range movement.MostCodes {
			w.sold(fmt.Sprint(i), 10_000)
		}
		full := w.sell("one more", 10_000)
		m := w.stored("0")
		if want := m.ExpiresAt.Add(quarantine); full.err == nil || full.err.RetryAt.Sub(want).Abs() > time.Second {
			t.Errorf("%q: %+v, want %v", late, full.err, want)
		}
	}
}

// TestUnreadableStatementIsOneException: a statement that can not be read ends no
// collection, and is listed once.
func TestUnreadableStatementIsOneException(t *testing.T) {
	t.Parallel()
	w := newCollections(t, keeperFor(t))
	m := w.sold("INV/1", 10_000)
	w.up.statement = func(sdk.Statement, sdk.StatementPage) sdk.StatementPage {
		return sdk.NoStatement(sdk.BlameNone, "the plugin is away")
	}
	w.work("INV/1", time.Minute)
	w.wantListed()
	w.up.statement = func(sdk.Statement, sdk.StatementPage) sdk.StatementPage {
		return sdk.NoStatement(sdk.BlameAccount, "reports/day-1.csv, line 1: no column amount")
	}
	w.work("INV/1", 23*time.Hour)
	if now := w.stored("INV/1"); now.State != movement.Pending {
		t.Errorf("it is %s", now.State)
	}
	w.wantListed(movement.ReasonStatement)
	w.up.set(func() { w.up.statement = nil })
	w.up.write(paid("r", m.Amount, m.CreatedAt.Add(time.Minute)))
	w.work("INV/1", 24*time.Hour)
	if now := w.stored("INV/1"); now.State != movement.Succeeded {
		t.Errorf("it is %s", now.State)
	}
}

// TestPagesAndReplicas reads long books in small pages, on two replicas at once.
func TestPagesAndReplicas(t *testing.T) {
	t.Parallel()
	stores := replicasFor(t, 2)
	w := newCollections(t, stores[0])
	w.up.page = 7
	other := w.replica(&faulty{keeper: stores[1]})
	const sales = 60
	for i := range sales {
		m := w.sold(fmt.Sprint(i), 10_000)
		w.up.write(paid(fmt.Sprint("r", i), m.Amount, w.now()), paid(fmt.Sprint("f", i), 500, w.now()))
	}
	var all sync.WaitGroup
	for i := range sales {
		for _, replica := range []*Engine{w.Engine, other} {
			all.Go(func() {
				if i%10 == 0 {
					w.pass(readEvery)
				}
				w.runOn(replica, w.asks(collectedPath, "external_id", fmt.Sprint(i)))
			})
		}
	}
	all.Wait()
	w.pass(readEvery)
	w.status("0")
	for i := range sales {
		if m := w.stored(fmt.Sprint(i)); m.State != movement.Succeeded || m.FactID != fmt.Sprint("r", i) {
			w.status(fmt.Sprint(i))
			t.Errorf("sale %d is %s by %q, then %s", i, m.State, m.FactID, w.stored(fmt.Sprint(i)).State)
		}
	}
	if told := w.events(); len(told) != sales || len(slices.Compact(told)) != sales {
		t.Errorf("%d events", len(told))
	}
	w.wantListed()
}
