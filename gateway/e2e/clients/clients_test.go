// Package clients_test installs the merchants' clients, as they are packed, in projects of
// their own, and has them do the same things against the running gateway, and against a
// server that answers as badly as it is told.
package clients_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// scenario is what each client does, and what must come of it.
type scenario struct {
	Name    string
	Call    string
	Request json.RawMessage
	Options map[string]string
	Want    map[string]any

	// Of a server's: its answers, one after the other, how many requests it must get, and
	// whether these must be of one reference.
	Answers      []answer
	Requests     int
	OneReference bool `json:"one_reference"`
}

type answer struct {
	Status  int
	Headers map[string]string
	Body    json.RawMessage
	Text    string
	Cut     bool // the connection ends without an answer
	Hang    bool // nothing comes
}

func scenarios(t *testing.T, one, receiver string) (gateway, server []scenario) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(sources, "scenarios.json"))
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("{one}"), []byte(one)), []byte("{receiver}"), []byte(receiver))
	var all struct{ Gateway, Server []scenario }
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all.Gateway, all.Server
}

func TestClients(t *testing.T) {
	t.Parallel()
	p := harness.Shared(t)
	for _, l := range languages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			c := l.install(t)
			t.Run("gateway", func(t *testing.T) { t.Parallel(); againstGateway(t, p, c.run) })
			t.Run("server", func(t *testing.T) { t.Parallel(); againstServer(t, c.run) })
			t.Run("readme", func(t *testing.T) { t.Parallel(); asTheReadmeSays(t, p, c) })
		})
	}
}

// asTheReadmeSays pays and refunds a payment with the program of the README, whose other
// program is called back.
func asTheReadmeSays(t *testing.T, p *harness.Program, c client) {
	t.Helper()
	address := harness.FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	told := filepath.Join(t.TempDir(), "told")
	output, err := os.Create(told)
	if err != nil {
		t.Fatal(err)
	}
	receiver := c.program(t, "callback")
	receiver.Env = append(receiver.Environ(), "PORT="+port, "GERBANG_CALLBACK_SECRET="+p.Merchants[harness.Large].TestCallbackSecret)
	receiver.Stdout, receiver.Stderr = output, output
	if err := receiver.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = receiver.Process.Kill(); _ = receiver.Wait(); output.Close() })
	harness.Await(t, harness.ReadyWithin, "the receiver", func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})

	shop := p.Shop(harness.Large, "test")
	pay := c.program(t, "pay")
	pay.Env = append(pay.Environ(), "GERBANG_URL="+p.APIURL, "GERBANG_KEY="+shop.Key, "GERBANG_MERCHANT="+shop.MerchantID, "SANDBOX="+p.SandboxURL,
		"CALLBACK_URL=http://"+address+"/callbacks")
	if out, err := pay.CombinedOutput(); err != nil || !strings.Contains(string(out), "PAID\n") || !strings.HasSuffix(string(out), "-back 20000\n") {
		t.Errorf("its lines end with %v and print:\n%s", err, out)
	}
	for _, event := range []string{" payments.status_update ", " refund.status_update "} {
		harness.Await(t, harness.PaidWithin, event, func() bool {
			text, err := os.ReadFile(told)
			return err == nil && strings.Contains(string(text), event)
		})
	}
	forged, err := http.Post("http://"+address+"/callbacks", "application/json", strings.NewReader(`{"event":"payments.status_update","data":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer forged.Body.Close()
	if forged.StatusCode != http.StatusBadRequest {
		t.Errorf("a forged callback is answered with %s", forged.Status)
	}
}

// againstGateway does every call, and verifies the callback that one of them leads to.
func againstGateway(t *testing.T, p *harness.Program, run func(*testing.T, []task) []outcome) {
	t.Helper()
	shop, receiver, one := p.Shop(harness.Large, "test"), harness.NewReceiver(t, 0), uuid.NewString()
	all, _ := scenarios(t, one, receiver.URL+"/callbacks")
	tasks := make([]task, len(all))
	for i, s := range all {
		tasks[i] = task{shop.APIURL, shop.Key, shop.MerchantID, 60_000, 2, s.Call, s.Request, s.Options, nil}
	}
	for i, got := range run(t, tasks) {
		wantOutcome(t, all[i], got)
	}

	harness.Await(t, harness.PaidWithin, "the order's callback", func() bool { return len(receiver.On("/callbacks")) > 0 })
	came := receiver.On("/callbacks")[0]
	headers := map[string]string{}
	for name := range came.Header {
		headers[strings.ToLower(name)] = came.Header.Get(name)
	}
	stale := map[string]string{}
	for name, value := range headers {
		stale[name] = value
	}
	stale["webhook-timestamp"] = "1700000000"
	secret, other := p.Merchants[harness.Large].TestCallbackSecret, p.Merchants[harness.Large].CallbackSecret
	verified := run(t, []task{
		{Verify: &received{headers, came.Raw, []string{other, secret}}},
		{Verify: &received{headers, append(bytes.Clone(came.Raw), ' '), []string{secret}}},
		{Verify: &received{headers, came.Raw, []string{other}}},
		{Verify: &received{stale, came.Raw, []string{secret}}},
		{Verify: &received{map[string]string{}, came.Raw, []string{secret}}},
		{Verify: &received{headers, came.Raw, []string{"", "whsec_"}}},
	})
	wantOutcome(t, scenario{Name: "a callback", Want: map[string]any{"callback": map[string]any{
		"id": came.ID(), "event": "ppob.status_update", "data": map[string]any{"ref_id": one + "-air", "status": "Success"},
	}}}, verified[0])
	for i, got := range verified[1:] {
		wantOutcome(t, scenario{Name: "a wrong callback", Want: map[string]any{"unverified": true}}, got)
		if t.Failed() {
			t.Fatalf("the wrong callback %d", i+1)
		}
	}
}

// wantOutcome compares what came of a scenario with what it says, which may say less.
func wantOutcome(t *testing.T, s scenario, got outcome) {
	t.Helper()
	if len(s.Want) == 0 && got["data"] == nil || !holds(map[string]any(got), s.Want) {
		t.Errorf("%s (%s): %v, want %v", s.Name, s.Call, got, s.Want)
	}
}

// holds reports whether a value has all that another says.
func holds(got, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		members, is := got.(map[string]any)
		for name, value := range want {
			if !is || !holds(members[name], value) {
				return false
			}
		}
		return is
	case []any:
		elements, is := got.([]any)
		if !is || len(elements) < len(want) {
			return false
		}
		for i, value := range want {
			if !holds(elements[i], value) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(got, want)
}

// badServer answers each scenario, by the first segment of the path, as it says.
type badServer struct {
	all []scenario

	mu   sync.Mutex
	seen map[string][]string // references by the name of the scenario
}

func (b *badServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var request map[string]any
	_ = json.Unmarshal(body, &request)
	reference := r.Header.Get("Idempotency-Key")
	for _, name := range []string{"external_id", "ref_id", "refund_id"} {
		if text, is := request[name].(string); is {
			reference = text
		}
	}
	at := int(r.URL.Path[1] - 'a')
	b.mu.Lock()
	name := b.all[at].Name
	turn := len(b.seen[name])
	b.seen[name] = append(b.seen[name], reference)
	b.mu.Unlock()
	if turn >= len(b.all[at].Answers) || r.Header.Get("Authorization") != "Bearer sk_test_x" || request["merchant_id"] != "mer_x" {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	answer := b.all[at].Answers[turn]
	switch {
	case answer.Cut:
		panic(http.ErrAbortHandler)
	case answer.Hang:
		select {
		case <-r.Context().Done():
		case <-time.After(30 * time.Second):
		}
		return
	}
	for name, value := range answer.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(answer.Status)
	_, _ = w.Write(append([]byte(answer.Text), answer.Body...))
}

// againstServer looks at what clients do when answers do not come, or say no.
func againstServer(t *testing.T, run func(*testing.T, []task) []outcome) {
	t.Helper()
	_, all := scenarios(t, uuid.NewString(), "")
	b := &badServer{all: all, seen: map[string][]string{}}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	tasks := make([]task, len(all))
	for i, s := range all {
		tasks[i] = task{server.URL + "/" + string(rune('a'+i)), "sk_test_x", "mer_x", 2000, 1, s.Call, s.Request, s.Options, nil}
	}
	for i, got := range run(t, tasks) {
		s := all[i]
		wantOutcome(t, s, got)
		references := b.seen[s.Name]
		if len(references) != s.Requests {
			t.Errorf("%s: %d requests, want %d", s.Name, len(references), s.Requests)
		}
		for _, reference := range references {
			if s.OneReference && (reference == "" || reference != references[0]) {
				t.Errorf("%s: the references of its requests are %q", s.Name, references)
			}
		}
	}
}
