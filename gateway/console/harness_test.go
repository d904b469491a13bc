package console_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/approval"
	"github.com/seed-f006e74d/gerbang/gateway/audit"
	"github.com/seed-f006e74d/gerbang/gateway/callback"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/list"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/rollout"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/migrated"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const (
	token      = "operator-token-of-ayu-0123456789abcdef"
	otherToken = "operator-token-of-budi-0123456789abcdef"
)

// bank is a provider's manifest with as little as there can be.
const bank = `{
  "manifest": 1, "name": "bank", "version": "1.2.3", "title": "A bank", "notifications": true,
  "references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {
    "type": "object", "required": ["api_key"], "additionalProperties": false,
    "properties": {
      "api_key": {"type": "string", "minLength": 5, "pattern": "^k-", "description": "as the portal shows it", "title": "API key", "writeOnly": true, "examples": ["k-0123"]},
      "region": {"enum": ["jkt", "sub"]},
      "pin": {"type": "integer", "multipleOf": 7}
    }
  },
  "operations": [{
    "path": "/bank/name", "kind": "query", "summary": "Tell a name", "timeout": "5s",
    "request": {"type": "object"}, "result": {"type": "object"}, "response": {"type": "object"}
  }]
}`

// pulsa is one whose operations use the platform's account.
const pulsa = `{
  "manifest": 1, "name": "pulsa", "version": "1.0.0", "title": "Airtime", "notifications": true, "owner": "platform",
  "references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {"type": "object", "required": ["username"], "properties": {"username": {"type": "string"}}},
  "operations": [{
    "path": "/pulsa/products", "kind": "query", "summary": "List products", "timeout": "5s",
    "request": {"type": "object"}, "result": {"type": "object"}, "response": {"type": "object"}
  }]
}`

// fakePlugins are plugins that run as a test says.
type fakePlugins struct {
	mu       sync.Mutex
	manifest *manifest.Manifest // the bank's, which is the one that is shown
	others   []*manifest.Manifest
	status   host.Status
	*fakeVerifier
}

func newPlugins(t *testing.T) *fakePlugins {
	t.Helper()
	m, err := manifest.Parse([]byte(bank))
	if err != nil {
		t.Fatal(err)
	}
	other, err := manifest.Parse([]byte(pulsa))
	if err != nil {
		t.Fatal(err)
	}
	return &fakePlugins{manifest: m, others: []*manifest.Manifest{other}, status: host.Status{
		Provider: "bank", Version: "1.2.3", Digest: m.Digest(), SHA256: "ab12", Running: true, PID: 7,
		Since: time.Unix(1, 0).UTC(), Restarts: 3, InFlight: 2, MaxInFlight: 256,
		Breakers: []host.BreakerStatus{{Mode: "live", Calls: "open", Lookups: "half-open"}},
	}}
}

func (p *fakePlugins) Manifests() []*manifest.Manifest {
	return append([]*manifest.Manifest{p.manifest}, p.others...)
}

func (p *fakePlugins) Status() []host.Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return []host.Status{p.status}
}

// Put, Try, Remove and Restart do what there is nothing to do for.
func (p *fakePlugins) Put(_ context.Context, spec host.Spec, _ host.Proof) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.SHA256 = spec.SHA256
	return nil
}

func (p *fakePlugins) Try(context.Context, host.Spec, host.Proof) error { return nil }

func (p *fakePlugins) Remove(context.Context, string) error { return nil }

func (p *fakePlugins) Restart(context.Context, string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Restarts++
	return nil
}

func (p *fakePlugins) run(running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Running = running
}

// fakeClock is a replica's clock as a test says; nothing is known of it at first.
type fakeClock struct {
	mu    sync.Mutex
	ahead time.Duration
	known bool
	fault error
}

func (c *fakeClock) set(ahead time.Duration, fault error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead, c.known, c.fault = ahead, true, fault
}

func (c *fakeClock) Skew() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead, c.known
}

func (c *fakeClock) Fault() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.fault
}

// fakeFollowing is how a replica follows the policy in force, as a test says.
type fakeFollowing struct {
	mu    sync.Mutex
	stale bool
	lag   *rollout.Lag
}

func (f *fakeFollowing) set(stale bool, lag *rollout.Lag) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stale, f.lag = stale, lag
}

func (f *fakeFollowing) Fresh(time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.stale
}

func (f *fakeFollowing) Lag() *rollout.Lag {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lag
}

func (f *fakeFollowing) Age(time.Time) time.Duration { return 125 * time.Millisecond }

func (f *fakeFollowing) Members() int { return 3 }

// defaultPolicy takes a while to compile and never changes.
var defaultPolicy = sync.OnceValues(func() (*policy.Set, error) {
	return policy.Compile(context.Background(), policy.Default())
})

// logs is a log that a test can read.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// world is a console over a database of its own.
type world struct {
	*testing.T
	*adminapi.Client
	url       string
	console   *console.Console
	metrics   *console.Metrics
	audits    *audit.Keeper
	store     *store.Store
	lists     *list.Lists
	directory *tenants.Directory
	vault     *tenants.Vault
	keyset    string // its file
	plugins   *fakePlugins
	catalog   *catalog.Catalog
	files     string // the directory of plugins
	clock     *fakeClock
	following *fakeFollowing
	publisher *rollout.Publisher
	ahead     atomic.Int64 // of time.Now, in nanoseconds
	stopping  atomic.Bool
	logs      *logs
}

// offered is what the plugins declare now.
func (w *world) offered() *catalog.Snapshot {
	w.Helper()
	offered, err := catalog.Build(w.plugins.Manifests())
	if err != nil {
		w.Fatal(err)
	}
	return offered
}

// newWorld makes one; the changes are made to what the console is given.
func newWorld(t *testing.T, changes ...func(*console.Config, *console.Dependencies)) *world {
	t.Helper()
	w := &world{T: t, plugins: newPlugins(t), clock: &fakeClock{}, following: &fakeFollowing{}, metrics: console.NewMetrics(), logs: &logs{}}
	log := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	url := migrated.Database(t)
	w.store = migrated.Open(t, url, store.Options{MaxConns: 4, Seal: func(digest []byte) []byte { return w.vault.SealAudit(digest) }})
	var err error
	w.directory = tenants.NewDirectory(w.store, time.Now, log)
	w.keyset = filepath.Join(t.TempDir(), "keyset.json")
	if err := tenants.CreateKeysetFile(w.keyset); err != nil {
		t.Fatal(err)
	}
	if w.vault, err = tenants.OpenKeysetFile(w.keyset); err != nil {
		t.Fatal(err)
	}
	set, err := defaultPolicy()
	if err != nil {
		t.Fatal(err)
	}
	config := console.Config{
		PublicURL: "https://api.example.com",
		Access: console.Access{Operators: []console.Operator{
			{Name: "ayu", TokenHash: sha256.Sum256([]byte(token)), Role: console.RoleAdmin},
			{Name: "budi", TokenHash: sha256.Sum256([]byte(otherToken)), Role: console.RoleAdmin},
		}},
	}
	now := func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
	w.lists = list.New(w.store, list.NewKey(movement.NameKey{}), now, log)
	if err := w.lists.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.publisher = &rollout.Publisher{
		Record: w.store, Vault: w.vault, Wake: func() {}, Refused: w.metrics.ObservePolicyRefused, Now: now, Log: log,
		Judge: func(context.Context, policy.Source) ([]policy.Finding, error) { return nil, nil },
	}
	w.files = t.TempDir()
	approvals, _, err := approval.Open(t.Context(), approval.Dependencies{
		Store: w.store, Vault: w.vault, Files: approval.NewFiles(w.files), Configured: []host.Spec{{Name: "bank"}}, Now: now, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	approvals.Follow(w.plugins)
	people := signin.New(signin.Dependencies{
		Store: w.store, Vault: w.vault, Failures: limit.NewFailures(), Asks: limit.NewFailures(), Links: signin.Links{Merchants: "https://console.example.com"}, Now: now, Log: log,
	})
	w.audits = audit.New(w.store, w.vault, nil, queue.NewLeases(w.store, "audit", "r", 1, now), now, log)
	deps := console.Dependencies{
		People: people, Audit: w.audits,
		Approvals: approvals, Finder: w.store, Policies: w.store, Publisher: w.publisher, Following: w.following,
		Merchants: w.store, Secrets: w.store, Operators: w.store, Pauses: w.store, Lists: w.store, Listing: w.lists, ListKey: list.NewKey(movement.NameKey{}), Movements: w.store, Exceptions: w.store, Callbacks: w.store, Requests: w.store, Ledger: w.store, Statements: w.store, Database: w.store,
		Usage: w.store.Usage, Policy: func() *policy.Set { return set },
		Challenge: func(_ context.Context, _ movement.Owner, receiver string, _ []byte) (callback.Challenge, error) {
			signed, forged := callback.Attempt{Status: 200, Outcome: callback.Delivered}, callback.Attempt{Status: 401, Outcome: callback.Failed}
			if strings.Contains(receiver, "careless") {
				forged = signed
			}
			return callback.Challenge{Signed: signed, Forged: forged}, nil
		},
		Probe:    func(ctx context.Context) (string, error) { return w.store.Probe(ctx, uuid.New(), time.Now()) },
		Stopping: w.stopping.Load, Recovering: func() error { return nil },
		Traffic: func(context.Context) (*decision.Window, error) { return decision.NewWindow(now(), time.Second, 2), nil },
		Clock:   w.clock, Directory: w.directory, Vault: w.vault, Plugins: w.plugins, Metrics: w.metrics, Now: now, Log: log,
	}
	for _, change := range changes {
		change(&config, &deps)
	}
	w.catalog = catalog.New(w.offered())
	deps.Catalog = w.catalog
	if w.console, err = console.New(config, deps); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(w.console)
	t.Cleanup(server.Close)
	w.url, w.Client = server.URL, adminapi.NewClient(server.URL, token)
	return w
}

// runDirectory lets the directory learn of changes until the test ends.
func (w *world) runDirectory() {
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.directory.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	})
}

// merchant makes one.
func (w *world) merchant() adminapi.CreatedMerchant {
	w.Helper()
	made, err := adminapi.CreateMerchant.Call(w.Context(), w, adminapi.NewMerchant{Name: "Toko", Tier: "starter"})
	if err != nil {
		w.Fatal(err)
	}
	return made
}

// send does a request as it is written and returns status, headers and body.
func (w *world) send(method, path, authorization, body string) (int, http.Header, string) {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		w.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	return response.StatusCode, response.Header, string(answer)
}

// from answers a request as if it came from an address.
func (w *world) from(address netip.AddrPort, path, authorization string) *httptest.ResponseRecorder {
	request := httptest.NewRequestWithContext(w.Context(), http.MethodGet, path, nil)
	request.RemoteAddr = address.String()
	request.Header.Set("Authorization", authorization)
	recorder := httptest.NewRecorder()
	w.console.ServeHTTP(recorder, request)
	return recorder
}

// refused is the console's failure, of which status and the first field at
// fault are as wanted.
func (w *world) refused(err error, status int, field string) *adminapi.Failure {
	w.Helper()
	failure, ok := errors.AsType[*adminapi.Failure](err)
	if !ok {
		w.Fatalf("got error %v, want a failure with status %d", err, status)
	}
	got := ""
	if len(failure.Errors) > 0 {
		got = failure.Errors[0].Field
	}
	if failure.Status != status || got != field {
		w.Errorf("got status %d and field %q (%v), want %d and %q", failure.Status, got, failure, status, field)
	}
	if failure.RequestID == "" || failure.Code == "" || failure.Message == "" {
		w.Errorf("the envelope is not whole: %+v", failure)
	}
	return failure
}

// account is the merchant as the gateway's other rooms see it now.
func (w *world) account(id string) *tenants.Account {
	w.Helper()
	account, err := w.directory.Account(w.Context(), tenants.MerchantID(id))
	if err != nil {
		w.Fatal(err)
	}
	return account
}

// works tells whether a key opens the door.
func (w *world) works(key string, from string) bool {
	w.Helper()
	_, err := w.directory.Authenticate(w.Context(), time.Now(), key, netip.MustParseAddr(from))
	if err != nil && !errors.Is(err, tenants.ErrAuthFailed) && !errors.Is(err, tenants.ErrAddress) {
		w.Fatal(err)
	}
	return err == nil
}

// actions are those of a merchant's audit, the oldest first.
func (w *world) actions(id string) []string {
	w.Helper()
	entries, err := adminapi.ListAudit.Call(w.Context(), w, adminapi.AuditFilter{Merchant: id})
	if err != nil {
		w.Fatal(err)
	}
	var actions []string
	for _, e := range entries {
		actions = append([]string{e.Operator + " " + e.Action}, actions...)
	}
	return actions
}

func mustJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
