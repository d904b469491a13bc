package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Config says where traces go.
type Config struct {
	URL              string  // of a collector that takes OTLP over HTTP
	Share            float64 // of all requests, from 0 to 1
	Version, Replica string
	Log              *slog.Logger
}

const (
	// kept is how many finished spans wait for the collector at most: what comes on top while it
	// does not answer is lost, and counted.
	kept      = 4096
	sendEvery = 2 * time.Second
	sendTime  = 10 * time.Second
	// logEvery is how often it is logged that traces do not arrive.
	logEvery = time.Minute
)

// Exporter sends traces to a collector. Nobody waits for it.
type Exporter struct {
	*Tracer
	provider           *sdktrace.TracerProvider
	made, sent, failed atomic.Int64
}

// Export begins to send. The standard variables of OTLP's exporters count for what a
// Config does not say: OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_CERTIFICATE.
func Export(ctx context.Context, c Config) (*Exporter, error) {
	client, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(c.URL), otlptracehttp.WithTimeout(sendTime))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	e := &Exporter{}
	e.provider = sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(made{&e.made}),
		sdktrace.WithBatcher(&counted{SpanExporter: client, exporter: e, log: c.Log}, sdktrace.WithBatchTimeout(sendEvery), sdktrace.WithExportTimeout(sendTime), sdktrace.WithMaxQueueSize(kept)),
		sdktrace.WithSampler(newShare(c.Share)), sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "gerbang"),
			attribute.String("service.version", c.Version), attribute.String("service.instance.id", c.Replica))))
	e.Tracer = Of(e.provider)
	return e, nil
}

// Close sends what is left, as long as the context lasts.
func (e *Exporter) Close(ctx context.Context) error {
	if err := e.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("traces: %w", err)
	}
	return nil
}

// Spans is how many spans were made, and of these how many the collector has taken and has
// not taken. The rest waits, or was lost because too many did.
func (e *Exporter) Spans() (made, sent, failed int64) {
	return e.made.Load(), e.sent.Load(), e.failed.Load()
}

// made counts the spans that end.
type made struct{ count *atomic.Int64 }

// OnStart implements [sdktrace.SpanProcessor].
func (made) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements [sdktrace.SpanProcessor].
func (m made) OnEnd(sdktrace.ReadOnlySpan) { m.count.Add(1) }

// Shutdown implements [sdktrace.SpanProcessor].
func (made) Shutdown(context.Context) error { return nil }

// ForceFlush implements [sdktrace.SpanProcessor].
func (made) ForceFlush(context.Context) error { return nil }

// counted counts what is sent, and logs why nothing arrives.
type counted struct {
	sdktrace.SpanExporter
	exporter *Exporter
	log      *slog.Logger
	logged   time.Time // one batch is sent at a time
}

// ExportSpans implements [sdktrace.SpanExporter].
func (c *counted) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		c.exporter.sent.Add(int64(len(spans)))
		return nil
	}
	c.exporter.failed.Add(int64(len(spans)))
	if time.Since(c.logged) > logEvery {
		c.logged = time.Now()
		c.log.WarnContext(ctx, "traces do not arrive: the gateway goes on without them", "error", err)
	}
	return nil // it was told: the SDK would tell it once more
}
