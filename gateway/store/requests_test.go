package store_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// TestRequestLog: parts are kept once, found by owner, time and what is in them, counted where calls are missing, and forgotten by age.
func TestRequestLog(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	shop, other := requestlog.Owner{Merchant: "mer_requests", Mode: "live"}, requestlog.Owner{Merchant: "mer_requests", Mode: "test"}
	noon := time.Date(2001, 3, 4, 12, 0, 0, 0, time.UTC) // older than what other tests keep
	part := func(of requestlog.Owner, n int, terms, calls string, dropped int) requestlog.Part {
		return requestlog.Part{Owner: of, Span: noon.Add(time.Duration(n) * requestlog.Span), Number: int64(n), Terms: terms, Dropped: dropped, Calls: []byte(calls)}
	}
	parts := []requestlog.Part{
		part(shop, 0, "\n/a\nOK\nsucceeded\n", "0", 0), part(shop, 1, "\n/a\n/b\nOK\nRATE_LIMITED\nfailed\nsucceeded\n", "1", 2),
		part(shop, 2, "\n/ab\nOK\nsucceeded\n", "2", 3), part(other, 2, "\n/a\nOK\nsucceeded\n", "other", 7),
	}
	for range 2 {
		if err := s.AddRequests(t.Context(), uuid.UUID{1}, parts); err != nil {
			t.Fatal(err)
		}
	}
	again := part(shop, 1, "\n/c\n", "1 again", 0)
	later := again
	again.Number, later.Number, later.Calls = 9, 8, []byte("1 later")
	for replica, p := range map[byte]requestlog.Part{1: again, 2: later} {
		if err := s.AddRequests(t.Context(), uuid.UUID{replica}, []requestlog.Part{p}); err != nil {
			t.Fatal(err)
		}
	}
	never := part(requestlog.Owner{Merchant: "\x00", Mode: "live"}, 3, "", "never", 0)
	if err := s.AddRequests(t.Context(), uuid.UUID{1}, []requestlog.Part{never}); !errors.Is(err, requestlog.ErrRefused) {
		t.Errorf("what the database never takes: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.AddRequests(ended, uuid.UUID{1}, parts); err == nil || errors.Is(err, requestlog.ErrRefused) {
		t.Errorf("a write that is cut is refused: %v", err)
	}
	for _, c := range []struct {
		filter requestlog.Filter
		since  int
		most   int
		want   []string
	}{
		{requestlog.Filter{}, 0, 10, []string{"2", "1 later", "1 again", "1", "0"}},
		{requestlog.Filter{}, 2, 10, []string{"2"}},
		{requestlog.Filter{}, 0, 1, []string{"2"}},
		{requestlog.Filter{Operation: "/a"}, 0, 10, []string{"1", "0"}},
		{requestlog.Filter{Operation: "/b", Code: "OK", State: "failed"}, 0, 10, []string{"1"}},
		{requestlog.Filter{Code: "LIMITED"}, 0, 10, nil},
	} {
		found, err := s.Requests(t.Context(), requestlog.Range{Filter: c.filter, Owner: shop, Since: noon.Add(time.Duration(c.since) * requestlog.Span), Below: requestlog.Part{Span: noon.Add(time.Minute)}, Most: c.most})
		var got []string
		for _, p := range found {
			got = append(got, string(p.Calls))
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v finds %q, want %q; %v", c, got, c.want, err)
		}
	}
	var walked []string
	for below := (requestlog.Part{Span: noon.Add(time.Minute)}); ; {
		found, err := s.Requests(t.Context(), requestlog.Range{Owner: shop, Since: noon, Below: below, Most: 1})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			break
		}
		below, walked = found[0], append(walked, string(found[0].Calls))
	}
	if !slices.Equal(walked, []string{"2", "1 later", "1 again", "1", "0"}) {
		t.Errorf("one by one there are %q", walked)
	}
	all, err := s.RequestOwners(t.Context(), noon.Add(2*requestlog.Span), noon.Add(2*requestlog.Span))
	if err != nil || len(all) != 2 || !slices.Contains(all, shop) || !slices.Contains(all, other) {
		t.Errorf("in a span there are calls of %v; %v", all, err)
	}
	if n, err := s.RequestsDropped(t.Context(), shop, noon.Add(2*requestlog.Span)); err != nil || n != 3 {
		t.Errorf("%d calls are missing, want 3; %v", n, err)
	}
	if err := s.ForgetDecisions(t.Context(), noon.Add(2*requestlog.Span)); err != nil {
		t.Fatal(err)
	}
	left, err := s.Requests(t.Context(), requestlog.Range{Owner: shop, Since: noon, Below: requestlog.Part{Span: noon.Add(time.Minute)}, Most: 10})
	if err != nil || len(left) != 1 || string(left[0].Calls) != "2" {
		t.Errorf("after a removal there is %+v; %v", left, err)
	}
}

// TestManyRequestsAreForgotten: also those that one statement does not remove, and where decisions can't be.
func TestManyRequestsAreForgotten(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 8})
	of, noon := requestlog.Owner{Merchant: "mer_many", Mode: "live"}, time.Date(2000, 3, 4, 12, 0, 0, 0, time.UTC)
	parts := make([]requestlog.Part, 2100)
	for i := range parts {
		parts[i] = requestlog.Part{Owner: of, Span: noon, Number: int64(i), Calls: []byte{}}
	}
	if err := s.AddRequests(t.Context(), uuid.UUID{2}, parts); err != nil {
		t.Fatal(err)
	}
	read := func(ctx context.Context) int {
		left, err := s.Requests(ctx, requestlog.Range{Owner: of, Since: noon, Below: requestlog.Part{Span: noon.Add(time.Second)}, Most: len(parts)})
		if err != nil {
			t.Fatal(err)
		}
		return len(left)
	}
	if n := read(t.Context()); n != len(parts) {
		t.Fatalf("%d parts are kept", n)
	}
	execute(t, url, "ALTER TABLE decision_log RENAME TO away") // the first to be removed
	if err := s.ForgetDecisions(t.Context(), noon.Add(time.Second)); err == nil || read(t.Context()) != 0 {
		t.Errorf("%d parts are left; %v", read(t.Context()), err)
	}
}
