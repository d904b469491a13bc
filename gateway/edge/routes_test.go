package edge_test

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/edge"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// moved is the payments manifest with its paths under another name.
func moved(t testing.TB, to string) *catalog.Snapshot {
	t.Helper()
	var manifests []*manifest.Manifest
	op, _ := snapshot(t).ByPath("/payments/create")
	m := &manifest.Manifest{Name: "other", Lookup: manifest.LookupRead, Operations: []manifest.Operation{op.Operation}}
	m.Operations[0].Path = to
	s, err := catalog.Build(append(manifests, m))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestASnapshotIsSwapped(t *testing.T) {
	t.Parallel()
	h := build(t)
	if err := h.Use(moved(t, "/other/create")); err != nil {
		t.Fatal(err)
	}
	h.create(t, h.right("")).wantFault(t, fault.NotFound)
	if got := h.send(t, http.MethodPost, "/other/create", h.right("")); got.StatusCode != http.StatusOK {
		t.Errorf("the new path: %s", got.text)
	}
	if got := h.send(t, http.MethodGet, "/openapi.json", ""); !strings.Contains(got.text, "/other/create") {
		t.Error("the document is the old one")
	}
	for _, path := range []string{"/checkout/create", "/notify/x/y", "/checkout"} {
		if err := h.Use(moved(t, path)); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v, want a refusal that names the path", path, err)
		}
	}
	if got := h.send(t, http.MethodPost, "/other/create", h.right("")); got.StatusCode != http.StatusOK {
		t.Errorf("a refused snapshot took the old one away: %s", got.text)
	}
}

func TestNewRefusesWhatItCanNotWorkWith(t *testing.T) {
	t.Parallel()
	h := build(t)
	if _, err := edge.New(edge.Config{Svc: "My Shop"}, h.dependencies(), snapshot(t)); err == nil {
		t.Error("a short name with a space is accepted")
	}
	if _, err := edge.New(edge.Config{}, edge.Dependencies{}, snapshot(t)); err == nil {
		t.Error("an edge without an engine is accepted")
	}
}

func TestTheShortNameNamesTheHeaders(t *testing.T) {
	t.Parallel()
	h := build(t, func(c *edge.Config) { c.Svc = "Kasir" })
	got := h.send(t, http.MethodGet, "/openapi.json", "")
	if got.Header.Get("X-Kasir-Version") != "1.2.0" || got.Header.Get("X-Svc-Version") != "" {
		t.Errorf("headers %v", got.Header)
	}
	if !strings.Contains(got.text, "X-Kasir-Decision-Id") || strings.Contains(got.text, "X-Svc-") {
		t.Error("the document names other headers")
	}
}

func TestOpenAPINamesThePublicURL(t *testing.T) {
	t.Parallel()
	h := build(t, func(c *edge.Config) { c.PublicURL = "https://pay.example/api" })
	for h, want := range map[*house]string{h: "https://pay.example/api", build(t): "/"} {
		got := h.send(t, http.MethodGet, "/openapi.json", "")
		var document struct{ Servers []struct{ URL string } }
		if err := json.Unmarshal([]byte(got.text), &document); err != nil || len(document.Servers) != 1 || document.Servers[0].URL != want {
			t.Errorf("the servers are %v, want %s: %v", document.Servers, want, err)
		}
		if strings.Contains(got.text, catalog.ServerURL) {
			t.Error("the document names the URL that stands for the real one")
		}
	}
}

func TestOpenAPIDocument(t *testing.T) {
	t.Parallel()
	h := build(t)
	got := h.send(t, http.MethodGet, "/openapi.json", "")
	var document struct{ OpenAPI string }
	if err := json.Unmarshal([]byte(got.text), &document); err != nil || document.OpenAPI != "3.1.0" {
		t.Fatalf("%v: %s", err, got.text)
	}
	etag := got.Header.Get("ETag")
	if again := h.send(t, http.MethodGet, "/openapi.json", "", header{"If-None-Match", etag}); again.StatusCode != http.StatusNotModified {
		t.Errorf("with its ETag: %d", again.StatusCode)
	}
	if head := h.send(t, http.MethodHead, "/openapi.json", ""); head.StatusCode != http.StatusOK || head.Header.Get("ETag") != etag {
		t.Errorf("HEAD: %d %v", head.StatusCode, head.Header)
	}
}

func TestNotifications(t *testing.T) {
	t.Parallel()
	h := build(t)
	var seen lifecycle.Notification
	h.notify = func(n lifecycle.Notification) (sdk.Acknowledgement, error) {
		seen = n
		return sdk.Acknowledgement{Status: http.StatusAccepted, ContentType: "text/plain", Body: []byte("thanks")}, nil
	}
	got := h.send(t, http.MethodPost, "/notify/payments/t-o-k-e-n?a=1", "a=1&b=2", header{"X-Callback-Token", "c"})
	if got.StatusCode != http.StatusAccepted || got.text != "thanks" || got.Header.Get("Content-Type") != "text/plain" {
		t.Errorf("got %d %q %v", got.StatusCode, got.text, got.Header)
	}
	if !slices.Equal(h.routes, []string{"payments/t-o-k-e-n"}) || seen.Query != "a=1" || string(seen.Body) != "a=1&b=2" ||
		seen.Header.Get("X-Callback-Token") != "c" || seen.Method != http.MethodPost || seen.RequestID != got.Header.Get("X-Request-Id") {
		t.Errorf("the notifier got %+v", seen)
	}
	h.send(t, http.MethodPost, "/notify/payments/t", strings.Repeat("x", 1<<20+1)).wantFault(t, fault.PayloadTooLarge)
	for _, broken := range []func(lifecycle.Notification) (sdk.Acknowledgement, error){
		func(lifecycle.Notification) (sdk.Acknowledgement, error) {
			return sdk.Acknowledgement{}, errors.New("no commit")
		},
		func(lifecycle.Notification) (sdk.Acknowledgement, error) { return sdk.Acknowledgement{Status: 99}, nil },
	} {
		h.notify = broken
		h.send(t, http.MethodPost, "/notify/payments/t", "{}").wantFault(t, fault.Internal)
	}
	h.notify = func(lifecycle.Notification) (sdk.Acknowledgement, error) { return sdk.Acknowledgement{}, nil }
	if got := h.send(t, http.MethodPost, "/notify/payments/t", "{}"); got.StatusCode != http.StatusOK {
		t.Errorf("no status is %d", got.StatusCode)
	}
}

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestNothingIsReadForAnUnknownToken(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.noRoute = fault.New(fault.NotFound, "There is no such path.")
	h.serve(t, httptest.NewRequest(http.MethodPost, "/notify/payments/guessed", unread{t})).wantFault(t, fault.NotFound)
}

// TestBodiesHaveBounds: what one address sends at once is bounded, what others send has
// room all the same, and what was answered leaves its room to the next.
func TestBodiesHaveBounds(t *testing.T) {
	t.Parallel()
	h := build(t)
	full, let := make(chan struct{}, 16), make(chan struct{})
	h.notify = func(lifecycle.Notification) (sdk.Acknowledgement, error) {
		full <- struct{}{}
		<-let
		return sdk.Acknowledgement{}, nil
	}
	large := strings.Repeat("x", 1<<20)
	var senders sync.WaitGroup
	for range 16 {
		senders.Go(func() { h.send(t, http.MethodPost, "/notify/payments/t", large) })
		<-full
	}
	got := h.send(t, http.MethodPost, "/notify/payments/t", "{}")
	got.wantFault(t, fault.RateLimited)
	if got.Header.Get("Retry-After") != "1" {
		t.Errorf("it does not say when: %v", got.Header)
	}
	h.create(t, h.right("")).wantFault(t, fault.RateLimited)
	other := httptest.NewRequest(http.MethodPost, "/payments/create", strings.NewReader(h.right("")))
	other.RemoteAddr = "198.51.100.7:4711"
	if got := h.serve(t, other); got.StatusCode != http.StatusOK {
		t.Errorf("another address has no room: %s", got.text)
	}
	close(let)
	senders.Wait()
	if got := h.create(t, h.right("")); got.StatusCode != http.StatusOK {
		t.Errorf("there is no room after all were answered: %s", got.text)
	}
}

func TestServerOverTheWire(t *testing.T) {
	t.Parallel()
	h := build(t)
	server := edge.NewServer(h, slog.New(slog.DiscardHandler))
	if server.ReadHeaderTimeout <= 0 || server.ReadTimeout <= 0 || server.WriteTimeout < 30*time.Second || server.IdleTimeout <= 0 || server.MaxHeaderBytes <= 0 {
		t.Errorf("a limit is missing: %+v", server)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	address := "http://" + listener.Addr().String()
	response, err := http.Post(address+"/payments/create", "application/json", strings.NewReader(h.right("")))
	if err != nil {
		t.Fatal(err)
	}
	if response.Body.Close(); response.StatusCode != http.StatusOK || response.Header.Get("X-Svc-Version") != "1.2.0" {
		t.Errorf("got %d %v", response.StatusCode, response.Header)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/payments/create", strings.NewReader(strings.Repeat("x", 70000)))
	if err != nil {
		t.Fatal(err)
	}
	if response, err = http.DefaultClient.Do(request); err != nil {
		t.Fatal(err)
	}
	if response.Body.Close(); response.StatusCode != http.StatusRequestEntityTooLarge || !response.Close {
		t.Errorf("a large body: %d, closed %v", response.StatusCode, response.Close)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}
