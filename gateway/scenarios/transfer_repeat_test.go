package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// idOf is our name of a transfer as its answer tells it.
func idOf(a said) string {
	var data struct{ RefID, TxID string }
	_ = json.Unmarshal([]byte(a.data), &data)
	return data.RefID + data.TxID
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

// wantDuplicate checks that a transfer is refused because of an earlier one, which stands at
// a status, and that as many have moved.
func (w *world) wantDuplicate(a said, id, status string, moved int) {
	w.Helper()
	if w.wantFault(a, fault.DuplicateTransfer, fault.SentNo); a.err == nil {
		return
	}
	data, _ := json.Marshal(a.err.Data)
	named := ""
	if parsed, err := movement.ParseID(id); err == nil {
		m, err := w.keeper.MovementByID(w.Context(), parsed)
		if err != nil {
			w.Fatal(err)
		}
		named = fmt.Sprintf(`{"txId":%q,"status":%q,"created_at":%q}`, id, status, lifecycle.Stamp(m.CreatedAt))
	}
	if string(data) != named || a.err.Retry != fault.RetryAfterChange || a.replayed || a.err.Reference != "" {
		w.Errorf("named %s (replayed: %t), want %s", data, a.replayed, named)
	}
	if !strings.Contains(a.err.Message, "external_id") || !strings.Contains(a.err.Message, status) {
		w.Errorf("told %q", a.err.Message)
	}
	w.wantMoved(moved)
}

// TestUnnamed: a transfer without a reference that equals an earlier one is refused within
// the policy's time, unless that has failed.
func TestUnnamed(t *testing.T) {
	t.Parallel()
	const within = 10 * time.Minute
	for name, test := range map[string]func(*world){
		"at once, and until the time is over": func(w *world) {
			first := w.create("")
			w.wantDuplicate(w.create(""), idOf(first), "Success", 1)
			w.pass(within - time.Microsecond)
			w.wantDuplicate(w.create(""), idOf(first), "Success", 1)
			w.pass(time.Microsecond)
			second := w.create("")
			w.wantNew(second, first, 2)
			w.wantDuplicate(w.create(""), idOf(second), "Success", 2)
		},
		"never refused": func(w *world) {
			w.limits.RepeatWithin = 0
			first := w.create("")
			second := w.create("")
			w.wantNew(second, first, 2)
			w.wantNew(w.create(""), second, 3)
		},
		"a longer time, given later": func(w *world) {
			first := w.create("")
			w.pass(within)
			w.limits.RepeatWithin = time.Hour
			w.wantDuplicate(w.create(""), idOf(first), "Success", 1)
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
		"the destination written otherwise, or another holder": func(w *world) {
			first := w.create("", "account_no", "2460888509")
			w.wantDuplicate(w.create("", "account_no", "2460-888.509"), idOf(first), "Success", 1)
			w.wantDuplicate(w.create("", "account_no", "2460888509", "account_name", "Somebody Else"), idOf(first), "Success", 1)
		},
		"with a reference": func(w *world) {
			first := w.create("")
			w.wantNew(w.create("A"), first, 2)
			w.wantNew(w.create("B"), first, 3)
			w.wantDuplicate(w.create(""), idOf(first), "Success", 3)
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
		"pending": func(w *world) {
			w.up.way.after = time.Minute
			first := w.create("")
			w.want(first, "Pending")
			w.wantDuplicate(w.create(""), idOf(first), "Pending", 1)
			w.work(w.keyOfRequest(w.request("")).Reference, 8*time.Minute)
			w.wantDuplicate(w.create(""), idOf(first), "Success", 1)
		},
		"refused": func(w *world) {
			w.up.way = wayNamed("refused")
			first := w.create("")
			w.want(first, refusedNever)
			w.want(w.create(""), refusedNever)
			w.up.way = way{}
			w.wantNew(w.create(""), first, 1)
		},
		"failed at last": func(w *world) {
			w.up.way = wayNamed("unknown, not made")
			first := w.create("")
			w.want(first, "Pending")
			w.wantDuplicate(w.create(""), idOf(first), "Pending", 0)
			w.work(w.keyOfRequest(w.request("")).Reference, time.Hour)
			w.limits.RepeatWithin = 24 * time.Hour
			w.up.way = way{}
			w.wantNew(w.create(""), first, 1)
		},
		"not sent": func(w *world) {
			w.up.way = wayNamed("not sent")
			w.want(w.create(""), notSentLater)
			w.up.way = way{}
			w.wantNew(w.create(""), said{}, 1)
		},
		"while it is created": func(w *world) {
			w.up.after = func(sdk.Call) {
				w.up.after = nil
				a := w.create("")
				w.want(a, "IN_PROGRESS no later")
				if a.err.Reference != "" {
					w.Errorf("%v names %q", a.err, a.err.Reference)
				}
			}
			first := w.create("")
			w.wantDuplicate(w.create(""), idOf(first), "Success", 1)
		},
		// The process ends behind the reservation: nobody knows whether it was sent. Once the
		// refusal has told that it is pending, proof that it was not makes it failed.
		"a crash before the call": func(w *world) {
			w.up.before = func(sdk.Call) { panic(crash{}) }
			if a := w.create(""); !a.crashed {
				w.Fatalf("answered %s", a.word())
			}
			w.up.before = nil
			w.want(w.create(""), "IN_PROGRESS no later")
			m, _ := w.latest(w.request(""))
			w.pass(time.Minute)
			w.wantDuplicate(w.create(""), m.ID.Compact(), "Pending", 0)
			w.want(w.statusBy("txId", m.ID.Compact()), "Pending")
			w.work(m.Reference, 9*time.Minute)
			w.want(w.statusBy("txId", m.ID.Compact()), "Failed")
			w.wantNew(w.create(""), said{}, 1)
		},
		"a crash behind the call": func(w *world) {
			w.up.after = func(sdk.Call) { panic(crash{}) }
			if a := w.create(""); !a.crashed {
				w.Fatalf("answered %s", a.word())
			}
			w.up.after = nil
			m, _ := w.latest(w.request(""))
			w.pass(time.Minute)
			w.wantDuplicate(w.create(""), m.ID.Compact(), "Pending", 1)
			w.work(m.Reference, time.Minute)
			w.wantDuplicate(w.create(""), m.ID.Compact(), "Success", 1)
		},
		"a commit of which nobody knows": func(w *world) {
			w.faults.reserve = func(_ context.Context, do reserving) (movement.Movement, bool, error) {
				w.faults.reserve = nil
				if _, _, err := do(); err != nil {
					w.Error(err)
				}
				return movement.Movement{}, false, errAway
			}
			w.want(w.create(""), "INTERNAL no later")
			w.want(w.create(""), "IN_PROGRESS no later")
			w.wantMoved(0)
		},
		"a restart between two": func(w *world) {
			first := w.create("")
			w.wantDuplicate(w.sends(w.replica(w.keeper), w.request("")), idOf(first), "Success", 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, transfers, func(w *world) {
				w.limits.RepeatWithin = within
				test(w)
			})
		})
	}
}

// TestUnnamedAtOnce: of equal transfers without a reference that come together, also after
// one that is too old to match, one is reserved. Where none are refused, all are.
func TestUnnamedAtOnce(t *testing.T) {
	t.Parallel()
	onReplicas(t, transfers, false, func(w *world, engines ...*Engine) {
		together := func() []said {
			var running sync.WaitGroup
			answers := make([]said, 10)
			all := make(chan struct{})
			var mu sync.Mutex
			seen := 0
			w.faults.compared = func() { // all have seen the same newest one
				mu.Lock()
				if seen++; seen == len(answers) {
					close(all)
				}
				mu.Unlock()
				<-all
			}
			for i := range answers {
				running.Go(func() { answers[i] = w.runOn(engines[i%len(engines)], w.request("")) })
			}
			running.Wait()
			w.faults.compared = nil
			return answers
		}
		for round := 1; round <= 3; round++ {
			w.limits.RepeatWithin = time.Microsecond // the last round's are older
			w.pass(time.Microsecond)
			made := 0
			for _, a := range together() {
				if a.word() == "Success" {
					made++
				} else if a.err == nil || a.err.Code != fault.InProgress && a.err.Code != fault.DuplicateTransfer {
					w.Errorf("answered %s (%v)", a.word(), a.err)
				}
			}
			if made != 1 || w.up.total() != round {
				w.Errorf("round %d: %d were made, %d have moved", round, made, w.up.total())
			}
		}
		w.wantMoved(3)
		w.limits.RepeatWithin = 0
		ids := map[string]bool{}
		for _, a := range together() {
			w.want(a, "Success")
			ids[idOf(a)] = true
		}
		if w.wantMoved(13); len(ids) != 10 {
			w.Errorf("ten have %d names", len(ids))
		}
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
