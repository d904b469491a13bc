package host

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func TestKillDuringCall(t *testing.T) {
	t.Parallel()
	tune := calm
	tune.restartWait = patience
	h := one(t, tune)
	before := h.Status()[0].PID
	result := background(t, h, "deaf")
	inFlight(t, h, 1)
	if err := syscall.Kill(before, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if r := <-result; r.Outcome != sdk.Unknown {
		t.Errorf("the cut call is %+v, want unknown", r)
	}
	if r := h.Call(t.Context(), ofOne, callTo("accept"), patience); r.Outcome != sdk.Pending {
		t.Errorf("the next call is %+v, want it to wait for the new process", r)
	}
	s := h.Status()[0]
	if s.PID == before || s.Restarts != 1 || !strings.HasSuffix(s.LastFault, "(signal: killed)") {
		t.Errorf("status %+v", s)
	}
}

func TestExitDuringCall(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	for range 3 {
		if r := h.Call(t.Context(), ofOne, callTo("exit"), patience); r.Outcome != sdk.Unknown {
			t.Fatalf("got %+v, want unknown", r)
		}
	}
	if r := h.Call(t.Context(), ofOne, callTo("accept"), patience); r.Outcome != sdk.Pending {
		t.Errorf("got %+v", r)
	}
	if n := h.Status()[0].Restarts; n != 3 {
		t.Errorf("%d restarts, want 3", n)
	}
}

func TestRestartPause(t *testing.T) {
	t.Parallel()
	pause := restartPause()
	// Each pause is drawn around its middle, which doubles up to the longest.
	within := func(middle time.Duration) {
		t.Helper()
		if got := pause.NextBackOff(); got < middle/2 || got > middle+middle/2 {
			t.Errorf("paused %v, want %v or half of it more or less", got, middle)
		}
	}
	for middle := 100 * time.Millisecond; middle < 30*time.Second; middle *= 2 {
		within(middle)
	}
	for range 1000 {
		within(30 * time.Second) // it never gives up
	}
	pause.Reset()
	within(100 * time.Millisecond)
}

// TestHungProcess stops a process, which then answers nothing but is alive.
func TestHungProcess(t *testing.T) {
	t.Parallel()
	h := one(t, quick)
	before := h.Status()[0].PID
	if err := syscall.Kill(before, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	until(t, "the hung process is replaced", func() bool {
		s := h.Status()[0]
		return s.Running && s.PID != before && s.LastFault == "it did not answer its health check (signal: killed)"
	})
	if r := h.Call(t.Context(), ofOne, callTo("accept"), patience); r.Outcome != sdk.Pending {
		t.Errorf("got %+v", r)
	}
}

// TestChangedPlugin: what comes back after a restart must be what was approved.
func TestChangedPlugin(t *testing.T) {
	t.Parallel()
	tune := calm
	tune.restartWait = 50 * time.Millisecond
	name := filepath.Join(t.TempDir(), "name")
	if err := os.WriteFile(name, []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	spec := testSpec("one")
	spec.Env[1] = envName + "=@" + name
	spec.Read = append(spec.Read, name)
	h := startHost(t, tune, Config{Specs: []Spec{spec}})
	if err := os.WriteFile(name, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(h.Status()[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	const want = `plugin one: its manifest is that of "two"`
	until(t, "the other manifest is refused", func() bool { return h.Status()[0].LastFault == want })
	r := h.Call(t.Context(), ofOne, callTo("accept"), patience)
	if r.Outcome != sdk.NotSent || r.Detail != errDown.Error() {
		t.Errorf("got %+v, want not sent since no process runs", r)
	}
	if _, err := h.Notify(t.Context(), "one", sdk.Notification{}, patience); err == nil {
		t.Error("a notification was answered without a process")
	}
	if f := h.Lookup(t.Context(), ofOne, sdk.Lookup{}, patience); f.Status != sdk.StatusUnknown {
		t.Errorf("lookup: %+v", f)
	}
}

// TestRunsSinceItWasReady: what a plugin needs to start is not counted among what it runs.
func TestRunsSinceItWasReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(Spec{Name: "one"}, slog.New(slog.DiscardHandler), standard)
		starting := &process{wire: heard{Client: sdk.NewClient(nil)}, program: &program{}, lost: make(chan struct{})}
		time.Sleep(standard.start) // synctest's clock
		p.publish(p.version, starting)
		if s := p.status(); !s.Running || !s.Since.Equal(time.Now()) {
			t.Errorf("it runs since %v, want %v", s.Since, time.Now())
		}
	})
}

// TestUnavailableIsOfWhoeverSaysSo: the code is the lost connection's, and just as well a
// handler's whose upstream is down.
func TestUnavailableIsOfWhoeverSaysSo(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	down := func(any, grpc.ServerStream) error { return status.Error(codes.Unavailable, "the upstream is down") }
	server := grpc.NewServer(grpc.UnknownServiceHandler(down))
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithIdleTimeout(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	p := &process{conn: conn, program: &program{done: make(chan struct{})}, lost: make(chan struct{})}
	call := func() error {
		return p.suspect(conn.Invoke(t.Context(), "/any/call", &emptypb.Empty{}, &emptypb.Empty{}))
	}
	if err := call(); err == nil || pluginEnded(err) {
		t.Errorf("a handler's answer: %v", err)
	}
	server.Stop()
	if err := call(); !pluginEnded(err) {
		t.Errorf("without a server: %v", err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := call(); status.Code(err) != codes.Canceled || !pluginEnded(err) {
		t.Errorf("of a connection that is closed: %v", err)
	}
}
