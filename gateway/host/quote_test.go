package host

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func quoteOf(do, mode string) sdk.Quote {
	call := callTo(do)
	return sdk.Quote{
		Operation: "/test/order", Body: call.Body, Connection: sdk.Connection{MerchantID: "m", Mode: mode}, Product: json.RawMessage(`{"sku":1}`),
	}
}

func TestQuotes(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	for name, c := range map[string]struct {
		do      string
		timeout time.Duration
		outcome sdk.Outcome
		blame   sdk.Blame
	}{
		"told":             {do: "accept", outcome: sdk.Done},
		"refused":          {do: "refuse", outcome: sdk.Refused},
		"fault":            {do: "fault", outcome: sdk.Unknown, blame: sdk.BlameUpstream},
		"deadline, heeded": {do: "hang", timeout: heedable, outcome: sdk.Unknown, blame: sdk.BlameUpstream},
		"deadline, not":    {do: "deaf", timeout: 100 * time.Millisecond, outcome: sdk.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.timeout == 0 {
				c.timeout = patience
			}
			q := h.Quote(t.Context(), ofOne, quoteOf(c.do, name), c.timeout)
			if q.Outcome != c.outcome || q.Blame != c.blame || (q.Outcome == sdk.Done) != (q.Price == 10) {
				t.Errorf("got %+v, want outcome %d and blame %d", q, c.outcome, c.blame)
			}
		})
	}
	if q := h.Quote(t.Context(), Use{Provider: "none"}, quoteOf("accept", "test"), 0); q.Outcome != sdk.NotSent {
		t.Errorf("of nobody: %+v", q)
	}
}

// TestQuotesGoByTheBreaker: an upstream that is down is not asked for prices
// either, and asking for them finds out that it is down.
func TestQuotesGoByTheBreaker(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	for range breakerMinimum {
		h.Quote(t.Context(), ofOne, quoteOf("fault", "test"), patience)
	}
	if q := h.Quote(t.Context(), ofOne, quoteOf("accept", "test"), patience); q.Outcome != sdk.NotSent || q.Blame != sdk.BlameUpstream {
		t.Errorf("through an open breaker: %+v", q)
	}
	if r := h.Call(t.Context(), ofOne, callTo("accept"), patience); r.Outcome != sdk.NotSent {
		t.Errorf("a call through it: %+v", r)
	}
	if err := h.Available(ofOne, callTo("").Connection); err == nil {
		t.Error("it is reported available")
	}
}
