package console_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/host"
)

// TestTraffic: what all replicas decided, and what this one has answered since it began to
// measure.
func TestTraffic(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		d.Traffic = func(context.Context) (*decision.Window, error) {
			window := decision.NewWindow(from, 10*time.Second, 2)
			return window, window.Add(from, decision.Pack([]decision.Counted{
				{Series: decision.Series{Merchant: "mer_1", Operation: "/a", Live: true}, Counts: []decision.Count{{Second: 1, N: 3}}},
				{Series: decision.Series{Merchant: "mer_1", Operation: "/b", Rule: decision.Rate(0)}, Counts: []decision.Count{{Second: 11, N: 5}}},
			}))
		}
	})
	if got, err := adminapi.ShowTraffic.Call(t.Context(), w, adminapi.None{}); err != nil || len(got.Routes) != 0 {
		t.Errorf("before it measured: %+v, %v", got, err)
	}
	w.metrics.Observe("POST /a", "OK", time.Hour) // before the measurement
	w.metrics.Measure(time.Now())
	for range 98 {
		w.metrics.Observe("POST /a", "OK", 3*time.Millisecond)
	}
	w.metrics.Observe("POST /a", "PROVIDER_UNAVAILABLE", 40*time.Millisecond)
	w.metrics.Observe("POST /a", "PROVIDER_UNAVAILABLE", 40*time.Millisecond)
	w.metrics.ObserveCall(host.Observation{Provider: "bank", Mode: "live", Operation: "/a", Method: "call", Outcome: "done", Took: 20 * time.Millisecond})
	got, err := adminapi.ShowTraffic.Call(t.Context(), w, adminapi.None{})
	if err != nil || !got.From.Equal(from) || got.SliceSeconds != 10 || len(got.Slices) != 2 || got.Slices[0].Admitted != 3 || got.Slices[1].Slowed != 5 {
		t.Fatalf("slices %+v, %v", got, err)
	}
	if len(got.Operations) != 2 || got.Operations[0].Operation != "/b" || len(got.Refusals) != 1 || got.Refusals[0].MerchantID != "mer_1" || got.Refusals[0].Mode != "test" ||
		got.Refusals[0].Verdict != "slowed" || got.Refusals[0].N != 5 {
		t.Errorf("operations %+v, refusals %+v", got.Operations, got.Refusals)
	}
	if len(got.Routes) != 1 || got.Routes[0].Requests != 100 || got.Routes[0].Codes["PROVIDER_UNAVAILABLE"] != 2 || got.Routes[0].P50MS != 5 || got.Routes[0].P99MS != 50 {
		t.Errorf("routes %+v", got.Routes)
	}
	if len(got.Providers) != 1 || got.Providers[0].Calls != 1 || got.Providers[0].Outcomes["done"] != 1 || got.Providers[0].P50MS != 25 {
		t.Errorf("providers %+v", got.Providers)
	}
	for range 40 { // what is kept does not grow
		w.metrics.Measure(time.Now())
	}
	if got, err := adminapi.ShowTraffic.Call(t.Context(), w, adminapi.None{}); err != nil || len(got.Routes) != 0 {
		t.Errorf("of old measurements: %+v, %v", got.Routes, err)
	}
}
