package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// The test binary is also the plugin, and the host that is killed: which one
// is named in the environment, which a plugin gets from its spec alone.
const (
	envRole = "HOST_TEST_ROLE"
	envName = "HOST_TEST_NAME" // of the provider, or @ and a file with it
	envDial = "HOST_TEST_DIAL"
	// envNumber is of a version, which has that many operations more.
	envNumber = "HOST_TEST_NUMBER"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == confine.Command {
		fmt.Fprintln(os.Stderr, confine.Launch())
		os.Exit(confine.Refused)
	}
	switch os.Getenv(envRole) {
	case "plugin":
		servePlugin()
	case "mute":
		<-time.After(time.Hour) // never shakes hands; a bare select would be a deadlock that the runtime ends
	case "dead":
		fmt.Fprintln(os.Stderr, "nothing to do")
		os.Exit(3)
	case "wire":
		serveWire()
	case "older":
		fmt.Println("1|99|unix|/nowhere|grpc|")
		<-time.After(time.Hour)
	case "idle":
		fmt.Println("idle")
		<-time.After(time.Hour) // a bare select would be a deadlock that the runtime ends
	case "got": // it became itself again
		fmt.Println("got")
	case "masked":
		syscall.Umask(0o077)
		fmt.Println(ownDirectory(os.Getenv(envName), os.Getpid()))
	case "unconfined":
		hostileUnconfined()
	case "host":
		hostToBeKilled()
	case "bare":
		fmt.Fprintln(os.Stderr, serveBare(os.Getenv(envDial)))
		os.Exit(1)
	default:
		os.Exit(m.Run())
	}
}

func manifestOf(name string) []byte {
	return fmt.Appendf(nil, `{
		"manifest": 1, "name": %q, "version": "1.2.3", "title": "Test", "lookup": "read", "settles_within": "30s",
		"notifications": true, "verifies": true,
		"statements": true, "reports_late": "2h", "references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {"type": "object"},
		"operations": [{
			"path": "/test/pay", "kind": "payment", "summary": "Pay", "timeout": "5s", "reference": "/id", "amount": "/amount",
			"request": {"type": "object", "required": ["amount"], "additionalProperties": false, "properties": {"id": {"type": "string"}, "amount": {"type": "integer", "minimum": 1, "maximum": 1000000}}},
			"result": {"type": "object"}, "response": {"type": "object"}
		}, {
			"path": "/test/order", "kind": "order", "summary": "Order", "timeout": "5s", "reference": "/id", "quote": true,
			"request": {"type": "object", "additionalProperties": false, "properties": {"id": {"type": "string"}}},
			"result": {"type": "object"}, "response": {"type": "object"}
		}, {
			"path": "/test/paid", "status_of": "/test/pay", "summary": "Status", "reference": "/id",
			"request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}
		}, {
			"path": "/test/ordered", "status_of": "/test/order", "summary": "Status", "reference": "/id",
			"request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}
		}]}`, name)
}

// addedPath is an operation that versions from a number on have.
func addedPath(number int) string { return "/test/added" + strconv.Itoa(number) }

// versionOf is the manifest of a version.
func versionOf(name string, number int) []byte {
	text := string(manifestOf(name))
	for n := range number {
		text = strings.Replace(text, `"operations": [`, fmt.Sprintf(`"operations": [{
			"path": %q, "kind": "query", "summary": "Added", "timeout": "5s", "request": {"type": "object", "additionalProperties": false, "properties": {}}, "result": {"type": "object"}, "response": {"type": "object"}
		}, `, addedPath(n+1)), 1)
	}
	return []byte(strings.Replace(text, `"version": "1.2.3"`, fmt.Sprintf(`"version": "1.2.%d"`, 3+number), 1))
}

// servePlugin runs a plugin whose calls do what their body says.
func servePlugin() {
	if path := os.Getenv(envDial); path != "" {
		// Whoever listens there reads the end of this process as an end of file.
		if _, err := net.Dial("unix", path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	name := os.Getenv(envName)
	if path, ok := strings.CutPrefix(name, "@"); ok {
		text, _ := os.ReadFile(path)
		name = string(text)
	}
	calls := map[string]func(context.Context, sdk.Call) sdk.Result{"/test/pay": act, "/test/order": act}
	number, _ := strconv.Atoi(os.Getenv(envNumber))
	for n := range number {
		calls[addedPath(n+1)] = act
	}
	sdk.Serve(versionOf(name, number), sdk.Handlers{
		Calls:  calls,
		Quotes: map[string]func(context.Context, sdk.Quote) sdk.Quoted{"/test/order": price},
		Lookup: find,
		Notify: func(_ context.Context, n sdk.Notification) sdk.Acknowledgement {
			detail := n.Header.Get("X-Detail")
			return sdk.Acknowledgement{
				Status: 200, Body: n.Body, Detail: detail, Updates: []sdk.StatusUpdate{{Reference: n.Header.Get("X-Reference"), Detail: detail}},
			}
		},
		Verify: func(ctx context.Context, c sdk.Connection) sdk.Result {
			if r := act(ctx, sdk.Call{Body: c.Credentials}); r.Outcome != sdk.Pending || c.Version != 0 {
				return r
			}
			return sdk.Usable("")
		},
		Statement: func(ctx context.Context, s sdk.Statement) sdk.StatementPage {
			if r := act(ctx, sdk.Call{Body: s.Connection.Credentials}); r.Outcome != sdk.Pending {
				return sdk.NoStatement(r.Blame, r.Detail)
			}
			return sdk.StatementPage{Known: true, Cursor: s.Cursor + "+"}
		},
	})
}

type order struct {
	Do   string `json:"do"`
	Text string `json:"text,omitempty"`
}

func act(ctx context.Context, c sdk.Call) sdk.Result {
	var o order
	if err := json.Unmarshal(c.Body, &o); err != nil {
		return sdk.DidNotSend(sdk.BlameNone, err.Error())
	}
	switch o.Do {
	case "refuse":
		return sdk.Refuse(sdk.RefuseOther, "no")
	case "fault":
		return sdk.DontKnow(sdk.BlameUpstream, "down")
	case "buy":
		return buy(ctx, c.Reference, o)
	case "detail":
		return sdk.DontKnow(sdk.BlameUpstream, o.Text+strings.Repeat("x", maxMessage/2))
	case "hang":
		<-ctx.Done()
		return sdk.DontKnow(sdk.BlameUpstream, "the upstream did not answer")
	case "deaf":
		select {}
	case "exit":
		os.Exit(7)
	case "big":
		return sdk.Finished("p", strings.Repeat("x", maxMessage))
	case "log":
		_, _ = os.Stderr.WriteString(o.Text)         // go-plugin's stream
		_, _ = os.NewFile(2, "").WriteString(o.Text) // the process's own
	case "tell":
		sdk.Log(ctx).Warn("told")
	case "try":
		return sdk.Finished("p", hostileTry(c.Body))
	case "eat":
		eat()
	case "fill":
		fill()
	case "multiply":
		multiply()
	case "world":
		return sdk.Finished("p", world{PID: os.Getpid(), Args: os.Args, Env: os.Environ(), Group: group(), UID: os.Getuid()})
	}
	return sdk.Accepted("p-"+c.Reference, time.Time{}, o)
}

// buy asks an upstream at the address in the order's text for a reference.
func buy(ctx context.Context, reference string, o order) sdk.Result {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, o.Text+"/"+reference, nil)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameNone, err.Error())
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return sdk.DontKnow(sdk.BlameUpstream, err.Error())
	}
	_ = answer.Body.Close()
	return sdk.Accepted("p-"+reference, time.Time{}, o)
}

// eat takes more and more memory, fill of names in a directory, multiply of threads.
func eat() {
	var eaten [][]byte
	for {
		eaten = append(eaten, bytes.Repeat([]byte("x"), 1<<20))
		runtime.KeepAlive(eaten)
	}
}

func fill() {
	for n := 0; ; n++ {
		_ = os.WriteFile(filepath.Join(os.TempDir(), strconv.Itoa(n)), nil, 0o600) // until it is killed
	}
}

func multiply() {
	for {
		go func() {
			runtime.LockOSThread()
			select {}
		}()
	}
}

// price answers a quote as act does a call.
func price(ctx context.Context, q sdk.Quote) sdk.Quoted {
	if r := act(ctx, sdk.Call{Body: q.Body}); r.Outcome != sdk.Pending {
		return sdk.NoQuote(r)
	}
	return sdk.Quoted{Outcome: sdk.Done, Price: 10, Data: q.Product}
}

type world struct {
	PID, Group, UID int
	Args, Env       []string
}

func find(ctx context.Context, l sdk.Lookup) sdk.StatusUpdate {
	var o order
	_ = json.Unmarshal(l.Body, &o)
	switch o.Do {
	case "hang":
		<-ctx.Done()
		return sdk.NoStatus(sdk.BlameUpstream, "the upstream did not answer")
	case "fault":
		return sdk.NoStatus(sdk.BlameUpstream, "down")
	case "detail":
		return sdk.NoStatus(sdk.BlameUpstream, act(ctx, sdk.Call{Body: l.Body}).Detail)
	}
	return sdk.StatusUpdate{Reference: l.Reference, Status: sdk.StatusPending}
}

// hostToBeKilled runs a host that says on standard output that it is ready, and
// then waits to be killed.
func hostToBeKilled() {
	spec := testSpec("killed", envDial+"="+os.Getenv(envDial))
	h, err := Start(context.Background(), Config{Specs: []Spec{spec}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(h.Status()[0].PID)
	select {}
}

var binarySum = sync.OnceValues(func() (string, error) { return SHA256File(binary()) })

func binary() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// libraries are what a test binary reads that was built with cgo, for the race
// detector.
var libraries = sync.OnceValue(func() []string {
	var paths []string
	for _, dir := range []string{"/lib", "/lib64", "/usr/lib"} {
		if _, err := os.Stat(dir); err == nil && cgo {
			paths = append(paths, dir)
		}
	}
	return paths
})

func testSpec(name string, env ...string) Spec {
	sum, err := binarySum()
	if err != nil {
		panic(err)
	}
	return Spec{
		Name: name, Path: binary(), SHA256: sum, Read: libraries(),
		Env: append([]string{envRole + "=plugin", envName + "=" + name}, env...),
	}
}

// quick is the product's tuning with less patience.
var quick = tuning{
	start: 20 * time.Second, patience: 20 * time.Second, restartWait: 10 * time.Second,
	healthPeriod: 50 * time.Millisecond, healthWait: 500 * time.Millisecond, healthMisses: 3,
	settled: 10 * time.Second, graceful: 2 * time.Second, drain: 20 * time.Second,
	window: standard.window, open: standard.open,
}

// calm never restarts for health, and no breaker of its forgets or tries again: a busy
// test machine is no fault of a plugin.
var calm = func() tuning {
	t := quick
	t.healthPeriod, t.window, t.open = time.Hour, time.Hour, time.Hour
	return t
}()

func startHost(t *testing.T, tune tuning, c Config) *Host {
	t.Helper()
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	h, err := start(t.Context(), c, tune)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = h.Close(ctx)
	})
	return h
}

func one(t *testing.T, tune tuning) *Host {
	t.Helper()
	return startHost(t, tune, Config{Specs: []Spec{testSpec("one")}})
}

// ofOne is a use of plugin one, by the merchant whose account callTo names.
var ofOne = Use{Provider: "one", MerchantID: "m", Money: true}

func callTo(do string) sdk.Call {
	body, err := json.Marshal(order{Do: do})
	if err != nil {
		panic(err)
	}
	return sdk.Call{
		Operation: "/test/pay", Reference: "r1", Amount: 100, Body: body,
		Connection: sdk.Connection{MerchantID: "m", Mode: "test", Credentials: json.RawMessage(`{}`)},
	}
}

const patience = 30 * time.Second

// heedable is a time after which a plugin that heeds it answers first: its handlers have
// the widest margin that the SDK leaves, and a busy machine is slow.
const heedable = 2500 * time.Millisecond

func worldOf(t *testing.T, h *Host) world {
	t.Helper()
	r := h.Call(t.Context(), ofOne, callTo("world"), patience)
	var w world
	if r.Outcome != sdk.Done {
		t.Fatalf("got %+v", r)
	}
	if err := json.Unmarshal(r.Data, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// until asks a condition again and again, for those without a signal.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("waited in vain: %s", what)
		case <-tick.C:
		}
	}
}

// inFlight waits until a number of calls is in flight at the plugin.
func inFlight(t *testing.T, h *Host, n int) {
	t.Helper()
	until(t, fmt.Sprintf("%d calls in flight", n), func() bool { return h.Status()[0].InFlight == n })
}

// background makes a call and gives its result on a channel.
func background(t *testing.T, h *Host, do string) <-chan sdk.Result {
	t.Helper()
	result := make(chan sdk.Result, 1)
	ctx := t.Context()
	go func() { result <- h.Call(ctx, ofOne, callTo(do), patience) }()
	return result
}

// runChild starts this binary in another role, and returns when it says on
// standard output that it is ready.
func runChild(t testing.TB, env ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(binary())
	command.Env = append(os.Environ(), env...)
	command.Stderr = t.Output()
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return command
}

// deathWatch listens where plugins dial in; the channels are closed when the first has
// come, and when it has died.
func deathWatch(t *testing.T) (path string, came, died <-chan struct{}) {
	t.Helper()
	dir, err := os.MkdirTemp(scratchBase(), "host-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	in, gone := make(chan struct{}), make(chan struct{})
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		close(in)
		_, _ = io.Copy(io.Discard, conn)
		close(gone)
	}()
	return path, in, gone
}
