package sdk

import (
	"context"
	"testing"
	"time"
)

// TestTheUpstreamIsToldOf has a call's exchanges come back with its answer where a trace is
// kept, over the stream and without, and nothing where none is.
func TestTheUpstreamIsToldOf(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	stream, unary, _ := bothWays(t, func(ctx context.Context, c Call) Result {
		for range 2 * maxExchanges {
			Exchanged(ctx, Exchange{Method: "POST", Host: TraceParent(ctx), Status: 201}, time.Now())
		}
		return Result{Outcome: Done}
	})
	for name, client := range map[string]*Client{"stream": stream, "unary": unary} {
		var told []Exchange
		ctx := Traced(t.Context(), parent, func(all []Exchange) { told = append(told, all...) })
		if _, err := client.Call(ctx, pay(name)); err != nil {
			t.Fatal(err)
		}
		if len(told) != maxExchanges || told[0].Method != "POST" || told[0].Host != parent || told[0].Status != 201 || told[0].After < 0 || told[0].Took < 0 {
			t.Errorf("%s: %v", name, told)
		}
		told = nil
		if _, err := client.Call(t.Context(), pay(name+" untraced")); err != nil || told != nil {
			t.Errorf("%s: %v %v", name, told, err)
		}
	}
}
