package scenarios

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

const clients = 5

// atOnce sends so many equal transfers at once on engines in turn. The one that
// is sent waits at the provider until all others are answered.
func (w *world) atOnce(reference string, engines ...*Engine) (first said, others []said) {
	w.Helper()
	var running, answered sync.WaitGroup
	answers := make(chan said, clients)
	answered.Add(clients - 1)
	w.up.set(func() {
		w.up.before = func(sdk.Call) { answered.Wait() }
	})
	for i := range clients {
		r := w.request(reference)
		running.Go(func() {
			a := w.sends(engines[i%len(engines)], r)
			if a.err != nil && a.err.Code == "IN_PROGRESS" {
				answered.Done()
			}
			answers <- a
		})
	}
	running.Wait()
	w.up.set(func() { w.up.before = nil })
	close(answers)
	for a := range answers {
		if a.err != nil && a.err.Code == "IN_PROGRESS" {
			others = append(others, a)
		} else {
			first = a
		}
	}
	return first, others
}

// TestEqualTransfersAtOnce: one is sent, the others are told that it is being
// created, and later all are told how it stands.
func TestEqualTransfersAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		way, first, later string
		calls             int
	}{
		{"works", "Success", "Success", 1},
		{"pending, then done", "Pending", "Pending", 1},
		{"refused", refusedNever, refusedNever, 1},
		{"unknown, made", "Pending", "Pending", 1},
		{"unknown, not made", "Pending", "Pending", 1},
		{"not sent", notSentLater, "Success", 2}, // it is free again
	} {
		const reference = "A"
		t.Run(c.way+" "+reference, func(t *testing.T) {
			t.Parallel()
			onReplicas(t, transfers, true, func(w *world, engines ...*Engine) {
				w.limits, w.up.way = generous(), wayNamed(c.way)
				first, others := w.atOnce(reference, engines...)
				w.want(first, c.first)
				if len(others) != clients-1 {
					w.Errorf("%d others", len(others))
				}
				for _, a := range others {
					if a.word() != "IN_PROGRESS no later" || a.err.Reference != reference || a.err.RetryAt.IsZero() {
						w.Errorf("another is answered %s (%v), to come back at %v", a.word(), a.err, a.err.RetryAt)
					}
				}
				w.addUp()
				w.up.set(func() { w.up.way.says, w.up.way.unmade = nil, false })
				for i := range clients {
					r := w.request(reference)
					a := w.sends(engines[i%len(engines)], r)
					w.want(a, c.later)
					w.truthful(r, a)
					if again := i > 0 || c.calls == 1; a.replayed != again {
						w.Errorf("answer %d is a replay: %t", i, a.replayed)
					}
				}
				if w.addUp(); len(w.up.calls) != c.calls {
					w.Errorf("called %d times", len(w.up.calls))
				}
			})
		})
	}
}

// TestDifferentUnderOneReference: whoever is second is told which fields differ,
// whatever became of the first.
func TestDifferentUnderOneReference(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"works", "pending, then done", "refused", "unknown, made"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			onBoth(t, transfers, func(w *world) {
				w.up.way = wayNamed(way)
				w.up.after = func(sdk.Call) {
					w.up.after = nil
					w.wantFault(w.create("A", "amount", number(sending+1)), "DUPLICATE_REFERENCE", "no", "amount")
				}
				w.create("A")
				w.wantFault(w.create("A", "account_no", "246 088 8509"), "DUPLICATE_REFERENCE", "no", "account_no")
				w.path = walletPath
				w.wantFault(w.create("A"), "DUPLICATE_REFERENCE", "no", "path", "account_name", "account_no", "bank_code", "phone")
				if w.addUp(); len(w.up.calls) != 1 || len(w.up.quotes) != 1 {
					w.Errorf("called %d times, quoted %d times", len(w.up.calls), len(w.up.quotes))
				}
			})
		})
	}
}

// TestProgressEnds: whoever comes when a first attempt can't be under way any more
// is told that it is pending, and that is a promise.
func TestProgressEnds(t *testing.T) {
	t.Parallel()
	timeout := time.Duration(transfersOf(bankPath).Timeout)
	const reference = "A"
	t.Run("reference "+reference, func(t *testing.T) {
		t.Parallel()
		onBoth(t, transfers, func(w *world) {
			w.up.before = func(sdk.Call) { panic(crash{}) }
			w.create(reference)
			w.restart()
			r := w.request(reference)
			w.pass(sendWindow + timeout - time.Millisecond)
			w.want(w.sends(w.Engine, r), "IN_PROGRESS no later")
			w.pass(time.Millisecond)
			a := w.sends(w.Engine, r)
			w.want(a, "Pending")
			w.truthful(r, a)
			w.work(w.keyOfRequest(r).Reference, time.Hour)
			if m, _ := w.latest(r); m.State != movement.Failed || m.Attempt != 1 {
				w.Errorf("stands at %s, attempt %d", m.State, m.Attempt)
			}
			w.want(w.sends(w.Engine, r), unsentNever)
			w.wantTold(transferEnds + " Failed")
			if w.addUp(); w.up.total() != 0 {
				w.Error("it has moved")
			}
		})
	})
}

// TestPausedBeforeItIsSent: a process is stopped between the claim and the call, or
// the call and the upstream, until the worker has looked, or somebody was told that
// it is pending. Nothing is sent when it goes on.
func TestPausedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		span     time.Duration
		promises func(*world, Request) said // while it is stopped; nil for nobody
		word     string
		state    movement.State
	}{
		"for a moment":                {sendWindow - time.Second, nil, "Success", movement.Succeeded},
		"too long":                    {sendWindow + time.Second, nil, notSentLater, movement.NotSubmitted},
		"until the worker has looked": {10 * time.Minute, nil, notSentLater, movement.NotSubmitted},
		"told to the same request":    {time.Minute, func(w *world, r Request) said { return w.sends(w.replica(w.keeper), r) }, unsentNever, movement.Failed},
		"told by a status": {time.Minute, func(w *world, r Request) said {
			m, _ := w.latest(r)
			w.promised[m.Reference] = struct{}{}
			return w.runOn(w.replica(w.keeper), w.asks(transferStatusPath, "txId", m.ID.Compact()))
		}, unsentNever, movement.Failed},
		"told, and looked": {10 * time.Minute, func(w *world, r Request) said { return w.sends(w.replica(w.keeper), r) }, unsentNever, movement.Failed},
	} {
		for _, where := range []string{"after the claim", "at the plugin"} {
			const reference = "A"
			t.Run(name+", "+where+" "+reference, func(t *testing.T) {
				t.Parallel()
				onBoth(t, transfers, func(w *world) {
					w.limits = generous()
					r := w.request(reference)
					stopped := func() {
						key := w.keyOfRequest(r).Reference
						if c.promises == nil {
							w.work(key, c.span)
							return
						}
						w.work(key, time.Minute)
						w.want(c.promises(w, r), "Pending")
						w.work(key, c.span)
					}
					if where == "at the plugin" {
						w.up.before = func(sdk.Call) { w.up.before = nil; stopped() }
					} else {
						w.faults.reserve = func(_ context.Context, do reserving) (movement.Movement, bool, error) {
							m, ours, err := do()
							if ours {
								stopped()
							}
							return m, ours, err
						}
						w.up.before = func(sdk.Call) {
							if c.state != movement.Succeeded {
								w.Error("the plugin is called all the same")
							}
						}
					}
					a := w.sends(w.Engine, r)
					w.want(a, c.word)
					w.truthful(r, a)
					if m, _ := w.latest(r); m.State != c.state || m.Attempt != 1 {
						w.Errorf("stands at %s, attempt %d", m.State, m.Attempt)
					}
					if sent := c.state == movement.Succeeded; sent != (w.up.total() == 1) || sent != (len(w.up.calls) == 1) {
						w.Errorf("moved %d times", w.up.total())
					}
					w.wantListed()
					w.addUp()
					w.faults.reserve, w.up.before = nil, nil
					again := map[movement.State]string{movement.Succeeded: "Success", movement.NotSubmitted: "Success", movement.Failed: unsentNever}[c.state]
					w.want(w.sends(w.Engine, r), again)
					w.addUp()
				})
			})
		}
	}
}

// TestTransferUpdateBeforeTheAnswer: a notification is faster than the call that it
// is about, and agrees with it or not.
func TestTransferUpdateBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	refused, notSent := saying(sdk.Refuse(sdk.RefuseOther, "No.")), saying(sdk.DidNotSend(sdk.BlameNone, "no process"))
	for name, c := range map[string]struct {
		way    way
		word   string
		listed []string
	}{
		"done":             {way{}, "Success", nil},
		"failed":           {way{fails: true}, rejectedNever, nil},
		"pending":          {way{after: time.Hour}, "Pending", nil},
		"done, refused":    {way{says: refused}, "Success", []string{movement.ReasonContradiction}},
		"pending, refused": {way{after: time.Hour, says: refused}, "Pending", []string{movement.ReasonContradiction}},
		"failed, refused":  {way{fails: true, says: refused}, rejectedNever, nil},
		"done, unsent":     {way{says: notSent}, "Success", []string{movement.ReasonContradiction}},
		"failed, unsent":   {way{fails: true, says: notSent}, rejectedNever, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, transfers, func(w *world) {
				w.up.way = c.way
				w.up.after = func(sdk.Call) {
					m := w.stored("A")
					w.hear(w.up.things[" "+m.UpstreamReference()].stands(w.now()))
				}
				r := w.request("A")
				a := w.sends(w.Engine, r)
				w.want(a, c.word)
				w.truthful(r, a)
				if listed := w.listed(); !slices.Equal(listed, c.listed) {
					w.Errorf("the operators' list has %q", listed)
				}
				w.addUp()
			})
		})
	}
}
