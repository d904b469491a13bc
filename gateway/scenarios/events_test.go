package scenarios

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// listing is a page of events as a merchant reads it.
type listing []struct {
	ID   string
	Time string
	Body json.RawMessage
}

// list reads events in a mode; pairs are of the body.
func (w *world) list(mode tenants.Mode, pairs ...any) (listing, said) {
	w.Helper()
	r := w.asks(catalog.EventsPath, pairs...)
	r.Identity.Mode = mode
	if wrong := r.Operation.Check(r.Body); len(wrong) > 0 {
		w.Fatal(wrong)
	}
	s := w.run(r)
	var all listing
	if s.err == nil && json.Unmarshal([]byte(s.data), &all) != nil {
		w.Errorf("got %s", s.data)
	}
	return all, s
}

// live reads events in live mode and gives their ids.
func (w *world) live(pairs ...any) []string {
	w.Helper()
	all, s := w.list(tenants.Live, pairs...)
	if s.err != nil {
		w.Fatal(s.err)
	}
	ids := make([]string, len(all))
	for i, e := range all {
		ids[i] = e.ID
	}
	return ids
}

// pays makes payments that are paid a second apart, and gives the ids of their
// events.
func (w *world) pays(references ...string) []string {
	w.Helper()
	for _, reference := range references {
		w.create(reference)
		w.pass(time.Second)
		w.hear(news(w.stored(reference))["paid"])
	}
	var ids []string
	for _, c := range w.told() {
		ids = append(ids, c.EventID.String())
	}
	return ids
}

func TestEventsList(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		if _, s := w.list(tenants.Live); s.data != "[]" {
			t.Errorf("without events it is %s", s.data)
		}
		ids := w.pays("A", "B", "C", "D", "E")
		w.pass(movement.EventsSettle)
		all, _ := w.list(tenants.Live)
		for i, c := range w.told() {
			if all[i].ID != c.EventID.String() || all[i].Time != c.CreatedAt.Format(time.RFC3339) || string(all[i].Body) != string(c.Body) {
				t.Errorf("event %d is %+v, want %+v", i, all[i], c)
			}
		}
		for i, c := range []struct {
			body []any
			want []string
		}{
			{nil, ids},
			{[]any{"limit", json.Number("2")}, ids[:2]},
			{[]any{"limit", json.Number("0.2e1"), "after", ids[1]}, ids[2:4]},
			{[]any{"limit", json.Number("1.00"), "after", ids[3]}, ids[4:]},
			{[]any{"limit", json.Number("100"), "after", ids[0]}, ids[1:]},
			{[]any{"after", ids[4]}, nil},
		} {
			if got := w.live(c.body...); !slices.Equal(got, c.want) {
				t.Errorf("page %d is %q, want %q", i, got, c.want)
			}
		}
	})
}

func TestEventsListHasADefaultLimit(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		var references []string
		for i := range 25 {
			references = append(references, strconv.Itoa(i))
		}
		ids := w.pays(references...)
		w.pass(movement.EventsSettle)
		if got := w.live(); !slices.Equal(got, ids[:20]) {
			t.Errorf("got %d of %d", len(got), len(ids))
		}
	})
}

// TestEventsAreHeldBack: a commit that is tried again for long is never read
// past by who lists at every moment.
func TestEventsAreHeldBack(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("slow")
		w.create("quick")
		m := w.stored("slow")
		start, elsewhere := w.now(), w.made
		elsewhere.Store = &faulty{keeper: w.keeper, move: func(do func() (bool, error)) (bool, error) {
			if w.now().Sub(start) < applyTimeout-2*time.Second {
				return false, errAway
			}
			return do()
		}}
		replica, done := New(elsewhere), make(chan error)
		go func() {
			_, err := replica.settle(w.Context(), operation(createPath), m, news(m)["paid"], "notification")
			done <- err
		}()
		w.pass(time.Second)
		w.hear(news(w.stored("quick"))["paid"])
		var read []string
		for range 60 {
			last := []any{}
			if len(read) > 0 {
				last = append(last, "after", read[len(read)-1])
			}
			read = append(read, w.live(last...)...)
			w.pass(500 * time.Millisecond)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(w.told()) != 2 || len(read) != 2 {
			t.Errorf("%d events, %d were read: %q", len(w.told()), len(read), read)
		}
	})
}

// TestEventsAreTheMerchantsOwn: neither another merchant nor the other mode
// sees an event, or can tell that there is one.
func TestEventsAreTheMerchantsOwn(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		ids := w.pays("A", "B")
		w.pass(movement.EventsSettle)
		refused := func(what string, s said) {
			t.Helper()
			w.want(s, "INVALID_REQUEST no after_change")
			if s.err != nil && (len(s.err.Fields) != 1 || s.err.Fields[0].Field != "after" || s.err.Message != "The request is invalid: after is not the id of an event of this list.") {
				t.Errorf("%s: %+v", what, s.err)
			}
		}
		for _, after := range []string{uuid.NewString(), uuid.Nil.String(), w.stored("A").ID.String()} {
			_, s := w.list(tenants.Live, "after", after)
			refused("an id of nothing", s)
		}
		if all, s := w.list(tenants.Test); len(all) != 0 || s.data != "[]" {
			t.Errorf("the other mode reads %s", s.data)
		}
		_, s := w.list(tenants.Test, "after", ids[0])
		refused("the other mode", s)
		r := w.asks(statusPath, "external_id", "A")
		r.Identity.Mode = tenants.Test
		w.want(w.run(r), "NOT_FOUND no never")

		mine := w.account
		w.account = w.merchant()
		theirs := w.pays("A")
		w.pass(movement.EventsSettle)
		if got := w.live(); !slices.Equal(got, theirs) {
			t.Errorf("another merchant reads %q, its own are %q", got, theirs)
		}
		_, s = w.list(tenants.Live, "after", ids[0])
		refused("another merchant", s)
		w.want(w.status("B"), "NOT_FOUND no never")
		w.account = mine
		if got := w.live(); !slices.Equal(got, ids) {
			t.Errorf("got %q, want %q", got, ids)
		}
	})
}

func TestEventsListWithoutADatabase(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		ids := w.pays("A")
		w.faults.down = errAway
		for _, body := range [][]any{nil, {"after", ids[0]}} {
			_, s := w.list(tenants.Live, body...)
			w.want(s, "INTERNAL no later")
		}
	})
}

func TestAnOwnOperationThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		r := w.asks(catalog.EventsPath)
		other := *r.Operation
		other.Path = "/other"
		r.Operation = &other
		w.want(w.run(r), fmt.Sprintf("%s %s %s", fault.Internal, fault.SentNo, fault.RetryLater))
	})
}
