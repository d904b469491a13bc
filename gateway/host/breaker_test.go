package host

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sony/gobreaker/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func TestHealthOf(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	expired, stop := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer stop()
	broken := errors.New("transport is closing")
	cases := map[string]struct {
		caller context.Context
		result sdk.Result
		err    error
		took   time.Duration
		want   health
	}{
		"done":                      {result: sdk.Result{Outcome: sdk.Done}},
		"pending":                   {result: sdk.Result{Outcome: sdk.Pending}},
		"declined":                  {result: sdk.Refuse(sdk.RefuseOther, "no")},
		"declined by the upstream":  {result: sdk.Result{Outcome: sdk.Refused, Blame: sdk.BlameUpstream}},
		"blamed":                    {result: sdk.DontKnow(sdk.BlameUpstream, ""), want: fault},
		"not sent, blamed":          {result: sdk.DidNotSend(sdk.BlameUpstream, ""), want: fault},
		"not sent":                  {result: sdk.DidNotSend(sdk.BlameNone, ""), want: neutral},
		"our account":               {result: sdk.DidNotSend(sdk.BlameAccount, ""), want: accountFault},
		"our account's limit":       {result: sdk.DidNotSend(sdk.BlameLimit, ""), want: accountFault},
		"a panic":                   {result: sdk.DontKnow(sdk.BlameNone, ""), want: neutral},
		"transport":                 {err: broken, want: fault},
		"the plugin ended":          {err: fmt.Errorf("%w: connection reset", errEnded), took: limit, want: neutral},
		"the plugin says no":        {err: status.Error(codes.Unavailable, "the upstream is down"), want: fault},
		"done, slowly":              {result: sdk.Result{Outcome: sdk.Done}, took: limit/2 + 1, want: fault},
		"done, nearly slowly":       {result: sdk.Result{Outcome: sdk.Done}, took: limit / 2},
		"hung up":                   {caller: cancelled, err: broken, took: limit, want: neutral},
		"hung up, blamed":           {caller: cancelled, result: sdk.DontKnow(sdk.BlameUpstream, ""), want: neutral},
		"caller's own short limit":  {caller: expired, err: broken, want: neutral},
		"caller's limit after long": {caller: expired, err: broken, took: limit, want: fault},
	}
	for name, c := range cases {
		if c.caller == nil {
			c.caller = t.Context()
		}
		if got := healthOf(c.caller, c.result, c.err, c.took, limit); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestHealthOfLookup(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		update sdk.StatusUpdate
		err    error
		took   time.Duration
		want   health
	}{
		"found":               {update: sdk.StatusUpdate{Status: sdk.StatusDone}},
		"not found":           {update: sdk.StatusUpdate{Status: sdk.StatusNotFound}},
		"blamed":              {update: sdk.NoStatus(sdk.BlameUpstream, ""), want: fault},
		"no status":           {update: sdk.NoStatus(sdk.BlameNone, ""), want: neutral},
		"our account":         {update: sdk.NoStatus(sdk.BlameAccount, ""), want: accountFault},
		"our account's limit": {update: sdk.NoStatus(sdk.BlameLimit, ""), want: accountFault},
		"transport":           {err: errors.New("x"), want: fault},
		"slow":                {update: sdk.StatusUpdate{Status: sdk.StatusDone}, took: 6 * time.Second, want: fault},
	}
	for name, c := range cases {
		if got := healthOfLookup(t.Context(), c.update, c.err, c.took, 10*time.Second); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// feed gives a breaker a number of calls of one health, and counts those
// that it let through.
func feed(b *breaker, n int, v health) (passed int) {
	for range n {
		if done, err := b.calls.Allow(); err == nil {
			passed++
			done(v)
		}
	}
	return passed
}

func quietBreaker() *breaker {
	return newBreaker(standard, breakerMinimum, nil, func(string, gobreaker.State, gobreaker.State) {})
}

func TestBreakerThreshold(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		good, neutral, bad int
		open               bool
	}{
		"few":                             {bad: breakerMinimum - 1},
		"enough":                          {bad: breakerMinimum, open: true},
		"half":                            {good: 10, bad: 10, open: true},
		"less than half":                  {good: 11, bad: 10},
		"declines":                        {good: 1000},
		"hang-ups":                        {neutral: 1000},
		"faults among them":               {neutral: 1000, bad: breakerMinimum, open: true},
		"neutral is not half of anything": {neutral: 10, good: 5, bad: 14},
	}
	for name, c := range cases {
		b := quietBreaker()
		feed(b, c.neutral, neutral)
		feed(b, c.good, nil)
		feed(b, c.bad, fault)
		if open := b.retryAfter() > 0; open != c.open {
			t.Errorf("%s: open is %v, want %v", name, open, c.open)
		}
	}
}

func TestBreakerForgetsAndRecovers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var story []string
		b := newBreaker(standard, breakerMinimum, nil, func(circuit string, from, to gobreaker.State) {
			story = append(story, circuit+" "+from.String()+" "+to.String())
		})
		feed(b, breakerMinimum-1, fault)
		time.Sleep(standard.window * 11 / 10) // synctest's clock
		feed(b, 1, fault)
		if b.retryAfter() != 0 {
			t.Fatal("open through faults that are older than the window")
		}
		feed(b, breakerMinimum, fault)
		if got := b.retryAfter(); got != standard.open {
			t.Fatalf("retry after %v, want %v", got, standard.open)
		}
		if n := feed(b, 5, nil); n != 0 {
			t.Errorf("%d calls passed an open breaker", n)
		}
		time.Sleep(standard.open + time.Millisecond)
		if b.retryAfter() != 0 {
			t.Error("not half-open")
		}
		feed(b, 1, fault)
		if b.retryAfter() == 0 {
			t.Error("a probe that failed did not open it again")
		}
		time.Sleep(standard.open + time.Millisecond)
		if n := feed(b, 10, nil); n != 10 {
			t.Errorf("%d of 10 calls passed after good probes", n)
		}
		want := []string{"calls closed open", "calls open half-open", "calls half-open open", "calls open half-open", "calls half-open closed"}
		if len(story) != len(want) {
			t.Fatalf("story %v, want %v", story, want)
		}
		for i := range want {
			if story[i] != want[i] {
				t.Errorf("story %v, want %v", story, want)
			}
		}
	})
}

func TestHalfOpenLetsOnlyProbesThrough(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := quietBreaker()
		feed(b, breakerMinimum, fault)
		time.Sleep(standard.open + time.Millisecond)
		var probes []func(error)
		for range breakerProbes {
			done, err := b.calls.Allow()
			if err != nil {
				t.Fatal(err)
			}
			probes = append(probes, done)
		}
		if n := feed(b, 1, nil); n != 0 {
			t.Error("a call passed beside the probes")
		}
		if got := b.retryAfter(); got != breakerProbeGap {
			t.Errorf("retry after %v, want %v", got, breakerProbeGap)
		}
		for _, done := range probes {
			done(nil)
		}
		if n := feed(b, 1, nil); n != 1 {
			t.Error("still not closed")
		}
	})
}

func TestLookupsAreOnlyWatched(t *testing.T) {
	t.Parallel()
	b := quietBreaker()
	for range breakerMinimum {
		record(b.lookups, fault)
	}
	if b.lookups.State() != gobreaker.StateOpen || b.calls.State() != gobreaker.StateClosed {
		t.Errorf("lookups %v, calls %v", b.lookups.State(), b.calls.State())
	}
	record(b.lookups, nil) // must not panic or block while it is open
}
