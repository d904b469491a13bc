package fault_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

func TestTableIsClosedAndWhole(t *testing.T) {
	t.Parallel()
	seen := map[fault.Code]bool{}
	for _, row := range fault.Table {
		if seen[row.Code] {
			t.Errorf("%s stands twice in the table", row.Code)
		}
		seen[row.Code] = true
		if row.Status != 500 && (row.Status < 400 || row.Status > 499) {
			t.Errorf("%s: status %d; the contract knows 4xx and 500 only", row.Code, row.Status)
		}
		if row.Sent == "" || row.Retry == "" || row.When == "" {
			t.Errorf("%s: the row is not whole: %+v", row.Code, row)
		}
		if (row.Sent == fault.SentUnknown) != (row.Retry == fault.RetryLookupFirst) {
			t.Errorf("%s: an unknown outcome must be looked up first, and nothing else", row.Code)
		}
	}
	if len(seen) != 22 {
		t.Errorf("the table has %d codes, the contract 22", len(seen))
	}
}

func TestUnknownCodeIsInternal(t *testing.T) {
	t.Parallel()
	if got := fault.New("NO_SUCH_CODE", "x"); got.Code != fault.Internal || got.Status() != 500 {
		t.Errorf("got %v with status %d, want INTERNAL with 500", got.Code, got.Status())
	}
}

func TestFromHidesTheCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("pq: relation secret_table does not exist")
	got := fault.From(fmt.Errorf("reserve: %w", cause))
	if got.Code != fault.Internal || strings.Contains(got.Message, "secret_table") {
		t.Errorf("got %q (%s), want INTERNAL without the cause", got.Message, got.Code)
	}
	if !errors.Is(got, cause) {
		t.Error("the cause is lost to the log")
	}
}

func TestFromKeepsWrappedFaults(t *testing.T) {
	t.Parallel()
	inner := fault.Invalid("amount", "must be at least 100")
	got := fault.From(fmt.Errorf("engine: %w", inner))
	if got != inner {
		t.Errorf("got %v, want the same error", got)
	}
	if got.Fields[0].Field != "amount" || got.Status() != 400 {
		t.Errorf("got %+v", got)
	}
}

func TestVariantsOfARow(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if e := fault.New(fault.Internal, "x").Unknown(); e.Sent != fault.SentUnknown || e.Retry != fault.RetryLookupFirst {
		t.Errorf("Unknown: %+v", e)
	}
	e := fault.New(fault.InProgress, "x").After(now, 2*time.Second).WithReference("INV-1")
	if !e.RetryAt.Equal(now.Add(2*time.Second)) || e.RetryAfter != 2*time.Second || e.Reference != "INV-1" {
		t.Errorf("After: %+v", e)
	}
}

func TestEnvelope(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("WIB", 7*60*60))
	e := fault.New(fault.QuotaExceeded, "x", fault.Field{Field: "a", Message: "b"}).After(now, 2*time.Hour)
	text, err := json.Marshal(e.Envelope("r-1"))
	want := `{"success":false,"message":"x","error_code":"QUOTA_EXCEEDED","request_id":"r-1","errors":[{"field":"a","message":"b"}],` +
		`"sent":"no","retry":"later","retry_at":"2026-01-01T22:04:06Z","remaining_quota":0}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v\nwant %s", text, err, want)
	}
}

func TestRetrySeconds(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	past, later := fault.New(fault.QuotaExceeded, "x"), fault.New(fault.QuotaExceeded, "x")
	past.RetryAt, later.RetryAt = now.Add(-time.Hour), now.Add(90*time.Second+1)
	for _, c := range []struct {
		e    *fault.Error
		want int
	}{
		{fault.New(fault.Internal, "x"), 0},
		{fault.New(fault.InProgress, "x"), 1},
		{fault.New(fault.RateLimited, "x"), 1},
		{fault.New(fault.RateLimited, "x").After(now, 1500*time.Millisecond), 2},
		{fault.New(fault.RateLimited, "x").After(now, 48*time.Hour), 3600},
		{past, 1},
		{later, 91},
	} {
		if got := c.e.RetrySeconds(now); got != c.want {
			t.Errorf("%v, retry after %s, at %s: got %d, want %d", c.e, c.e.RetryAfter, c.e.RetryAt, got, c.want)
		}
	}
}
