package scenarios

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// news are what a provider may say, in whatever order and however often.
func news(m movement.Movement) map[string]sdk.StatusUpdate {
	say := func(standing sdk.Status, event string) sdk.StatusUpdate {
		return sdk.StatusUpdate{Reference: m.UpstreamReference(), Status: standing, Amount: m.Amount, Currency: "IDR", EventID: event}
	}
	less, free, dollars, plain := say(sdk.StatusDone, "p"), say(sdk.StatusDone, "p"), say(sdk.StatusDone, "p"), say(sdk.StatusDone, "p")
	less.Amount, free.Amount, dollars.Currency, plain.Currency = m.Amount-1, 0, "USD", ""
	ended, another := say(sdk.StatusExpired, "e"), say(sdk.StatusDone, "p")
	ended.Amount = 0
	another.Reference = strings.ToUpper(another.Reference)
	offer := say(sdk.StatusFailed, "f")
	offer.Data = json.RawMessage(`{"payment_url":"https://pay.example/1"}`)
	return map[string]sdk.StatusUpdate{
		"open": say(sdk.StatusPending, "o"), "paid": say(sdk.StatusDone, "p"), "paid again": say(sdk.StatusDone, "q"),
		"ended": ended, "failed": say(sdk.StatusFailed, "f"), "failed once payable": offer, "less": less, "nothing": free, "dollars": dollars,
		"paid in no currency": plain, "another spelling": another, "no word": say(sdk.StatusUnknown, "u"), "not found": say(sdk.StatusNotFound, "n"),
	}
}

func TestNotify(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]struct {
		status   string
		listed   []string
		late     bool
		returned bool
	}{
		"paid":                       {status: "PAID"},
		"paid in no currency":        {status: "PAID"},
		"paid, paid, paid":           {status: "PAID"},
		"open, paid, open":           {status: "PAID"},
		"paid, ended":                {status: "PAID"},
		"paid, paid again":           {status: "PAID", listed: []string{movement.ReasonPaidAgain}},
		"paid, failed":               {status: "FAILED", listed: []string{movement.ReasonReturned}, returned: true},
		"paid, failed, failed":       {status: "FAILED", listed: []string{movement.ReasonReturned}, returned: true},
		"ended":                      {status: "EXPIRED"},
		"ended, ended, open":         {status: "EXPIRED"},
		"ended, paid":                {status: "EXPIRED", listed: []string{movement.ReasonPaidLate}, late: true},
		"ended, paid, paid":          {status: "EXPIRED", listed: []string{movement.ReasonPaidLate}, late: true},
		"ended, paid, paid again":    {status: "EXPIRED", listed: []string{movement.ReasonPaidLate, movement.ReasonPaidLate}, late: true},
		"failed, paid":               {status: "FAILED", listed: []string{movement.ReasonPaidLate}, late: true},
		"failed, ended":              {status: "FAILED"},
		"less":                       {status: "PENDING", listed: []string{movement.ReasonAmount}},
		"less, less, paid":           {status: "PAID", listed: []string{movement.ReasonAmount}},
		"nothing":                    {status: "PENDING", listed: []string{movement.ReasonAmount}},
		"dollars":                    {status: "PENDING", listed: []string{movement.ReasonCurrency}},
		"another spelling":           {status: "PENDING"},
		"not found":                  {status: "PENDING"},
		"no word, not found":         {status: "PENDING", listed: []string{movement.ReasonNotUnderstood}},
		"no word, no word, paid":     {status: "PAID", listed: []string{movement.ReasonNotUnderstood}},
		"ended, less":                {status: "EXPIRED", listed: []string{movement.ReasonAmount, movement.ReasonPaidLate}, late: true},
		"ended, less, less":          {status: "EXPIRED", listed: []string{movement.ReasonAmount, movement.ReasonPaidLate}, late: true},
		"paid, dollars, less, ended": {status: "PAID", listed: []string{movement.ReasonAmount, movement.ReasonCurrency}},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.create("A")
				m := w.stored("A")
				for what := range strings.SplitSeq(says, ", ") {
					w.hear(news(m)[what])
				}
				w.want(w.status("A"), c.status)
				w.wantListed(c.listed...)
				if m = w.stored("A"); m.PaidLateAt.IsZero() == c.late || m.ReturnedAt.IsZero() == c.returned {
					t.Errorf("paid late %v, returned %v", m.PaidLateAt, m.ReturnedAt)
				}
			})
		})
	}
}

// TestNotifyBeforeTheAnswer: news of what nobody was told yet.
func TestNotifyBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	for says, c := range map[string]struct {
		status, again string
		listed        []string
	}{
		"open":   {"PENDING", timedOut, nil},
		"paid":   {"PAID", "PENDING", nil},
		"ended":  {"EXPIRED", "PENDING", nil},
		"failed": {"FAILED", "PROVIDER_REJECTED refused never", nil},
		"less":   {"PENDING", timedOut, []string{movement.ReasonAmount}},

		"failed once payable": {"FAILED", "PROVIDER_REJECTED refused never", nil},
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				m := w.unanswered("A")
				w.up.find = blind
				w.hear(news(m)[says])
				w.want(w.create("A"), c.again)
				w.want(w.status("A"), c.status)
				w.wantListed(c.listed...)
			})
		})
	}
}

// TestNotifyOfTheUnsent: money for what was proven never sent is no money of a
// movement; a person has to decide. Once the same request was sent again, under the
// same name, it is that one's.
func TestNotifyOfTheUnsent(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		first := w.unanswered("A")
		w.prove("A")
		w.hear(news(first)["paid"])
		w.wantListed(movement.ReasonContradiction)
		w.restart()
		w.want(w.create("A"), "PENDING")
		late := news(first)["paid"] // of the first attempt
		late.EventID = "another"
		w.hear(late)
		w.wantListed(movement.ReasonContradiction)
		w.want(w.status("A"), "PAID")
	})
}

// TestNotifyRacesAReservation: the attempt ends, and the same request is claimed anew, while
// a fact about their name is being settled.
func TestNotifyRacesAReservation(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		m := w.unanswered("A")
		w.faults.move = func(do func() (bool, error)) (bool, error) {
			w.faults.move = nil
			w.prove("A")
			w.up.way = way{}
			w.want(w.create("A"), "PENDING")
			return do()
		}
		w.hear(news(m)["paid"])
		w.want(w.status("A"), "PAID")
		w.wantListed()
	})
}

func TestNotifyOnTheWrongRoute(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A")
		m := w.stored("A")
		paid := news(m)["paid"]
		if _, err := w.notify(tenants.Test, paid); err != nil { // the other mode
			t.Error(err)
		}
		w.wantListed(movement.ReasonUnknown)
		mine := w.account
		w.account = w.merchant() // another merchant
		w.hear(paid)
		w.wantListed(movement.ReasonUnknown)
		unknown := []sdk.StatusUpdate{paid, paid, paid, paid}
		stranger := movement.Movement{ID: movement.NewID()}
		unknown[0].Reference, unknown[1].Reference = stranger.UpstreamReference(), "INV-of-somebody-else"
		unknown[2].Reference, unknown[3].Reference = "", "INV-of-somebody-else"
		w.hear(unknown...)
		w.wantListed(movement.ReasonUnknown, movement.ReasonUnknown) // the other merchant's, and one of ours that nobody has
		if w.foreign.Load() != 3 {
			w.Errorf("%d were counted as foreign", w.foreign.Load())
		}
		w.account = mine
		w.want(w.status("A"), "PENDING")
		_, err := w.notifyAt(w.Context(), provider, "guessed")
		w.want(said{err: fault.From(err)}, "NOT_FOUND no never")
		c, _ := mine.Connection(tenants.Live, provider)
		_, err = w.notifyAt(w.Context(), "wallet1", c.NotifyToken)
		w.want(said{err: fault.From(err)}, "NOT_FOUND no never")
	})
}

// TestNotifyUntaken: what can't be verified changes nothing; what can't be
// settled is not acknowledged, so that it comes again.
func TestNotifyUntaken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hinder func(w *world)
		says   string
		status int // of the acknowledgement; 0: none is given
	}{
		"forged":          {func(w *world) { w.up.ack.Status = 401 }, "paid", 401},
		"plugin down":     {func(w *world) { w.up.ackErr = errNoPlugin }, "paid", 0},
		"sealed":          {func(w *world) { w.Vault = openVault{locked: true} }, "paid", 0},
		"database away":   {func(w *world) { w.faults.move = func(func() (bool, error)) (bool, error) { return false, errAway } }, "paid", 0},
		"list away":       {func(w *world) { w.faults.recording = errAway }, "less", 0},
		"record away":     {func(w *world) { w.cancel("A"); w.faults.recording = errAway }, "paid", 0},
		"nothing hinders": {func(*world) {}, "paid", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, payments, func(w *world) {
				w.create("A")
				m := w.stored("A")
				w.up.ack = sdk.Acknowledgement{Status: 200, Updates: []sdk.StatusUpdate{news(m)[c.says]}}
				c.hinder(w)
				before := w.stored("A").State
				connection, _ := w.account.Connection(tenants.Live, provider)
				ack, err := w.notifyAt(w.Context(), provider, connection.NotifyToken)
				if ack.Status != c.status || (err == nil) != (c.status != 0) {
					t.Errorf("acknowledged with %d, %v", ack.Status, err)
				}
				if c.status != 200 {
					if state := w.stored("A").State; state != before {
						t.Errorf("it moved to %s", state)
					}
					if c.status == 401 {
						w.wantListed(movement.ReasonRefused)
						return
					}
					w.wantListed()
				}
			})
		})
	}
}

// TestRefusedNotificationsAreAnException: one for the connection, with how many there were and
// the last reason, until one is accepted, on any replica. Refused ones begin it anew.
func TestRefusedNotificationsAreAnException(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		w.create("A")
		connection, _ := w.account.Connection(tenants.Live, provider)
		notify := func(on *Engine, status int, detail string) {
			w.Helper()
			w.up.ack.Status, w.up.ack.Detail, w.up.ack.Updates = status, detail, nil
			if ack, err := on.notifyAt(w.Context(), provider, connection.NotifyToken); err != nil || ack.Status != status {
				w.Errorf("acknowledged with %+v, %v", ack, err)
			}
		}
		listed := func() (open []movement.Exception) {
			for _, x := range w.entries() {
				if x.ResolvedAt.IsZero() {
					open = append(open, x)
				}
			}
			return open
		}
		want := func(times int64, last string) {
			w.Helper()
			open := listed()
			if len(open) != 1 || open[0].Reason != movement.ReasonRefused || open[0].Times != times || !strings.Contains(open[0].Detail, last) ||
				open[0].Subject != "notifications of "+provider || open[0].Provider != provider {
				w.Errorf("listed %+v, want %d times, %s", open, times, last)
			}
		}
		other := w.replica(w.keeper)
		notify(w.Engine, 200, "")
		if open := listed(); len(open) != 0 {
			w.Errorf("nothing was refused, and listed is %+v", open)
		}
		for n := range 30 {
			notify([]*Engine{w.Engine, other}[n%2], 401, "the token differs "+strconv.Itoa(n))
		}
		want(30, "with 401: the token differs 29")
		notify(other, 200, "")
		if open := listed(); len(open) != 0 {
			w.Errorf("one was accepted, and listed is %+v", open)
		}
		w.pass(time.Second)
		notify(w.Engine, 403, "no signature")
		want(1, "with 403: no signature")
	})
}

// TestHostileWords: whatever a provider calls things, they can be kept.
func TestHostileWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, payments, databaseFor(t), handClock())
	const bad = "a\x00b\xff\n"
	w.up.way = way{says: func(call sdk.Call) sdk.Result {
		return sdk.Result{Outcome: sdk.Pending, Data: payments.offer(call.Reference, call.Amount, call.Body), ProviderReference: bad, Detail: bad}
	}}
	w.want(w.create("A"), "PENDING")
	m := w.stored("A")
	paid := news(m)["paid"]
	paid.ProviderReference, paid.EventID = strings.Repeat("x", 5000), bad+strings.Repeat("\u00e9", 5000)
	w.hear(paid)
	w.want(w.status("A"), "PAID")
	if m = w.stored("A"); m.ProviderReference != "" || len(m.FactID) > longestName {
		t.Errorf("kept %q and a fact of %d bytes", m.ProviderReference, len(m.FactID))
	}
	paid.Currency, paid.EventID = bad+strings.Repeat("Rp", 5000), bad
	w.hear(paid)
	paid.Reference = bad + strings.Repeat("y", 5000)
	w.hear(paid)
	paid.Reference = (&movement.Movement{ID: movement.NewID()}).UpstreamReference()
	w.hear(paid)
	w.wantListed(movement.ReasonCurrency, movement.ReasonUnknown)
	w.up.way = way{unmade: true, says: func(sdk.Call) sdk.Result {
		return sdk.Refuse(bad, bad, sdk.FieldFault{Field: bad, Message: bad})
	}}
	w.want(w.create("B"), "PROVIDER_REJECTED refused never")
	w.want(w.create("B"), "PROVIDER_REJECTED refused never")
}

// TestOperationGone: a movement outlives the plugin that made it.
func TestOperationGone(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A")
		m := w.stored("A")
		w.made.Catalog = orders.catalog()
		w.Engine = New(w.made)
		if _, err := w.notify(tenants.Live, news(m)["paid"]); err == nil {
			t.Error("a fact that can't be settled was acknowledged")
		}
		w.pass(time.Minute)
		if err := w.Resolve(w.Context(), m); err == nil || errors.Is(err, errAway) {
			t.Errorf("got %v", err)
		}
	})
}
