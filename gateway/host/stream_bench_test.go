package host

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// BenchmarkStream measures calls that share a stream beside unary ones, to the same
// process over the same connection, with mutual TLS and the SDK on both sides. They
// take turns; the median of their ratios is reported as stream/unary.
func BenchmarkStream(b *testing.B) {
	h, err := start(b.Context(), Config{Specs: []Spec{testSpec("one")}, Log: slog.New(slog.DiscardHandler)}, standard)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close(context.Background()) })
	p, _ := h.plugin("one")
	running, err := p.ready(b.Context(), time.Time{})
	if err != nil {
		b.Fatal(err)
	}
	defer running.leave()
	call := callTo("accept")
	call.Body, err = json.Marshal(order{Do: "accept", Text: strings.Repeat("x", 350)})
	if err != nil {
		b.Fatal(err)
	}
	through := func(c *sdk.Client) func() error {
		return func() error {
			ctx, cancel := context.WithTimeout(b.Context(), patience)
			defer cancel()
			r, err := c.Call(ctx, call)
			if err == nil && r.Outcome != sdk.Pending {
				err = fmt.Errorf("%+v", r)
			}
			return err
		}
	}
	// A client that has not asked for the description does not know of the stream.
	unary, stream := through(sdk.NewClient(running.conn)), through(running.wire.Client)
	for _, inFlight := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprintf("in-flight-%d", inFlight), func(b *testing.B) {
			const rounds = 20
			n := max(b.N/rounds, inFlight)
			speed := map[string][]float64{}
			for range rounds {
				for which, call := range map[string]func() error{"unary": unary, "stream": stream} {
					began := time.Now()
					if err := hammer(inFlight, n, call); err != nil {
						b.Fatal(err)
					}
					speed[which] = append(speed[which], float64(n)/time.Since(began).Seconds())
				}
			}
			ratios := make([]float64, rounds)
			for i := range ratios {
				ratios[i] = speed["stream"][i] / speed["unary"][i]
			}
			b.ReportMetric(median(speed["unary"]), "unary-calls/s")
			b.ReportMetric(median(speed["stream"]), "stream-calls/s")
			b.ReportMetric(median(ratios), "stream/unary")
			b.ReportMetric(0, "ns/op")
		})
	}
}
