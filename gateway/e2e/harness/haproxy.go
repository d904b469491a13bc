package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// HAProxy stands before replicas as in production: it asks each one's /readyz, and sends
// a request to another one where a connection is refused.
type HAProxy struct{ URL string }

// FreeAddress is one at which nobody listens now. It is for those who come back to it:
// its port is none that the system gives to a connection meanwhile.
func FreeAddress(t testing.TB) string {
	t.Helper()
	listener := listenAnywhere(t)
	defer listener.Close()
	return listener.Addr().String()
}

// listenAnywhere listens at an address that can be listened at again later.
func listenAnywhere(t testing.TB) net.Listener {
	t.Helper()
	const lowest, below = 10_000, 32_768 // where Linux begins to give them; others begin later
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(lowest+rand.IntN(below-lowest))) //nolint:gosec // no secret
		if listener, err := net.Listen("tcp", address); err == nil {
			return listener
		}
	}
	t.Fatal("no port is free")
	return nil
}

// NewHAProxy starts one. It skips the test where it is not installed.
func NewHAProxy(t testing.TB, replicas ...Addresses) HAProxy {
	t.Helper()
	path, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skipf("there is no haproxy: %v", err)
	}
	address := FreeAddress(t)
	config := strings.Builder{}
	fmt.Fprintf(&config, `defaults
  mode http
  timeout connect 1s
  timeout check 5s
  timeout client 60s
  timeout server 60s
  retries 3
  option redispatch 1
  retry-on conn-failure
listen merchants
  bind %s
  option httpchk GET /readyz
`, address)
	for i, at := range replicas {
		_, port, err := net.SplitHostPort(at.Console)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&config, "  server replica%d %s check port %s inter 500ms fall 2 rise 1\n", i+1, at.Listen, port)
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	log := &recording{}
	command := exec.Command(path, "-db", "-f", file)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			t.Logf("the end of haproxy's log:\n%s", log.Tail(30))
		}
	})
	h, client := HAProxy{"http://" + address}, &http.Client{Timeout: time.Second}
	Await(t, ReadyWithin, "haproxy before a replica that is ready", func() bool {
		response, err := client.Get(h.URL + "/openapi.json")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return h
}
