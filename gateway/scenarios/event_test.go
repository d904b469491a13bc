package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestEvents: one event for each final state and each record, in the commit of
// it, and none for anything else.
func TestEvents(t *testing.T) {
	t.Parallel()
	hears := func(what string) func(*world) {
		return func(w *world) {
			m := w.stored("A")
			for f := range strings.SplitSeq(what, ", ") {
				w.pass(time.Second)
				w.hear(news(m)[f])
			}
		}
	}
	pays := func(w *world) {
		m := w.stored("A")
		w.up.pay(m.UpstreamReference(), "p")
	}
	for name, c := range map[string]struct {
		outcome string
		then    func(*world)
		want    []string
	}{
		"pending":              {"works", hears("open"), nil},
		"done at once":         {"done at once", nil, nil}, // the provider's word on a creation is never that it is paid
		"refused at once":      {"refused", nil, []string{ends + " FAILED"}},
		"not sent":             {"not sent", nil, nil},
		"proven unsent":        {"unknown, not made", func(w *world) { w.prove("A") }, nil},
		"paid":                 {"works", hears("paid"), []string{ends + " PAID"}},
		"paid, said often":     {"works", hears("paid, paid, open, paid again, ended"), []string{ends + " PAID"}},
		"ended":                {"works", hears("ended, ended"), []string{ends + " EXPIRED"}},
		"failed":               {"works", hears("failed"), []string{ends + " FAILED"}},
		"another amount":       {"works", hears("less, less"), []string{differs + " PENDING"}},
		"another amount late":  {"works", hears("ended, less, less"), []string{ends + " EXPIRED", late + " EXPIRED"}},
		"cancelled":            {"works", func(w *world) { w.cancel("A"); w.cancel("A") }, []string{ends + " EXPIRED"}},
		"late money":           {"works", hears("ended, paid, paid, paid again"), []string{ends + " EXPIRED", late + " EXPIRED"}},
		"late for a failed":    {"refused", hears("paid"), []string{ends + " FAILED", late + " FAILED"}},
		"taken back":           {"works", hears("paid, failed, failed"), []string{ends + " PAID", taken + " FAILED"}},
		"found by the worker":  {"works", func(w *world) { pays(w); w.work("A", time.Hour) }, []string{ends + " PAID"}},
		"found by a status":    {"works", func(w *world) { pays(w); w.pass(time.Minute); w.status("A") }, []string{ends + " PAID"}},
		"paid before answered": {"unknown, not made", hears("paid"), []string{ends + " PAID"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.up.way = wayNamed(c.outcome)
				if strings.HasPrefix(c.outcome, "unknown") {
					w.unanswered("A")
				} else {
					w.create("A")
				}
				if c.then != nil {
					c.then(w)
				}
				w.wantTold(c.want...)
			})
		})
	}
}

// TestEventBody: an event says what a status answers at that moment, and when
// that was, whatever came later.
func TestEventBody(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		var want []string
		seen := func(event string) {
			status := strings.TrimSuffix(w.status("A").data, "}")
			want = append(want, fmt.Sprintf(`{"event":%q,"data":%s,"timestamp":%q}}`, event, status, w.now().UTC().Format(time.RFC3339)))
		}
		w.create("A", "metadata", map[string]any{"note": "<1>"})
		m := w.stored("A")
		w.pass(time.Minute)
		w.hear(news(m)["ended"])
		seen(ends)
		w.pass(time.Minute)
		w.hear(news(m)["paid"])
		seen(late)
		if !strings.Contains(want[1], `"paid_late_at":`) {
			t.Errorf("late money is told without its time: %s", want[1])
		}
		for i, c := range w.told() {
			if string(c.Body) != want[i] || c.Reference != "A" || c.MovementID != m.ID || c.Sequence != 3+i {
				t.Errorf("event %d of %s\ngot  %s\nwant %s", c.Sequence, c.Reference, c.Body, want[i])
			}
		}
		w.create("R")
		w.pass(time.Minute)
		for _, what := range []string{"paid", "failed"} {
			w.hear(news(w.stored("R"))[what])
			w.pass(time.Second)
		}
		if all := w.told(); len(all) != 4 || !strings.Contains(string(all[3].Body), `"returned_at":`) {
			t.Errorf("a return is told as %+v", all)
		}
	})
}

// TestReceiver: the request's own URL, or the default of the merchant in this
// mode, or none; and the courier is woken where there is somewhere to go.
func TestReceiver(t *testing.T) {
	t.Parallel()
	const own, live, test = "https://own.example/", "https://live.example/", "https://test.example/"
	for name, c := range map[string]struct {
		defaults []tenants.CallbackSecret
		asked    string
		want     string
	}{
		"asked":             {nil, own, own},
		"asked and default": {[]tenants.CallbackSecret{{Mode: tenants.Live, URL: live}}, own, own},
		"default":           {[]tenants.CallbackSecret{{Mode: tenants.Test, URL: test}, {Mode: tenants.Live, URL: live}}, "", live},
		"other mode's":      {[]tenants.CallbackSecret{{Mode: tenants.Test, URL: test}}, "", ""},
		"nowhere":           {nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.account = w.merchant(c.defaults...)
				r := w.request("A")
				r.CallbackURL = c.asked
				w.want(w.run(r), "PENDING")
				if w.woken.Load() != 0 {
					t.Error("the courier was woken for nothing")
				}
				m := w.stored("A")
				for _, what := range []string{"ended", "paid"} {
					w.hear(news(m)[what])
				}
				all := w.told()
				if len(all) != 2 || all[0].URL != c.want || all[1].URL != c.want {
					t.Errorf("told %+v, want both at %q", all, c.want)
				}
				if woken := w.woken.Load(); woken != 0 != (c.want != "") {
					t.Errorf("the courier was woken %d times", woken)
				}
			})
		})
	}
}

// TestEventIDOnRetries: however often a commit is tried, also one that was
// through without our hearing of it, its event is the same.
func TestEventIDOnRetries(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(w *world, do func() (bool, error)) (bool, error){
		"failed":         func(*world, func() (bool, error)) (bool, error) { return false, errAway },
		"through unseen": func(_ *world, do func() (bool, error)) (bool, error) { _, _ = do(); return false, errAway },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.create("A")
				var tried []uuid.UUID
				w.faults.told = func(told *movement.CallbackEvent) {
					tried = append(tried, told.ID)
					w.faults.recording = nil
					if len(tried) == 4 { // the first try of late money
						w.faults.recording = errAway
					}
				}
				w.faults.move = func(do func() (bool, error)) (bool, error) {
					if len(tried) < 3 {
						return fails(w, do)
					}
					return do()
				}
				w.hear(news(w.stored("A"))["ended"])
				w.hear(news(w.stored("A"))["paid"])
				all := w.told()
				if len(all) != 2 || len(tried) != 5 {
					t.Fatalf("told %d times by %d tries", len(all), len(tried))
				}
				slices.SortFunc(all, func(a, b movement.Callback) int { return a.Sequence - b.Sequence })
				if id := all[0].EventID; tried[0] != id || tried[1] != id || tried[2] != id {
					t.Errorf("the end's tries were %v, it is told as %v", tried[:3], id)
				}
				if id := all[1].EventID; tried[3] != id || tried[4] != id || id == tried[0] {
					t.Errorf("late money's tries were %v, it is told as %v", tried[3:], id)
				}
			})
		})
	}
}

// TestNothingWithoutItsEvent: where an event can't be made, the end is not
// committed either, and the fact comes again.
func TestNothingWithoutItsEvent(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A")
		m := w.stored("A")
		w.up.ack = sdk.Acknowledgement{Status: 200, Updates: []sdk.StatusUpdate{news(m)["paid"]}}
		c, _ := w.account.Connection(tenants.Live, provider)
		delete(w.others, w.account.ID())
		op := operation(createPath)
		if _, err := w.settle(w.Context(), op, m, news(m)["paid"], "notification"); err == nil {
			t.Error("an end was settled without its event")
		}
		if state := w.stored("A").State; state != movement.Pending {
			t.Errorf("stands at %s", state)
		}
		w.others[w.account.ID()] = w.account
		if _, err := w.notifyAt(w.Context(), provider, c.NotifyToken); err != nil {
			t.Error(err)
		}
		w.wantTold(ends + " PAID")
	})
}
