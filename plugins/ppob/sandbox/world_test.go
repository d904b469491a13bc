package sandbox_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/ppob/sandbox"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// The account of the published signatures.
const (
	username = "username"
	apiKey   = "dev-0123456789abcdef"
	secret   = "somesecretvalue"
)

// start is ten in the morning in Jakarta.
var start = time.Date(2026, 1, 15, 3, 0, 0, 0, time.UTC)

// object is a decoded JSON answer, or fields of a request.
type object map[string]any

func (o object) text(name string) string {
	text, _ := o[name].(string)
	return text
}

// result is what matters of an answer: status and code.
func (o object) result() string { return o.text("status") + " " + o.text("rc") }

// event is a webhook that has arrived.
type event struct {
	name, agent, signature, path string
	raw                          []byte
	data                         object
}

// signed reports whether the signature is the account's.
func (e event) signed() bool {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write(e.raw)
	return e.signature == "sha1="+hex.EncodeToString(mac.Sum(nil))
}

// world is a simulator that listens, with a buyer's receiver of webhooks.
type world struct {
	t       testing.TB
	options sandbox.Options
	clock   *kit.ManualClock
	state   string
	env     *kit.Env
	up      *sandbox.Simulator
	api     *httptest.Server
	hooks   *httptest.Server
	events  chan event
}

func open(t testing.TB, change ...func(*sandbox.Options)) *world {
	t.Helper()
	w := &world{
		t: t, options: sandbox.DefaultOptions(), clock: kit.NewManualClock(start), state: t.TempDir(), events: make(chan event, 100),
	}
	for _, c := range change {
		c(&w.options)
	}
	w.hooks = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		e := event{name: r.Header.Get("X-Digiflazz-Event"), agent: r.UserAgent(), signature: r.Header.Get("X-Hub-Signature"), path: r.URL.Path}
		e.raw, _ = io.ReadAll(r.Body)
		var body struct{ Data object }
		if json.Unmarshal(e.raw, &body) == nil {
			e.data = body.Data
		}
		w.events <- e
	}))
	w.begin()
	t.Cleanup(func() {
		w.end()
		w.hooks.Close()
	})
	if err := w.up.Open(sandbox.Buyer{Username: username, APIKey: apiKey, WebhookSecret: secret}); err != nil {
		t.Fatal(err)
	}
	w.order(200, "hooks", object{"account": username, "callback_url": w.hooks.URL + "/in", "callback_token": secret})
	return w
}

func (w *world) begin() {
	w.t.Helper()
	var err error
	w.env, err = kit.Open(kit.Config{Provider: "ppob", StateDir: w.state, Token: "open", Clock: w.clock})
	if err != nil {
		w.t.Fatal(err)
	}
	if w.up, err = sandbox.New(w.env, w.options); err != nil {
		w.t.Fatal(err)
	}
	w.api = httptest.NewServer(w.env.Handler(w.up))
}

func (w *world) end() {
	w.t.Helper()
	w.api.Close()
	if err := w.env.Close(); err != nil {
		w.t.Error(err)
	}
}

// kill goes on with what is on disk at this moment and half a line after it,
// as a process that is killed while it writes.
func (w *world) kill() {
	w.t.Helper()
	left, err := os.ReadFile(filepath.Join(w.state, "journal.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.end()
	w.state = w.t.TempDir()
	if err := os.WriteFile(filepath.Join(w.state, "journal.jsonl"), append(left, `[{"t":"purcha`...), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.begin()
}

// send posts a body and returns the status and the answer, or the error of a
// connection that was cut.
func (w *world) send(path, bearer string, body any) (int, []byte, error) {
	w.t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		w.t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.api.URL+path, bytes.NewReader(data))
	if err != nil {
		w.t.Fatal(err)
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response.StatusCode, answer, err
}

// call posts a body and returns what is in data.
func (w *world) call(path string, body object) object {
	w.t.Helper()
	_, text, err := w.send(path, "", body)
	var answer struct{ Data object }
	if err != nil || json.Unmarshal(text, &answer) != nil || answer.Data == nil {
		w.t.Fatalf("%s %v: %s, %v", path, body, text, err)
	}
	return answer.Data
}

func sign(about string) string {
	sum := md5.Sum([]byte(username + apiKey + about))
	return hex.EncodeToString(sum[:])
}

// transaction is a signed body of /transaction.
func transaction(commands, ref, sku, customer string, more ...object) object {
	body := object{"username": username, "buyer_sku_code": sku, "customer_no": customer, "ref_id": ref, "sign": sign(ref)}
	if commands != "" {
		body["commands"] = commands
	}
	for _, m := range more {
		for key, value := range m {
			body[key] = value
		}
	}
	return body
}

func (w *world) buy(ref, sku, customer string, more ...object) object {
	w.t.Helper()
	return w.call("/v1/transaction", transaction("", ref, sku, customer, more...))
}

func (w *world) pasca(command, ref, sku, customer string, more ...object) object {
	w.t.Helper()
	return w.call("/v1/transaction", transaction(command+"-pasca", ref, sku, customer, more...))
}

// want fails unless an answer has a status and code.
func (w *world) want(result string, got object) object {
	w.t.Helper()
	if got.result() != result || got.text("message") == "" {
		w.t.Errorf("%v, want %s", got, result)
	}
	return got
}

// order gives an order of the control API.
func (w *world) order(status int, name string, body object) object {
	w.t.Helper()
	got, text, err := w.send("/_sandbox/"+name, "open", body)
	var answer object
	if err != nil || got != status || json.Unmarshal(text, &answer) != nil {
		w.t.Fatalf("%s %v: %d %s %v, want %d", name, body, got, text, err, status)
	}
	return answer
}

func (w *world) deposit() int {
	w.t.Helper()
	left, _ := w.call("/v1/cek-saldo", object{"cmd": "deposit", "username": username, "sign": sign("depo")})["deposit"].(float64)
	return int(left)
}

// spent is what has left the deposit.
func (w *world) spent() int {
	w.t.Helper()
	return 1_000_000_000 - w.deposit()
}

// next waits for a webhook.
func (w *world) next() event {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	select {
	case e := <-w.events:
		return e
	case <-ctx.Done():
		w.t.Fatal("no webhook came")
		return event{}
	}
}

// silent fails if a webhook that is due now has not been received by next.
func (w *world) silent() {
	w.t.Helper()
	w.env.Webhooks.Tried(w.t.Context())
	select {
	case e := <-w.events:
		w.t.Errorf("an unexpected webhook: %s %s", e.name, e.raw)
	default:
	}
}

// states returns what the witness says of a reference.
func (w *world) states(reference string) string {
	var out []string
	for _, m := range w.env.Movements.All() {
		if m.Reference == reference {
			out = append(out, m.State)
		}
	}
	return strings.Join(out, " ")
}

// await waits until the witness says so.
func (w *world) await(reference, states string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for w.states(reference) != states {
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.t.Fatalf("%s is %q, want %q", reference, w.states(reference), states)
		}
	}
}

func keys[V any](m map[string]V) []string {
	var out []string
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}
