package scenarios

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// idOf is our name of a transfer as its answer tells it.
func idOf(a said) string {
	var data struct{ RefID, TxID string }
	_ = json.Unmarshal([]byte(a.data), &data)
	return data.RefID + data.TxID
}

// delivers is a transfer without a reference whose answer reaches its caller.
func (w *world) delivers(pairs ...any) said {
	w.Helper()
	a := w.create("", pairs...)
	if a.receipt == (movement.ID{}) {
		w.Errorf("%s (%v) has no receipt", a.word(), a.err)
	}
	if w.real { // a slow machine's database is waited for
		defer func(within time.Duration) { w.transfers.HeardWithin = within }(w.transfers.HeardWithin)
		w.transfers.HeardWithin = time.Minute
	}
	w.Delivered(w.Context(), a.receipt)
	return a
}

// wantSame checks that a transfer is answered as an earlier one, and that as many
// have moved.
func (w *world) wantSame(a, earlier said, moved int) {
	w.Helper()
	if a.word() != earlier.word() || a.data != earlier.data || !a.replayed {
		w.Errorf("got %s %s (replayed: %t), want %s %s again", a.word(), a.data, a.replayed, earlier.word(), earlier.data)
	}
	w.wantMoved(moved)
}

func (w *world) wantMoved(moved int) {
	w.Helper()
	if w.addUp(); w.up.total() != moved {
		w.Errorf("%d have moved, want %d", w.up.total(), moved)
	}
}

// wantNew checks that a transfer is another one.
func (w *world) wantNew(a, earlier said, moved int) {
	w.Helper()
	if a.word() != "Success" || idOf(a) == idOf(earlier) || a.replayed {
		w.Errorf("got %s %s (replayed: %t), and earlier %s", a.word(), a.data, a.replayed, earlier.data)
	}
	w.wantMoved(moved)
}

// TestUnnamed: a transfer without a reference that equals an earlier one is that
// one while its caller can't know of it, and another one otherwise.
func TestUnnamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*world){
		"delivered": func(w *world) {
			first := w.delivers()
			second := w.delivers()
			w.wantNew(second, first, 2)
			w.wantNew(w.delivers(), second, 3)
		},
		"undelivered, within a day": func(w *world) {
			first := w.create("")
			w.pass(sameFor - time.Microsecond)
			w.wantSame(w.create(""), first, 1)
		},
		"undelivered, after a day": func(w *world) {
			first := w.create("")
			w.pass(sameFor)
			w.wantNew(w.create(""), first, 2)
		},
		"delivered at last": func(w *world) {
			first := w.create("")
			w.wantSame(w.delivers(), first, 1)
			w.wantNew(w.create(""), first, 2)
		},
		"another amount": func(w *world) {
			first := w.create("")
			w.wantNew(w.create("", "amount", number(sending+1)), first, 2)
		},
		"another destination, path or message": func(w *world) {
			first := w.create("")
			w.wantNew(w.create("", "account_no", "2460888510"), first, 2)
			w.wantNew(w.create("", "message", "again"), first, 3)
			w.path = walletPath
			w.wantNew(w.create(""), first, 4)
		},
		"with a reference": func(w *world) {
			first := w.create("")
			w.wantNew(w.create("A"), first, 2)
			w.wantNew(w.create("B"), first, 3)
			w.wantSame(w.create(""), first, 3)
		},
		"of another merchant or mode": func(w *world) {
			first := w.create("")
			r := w.request("")
			r.Identity.Mode = "test"
			if a := w.runOn(w.Engine, r); a.word() != "Success" || a.replayed || idOf(a) == idOf(first) {
				w.Errorf("in test mode: %s (replayed: %t)", a.data, a.replayed)
			}
			r = w.request("")
			r.Identity.Account = w.connected(w.merchant().ID(), "", 1)
			if a := w.runOn(w.Engine, r); a.word() != "Success" || a.replayed || idOf(a) == idOf(first) {
				w.Errorf("of another merchant: %s (replayed: %t)", a.data, a.replayed)
			}
			w.wantMoved(3)
		},
		"pending and delivered": func(w *world) {
			w.up.way.after = 48 * time.Hour
			first := w.delivers()
			w.want(first, "Pending")
			w.pass(47 * time.Hour) // longer than anything
			w.wantSame(w.delivers(), first, 1)
			w.work(w.keyOfRequest(w.request("")).Reference, 48*time.Hour)
			w.up.way.after = 0
			w.wantNew(w.delivers(), first, 2)
		},
		"pending and undelivered": func(w *world) {
			w.up.way.after = time.Minute
			first := w.create("")
			w.want(first, "Pending")
			w.work(w.keyOfRequest(w.request("")).Reference, time.Hour)
			second := w.create("")
			if second.word() != "Success" || idOf(second) != idOf(first) {
				w.Errorf("got %s, first %s", second.data, first.data)
			}
			w.wantMoved(1)
		},
		"refused and undelivered": func(w *world) {
			w.up.way = wayNamed("refused")
			first := w.create("")
			w.up.way = way{}
			w.want(first, refusedNever)
			w.wantSame(w.create(""), first, 0)
			w.pass(sameFor)
			w.wantNew(w.create(""), first, 1)
		},
		"refused and delivered": func(w *world) {
			w.up.way = wayNamed("refused")
			first := w.delivers()
			w.up.way = way{}
			w.want(first, refusedNever)
			w.wantNew(w.delivers(), first, 1)
		},
		"failed at last, undelivered": func(w *world) {
			w.up.way = wayNamed("unknown, not made")
			w.want(w.delivers(), "Pending")
			w.work(w.keyOfRequest(w.request("")).Reference, time.Hour)
			w.up.way = way{}
			w.wantNew(w.create(""), said{}, 1) // who was told that it is pending was told its end, too
		},
		"not sent": func(w *world) {
			w.up.way = wayNamed("not sent")
			first := w.create("")
			w.want(first, notSentLater)
			if first.receipt != (movement.ID{}) {
				w.Error("there is nothing that could be delivered")
			}
			w.up.way = way{}
			w.wantNew(w.delivers(), first, 1)
		},
		"while it is created": func(w *world) {
			w.up.after = func(sdk.Call) {
				w.up.after = nil
				a := w.create("")
				w.want(a, "IN_PROGRESS no later")
				if a.receipt != (movement.ID{}) || a.err.Reference != "" {
					w.Errorf("%v has a receipt, or names %q", a.err, a.err.Reference)
				}
			}
			first := w.create("")
			w.wantSame(w.create(""), first, 1)
		},
		"a policy's window": func(w *world) {
			w.limits.RepeatWithin = time.Hour
			first := w.delivers()
			w.pass(time.Hour - time.Microsecond)
			w.wantSame(w.delivers(), first, 1)
			w.pass(time.Microsecond)
			second := w.delivers()
			w.wantNew(second, first, 2)
			w.limits.RepeatWithin = 0
			w.wantNew(w.delivers(), second, 3)
		},
		"a policy's window, refused": func(w *world) {
			w.limits.RepeatWithin = time.Hour
			w.up.way = wayNamed("refused")
			first := w.delivers()
			w.up.way = way{}
			w.wantNew(w.delivers(), first, 1)
		},
		"the database is away when it is delivered": func(w *world) {
			first := w.create("")
			tries := 0
			w.faults.deliver = func(do func() error) error {
				if tries++; tries < 4 {
					return errAway
				}
				return do()
			}
			w.transfers.HeardWithin = 2 * time.Second
			w.Delivered(w.Context(), first.receipt)
			w.wantNew(w.create(""), first, 2)
		},
		"the caller hung up, and asks again": func(w *world) {
			first := w.create("")
			asked := time.Now()
			w.wantSame(w.create(""), first, 1)
			if waited, most := time.Since(asked), w.transfers.HeardWithin; waited < most || !w.real && waited != most {
				w.Errorf("it waited %v to learn whether the first answer was delivered, want %v", waited, most)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, transfers, test)
		})
	}
}

// TestUnnamedWaitsForDelivery: who has read an answer sends the next transfer, on any
// replica, before it is noted that the answer was delivered.
func TestUnnamedWaitsForDelivery(t *testing.T) {
	t.Parallel()
	onReplicas(t, transfers, false, func(w *world, engines ...*Engine) {
		first := w.create("")
		for n := range 3 {
			looked := make(chan struct{})
			var once sync.Once
			other := w.replica(&faulty{keeper: w.keeper, compared: func() { once.Do(func() { close(looked) }) }})
			if n > 0 {
				other = engines[len(engines)-1]
				close(looked)
			}
			w.transfers.HeardWithin, other.transfers.HeardWithin = 2*time.Second, 2*time.Second
			w.faults.deliver = func(do func() error) error {
				<-looked
				return do()
			}
			var noting sync.WaitGroup
			receipt := first.receipt
			noting.Go(func() { w.Delivered(w.Context(), receipt) })
			second := w.sends(other, w.request(""))
			noting.Wait()
			w.wantNew(second, first, n+2)
			first = second
		}
	})
}

// TestUnnamedAtOnce: of equal transfers without a reference that come together,
// also after one that is done with, one is claimed.
func TestUnnamedAtOnce(t *testing.T) {
	t.Parallel()
	onReplicas(t, transfers, false, func(w *world, engines ...*Engine) {
		for round := 1; round <= 3; round++ {
			var running sync.WaitGroup
			answers := make([]said, 10)
			all := make(chan struct{})
			var mu sync.Mutex
			seen := 0
			w.faults.judged = func() {
				mu.Lock()
				defer mu.Unlock()
				if seen++; seen == len(answers) {
					close(all)
				}
			}
			w.up.set(func() { w.up.beforeQuote = func() { <-all } })
			for i := range answers {
				running.Go(func() { answers[i] = w.runOn(engines[i%len(engines)], w.request("")) })
			}
			running.Wait()
			w.faults.judged = nil
			w.up.set(func() { w.up.beforeQuote = nil })
			ids := map[string]bool{}
			for _, a := range answers {
				if a.word() == "Success" {
					ids[idOf(a)] = true
				} else if a.word() != "IN_PROGRESS no later" {
					w.Errorf("answered %s (%v)", a.word(), a.err)
				}
			}
			if len(ids) != 1 || w.up.total() != round {
				w.Errorf("round %d: %d answers differ, %d have moved", round, len(ids), w.up.total())
			}
			w.delivers()
		}
		w.wantMoved(3)
	})
}

// TestUnnamedIsSecret: nobody reads the reference that the gateway gives to a
// transfer without one, and nobody can use it.
func TestUnnamedIsSecret(t *testing.T) {
	t.Parallel()
	for _, path := range []string{walletPath, bankPath} {
		for _, c := range ways {
			t.Run(path+", "+c.name, func(t *testing.T) {
				t.Parallel()
				inMemory(t, transfers, func(w *world) {
					w.path, w.up.way = path, c
					a := w.create("")
					r := w.request("")
					m, _ := w.latest(r)
					var read []string
					note := func(a said) {
						w.truthful(r, a)
						if read = append(read, a.data); a.err != nil {
							read = append(read, a.err.Reference, a.err.Message)
						}
					}
					note(a)
					w.work(m.Reference, time.Hour)
					note(w.create(""))
					m, _ = w.latest(r)
					for _, name := range ourNames {
						status := w.statusBy(name, m.ID.Compact())
						read = append(read, status.data)
						if m.State != movement.NotSubmitted && status.data != statusOf(m) {
							w.Errorf("by %s: %s (%v), want %s", name, status.data, status.err, statusOf(m))
						}
					}
					w.wantFault(w.statusBy("external_id", m.Reference), "NOT_FOUND", "no")
					for _, c := range w.told() {
						read = append(read, string(c.Body))
					}
					for _, text := range read {
						if strings.Contains(text, strings.Trim(m.Fingerprint, "-"+movement.UnnamedMark)) || strings.Contains(text, movement.UnnamedMark) || strings.Contains(text, `\u001e`) {
							w.Errorf("told %q", text)
						}
					}
					for _, call := range w.up.calls {
						if strings.Contains(string(call.Body), "external_id") {
							w.Errorf("the provider is told %s", call.Body)
						}
					}
				})
			})
		}
	}
}
