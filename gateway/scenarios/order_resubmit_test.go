package scenarios

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// unbought makes an order whose call never left, and that nobody answers for about.
func unbought(t *testing.T) *world {
	t.Helper()
	db := keeperFor(t)
	o := newWorld(t, orders, db, handClock())
	o.up.way = way{unmade: true, after: time.Minute, says: cut}
	o.want(o.create("A"), "Pending")
	o.up.find = blind
	return o
}

// answers has the provider there again.
func (o *world) answers() { o.up.set(func() { o.up.find = nil }) }

// wantBought checks how often the order was really bought.
func (o *world) wantBought(times int) {
	o.Helper()
	m := o.stored("A")
	if got := o.up.times[m.UpstreamReference()]; got != times {
		o.Errorf("bought %d times, want %d", got, times)
	}
}

// gaveUp lets the time pass in which it may be bought, and a minute.
func (o *world) gaveUp() {
	o.Helper()
	m := o.stored("A")
	o.work("A", m.SendBy.Add(ordersOf(orderPath).Rules.BuysWithin+time.Minute).Sub(o.now()))
}

// resubmitted has two operators say that it is to be sent again.
func (o *world) resubmitted() {
	o.Helper()
	for _, operator := range []string{ayu, budi} {
		if d, err := o.says(operator, movement.OverrideResubmit); err != nil || d.Movement.State != movement.Acknowledged {
			o.Fatalf("%s: %+v, %v", operator, d, err)
		}
	}
}

// TestOrderIsNotResubmittedLate: an order that no provider has confirmed is bought by a
// lookup for an hour after send_by, and not a moment later. The exception comes then,
// and not when it would have been polled next.
func TestOrderIsNotResubmittedLate(t *testing.T) {
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
				if by := o.up.sendBy; !by.Equal(ends) {
					t.Errorf("it may be sent until %v, want %v", by, ends)
				}
				return
			}
			o.want(o.status("A"), "Pending")
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
		inMemory(t, orders, func(w *world) {
			w.up.way = way{after: 30 * 24 * time.Hour}
			w.want(w.create("A"), "Pending")
			w.work("A", 40*24*time.Hour)
			w.want(w.status("A"), "Success")
			w.addUp()
		})
	})
}

// TestStatusCallsDelayNoOverride: a merchant that asks for the status every five
// seconds of an order that may not be sent again does not keep operators from it.
func TestStatusCallsDelayNoOverride(t *testing.T) {
	t.Parallel()
	o := unbought(t)
	o.gaveUp()
	o.pass(2 * time.Minute)
	for range 30 {
		o.status("A")
		o.pass(5 * time.Second)
	}
	if _, err := o.saysAlone(ayu, movement.OverrideFailed); err != nil {
		t.Error(err)
	}
	o.wantBought(0)
}

// TestStatusCallsDelayNoUnappliedOverride: a decision that met a poll is applied a minute after that,
// however often the merchant asks meanwhile.
func TestStatusCallsDelayNoUnappliedOverride(t *testing.T) {
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
		if ours, err := o.keeper.Poll(t.Context(), o.stored("A"), o.now(), o.now(), o.now().Add(time.Hour)); err != nil || !ours {
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

// TestTwoOperatorsResubmit: two operators say resubmit, and the order is bought once, by
// whichever replica polls it.
func TestTwoOperatorsResubmit(t *testing.T) {
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
	other := o.replica(o.keeper)
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
	o.want(o.status("A"), "Success")
	o.wantBought(1)
	decided, told := o.endings()
	if len(decided) != 1 || !strings.Contains(decided[0].Detail, `"outcome":"resubmit"`) || len(told) != 1 {
		t.Errorf("the history has %+v, told %q", decided, told)
	}
	o.addUp()
	cleanLedger(t, o.keeper)
}

// TestUnappliedResubmitExpires: the process ends between the decision and its effect. The next
// poll applies the decision, which counts from when it was made: an hour later it is over,
// and one operator alone does not renew it.
func TestUnappliedResubmitExpires(t *testing.T) {
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
			o.want(o.status("A"), "Success")
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
	o.want(o.status("A"), "Pending")
	o.wantBought(0)
	o.pass(2 * time.Minute)
	o.resubmitted()
	o.work("A", 10*time.Minute)
	o.want(o.status("A"), "Success")
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
	o.want(o.status("A"), "Failed")
	o.wantBought(0)
	_, err := o.says(ayu, movement.OverrideResubmit)
	o.refused(err, fault.DuplicateReference, "ended already")
	o.addUp()
}

// TestResubmitIsRefused: what its provider has, what is too old for it, and what is
// asked about without sending it.
func TestResubmitIsRefused(t *testing.T) {
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
