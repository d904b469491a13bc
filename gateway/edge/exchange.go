package edge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// exchange is one request and its answer. It is also the ResponseWriter that
// handlers get, so that the access log sees whatever they write.
type exchange struct {
	http.ResponseWriter
	edge    *Edge
	request *http.Request
	ctx     *tracing.Noted // of the request
	id      string         // X-Request-Id
	started time.Time      // by the time that all replicas share
	begun   time.Time      // by this machine's, for how long it takes
	address netip.Addr
	held    int64 // bytes of the body that count as held
	route   string
	status  int
	code    string       // "OK" or the error code
	failure *fault.Error // as it was answered

	// What the log of requests keeps: the bodies, nil where they are too long, and their lengths.
	asked, answered           []byte
	askedBytes, answeredBytes int

	// Set as the checks proceed.
	operation  *catalog.Operation
	parameters *parameters // of the operation's query, nil where only the body counts
	identity   tenants.Identity
	reference  string
	ticket     admission.Ticket
	span       tracing.Span
	handed     bool // to the lifecycle, which may have moved money
}

// unrouted is the route's name where no pattern matched: paths come from anyone
// and are no names for metrics.
const unrouted = "none"

// mostAttrs is how much a line of the log has at most.
const mostAttrs = 13

func (e *Edge) begin(w http.ResponseWriter, r *http.Request) *exchange {
	// Always ours: two callers could choose the same id. It contains its time, so that
	// operators find the movement.
	id := uuid.Must(uuid.NewV7())
	ctx, span := e.Tracer.Request(r, id)
	noted := tracing.Noting(ctx)
	x := &exchange{
		ResponseWriter: w, edge: e, request: r, ctx: noted, span: span,
		id: id.String(), started: e.Now(), begun: time.Now(), route: unrouted, code: "OK",
		address: limit.ClientAddress(r, *e.trusted.Load()),
	}
	header := w.Header()
	header[headerRequestID] = []string{x.id}
	header[e.headers.version] = e.headers.versionValue
	header[headerContentTypeOptions] = noSniff
	return x
}

// Unwrap gives http.ResponseController the connection's own writer.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader notes the status.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer has begun.
func (x *exchange) Write(data []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	return x.ResponseWriter.Write(data)
}

// content serves bytes that don't change, with conditions and ranges.
func (x *exchange) content(name string, data []byte) {
	http.ServeContent(x, x.request, name, time.Time{}, bytes.NewReader(data))
}

// end answers what a panic left unanswered, and writes the access log. Neither
// path nor query nor body is logged: each may hold a secret.
func (x *exchange) end(thrown any) {
	if thrown != nil {
		x.panicked(thrown)
	}
	took := time.Since(x.begun)
	if x.edge.Observer != nil {
		x.edge.Observer.Observe(x.route, x.code, took)
	}
	attrs := append(make([]slog.Attr, 0, mostAttrs),
		slog.String("request_id", x.id), slog.String("method", shortMethod(x.request.Method)), slog.String("route", x.route),
		slog.Int("status", x.status), slog.Float64("took_ms", milliseconds(took)))
	if x.identity.Account != nil || x.code == string(fault.AuthFailed) { // a payer's is nobody's business
		attrs = append(attrs, slog.String("address", x.address.String()))
	}
	provider, movement := x.ctx.Read()
	if movement != "" {
		attrs = append(attrs, slog.String("movement_id", movement))
	}
	if provider > 0 {
		attrs = append(attrs, slog.Float64("provider_ms", milliseconds(provider)))
	}
	if x.identity.Account != nil {
		attrs = append(attrs, slog.String("merchant_id", string(x.identity.Account.ID())), slog.String("mode", string(x.identity.Mode)))
	}
	if x.code != "OK" {
		attrs = append(attrs, slog.String("error_code", x.code))
		if x.ticket.DecisionID != "" { // gerbang find explains it
			attrs = append(attrs, slog.String("decision_id", x.ticket.DecisionID))
		}
	}
	if x.span.On() {
		x.endTrace(attrs)
		attrs = append(attrs, slog.String("trace_id", x.span.TraceID()))
	}
	x.keep(took)
	x.edge.Log.LogAttrs(x.ctx, slog.LevelInfo, "request", attrs...)
}

func milliseconds(took time.Duration) float64 { return float64(took.Microseconds()) / 1000 }

// endTrace ends what the request is traced by, which has what the log has.
func (x *exchange) endTrace(attrs []slog.Attr) {
	x.span.Name(shortMethod(x.request.Method) + " " + x.route)
	for _, attr := range attrs {
		x.span.Text("gerbang."+attr.Key, attr.Value.String())
	}
	x.span.Text("http.request.method", shortMethod(x.request.Method))
	x.span.Text("http.route", x.route)
	x.span.Number("http.response.status_code", x.status)
	if x.status >= http.StatusInternalServerError {
		x.span.Fail(x.code)
	}
	x.span.End()
}

func (x *exchange) panicked(thrown any) {
	if err, ok := thrown.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(thrown)
	}
	x.edge.Log.LogAttrs(x.ctx, slog.LevelError, "panic",
		slog.String("request_id", x.id), slog.String("route", x.route),
		slog.String("panic", fmt.Sprint(thrown)), slog.String("stack", string(debug.Stack())))
	if x.status == 0 {
		x.fail(x.truthful(errPanicked))
	}
}

var errPanicked = errors.New("panic, logged with its stack")

// truthful makes a fault of an error. After an unexpected error in a money operation
// the request may have been sent, so the merchant must ask with the same reference.
func (x *exchange) truthful(err error) *fault.Error {
	f := fault.From(err)
	if _, expected := errors.AsType[*fault.Error](err); !expected && x.handed && x.operation.Money() {
		f = f.Unknown()
	}
	return f
}

// logCause writes the cause of a 500 to the log, once.
func (x *exchange) logCause(f *fault.Error) {
	if f.Status() != http.StatusInternalServerError || errors.Is(f, errPanicked) {
		return
	}
	level := slog.LevelWarn
	if f.Code == fault.Internal && !errors.Is(f, context.Canceled) {
		level = slog.LevelError
	}
	x.edge.Log.LogAttrs(x.ctx, level, "request failed",
		slog.String("request_id", x.id), slog.String("route", x.route), slog.String("cause", f.Error()))
}

// Header names as the map of net/http has them.
const (
	headerRequestID          = "X-Request-Id"
	headerContentTypeOptions = "X-Content-Type-Options"
)

var noSniff = []string{"nosniff"}

// headerNames are the headers that carry the service's short name.
type headerNames struct {
	version, decision string
	versionValue      []string
}

func newHeaderNames(svc string) headerNames {
	return headerNames{
		version:      http.CanonicalHeaderKey("X-" + svc + "-Version"),
		decision:     http.CanonicalHeaderKey("X-" + svc + "-Decision-Id"),
		versionValue: []string{catalog.APIVersion},
	}
}

// succeed renders an answer. One that can't be encoded is INTERNAL.
func (x *exchange) succeed(a lifecycle.Answer) {
	if a.Finished != nil {
		x.finish(a.Finished)
		return
	}
	err := x.envelope(http.StatusOK, func(buffer *bytes.Buffer) error { return writeSuccess(buffer, a) })
	if err != nil {
		x.fail(x.truthful(fmt.Errorf("encode the answer: %w", err)))
	}
}

// writeSuccess writes the envelope of an answer. What is JSON already is without spaces.
func writeSuccess(buffer *bytes.Buffer, a lifecycle.Answer) error {
	text := append(buffer.AvailableBuffer(), `{"success":true`...)
	if a.Message != "" {
		text, _ = jsontext.AppendQuote(append(text, `,"message":`...), a.Message) // what is no UTF-8 is replaced
	}
	if a.Status != "" {
		text, _ = jsontext.AppendQuote(append(text, `,"status":`...), a.Status)
	}
	buffer.Write(append(text, `,"data":`...))
	if data, written := a.Data.(json.RawMessage); written && len(data) > 0 {
		buffer.Write(data)
	} else if err := encode(buffer, a.Data); err != nil {
		return err
	} else {
		buffer.Truncate(buffer.Len() - 1) // the line's end
	}
	buffer.WriteString("}\n")
	return nil
}

// encode writes a value as JSON, and a line's end.
func encode(buffer *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// fail answers with an error: the only place of this package that does.
func (x *exchange) fail(f *fault.Error) {
	x.code, x.failure = string(f.Code), f
	x.logCause(f)
	out := f.Envelope(x.id)
	if wait := f.RetrySeconds(x.edge.Now()); wait > 0 {
		x.Header().Set("Retry-After", strconv.Itoa(wait))
	}
	if f.Code == fault.AuthFailed {
		x.Header().Set("WWW-Authenticate", "Bearer")
	}
	if reference := cmp.Or(f.Reference, x.reference); reference != "" {
		if x.operation != nil && x.operation.ReferenceField() == "ref_id" {
			out.RefID = reference
		} else {
			out.ExternalID = reference
		}
	}
	if err := x.envelope(f.Status(), func(buffer *bytes.Buffer) error { return encode(buffer, out) }); err != nil {
		x.edge.Log.Error("encode an error", "request_id", x.id, "cause", err)
	}
}

// envelope writes status, headers and body. Nothing is written on an error.
func (x *exchange) envelope(status int, write func(*bytes.Buffer) error) error {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	if err := write(buffer); err != nil {
		return err
	}
	x.Header()["Cache-Control"] = noStore
	x.send(status, buffer.Bytes())
	return nil
}

// send writes status, headers and body.
func (x *exchange) send(status int, text []byte) {
	header := x.Header()
	header["Content-Type"] = jsonType
	header["Content-Length"] = []string{strconv.Itoa(len(text))}
	x.decided()
	x.answer(text)
	x.WriteHeader(status)
	// The caller may be gone; there is nobody left to tell.
	_, _ = x.Write(text)
}

// decided tells in headers by which decision the request ran, and what its rates leave.
func (x *exchange) decided() {
	header := x.Header()
	if x.ticket.DecisionID != "" {
		header[x.edge.headers.decision] = []string{x.ticket.DecisionID}
	}
	if x.ticket.RateLimit != "" {
		header["Ratelimit"] = []string{x.ticket.RateLimit}
		header["Ratelimit-Policy"] = []string{x.ticket.RateLimitPolicy}
	}
}

var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
)
