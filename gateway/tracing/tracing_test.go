package tracing

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func keeping(share float64) (*Tracer, *tracetest.SpanRecorder) {
	recorder := tracetest.NewSpanRecorder()
	return Of(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder), sdktrace.WithSampler(newShare(share)), sdktrace.WithIDGenerator(ids{}))), recorder
}

func request(parent string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/payments/create", nil)
	if parent != "" {
		r.Header.Set(Header, parent)
	}
	return r
}

// TestShare keeps the share that is wanted of requests' own ids, whose first bits are the
// time and a version, and of callers' traces, whatever they ask for.
func TestShare(t *testing.T) {
	t.Parallel()
	const requests = 4000
	for _, share := range []float64{0, 0.25, 1} {
		for _, flags := range []string{"", "00", "01"} {
			tracer, recorder := keeping(share)
			for range requests {
				parent := ""
				if flags != "" {
					made := uuid.New()
					parent = "00-" + trace.TraceID(made).String() + "-00f067aa0ba902b7-" + flags
				}
				_, span := tracer.Request(request(parent), uuid.Must(uuid.NewV7()))
				span.End()
			}
			if kept := float64(len(recorder.Ended())) / requests; kept < share-0.05 || kept > share+0.05 {
				t.Errorf("share %v, flags %q: %v were kept", share, flags, kept)
			}
		}
	}
}

// TestKept: what follows from what was kept is kept, and no caller chooses by a trace's id.
func TestKept(t *testing.T) {
	t.Parallel()
	tracer, recorder := keeping(0.01)
	for range 200 {
		_, span := tracer.Work(t.Context(), "callback", Outside, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		span.End()
	}
	if n := len(recorder.Ended()); n != 200 {
		t.Errorf("of 200 parts that follow from something kept %d are", n)
	}
	tracer, recorder = keeping(0.01)
	for range 200 {
		_, span := tracer.Request(request("00-11111111111111110000000000000000-b7ad6b7169203331-01"), uuid.Must(uuid.NewV7()))
		span.End()
	}
	if n := len(recorder.Ended()); n > 20 {
		t.Errorf("a caller had %d of 200 requests kept", n)
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	tracer, _ := keeping(1)
	id := uuid.Must(uuid.NewV7())
	ctx, span := tracer.Request(request(""), id)
	if got := span.of.SpanContext().TraceID(); got != trace.TraceID(id) {
		t.Errorf("the trace of request %v is %v", id, got)
	}
	parent := Parent(ctx)
	other, linked := tracer.Work(context.Background(), "callback", Outside, parent)
	if links := linked.of.(sdktrace.ReadOnlySpan).Links(); len(links) != 1 || links[0].SpanContext.SpanID() != span.of.SpanContext().SpanID() {
		t.Errorf("linked to %v", links)
	}
	if Parent(other) == parent || linked.of.SpanContext().TraceID() == span.of.SpanContext().TraceID() {
		t.Error("work is a part of what led to it")
	}
	if _, work := tracer.Work(ctx, "poll", Inside, ""); work.of.SpanContext().TraceID() == span.of.SpanContext().TraceID() {
		t.Error("work within a request has its trace")
	}
	for _, broken := range []string{"x", "00-0-0-0", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"} {
		if _, span := tracer.Request(request(broken), id); span.of.SpanContext().TraceID() != trace.TraceID(id) {
			t.Errorf("%q was gone on with", broken)
		}
	}
}

// TestOff makes and keeps nothing where nothing is traced.
func TestOff(t *testing.T) { //nolint:paralleltest // it counts allocations
	var tracer *Tracer
	ctx, span := tracer.Request(request("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), uuid.New())
	if span.On() || Parent(ctx) != "" {
		t.Error("a trace was begun")
	}
	if allocs := testing.AllocsPerRun(100, func() {
		ctx, span := Start(ctx, "policy", Inside)
		Past(ctx, "upstream", time.Time{}, 0, nil)
		span.End()
	}); allocs != 0 {
		t.Errorf("a part that is not traced allocates %v times", allocs)
	}
}

func TestNoted(t *testing.T) {
	t.Parallel()
	AtProvider(t.Context(), time.Second) // nobody asks
	noted := Noting(t.Context())
	AtProvider(noted, time.Second)
	AtProvider(context.WithoutCancel(noted), time.Second)
	About(noted, "m")
	if took, movement := noted.Read(); took != 2*time.Second || movement != "m" {
		t.Errorf("%v %s", took, movement)
	}
}
