package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Receiver receives callbacks as a merchant does, and answers by their path.
type Receiver struct {
	URL   string
	takes time.Duration // each answer

	mu       sync.Mutex
	received []Callback
}

// Callback is one request that a Receiver got.
type Callback struct {
	At     time.Time
	Path   string
	Header http.Header
	Raw    []byte
	Event  string                     `json:"event"`
	Data   map[string]json.RawMessage `json:"data"`
}

// ID is the same in each attempt of a callback.
func (l Callback) ID() string { return l.Header.Get("webhook-id") }

// Sequence orders the callbacks of a merchant.
func (l Callback) Sequence() int {
	n, _ := strconv.Atoi(l.Header.Get("X-Svc-Event-Sequence"))
	return n
}

// Field is a text of the data.
func (l Callback) Field(name string) (text string) {
	_ = json.Unmarshal(l.Data[name], &text)
	return text
}

// NewReceiver is a receiver that takes so long for each answer.
func NewReceiver(t *testing.T, takes time.Duration) *Receiver {
	t.Helper()
	b := &Receiver{takes: takes}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.URL = server.URL
	return b
}

// ServeHTTP takes a callback. /gone answers 410, /failing 500 once and /moved with
// a redirect.
func (b *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway was killed while it sent
	}
	one := Callback{At: time.Now(), Path: r.URL.Path, Header: r.Header, Raw: raw}
	_ = json.Unmarshal(raw, &one)
	first := len(b.On(r.URL.Path)) == 0
	b.mu.Lock()
	b.received = append(b.received, one)
	b.mu.Unlock()
	<-time.After(b.takes)
	switch {
	case r.URL.Path == "/gone":
		w.WriteHeader(http.StatusGone)
	case r.URL.Path == "/failing" && first:
		w.WriteHeader(http.StatusInternalServerError)
	case r.URL.Path == "/moved":
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// All are the callbacks so far.
func (b *Receiver) All() []Callback {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.received)
}

// On are the callbacks to a path.
func (b *Receiver) On(path string) []Callback {
	return slices.DeleteFunc(b.All(), func(l Callback) bool { return l.Path != path })
}

// Of are the callbacks about a payment.
func (b *Receiver) Of(reference string) []Callback {
	return slices.DeleteFunc(b.All(), func(l Callback) bool { return l.Field("external_id") != reference })
}

// Wait waits for so many callbacks about a payment.
func (b *Receiver) Wait(t *testing.T, reference string, count int) []Callback {
	t.Helper()
	Await(t, PaidWithin, fmt.Sprintf("%d callbacks of %s", count, reference), func() bool { return len(b.Of(reference)) >= count })
	return b.Of(reference)
}

// WantVerified verifies both signatures as merchants do.
func WantVerified(t *testing.T, one Callback, secret string) {
	t.Helper()
	library, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := library.Verify(one.Raw, one.Header); err != nil {
		t.Errorf("the library says %v: %v %s", err, one.Header, one.Raw)
	}
	if err := library.Verify(append(slices.Clone(one.Raw), ' '), one.Header); err == nil {
		t.Error("the library verifies another body, too")
	}
	if uuid.Validate(one.ID()) != nil || one.Sequence() < 1 {
		t.Errorf("headers %v", one.Header)
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Log("openssl is not installed: nobody has tried its line")
		return
	}
	openssl := exec.CommandContext(t.Context(), "openssl", "dgst", "-sha256", "-hmac", secret)
	openssl.Stdin = bytes.NewReader(one.Raw)
	out, err := openssl.Output()
	if _, digest, _ := strings.Cut(strings.TrimSpace(string(out)), "= "); err != nil || digest != one.Header.Get("X-Svc-Signature") {
		t.Errorf("openssl says %s (%v), the header %s", out, err, one.Header.Get("X-Svc-Signature"))
	}
}

// UndeliveredCallbacks counts the deliveries that have not ended.
func UndeliveredCallbacks(t *testing.T, p *Program) (n int) {
	t.Helper()
	p.QueryRow(t, &n, "SELECT count(*) FROM callbacks WHERE state = 'waiting'")
	return n
}

// InboxEntry is a callback as the sandbox's inbox shows it.
type InboxEntry struct {
	Verified  bool              `json:"verified"`
	Reason    string            `json:"reason"`
	By        map[string]string `json:"by"`
	WebhookID string            `json:"webhook_id"`
	Event     string            `json:"event"`
	Reference string            `json:"reference"`
	Body      string            `json:"body"`
}

// AwaitInbox waits for one callback of an order in the inbox.
func (p *Program) AwaitInbox(t testing.TB, event, reference string) InboxEntry {
	t.Helper()
	var found InboxEntry
	Await(t, PaidWithin, event+" of "+reference+" in the inbox", func() bool {
		var all []InboxEntry
		p.Sandbox(t, "/inbox.json", nil, &all)
		at := slices.IndexFunc(all, func(a InboxEntry) bool { return a.Event == event && a.Reference == reference })
		if at >= 0 {
			found = all[at]
		}
		return at >= 0
	})
	return found
}
