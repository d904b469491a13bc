package scenarios

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

const ayu, budi = "ayu", "budi"

// undecided makes a movement, A, that stays open whatever is asked: prepaid and bill are
// orders, of which the balance is charged or held, else it is a transfer. It is
// acknowledged or pending.
func undecided(t *testing.T, s keeper, what string, state movement.State) *world {
	t.Helper()
	of, sku := orders, prepaidSKU
	switch what {
	case "bill":
		sku = billSKU
	case "transfer":
		of = transfers
	}
	w := newWorld(t, of, s, handClock())
	w.sku, w.limits = sku, generous()
	w.up.way = way{after: 1e5 * time.Hour}
	if state != movement.Pending {
		w.up.way.says = cut
	}
	w.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.NoStatus(sdk.BlameUpstream, "busy") }
	w.want(w.create("A"), "Pending")
	if m := w.stored("A"); m.State != state {
		t.Fatalf("it stands at %s, want %s", m.State, state)
	}
	return w
}

// endOf is how money that goes out ends by an outcome.
func endOf(outcome movement.OverrideOutcome) movement.State {
	if outcome == movement.OverrideSucceeded {
		return movement.Succeeded
	}
	return movement.Failed
}

// says is an operator's word.
func (o *world) says(operator string, outcome movement.OverrideOutcome) (Decided, error) {
	o.Helper()
	return o.Decide(o.Context(), Decision{Movement: o.stored("A").ID, Operator: operator, Outcome: outcome, Reason: operator + " has called them"})
}

func (o *world) saysAlone(operator string, outcome movement.OverrideOutcome) (Decided, error) {
	o.Helper()
	return o.Decide(o.Context(), Decision{Movement: o.stored("A").ID, Operator: operator, Outcome: outcome, Reason: "sure", Alone: true})
}

// refused is an operator's word that is not taken now.
func (o *world) refused(err error, code fault.Code, words string) {
	o.Helper()
	if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != code || !strings.Contains(f.Message, words) {
		o.Errorf("got %v, want %s with %q", err, code, words)
	}
}

// endings are the decisions in the story, and the callbacks of ends.
func (o *world) endings() (decided []movement.HistoryEntry, told []string) {
	o.Helper()
	m := o.stored("A")
	story, err := o.keeper.History(o.Context(), m.ID)
	if err != nil {
		o.Fatal(err)
	}
	callbacks, err := o.keeper.CallbacksOfMovement(o.Context(), m.Owner, m.ID, story)
	if err != nil {
		o.Fatal(err)
	}
	for _, callback := range callbacks {
		told = append(told, string(callback.Body))
	}
	return slices.DeleteFunc(story, func(e movement.HistoryEntry) bool { return e.Event != "overridden" }), told
}

// settledAs checks what one end means for money, the merchant and the limits.
func (o *world) settledAs(what string, outcome movement.OverrideOutcome) {
	o.Helper()
	m, word := o.stored("A"), "Success"
	want := endOf(outcome)
	if outcome == movement.OverrideFailed {
		word = "Failed"
	}
	decided, told := o.endings()
	if m.State != want || !m.DueAt.IsZero() || len(decided) != 1 || len(told) != 1 || !strings.Contains(told[0], `"status":"`+word+`"`) {
		o.Errorf("%s stands at %s, due %v, story %+v, told %q", what, m.State, m.DueAt, decided, told)
	}
	if strings.Contains(strings.Join(told, ""), "Menunggu") {
		o.Errorf("told what the provider said while it was under way: %q", told)
	}
	if o.of == transfers {
		used, err := o.keeper.Usage(o.Context(), m.Owner, m.CreatedAt.Format(time.DateOnly))
		if err != nil || len(used) == 0 {
			o.Errorf("nothing is counted: %v", err)
		}
		for _, u := range used {
			if given := outcome == movement.OverrideFailed; (u.Units == 0) != given {
				o.Errorf("%s: %d are used of %s", outcome, u.Units, u.Name)
			}
		}
		return
	}
	left := opening
	if outcome == movement.OverrideSucceeded {
		left -= m.Amount
		if m.Cost <= 0 || m.Cost >= m.Amount {
			o.Errorf("it has cost %v of %v", m.Cost, m.Amount)
		}
	}
	o.wantBalance(left, 0)
}

// TestTwoOperatorsOverride: one proposes, another confirms the same, and what the
// movement has held, counted or promised ends with it.
func TestTwoOperatorsOverride(t *testing.T) { //nolint:tparallel // they share a ledger that is checked then
	t.Parallel()
	s := keeperFor(t)
	for _, what := range []string{"prepaid", "bill", "transfer"} {
		for _, state := range []movement.State{movement.Acknowledged, movement.Pending} {
			for outcome, other := range map[movement.OverrideOutcome]movement.OverrideOutcome{
				movement.OverrideSucceeded: movement.OverrideFailed, movement.OverrideFailed: movement.OverrideSucceeded,
			} {
				t.Run(strings.Join([]string{what, string(state), string(outcome)}, " "), func(t *testing.T) {
					o := undecided(t, s, what, state)
					o.work("A", 25*time.Hour)
					o.pass(2 * time.Minute)
					for range 2 { // proposed twice is proposed once
						d, err := o.says(ayu, outcome)
						if err != nil || d.Override.Made() || d.Movement.State != state || o.stored("A").State != state {
							t.Fatalf("proposed: %+v, %v", d, err)
						}
					}
					_, err := o.says(budi, other)
					o.refused(err, fault.DuplicateReference, "ayu has proposed "+string(outcome))
					d, err := o.says(budi, outcome)
					if err != nil || !d.Override.Made() || d.Override.Operator != ayu || d.Override.ConfirmedBy != budi {
						t.Fatalf("confirmed: %+v, %v", d, err)
					}
					o.settledAs(what, outcome)
					for _, operator := range []string{ayu, budi} {
						if d, err := o.says(operator, outcome); err != nil || d.Movement.State != endOf(outcome) {
							t.Errorf("%s again: %+v, %v", operator, d, err)
						}
						_, err := o.says(operator, other)
						o.refused(err, fault.DuplicateReference, "ended already")
					}
					o.settledAs(what, outcome)
					o.wantListed()
					decided, _ := o.endings()
					for _, part := range []string{`"operators":"ayu, budi"`, `"outcome":"` + string(outcome), "ayu has called", "budi has called"} {
						if !strings.Contains(decided[0].Detail, part) {
							t.Errorf("the story says %s, without %s", decided[0].Detail, part)
						}
					}
				})
			}
		}
	}
	cleanLedger(t, s)
}

// TestOneOperatorOverridesAlone: it is applied at once, and reviewed.
func TestOneOperatorOverridesAlone(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for _, what := range []string{"prepaid", "transfer"} {
		o := undecided(t, s, what, movement.Acknowledged)
		o.pass(25 * time.Hour)
		if _, err := o.says(ayu, movement.OverrideSucceeded); err != nil {
			t.Fatal(err)
		}
		d, err := o.saysAlone(budi, movement.OverrideFailed) // against the proposal
		if err != nil || !d.Override.Alone || d.Override.Operator != budi || d.Movement.State != movement.Failed {
			t.Fatalf("%s: %+v, %v", what, d, err)
		}
		o.settledAs(what, movement.OverrideFailed)
		o.wantListed(movement.ReasonAlone)
		if _, err := o.saysAlone(budi, movement.OverrideFailed); err != nil {
			t.Errorf("again: %v", err)
		}
		o.wantListed(movement.ReasonAlone)
		_, err = o.says(ayu, movement.OverrideSucceeded)
		o.refused(err, fault.DuplicateReference, "ended already")
	}
	cleanLedger(t, s)
}

// TestOverrideIsRefusedTooEarly: while the provider may tell its end, while it is being
// sent, and what operators have no say in.
func TestOverrideIsRefusedTooEarly(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	o := undecided(t, s, "transfer", movement.Acknowledged)
	if err := o.Engine.List(t.Context(), o.stored("A"), movement.Cause{Reason: movement.ReasonAmount, FactID: "", Detail: "differs"}); err != nil {
		t.Fatal(err)
	}
	_, err := o.says(ayu, movement.OverrideSucceeded)
	o.refused(err, fault.InProgress, "being sent")
	o.pass(time.Minute)
	if _, err := o.says(ayu, movement.OverrideSucceeded); err != nil {
		t.Errorf("what is on the list: %v", err)
	}

	dear := undecided(t, s, "transfer", movement.Pending)
	if err := dear.Engine.List(t.Context(), dear.stored("A"), movement.Cause{Reason: movement.ReasonFee, FactID: "", Detail: "differs"}); err != nil {
		t.Fatal(err)
	}
	_, err = dear.says(ayu, movement.OverrideSucceeded) // its end is in no doubt
	dear.refused(err, fault.InProgress, "younger than 24 hours")

	young := undecided(t, s, "transfer", movement.Pending)
	young.pass(24*time.Hour - time.Second)
	_, err = young.says(ayu, movement.OverrideSucceeded)
	young.refused(err, fault.InProgress, "younger than 24 hours")
	if err := young.Engine.List(t.Context(), young.stored("A"), movement.Cause{Reason: movement.ReasonVanished, FactID: "", Detail: "gone"}); err != nil {
		t.Fatal(err)
	}
	if err := s.ResolveExceptions(t.Context(), young.now(), young.stored("A").Owner, young.stored("A").ID.String(), []string{movement.ReasonUnresolved, movement.ReasonVanished}, ayu, "back"); err != nil {
		t.Fatal(err)
	}
	_, err = young.says(ayu, movement.OverrideSucceeded)
	young.refused(err, fault.InProgress, "younger than 24 hours")
	young.pass(time.Second)
	if _, err := young.says(ayu, movement.OverrideSucceeded); err != nil {
		t.Error(err)
	}
	_, err = young.says(budi, "perhaps")
	young.refused(err, fault.InvalidRequest, "as")

	_, err = young.Decide(t.Context(), Decision{Movement: movement.NewID(), Operator: ayu, Outcome: movement.OverrideFailed, Reason: "r"})
	young.refused(err, fault.NotFound, "")

	paid := newWorld(t, payments, s, handClock())
	paid.decidesWith(s)
	paid.create("A")
	o = paid
	o.pass(48 * time.Hour)
	_, err = o.says(ayu, movement.OverrideSucceeded)
	o.refused(err, fault.InProgress, "waits for its payer")
}

// TestOverriddenOrderIsNeverResubmitted: no override is made while a resubmission may
// be under way, and none is resubmitted after it.
func TestOverriddenOrderIsNeverResubmitted(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	o := undecided(t, s, "prepaid", movement.Acknowledged)
	o.work("A", 25*time.Hour)
	stale := o.stored("A")
	o.pass(stale.DueAt.Sub(o.now()))
	if err := o.Resolve(t.Context(), stale); err != nil {
		t.Fatal(err)
	}
	_, err := o.saysAlone(ayu, movement.OverrideFailed)
	o.refused(err, fault.InProgress, "being asked")
	if kept, err := s.OverrideOf(t.Context(), stale.ID, stale.Attempt); !errors.Is(err, movement.ErrNotFound) {
		t.Errorf("kept %+v, %v", kept, err)
	}
	o.pass(time.Minute)

	// A lookup begins between all that was read and the commit.
	o.faults.move = func(do func() (bool, error)) (bool, error) {
		o.faults.move = nil
		if ours, err := s.Poll(t.Context(), o.stored("A"), o.now(), o.now(), o.now().Add(time.Hour)); err != nil || !ours {
			t.Errorf("Ask = %v, %v", ours, err)
		}
		return do()
	}
	_, err = o.saysAlone(ayu, movement.OverrideFailed)
	o.refused(err, fault.InProgress, "being asked")
	if m := o.stored("A"); m.State != movement.Acknowledged {
		t.Fatalf("it stands at %s", m.State)
	}
	o.pass(2 * time.Minute)
	if _, err = o.saysAlone(ayu, movement.OverrideFailed); err != nil {
		t.Fatal(err)
	}
	asked := o.up.asked()
	for range 3 {
		o.pass(time.Hour)
		if err := o.Resolve(t.Context(), stale); err != nil {
			t.Error(err)
		}
		o.want(o.status("A"), "Failed")
		o.create("A")
	}
	if now := o.up.asked(); now != asked {
		t.Errorf("asked %d times after it was decided", now-asked)
	}
	o.settledAs("prepaid", movement.OverrideFailed)
}

// TestPendingOverrideStopsResubmission: an override whose process died before its
// effect stops resubmissions, and the next poll applies it.
func TestPendingOverrideStopsResubmission(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	o := undecided(t, s, "prepaid", movement.Acknowledged)
	o.work("A", 25*time.Hour)
	o.wantListed(movement.ReasonUnresolved)
	for _, operator := range []string{ayu, budi} { // once more, for an hour
		if _, err := o.says(operator, movement.OverrideResubmit); err != nil {
			t.Fatal(err)
		}
	}
	renewed := o.stored("A")
	o.pass(renewed.DueAt.Sub(o.now()))
	asked := o.up.asked()
	if err := o.Resolve(t.Context(), renewed); err != nil || o.up.asked() != asked+1 {
		t.Fatalf("it is not sent again: %v", err)
	}
	o.pass(2 * time.Minute)
	o.faults.move = func(func() (bool, error)) (bool, error) { panic(crash{}) }
	crashed := func() (crashed bool) {
		defer func() { crashed = recover() != nil }()
		_, _ = o.saysAlone(ayu, movement.OverrideFailed)
		return false
	}()
	o.faults.move = nil
	if m := o.stored("A"); !crashed || !m.State.Open() {
		t.Fatalf("crashed: %t, it is %s", crashed, m.State)
	}
	if err := o.Resolve(t.Context(), o.stored("A")); err != nil {
		t.Fatal(err)
	}
	if now := o.up.asked(); now != asked+1 {
		t.Errorf("sent again %d times after it was decided", now-asked-1)
	}
	o.want(o.status("A"), "Failed")
	o.wantListed(movement.ReasonAlone)
}

// TestStatusUpdateAfterAnOverride: a final state stays. What the provider says
// otherwise is a return or an exception.
func TestStatusUpdateAfterAnOverride(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	for _, what := range []string{"prepaid", "bill", "transfer"} {
		for outcome, news := range map[movement.OverrideOutcome]sdk.Status{
			movement.OverrideSucceeded: sdk.StatusFailed, movement.OverrideFailed: sdk.StatusDone,
		} {
			o := undecided(t, s, what, movement.Pending)
			o.pass(25 * time.Hour)
			for _, operator := range []string{ayu, budi} {
				if _, err := o.says(operator, outcome); err != nil {
					t.Fatal(err)
				}
			}
			m := o.stored("A")
			f := sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: news, Amount: m.Amount, EventID: "late"}
			if o.of == orders {
				f.Amount = m.Cost
			}
			o.hear(f)
			then := o.stored("A")
			if then.State != m.State || then.ReturnedAt.IsZero() != (outcome == movement.OverrideFailed) {
				t.Errorf("%s, %s, then %s: stands at %s, returned %v", what, outcome, news, then.State, then.ReturnedAt)
			}
			if outcome == movement.OverrideFailed {
				o.wantListed(movement.ReasonContradiction)
			} else {
				o.wantListed(movement.ReasonReturned)
			}
			if o.of == orders {
				o.wantBalance(opening, 0)
			}
		}
	}
	cleanLedger(t, s)
}

// TestUnappliedOverrideIsAppliedOnRetry: whoever says the same again applies it.
func TestUnappliedOverrideIsAppliedOnRetry(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	o := undecided(t, s, "bill", movement.Pending)
	o.pass(25 * time.Hour)
	o.faults.move = func(func() (bool, error)) (bool, error) { return false, broken{errAway} }
	_, err := o.saysAlone(ayu, movement.OverrideSucceeded)
	o.refused(err, fault.Internal, "")
	o.faults.move = nil
	if m := o.stored("A"); m.State != movement.Pending {
		t.Fatalf("it stands at %s", m.State)
	}
	_, err = o.saysAlone(budi, movement.OverrideFailed)
	o.refused(err, fault.DuplicateReference, "decided already: success")
	if d, err := o.says(budi, movement.OverrideSucceeded); err != nil || d.Movement.State != movement.Succeeded || d.Override.Operator != ayu {
		t.Errorf("%+v, %v", d, err)
	}
	o.settledAs("bill", movement.OverrideSucceeded)
	cleanLedger(t, s)
}

// TestConcurrentOverridesEndOnce: two operators, the poller and the provider at once,
// on two replicas, lead to one end, one posting and one callback.
func TestConcurrentOverridesEndOnce(t *testing.T) {
	t.Parallel()
	stores := replicasFor(t, 2)
	for _, what := range []string{"prepaid", "bill", "transfer"} {
		for round := range 8 {
			o := undecided(t, stores[0], what, movement.Pending)
			other := o.replica(&faulty{keeper: stores[1]})
			other.decidesWith(stores[1])
			o.pass(25 * time.Hour)
			m := o.stored("A")
			var racing sync.WaitGroup
			for i := range 8 {
				racing.Go(func() {
					operator, e := []string{ayu, budi}[i%2], []*Engine{o.Engine, other}[i/2%2]
					d := Decision{Movement: m.ID, Operator: operator, Outcome: movement.OverrideSucceeded, Reason: "r"}
					decided, err := e.Decide(t.Context(), d)
					if err != nil && round%2 == 0 || err == nil && decided.Override.Made() && decided.Movement.State != movement.Succeeded {
						t.Errorf("%s: %+v, %v", operator, decided, err)
					}
				})
			}
			if round%2 == 1 { // the provider tells that it has failed, and whoever is first is right
				racing.Go(func() {
					f := sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: sdk.StatusFailed, EventID: "e"}
					op, err := o.Operation(m)
					if err == nil {
						_, err = other.settle(t.Context(), op, m, f, "notification")
					}
					if err != nil {
						t.Error(err)
					}
				})
			}
			racing.Wait()
			decided, told := o.endings()
			then := o.stored("A")
			ends := 1
			if !then.ReturnedAt.IsZero() {
				ends++
			}
			if round%2 == 0 && (then.State != movement.Succeeded || len(decided) != 1) || len(decided) > 1 || len(told) != ends || !then.State.Final() {
				t.Errorf("%s: stands at %s, returned %v, decided %d times, told %q", what, then.State, then.ReturnedAt, len(decided), told)
			}
		}
	}
	cleanLedger(t, stores[0])
}

// TestProviderOutcomesAreNoted: of money that goes out, also where it changes
// nothing, with how often.
func TestProviderOutcomesAreNoted(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	o := undecided(t, s, "transfer", movement.Acknowledged)
	o.work("A", 3*time.Minute)
	notes, err := s.NotesOf(t.Context(), o.stored("A").ID)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]int{}
	for _, n := range notes {
		var detail map[string]string
		if err := json.Unmarshal([]byte(n.Detail), &detail); err != nil {
			t.Error(err)
		}
		said[n.Event+" "+detail["said"]+" "+detail["detail"]] += n.Times
	}
	if len(notes) != 2 || said["called unknown cut"] != 1 || said["polled unknown busy"] < 2 {
		t.Errorf("kept %v", said)
	}
}
