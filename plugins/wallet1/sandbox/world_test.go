package sandbox_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/wallet1/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

var start = time.Date(2026, 1, 15, 3, 0, 0, 0, time.UTC)

// object is a decoded JSON answer, or a request.
type object = map[string]any

func text(o object, name string) string {
	text, _ := o[name].(string)
	return text
}

func value(o object, name string) string {
	amount, _ := o[name].(object)
	return text(amount, "value")
}

func rupiah(amount money.Amount) object {
	return object{"value": amount.Decimal2(), "currency": "IDR"}
}

// event is a notice that has arrived.
type event struct {
	header http.Header
	raw    []byte
	body   object
}

// world is a simulator that listens, with a merchant's receiver of notices.
type world struct {
	t       testing.TB
	options sandbox.Options
	clock   *kit.ManualClock
	movable *kit.MovableClock // replaces clock when it is set
	waiting chan struct{}     // told when somebody waits for the clock
	state   string
	env     *kit.Env
	up      *sandbox.Simulator
	api     *httptest.Server
	hooks   *httptest.Server
	events  chan event
	main    *client
}

// Reach implements kit.Clock: it tells that somebody waits.
func (w *world) Reach(at time.Time) <-chan time.Time {
	ch := w.clock.Reach(at)
	select {
	case w.waiting <- struct{}{}:
	default:
	}
	return ch
}

// Now implements kit.Clock.
func (w *world) Now() time.Time { return w.clock.Now() }

// template is the journal of a simulator with one account: keys are made once
// for all tests.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "wallet1")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	env, err := kit.Open(kit.Config{Provider: "wallet1", StateDir: dir, Token: "open", Clock: kit.NewManualClock(start)})
	if err != nil {
		return nil, err
	}
	up, err := sandbox.New(env, sandbox.DefaultOptions())
	if err != nil {
		return nil, errors.Join(err, env.Close())
	}
	up.Connect("test", "key", "token", "http://127.0.0.1:1")
	if err := env.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "journal.jsonl"))
})

func open(t testing.TB, change ...func(*sandbox.Options)) *world {
	t.Helper()
	w := &world{
		t: t, options: sandbox.DefaultOptions(), clock: kit.NewManualClock(start), waiting: make(chan struct{}, 1),
		state: t.TempDir(), events: make(chan event, 100),
	}
	for _, c := range change {
		c(&w.options)
	}
	w.hooks = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		e := event{header: r.Header}
		e.raw, _ = io.ReadAll(r.Body)
		_ = json.Unmarshal(e.raw, &e.body) // one that is garbage has none
		w.events <- e
	}))
	journal, err := template()
	if err != nil {
		t.Fatal(err)
	}
	w.write(journal)
	w.begin()
	t.Cleanup(func() {
		w.end()
		w.hooks.Close()
	})
	w.main = w.client(w.up.Connect("test", "key", "token", w.api.URL))
	w.order(200, "hooks", object{"account": w.main.clientID, "callback_url": w.hooks.URL + "/in", "callback_token": "token"})
	return w
}

func (w *world) write(journal []byte) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.state, "journal.jsonl"), journal, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) begin() {
	w.t.Helper()
	var clock kit.Clock = w
	if w.movable != nil {
		clock = w.movable
	}
	var err error
	w.env, err = kit.Open(kit.Config{Provider: "wallet1", StateDir: w.state, Token: "open", Clock: clock})
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
	w.write(append(left, `[{"t":"transf`...))
	w.begin()
}

// order gives an order of the control API.
func (w *world) order(status int, name string, body object) object {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.api.URL+"/_sandbox/"+name, encode(w.t, body))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer open")
	got, answer, err := w.do(request)
	if err != nil || got != status {
		w.t.Fatalf("%s %v: %d %v %v, want %d", name, body, got, answer, err, status)
	}
	return answer
}

func encode(t testing.TB, body object) *bytes.Reader {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(data)
}

// do returns the error of a connection that was cut, or of an answer that is
// no JSON.
func (w *world) do(request *http.Request) (int, object, error) {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	var answer object
	err = json.NewDecoder(response.Body).Decode(&answer)
	return response.StatusCode, answer, err
}

// next waits for a notice and checks its signature.
func (w *world) next() event {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	select {
	case e := <-w.events:
		return e
	case <-ctx.Done():
		w.t.Fatal("no notice came")
		return event{}
	}
}

// silent fails if a notice that is due now has not been received by next.
func (w *world) silent() {
	w.t.Helper()
	w.env.Webhooks.Tried(w.t.Context())
	select {
	case e := <-w.events:
		w.t.Errorf("an unexpected notice: %s", e.raw)
	default:
	}
}

// signed reports whether a notice carries the issuer's signature.
func (e event) signed(c *client) bool {
	raw, err := base64.StdEncoding.DecodeString(e.header.Get("X-Signature"))
	digest := sha256.Sum256(e.raw)
	text := sha256.Sum256([]byte("POST:/v1.0/debit/emoney/transfer-bank/notify.htm:" + hex.EncodeToString(digest[:]) + ":" + e.header.Get("X-Timestamp")))
	return err == nil && rsa.VerifyPKCS1v15(c.issuer, crypto.SHA256, text[:], raw) == nil &&
		e.header.Get("X-Partner-Id") == c.partnerID && e.header.Get("X-External-Id") != ""
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

// client is a merchant's side of an account. It signs by code of its own.
type client struct {
	w         *world
	account   string
	clientID  string
	partnerID string
	channelID string
	payer     string
	secret    string
	encoding  string
	signature string
	key       *rsa.PrivateKey
	issuer    *rsa.PublicKey
	token     string
	external  atomic.Int64
}

// client reads the credentials as the plugin gets them.
func (w *world) client(of kit.Connection) *client {
	w.t.Helper()
	data, err := json.Marshal(of.Credentials)
	if err != nil {
		w.t.Fatal(err)
	}
	var told map[string]any
	if err := json.Unmarshal(data, &told); err != nil {
		w.t.Fatal(err)
	}
	c := &client{
		w: w, account: of.Account, clientID: text(told, "client_id"), partnerID: text(told, "partner_id"),
		channelID: text(told, "channel_id"), payer: text(told, "customer_number"), secret: text(told, "client_secret"),
		encoding: text(told, "signature_encoding"), signature: text(told, "signature"),
	}
	private, _ := pem.Decode([]byte(text(told, "private_key")))
	public, _ := pem.Decode([]byte(text(told, "provider_public_key")))
	if private == nil || public == nil {
		w.t.Fatalf("no keys in %s", data)
	}
	one, err := x509.ParsePKCS8PrivateKey(private.Bytes)
	other, err2 := x509.ParsePKIXPublicKey(public.Bytes)
	if err != nil || err2 != nil {
		w.t.Fatal(err, err2)
	}
	c.key, _ = one.(*rsa.PrivateKey)
	c.issuer, _ = other.(*rsa.PublicKey)
	return c
}

func (c *client) rsa(text string) string {
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, c.key, crypto.SHA256, digest[:])
	if err != nil {
		c.w.t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}

func (c *client) now() string {
	now := c.w.clock.Now()
	if c.w.movable != nil {
		now = time.Now() // a caller's clock is moved by nobody
	}
	return now.In(time.FixedZone("", 7*3600)).Format("2006-01-02T15:04:05-07:00")
}

// request makes a signed request; change is done before it is signed, so that
// only what a test means to be wrong is wrong.
func (c *client) request(path string, body any, change ...func(http.Header)) *http.Request {
	c.w.t.Helper()
	raw, ok := body.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			c.w.t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(c.w.t.Context(), http.MethodPost, c.w.api.URL+path, bytes.NewReader(raw))
	if err != nil {
		c.w.t.Fatal(err)
	}
	h := request.Header
	h.Set("Content-Type", "application/json")
	h.Set("X-TIMESTAMP", c.now())
	h.Set("X-PARTNER-ID", c.partnerID)
	h.Set("X-EXTERNAL-ID", fmt.Sprint(1000+c.external.Add(1)))
	h.Set("CHANNEL-ID", c.channelID)
	if c.signature == "symmetric" {
		h.Set("Authorization", "Bearer "+c.token)
	}
	for _, f := range change {
		f(h)
	}
	if h.Get("X-SIGNATURE") == "" {
		h.Set("X-SIGNATURE", c.sign(path, raw, h))
	}
	return request
}

func (c *client) sign(path string, raw []byte, h http.Header) string {
	digest := sha256.Sum256(raw)
	hash, timestamp := hex.EncodeToString(digest[:]), h.Get("X-TIMESTAMP")
	if c.signature == "asymmetric" {
		return c.rsa("POST:" + path + ":" + hash + ":" + timestamp)
	}
	mac := hmac.New(sha512.New, []byte(c.secret))
	mac.Write([]byte("POST:" + path + ":" + strings.TrimPrefix(h.Get("Authorization"), "Bearer ") + ":" + hash + ":" + timestamp))
	if c.encoding == "hex" {
		return hex.EncodeToString(mac.Sum(nil))
	}
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// login gets a token and returns the answer.
func (c *client) login(change ...func(http.Header)) object {
	c.w.t.Helper()
	request, err := http.NewRequestWithContext(c.w.t.Context(), http.MethodPost, c.w.api.URL+"/v1.0/access-token/b2b",
		encode(c.w.t, object{"grantType": "client_credentials"}))
	if err != nil {
		c.w.t.Fatal(err)
	}
	h := request.Header
	h.Set("Content-Type", "application/json")
	h.Set("X-TIMESTAMP", c.now())
	h.Set("X-CLIENT-KEY", c.clientID)
	h.Set("X-SIGNATURE", c.rsa(c.clientID+"|"+c.now()))
	for _, f := range change {
		f(h)
	}
	status, answer, err := c.w.do(request)
	if code := text(answer, "responseCode"); err != nil || !strings.HasPrefix(code, fmt.Sprint(status)) {
		c.w.t.Fatalf("token: %d %v %v", status, answer, err)
	}
	if token := text(answer, "accessToken"); token != "" {
		c.token = token
	}
	return answer
}

// post calls a service; the HTTP status must be the code's.
func (c *client) post(path string, body any, change ...func(http.Header)) object {
	c.w.t.Helper()
	if c.token == "" && c.signature == "symmetric" {
		c.login()
	}
	status, answer, err := c.w.do(c.request(path, body, change...))
	code := text(answer, "responseCode")
	if err != nil || len(code) != 7 || !strings.HasPrefix(code, fmt.Sprint(status)) || text(answer, "responseMessage") == "" {
		c.w.t.Fatalf("%s: %d %v %v", path, status, answer, err)
	}
	return answer
}

// want fails unless an answer has a code.
func (c *client) want(code string, answer object) object {
	c.w.t.Helper()
	if text(answer, "responseCode") != code {
		c.w.t.Errorf("%v, want %s", answer, code)
	}
	return answer
}

func merged(body object, more []object) object {
	for _, m := range more {
		for name, v := range m {
			body[name] = v
		}
	}
	return body
}

func topupOf(ref, phone string, amount money.Amount, more ...object) object {
	return merged(object{"partnerReferenceNo": ref, "customerNumber": phone, "amount": rupiah(amount)}, more)
}

func (c *client) bankOf(ref, code, number string, amount money.Amount, more ...object) object {
	return merged(object{
		"partnerReferenceNo": ref, "customerNumber": c.payer, "beneficiaryBankCode": code,
		"beneficiaryAccountNumber": number, "amount": rupiah(amount),
	}, more)
}

func (c *client) topup(ref, phone string, amount money.Amount, more ...object) object {
	c.w.t.Helper()
	return c.post("/v1.0/emoney/topup", topupOf(ref, phone, amount, more...))
}

func (c *client) bank(ref, number string, amount money.Amount, more ...object) object {
	c.w.t.Helper()
	return c.post("/v1.0/emoney/transfer-bank", c.bankOf(ref, "014", number, amount, more...))
}

// status asks for a transfer: by the service's own number, 38 or 00.
func (c *client) status(code, ref string) object {
	c.w.t.Helper()
	path := map[string]string{"38": "/v1.0/emoney/topup-status", "00": "/v1.0/emoney/transfer-bank-status"}[code]
	return c.post(path, object{"originalPartnerReferenceNo": ref, "serviceCode": code})
}

// state is the code of a status answer and, when there is one, the state.
func (c *client) state(code, ref string) string {
	c.w.t.Helper()
	answer := c.status(code, ref)
	return strings.TrimSpace(text(answer, "responseCode") + " " + text(answer, "latestTransactionStatus"))
}

// balance is what is left, in rupiah.
func (c *client) balance() money.Amount {
	c.w.t.Helper()
	answer := c.want("2001100", c.post("/v1.0/balance-inquiry", object{"accountNo": c.payer}))
	infos, _ := answer["accountInfos"].([]any)
	info, _ := infos[0].(object)
	return parse(c.w.t, value(info, "availableBalance"))
}

// spent is what has left the opening balance.
func (c *client) spent() money.Amount {
	c.w.t.Helper()
	return 1_000_000_000 - c.balance()
}

func parse(t testing.TB, text string) money.Amount {
	t.Helper()
	amount, err := money.Parse(text)
	if err != nil || amount.Decimal2() != text {
		t.Fatalf("amount %q: %v", text, err)
	}
	return amount
}
