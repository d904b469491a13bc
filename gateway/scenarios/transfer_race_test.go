package scenarios

import (
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
func (p *purse) atOnce(reference string, engines ...*Engine) (first said, others []said) {
	p.Helper()
	var running, answered sync.WaitGroup
	answers := make(chan said, clients)
	answered.Add(clients - 1)
	p.up.set(func() {
		p.up.before = func() { answered.Wait() }
	})
	for i := range clients {
		r := p.transferring(reference)
		running.Go(func() {
			a := p.sends(engines[i%len(engines)], r)
			if a.err != nil && a.err.Code == "IN_PROGRESS" {
				answered.Done()
			}
			answers <- a
		})
	}
	running.Wait()
	p.up.set(func() { p.up.before = nil })
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
		{"done", "Success", "Success", 1},
		{"pending, then done", "Pending", "Pending", 1},
		{"refused", refusedNever, refusedNever, 1},
		{"unknown, moved", "Pending", "Pending", 1},
		{"unknown, not moved", "Pending", "Pending", 1},
		{"not sent", notSentLater, "Success", 2}, // it is free again
	} {
		for _, reference := range []string{"A", ""} {
			t.Run(c.way+" "+reference, func(t *testing.T) {
				t.Parallel()
				acrossReplicas(t, func(p *purse, engines ...*Engine) {
					p.limits, p.up.way = generous(), wayNamed(c.way)
					first, others := p.atOnce(reference, engines...)
					p.want(first, c.first)
					if len(others) != clients-1 {
						p.Errorf("%d others", len(others))
					}
					for _, a := range others {
						if a.word() != "IN_PROGRESS no later" || a.err.Reference != reference || a.err.RetryAt.IsZero() {
							p.Errorf("another is answered %s (%v), to come back at %v", a.word(), a.err, a.err.RetryAt)
						}
					}
					p.addUp()
					p.up.set(func() { p.up.way.says, p.up.way.unmade = nil, false })
					for i := range clients {
						r := p.transferring(reference)
						a := p.sends(engines[i%len(engines)], r)
						p.want(a, c.later)
						p.truthful(r, a)
						if again := i > 0 || c.calls == 1; a.replayed != again {
							p.Errorf("answer %d is a replay: %t", i, a.replayed)
						}
					}
					if p.addUp(); len(p.up.calls) != c.calls {
						p.Errorf("called %d times", len(p.up.calls))
					}
				})
			})
		}
	}
}

// TestDifferentUnderOneReference: whoever is second is told which fields differ,
// whatever became of the first.
func TestDifferentUnderOneReference(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"done", "pending, then done", "refused", "unknown, moved"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			inPurses(t, func(p *purse) {
				p.up.way = wayNamed(way)
				p.up.after = func() {
					p.up.after = nil
					p.wantCode(p.transfer("A", "amount", number(sending+1)), "DUPLICATE_REFERENCE", "no", "amount")
				}
				p.transfer("A")
				p.wantCode(p.transfer("A", "account_no", "246 088 8509"), "DUPLICATE_REFERENCE", "no", "account_no")
				p.path = walletPath
				p.wantCode(p.transfer("A"), "DUPLICATE_REFERENCE", "no", "path", "account_name", "account_no", "bank_code", "phone")
				if p.addUp(); len(p.up.calls) != 1 || len(p.up.quotes) != 1 {
					p.Errorf("called %d times, quoted %d times", len(p.up.calls), len(p.up.quotes))
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
	for _, reference := range []string{"A", ""} {
		t.Run("reference "+reference, func(t *testing.T) {
			t.Parallel()
			inPurses(t, func(p *purse) {
				p.up.before = func() { panic(crash{}) }
				p.transfer(reference)
				p.restart()
				r := p.transferring(reference)
				p.pass(sendWindow + timeout - time.Millisecond)
				p.want(p.sends(p.Engine, r), "IN_PROGRESS no later")
				p.pass(time.Millisecond)
				a := p.sends(p.Engine, r)
				p.want(a, "Pending")
				p.truthful(r, a)
				p.work(p.keyOfRequest(r).Reference, time.Hour)
				if m, _ := p.latest(r); m.State != movement.Failed || m.Attempt != 1 {
					p.Errorf("stands at %s, attempt %d", m.State, m.Attempt)
				}
				p.want(p.sends(p.Engine, r), unsentNever)
				p.wantTold(transferEnds + " Failed")
				if p.addUp(); p.up.total() != 0 {
					p.Error("it has moved")
				}
			})
		})
	}
}

// TestPausedBeforeItIsSent: a process is stopped between the claim and the call, or
// the call and the upstream, until the worker has looked, or somebody was told that
// it is pending. Nothing is sent when it goes on.
func TestPausedBeforeItIsSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		span     time.Duration
		promises func(*purse, Request) said // while it is stopped; nil for nobody
		word     string
		state    movement.State
	}{
		"for a moment":                {sendWindow - time.Second, nil, "Success", movement.Succeeded},
		"too long":                    {sendWindow + time.Second, nil, notSentLater, movement.NotSubmitted},
		"until the worker has looked": {10 * time.Minute, nil, notSentLater, movement.NotSubmitted},
		"told to the same request":    {time.Minute, func(p *purse, r Request) said { return p.sends(p.replica(p.keeper), r) }, unsentNever, movement.Failed},
		"told by a status": {time.Minute, func(p *purse, r Request) said {
			m, _ := p.latest(r)
			p.promised[m.Reference] = struct{}{}
			return p.runOn(p.replica(p.keeper), p.asks(transferStatusPath, "txId", m.ID.Compact()))
		}, unsentNever, movement.Failed},
		"told, and looked": {10 * time.Minute, func(p *purse, r Request) said { return p.sends(p.replica(p.keeper), r) }, unsentNever, movement.Failed},
	} {
		for _, where := range []string{"after the claim", "at the plugin"} {
			for _, reference := range []string{"A", ""} {
				t.Run(name+", "+where+" "+reference, func(t *testing.T) {
					t.Parallel()
					inPurses(t, func(p *purse) {
						p.limits = generous()
						r := p.transferring(reference)
						stopped := func() {
							key := p.keyOfRequest(r).Reference
							if c.promises == nil {
								p.work(key, c.span)
								return
							}
							p.work(key, time.Minute)
							p.want(c.promises(p, r), "Pending")
							p.work(key, c.span)
						}
						if where == "at the plugin" {
							p.up.before = func() { p.up.before = nil; stopped() }
						} else {
							p.faults.claim = p.stopsAfterClaim(stopped)
							p.up.before = func() {
								if c.state != movement.Succeeded {
									p.Error("the plugin is called all the same")
								}
							}
						}
						a := p.sends(p.Engine, r)
						p.want(a, c.word)
						p.truthful(r, a)
						if m, _ := p.latest(r); m.State != c.state || m.Attempt != 1 {
							p.Errorf("stands at %s, attempt %d", m.State, m.Attempt)
						}
						if sent := c.state == movement.Succeeded; sent != (p.up.total() == 1) || sent != (len(p.up.calls) == 1) {
							p.Errorf("moved %d times", p.up.total())
						}
						p.wantListed()
						p.addUp()
						p.faults.claim, p.up.before = nil, nil
						again := map[movement.State]string{movement.Succeeded: "Success", movement.NotSubmitted: "Success", movement.Failed: unsentNever}[c.state]
						p.want(p.sends(p.Engine, r), again)
						p.addUp()
					})
				})
			}
		}
	}
}

// TestNewsBeforeATransfersAnswer: a notification is faster than the call that it
// is about, and agrees with it or not.
func TestNewsBeforeATransfersAnswer(t *testing.T) {
	t.Parallel()
	refused, notSent := outcomeOf(sdk.Refuse(sdk.RefuseOther, "No.")), outcomeOf(sdk.DidNotSend(sdk.BlameNone, "no process"))
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
			inPurses(t, func(p *purse) {
				p.up.way = c.way
				p.up.after = func() {
					m := p.stored("A")
					p.hears(p.up.payouts[m.UpstreamReference()].stands(p.now()))
				}
				r := p.transferring("A")
				a := p.sends(p.Engine, r)
				p.want(a, c.word)
				p.truthful(r, a)
				if listed := p.listed(); !slices.Equal(listed, c.listed) {
					p.Errorf("the operators' list has %q", listed)
				}
				p.addUp()
			})
		})
	}
}
