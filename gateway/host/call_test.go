package host

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func TestOutcomes(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	cases := map[string]struct {
		do      string
		timeout time.Duration
		change  func(*sdk.Call)
		outcome sdk.Outcome
		blame   sdk.Blame
	}{
		"accepted":         {do: "accept", outcome: sdk.Pending},
		"refused":          {do: "refuse", outcome: sdk.Refused},
		"fault":            {do: "fault", outcome: sdk.Unknown, blame: sdk.BlameUpstream},
		"deadline, heeded": {do: "hang", timeout: heedable, outcome: sdk.Unknown, blame: sdk.BlameUpstream},
		"deadline, not":    {do: "deaf", timeout: 100 * time.Millisecond, outcome: sdk.Unknown},
		"answer too large": {do: "big", outcome: sdk.Unknown},
		"send_by passed":   {do: "accept", change: func(c *sdk.Call) { c.SendBy = time.Now().Add(-time.Millisecond) }, outcome: sdk.NotSent},
		"no operation":     {do: "accept", change: func(c *sdk.Call) { c.Operation = "/none" }, outcome: sdk.NotSent},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := callTo(c.do)
			call.Connection.Mode = name // a breaker of its own
			if c.change != nil {
				c.change(&call)
			}
			if c.timeout == 0 {
				c.timeout = patience
			}
			r := h.Call(t.Context(), ofOne, call, c.timeout)
			if r.Outcome != c.outcome || r.Blame != c.blame {
				t.Errorf("got %+v, want outcome %d and blame %d", r, c.outcome, c.blame)
			}
		})
	}
}

func TestUnknownProvider(t *testing.T) {
	t.Parallel()
	h := startHost(t, calm, Config{})
	if r := h.Call(t.Context(), Use{Provider: "none"}, callTo("accept"), 0); r.Outcome != sdk.NotSent {
		t.Errorf("call: %+v", r)
	}
	if f := h.Lookup(t.Context(), Use{Provider: "none"}, sdk.Lookup{}, 0); f.Status != sdk.StatusUnknown {
		t.Errorf("lookup: %+v", f)
	}
	var unavailable *Unavailable
	if _, err := h.Notify(t.Context(), "none", sdk.Notification{}, 0); !errors.As(err, &unavailable) {
		t.Errorf("notify: %v", err)
	}
	if err := h.Available(Use{Provider: "none"}, sdk.Connection{Mode: "live"}); !errors.As(err, &unavailable) || unavailable.Provider != "none" {
		t.Errorf("available: %v", err)
	}
}

func TestCallerHangsUp(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	ctx, hangUp := context.WithCancel(t.Context())
	result := make(chan sdk.Result, 1)
	go func() { result <- h.Call(ctx, ofOne, callTo("deaf"), patience) }()
	inFlight(t, h, 1)
	hangUp()
	if r := <-result; r.Outcome != sdk.Unknown {
		t.Errorf("got %+v, want unknown", r)
	}
}

func TestBulkhead(t *testing.T) {
	t.Parallel()
	spec := testSpec("one")
	spec.MaxInFlight = 4 // of which one merchant alone has half
	h := startHost(t, calm, Config{Specs: []Spec{spec}})
	inLive := func(do string) sdk.Call {
		call := callTo(do)
		call.Connection.Mode = "live"
		return call
	}
	ctx, release := context.WithCancel(t.Context())
	results := make(chan sdk.Result, 2)
	for range 2 {
		go func() { results <- h.Call(ctx, ofOne, inLive("hang"), patience) }()
	}
	inFlight(t, h, 2)
	if r := h.Call(t.Context(), ofOne, inLive("accept"), patience); r.Outcome != sdk.NotSent || r.Detail != errShare.Error() {
		t.Errorf("the third call: %+v, want it turned away", r)
	}
	if r := h.Call(t.Context(), Use{Provider: "one", MerchantID: "another"}, inLive("accept"), patience); r.Outcome != sdk.Pending {
		t.Errorf("another merchant's: %+v", r)
	}
	if f := h.Lookup(t.Context(), ofOne, sdk.Lookup{Reference: "r"}, patience); f.Status != sdk.StatusPending {
		t.Errorf("a lookup beside full calls: %+v", f)
	}
	release()
	<-results
	<-results
	if r := h.Call(t.Context(), ofOne, inLive("accept"), patience); r.Outcome != sdk.Pending {
		t.Errorf("with room again: %+v", r)
	}
}

func TestBreakerOpensForOneMode(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	for range breakerMinimum {
		h.Call(t.Context(), ofOne, callTo("fault"), patience)
	}
	if r := h.Call(t.Context(), ofOne, callTo("accept"), patience); r.Outcome != sdk.NotSent || r.Blame != sdk.BlameUpstream {
		t.Errorf("got %+v, want it turned away", r)
	}
	var unavailable *Unavailable
	err := h.Available(ofOne, callTo("").Connection)
	if !errors.As(err, &unavailable) || unavailable.RetryAfter <= 0 || unavailable.RetryAfter > calm.open {
		t.Errorf("available: %v", err)
	}
	lookup := sdk.Lookup{Reference: "r", Connection: sdk.Connection{Mode: "test"}}
	if f := h.Lookup(t.Context(), ofOne, lookup, patience); f.Status != sdk.StatusPending {
		t.Errorf("a lookup beside an open breaker: %+v", f)
	}
	live := callTo("accept")
	live.Connection.Mode = "live"
	if r := h.Call(t.Context(), ofOne, live, patience); r.Outcome != sdk.Pending {
		t.Errorf("the other mode: %+v", r)
	}
	want := []BreakerStatus{
		{Mode: "live", Calls: "closed", Lookups: "closed"},
		{Mode: "test", Calls: "closed", Lookups: "closed", AccountsOpen: 1, AccountsOpened: 1},
	}
	if got := h.Status()[0].Breakers; len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("status %+v, want %+v", got, want)
	}
}
