package sdk

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
	"github.com/seed-f006e74d/gerbang/sdk/uptime"
)

// TestWhatIsLeftCounts: a call and a lookup are sent while something is left of the time
// that the gateway tells, whatever the clocks say. One that lay before a paused plugin is
// not, and a gateway of before tells a moment.
func TestWhatIsLeftCounts(t *testing.T) {
	t.Parallel()
	past, future := timestamppb.New(time.Now().Add(-time.Hour)), timestamppb.New(time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		by       *timestamppb.Timestamp
		within   *durationpb.Duration
		byUptime *durationpb.Duration
		runs     bool
	}{
		"no deadline":                   {runs: true},
		"a moment to come":              {by: future, runs: true},
		"a moment that has passed":      {by: past},
		"by a clock that is ahead":      {by: past, within: durationpb.New(time.Minute), runs: true},
		"nothing left, clock is behind": {by: future, within: durationpb.New(-1)},
		"paused before it was read":     {by: future, within: durationpb.New(time.Minute), byUptime: durationpb.New(uptime.Now() - time.Millisecond)},
		"not paused":                    {by: past, within: durationpb.New(time.Minute), byUptime: durationpb.New(uptime.Now() + time.Minute), runs: true},
	} {
		if c.byUptime != nil && !uptime.Shared && !c.runs {
			continue // nothing tells that it was paused
		}
		calls, lookups := 0, 0
		handlers := rightHandlers()
		handlers.Calls["/shop/pay"] = func(context.Context, Call) Result { calls++; return Result{} }
		handlers.Lookup = func(context.Context, Lookup) StatusUpdate { lookups++; return StatusUpdate{} }
		s, err := newServer([]byte(payManifest), handlers)
		if err != nil {
			t.Fatal(err)
		}
		called, err := s.Call(t.Context(), &pluginpb.CallRequest{Operation: "/shop/pay", SendBy: c.by, SendWithin: c.within, SendByUptime: c.byUptime})
		if err != nil || (calls == 1) != c.runs || (called.GetOutcome() == pluginpb.Outcome_OUTCOME_NOT_SENT) == c.runs {
			t.Errorf("%s: called %d times, %v, %v", name, calls, called, err)
		}
		_, err = s.Lookup(t.Context(), &pluginpb.LookupRequest{Operation: "/shop/pay", SendBy: c.by, SendWithin: c.within, SendByUptime: c.byUptime})
		if err != nil || (lookups == 1) != c.runs {
			t.Errorf("%s: looked up %d times, %v", name, lookups, err)
		}
	}
}

// heard is a plugin that keeps what it was told.
type heard struct {
	pluginpb.ProviderClient
	call   *pluginpb.CallRequest
	lookup *pluginpb.LookupRequest
}

func (h *heard) Call(_ context.Context, r *pluginpb.CallRequest, _ ...grpc.CallOption) (*pluginpb.CallResponse, error) {
	h.call = r
	return &pluginpb.CallResponse{}, nil
}

func (h *heard) Lookup(_ context.Context, r *pluginpb.LookupRequest, _ ...grpc.CallOption) (*pluginpb.LookupResponse, error) {
	h.lookup = r
	return &pluginpb.LookupResponse{}, nil
}

// TestTheGatewayTellsWhatIsLeft when it sends, and the moment to plugins of before.
func TestTheGatewayTellsWhatIsLeft(t *testing.T) {
	t.Parallel()
	h := &heard{}
	c := &Client{wire: h}
	ask := func(sendBy time.Time) {
		_, err := c.Call(t.Context(), Call{SendBy: sendBy})
		if err == nil {
			_, err = c.Lookup(t.Context(), Lookup{SendBy: sendBy})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if ask(time.Time{}); h.call.SendWithin != nil || h.call.SendByUptime != nil || h.lookup.SendWithin != nil || h.lookup.SendByUptime != nil {
		t.Errorf("without a deadline the plugin is told %v and %v", h.call, h.lookup)
	}
	ask(time.Now().Add(time.Minute))
	for _, told := range []struct {
		within, byUptime *durationpb.Duration
		by               *timestamppb.Timestamp
	}{{h.call.SendWithin, h.call.SendByUptime, h.call.SendBy}, {h.lookup.SendWithin, h.lookup.SendByUptime, h.lookup.SendBy}} {
		left := []time.Duration{told.within.AsDuration(), time.Until(told.by.AsTime())}
		if uptime.Shared {
			left = append(left, told.byUptime.AsDuration()-uptime.Now())
		}
		for _, left := range left {
			if left > time.Minute || left < 30*time.Second {
				t.Errorf("%v is left of a minute: %+v", left, told)
			}
		}
	}
}
