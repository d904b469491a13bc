package app

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/tracing"
	"github.com/seed-f006e74d/gerbang/gateway/version"
)

// lastTraces is how long a stop waits for the collector.
const lastTraces = 2 * time.Second

// openTraces begins to keep traces, where the configuration has a place for them.
func (a *App) openTraces(ctx context.Context) (err error) {
	if a.config.Traces.URL == "" {
		return nil
	}
	a.traces, err = tracing.Export(ctx, tracing.Config{
		URL: a.config.Traces.URL, Share: a.config.Traces.Share, Version: version.Of().String(), Replica: a.replica.String(), Log: a.log,
	})
	if err == nil {
		a.metrics.WatchTraces(a.traces.Spans)
	}
	return err
}

func (a *App) tracer() *tracing.Tracer {
	if a.traces == nil {
		return nil
	}
	return a.traces.Tracer
}
