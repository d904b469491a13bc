package tracing

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// scope names who has made a span.
const scope = "github.com/seed-f006e74d/gerbang/gateway"

// Header is the header with which a trace travels, as W3C has it.
const Header = "traceparent"

// Kind says whose work a part is.
type Kind trace.SpanKind

// The kinds.
const (
	Inside  = Kind(trace.SpanKindInternal) // the gateway's own
	Outside = Kind(trace.SpanKindClient)   // somebody's who is asked
)

// Span is a part of a trace. The zero one is of nothing that is traced.
type Span struct{ of trace.Span }

// On tells whether the part is kept, so that somebody has to note something.
func (s Span) On() bool { return s.of != nil && s.of.IsRecording() }

// Name gives the part another name.
func (s Span) Name(name string) { s.of.SetName(name) }

// Text notes a text of a part that is [Span.On]. A collector is sent nothing of a batch with
// a text that is not UTF-8, and texts may be a plugin's.
func (s Span) Text(key, value string) {
	s.of.SetAttributes(attribute.String(key, strings.ToValidUTF8(value[:min(len(value), maxText)], "")))
}

// maxText is how much of a text is kept, in bytes.
const maxText = 200

// Number notes a number likewise.
func (s Span) Number(key string, value int) { s.of.SetAttributes(attribute.Int(key, value)) }

// Fail notes, in a word, that the part has failed.
func (s Span) Fail(word string) { s.of.SetStatus(codes.Error, word) }

// TraceID names the whole trace.
func (s Span) TraceID() string { return s.of.SpanContext().TraceID().String() }

// End ends the part.
func (s Span) End() {
	if s.of != nil {
		s.of.End()
	}
}

var format propagation.TraceContext

// Tracer begins traces. A nil one begins none.
type Tracer struct{ tracer trace.Tracer }

// Of begins the traces that a provider takes.
func Of(provider trace.TracerProvider) *Tracer { return &Tracer{provider.Tracer(scope)} }

// Request begins what a request is traced by, or goes on with the trace that its caller
// has begun. Whether it is kept is decided here: a caller's own wish counts for nothing.
// Where the caller has no trace, the request's id is the id of the trace, so that an
// X-Request-Id finds it.
func (t *Tracer) Request(r *http.Request, id uuid.UUID) (context.Context, Span) {
	ctx := r.Context()
	if t == nil {
		return ctx, Span{}
	}
	if begun := read(r.Header.Get(Header)); begun.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, begun)
	}
	ctx, span := t.tracer.Start(context.WithValue(ctx, requestKey{}, id), "request", trace.WithSpanKind(trace.SpanKindServer))
	return ctx, Span{span}
}

// Work begins the trace of work that nobody waits for. What led to it, told by [Parent] at
// the time, is linked to it.
func (t *Tracer) Work(ctx context.Context, name string, kind Kind, cause string) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKind(kind)), trace.WithNewRoot()}
	if link := read(cause); link.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: link}))
	}
	ctx, span := t.tracer.Start(context.WithValue(ctx, requestKey{}, nil), name, options...) // no request's id is this trace's
	return ctx, Span{span}
}

// Start begins a part of what is traced, and nothing where that is not.
func Start(ctx context.Context, name string, kind Kind) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Span{}
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(trace.SpanKind(kind)))
	return ctx, Span{span}
}

// Current is the part that a context is in.
func Current(ctx context.Context) Span { return Span{trace.SpanFromContext(ctx)} }

// Past notes a part that is over, of which somebody else has told.
func Past(ctx context.Context, name string, from time.Time, took time.Duration, note func(Span)) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return
	}
	_, span := parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(from))
	note(Span{span})
	span.End(trace.WithTimestamp(from.Add(took)))
}

// Parent is what is traced now, as [Header] tells it, "" for nothing.
func Parent(ctx context.Context) string {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	format.Inject(ctx, carrier)
	return carrier[Header]
}

func read(parent string) trace.SpanContext {
	if parent == "" {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(format.Extract(context.Background(), propagation.MapCarrier{Header: parent}))
}

type requestKey struct{}

// ids gives a trace that begins with a request the request's id.
type ids struct{}

func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if id, ok := ctx.Value(requestKey{}).(uuid.UUID); ok {
		return trace.TraceID(id), spanID()
	}
	var made trace.TraceID
	binary.BigEndian.PutUint64(made[:8], rand.Uint64()|1) //nolint:gosec // a name, not a secret; it is not zero
	binary.BigEndian.PutUint64(made[8:], rand.Uint64())   //nolint:gosec // likewise
	return made, spanID()
}

func (ids) NewSpanID(context.Context, trace.TraceID) trace.SpanID { return spanID() }

func spanID() (made trace.SpanID) {
	binary.BigEndian.PutUint64(made[:], rand.Uint64()|1) //nolint:gosec // likewise
	return made
}

// share keeps a share of all traces, chosen by the last seven bytes of the request's id, or
// else of the trace's, which are random; a trace's id may be a caller's to choose. What
// follows from something that was kept is kept.
type share struct{ below uint64 }

func newShare(of float64) sdktrace.Sampler {
	s := share{uint64(math.Ceil(of * (1 << 56)))}
	return sdktrace.ParentBased(s, sdktrace.WithRemoteParentSampled(s), sdktrace.WithRemoteParentNotSampled(s))
}

// ShouldSample implements [sdktrace.Sampler].
func (s share) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	decision := sdktrace.Drop
	lot := p.TraceID[8:]
	if id, ok := p.ParentContext.Value(requestKey{}).(uuid.UUID); ok {
		lot = id[8:]
	}
	if len(p.Links) > 0 || binary.BigEndian.Uint64(lot)&(1<<56-1) < s.below {
		decision = sdktrace.RecordAndSample
	}
	return sdktrace.SamplingResult{Decision: decision, Tracestate: trace.SpanContextFromContext(p.ParentContext).TraceState()}
}

// Description implements [sdktrace.Sampler].
func (share) Description() string { return "a share of all traces" }

// Noted is what a request's line in the log has from the rooms behind it. It is the context
// that they get.
type Noted struct {
	context.Context //nolint:containedctx // it is one

	mu       sync.Mutex
	provider time.Duration
	movement string
}

type notedKey struct{}

// Noting is the context in which is noted from here on.
func Noting(ctx context.Context) *Noted { return &Noted{Context: ctx} }

// Value finds what is noted in, too.
func (n *Noted) Value(key any) any {
	if key == (notedKey{}) {
		return n
	}
	return n.Context.Value(key)
}

// AtProvider notes a call of a provider.
func AtProvider(ctx context.Context, took time.Duration) {
	if n, ok := ctx.Value(notedKey{}).(*Noted); ok {
		n.mu.Lock()
		n.provider += took
		n.mu.Unlock()
	}
}

// About notes the movement that a request is about.
func About(ctx context.Context, movement string) {
	if n, ok := ctx.Value(notedKey{}).(*Noted); ok {
		n.mu.Lock()
		n.movement = movement
		n.mu.Unlock()
	}
}

// Read is how long all calls of providers took together, and the movement, "" for none.
func (n *Noted) Read() (provider time.Duration, movement string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.provider, n.movement
}
