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
func (p *purse) lookedAt(m movement.Movement) []time.Duration {
	p.up.mu.Lock()
	defer p.up.mu.Unlock()
	var at []time.Duration
	for _, asked := range p.up.lookups[m.UpstreamReference()] {
		at = append(at, asked.Sub(m.CreatedAt))
	}
	return at
}

// TestTransferLooks: when a transfer is looked at, until its end is known.
func TestTransferLooks(t *testing.T) {
	t.Parallel()
	const s, min, h = time.Second, time.Minute, time.Hour
	unknown := outcomeOf(sdk.DontKnow(sdk.BlameUpstream, "cut"))
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
		"unknown, moved":                  {way{says: unknown}, false, 0, daily[:1], movement.Succeeded, nil},
		"unknown, moved late":             {way{slow: 55 * s, says: unknown}, false, 0, daily[:3], movement.Succeeded, nil},
		"unknown, fails":                  {way{after: min, fails: true, says: unknown}, false, 0, daily[:3], movement.Failed, nil},
		"unknown, not moved":              {way{unmade: true, says: unknown}, false, 0, []time.Duration{10 * s, 30 * s, 2 * min, 2*min + 10*s}, movement.Failed, nil},
		"unknown, not moved, looked late": {way{unmade: true, says: unknown}, false, 3 * h, []time.Duration{3*h + s, 3*h + 11*s}, movement.Failed, nil},
		"unknown, moved, looked late":     {way{says: unknown}, false, 30 * h, []time.Duration{30*h + s}, movement.Succeeded, []string{movement.ReasonUnresolved}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inPurses(t, func(p *purse) {
				p.up.way = c.way
				if c.blind {
					p.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.NoStatus(sdk.BlameUpstream, "no answer") }
				}
				p.transfer("A")
				p.pass(c.away)
				p.work("A", 73*h+min-c.away)
				m := p.stored("A")
				if got := p.lookedAt(m); !slices.Equal(got, c.want) || m.State != c.state {
					p.Errorf("stands at %s, looked at after %v, want %v", m.State, got, c.want)
				}
				p.wantListed(c.listed...)
				p.addUp()
			})
		})
	}
}

// TestTransferOpenForADay: what is open for a day comes to the operators, once, and
// not earlier; it ends all the same when the provider knows.
func TestTransferOpenForADay(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]way{
		"pending": {after: 60 * time.Hour},
		"unknown": {after: 60 * time.Hour, slow: 60 * time.Hour, says: outcomeOf(sdk.DontKnow(sdk.BlameUpstream, "cut"))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inPurses(t, func(p *purse) {
				p.up.way = w
				if w.says != nil {
					p.up.find = func(l sdk.Lookup) sdk.StatusUpdate {
						if f := p.up.payouts[l.Reference].stands(p.now()); f.Status != sdk.StatusNotFound {
							return f
						}
						return sdk.NoStatus(sdk.BlameUpstream, "no answer")
					}
				}
				p.want(p.transfer("A"), "Pending")
				p.work("A", 23*time.Hour)
				p.wantListed()
				p.work("A", 2*time.Hour+time.Minute)
				p.wantListed(movement.ReasonUnresolved)
				if a := p.attention(movement.ReasonUnresolved); a.Subject != p.stored("A").ID.String() || a.Provider != wallet1 || a.Detail == "" {
					p.Errorf("the operators read %+v", a)
				}
				p.work("A", 72*time.Hour)
				p.wantListed(movement.ReasonUnresolved)
				p.want(p.transfer("A"), "Success")
				p.wantMoved(1)
			})
		})
	}
}

// transferNews are what a provider may say of a transfer, in whatever order and
// however often.
func transferNews(p *payout) map[string]sdk.StatusUpdate {
	done, failed, open := p.says(sdk.StatusDone), p.says(sdk.StatusFailed), p.says(sdk.StatusPending)
	again, more, less, free, dollars, stray, expired := done, done, done, done, done, done, open
	again.EventID += "-again"
	more.Amount, less.Amount, free.Amount, dollars.Currency = p.amount+1, p.amount-1, 0, "USD"
	stray.Reference = ofAnotherRequest(p.reference)
	expired.Status = sdk.StatusExpired
	untold := failed
	untold.Amount = 0
	return map[string]sdk.StatusUpdate{
		"done": done, "failed": failed, "open": open, "done again": again, "more": more, "less": less, "free": free, "dollars": dollars,
		"stray": stray, "expired": expired, "failed, amount untold": untold,
		"no word": {Reference: p.reference}, "not found": {Reference: p.reference, Status: sdk.StatusNotFound},
	}
}

// TestTransferNews: notifications of a transfer.
func TestTransferNews(t *testing.T) {
	t.Parallel()
	const taken = transferTaken + " Success"
	good, bad := transferEnds+" Success", transferEnds+" Failed"
	for says, c := range map[string]struct {
		word   string
		listed []string
		events []string
	}{
		"open; open":                   {"Pending", nil, nil},
		"done":                         {"Success", nil, []string{good}},
		"done; done; open; done":       {"Success", nil, []string{good}},
		"open; done; open":             {"Success", nil, []string{good}},
		"done; done again":             {"Success", []string{movement.ReasonContradiction}, []string{good}},
		"failed":                       {"Failed", nil, []string{bad}},
		"failed, amount untold":        {"Failed", nil, []string{bad}},
		"failed; failed; open":         {"Failed", nil, []string{bad}},
		"failed; done":                 {"Failed", []string{movement.ReasonContradiction}, []string{bad}},
		"failed; done; done":           {"Failed", []string{movement.ReasonContradiction}, []string{bad}},
		"done; failed":                 {"Success", []string{movement.ReasonReversed}, []string{good, taken}},
		"done; failed, amount untold":  {"Success", []string{movement.ReasonReversed}, []string{good, taken}},
		"done; failed; failed":         {"Success", []string{movement.ReasonReversed}, []string{good, taken}},
		"done; failed; done":           {"Success", []string{movement.ReasonReversed}, []string{good, taken}},
		"more":                         {"Pending", []string{movement.ReasonAmount}, nil},
		"less; less; done":             {"Success", []string{movement.ReasonAmount}, []string{good}},
		"free":                         {"Pending", []string{movement.ReasonAmount}, nil},
		"done; more":                   {"Success", []string{movement.ReasonAmount}, []string{good}},
		"dollars":                      {"Pending", []string{movement.ReasonCurrency}, nil},
		"stray":                        {"Pending", []string{movement.ReasonContradiction}, nil},
		"expired":                      {"Pending", []string{movement.ReasonContradiction}, nil},
		"no word; not found; done":     {"Success", nil, []string{good}},
		"failed; done; failed; failed": {"Failed", []string{movement.ReasonContradiction}, []string{bad}},
	} {
		for _, path := range []string{walletPath, bankPath} {
			t.Run(path+", "+says, func(t *testing.T) {
				t.Parallel()
				inPurse(t, func(p *purse) {
					p.path = path
					p.up.way = way{after: time.Second, fails: strings.HasPrefix(says, "failed")}
					p.want(p.transfer("A"), "Pending")
					m := p.stored("A")
					p.pass(time.Second)
					for what := range strings.SplitSeq(says, "; ") {
						p.hears(transferNews(p.up.payouts[m.UpstreamReference()])[what])
						p.pass(time.Second)
					}
					if p.stored("A").State == movement.Pending {
						p.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.NoStatus(sdk.BlameUpstream, "no answer") }
					}
					p.want(p.stateOf("external_id", "A"), c.word)
					p.wantListed(c.listed...)
					p.wantTold(c.events...)
					p.addUp()
				})
			})
		}
	}
}

// TestTransferTakenBack: a success that the provider takes back stays a success,
// and everybody is told when it was taken back.
func TestTransferTakenBack(t *testing.T) {
	t.Parallel()
	for _, path := range []string{walletPath, bankPath} {
		for _, reference := range []string{"A", ""} {
			t.Run(path+" "+reference, func(t *testing.T) {
				t.Parallel()
				inPurses(t, func(p *purse) {
					p.path, p.limits = path, generous()
					r := p.transferring(reference)
					first := p.sends(p.Engine, r)
					m, _ := p.latest(r)
					p.pass(time.Hour)
					back := p.up.payouts[m.UpstreamReference()].says(sdk.StatusFailed)
					back.At = p.now().Add(-time.Minute)
					p.hears(back)
					p.hears(back)
					m, _ = p.latest(r)
					if a := p.stateOf("refId", m.ID.Compact()); a.data != statusOf(m) || !strings.Contains(a.data, `"reversed_at":"`+lifecycle.Stamp(back.At)+`"`) {
						p.Errorf("the status is %s, want %s", a.data, statusOf(m))
					}
					p.wantTold(transferEnds+" Success", transferTaken+" Success")
					p.wantListed(movement.ReasonReversed)
					p.wantSame(p.sends(p.Engine, r), first, 1) // and it counts against the limits of its day
					p.work(m.Reference, 72*time.Hour)
					p.addUp()
				})
			})
		}
	}
}

// TestVanishedTransfer: what the provider had accepted and no longer knows is not
// called failed on a guess.
func TestVanishedTransfer(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		p.up.way = way{after: 72 * time.Hour}
		p.want(p.transfer("A"), "Pending")
		p.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.StatusUpdate{Status: sdk.StatusNotFound} }
		p.work("A", 50*time.Hour)
		if m := p.stored("A"); m.State != movement.Pending {
			p.Errorf("stands at %s", m.State)
		}
		p.wantListed(movement.ReasonUnresolved, movement.ReasonVanished)
		p.up.find = nil
		p.work("A", 50*time.Hour)
		p.want(p.transfer("A"), "Success")
		p.addUp()
	})
}

// TestNotFoundOnAnotherConnection proves nothing: the account that it is asked of
// may be another.
func TestNotFoundOnAnotherConnection(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		p.up.way = wayNamed("unknown, not moved")
		p.want(p.transfer("A"), "Pending")
		p.connected(p.account.ID(), 2)
		p.work("A", 26*time.Hour)
		if m := p.stored("A"); m.State != movement.Acknowledged {
			p.Errorf("stands at %s", m.State)
		}
		p.wantListed(movement.ReasonUnresolved)
		p.connected(p.account.ID(), 1)
		p.work("A", 72*time.Hour)
		p.want(p.transfer("A"), unsentNever)
		p.wantMoved(0)
	})
}

// TestNotFoundTooSoonAfterNotFound is no second proof, whoever asks.
func TestNotFoundTooSoonAfterNotFound(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		p.up.way = wayNamed("unknown, not moved")
		p.want(p.transfer("A"), "Pending")
		p.pass(time.Minute + sendWindow + 2*movement.ClockSkew) // when not found begins to count
		for _, c := range []struct {
			pass time.Duration
			word string
		}{{0, "Pending"}, {6 * time.Second, "Pending"}, {3 * time.Second, "Pending"}, {2 * time.Second, "Failed"}} {
			p.pass(c.pass)
			p.want(p.stateOf("external_id", "A"), c.word)
		}
		const s, proven = time.Second, time.Minute + sendWindow + 2*movement.ClockSkew
		if got := p.lookedAt(p.stored("A")); !slices.Equal(got, []time.Duration{proven, proven + 6*s, proven + 11*s}) {
			p.Errorf("looked at after %v", got)
		}
		p.wantMoved(0)
	})
}

// TestStatusPromises: who is told by a status that a transfer is pending is told its
// end, and what is kept as its answer is that of its own operation.
func TestStatusPromises(t *testing.T) {
	t.Parallel()
	for _, path := range []string{walletPath, bankPath} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			inPurses(t, func(p *purse) {
				p.path = path
				p.up.before = func() { panic(crash{}) }
				p.transfer("A")
				p.restart()
				m := p.stored("A")
				for range 4 { // asked often, the provider is looked at once in 5 s
					p.pass(2 * time.Second)
					if a := p.stateOf("refId", m.ID.Compact()); a.data != statusOf(m) {
						p.Errorf("the status is %s, want %s", a.data, statusOf(m))
					}
				}
				p.promised["A"] = struct{}{}
				if m = p.stored("A"); string(m.Answer) != answerOf(m) || m.State != movement.Acknowledged {
					p.Errorf("stands at %s, answered %s, want %s", m.State, m.Answer, answerOf(m))
				}
				if got := p.lookedAt(m); len(got) != 1 || got[0] != 6*time.Second {
					p.Errorf("looked at after %v", got)
				}
				p.work("A", time.Hour)
				p.want(p.stateOf("external_id", "A"), "Failed")
				p.wantTold(transferEnds + " Failed")
				p.addUp()
			})
		})
	}
}

// TestAbsentAndSentAgain: where a poll is the same request again, an absence that was
// read before another poll proves nothing: that one may have sent it.
func TestAbsentAndSentAgain(t *testing.T) {
	t.Parallel()
	inPurses(t, func(p *purse) {
		op := *transfersOf(p.path)
		op.Rules.Resubmits, op.Rules.ResubmitWithin, op.Rules.BuysWithin = true, time.Hour, time.Hour
		p.up.way = wayNamed("unknown, not moved")
		p.want(p.transfer("A"), "Pending")
		c, err := p.Reconnect(p.Context(), &op, p.stored("A"))
		if err != nil {
			p.Fatal(err)
		}
		asks := func(after time.Duration) movement.State {
			p.pass(after)
			if _, err := p.Poll(p.Context(), &op, p.stored("A"), c); err != nil {
				p.Fatal(err)
			}
			return p.stored("A").State
		}
		asks(2 * time.Minute)
		p.faults.move = func(do func() (bool, error)) (bool, error) {
			p.faults.move = nil
			m := p.stored("A")
			if ours, err := p.keeper.Poll(p.Context(), m, p.now(), m.PolledAt, p.now().Add(time.Minute)); err != nil || !ours {
				p.Errorf("another poll: %t, %v", ours, err)
			}
			return do()
		}
		if state := asks(11 * time.Second); state != movement.Acknowledged || p.faults.move != nil {
			p.Errorf("stands at %s after another poll", state)
		}
		if state := asks(2 * time.Minute); state != movement.Failed {
			p.Errorf("stands at %s when nothing came between", state)
		}
	})
}
