package scenarios

import (
	"context"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/override"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// dying keeps operators' decisions, and ends the process behind the commit of one.
type dying struct {
	keeper
	committed func(m movement.Movement)
}

func (d *dying) Override(ctx context.Context, m movement.Movement, o movement.Override, review movement.Exception) (movement.Override, error) {
	if made, err := d.keeper.Override(ctx, m, o, review); err != nil || !made.Made() {
		return made, err
	}
	d.committed(m)
	panic(crash{})
}

// undecidedSale is one of which the statement tells nothing.
func undecidedSale(t *testing.T, s keeper, made bool) (*Engine, clock, func() movement.Movement) {
	t.Helper()
	w := newCollections(t, s)
	if !made {
		w.up.way = way{says: saying(sdk.DontKnow(sdk.BlameUpstream, "cut"))}
	}
	w.up.find = blind
	w.sell("A", 50_000)
	return w.Engine, w.clock, func() movement.Movement { return w.stored("A") }
}

// TestOverrideIsAppliedAfterACrash: an override of any kind whose process died before
// its effect is applied by the next poll, once, and nobody is asked.
func TestOverrideIsAppliedAfterACrash(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	ends := []movement.OverrideOutcome{movement.OverrideSucceeded, movement.OverrideFailed}
	of := func(o *world) (*Engine, clock, func() movement.Movement) {
		return o.Engine, o.clock, func() movement.Movement { return o.stored("A") }
	}
	for name, c := range map[string]struct {
		outcomes []movement.OverrideOutcome
		open     func(t *testing.T) (*Engine, clock, func() movement.Movement)
	}{
		"a payment that nobody knows of": {ends, func(t *testing.T) (*Engine, clock, func() movement.Movement) { return of(stuck(t, s)) }},
		"a payment that waits for its payer": {ends, func(t *testing.T) (*Engine, clock, func() movement.Movement) {
			w := newWorld(t, payments, s, handClock())
			w.want(w.create("A"), "PENDING")
			m := w.stored("A")
			w.hear(sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: sdk.StatusDone, Amount: m.Amount + 1, Currency: "IDR", EventID: "p"})
			return of(w)
		}},
		"a transfer that nobody knows of": {ends, func(t *testing.T) (*Engine, clock, func() movement.Movement) {
			return of(undecided(t, s, "transfer", movement.Acknowledged))
		}},
		"a transfer under way": {ends, func(t *testing.T) (*Engine, clock, func() movement.Movement) {
			return of(undecided(t, s, "transfer", movement.Pending))
		}},
		"a sale that nobody knows of":     {ends, func(t *testing.T) (*Engine, clock, func() movement.Movement) { return undecidedSale(t, s, false) }},
		"a sale that waits for its payer": {ends, func(t *testing.T) (*Engine, clock, func() movement.Movement) { return undecidedSale(t, s, true) }},
		"an order that nobody knows of": {movement.OverrideOutcomes, func(t *testing.T) (*Engine, clock, func() movement.Movement) {
			return of(undecided(t, s, "prepaid", movement.Acknowledged))
		}},
	} {
		for _, outcome := range c.outcomes {
			t.Run(name+", "+string(outcome), func(t *testing.T) {
				t.Parallel()
				engine, clock, stored := c.open(t)
				clock.pass(25 * time.Hour)
				was := stored()
				engine.decidesWith(&dying{s, func(m movement.Movement) { // a poll began before it
					now := clock.now()
					if ours, err := s.Poll(t.Context(), m, now, now, now.Add(time.Hour)); ours || err != nil {
						t.Errorf("it is polled as if nobody had decided: %v, %v", ours, err)
					}
				}})
				crashed := func() (crashed bool) {
					defer func() { crashed = recover() != nil }()
					_, err := engine.Decide(t.Context(), override.Request{Movement: was.ID, Operator: ayu, Outcome: outcome, Reason: "phoned", Alone: true})
					t.Error(err)
					return false
				}()
				then := stored()
				if !crashed || then.State != was.State || then.DueAt.After(clock.now().Add(10*time.Second)) {
					t.Fatalf("crashed %v, it is %s, due %v", crashed, then.State, then.DueAt)
				}

				engine.decidesWith(s) // the next process
				clock.pass(10 * time.Second)
				if err := engine.Resolve(t.Context(), then); err != nil {
					t.Fatal(err)
				}
				op, err := engine.Operation(was)
				if err != nil {
					t.Fatal(err)
				}
				now, history := stored(), 0
				entries, err := s.History(t.Context(), was.ID)
				for _, e := range entries {
					if e.Event == "overridden" {
						history++
					}
				}
				switch {
				case err != nil || history != 1:
					t.Errorf("it was decided %d times: %v", history, err)
				case outcome == movement.OverrideResubmit:
					if !now.State.Open() || !now.SendBy.After(was.SendBy) || now.PolledAt != was.PolledAt || now.DueAt.After(clock.now().Add(op.Rules.Pace.Every)) {
						t.Errorf("it is %s, to be sent by %v, due %v", now.State, now.SendBy, now.DueAt)
					}
				case now.State != op.Rules.Ends(was.State, outcome):
					t.Errorf("it is %s", now.State)
				}
				for range 2 { // once
					if err := engine.Resolve(t.Context(), now); err != nil {
						t.Error(err)
					}
				}
				if again := stored(); again.Sequence != now.Sequence {
					t.Errorf("it was decided again: %d entries, after %d", again.Sequence, now.Sequence)
				}
			})
		}
	}
}
