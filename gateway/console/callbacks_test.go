package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

const receiver = "https://shop.example.com/cb/gerbang?token=hidden-1&v=2&hidden-2"

// made is when the first callback of a test was made.
var made = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// callbacks stores some of a merchant, each a minute after the one before, in
// the states given, and returns their ids.
func (w *world) callbacks(merchant, mode string, states ...movement.CallbackState) []string {
	w.Helper()
	ids := make([]string, len(states))
	for i, state := range states {
		told := movement.CallbackEvent{ID: uuid.New(), Event: "payments.status_update", URL: receiver, Body: json.RawMessage(`{"event":"payments.status_update"}`)}
		if state == movement.CallbackNone {
			told.URL = ""
		}
		owner, at := movement.Owner{MerchantID: merchant, Mode: mode}, made.Add(time.Duration(i)*time.Minute)
		if err := w.store.AddCallback(w.Context(), at, owner, told); err != nil {
			w.Fatal(err)
		}
		ids[i] = told.ID.String()
		if state != movement.CallbackNone && state != movement.CallbackWaiting {
			w.tried(owner, told.ID, state)
		}
	}
	return ids
}

// tried writes a try of a callback that ends it in a state.
func (w *world) tried(owner movement.Owner, id uuid.UUID, then movement.CallbackState) {
	w.Helper()
	callback, err := w.store.Callback(w.Context(), movement.CallbackKey{Owner: owner, EventID: id})
	if err != nil {
		w.Fatal(err)
	}
	ok, err := w.store.RecordAttempt(w.Context(), movement.CallbackAttempt{
		Callback: callback, At: made.Add(time.Hour), Took: 12 * time.Millisecond, Outcome: "failed", Status: 503,
		Fault: "answered 503", Answer: "busy", Then: then,
	})
	if err != nil || !ok {
		w.Fatalf("the try is not written: %t, %v", ok, err)
	}
}

func (w *world) callback(merchant, mode, id string) adminapi.Callback {
	w.Helper()
	callback, err := adminapi.ShowCallback.Call(w.Context(), w, adminapi.CallbackID{Merchant: merchant, Mode: mode, Event: id})
	if err != nil {
		w.Fatal(err)
	}
	return callback
}

func TestCallbacksAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	merchant, other := w.merchant().MerchantID, w.merchant().MerchantID
	ids := w.callbacks(merchant, "live", "waiting", "delivered", "gone", "dead", "none")
	w.callbacks(merchant, "test", "dead")
	w.callbacks(other, "live", "dead")
	for name, c := range map[string]struct {
		filter adminapi.CallbackFilter
		want   []int
	}{
		"all, the newest first": {adminapi.CallbackFilter{}, []int{4, 3, 2, 1, 0}},
		"those of a state":      {adminapi.CallbackFilter{State: "dead"}, []int{3}},
		"without a URL":         {adminapi.CallbackFilter{State: "none"}, []int{4}},
		"a span":                {adminapi.CallbackFilter{Since: made.Add(time.Minute), Until: made.Add(3 * time.Minute)}, []int{2, 1}},
		"a few":                 {adminapi.CallbackFilter{Limit: 2}, []int{4, 3}},
	} {
		c.filter.Mode = "live"
		c.filter.Merchant = merchant
		list, err := adminapi.ListCallbacks.Call(t.Context(), w, c.filter)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, callback := range list {
			got = append(got, slices.Index(ids, callback.EventID))
			if callback.Mode != "live" || callback.Body != nil || callback.Attempts != nil {
				t.Errorf("%s: listed %+v", name, callback)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if strings.Contains(mustJSON(t, list), "hidden") {
			t.Errorf("%s: the URL's tokens are shown", name)
		}
	}
	for query, field := range map[string]string{
		"": "mode", "mode=Live": "mode", "mode=live&state=lost": "state", "mode=live&since=monday": "since",
		"mode=live&until=2026-01-02": "until", "mode=live&limit=0": "limit",
	} {
		status, _, body := w.send(http.MethodGet, "/admin/merchants/"+merchant+"/callbacks?"+query, "Bearer "+token, "")
		if status != http.StatusBadRequest || !strings.Contains(body, `"field":"`+field+`"`) {
			t.Errorf("%q: %d %s", query, status, body)
		}
	}
}

func TestACallbackIsShownWithItsTries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	merchant := w.merchant().MerchantID
	id := w.callbacks(merchant, "live", "dead")[0]
	shown := w.callback(merchant, "live", id)
	if shown.URL != "https://shop.example.com/cb/gerbang?token=…&v=…&…" || shown.State != "dead" || shown.Tries != 1 || shown.Sequence != 1 ||
		string(shown.Body) != `{"event":"payments.status_update"}` || shown.MovementID != "" || shown.DueAt != nil || !shown.CreatedAt.Equal(made) {
		t.Errorf("shown %+v", shown)
	}
	want := adminapi.CallbackAttempt{
		At: made.Add(time.Hour), DurationMS: 12, Status: 503, Outcome: "failed", Fault: "answered 503", Answer: "busy",
	}
	if len(shown.Attempts) != 1 || shown.Attempts[0] != want {
		t.Errorf("tries %+v", shown.Attempts)
	}
	for name, c := range map[string][3]string{
		"another mode":     {merchant, "test", id},
		"another merchant": {w.merchant().MerchantID, "live", id},
		"another event":    {merchant, "live", uuid.NewString()},
		"no id":            {merchant, "live", "resend"},
		"nobody":           {"mer_00000000-0000-4000-8000-000000000000", "live", id},
	} {
		_, err := adminapi.ShowCallback.Call(t.Context(), w, adminapi.CallbackID{Merchant: c[0], Mode: c[1], Event: c[2]})
		if failure := w.refused(err, http.StatusNotFound, ""); failure.Code != "NOT_FOUND" {
			t.Errorf("%s: %v", name, failure)
		}
	}
}

func TestACallbackIsSentAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	merchant := w.merchant().MerchantID
	ids := w.callbacks(merchant, "live", "delivered", "gone", "dead", "waiting", "none")
	owner := movement.Owner{MerchantID: merchant, Mode: "live"}
	late := movement.CallbackKey{Owner: owner, EventID: uuid.MustParse(ids[3])}
	if err := w.store.PostponeCallback(t.Context(), late, time.Now().Add(12*time.Hour)); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids[:4] {
		resent, err := adminapi.ResendCallbacks.Call(t.Context(), w, adminapi.ResendOrder{Merchant: merchant, Mode: "live", EventID: id})
		if err != nil || resent.Resent != 1 || resent.Until != nil {
			t.Errorf("%+v, %v", resent, err)
		}
		if now := w.callback(merchant, "live", id); now.State != "waiting" || now.DueAt == nil || now.DueAt.After(time.Now()) || now.EventID != id {
			t.Errorf("now %+v", now)
		}
	}
	_, err := adminapi.ResendCallbacks.Call(t.Context(), w, adminapi.ResendOrder{Merchant: merchant, Mode: "live", EventID: ids[4]})
	w.refused(err, http.StatusBadRequest, "event_id")
	_, err = adminapi.ResendCallbacks.Call(t.Context(), w, adminapi.ResendOrder{Merchant: merchant, Mode: "live", EventID: ids[0], Failed: true})
	w.refused(err, http.StatusBadRequest, "event_id")
	_, err = adminapi.ResendCallbacks.Call(t.Context(), w, adminapi.ResendOrder{Merchant: merchant, Mode: "test", EventID: ids[0]})
	w.refused(err, http.StatusNotFound, "")
	if got := w.actions(merchant); len(got) != 5 || got[4] != "ayu callback.resend" {
		t.Errorf("audit %q", got)
	}
}

func TestARangeIsSentAgain(t *testing.T) {
	t.Parallel()
	since, until := made.Add(time.Minute), made.Add(5*time.Minute)
	for name, c := range map[string]struct {
		order  adminapi.ResendOrder
		resent []int
	}{
		"all that ended in a span":   {adminapi.ResendOrder{Since: &since, Until: &until}, []int{1, 2, 3}},
		"what failed in a span":      {adminapi.ResendOrder{Since: &since, Until: &until, Failed: true}, []int{2, 3}},
		"all that failed":            {adminapi.ResendOrder{Failed: true}, []int{0, 2, 3, 5}},
		"all that ended from a time": {adminapi.ResendOrder{Since: &until}, []int{5}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			merchant := w.merchant().MerchantID
			states := []movement.CallbackState{"dead", "delivered", "dead", "gone", "none", "dead"}
			ids := w.callbacks(merchant, "live", states...)
			foreign := w.callbacks(merchant, "test", "dead")[0]
			c.order.Mode = "live"
			c.order.Merchant = merchant
			answer, err := adminapi.ResendCallbacks.Call(t.Context(), w, c.order)
			if err != nil || answer.Resent != len(c.resent) || answer.Until != nil {
				t.Fatalf("%+v, %v", answer, err)
			}
			for i, id := range ids {
				want := string(states[i])
				if slices.Contains(c.resent, i) {
					want = "waiting"
				}
				if got := w.callback(merchant, "live", id).State; got != want {
					t.Errorf("callback %d is %s, want %s", i, got, want)
				}
			}
			if got := w.callback(merchant, "test", foreign).State; got != "dead" {
				t.Errorf("the other mode's is %s", got)
			}
			if got := w.actions(merchant); !slices.Equal(got[1:], []string{"ayu callback.resend"}) {
				t.Errorf("audit %q", got)
			}
		})
	}
	w := newWorld(t)
	_, err := adminapi.ResendCallbacks.Call(t.Context(), w, adminapi.ResendOrder{Merchant: w.merchant().MerchantID, Mode: "live"})
	w.refused(err, http.StatusBadRequest, "since")
}

// failures are so many callbacks that were given up, each made a second after
// the one before.
type failures struct {
	*store.Store

	left int
	sent map[uuid.UUID]bool
}

func (e *failures) Callbacks(_ context.Context, r movement.CallbackRange) ([]movement.Callback, error) {
	var page []movement.Callback
	for ; len(page) < r.Most && e.left > 0 && r.State == movement.CallbackDead; e.left-- {
		at := made.Add(time.Duration(e.left) * time.Second)
		if !at.Before(r.Until) {
			return nil, fmt.Errorf("the span ends at %s, and one of %s is asked for again", r.Until, at)
		}
		page = append(page, movement.Callback{CallbackKey: movement.CallbackKey{Owner: r.Owner, EventID: uuid.New()}, CreatedAt: at})
	}
	return page, nil
}

func (e *failures) Resend(_ context.Context, _ time.Time, key movement.CallbackKey) (bool, error) {
	e.sent[key.EventID] = true
	return true, nil
}

func TestOneRequestSendsNoMoreThanItCan(t *testing.T) {
	t.Parallel()
	sent := map[uuid.UUID]bool{}
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) { d.Callbacks = &failures{left: 2100, sent: sent} })
	merchant := w.merchant().MerchantID
	order := adminapi.ResendOrder{Mode: "live", Failed: true}
	order.Merchant = merchant
	first, err := adminapi.ResendCallbacks.Call(t.Context(), w, order)
	if err != nil || first.Resent != 2000 || first.Until == nil || !first.Until.After(made.Add(100*time.Second)) || first.Until.After(made.Add(102*time.Second)) {
		t.Fatalf("%+v, %v", first, err)
	}
	order.Until = first.Until
	second, err := adminapi.ResendCallbacks.Call(t.Context(), w, order)
	if err != nil || second.Resent != 100 || second.Until != nil || len(sent) != 2100 {
		t.Errorf("%+v, %v; %d are sent again", second, err, len(sent))
	}
}

// TestAReceiverIsChallenged: what it verifies is audited, and what it does not is told.
func TestAReceiverIsChallenged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	merchant := w.merchant().MerchantID
	for receiver, want := range map[string]bool{"https://shop.example.com/cb": true, "https://careless.example.com/cb": false} {
		found, err := adminapi.VerifyCallback.Call(t.Context(), w, adminapi.TestOrder{Merchant: merchant, Mode: "test", URL: receiver})
		if err != nil || found.Verifies != want || found.Signed.Status != 200 || found.Forged == nil {
			t.Errorf("%s: %+v, %v", receiver, found, err)
		}
	}
	entries, err := adminapi.ListAudit.Call(t.Context(), w, adminapi.AuditFilter{Merchant: merchant, AuditSelection: adminapi.AuditSelection{Action: adminapi.ActionVerified}})
	if err != nil || len(entries) != 1 || entries[0].Detail != "by https://shop.example.com/cb, mode test" {
		t.Errorf("the audit has %+v, %v", entries, err)
	}
}

func TestATestIsSent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	merchant := w.merchant().MerchantID
	_, err := adminapi.TestCallback.Call(t.Context(), w, adminapi.TestOrder{Merchant: merchant, Mode: "test"})
	w.refused(err, http.StatusBadRequest, "url") // there is no default
	for _, bad := range []string{"http://shop.example.com/cb", "https://127.0.0.1/", "https://shop.example.com:22/"} {
		_, err = adminapi.TestCallback.Call(t.Context(), w, adminapi.TestOrder{Merchant: merchant, Mode: "test", URL: bad})
		w.refused(err, http.StatusBadRequest, "url")
	}
	if _, err := adminapi.SetCallbackURL.Call(t.Context(), w, adminapi.CallbackURL{Merchant: merchant, Mode: "test", URL: new(receiver)}); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"": receiver, "https://other.example.com/x": "https://other.example.com/x"} {
		sent, err := adminapi.TestCallback.Call(t.Context(), w, adminapi.TestOrder{Merchant: merchant, Mode: "test", URL: given})
		if err != nil || strings.Contains(sent.URL, "hidden") {
			t.Fatalf("%+v, %v", sent, err)
		}
		key := movement.CallbackKey{Owner: movement.Owner{MerchantID: merchant, Mode: "test"}, EventID: uuid.MustParse(sent.EventID)}
		stored, err := w.store.Callback(t.Context(), key)
		if err != nil || stored.URL != want || stored.State != movement.CallbackWaiting || stored.Event != "callback.test" || stored.DueAt.After(time.Now()) {
			t.Errorf("stored %+v, %v", stored, err)
		}
		var body struct {
			Event string
			Data  struct{ Timestamp time.Time }
		}
		if err := json.Unmarshal(stored.Body, &body); err != nil || body.Event != "callback.test" || time.Since(body.Data.Timestamp) > time.Minute {
			t.Errorf("body %s, %v", stored.Body, err)
		}
	}
	entries, err := adminapi.ListAudit.Call(t.Context(), w, adminapi.AuditFilter{Merchant: merchant})
	if err != nil || len(entries) != 4 || entries[0].Action != "callback.test" || strings.Contains(mustJSON(t, entries), "hidden") {
		t.Errorf("audit %+v, %v", entries, err)
	}
}

func TestTriesAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.metrics.ObserveCallback(callback.Attempt{Outcome: callback.Delivered, Duration: 30 * time.Millisecond})
	w.metrics.ObserveCallback(callback.Attempt{Outcome: callback.Failed, Duration: 10 * time.Second})
	_, _, text := w.send(http.MethodGet, "/metrics", "", "")
	for _, want := range []string{
		`gerbang_callbacks_total{outcome="delivered"} 1`, `gerbang_callbacks_total{outcome="failed"} 1`,
		`gerbang_callback_duration_seconds_bucket{le="0.05"} 1`, `gerbang_callback_duration_seconds_count 2`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is not told", want)
		}
	}
}
