package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

func TestStatusAnswer(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		start := w.now()
		w.create("A", "metadata", map[string]any{"note": "1"})
		at := func(d time.Duration) string { return start.Add(d).UTC().Format(time.RFC3339) }
		theirs := w.stored("A").ProviderReference
		want := func(status string, updated time.Duration, arrived, more string) {
			t.Helper()
			expected := `{"external_id":"A","status":"` + status + `","amount":10000,"payer_email":"payer@shop.example","metadata":{"note":"1"}` + arrived + `,"created_at":"` +
				at(0) + `","updated_at":"` + at(updated) + `","provider_reference":"` + theirs + `"` + more + `}`
			if s := w.status("A"); s.data != expected || s.replayed {
				t.Errorf("got  %s %v\nwant %s", s.data, s.err, expected)
			}
		}
		want("PENDING", 0, "", "")
		w.pass(time.Minute)
		w.want(w.cancel("A"), "EXPIRED")
		want("EXPIRED", time.Minute, "", "")
		w.pass(time.Minute)
		m := w.stored("A")
		w.hear(w.up.pay(m.UpstreamReference(), "p"))
		want("EXPIRED", 2*time.Minute, `,"paid_amount":10000`, `,"paid_late_at":"`+at(2*time.Minute)+`"`)
		w.want(w.status("B"), "NOT_FOUND no never")
	})
}

// TestStatusTellsHowItWasPaid: what the provider has told of a payment stands in the
// status and in the callback, and what comes later takes nothing of it back.
func TestStatusTellsHowItWasPaid(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		w.create("A")
		m := w.stored("A")
		paid := news(m)["paid"]
		paid.At, paid.Channel = w.now().Add(90*time.Second), "BCA\n"
		w.pass(2 * time.Minute)
		w.hear(paid)
		want := `,"paid_at":"` + paid.At.UTC().Format(time.RFC3339) + `","channel":"BCA","provider_reference":"` + m.ProviderReference + `"`
		told := w.told()
		if len(told) != 1 || !strings.Contains(string(told[0].Body), want) {
			t.Errorf("told %+v, want %s", told, want)
		}
		again := news(m)["paid"]
		again.Channel = "QRIS"
		w.hear(again)
		if got := w.status("A").data; !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestStatusAsksSeldom: however many ask, in whatever process, the provider is
// asked once in five seconds at most.
func TestStatusAsksSeldom(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A")
		other := New(w.made)
		for range 21 {
			w.want(w.status("A"), "PENDING")
			if _, err := other.Run(w.Context(), w.asks(statusPath, "external_id", "A")); err != nil {
				t.Error(err)
			}
			w.pass(time.Second)
		}
		if w.up.asked() != 4 {
			t.Errorf("asked %d times in 20 s: %v", w.up.asked(), w.up.lookups)
		}
		for i := 1; i < len(w.up.lookups); i++ {
			if gap := w.up.lookups[i].Sub(w.up.lookups[i-1]); gap < lookEvery {
				t.Errorf("asked twice in %v", gap)
			}
		}
		m := w.stored("A")
		w.up.pay(m.UpstreamReference(), "p")
		w.pass(lookEvery)
		w.want(w.status("A"), "PAID")
		asked := w.up.asked()
		w.pass(time.Hour)
		if w.want(w.status("A"), "PAID"); w.up.asked() != asked {
			t.Error("what has ended was asked for")
		}
	})
}

// TestStatusIsQuick: a slow provider costs a status call three seconds at most,
// and an error on the way costs it nothing.
func TestStatusIsQuick(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A")
		w.pass(lookEvery)
		w.up.find = blind
		w.want(w.status("A"), "PENDING")
		w.pass(lookEvery)
		w.up.find = func(sdk.Lookup) sdk.StatusUpdate {
			w.pass(lookupTimeout)
			return sdk.NoStatus(sdk.BlameUpstream, "slow")
		}
		begun := time.Now()
		w.want(w.status("A"), "PENDING")
		if took := time.Since(begun); took != statusLookup {
			t.Errorf("it took %v", took)
		}
		if limit := w.up.deadline.Sub(begun); limit > longestLook || limit <= 0 {
			t.Errorf("the provider had %v", limit)
		}
		w.pass(lookEvery)
		w.Vault = openVault{locked: true}
		w.want(w.status("A"), "PENDING")
	})
}

// TestImpatientStatusCutsNoPoll: a status call that gives up does not cut the poll
// that it began.
func TestImpatientStatusCutsNoPoll(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.up.way = wayNamed("unknown, made")
		w.up.find = blind
		w.want(w.create("A"), timedOut)
		w.up.find = func(l sdk.Lookup) sdk.StatusUpdate {
			w.pass(statusLookup + time.Second)
			return w.up.stands(l.Reference)
		}
		for range 3 * lookEvery / time.Second {
			w.pass(time.Second)
			w.status("A")
		}
		if m := w.stored("A"); m.State != movement.Pending {
			t.Errorf("stands at %s", m.State)
		}
		w.pass(lookupTimeout) // the last look ends
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	pays := func(w *world, call sdk.Call) {
		thing := w.up.things[" "+call.Reference]
		thing.ends, thing.paid = sdk.StatusDone, "p"
	}
	for name, c := range map[string]struct {
		cancel func(w *world) func(sdk.Call) sdk.Result
		settle error
		word   string
		ends   movement.State
	}{
		"open": {nil, nil, "EXPIRED", movement.Expired},
		"paid meanwhile, refused": {func(w *world) func(sdk.Call) sdk.Result {
			return func(call sdk.Call) sdk.Result { pays(w, call); return sdk.Refuse(sdk.RefuseOther, "paid") }
		}, nil, "PAID", movement.Succeeded},
		"paid meanwhile, left to us": {func(w *world) func(sdk.Call) sdk.Result {
			return func(call sdk.Call) sdk.Result { pays(w, call); return sdk.Finished("", struct{}{}) }
		}, nil, "PAID", movement.Succeeded},
		"open, left to us": {func(*world) func(sdk.Call) sdk.Result {
			return func(sdk.Call) sdk.Result { return sdk.Finished("", struct{}{}) }
		}, nil, "EXPIRED", movement.Expired},
		"left to us, who can't look": {func(w *world) func(sdk.Call) sdk.Result {
			w.up.find = blind
			return func(sdk.Call) sdk.Result { return sdk.Finished("", struct{}{}) }
		}, nil, "EXPIRED", movement.Expired},
		"refused, still open": {func(*world) func(sdk.Call) sdk.Result {
			return func(sdk.Call) sdk.Result { return sdk.Refuse(sdk.RefuseOther, "no") }
		}, nil, timedOut, movement.Pending},
		"unknown, ended": {func(w *world) func(sdk.Call) sdk.Result {
			return func(call sdk.Call) sdk.Result {
				w.up.things[" "+call.Reference].ends = sdk.StatusExpired
				return sdk.DontKnow(sdk.BlameUpstream, "cut")
			}
		}, nil, "EXPIRED", movement.Expired},
		"unknown, who can't look": {func(w *world) func(sdk.Call) sdk.Result {
			w.up.find = blind
			return func(sdk.Call) sdk.Result { return sdk.DontKnow(sdk.BlameUpstream, "cut") }
		}, nil, timedOut, movement.Pending},
		"not sent": {func(*world) func(sdk.Call) sdk.Result {
			return func(sdk.Call) sdk.Result { return sdk.DidNotSend(sdk.BlameNone, "no process") }
		}, nil, "PROVIDER_UNAVAILABLE no later", movement.Pending},
		"not to be written": {nil, broken{errAway}, "INTERNAL unknown lookup_first", movement.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.create("A")
				w.pass(time.Minute)
				if c.cancel != nil {
					w.up.cancel = c.cancel(w)
				}
				if c.settle != nil {
					w.faults.move = func(func() (bool, error)) (bool, error) { return false, c.settle }
				}
				w.want(w.cancel("A"), c.word)
				if state := w.stored("A").State; state != c.ends || w.up.cancels != 1 {
					t.Errorf("stands at %s, want %s; %d cancels", state, c.ends, w.up.cancels)
				}
				w.wantListed()
				if c.ends.Final() { // and is answered so again, without asking anybody
					if w.want(w.cancel("A"), c.word); w.up.cancels != 1 {
						t.Error("what has ended was cancelled again")
					}
				}
			})
		})
	}
}

// TestCancelOfOtherStates: anything but PENDING answers its present state and
// is not changed.
func TestCancelOfOtherStates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		outcome string
		then    func(w *world)
		word    string
	}{
		"paid": {"works", func(w *world) {
			m := w.stored("A")
			w.hear(w.up.pay(m.UpstreamReference(), "p"))
		}, "PAID"},
		"refused":        {"refused", nil, "FAILED"},
		"unanswered":     {"unknown, not made", nil, timedOut},
		"made in secret": {"unknown, made", func(w *world) { w.pass(time.Minute) }, "EXPIRED"},
		"unsent":         {"not sent", nil, "NOT_FOUND no never"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.up.way = wayNamed(c.outcome)
				if c.then != nil && strings.HasPrefix(c.outcome, "unknown") {
					w.up.find = blind
				}
				w.create("A")
				w.up.find = nil
				if c.then != nil {
					c.then(w)
				}
				w.want(w.cancel("A"), c.word)
			})
		})
	}
	inMemory(t, payments, func(w *world) { w.want(w.cancel("A"), "NOT_FOUND no never") })
}

// TestCancelIsTriedAgainSoon: after a cancel that was cut, its merchant is not told to
// wait for the next poll of an old payment.
func TestCancelIsTriedAgainSoon(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A")
		w.work("A", 3*time.Hour)
		w.up.find, w.up.cancel = blind, func(sdk.Call) sdk.Result { return sdk.DontKnow(sdk.BlameUpstream, "cut") }
		cut, every := w.cancel("A"), w.request("A").Operation.Rules.Pace.Every
		w.want(cut, timedOut)
		if wait := cut.err.RetryAt.Sub(w.now()); wait > every+time.Second || w.stored("A").DueAt.Before(w.now().Add(2*every)) {
			w.Errorf("told to come back in %v", wait)
		}
		w.up.cancel = nil
		w.pass(every + time.Second)
		w.want(w.cancel("A"), "EXPIRED")
	})
}

// TestCancelRaces: the payment's notification comes while its end is asked for.
func TestCancelRaces(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A")
		m := w.stored("A")
		moves := 0
		w.faults.move = func(do func() (bool, error)) (bool, error) {
			if moves++; moves == 1 { // the cancel's own
				w.hear(sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: sdk.StatusDone, Amount: m.Amount, EventID: "p"})
			}
			return do()
		}
		w.up.cancel = func(sdk.Call) sdk.Result { return sdk.Finished("", struct{}{}) }
		w.up.find = blind
		w.want(w.cancel("A"), "PAID")
		w.wantListed()
	})
}

func TestCheckout(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A", "description", "Two shirts", "success_url", "https://shop.example/done")
		w.create("Q", "type", "qris")
		link, qris := w.stored("A"), w.stored("Q")
		page, err := w.Checkout(w.Context(), link.ID.String())
		want := Checkout{
			Merchant: "Toko", Reference: "A", Description: "Two shirts", Amount: 10000, Status: "PENDING",
			PaymentURL: "https://pay.example/" + link.UpstreamReference(), SuccessURL: "https://shop.example/done",
			ExpiresAt: w.now().Add(life).UTC().Format(time.RFC3339),
		}
		if err != nil || page != want {
			t.Errorf("got  %+v, %v\nwant %+v", page, err, want)
		}
		if page, err = w.Checkout(w.Context(), qris.ID.String()); err != nil || page.QR != "QR-"+qris.UpstreamReference() || page.PaymentURL != "" {
			t.Errorf("got %+v, %v", page, err)
		}
		w.hear(w.up.pay(link.UpstreamReference(), "p"))
		if page, err = w.Checkout(w.Context(), link.ID.String()); err != nil || page.Status != "PAID" || page.PaymentURL != "" {
			t.Errorf("when paid: %+v, %v", page, err)
		}
		w.up.way = way{unmade: true, says: func(sdk.Call) sdk.Result { return sdk.DidNotSend(sdk.BlameNone, "") }}
		w.create("N")
		for _, id := range []string{w.stored("N").ID.String(), movement.NewID().String(), "A", ""} {
			if page, err := w.Checkout(w.Context(), id); err == nil {
				t.Errorf("%q is shown as %+v", id, page)
			} else {
				w.want(said{err: fault.From(err)}, "NOT_FOUND no never")
			}
		}
	})
}
