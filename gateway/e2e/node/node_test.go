package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/conformance"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

const (
	patience  = 20 * time.Second
	reference = "0123456789abcdef0123456789abcdef01234567"
	doorToken = "the test's own"
)

// TestProviderInNode builds the provider written in Node. A gateway uses it as any other,
// confined, from a sealed copy of the approved file; and it conforms so.
func TestProviderInNode(t *testing.T) {
	t.Parallel()
	binary := build(t)
	t.Run("behind the gateway's host", func(t *testing.T) {
		t.Parallel()
		useConfined(t, binary)
	})
	t.Run("conforms", func(t *testing.T) {
		t.Parallel()
		manifestJSON, examplesJSON, err := conformance.Files(filepath.Dir(binary), "examples.json")
		if err != nil {
			t.Fatal(err)
		}
		sdktest.RunWith(t, conformance.Config{
			Manifest: manifestJSON, Examples: examplesJSON, Calls: 400,
			Plugin:    func() *exec.Cmd { return exec.Command(binary) },
			Simulator: func() *exec.Cmd { return exec.Command(binary, "sandbox") }, Confinement: host.Trial{Spec: specOf(t, binary)},
		})
	})
}

func useConfined(t *testing.T, binary string) {
	t.Helper()
	simulator := startSimulator(t, binary)
	mail := make(chan sdk.Notification, 8)
	merchant := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mail <- sdk.Notification{Method: r.Method, Header: r.Header, Body: body}
	}))
	t.Cleanup(merchant.Close)
	connection := simulator.connect(t, merchant.URL)
	h := startHost(t, binary, simulator.port(t))

	document, err := os.ReadFile(filepath.Join(root, example, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	approved, err := manifest.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	if served := h.Manifests(); len(served) != 1 || served[0].Digest() != approved.Digest() {
		t.Fatalf("it serves %v, want what lies in its directory", served)
	}

	of := host.Use{Provider: "nodepay", MerchantID: "m", Money: true}
	call := sdk.Call{
		Operation: "/nodepay/create", RequestID: "r", Connection: connection, Reference: reference, Amount: 25_000,
		Body: json.RawMessage(`{"amount":25000,"payer_email":"pembeli@example.com"}`), SendBy: time.Now().Add(patience),
	}
	lookup := sdk.Lookup{Operation: call.Operation, RequestID: "r", Connection: connection, Reference: reference, Amount: call.Amount, Body: call.Body}
	if f := h.Lookup(t.Context(), of, lookup, patience); f.Status != sdk.StatusNotFound {
		t.Errorf("before the call: %+v, want not found", f)
	}
	made := h.Call(t.Context(), of, call, patience)
	var shown struct {
		URL string `json:"payment_url"`
	}
	if err := json.Unmarshal(made.Data, &shown); err != nil || made.Outcome != sdk.Pending || made.ProviderReference == "" || shown.URL == "" || made.ExpiresAt.IsZero() {
		t.Fatalf("the call: %+v, data %s, %v; want it pending, with a page to pay on", made, made.Data, err)
	}
	if f := h.Lookup(t.Context(), of, lookup, patience); f.Status != sdk.StatusPending || f.Amount != call.Amount || f.ProviderReference != made.ProviderReference {
		t.Errorf("after the call: %+v, want it pending", f)
	}

	simulator.order(t, "pay", map[string]string{"url": shown.URL}, nil)
	n := <-mail
	n.Connection, n.RequestID = connection, "n"
	ack, err := h.Notify(t.Context(), "nodepay", n, patience)
	if err != nil || ack.Status != http.StatusOK || len(ack.Updates) != 1 || ack.Updates[0].Reference != reference || ack.Updates[0].Status != sdk.StatusDone {
		t.Fatalf("the notification: %+v, %v; want it done", ack, err)
	}
	paid := ack.Updates[0]
	n.Body = bytes.Replace(n.Body, []byte("25000"), []byte("99000"), 1)
	if ack, err := h.Notify(t.Context(), "nodepay", n, patience); err != nil || ack.Status != http.StatusUnauthorized || len(ack.Updates) != 0 {
		t.Errorf("a forged notification: %+v, %v; want 401", ack, err)
	}
	if f := h.Lookup(t.Context(), of, lookup, patience); f.Status != sdk.StatusDone || f.EventID != paid.EventID {
		t.Errorf("after the payment: %+v, want %+v", f, paid)
	}

	late := call
	late.Reference = "e" + reference[1:]
	if r := whilePaused(t, h, func() sdk.Result {
		late.SendBy = time.Now().Add(pause / 2)
		return h.Call(t.Context(), of, late, patience)
	}); r.Outcome != sdk.NotSent {
		t.Errorf("a call that lay before the paused process until after send_by: %+v, want not sent", r)
	}

	simulator.end()
	call.Reference, call.SendBy = "f"+reference[1:], time.Now().Add(patience)
	if r := h.Call(t.Context(), of, call, patience); r.Outcome != sdk.NotSent || r.Blame != sdk.BlameUpstream {
		t.Errorf("with no upstream: %+v, want not sent, by the upstream's fault", r)
	}
}

// pause is how long a process is paused: not so long that it is taken for dead.
const pause = 1500 * time.Millisecond

// whilePaused makes a call while the plugin's process is stopped.
func whilePaused(t *testing.T, h *host.Host, call func() sdk.Result) sdk.Result {
	t.Helper()
	pid := h.Status()[0].PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	answered := make(chan sdk.Result, 1)
	go func() { answered <- call() }()
	<-time.After(pause)
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	return <-answered
}

// specOf is the plugin with what it may reach.
func specOf(t *testing.T, binary string, ports ...uint16) host.Spec {
	t.Helper()
	sum, err := host.SHA256File(binary)
	if err != nil {
		t.Fatal(err)
	}
	return host.Spec{
		Name: "nodepay", Path: binary, SHA256: sum, Ports: ports,
		Read: []string{"/lib", "/lib64", "/usr/lib", "/etc/ssl/openssl.cnf"}, // as its README says
	}
}

// startHost starts the plugin under the gateway's own host.
func startHost(t *testing.T, binary string, port uint16) *host.Host {
	t.Helper()
	h, err := host.Start(t.Context(), host.Config{
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Specs: []host.Spec{specOf(t, binary, port)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if !await(func() bool { return h.Down() == nil }) { // on a busy machine it is tried again
		t.Fatalf("it does not run, confined %q: %v", confine.Level(), h.Down())
	}
	return h
}

// simulator is the example's own, as a process.
type simulator struct {
	url string
	end func()
}

func startSimulator(t *testing.T, binary string) *simulator {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	command := exec.CommandContext(t.Context(), binary, "sandbox", "--listen", "127.0.0.1:0", "--ready-file", ready)
	command.Env = []string{"GERBANG_SANDBOX_TOKEN=" + doorToken, sdk.EnvHostPID + "=" + strconv.Itoa(os.Getpid())}
	command.Stderr = t.Output()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	s := &simulator{end: func() {
		_ = command.Process.Kill() // it may be over
		_ = command.Wait()
	}}
	t.Cleanup(s.end)
	var told struct{ URL string }
	if !await(func() bool {
		content, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(content, &told) == nil
	}) {
		t.Fatal("the simulator wrote no ready file")
	}
	s.url = told.URL
	return s
}

// await looks for what another process does, until it has or patience is over.
func await(done func() bool) bool {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	over := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-over:
			return false
		}
	}
	return true
}

func (s *simulator) port(t *testing.T) uint16 {
	t.Helper()
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(at.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(port)
}

// connect opens an account, whose notifications go to an address.
func (s *simulator) connect(t *testing.T, callback string) sdk.Connection {
	t.Helper()
	var opened struct {
		Account     string          `json:"account"`
		Credentials json.RawMessage `json:"credentials"`
	}
	s.order(t, "connect", map[string]string{"merchant": "m", "mode": "test"}, &opened)
	s.order(t, "hooks", map[string]string{"account": opened.Account, "callback_url": callback}, nil)
	return sdk.Connection{MerchantID: "m", Mode: "test", Version: 1, Credentials: opened.Credentials}
}

// order calls the simulator's door.
func (s *simulator) order(t *testing.T, name string, body, answer any) {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/_sandbox/"+name, bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+doorToken)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %s %v", name, response.Status, content, err)
	}
	if answer == nil {
		return
	}
	if err := json.Unmarshal(content, answer); err != nil {
		t.Fatal(err)
	}
}
