package scenarios

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

var silent = sdk.NoStatus(sdk.BlameUpstream, "no answer")

// unbought makes an order whose call never left, and that nobody answers for about.
func unbought(t *testing.T) *open {
	t.Helper()
	db := keeperFor(t)
	o := &open{store: db, shop: newShop(t, db, handClock())}
	o.world = o.shop.world
	o.decidesWith(db)
	o.shop.up.deal = deal{unmade: true, after: time.Minute, says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}
	o.want(o.shop.order("A"), "Pending")
	o.shop.up.find = func(sdk.Lookup) sdk.StatusUpdate { return silent }
	return o
}

// answers has the provider there again.
func (o *open) answers() { o.shop.up.set(func() { o.shop.up.find = nil }) }

// wantBought checks how often the order was really bought.
func (o *open) wantBought(times int) {
	o.Helper()
	m := o.stored("A")
	if got := o.shop.up.bought[m.UpstreamReference()]; got != times {
		o.Errorf("bought %d times, want %d", got, times)
	}
}

// gaveUp lets the time pass in which it may be bought, and a minute.
func (o *open) gaveUp() {
	o.Helper()
	m := o.stored("A")
	o.work("A", m.SendBy.Add(ordersOf(orderPath).Rules.BuysWithin+time.Minute).Sub(o.now()))
}

// resubmitted has two operators say that it is to be sent again.
func (o *open) resubmitted() {
	o.Helper()
	for _, operator := range []string{ayu, budi} {
		if d, err := o.says(operator, movement.OverrideResubmit); err != nil || d.Movement.State != movement.Acknowledged {
			o.Fatalf("%s: %+v, %v", operator, d, err)
		}
	}
}

// TestNothingIsBoughtLate: an order that no provider has confirmed is bought by a
// lookup for an hour after send_by, and not a moment later. The exception comes then,
// and not when it would have been polled next.
func TestNothingIsBoughtLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		after  time.Duration // the end of the hour
		bought int
	}{"just in time": {-time.Second, 1}, "a moment late": {0, 0}, "weeks late": {21 * 24 * time.Hour, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := unbought(t)
			ends := o.stored("A").SendBy.Add(time.Hour)
			o.pass(ends.Add(c.after).Sub(o.now()))
			o.answers()
			if err := o.Resolve(t.Context(), o.stored("A")); err != nil {
				t.Fatal(err)
			}
			o.wantBought(c.bought)
			if c.bought == 1 {
				if by := o.shop.up.sendBy; !by.Equal(ends) {
					t.Errorf("it may be sent until %v, want %v", by, ends)
				}
				return
			}
			o.want(o.shop.stateOf("A"), "Pending")
			if listed := o.listed(); !slices.Contains(listed, movement.ReasonUnresolved) {
				t.Errorf("listed %q", listed)
			}
			o.wantBought(0)
		})
	}
	t.Run("listed at once", func(t *testing.T) {
		t.Parallel()
		o := unbought(t)
		o.work("A", o.stored("A").SendBy.Add(time.Hour+time.Minute).Sub(o.now()))
		o.wantListed(movement.ReasonUnresolved)
	})
	t.Run("listed as soon as the list can be written", func(t *testing.T) {
		t.Parallel()
		o := unbought(t)
		o.pass(20 * time.Hour)
		o.faults.listing = broken{errAway}
		if err := o.Resolve(t.Context(), o.stored("A")); err == nil {
			t.Error("it could be listed")
		}
		o.faults.listing = nil
		o.wantListed()
		o.work("A", 2*time.Minute)
		o.wantListed(movement.ReasonUnresolved)
		o.wantBought(0)
	})
	t.Run("confirmed, it is asked for weeks later", func(t *testing.T) {
		t.Parallel()
		inShop(t, func(s *shop) {
			s.up.deal = deal{after: 30 * 24 * time.Hour}
			s.want(s.order("A"), "Pending")
			s.work("A", 40*24*time.Hour)
			s.want(s.stateOf("A"), "Success")
			s.addUp()
		})
	})
}

// TestAskingKeepsNobodyFromDeciding: a merchant that asks for the status every five
// seconds of an order that may not be sent again does not keep operators from it.
func TestAskingKeepsNobodyFromDeciding(t *testing.T) {
	t.Parallel()
	o := unbought(t)
	o.gaveUp()
	o.pass(2 * time.Minute)
	for range 30 {
		o.shop.stateOf("A")
		o.pass(5 * time.Second)
	}
	if _, err := o.saysAlone(ayu, movement.OverrideFailed); err != nil {
		t.Error(err)
	}
	o.wantBought(0)
}

// TestAskingPutsNoDecisionOff: a decision that met a poll is applied a minute after that,
// however often the merchant asks meanwhile.
func TestAskingPutsNoDecisionOff(t *testing.T) {
	t.Parallel()
	o := unbought(t)
	o.gaveUp()
	o.pass(2 * time.Minute)
	op := *ordersOf(orderPath)
	op.Rules.Pace.Every = 15 * time.Second
	c, err := o.Reconnect(t.Context(), &op, o.stored("A"))
	if err != nil {
		t.Fatal(err)
	}
	o.faults.move = func(do func() (bool, error)) (bool, error) {
		o.faults.move = nil
		if ours, err := o.store.Poll(t.Context(), o.stored("A"), o.now(), o.now(), o.now().Add(time.Hour)); err != nil || !ours {
			t.Errorf("another poll: %t, %v", ours, err)
		}
		return do()
	}
	_, err = o.saysAlone(ayu, movement.OverrideFailed)
	o.refused(err, fault.InProgress, "being asked")
	for range 3 {
		if m := o.stored("A"); !m.State.Open() {
			t.Fatalf("it is %s while the poll may be under way", m.State)
		}
		o.pass(20 * time.Second)
		if _, err := o.Poll(t.Context(), &op, o.stored("A"), c); err != nil {
			t.Fatal(err)
		}
	}
	if m := o.stored("A"); m.State != movement.Failed {
		t.Errorf("it is %s a minute after the poll", m.State)
	}
	o.wantBought(0)
}

// TestOperatorsSendAgain: two operators say resubmit, and the order is bought once, by
// whichever replica polls it.
func TestOperatorsSendAgain(t *testing.T) {
	t.Parallel()
	o := unbought(t)
	o.gaveUp()
	o.answers()
	if d, err := o.says(ayu, movement.OverrideResubmit); err != nil || d.Override.Made() {
		t.Fatalf("proposed: %+v, %v", d, err)
	}
	o.work("A", 10*time.Minute)
	o.wantBought(0)
	o.resubmitted()
	o.wantListed()
	_, err := o.says(ayu, movement.OverrideResubmit)
	o.refused(err, fault.InProgress, "being sent")
	other := o.shop.replica(o.store)
	o.pass(time.Minute)
	var replicas sync.WaitGroup
	m := o.stored("A")
	for _, e := range []*Engine{o.Engine, other} {
		replicas.Go(func() {
			if err := e.Resolve(t.Context(), m); err != nil {
				t.Error(err)
			}
		})
	}
	replicas.Wait()
	o.work("A", 10*time.Minute)
	o.want(o.shop.stateOf("A"), "Success")
	o.wantBought(1)
	decided, told := o.endings()
	if len(decided) != 1 || !strings.Contains(decided[0].Detail, `"outcome":"resubmit"`) || len(told) != 1 {
		t.Errorf("the history has %+v, told %q", decided, told)
	}
	o.shop.addUp()
	cleanLedger(t, o.store)
}

// TestDecidedAndNotSent: the process ends between the decision and its effect. The next
// poll applies the decision, which counts from when it was made: an hour later it is over,
// and one operator alone does not renew it.
func TestDecidedAndNotSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		later  time.Duration
		bought int
	}{"in time": {30 * time.Minute, 1}, "too late": {61 * time.Minute, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := unbought(t)
			o.gaveUp()
			o.answers()
			if _, err := o.says(ayu, movement.OverrideResubmit); err != nil {
				t.Fatal(err)
			}
			o.faults.move = func(func() (bool, error)) (bool, error) { return false, broken{errAway} }
			if _, err := o.says(budi, movement.OverrideResubmit); err == nil {
				t.Fatal("it was applied")
			}
			o.faults.move = nil
			o.pass(c.later) // nobody runs
			o.work("A", 20*time.Minute)
			o.wantBought(c.bought)
			if c.bought == 0 {
				if d, err := o.says(ayu, movement.OverrideResubmit); err != nil || d.Override.Made() {
					t.Fatalf("said again: %+v, %v", d, err)
				}
				o.work("A", 20*time.Minute)
				o.wantBought(0)
				if _, err := o.says(budi, movement.OverrideResubmit); err != nil {
					t.Fatal(err)
				}
				o.work("A", 20*time.Minute)
				o.wantBought(1)
			}
			o.want(o.shop.stateOf("A"), "Success")
		})
	}
}

// TestResubmissionIsOver: nobody answers in the hour of a decision. That is an
// exception of its own, and nothing is bought before operators decide again.
func TestResubmissionIsOver(t *testing.T) {
	t.Parallel()
	o := unbought(t)
	o.gaveUp()
	o.resubmitted()
	o.work("A", 2*time.Hour)
	o.wantListed(movement.ReasonUnresolved)
	o.answers()
	o.work("A", 10*24*time.Hour)
	o.want(o.shop.stateOf("A"), "Pending")
	o.wantBought(0)
	o.pass(2 * time.Minute)
	o.resubmitted()
	o.work("A", 10*time.Minute)
	o.want(o.shop.stateOf("A"), "Success")
	o.wantBought(1)
}

// TestFailedAfterResubmit: a decision to send again gives way to an end, and what is
// ended is not bought by whoever still believes that it may be.
func TestFailedAfterResubmit(t *testing.T) {
	t.Parallel()
	o := unbought(t)
	o.work("A", 25*time.Hour)
	o.pass(2 * time.Minute)
	o.resubmitted()
	stale := o.stored("A")
	o.pass(2 * time.Minute)
	for _, operator := range []string{ayu, budi} {
		if _, err := o.says(operator, movement.OverrideFailed); err != nil {
			t.Fatal(err)
		}
	}
	o.answers()
	if err := o.Resolve(t.Context(), stale); err != nil {
		t.Fatal(err)
	}
	o.want(o.shop.stateOf("A"), "Failed")
	o.wantBought(0)
	_, err := o.says(ayu, movement.OverrideResubmit)
	o.refused(err, fault.DuplicateReference, "ended already")
	o.shop.addUp()
}

// TestWhatIsNotSentAgain: what its provider has, what is too old for it, and what is
// asked about without sending it.
func TestWhatIsNotSentAgain(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	has := undecided(t, s, "prepaid", movement.Pending)
	has.work("A", 25*time.Hour)
	has.pass(2 * time.Minute)
	_, err := has.says(ayu, movement.OverrideResubmit)
	has.refused(err, fault.DuplicateReference, "has it already")

	read := undecided(t, s, "transfer", movement.Acknowledged)
	read.pass(25 * time.Hour)
	_, err = read.says(ayu, movement.OverrideResubmit)
	read.refused(err, fault.InvalidRequest, "invalid")

	old := undecided(t, s, "prepaid", movement.Acknowledged)
	old.pass(ordersOf(orderPath).Rules.ResubmitWithin)
	_, err = old.says(ayu, movement.OverrideResubmit)
	old.refused(err, fault.DuplicateReference, "too old")
}
