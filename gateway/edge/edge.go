package edge

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/docs"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Runner runs one admitted request. Its errors are rendered as they are when they
// are faults; any other error is INTERNAL.
type Runner interface {
	Run(ctx context.Context, r lifecycle.Request) (lifecycle.Answer, error)
}

// Movements runs requests about movements.
type Movements interface {
	Runner
	// Stored returns the answer to an earlier request under the same reference. It is
	// asked when admission refuses, so that a retry of something that exists is never
	// refused for a limit. False means that nothing is there; an error that is a fault
	// is the answer to give.
	Stored(ctx context.Context, r lifecycle.Request) (lifecycle.Answer, bool, error)
}

// Notifier takes what providers say by themselves.
type Notifier interface {
	// RouteOf finds who is notified at a token. An unknown one is the fault NOT_FOUND.
	RouteOf(ctx context.Context, provider tenants.Provider, token tenants.NotifyToken) (lifecycle.Route, error)
	// Notify returns after the facts are committed.
	Notify(ctx context.Context, n lifecycle.Notification) (sdk.Acknowledgement, error)
}

// Checkouts finds what a checkout page shows; an unknown id is the fault
// NOT_FOUND.
type Checkouts interface {
	Checkout(ctx context.Context, id string) (kind.Checkout, error)
}

// Authenticator identifies a key's merchant, with the errors of [tenants.Directory].
type Authenticator interface {
	Authenticate(ctx context.Context, now time.Time, presented string, addr netip.Addr) (tenants.Identity, error)
	// Remembers reports whether a key can be checked without the database.
	Remembers(presented string) bool
	// RemembersRoute reports the same of a provider's token.
	RemembersRoute(provider tenants.Provider, token tenants.NotifyToken) bool
	// Fresh reports whether this replica would know of a key revoked elsewhere.
	Fresh(now time.Time) bool
}

// Admitter decides whether a request may run now. The ticket names the policy's
// decision, also when the error refuses.
type Admitter interface {
	Admit(ctx context.Context, now time.Time, id tenants.Identity, op *catalog.Operation, body catalog.Document) (admission.Ticket, error)
	// Spend takes a token of the rates for a request that is refused before Admit, and
	// says how it is refused: by a rate, or as given.
	Spend(ctx context.Context, now time.Time, id tenants.Identity, op *catalog.Operation, refusal error) (admission.Ticket, error)
	// Reserve takes what the ticket of an admitted request must be counted by.
	Reserve(ctx context.Context, now time.Time, ticket admission.Ticket, id tenants.Identity, op *catalog.Operation) (admission.Ticket, error)
	// Remaining is what the quotas of an admitted request leave, of which it takes
	// nothing.
	Remaining(ctx context.Context, now time.Time, ticket admission.Ticket, id tenants.Identity) *int64
	// Reconsider decides again with a quote, before the money call.
	Reconsider(ctx context.Context, now time.Time, ticket admission.Ticket, id tenants.Identity, op *catalog.Operation,
		body catalog.Document, quote map[string]any) error
	// Refused names the decision of an error with which the policy refused an admitted
	// request later.
	Refused(ctx context.Context, ticket admission.Ticket, err error) admission.Ticket
	// Release gives back the units of its quotas that a request reserved. It is
	// called for every request that used none: a replay, or one that sent nothing.
	Release(ctx context.Context, ticket admission.Ticket)
}

// Failures counts failed authentications by address.
type Failures interface {
	// Record notes a failure. It reports whether that is one too many, and then how
	// long the address should wait.
	Record(now time.Time, addr netip.Addr) (blocked bool, retryAfter time.Duration)
}

// Observer gets each answer. Code is "OK" or the error code. Route is a pattern,
// never a path with an id in it.
type Observer interface {
	Observe(route, code string, took time.Duration)
}

// Requests keeps merchants' calls as they were answered. The bodies are its own from then on.
type Requests interface{ Keep(call requestlog.Call) }

// Config is the edge's configuration.
type Config struct {
	// Svc is the service's short name in header names; empty means Svc.
	Svc string
	// PublicURL is where merchants reach the edge, without a slash at its end; empty for
	// the address that they use.
	PublicURL string
	// ConsoleURL is where merchants' people sign in, empty where there is no such console.
	ConsoleURL string
	// TrustedProxies are the addresses whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
	// AllowHTTPCallbacks lets callback URLs be http, on loopback and at any port.
	// It is for development.
	AllowHTTPCallbacks bool
}

// Dependencies are the parts that the edge uses. Observer, Requests, Log and Now are optional.
type Dependencies struct {
	Movements     Movements
	Queries       Runner
	Notifier      Notifier
	Checkouts     Checkouts
	Authenticator Authenticator
	PolicyFresh   func(now time.Time) bool // whether this replica would know of another policy version in force
	Admitter      Admitter
	Failures      Failures
	Observer      Observer
	Requests      Requests
	Tracer        *tracing.Tracer // nil for no traces
	Log           *slog.Logger
	Now           func() time.Time
}

// Edge is the handler of the merchants' listener.
type Edge struct {
	Dependencies
	config  Config
	headers headerNames
	pages   *pages
	docs    *docs.Site
	router  atomic.Pointer[routes]
	trusted atomic.Pointer[[]netip.Prefix]

	room      *limit.Shares // of the memory for bodies
	strangers *limit.Turns  // with a key or a token
	payers    *limit.Turns  // at their pages
}

var svcForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,31}$`)

// New makes an edge that serves a snapshot.
func New(c Config, d Dependencies, s *catalog.Snapshot) (*Edge, error) {
	if d.Movements == nil || d.Queries == nil || d.Notifier == nil || d.Checkouts == nil || d.Authenticator == nil || d.PolicyFresh == nil || d.Admitter == nil || d.Failures == nil {
		return nil, errors.New("edge: a dependency is missing")
	}
	c.Svc = cmp.Or(c.Svc, "Svc")
	if !svcForm.MatchString(c.Svc) {
		return nil, fmt.Errorf("edge: the short name %q must be letters and digits, at most 32", c.Svc)
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	pages, err := newPages()
	if err != nil {
		return nil, fmt.Errorf("edge: %w", err)
	}
	documents, err := docs.New(docs.Config{Svc: c.Svc, PublicURL: c.PublicURL, ConsoleURL: c.ConsoleURL, Version: catalog.APIVersion})
	if err != nil {
		return nil, fmt.Errorf("edge: %w", err)
	}
	e := &Edge{
		Dependencies: d, config: c, headers: newHeaderNames(c.Svc), pages: pages, docs: documents,
		room: limit.NewShares(maxHeld), strangers: limit.NewTurns(), payers: limit.NewTurns(),
	}
	e.Trust(c.TrustedProxies)
	return e, e.Use(s)
}

// Trust changes whose X-Forwarded-For is believed, from the next request on.
func (e *Edge) Trust(proxies []netip.Prefix) { e.trusted.Store(&proxies) }

// Use serves another snapshot from the next request on. On an error the former one
// stays.
func (e *Edge) Use(s *catalog.Snapshot) error {
	use, err := e.Prepare(s)
	if err == nil {
		use()
	}
	return err
}

// Prepare makes what serves another snapshot from the moment on in which use is called.
func (e *Edge) Prepare(s *catalog.Snapshot) (use func(), err error) {
	router, err := e.newRoutes(s)
	if err != nil {
		return nil, fmt.Errorf("edge: %w", err)
	}
	return func() { e.router.Store(router) }, nil
}

// ServeHTTP answers one request.
func (e *Edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := e.begin(w, r)
	defer func() { x.end(recover()) }()
	e.router.Load().ServeHTTP(x, r)
}

// routes is one snapshot's router.
type routes struct {
	*httprouter.Router
	snapshot *catalog.Snapshot
}

// own are the first path segments that no operation may use.
var own = []string{"checkout", "docs", "notify"}

// newRoutes builds the router. What httprouter would panic on is refused first.
func (e *Edge) newRoutes(s *catalog.Snapshot) (*routes, error) {
	// It redirects nowhere: a redirect would repeat the query, and a key in it.
	router := &httprouter.Router{HandleMethodNotAllowed: true}
	router.NotFound = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(*exchange).fail(fault.New(fault.NotFound, "There is no such path."))
	})
	router.MethodNotAllowed = http.HandlerFunc(methodNotAllowed)
	for _, op := range s.Operations() {
		if slices.Contains(own, strings.Split(op.Path, "/")[1]) {
			return nil, fmt.Errorf("operation %s of provider %s: the path is the gateway's own", op.Path, op.Provider)
		}
		p, err := newParameters(op)
		if err != nil {
			return nil, err
		}
		methods := []string{http.MethodPost}
		if p != nil {
			methods = append(methods, http.MethodGet)
		}
		e.handle(router, op.Path, func(x *exchange, _ httprouter.Params) { x.operate(op, p) }, methods...)
	}
	e.handle(router, "/notify/:provider/:token", (*exchange).notify, http.MethodPost)
	e.handle(router, "/checkout/:id", (*exchange).checkoutPage, http.MethodGet, http.MethodHead)
	e.handle(router, "/checkout/:id/:part", (*exchange).checkoutPart, http.MethodGet, http.MethodHead)
	document := newDocument(s.OpenAPI(), e.config)
	e.handle(router, "/openapi.json", document.serve, http.MethodGet, http.MethodHead)
	e.handle(router, "/docs", (*exchange).documentation, http.MethodGet, http.MethodHead)
	e.handle(router, "/docs/:name", (*exchange).documentation, http.MethodGet, http.MethodHead)
	return &routes{router, s}, nil
}

// handle registers a handler under its pattern, which is also the route's name
// in logs and metrics.
func (e *Edge) handle(router *httprouter.Router, pattern string, handler func(*exchange, httprouter.Params), methods ...string) {
	for _, method := range methods {
		router.Handle(method, pattern, func(w http.ResponseWriter, _ *http.Request, params httprouter.Params) {
			x := w.(*exchange)
			x.route = pattern
			handler(x, params)
		})
	}
}

// methodNotAllowed keeps the Allow header, without the OPTIONS that the router
// always adds and that we don't answer.
func methodNotAllowed(w http.ResponseWriter, _ *http.Request) {
	x := w.(*exchange)
	allowed := strings.Split(x.Header().Get("Allow"), ", ")
	allowed = slices.DeleteFunc(allowed, func(method string) bool { return method == http.MethodOptions })
	x.Header().Set("Allow", strings.Join(allowed, ", "))
	x.fail(fault.Newf(fault.MethodNotAllowed, "This path has no %s; it has %s.", shortMethod(x.request.Method), strings.Join(allowed, ", ")))
}

func shortMethod(method string) string { return method[:min(len(method), 20)] }

// document is the OpenAPI document, ready to be sent.
type document struct {
	text []byte
	etag string
}

// newDocument names the headers as this service's do, and puts its URL where the
// catalog's stands for it.
func newDocument(text []byte, c Config) *document {
	text = bytes.ReplaceAll(text, []byte("X-Svc-"), []byte("X-"+c.Svc+"-"))
	quoted, _ := json.Marshal(c.PublicURL) // a string always has a JSON
	public := strings.Trim(string(quoted), `"`)
	text = bytes.ReplaceAll(text, []byte(catalog.ServerURL+"/"), []byte(public+"/"))
	text = bytes.ReplaceAll(text, []byte(catalog.ServerURL), []byte(cmp.Or(public, "/")))
	sum := sha256.Sum256(text)
	return &document{text: text, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`}
}

func (d *document) serve(x *exchange, _ httprouter.Params) {
	header := x.Header()
	header.Set("ETag", d.etag)
	header.Set("Cache-Control", "no-cache")
	header.Set("Content-Type", "application/json")
	// A document without secrets: browsers' tools may read it from anywhere.
	header.Set("Access-Control-Allow-Origin", "*")
	x.content("document", d.text)
}
