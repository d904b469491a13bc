package sandbox_test

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

const second = time.Second

// announcedClock tells when somebody begins to wait.
type announcedClock struct {
	*sandbox.ManualClock
	asked chan struct{}
}

// Reach implements sandbox.Clock.
func (c *announcedClock) Reach(at time.Time) <-chan time.Time {
	ch := c.ManualClock.Reach(at)
	select {
	case c.asked <- struct{}{}:
	default:
	}
	return ch
}

// discard is an answer that nobody reads.
type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) WriteHeader(int)             {}

func cancelled(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithCancel(t.Context())
}

func request(ctx context.Context, t *testing.T) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://shop.test/buy", strings.NewReader("tea"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var program = sandbox.Program{Provider: "demo", Build: newShop}

func environment(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

// await reads the ready file as soon as it is there.
func await(t *testing.T, path string, ended <-chan error) string {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if data, err := os.ReadFile(path); err == nil {
			var ready struct{ URL string }
			if err := json.Unmarshal(data, &ready); err != nil {
				t.Fatalf("half a ready file: %q", data)
			}
			return ready.URL
		}
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("ended before it was ready: %v", err)
		case <-t.Context().Done():
			t.Fatal("never ready")
		}
	}
}

// launch runs the program and returns where it listens.
func launch(t *testing.T, state string, env map[string]string) (*world, func() error) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		args := []string{"--listen", "127.0.0.1:0", "--state", state, "--ready-file", ready}
		ended <- program.Run(ctx, args, environment(env), io.Discard)
	}()
	w := &world{t: t, url: await(t, ready, ended)}
	if info, err := os.Stat(ready); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("ready file: %v, %v", info.Mode(), err)
	}
	return w, func() error {
		stop()
		return <-ended
	}
}

func TestProgramKeepsItsState(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	env := map[string]string{sandbox.EnvToken: "open", sandbox.EnvHostPID: strconv.Itoa(os.Getppid())}
	w, stop := launch(t, state, env)
	if _, body, err := w.call("POST", "/buy", "", "tea"); body != "bought tea" {
		t.Fatalf("%q, %v", body, err)
	}
	if err := stop(); err != nil {
		t.Fatalf("a stop on order: %v", err)
	}
	w, stop = launch(t, state, env)
	if _, body, err := w.call("GET", "/_sandbox/movements", "open", ""); !strings.Contains(body, `"reference":"tea"`) {
		t.Errorf("%s, %v", body, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestProgramEndsWithItsParent expects a parent that is not there.
func TestProgramEndsWithItsParent(t *testing.T) {
	t.Parallel()
	args := []string{"--state", t.TempDir()}
	env := map[string]string{sandbox.EnvToken: "open", sandbox.EnvHostPID: strconv.Itoa(os.Getppid() + 1)}
	if err := program.Run(t.Context(), args, environment(env), io.Discard); err != nil {
		t.Errorf("ended with %v", err)
	}
}

func TestProgramRefuses(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	good := map[string]string{sandbox.EnvToken: "open"}
	for _, c := range []struct {
		name, want string
		args       []string
		env        map[string]string
	}{
		{"no token", "TOKEN", []string{"--state", state}, nil},
		{"no state", "state", nil, good},
		{"another argument", "arguments", []string{"--state", state, "x"}, good},
		{"all addresses", "loopback", []string{"--state", state, "--listen", "0.0.0.0:0"}, good},
		{"no address", "loopback", []string{"--state", state, "--listen", ":0"}, good},
		{"a name", "loopback", []string{"--state", state, "--listen", "example.com:80"}, good},
		{"no port", "listen", []string{"--state", state, "--listen", "127.0.0.1"}, good},
		{"unknown flag", "flag", []string{"--state", state, "--public"}, good},
		{"no time", "latency", []string{"--state", state, "--latency", "-1s"}, good},
		{"wrong parent", "HOST_PID", []string{"--state", state}, map[string]string{sandbox.EnvToken: "t", sandbox.EnvHostPID: "x"}},
		{"ready file nowhere", "nowhere", []string{"--state", state, "--ready-file", filepath.Join(state, "nowhere", "f")}, good},
	} {
		err := program.Run(t.Context(), c.args, environment(c.env), io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func TestProgramOwnFlags(t *testing.T) {
	t.Parallel()
	var own string
	p := program
	p.Flags = func(set *flag.FlagSet) { set.StringVar(&own, "own", "", "") }
	ctx, cancel := cancelled(t)
	cancel()
	args := []string{"--state", t.TempDir(), "--own", "yes"}
	if err := p.Run(ctx, args, environment(map[string]string{sandbox.EnvToken: "t"}), io.Discard); err != nil || own != "yes" {
		t.Errorf("own is %q, %v", own, err)
	}
}
