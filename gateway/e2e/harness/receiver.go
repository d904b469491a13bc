package harness

import (
	"bytes"
	"context"
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
	"github.com/jackc/pgx/v5"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Receiver receives callbacks as a merchant does, and answers by their path.
type Receiver struct {
	Url   string
	takes time.Duration // each answer

	mu       sync.Mutex
	received []Callback
}

type Callback struct {
	At     time.Time
	Path   string
	Header http.Header
	Raw    []byte
	Event  string                     `json:"event"`
	Data   map[string]json.RawMessage `json:"data"`
}

func (l Callback) ID() string { return l.Header.Get("webhook-id") }

func (l Callback) Sequence() int {
	n, _ := strconv.Atoi(l.Header.Get("X-Svc-Event-Sequence"))
	return n
}

// Field is a text of the data.
func (l Callback) Field(name string) (text string) {
	_ = json.Unmarshal(l.Data[name], &text)
	return text
}

func NewReceiver(t *testing.T, takes time.Duration) *Receiver {
	t.Helper()
	b := &Receiver{takes: takes}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.Url = server.URL
	return b
}

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

func (b *Receiver) All() []Callback {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.received)
}

func (b *Receiver) On(path string) []Callback {
	return slices.DeleteFunc(b.All(), func(l Callback) bool { return l.Path != path })
}

// Of are the letters about a payment.
func (b *Receiver) Of(reference string) []Callback {
	return slices.DeleteFunc(b.All(), func(l Callback) bool { return l.Field("external_id") != reference })
}

// Wait waits for so many letters about a payment.
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
	conn, err := pgx.Connect(t.Context(), p.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM callbacks WHERE state = 'waiting'").Scan(&n); err != nil {
		t.Fatal(err)
	}
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
