package edge_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/edge"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// noon is the time of every test.
var noon = time.Date(2026, 11, 20, 5, 0, 0, 0, time.UTC)

// house is an edge with everything behind it replaced. A test overrides what it
// is about.
type house struct {
	*edge.Edge
	merchant tenants.MerchantID
	key      string
	log      *bytes.Buffer
	requests []lifecycle.Request // what the engine was given

	run           func(lifecycle.Request) (lifecycle.Answer, error)
	stored        func(lifecycle.Request) (lifecycle.Answer, bool, error)
	remaining     *int64
	mu            sync.Mutex // of what notifications that come at once append to
	routes        []string   // that were looked up
	noRoute       error
	findRoute     func()
	notify        func(lifecycle.Notification) (sdk.Acknowledgement, error)
	checkout      func(id string) (kind.Checkout, error)
	authenticated func(tenants.Identity, error) (tenants.Identity, error)
	admit         func() (admission.Ticket, error)
	spend         func() (admission.Ticket, error)
	reserve       func(admission.Ticket) (admission.Ticket, error)
	released      []admission.Ticket
	reconsidered  []map[string]any
	stale         bool // of keys
	policyStale   bool
	observed      []string
	counts        *decision.Log // of the real admission, nil for none
	kept          edge.Requests // nil for none

	identity tenants.Identity
	hash     tenants.Hash
}

func (h *house) Run(_ context.Context, r lifecycle.Request) (lifecycle.Answer, error) {
	h.requests = append(h.requests, r)
	return h.run(r)
}

func (h *house) Stored(_ context.Context, r lifecycle.Request) (lifecycle.Answer, bool, error) {
	return h.stored(r)
}

func (h *house) RouteOf(_ context.Context, provider tenants.Provider, token tenants.NotifyToken) (lifecycle.Route, error) {
	h.mu.Lock()
	h.routes = append(h.routes, string(provider)+"/"+string(token))
	h.mu.Unlock()
	if h.findRoute != nil && token != "t" {
		h.findRoute()
	}
	return lifecycle.Route{}, h.noRoute
}

func (h *house) Notify(_ context.Context, n lifecycle.Notification) (sdk.Acknowledgement, error) {
	return h.notify(n)
}

func (h *house) Checkout(_ context.Context, id string) (kind.Checkout, error) {
	return h.checkout(id)
}

func (h *house) Authenticate(_ context.Context, _ time.Time, presented string, _ netip.Addr) (tenants.Identity, error) {
	if tenants.HashKey(presented) != h.hash {
		return h.authenticated(tenants.Identity{}, tenants.ErrAuthFailed)
	}
	return h.authenticated(h.identity, nil)
}

func (h *house) Remembers(presented string) bool { return presented == h.key }

func (h *house) RemembersRoute(_ tenants.Provider, token tenants.NotifyToken) bool {
	return token == "t"
}

func (h *house) Fresh(time.Time) bool { return !h.stale }

func (h *house) Admit(
	context.Context, time.Time, tenants.Identity, *catalog.Operation, catalog.Document,
) (admission.Ticket, error) {
	return h.admit()
}

func (h *house) Spend(_ context.Context, _ time.Time, _ tenants.Identity, _ *catalog.Operation, refusal error) (admission.Ticket, error) {
	ticket, err := h.spend()
	if err == nil {
		err = refusal
	}
	return ticket, err
}

func (h *house) Reserve(
	_ context.Context, _ time.Time, ticket admission.Ticket, _ tenants.Identity, _ *catalog.Operation,
) (admission.Ticket, error) {
	return h.reserve(ticket)
}

func (h *house) Remaining(context.Context, time.Time, admission.Ticket, tenants.Identity) *int64 {
	return h.remaining
}

func (h *house) Reconsider(
	_ context.Context, _ time.Time, _ admission.Ticket, _ tenants.Identity, _ *catalog.Operation, _ catalog.Document, quoted map[string]any,
) error {
	h.reconsidered = append(h.reconsidered, quoted)
	return nil
}

func (h *house) Refused(_ context.Context, ticket admission.Ticket, err error) admission.Ticket {
	if fault.From(err).Code == fault.PolicyDenied {
		ticket.DecisionID += "-refused"
	}
	return ticket
}

func (h *house) Release(_ context.Context, ticket admission.Ticket) {
	h.released = append(h.released, ticket)
}

func (h *house) Observe(route, code string, _ time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.observed = append(h.observed, route+" "+code)
}

// build makes a house whose merchant is active and whose key has all scopes.
func build(t testing.TB, change ...func(*edge.Config)) *house {
	t.Helper()
	h := &house{merchant: "mer_test", log: &bytes.Buffer{}}
	h.suspendOrScope(t, tenants.Active, tenants.AllScopes())
	h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
		return lifecycle.Answer{Data: map[string]any{"external_id": "INV-1", "status": "PENDING"}}, nil
	}
	h.stored = func(lifecycle.Request) (lifecycle.Answer, bool, error) { return lifecycle.Answer{}, false, nil }
	h.notify = func(lifecycle.Notification) (sdk.Acknowledgement, error) {
		return sdk.Acknowledgement{}, fault.New(fault.NotFound, "There is no such route.")
	}
	h.checkout = func(string) (kind.Checkout, error) {
		return kind.Checkout{}, fault.New(fault.NotFound, "There is no such payment.")
	}
	h.authenticated = func(id tenants.Identity, err error) (tenants.Identity, error) { return id, err }
	h.admit = func() (admission.Ticket, error) { return admission.Ticket{}, nil }
	h.spend = h.admit
	h.reserve = func(ticket admission.Ticket) (admission.Ticket, error) { return ticket, nil }
	config := edge.Config{}
	for _, c := range change {
		c(&config)
	}
	var err error
	h.Edge, err = edge.New(config, h.dependencies(), snapshot(t))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) dependencies() edge.Dependencies {
	return edge.Dependencies{
		Movements: h, Queries: h, Notifier: h, Checkouts: h, Authenticator: h, Admitter: h, Observer: h, Requests: h.kept,
		PolicyFresh: func(time.Time) bool { return !h.policyStale },
		Failures:    limit.NewFailures(),
		Log:         slog.New(slog.NewJSONHandler(h.log, nil)),
		Now:         func() time.Time { return noon },
	}
}

// suspendOrScope gives the merchant a standing and a new key with scopes.
func (h *house) suspendOrScope(t testing.TB, status tenants.Status, scopes tenants.Scopes) {
	t.Helper()
	issued, err := tenants.IssueKey(rand.Reader, tenants.KeySpec{MerchantID: h.merchant, Mode: tenants.Test, Scopes: scopes}, noon)
	if err != nil {
		t.Fatal(err)
	}
	merchant := tenants.Merchant{ID: h.merchant, Name: "Toko Contoh", Tier: "scale", Status: status, Version: 1, CreatedAt: noon}
	account, err := tenants.NewAccount(merchant, []tenants.Key{issued.Key}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.key, h.hash = issued.Secret.Reveal(), issued.Key.Hash
	h.identity = tenants.Identity{Account: account, Key: issued.Key, Mode: tenants.Test}
}

// built is the payments plugin's snapshot: it never changes, so all share it.
var built = sync.OnceValues(func() (*catalog.Snapshot, error) { return builtWith("", "") })

// builtWith is the plugin's snapshot with a text of its manifest replaced.
func builtWith(was, is string) (*catalog.Snapshot, error) {
	text, err := os.ReadFile("../../plugins/payments/manifest.json")
	if err != nil {
		return nil, err
	}
	if !bytes.Contains(text, []byte(was)) {
		return nil, errors.New("the manifest has no " + was)
	}
	text = bytes.Replace(text, []byte(was), []byte(is), 1)
	m, err := manifest.Parse(text)
	if err != nil {
		return nil, err
	}
	return catalog.Build([]*manifest.Manifest{m})
}

func changedSnapshot(t testing.TB, was, is string) *catalog.Snapshot {
	t.Helper()
	s, err := builtWith(was, is)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func snapshot(t testing.TB) *catalog.Snapshot {
	t.Helper()
	s, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// right is the body of a create that nothing is wrong with; more is put in
// before its end.
func (h *house) right(more string) string {
	return `{"secret_key":"` + h.key + `","merchant_id":"` + string(h.merchant) + `","amount":10000,"payer_email":"a@example.com"` + more + `}`
}

// answer is what came back.
type answer struct {
	*http.Response
	text     string
	envelope struct {
		Success   *bool         `json:"success"`
		Message   string        `json:"message"`
		Status    string        `json:"status"`
		Data      any           `json:"data"`
		Code      fault.Code    `json:"error_code"`
		RequestID string        `json:"request_id"`
		Errors    []fault.Field `json:"errors"`
		Sent      fault.Sent    `json:"sent"`
		Retry     fault.Retry   `json:"retry"`
		RetryAt   string        `json:"retry_at"`
		External  string        `json:"external_id"`
		Quota     *int          `json:"remaining_quota"`
	}
}

// header is one header of a request.
type header struct{ name, value string }

// send makes a request as a client at 192.0.2.1 would, without a Content-Type.
func (h *house) send(t testing.TB, method, path, body string, headers ...header) answer {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, one := range headers {
		r.Header.Add(one.name, one.value)
	}
	return h.serve(t, r)
}

func (h *house) serve(t testing.TB, r *http.Request) answer {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	result := w.Result()
	text, err := io.ReadAll(result.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{Response: result, text: string(text)}
	plain := result.Header.Get("Content-Encoding") == ""
	if strings.HasPrefix(result.Header.Get("Content-Type"), "application/json") && r.Method != http.MethodHead && plain {
		if err := json.Unmarshal(text, &a.envelope); err != nil {
			t.Fatalf("%s %s: not JSON: %v: %s", r.Method, r.URL.Path, err, text)
		}
	}
	return a
}

// create posts to /payments/create.
func (h *house) create(t testing.TB, body string, headers ...header) answer {
	t.Helper()
	return h.send(t, http.MethodPost, "/payments/create", body, headers...)
}

// wantFault fails the test unless the answer is the whole error envelope of the
// code.
func (a answer) wantFault(t testing.TB, code fault.Code) {
	t.Helper()
	row := fault.RowOf(code)
	e := a.envelope
	if e.Code != code || a.StatusCode != row.Status || e.Success == nil || *e.Success {
		t.Fatalf("got %d %s, want %d %s", a.StatusCode, a.text, row.Status, code)
	}
	if e.Message == "" || e.RequestID == "" || e.RequestID != a.Header.Get("X-Request-Id") {
		t.Errorf("message or request_id is missing or differs from the header: %s", a.text)
	}
	if e.Sent == "" || e.Retry == "" {
		t.Errorf("sent or retry is missing: %s", a.text)
	}
}

// wantField fails the test unless the envelope names the field.
func (a answer) wantField(t testing.TB, field, message string) {
	t.Helper()
	for _, f := range a.envelope.Errors {
		if f.Field == field && strings.Contains(f.Message, message) {
			return
		}
	}
	t.Errorf("no error at %q that says %q: %s", field, message, a.text)
}
