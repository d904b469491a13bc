package scenarios

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// delivers is a transfer without a reference whose answer reaches its caller.
func (p *purse) delivers(pairs ...any) said {
	p.Helper()
	a := p.transfer("", pairs...)
	if a.receipt == (movement.ID{}) {
		p.Errorf("%s (%v) has no receipt", a.word(), a.err)
	}
	if p.real { // a slow machine's database is waited for
		defer func(within time.Duration) { p.transfers.HeardWithin = within }(p.transfers.HeardWithin)
		p.transfers.HeardWithin = time.Minute
	}
	p.Delivered(p.Context(), a.receipt)
	return a
}

// wantSame checks that a transfer is answered as an earlier one, and that as many
// have moved.
func (p *purse) wantSame(a, earlier said, moved int) {
	p.Helper()
	if a.word() != earlier.word() || a.data != earlier.data || !a.replayed {
		p.Errorf("got %s %s (replayed: %t), want %s %s again", a.word(), a.data, a.replayed, earlier.word(), earlier.data)
	}
	p.wantMoved(moved)
}

func (p *purse) wantMoved(moved int) {
	p.Helper()
	if p.addUp(); p.up.total() != moved {
		p.Errorf("%d have moved, want %d", p.up.total(), moved)
	}
}

// wantNew checks that a transfer is another one.
func (p *purse) wantNew(a, earlier said, moved int) {
	p.Helper()
	if a.word() != "Success" || idOf(a) == idOf(earlier) || a.replayed {
		p.Errorf("got %s %s (replayed: %t), and earlier %s", a.word(), a.data, a.replayed, earlier.data)
	}
	p.wantMoved(moved)
}

// TestUnnamed: a transfer without a reference that equals an earlier one is that
// one while its caller can't know of it, and another one otherwise.
func TestUnnamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*purse){
		"delivered": func(p *purse) {
			first := p.delivers()
			second := p.delivers()
			p.wantNew(second, first, 2)
			p.wantNew(p.delivers(), second, 3)
		},
		"undelivered, within a day": func(p *purse) {
			first := p.transfer("")
			p.pass(sameFor - time.Microsecond)
			p.wantSame(p.transfer(""), first, 1)
		},
		"undelivered, after a day": func(p *purse) {
			first := p.transfer("")
			p.pass(sameFor)
			p.wantNew(p.transfer(""), first, 2)
		},
		"delivered at last": func(p *purse) {
			first := p.transfer("")
			p.wantSame(p.delivers(), first, 1)
			p.wantNew(p.transfer(""), first, 2)
		},
		"another amount": func(p *purse) {
			first := p.transfer("")
			p.wantNew(p.transfer("", "amount", number(sending+1)), first, 2)
		},
		"another destination, path or message": func(p *purse) {
			first := p.transfer("")
			p.wantNew(p.transfer("", "account_no", "2460888510"), first, 2)
			p.wantNew(p.transfer("", "message", "again"), first, 3)
			p.path = walletPath
			p.wantNew(p.transfer(""), first, 4)
		},
		"with a reference": func(p *purse) {
			first := p.transfer("")
			p.wantNew(p.transfer("A"), first, 2)
			p.wantNew(p.transfer("B"), first, 3)
			p.wantSame(p.transfer(""), first, 3)
		},
		"of another merchant or mode": func(p *purse) {
			first := p.transfer("")
			r := p.transferring("")
			r.Identity.Mode = "test"
			if a := p.runOn(p.Engine, r); a.word() != "Success" || a.replayed || idOf(a) == idOf(first) {
				p.Errorf("in test mode: %s (replayed: %t)", a.data, a.replayed)
			}
			r = p.transferring("")
			r.Identity.Account = p.connected(p.merchant().ID(), 1)
			if a := p.runOn(p.Engine, r); a.word() != "Success" || a.replayed || idOf(a) == idOf(first) {
				p.Errorf("of another merchant: %s (replayed: %t)", a.data, a.replayed)
			}
			p.wantMoved(3)
		},
		"pending and delivered": func(p *purse) {
			p.up.way.after = 48 * time.Hour
			first := p.delivers()
			p.want(first, "Pending")
			p.pass(47 * time.Hour) // longer than anything
			p.wantSame(p.delivers(), first, 1)
			p.work(p.keyOfRequest(p.transferring("")).Reference, 48*time.Hour)
			p.up.way.after = 0
			p.wantNew(p.delivers(), first, 2)
		},
		"pending and undelivered": func(p *purse) {
			p.up.way.after = time.Minute
			first := p.transfer("")
			p.want(first, "Pending")
			p.work(p.keyOfRequest(p.transferring("")).Reference, time.Hour)
			second := p.transfer("")
			if second.word() != "Success" || idOf(second) != idOf(first) {
				p.Errorf("got %s, first %s", second.data, first.data)
			}
			p.wantMoved(1)
		},
		"refused and undelivered": func(p *purse) {
			p.up.way = wayNamed("refused")
			first := p.transfer("")
			p.up.way = way{}
			p.want(first, refusedNever)
			p.wantSame(p.transfer(""), first, 0)
			p.pass(sameFor)
			p.wantNew(p.transfer(""), first, 1)
		},
		"refused and delivered": func(p *purse) {
			p.up.way = wayNamed("refused")
			first := p.delivers()
			p.up.way = way{}
			p.want(first, refusedNever)
			p.wantNew(p.delivers(), first, 1)
		},
		"failed at last, undelivered": func(p *purse) {
			p.up.way = wayNamed("unknown, not moved")
			p.want(p.delivers(), "Pending")
			p.work(p.keyOfRequest(p.transferring("")).Reference, time.Hour)
			p.up.way = way{}
			p.wantNew(p.transfer(""), said{}, 1) // who was told that it is pending was told its end, too
		},
		"not sent": func(p *purse) {
			p.up.way = wayNamed("not sent")
			first := p.transfer("")
			p.want(first, notSentLater)
			if first.receipt != (movement.ID{}) {
				p.Error("there is nothing that could be delivered")
			}
			p.up.way = way{}
			p.wantNew(p.delivers(), first, 1)
		},
		"while it is created": func(p *purse) {
			p.up.after = func() {
				p.up.after = nil
				a := p.transfer("")
				p.want(a, "IN_PROGRESS no later")
				if a.receipt != (movement.ID{}) || a.err.Reference != "" {
					p.Errorf("%v has a receipt, or names %q", a.err, a.err.Reference)
				}
			}
			first := p.transfer("")
			p.wantSame(p.transfer(""), first, 1)
		},
		"a policy's window": func(p *purse) {
			p.limits.RepeatWithin = time.Hour
			first := p.delivers()
			p.pass(time.Hour - time.Microsecond)
			p.wantSame(p.delivers(), first, 1)
			p.pass(time.Microsecond)
			second := p.delivers()
			p.wantNew(second, first, 2)
			p.limits.RepeatWithin = 0
			p.wantNew(p.delivers(), second, 3)
		},
		"a policy's window, refused": func(p *purse) {
			p.limits.RepeatWithin = time.Hour
			p.up.way = wayNamed("refused")
			first := p.delivers()
			p.up.way = way{}
			p.wantNew(p.delivers(), first, 1)
		},
		"the database is away when it is delivered": func(p *purse) {
			first := p.transfer("")
			tries := 0
			p.faults.deliver = func(do func() error) error {
				if tries++; tries < 4 {
					return errAway
				}
				return do()
			}
			p.transfers.HeardWithin = 2 * time.Second
			p.Delivered(p.Context(), first.receipt)
			p.wantNew(p.transfer(""), first, 2)
		},
		"the caller hung up, and asks again": func(p *purse) {
			first := p.transfer("")
			asked := time.Now()
			p.wantSame(p.transfer(""), first, 1)
			if waited, most := time.Since(asked), p.transfers.HeardWithin; waited < most || !p.real && waited != most {
				p.Errorf("it waited %v to learn whether the first answer was delivered, want %v", waited, most)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inPurses(t, test)
		})
	}
}

// TestUnnamedWaitsForTheMark: who has read an answer sends the next transfer, on any
// replica, before it is noted that the answer was delivered.
func TestUnnamedWaitsForTheMark(t *testing.T) {
	t.Parallel()
	acrossReplicas(t, func(p *purse, engines ...*Engine) {
		first := p.transfer("")
		for n := range 3 {
			looked := make(chan struct{})
			var once sync.Once
			other := p.replica(&faulty{keeper: p.keeper, compared: func() { once.Do(func() { close(looked) }) }})
			if n > 0 {
				other = engines[len(engines)-1]
				close(looked)
			}
			p.transfers.HeardWithin, other.transfers.HeardWithin = 2*time.Second, 2*time.Second
			p.faults.deliver = func(do func() error) error {
				<-looked
				return do()
			}
			var noting sync.WaitGroup
			receipt := first.receipt
			noting.Go(func() { p.Delivered(p.Context(), receipt) })
			second := p.sends(other, p.transferring(""))
			noting.Wait()
			p.wantNew(second, first, n+2)
			first = second
		}
	})
}

// TestUnnamedAtOnce: of equal transfers without a reference that come together,
// also after one that is done with, one is claimed.
func TestUnnamedAtOnce(t *testing.T) {
	t.Parallel()
	acrossReplicas(t, func(p *purse, engines ...*Engine) {
		for round := 1; round <= 3; round++ {
			var running sync.WaitGroup
			answers := make([]said, 10)
			all := make(chan struct{})
			var mu sync.Mutex
			seen := 0
			p.faults.judged = func() {
				mu.Lock()
				defer mu.Unlock()
				if seen++; seen == len(answers) {
					close(all)
				}
			}
			p.up.set(func() { p.up.beforeQuote = func() { <-all } })
			for i := range answers {
				running.Go(func() { answers[i] = p.runOn(engines[i%len(engines)], p.transferring("")) })
			}
			running.Wait()
			p.faults.judged = nil
			p.up.set(func() { p.up.beforeQuote = nil })
			ids := map[string]bool{}
			for _, a := range answers {
				if a.word() == "Success" {
					ids[idOf(a)] = true
				} else if a.word() != "IN_PROGRESS no later" {
					p.Errorf("answered %s (%v)", a.word(), a.err)
				}
			}
			if len(ids) != 1 || p.up.total() != round {
				p.Errorf("round %d: %d answers differ, %d have moved", round, len(ids), p.up.total())
			}
			p.delivers()
		}
		p.wantMoved(3)
	})
}

// TestUnnamedIsSecret: nobody reads the reference that the gateway gives to a
// transfer without one, and nobody can use it.
func TestUnnamedIsSecret(t *testing.T) {
	t.Parallel()
	for _, path := range []string{walletPath, bankPath} {
		for _, w := range ways {
			t.Run(path+", "+w.name, func(t *testing.T) {
				t.Parallel()
				inPurse(t, func(p *purse) {
					p.path, p.up.way = path, w.way
					a := p.transfer("")
					r := p.transferring("")
					m, _ := p.latest(r)
					var read []string
					note := func(a said) {
						p.truthful(r, a)
						if read = append(read, a.data); a.err != nil {
							read = append(read, a.err.Reference, a.err.Message)
						}
					}
					note(a)
					p.work(m.Reference, time.Hour)
					note(p.transfer(""))
					m, _ = p.latest(r)
					for _, name := range ourNames {
						status := p.stateOf(name, m.ID.Compact())
						read = append(read, status.data)
						if m.State != movement.NotSubmitted && status.data != statusOf(m) {
							p.Errorf("by %s: %s (%v), want %s", name, status.data, status.err, statusOf(m))
						}
					}
					p.wantCode(p.stateOf("external_id", m.Reference), "NOT_FOUND", "no")
					for _, c := range p.told() {
						read = append(read, string(c.Body))
					}
					for _, text := range read {
						if strings.Contains(text, strings.Trim(m.Fingerprint, "-"+movement.UnnamedMark)) || strings.Contains(text, movement.UnnamedMark) || strings.Contains(text, `\u001e`) {
							p.Errorf("told %q", text)
						}
					}
					for _, call := range p.up.calls {
						if strings.Contains(string(call.Body), "external_id") {
							p.Errorf("the provider is told %s", call.Body)
						}
					}
				})
			})
		}
	}
}
