package sandbox

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
)

// newSandbox is one whose only simulator is a function, unless another replica's leads.
func newSandbox(t *testing.T, provider string, plays http.HandlerFunc, change func(*Config)) *Sandbox {
	t.Helper()
	upstream := httptest.NewServer(plays)
	t.Cleanup(upstream.Close)
	log := slog.New(slog.DiscardHandler)
	c := Config{
		Dir: t.TempDir(), Secret: []byte("secret"), Log: log, Now: time.Now,
		Approved: func(string) (host.Spec, bool) { return host.Spec{}, false },
		Own:      map[string]*Simulator{provider: NewSimulator(provider, "", "own token", strings.TrimPrefix(upstream.URL, "http://"), log)},
	}
	if change != nil {
		change(&c)
	}
	s := New(c)
	t.Cleanup(s.Close)
	return s
}

// get asks a URL, and is what it says.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	response, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	said, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(said)
}

// TestReached: a simulator knows itself by a name that is the same everywhere, and plugins
// reach it where that leads on this replica.
func TestReached(t *testing.T) {
	t.Parallel()
	s := newSandbox(t, "bank_1", func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host+r.URL.String()) }, nil)
	given := `{"base_url":"http://bank_1.sandbox.invalid/v1","key":"http://example.com"}`
	reached, simulated, err := s.Reached([]byte(given))
	if err != nil || !simulated || strings.Contains(string(reached), domain) || !strings.Contains(string(reached), "http://example.com") {
		t.Fatalf("%s, %t, %v", reached, simulated, err)
	}
	url := strings.Split(string(reached), `"`)[3]
	if code, said := get(t, url+"/orders?x=1"); code != http.StatusOK || said != "bank_1.sandbox.invalid/v1/orders?x=1" {
		t.Errorf("the simulator saw %s (%d)", said, code)
	}
	again, _, err := s.Reached([]byte(given))
	if err != nil || string(again) != string(reached) {
		t.Errorf("it is reached at %s, and then at %s (%v)", reached, again, err)
	}
	if reached, _, err := s.Reached([]byte("http://made-up.sandbox.invalid")); err != nil || !strings.Contains(string(reached), domain) || len(s.inlets) != 1 {
		t.Errorf("a name of nobody's leads to %s (%v)", reached, err)
	}
	own := `{"base_url":"https://sandbox.bank.example"}`
	if reached, simulated, err := s.Reached([]byte(own)); simulated || err != nil || string(reached) != own {
		t.Errorf("a real provider: %s, %t, %v", reached, simulated, err)
	}
}

// TestSimulatorsOfAnotherReplica are reached by who has the replicas' secret, and by nobody else.
func TestSimulatorsOfAnotherReplica(t *testing.T) {
	t.Parallel()
	home := newSandbox(t, "bank", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"saw":"`+r.Header.Get("Authorization")+r.Header.Get(passHeader)+" "+r.Host+r.URL.Path+`"}`)
	}, nil)
	door := httptest.NewServer(home.Handler())
	t.Cleanup(door.Close)
	if code, _ := get(t, door.URL+"/bank/_sandbox/describe"); code != http.StatusUnauthorized {
		t.Errorf("a stranger is answered %d", code)
	}
	away := func(secret string) *Sandbox {
		return newSandbox(t, "none", http.NotFound, func(c *Config) { c.Away, c.Secret, c.Own = door.URL, []byte(secret), nil })
	}
	for secret, want := range map[string]int{"secret": http.StatusOK, "another": http.StatusUnauthorized} {
		var answer struct{ Saw string }
		status, err := away(secret).Order(t.Context(), "bank", "describe", nil, &answer)
		if status != want || (err == nil) != (want == http.StatusOK) {
			t.Errorf("%s: %d, %v", secret, status, err)
		}
		if err == nil && (!strings.HasSuffix(answer.Saw, " bank.sandbox.invalid/_sandbox/describe") || strings.Contains(answer.Saw, home.pass)) {
			t.Errorf("the simulator saw %s", answer.Saw)
		}
	}
	port, err := away("secret").Port("bank")
	if err != nil {
		t.Fatal(err)
	}
	if code, said := get(t, "http://127.0.0.1:"+itoa(port)+"/v1"); code != http.StatusOK || !strings.Contains(said, "bank.sandbox.invalid/v1") {
		t.Errorf("a plugin of another replica is answered %d %s", code, said)
	}
}

// lease is held, or not.
type lease struct{ held bool }

func (l *lease) Hold(context.Context) ([]int, error) {
	if l.held {
		return []int{0}, nil
	}
	return nil, nil
}

func (*lease) Release(context.Context) {}

// TestOneReplicaRunsSimulators: one without the lease starts nothing.
func TestOneReplicaRunsSimulators(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{true, false} {
		s := newSandbox(t, "none", http.NotFound, func(c *Config) { c.Leases, c.Own = &lease{held}, nil })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		_, err := s.Order(t.Context(), "bank", "describe", nil, nil)
		if want := map[bool]error{true: ErrNone, false: ErrElsewhere}[held]; !errors.Is(err, want) {
			t.Errorf("held %t: %v, want %v", held, err, want)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func itoa(port uint16) string { return strconv.Itoa(int(port)) }
