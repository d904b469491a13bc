package scenarios

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// lookedAt is when the provider was asked about a transfer, after its creation.
func (w *world) lookedAt(m movement.Movement) []time.Duration {
	w.up.mu.Lock()
	defer w.up.mu.Unlock()
	var at []time.Duration
	for _, asked := range w.up.asks[m.UpstreamReference()] {
		at = append(at, asked.Sub(m.CreatedAt))
	}
	return at
}

// TestTransferPollTimes: when a transfer is looked at, until its end is known.
func TestTransferPollTimes(t *testing.T) {
	t.Parallel()
	const s, min, h = time.Second, time.Minute, time.Hour
	unknown := cut
	daily := []time.Duration{10 * s, 30 * s, 2 * min, 10 * min, h, 25 * h, 49 * h, 73 * h}
	for name, c := range map[string]struct {
		way    way
		blind  bool
		away   time.Duration // how long nobody is there to look
		want   []time.Duration
		state  movement.State
		listed []string
	}{
		"done":                            {way{}, false, 0, nil, movement.Succeeded, nil},
		"pending for days":                {way{after: 96 * h}, false, 0, daily, movement.Pending, []string{movement.ReasonUnresolved}},
		"pending for an hour":             {way{after: h}, false, 0, daily[:5], movement.Succeeded, nil},
		"unknown, nobody answers":         {way{says: unknown}, true, 0, daily, movement.Acknowledged, []string{movement.ReasonUnresolved}},
		"unknown, made":                   {way{says: unknown}, false, 0, daily[:1], movement.Succeeded, nil},
		"unknown, made late":              {way{slow: 55 * s, says: unknown}, false, 0, daily[:3], movement.Succeeded, nil},
		"unknown, fails":                  {way{after: min, fails: true, says: unknown}, false, 0, daily[:3], movement.Failed, nil},
		"unknown, not made":               {way{unmade: true, says: unknown}, false, 0, []time.Duration{10 * s, 30 * s, 2 * min, 2*min + 10*s}, movement.Failed, nil},
		"unknown, not moved, looked late": {way{unmade: true, says: unknown}, false, 3 * h, []time.Duration{3*h + s, 3*h + 11*s}, movement.Failed, nil},
		"unknown, made, looked late":      {way{says: unknown}, false, 30 * h, []time.Duration{30*h + s}, movement.Succeeded, []string{movement.ReasonUnresolved}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, transfers, func(w *world) {
				w.up.way = c.way
				if c.blind {
					w.up.find = blind
				}
				w.create("A")
				w.pass(c.away)
				w.work("A", 73*h+min-c.away)
				m := w.stored("A")
				if got := w.lookedAt(m); !slices.Equal(got, c.want) || m.State != c.state {
					w.Errorf("stands at %s, looked at after %v, want %v", m.State, got, c.want)
				}
				w.wantListed(c.listed...)
				w.addUp()
			})
		})
	}
}

// TestTransferOpenForADay: what is open for a day comes to the operators, once, and
// not earlier; it ends all the same when the provider knows.
func TestTransferOpenForADay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]way{
		"pending": {after: 60 * time.Hour},
		"unknown": {after: 60 * time.Hour, slow: 60 * time.Hour, says: cut},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, transfers, func(w *world) {
				w.up.way = c
				if c.says != nil {
					w.up.find = func(l sdk.Lookup) sdk.StatusUpdate {
						if f := w.up.things[" "+l.Reference].stands(w.now()); f.Status != sdk.StatusNotFound {
							return f
						}
						return sdk.NoStatus(sdk.BlameUpstream, "no answer")
					}
				}
				w.want(w.create("A"), "Pending")
				w.work("A", 23*time.Hour)
				w.wantListed()
				w.work("A", 2*time.Hour+time.Minute)
				w.wantListed(movement.ReasonUnresolved)
				if a := w.exception(movement.ReasonUnresolved); a.Subject != w.stored("A").ID.String() || a.Provider != wallet1 || a.Detail == "" {
					w.Errorf("the operators read %+v", a)
				}
				w.work("A", 72*time.Hour)
				w.wantListed(movement.ReasonUnresolved)
				w.want(w.create("A"), "Success")
				w.wantMoved(1)
			})
		})
	}
}

// TestTransferTakenBack: a success that the provider takes back reads failed from
// then on, and everybody is told when it was taken back.
func TestTransferTakenBack(t *testing.T) {
	t.Parallel()
	for _, path := range []string{walletPath, bankPath} {
		for _, reference := range []string{"A", ""} {
			t.Run(path+" "+reference, func(t *testing.T) {
				t.Parallel()
				onBoth(t, transfers, func(w *world) {
					w.path, w.limits = path, generous()
					r := w.request(reference)
					first := w.sends(w.Engine, r)
					m, _ := w.latest(r)
					w.pass(time.Hour)
					back := w.up.things[" "+m.UpstreamReference()].says(sdk.StatusFailed)
					back.At = w.now().Add(-time.Minute)
					w.hear(back)
					w.hear(back)
					m, _ = w.latest(r)
					if a := w.statusBy("refId", m.ID.Compact()); a.data != statusOf(m) || !strings.Contains(a.data, `"returned_at":"`+lifecycle.Stamp(back.At)+`"`) {
						w.Errorf("the status is %s, want %s", a.data, statusOf(m))
					}
					w.wantTold(transferEnds+" Success", transferTaken+" Failed")
					w.wantListed(movement.ReasonReturned)
					if reference != "" {
						first.data = strings.Replace(first.data, `"Success"`, `"Failed"`, 1) // a replay tells how it stands
						w.wantSame(w.sends(w.Engine, r), first, 1)                           // and it counts against the limits of its day
					}
					w.work(m.Reference, 72*time.Hour)
					w.addUp()
				})
			})
		}
	}
}

// TestVanishedTransfer: what the provider had accepted and no longer knows is not
// called failed on a guess.
func TestVanishedTransfer(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		w.up.way = way{after: 72 * time.Hour}
		w.want(w.create("A"), "Pending")
		w.up.find = missing
		w.work("A", 50*time.Hour)
		if m := w.stored("A"); m.State != movement.Pending {
			w.Errorf("stands at %s", m.State)
		}
		w.wantListed(movement.ReasonUnresolved, movement.ReasonVanished)
		w.up.find = nil
		w.work("A", 50*time.Hour)
		w.want(w.create("A"), "Success")
		w.addUp()
	})
}

// TestNotFoundOnAnotherConnection proves nothing: the account that it is asked of
// may be another.
func TestNotFoundOnAnotherConnection(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		w.up.way = wayNamed("unknown, not made")
		w.want(w.create("A"), "Pending")
		w.connected(w.account.ID(), "", 2)
		w.work("A", 26*time.Hour)
		if m := w.stored("A"); m.State != movement.Acknowledged {
			w.Errorf("stands at %s", m.State)
		}
		w.wantListed(movement.ReasonUnresolved)
		w.connected(w.account.ID(), "", 1)
		w.work("A", 72*time.Hour)
		w.want(w.create("A"), unsentNever)
		w.wantMoved(0)
	})
}

// TestNotFoundTooSoonAfterNotFound is no second proof, whoever asks.
func TestNotFoundTooSoonAfterNotFound(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		w.up.way = wayNamed("unknown, not made")
		w.want(w.create("A"), "Pending")
		w.pass(time.Minute + sendWindow + 2*movement.ClockSkew) // when not found begins to count
		for _, c := range []struct {
			pass time.Duration
			word string
		}{{0, "Pending"}, {6 * time.Second, "Pending"}, {3 * time.Second, "Pending"}, {2 * time.Second, "Failed"}} {
			w.pass(c.pass)
			w.want(w.statusBy("external_id", "A"), c.word)
		}
		const s, proven = time.Second, time.Minute + sendWindow + 2*movement.ClockSkew
		if got := w.lookedAt(w.stored("A")); !slices.Equal(got, []time.Duration{proven, proven + 6*s, proven + 11*s}) {
			w.Errorf("looked at after %v", got)
		}
		w.wantMoved(0)
	})
}

// TestStatusPromises: who is told by a status that a transfer is pending is told its
// end, and what is kept as its answer is that of its own operation.
func TestStatusPromises(t *testing.T) {
	t.Parallel()
	for _, path := range []string{walletPath, bankPath} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			onBoth(t, transfers, func(w *world) {
				w.path = path
				w.up.before = func(sdk.Call) { panic(crash{}) }
				w.create("A")
				w.restart()
				m := w.stored("A")
				for range 4 { // asked often, the provider is looked at once in 5 s
					w.pass(2 * time.Second)
					if a := w.statusBy("refId", m.ID.Compact()); a.data != statusOf(m) {
						w.Errorf("the status is %s, want %s", a.data, statusOf(m))
					}
				}
				w.promised["A"] = struct{}{}
				if m = w.stored("A"); string(m.Answer) != answerOf(m) || m.State != movement.Acknowledged {
					w.Errorf("stands at %s, answered %s, want %s", m.State, m.Answer, answerOf(m))
				}
				if got := w.lookedAt(m); len(got) != 1 || got[0] != 6*time.Second {
					w.Errorf("looked at after %v", got)
				}
				w.work("A", time.Hour)
				w.want(w.statusBy("external_id", "A"), "Failed")
				w.wantTold(transferEnds + " Failed")
				w.addUp()
			})
		})
	}
}

// TestAbsentAndSentAgain: where a poll is the same request again, an absence that was
// read before another poll proves nothing: that one may have sent it.
func TestAbsentAndSentAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, transfers, func(w *world) {
		op := *transfersOf(w.path)
		op.Rules.Resubmits, op.Rules.ResubmitWithin, op.Rules.BuysWithin = true, time.Hour, time.Hour
		w.up.way = wayNamed("unknown, not made")
		w.want(w.create("A"), "Pending")
		c, err := w.Reconnect(w.Context(), &op, w.stored("A"))
		if err != nil {
			w.Fatal(err)
		}
		asks := func(after time.Duration) movement.State {
			w.pass(after)
			if _, err := w.Poll(w.Context(), &op, w.stored("A"), c); err != nil {
				w.Fatal(err)
			}
			return w.stored("A").State
		}
		asks(2 * time.Minute)
		w.faults.move = func(do func() (bool, error)) (bool, error) {
			w.faults.move = nil
			m := w.stored("A")
			if ours, err := w.keeper.Poll(w.Context(), m, w.now(), m.PolledAt, w.now().Add(time.Minute)); err != nil || !ours {
				w.Errorf("another poll: %t, %v", ours, err)
			}
			return do()
		}
		if state := asks(11 * time.Second); state != movement.Acknowledged || w.faults.move != nil {
			w.Errorf("stands at %s after another poll", state)
		}
		if state := asks(2 * time.Minute); state != movement.Failed {
			w.Errorf("stands at %s when nothing came between", state)
		}
	})
}
