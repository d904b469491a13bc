package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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

// mailbox receives callbacks as a merchant does, and answers by their path.
type mailbox struct {
	url   string
	takes time.Duration // each answer

	mu       sync.Mutex
	received []letter
}

type letter struct {
	at     time.Time
	path   string
	header http.Header
	raw    []byte
	Event  string                     `json:"event"`
	Data   map[string]json.RawMessage `json:"data"`
}

func (l letter) id() string { return l.header.Get("webhook-id") }

func (l letter) sequence() int {
	n, _ := strconv.Atoi(l.header.Get("X-Svc-Event-Sequence"))
	return n
}

// field is a text of the data.
func (l letter) field(name string) (text string) {
	_ = json.Unmarshal(l.Data[name], &text)
	return text
}

func newMailbox(t *testing.T, takes time.Duration) *mailbox {
	t.Helper()
	b := &mailbox{takes: takes}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	b.url = server.URL
	return b
}

func (b *mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway was killed while it sent
	}
	one := letter{at: time.Now(), path: r.URL.Path, header: r.Header, raw: raw}
	_ = json.Unmarshal(raw, &one)
	first := len(b.on(r.URL.Path)) == 0
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

func (b *mailbox) all() []letter {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.received)
}

func (b *mailbox) on(path string) []letter {
	return slices.DeleteFunc(b.all(), func(l letter) bool { return l.path != path })
}

// of are the letters about a payment.
func (b *mailbox) of(reference string) []letter {
	return slices.DeleteFunc(b.all(), func(l letter) bool { return l.field("external_id") != reference })
}

// wait waits for so many letters about a payment.
func (b *mailbox) wait(t *testing.T, reference string, count int) []letter {
	t.Helper()
	await(t, paidWithin, fmt.Sprintf("%d callbacks of %s", count, reference), func() bool { return len(b.of(reference)) >= count })
	return b.of(reference)
}

// createFor makes a payment whose callbacks go to a URL.
func (s shop) createFor(t *testing.T, url string, others fields) payment {
	t.Helper()
	a := s.ask(t, "/payments/create", s.order(others), "X-Callback-URL", url)
	if !a.Success {
		t.Fatalf("create: %s", a)
	}
	return a.payment()
}

// TestCallbacks receives the callbacks of every end that a payment can have,
// and answers some of them badly.
func TestCallbacks(t *testing.T) {
	t.Parallel()
	p := start(t, settings{})
	box := newMailbox(t, 0)
	for name, check := range map[string]func(*testing.T, *program, *mailbox){
		"every end": checkEveryEnd, "410": checkGone, "500": checkRetried, "redirect": checkRedirect,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, p, box)
		})
	}
}

func checkEveryEnd(t *testing.T, p *program, box *mailbox) {
	live, test := p.shop(large, "live"), p.shop(small, "test")
	secretOf := map[string]string{
		live.merchant: p.Merchants[large].CallbackSecret, test.merchant: p.Merchants[small].TestCallbackSecret,
	}
	url := box.url + "/shop?order=1&x=a/b"
	verified := func(s shop, one letter, event string) {
		t.Helper()
		wantVerified(t, one, secretOf[s.merchant])
		if one.Event != event || one.header.Get("Content-Type") != "application/json" || one.path != "/shop" {
			t.Errorf("%s %v %s", one.path, one.header, one.raw)
		}
	}
	for _, s := range []shop{live, test} {
		code := s.createFor(t, url, fields{"type": "qris", "amount": 31000, "metadata": fields{"table": "7"}})
		link := s.createFor(t, url, fields{"amount": 31001})
		late := s.createFor(t, url, fields{"type": "qris", "amount": 31002})
		refused := s.order(fields{"type": "qris", "amount": 10000001}) // more than the provider takes
		if a := s.ask(t, "/payments/create", refused, "X-Callback-URL", url); a.Success {
			t.Fatalf("a refused payment: %s", a)
		}
		p.pay(t, fields{"qr_string": code.QRString})
		p.pay(t, fields{"url": p.providersPage(t, link.CheckoutURL)})
		for _, made := range []payment{code, link} {
			one := box.wait(t, made.ExternalID, 1)[0]
			verified(s, one, "payments.status_update")
			wantAsStatus(t, s, one, "PAID")
		}
		one := box.wait(t, refused["external_id"].(string), 1)[0]
		verified(s, one, "payments.status_update")
		if one.field("status") != "FAILED" {
			t.Errorf("a refused payment: %s", one.raw)
		}
		if a := s.ask(t, "/payments/cancel", fields{"external_id": late.ExternalID}); !a.Success {
			t.Fatalf("cancel: %s", a)
		}
		expired := box.wait(t, late.ExternalID, 1)[0]
		verified(s, expired, "payments.status_update")
		wantAsStatus(t, s, expired, "EXPIRED")
		p.pay(t, fields{"qr_string": late.QRString})
		paid := box.wait(t, late.ExternalID, 2)[1]
		verified(s, paid, "payments.paid_late")
		wantAsStatus(t, s, paid, "EXPIRED")
		if paid.sequence() <= expired.sequence() || paid.id() == expired.id() || paid.Data["paid_late_at"] == nil {
			t.Errorf("late money: %v %s\nafter %v %s", paid.header, paid.raw, expired.header, expired.raw)
		}
	}
}

// wantAsStatus wants a callback that tells what the status answer tells, with
// the time of the change and nothing else.
func wantAsStatus(t *testing.T, s shop, one letter, status string) {
	t.Helper()
	told := s.ask(t, "/payments/status", fields{"external_id": one.field("external_id")})
	var want map[string]json.RawMessage
	if err := json.Unmarshal(told.Data, &want); err != nil {
		t.Fatal(err)
	}
	got := maps.Clone(one.Data)
	at, err := time.Parse(time.RFC3339, one.field("timestamp"))
	if delete(got, "timestamp"); err != nil || !strings.HasSuffix(one.field("timestamp"), "Z") || time.Since(at) > time.Minute {
		t.Errorf("timestamp %s: %v", one.Data["timestamp"], err)
	}
	same := maps.EqualFunc(got, want, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(one.raw, &whole); err != nil || !same || len(whole) != 2 || one.field("status") != status {
		t.Errorf("the callback is %s\nand the status %s (%v)", one.raw, told.Data, err)
	}
}

// wantVerified verifies both signatures as merchants do.
func wantVerified(t *testing.T, one letter, secret string) {
	t.Helper()
	library, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := library.Verify(one.raw, one.header); err != nil {
		t.Errorf("the library says %v: %v %s", err, one.header, one.raw)
	}
	if err := library.Verify(append(slices.Clone(one.raw), ' '), one.header); err == nil {
		t.Error("the library verifies another body, too")
	}
	if uuid.Validate(one.id()) != nil || one.sequence() < 1 {
		t.Errorf("headers %v", one.header)
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Log("openssl is not installed: nobody has tried its line")
		return
	}
	openssl := exec.CommandContext(t.Context(), "openssl", "dgst", "-sha256", "-hmac", secret)
	openssl.Stdin = bytes.NewReader(one.raw)
	out, err := openssl.Output()
	if _, digest, _ := strings.Cut(strings.TrimSpace(string(out)), "= "); err != nil || digest != one.header.Get("X-Svc-Signature") {
		t.Errorf("openssl says %s (%v), the header %s", out, err, one.header.Get("X-Svc-Signature"))
	}
}

// paidFor makes a payment and has it paid, so that its callback comes.
func paidFor(t *testing.T, p *program, box *mailbox, path string) payment {
	t.Helper()
	made := p.shop(large, "live").createFor(t, box.url+path, fields{"type": "qris", "amount": 32000})
	p.pay(t, fields{"qr_string": made.QRString})
	return made
}

// standing is how a payment's one callback stands in the database.
func standing(t *testing.T, p *program, made payment) (state string, attempts int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	err = conn.QueryRow(t.Context(), "SELECT state, attempts FROM callbacks WHERE reference = $1", made.ExternalID).Scan(&state, &attempts)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		t.Fatal(err)
	}
	return state, attempts
}

func checkGone(t *testing.T, p *program, box *mailbox) {
	made := paidFor(t, p, box, "/gone")
	await(t, paidWithin, "the end", func() bool { state, _ := standing(t, p, made); return state == "gone" })
	<-time.After(7 * time.Second) // when a retry would have come
	if got := len(box.on("/gone")); got != 1 {
		t.Errorf("sent %d times to a receiver that is gone", got)
	}
}

func checkRetried(t *testing.T, p *program, box *mailbox) {
	made := paidFor(t, p, box, "/failing")
	tries := box.wait(t, made.ExternalID, 2)
	if after := tries[1].at.Sub(tries[0].at); after < 4500*time.Millisecond || after > 8*time.Second {
		t.Errorf("tried again after %v, want 5 s or a tenth more or less", after)
	}
	if tries[0].id() != tries[1].id() || !bytes.Equal(tries[0].raw, tries[1].raw) || tries[0].sequence() != tries[1].sequence() {
		t.Errorf("%v %s\nand then %v %s", tries[0].header, tries[0].raw, tries[1].header, tries[1].raw)
	}
	wantVerified(t, tries[1], p.Merchants[large].CallbackSecret)
	await(t, paidWithin, "delivered", func() bool { state, _ := standing(t, p, made); return state == "delivered" })
	if _, attempts := standing(t, p, made); attempts != 2 {
		t.Errorf("%d attempts are counted", attempts)
	}
}

func checkRedirect(t *testing.T, p *program, box *mailbox) {
	made := paidFor(t, p, box, "/moved")
	await(t, paidWithin, "a try", func() bool { _, attempts := standing(t, p, made); return attempts >= 1 })
	if state, _ := standing(t, p, made); state != "waiting" || len(box.on("/elsewhere")) != 0 {
		t.Errorf("it is %s, and %d were sent to where the redirect leads", state, len(box.on("/elsewhere")))
	}
}
