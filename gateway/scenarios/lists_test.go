package scenarios

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/tenants"
)

const listPath = "/payments/list"

// referencesIn are the references of a list of payments; pairs are of the body.
func (w *world) referencesIn(pairs ...any) []string {
	w.Helper()
	all, s := w.listing(pairs...)
	if s.err != nil {
		w.Fatal(s.err)
	}
	references := make([]string, len(all))
	for i, item := range all {
		if err := json.Unmarshal(item["external_id"], &references[i]); err != nil {
			w.Error(err)
		}
	}
	return references
}

func (w *world) listing(pairs ...any) ([]map[string]json.RawMessage, said) {
	w.Helper()
	r := w.asks(listPath, pairs...)
	if wrong := r.Operation.Check(r.Body); len(wrong) > 0 {
		w.Fatal(wrong)
	}
	s := w.run(r)
	var all []map[string]json.RawMessage
	if s.err == nil && json.Unmarshal([]byte(s.data), &all) != nil {
		w.Errorf("got %s", s.data)
	}
	return all, s
}

// TestLists: a list has what status answers have, the newest first, by every filter and
// page by page, and never what nobody was told of.
func TestLists(t *testing.T) {
	t.Parallel()
	onBoth(t, payments, func(w *world) {
		if _, s := w.listing(); s.data != "[]" {
			t.Errorf("without payments it is %s", s.data)
		}
		start := w.now()
		for _, reference := range []string{"A/1", "A/2", "B/1", "B/2", "B/3"} {
			w.create(reference)
			w.pass(time.Minute)
		}
		w.hear(news(w.stored("A/2"))["paid"])
		w.hear(news(w.stored("B/2"))["ended"])
		w.unanswered("C/1")
		w.pass(time.Second)
		at := func(d time.Duration) string { return start.Add(d).UTC().Format(time.RFC3339) }
		for _, c := range []struct {
			pairs []any
			want  string
		}{
			{nil, "B/3 B/2 B/1 A/2 A/1"},
			{[]any{"limit", json.Number("2")}, "B/3 B/2"},
			{[]any{"limit", json.Number("2"), "after", "B/2"}, "B/1 A/2"},
			{[]any{"after", w.stored("A/2").ID.Compact()}, "A/1"},
			{[]any{"after", "A/1"}, ""},
			{[]any{"status", "PENDING"}, "B/3 B/1 A/1"},
			{[]any{"status", "PAID"}, "A/2"},
			{[]any{"status", "EXPIRED"}, "B/2"},
			{[]any{"status", "FAILED"}, ""},
			{[]any{"status", "PENDING", "after", "B/2"}, "B/1 A/1"},
			{[]any{"reference_prefix", "B/"}, "B/3 B/2 B/1"},
			{[]any{"reference_prefix", "B/", "status", "PENDING"}, "B/3 B/1"},
			{[]any{"reference_prefix", "B%"}, ""},
			{[]any{"from", at(time.Minute), "to", at(3 * time.Minute)}, "B/1 A/2"},
			{[]any{"to", at(0)}, ""},
		} {
			if got := strings.Join(w.referencesIn(c.pairs...), " "); got != c.want {
				t.Errorf("%v: %q, want %q", c.pairs, got, c.want)
			}
		}
		all, _ := w.listing()
		for _, item := range all {
			encoded, _ := json.Marshal(item)
			var reference string
			_ = json.Unmarshal(item["external_id"], &reference)
			var told map[string]json.RawMessage
			_ = json.Unmarshal([]byte(w.status(reference).data), &told)
			if item["created_at"] == nil {
				t.Errorf("%s has no created_at", encoded)
			}
			for name, value := range told {
				if string(item[name]) != string(value) {
					t.Errorf("%s of %s is %s in the list, %s in the status", name, reference, item[name], value)
				}
			}
		}
		// What was read as pending is listed from then on.
		w.want(w.status("C/1"), "PENDING")
		if got := w.referencesIn("limit", json.Number("1")); !slices.Equal(got, []string{"C/1"}) {
			t.Errorf("got %q", got)
		}
	})
}

// TestPrefixInALongTime: no list searches a prefix in more than 31 days.
func TestPrefixInALongTime(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A/1")
		at := func(days int) string { return w.now().AddDate(0, 0, days).UTC().Format(time.RFC3339) }
		for _, c := range []struct {
			pairs   []any
			refused bool
		}{
			{[]any{"from", at(-31)}, false},
			{[]any{"from", at(-32)}, true},
			{[]any{"from", at(-100), "to", at(-70)}, false},
			{[]any{"from", at(-100), "to", at(-60)}, true},
		} {
			_, s := w.listing(append(c.pairs, "reference_prefix", "A/")...)
			if refused := s.err != nil && s.err.Fields[0].Field == "from"; refused != c.refused || !refused && s.err != nil {
				t.Errorf("%v: %+v", c.pairs, s)
			}
			if _, s := w.listing(c.pairs...); s.err != nil {
				t.Errorf("%v without a prefix: %+v", c.pairs, s)
			}
		}
	})
}

// TestListsAreTheMerchantsOwn: neither another merchant nor the other mode sees
// anything, or can tell that there is something.
func TestListsAreTheMerchantsOwn(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.create("A")
		r := w.asks(listPath, "after", "A")
		r.Identity.Mode = tenants.Test
		w.want(w.run(r), "INVALID_REQUEST no after_change")
		w.account = w.merchant()
		for _, after := range []string{"A", "B"} {
			if _, s := w.listing("after", after); s.err == nil || s.err.Fields[0].Field != "after" {
				t.Errorf("after %s: %+v", after, s)
			}
		}
		if got := w.referencesIn(); len(got) != 0 {
			t.Errorf("another merchant reads %q", got)
		}
	})
}
