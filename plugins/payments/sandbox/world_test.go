package sandbox_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/payments/sandbox"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

const (
	testKey  = "xnd_development_example"
	otherKey = "xnd_development_other"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

// object is a decoded JSON answer.
type object map[string]any

func (o object) text(name string) string {
	text, _ := o[name].(string)
	return text
}

func (o object) inner(name string) object {
	inner, _ := o[name].(map[string]any)
	return inner
}

// event is a webhook that has arrived.
type event struct {
	id, token string
	body      object
}

// world is a simulator that listens, with a merchant's receiver of webhooks.
type world struct {
	t      testing.TB
	clock  *kit.ManualClock
	state  string
	env    *kit.Env
	api    *httptest.Server
	hooks  *httptest.Server
	events chan event
}

// open starts a world with a fresh state and registers testKey's webhooks.
func open(t testing.TB, options sandbox.Options) *world {
	t.Helper()
	w := &world{t: t, clock: kit.NewManualClock(start), state: t.TempDir(), events: make(chan event, 100)}
	w.hooks = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var body object
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("a webhook that is no JSON: %v", err)
		}
		w.events <- event{r.Header.Get("webhook-id"), r.Header.Get("x-callback-token"), body}
	}))
	w.begin(options)
	t.Cleanup(func() {
		w.end()
		w.hooks.Close()
	})
	err := w.env.Accounts.Register(kit.Account{
		ID: kit.AccountOf(testKey), Name: "Toko Contoh", CallbackURL: w.hooks.URL + "/in", CallbackToken: "hook-token",
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) begin(options sandbox.Options) {
	w.t.Helper()
	env, err := kit.Open(kit.Config{Provider: "payments", StateDir: w.state, Token: "open", Clock: w.clock})
	if err != nil {
		w.t.Fatal(err)
	}
	up, err := sandbox.New(env, options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.env, w.api = env, httptest.NewServer(env.Handler(up))
}

func (w *world) end() {
	w.t.Helper()
	w.api.Close()
	if err := w.env.Close(); err != nil {
		w.t.Error(err)
	}
}

func (w *world) restart() {
	w.t.Helper()
	w.end()
	w.begin(sandbox.DefaultOptions())
}

// caller makes requests in one way.
type caller struct {
	w       *world
	key     string
	version string
}

func (w *world) v1() caller { return caller{w, testKey, ""} }
func (w *world) v2() caller { return caller{w, testKey, "2022-07-31"} }

func (c caller) request(method, path, body string) *http.Request {
	c.w.t.Helper()
	request, err := http.NewRequestWithContext(c.w.t.Context(), method, c.w.api.URL+path, strings.NewReader(body))
	if err != nil {
		c.w.t.Fatal(err)
	}
	if c.key != "" {
		request.SetBasicAuth(c.key, "")
	}
	if c.version != "" {
		request.Header.Set("api-version", c.version)
	}
	return request
}

// send returns the answer and its body.
func (w *world) send(request *http.Request) (*http.Response, string) {
	w.t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return response, string(data)
}

// do expects a status and returns the decoded object.
func (c caller) do(status int, method, path, body string) object {
	c.w.t.Helper()
	response, text := c.w.send(c.request(method, path, body))
	if response.StatusCode != status {
		c.w.t.Fatalf("%s %s: %d %s, want %d", method, path, response.StatusCode, text, status)
	}
	var out object
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		c.w.t.Fatalf("%s %s: %v: %s", method, path, err, text)
	}
	return out
}

// list expects a bare array.
func (c caller) list(path string) []object {
	c.w.t.Helper()
	response, text := c.w.send(c.request(http.MethodGet, path, ""))
	var out []object
	if err := json.Unmarshal([]byte(text), &out); err != nil || response.StatusCode != http.StatusOK || out == nil {
		c.w.t.Fatalf("GET %s: %d %s, %v", path, response.StatusCode, text, err)
	}
	return out
}

// refused expects an error body and returns it.
func (c caller) refused(status int, code, method, path, body string) object {
	c.w.t.Helper()
	out := c.do(status, method, path, body)
	if out.text("error_code") != code || out.text("message") == "" {
		c.w.t.Errorf("%s %s %s: %v, want %s", method, path, body, out, code)
	}
	return out
}

func (w *world) pay(status int, body string) object {
	w.t.Helper()
	request := caller{w, "", ""}.request(http.MethodPost, "/_sandbox/pay", body)
	request.Header.Set("Authorization", "Bearer open")
	response, text := w.send(request)
	if response.StatusCode != status {
		w.t.Fatalf("pay %s: %d %s, want %d", body, response.StatusCode, text, status)
	}
	var out object
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		w.t.Fatal(err)
	}
	return out
}

// next waits for a webhook.
func (w *world) next() event {
	w.t.Helper()
	select {
	case e := <-w.events:
		return e
	case <-w.t.Context().Done():
		w.t.Fatal("no webhook came")
		return event{}
	}
}

// silent closes the world's webhooks down and fails if one more had come.
func (w *world) silent() {
	w.t.Helper()
	w.restart() // waits for everything under way
	select {
	case e := <-w.events:
		w.t.Errorf("an unexpected webhook: %+v", e)
	default:
	}
}

// states returns what the witness says of a reference.
func (w *world) states(reference string) []string {
	var out []string
	for _, m := range w.env.Movements.All() {
		if m.Reference == reference {
			out = append(out, m.State)
		}
	}
	return out
}
