package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/pluginpb"
)

const payManifest = `{
	"manifest": 1, "name": "shop", "version": "1.0.0", "title": "Shop", "lookup": "read", "settles_within": "30s",
	"notifications": true, "references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {"type": "object"},
	"operations": [
		{"path": "/shop/pay", "kind": "payment", "summary": "Pay", "timeout": "5s", "reference": "/id", "amount": "/amount",
		 "request": {"type": "object", "required": ["amount"], "additionalProperties": false, "properties": {"id": {"type": "string"}, "amount": {"type": "integer", "minimum": 1, "maximum": 1000000}}},
		 "result": {"type": "object"}, "response": {"type": "object"}},
		{"path": "/shop/status", "status_of": "/shop/pay", "summary": "Status", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}}
	]}`

const envServe = "SDK_TEST_SERVE"

func TestMain(m *testing.M) {
	switch os.Getenv(envServe) {
	case "right":
		Serve([]byte(payManifest), rightHandlers())
	case "wrong":
		Serve([]byte(payManifest), Handlers{})
	default:
		os.Exit(m.Run())
	}
}

type callHandlers = map[string]func(context.Context, Call) Result

func rightHandlers() Handlers {
	return Handlers{
		Calls:  callHandlers{"/shop/pay": func(context.Context, Call) Result { return Result{} }},
		Lookup: func(context.Context, Lookup) StatusUpdate { return StatusUpdate{} },
		Notify: func(context.Context, Notification) Acknowledgement { return Acknowledgement{} },
	}
}

func TestServeRefusesToStart(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{
		"wrong": "operation /shop/pay: manifest and handlers differ",
		"right": "This binary is a plugin", // started by hand, without the handshake
	} {
		command := exec.Command(os.Args[0])
		command.Env = []string{envServe + "=" + role}
		out, err := command.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !bytes.Contains(out, []byte(want)) {
			t.Errorf("%s: %v with %q, want exit status 1 and %q", role, err, out, want)
		}
	}
}

func TestNewServerComparesTheStories(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change func(*Handlers)
		want   string
	}{
		"no call handler":    {func(h *Handlers) { h.Calls = nil }, "operation /shop/pay: manifest and handlers differ"},
		"a nil call handler": {func(h *Handlers) { h.Calls["/shop/pay"] = nil }, "operation /shop/pay"},
		"a handler too many": {func(h *Handlers) { h.Calls["/shop/other"] = h.Calls["/shop/pay"] }, "handler /shop/other"},
		"a status handler":   {func(h *Handlers) { h.Calls["/shop/status"] = h.Calls["/shop/pay"] }, "operation /shop/status"},
		"no lookup":          {func(h *Handlers) { h.Lookup = nil }, "lookup: "},
		"no notifications":   {func(h *Handlers) { h.Notify = nil }, "notifications: "},
		"a verify too many":  {func(h *Handlers) { h.Verify = func(context.Context, Connection) Result { return Result{} } }, "verifies: "},
		"statements nobody declares": {
			func(h *Handlers) {
				h.Statement = func(context.Context, Statement) StatementPage { return StatementPage{} }
			}, "statements: ",
		},
		"everything is wrong": {func(h *Handlers) { *h = Handlers{} }, "lookup: "},
	}
	for name, c := range cases {
		h := rightHandlers()
		c.change(&h)
		if _, err := newServer([]byte(payManifest), h); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if _, err := newServer([]byte(payManifest), rightHandlers()); err != nil {
		t.Error(err)
	}
	verifying := strings.Replace(payManifest, `"notifications": true`, `"notifications": true, "verifies": true`, 1)
	if _, err := newServer([]byte(verifying), rightHandlers()); err == nil || !strings.Contains(err.Error(), "verifies: ") {
		t.Errorf("no verify handler: got %v", err)
	}
	if _, err := newServer([]byte("{}"), rightHandlers()); err == nil {
		t.Error("took a broken manifest")
	}
}

func TestGatewaysSideServesNothing(t *testing.T) {
	t.Parallel()
	if err := (&Plugin{}).GRPCServer(nil, grpc.NewServer()); err == nil {
		t.Error("the zero value registered a plugin")
	}
}

// connect serves handlers in memory and gives the gateway's side.
func connect(t *testing.T, h Handlers, log *bytes.Buffer) *Client {
	t.Helper()
	s, err := newServer([]byte(payManifest), h)
	if err != nil {
		t.Fatal(err)
	}
	if log != nil {
		s.log = hclog.New(&hclog.LoggerOptions{Output: log, JSONFormat: true})
	}
	return dial(t, s)
}

func dial(t *testing.T, s pluginpb.ProviderServer, options ...grpc.ServerOption) *Client {
	t.Helper()
	listener := bufconn.Listen(1 << 16)
	wire := grpc.NewServer(options...)
	pluginpb.RegisterProviderServer(wire, s)
	go func() { _ = wire.Serve(listener) }()
	t.Cleanup(wire.Stop)
	conn, err := grpc.NewClient("passthrough:memory", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	raw, err := (&Plugin{}).GRPCClient(t.Context(), nil, conn)
	if err != nil {
		t.Fatal(err)
	}
	return raw.(*Client)
}

func TestOverTheWire(t *testing.T) {
	t.Parallel()
	h := rightHandlers()
	h.Calls["/shop/pay"] = func(_ context.Context, c Call) Result { return Accepted("p-"+c.Reference, time.Time{}, c.Body) }
	h.Lookup = func(_ context.Context, l Lookup) StatusUpdate {
		return StatusUpdate{Reference: l.Reference, Status: StatusDone}
	}
	h.Notify = func(_ context.Context, n Notification) Acknowledgement {
		return Acknowledgement{Status: http.StatusAccepted, Body: n.Body}
	}
	c := connect(t, h, nil)
	want, err := manifest.Parse([]byte(payManifest))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.Describe(t.Context()); err != nil || got.Digest() != want.Digest() {
		t.Errorf("describe: %+v, %v", got, err)
	}
	call := Call{Operation: "/shop/pay", Reference: "r", Body: json.RawMessage(`{"a":1}`), SendBy: time.Now().Add(time.Minute)}
	if r, err := c.Call(t.Context(), call); err != nil || r.ProviderReference != "p-r" || string(r.Data) != `{"a":1}` {
		t.Errorf("call: %+v, %v", r, err)
	}
	if f, err := c.Lookup(t.Context(), Lookup{Reference: "r"}); err != nil || f.Reference != "r" || f.Status != StatusDone {
		t.Errorf("lookup: %+v, %v", f, err)
	}
	if a, err := c.Notify(t.Context(), Notification{Body: []byte("b")}); err != nil || a.Status != 202 || string(a.Body) != "b" {
		t.Errorf("notify: %+v, %v", a, err)
	}
}

func TestNothingIsSent(t *testing.T) {
	t.Parallel()
	called := make(chan struct{}, 9)
	h := rightHandlers()
	h.Calls["/shop/pay"] = func(context.Context, Call) Result { called <- struct{}{}; return Result{} }
	c := connect(t, h, nil)
	for name, call := range map[string]Call{
		"too late":     {Operation: "/shop/pay", SendBy: time.Now().Add(-time.Millisecond)},
		"no operation": {Operation: "/shop/none"},
		"a status":     {Operation: "/shop/status"},
	} {
		if r, err := c.Call(t.Context(), call); err != nil || r.Outcome != NotSent || r.Detail == "" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if len(called) != 0 {
		t.Error("the handler ran")
	}
	if _, err := c.Call(t.Context(), Call{Operation: "/shop/pay"}); err != nil || len(called) != 1 {
		t.Errorf("without send_by the handler did not run: %v", err)
	}
}

// TestPanicStaysInItsCall also holds that a panic's value, which may be a
// secret, stays out of the log.
func TestPanicStaysInItsCall(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	h := rightHandlers()
	h.Calls["/shop/pay"] = func(context.Context, Call) Result { panic("sk_live_secret") }
	h.Lookup = func(_ context.Context, l Lookup) StatusUpdate {
		return StatusUpdate{Amount: 1, Status: Status(l.Reference[3])}
	}
	h.Notify = func(context.Context, Notification) Acknowledgement { panic(errors.New("token")) }
	c := connect(t, h, &log)
	if r, err := c.Call(t.Context(), Call{Operation: "/shop/pay"}); err != nil || r.Outcome != Unknown || r.Blame != BlameNone {
		t.Errorf("call: %+v, %v", r, err)
	}
	if f, err := c.Lookup(t.Context(), Lookup{}); err != nil || f.Status != StatusUnknown || f.Amount != 0 {
		t.Errorf("lookup: %+v, %v", f, err)
	}
	if a, err := c.Notify(t.Context(), Notification{}); err != nil || a.Status != http.StatusInternalServerError || a.Updates != nil {
		t.Errorf("notify: %+v, %v", a, err)
	}
	for _, want := range []string{"/shop/pay", "index out of range", "serve_test.go", "a string"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	if strings.Contains(log.String(), "sk_live_secret") || strings.Contains(log.String(), `"token"`) {
		t.Errorf("the log tells a secret:\n%s", log.String())
	}
}

// TestHandlersOwnWordArrives: a handler that heeds its context can still say
// what it knows before the gateway stops waiting.
func TestHandlersOwnWordArrives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := rightHandlers()
		h.Calls["/shop/pay"] = func(ctx context.Context, _ Call) Result {
			<-ctx.Done()
			return DidNotSend(BlameUpstream, "no token in time")
		}
		c := connect(t, h, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r, err := c.Call(ctx, Call{Operation: "/shop/pay"}); err != nil || r.Outcome != NotSent {
			t.Errorf("got %+v, %v", r, err)
		}
	})
}

func TestMargin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for limit, want := range map[time.Duration]time.Duration{
			time.Second: 900 * time.Millisecond, 10 * time.Second: 10*time.Second - maxMargin, time.Hour: time.Hour - maxMargin,
		} {
			outer, cancel := context.WithTimeout(t.Context(), limit)
			inner, stop := withMargin(outer)
			deadline, ok := inner.Deadline()
			if left := time.Until(deadline); !ok || left != want {
				t.Errorf("%v of %v is left, want %v", left, limit, want)
			}
			stop()
			cancel()
		}
		inner, stop := withMargin(context.Background())
		defer stop()
		if _, ok := inner.Deadline(); ok {
			t.Error("a deadline out of nothing")
		}
	})
}

func TestMissingServices(t *testing.T) {
	t.Parallel()
	c := dial(t, &server{})
	if _, err := c.Lookup(t.Context(), Lookup{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("lookup: %v", err)
	}
	if _, err := c.Notify(t.Context(), Notification{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("notify: %v", err)
	}
	if _, err := c.Verify(t.Context(), Connection{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("verify: %v", err)
	}
	if _, err := c.Describe(t.Context()); err == nil {
		t.Error("described nothing")
	}
}

func TestBroken(t *testing.T) {
	t.Parallel()
	s, err := newServer([]byte(payManifest), rightHandlers())
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, s)
	if _, err := c.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	broken := make(chan error, 2)
	go func() { broken <- c.Broken(ctx) }()
	cancel()
	if err := <-broken; !errors.Is(err, context.Canceled) {
		t.Errorf("a good connection: %v", err)
	}
	go func() { broken <- c.Broken(context.WithoutCancel(ctx)) }()
	_ = c.conn.Close()
	if err := <-broken; err != nil {
		t.Errorf("a closed connection: %v", err)
	}
}

func TestHostPID(t *testing.T) {
	t.Setenv(EnvHostPID, "12345")
	if got := hostPID(); got != 12345 {
		t.Errorf("got %d", got)
	}
	t.Setenv(EnvHostPID, "none")
	if got := hostPID(); got != os.Getppid() {
		t.Errorf("got %d, want the parent", got)
	}
}

func TestRemoveSockets(t *testing.T) {
	t.Parallel()
	own, shared := filepath.Join(t.TempDir(), "own"), filepath.Join(t.TempDir(), "shared")
	for _, path := range []string{filepath.Join(own, "plugin1"), filepath.Join(shared, "plugin2"), filepath.Join(shared, "theirs")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	removeSockets(own)
	removeSockets(shared)
	removeSockets("")
	if _, err := os.Stat(own); !os.IsNotExist(err) {
		t.Error("its own directory is left")
	}
	if _, err := os.Stat(filepath.Join(shared, "theirs")); err != nil {
		t.Error("somebody else's file is gone")
	}
}

var _ plugin.GRPCPlugin = (*Plugin)(nil)
