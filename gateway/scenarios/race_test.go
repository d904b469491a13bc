package scenarios

import (
	"slices"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestEqualCreatesAtOnce: fifty clients, one payment, one answer.
func TestEqualCreatesAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		answers := make([]said, 50)
		var clients sync.WaitGroup
		start := make(chan struct{})
		for i := range answers {
			clients.Go(func() {
				<-start
				answers[i] = w.create("A")
			})
		}
		close(start)
		clients.Wait()
		last, first := w.create("A"), 0
		for i, s := range answers {
			switch {
			case s.word() == "PENDING":
				if s.data != last.data {
					w.Errorf("client %d was answered %s, another %s", i, s.data, last.data)
				}
				if !s.replayed {
					first++
				}
			case s.word() != "IN_PROGRESS no later":
				w.Errorf("client %d was answered %s", i, s.word())
			}
		}
		if things, calls := w.up.made(); things != 1 || calls != 1 || first != 1 {
			w.Errorf("%d things exist, one was called %d times, %d were told that they were first", things, calls, first)
		}
	})
}

// TestFreedAtOnce: fifty clients, and each call turns out to have sent nothing;
// whoever comes next may try, under the same name, and never two at a time.
func TestFreedAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		var mu sync.Mutex
		under := 0
		w.up.before = func(sdk.Call) {
			mu.Lock()
			defer mu.Unlock()
			if under++; under > 1 {
				w.Error("two calls at a time")
			}
		}
		w.up.way = way{unmade: true, says: func(sdk.Call) sdk.Result {
			mu.Lock()
			defer mu.Unlock()
			under--
			return sdk.DidNotSend(sdk.BlameNone, "no process")
		}}
		var clients sync.WaitGroup
		for range 50 {
			clients.Go(func() {
				switch s := w.create("A"); s.word() {
				case "PROVIDER_UNAVAILABLE no later", "IN_PROGRESS no later":
				default:
					w.Errorf("answered %s", s.word())
				}
			})
		}
		clients.Wait()
		if _, calls := w.up.made(); calls != w.stored("A").Attempt {
			w.Errorf("one reference was called %d times in %d attempts", calls, w.stored("A").Attempt)
		}
		w.restart()
		w.want(w.create("A"), "PENDING")
	})
}

// TestStatusUpdateRacesTheCall: the payment's notification and the worker come while
// the call's own answer is being settled, in any order.
func TestStatusUpdateRacesTheCall(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		var others sync.WaitGroup
		w.up.after = func(call sdk.Call) {
			w.up.pay(call.Reference, "p-"+call.Reference)
			id, _ := movement.ParseUpstreamReference(call.Reference)
			m, err := w.keeper.MovementByID(w.Context(), id)
			if err != nil {
				w.Error(err)
			}
			for range 2 {
				others.Go(func() { w.hear(news(m)["paid"]) })
				others.Go(func() {
					if err := w.Resolve(w.Context(), m); err != nil {
						w.Error(err)
					}
				})
			}
		}
		w.up.find = func(l sdk.Lookup) sdk.StatusUpdate {
			f := w.up.stands(l.Reference)
			f.EventID = "p" // as the notification names it
			return f
		}
		for _, reference := range []string{"A", "B", "C", "D", "E", "F", "G", "H"} {
			first := w.create(reference, "type", "qris")
			others.Wait()
			w.want(first, "PENDING")
			w.want(w.status(reference), "PAID")
			again := w.create(reference, "type", "qris")
			if m := w.stored(reference); again.data != first.data || m.State != movement.Succeeded || m.FactID != "p" {
				w.Errorf("first %s, then %s; it stands at %s by %s", first.data, again.data, m.State, m.FactID)
			}
		}
		w.wantListed()
		w.wantTold(slices.Repeat([]string{ends + " PAID"}, 8)...)
		if _, calls := w.up.made(); calls != 1 {
			w.Errorf("one reference was called %d times", calls)
		}
	})
}

// TestNotificationsAtOnce: the same facts on many connections leave one end and
// one entry each.
func TestNotificationsAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		w.create("A")
		m := w.stored("A")
		facts := news(m)
		w.up.ack = sdk.Acknowledgement{Status: 200, Updates: []sdk.StatusUpdate{facts["paid"], facts["ended"], facts["less"], facts["failed"]}}
		c, _ := w.account.Connection(tenants.Live, provider)
		var senders sync.WaitGroup
		for range 20 {
			senders.Go(func() {
				if _, err := w.notifyAt(w.Context(), provider, c.NotifyToken); err != nil {
					w.Error(err)
				}
			})
		}
		senders.Wait()
		w.want(w.status("A"), "FAILED") // the last of them says that all of it went back
		w.wantListed(movement.ReasonAmount, movement.ReasonReturned)
		w.wantTold(ends+" PAID", taken+" FAILED")
	})
}
