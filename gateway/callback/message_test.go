package callback

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func mustSign(t *testing.T, m Message, s Secrets, at time.Time) http.Header {
	t.Helper()
	h, err := Sign("", m, s, at)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// verify asks the standard's own library.
func verify(t *testing.T, s Secret, body []byte, h http.Header) error {
	t.Helper()
	key, err := standardwebhooks.NewWebhook(string(s))
	if err != nil {
		t.Fatal(err)
	}
	return key.Verify(body, h)
}

// TestSignedBytes holds the bytes: merchants' code depends on them. The values
// were made with openssl dgst.
func TestSignedBytes(t *testing.T) {
	t.Parallel()
	m := Message{ID: "evt_1", Sequence: 7, Body: []byte(`{"a":1}`)}
	h := mustSign(t, m, Secrets{Current: secretA, Next: secretB}, time.Unix(1700000000, 0))
	for name, want := range map[string]string{
		"X-Svc-Signature":      "0644de49523cf2c6c385a72deab74a857df1aa5a4539f5b8fceeab5813730bc7",
		"X-Svc-Event-Sequence": "7",
		"webhook-id":           "evt_1",
		"webhook-timestamp":    "1700000000",
		"webhook-signature":    "v1,E91RjL3XwKNvhbIjLEB4Oo053Uu727CszikrY+6s9HE= v1,e+4iw85qRatMq+i5E7ziO+WA8+BvW4kqSi2yaFTA3k8=",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if len(h) != 5 {
		t.Errorf("got %v", h)
	}
	renamed, err := Sign("Toko", m, onlyA, time.Unix(1700000000, 0))
	if err != nil || renamed.Get("X-Toko-Signature") != h.Get("X-Svc-Signature") || renamed.Get("X-Toko-Event-Sequence") != "7" {
		t.Errorf("under another name: %v, %v", renamed, err)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	m, now := messageTo("https://shop.example/"), time.Now()
	before := mustSign(t, m, Secrets{Current: secretA}, now)
	under := mustSign(t, m, Secrets{Current: secretA, Next: secretB}, now)
	switched := mustSign(t, m, Secrets{Current: secretA, Next: secretB, SignWithNext: true}, now)
	after := mustSign(t, m, Secrets{Current: secretB}, now)
	const own = "X-Svc-Signature"
	if before.Get(own) != under.Get(own) || switched.Get(own) != after.Get(own) || under.Get(own) == switched.Get(own) {
		t.Error("the service's own signature does not change at the switch alone")
	}
	for name, c := range map[string]struct {
		headers http.Header
		a, b    bool
	}{
		"before": {before, true, false}, "under way": {under, true, true}, "switched": {switched, true, true}, "after": {after, false, true},
	} {
		if err := verify(t, secretA, m.Body, c.headers); (err == nil) != c.a {
			t.Errorf("%s, with the old secret: %v", name, err)
		}
		if err := verify(t, secretB, m.Body, c.headers); (err == nil) != c.b {
			t.Errorf("%s, with the new secret: %v", name, err)
		}
		if verify(t, secretA, append([]byte(" "), m.Body...), c.headers) == nil {
			t.Errorf("%s: a changed body verifies", name)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	t.Parallel()
	good := messageTo("https://shop.example/")
	for name, secrets := range map[string]Secrets{
		"none":              {},
		"only the prefix":   {Current: secretPrefix},
		"no prefix":         {Current: secretA[len(secretPrefix):]},
		"too short":         {Current: secretPrefix + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY="},
		"not base64":        {Current: secretA[:len(secretA)-2] + "!="},
		"base64 for URLs":   {Current: secretPrefix + "__-_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNk"},
		"trailing bits":     {Current: secretPrefix + "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWZ="},
		"a line end":        {Current: secretA + "\n"},
		"a bad next one":    {Current: secretA, Next: "whsec_x"},
		"no next to switch": {Current: secretA, SignWithNext: true},
		"no current":        {Next: secretB},
	} {
		_, err := Sign("", good, secrets, time.Now())
		if !errors.Is(err, ErrSecret) {
			t.Errorf("%s: got %v", name, err)
		}
		if text := string(secrets.Current); err != nil && len(text) > 10 && strings.Contains(err.Error(), text) {
			t.Errorf("%s: the error tells the secret", name)
		}
	}
	for name, change := range map[string]func(*Message){
		"no id":          func(m *Message) { m.ID = "" },
		"a dot":          func(m *Message) { m.ID = "evt.1" },
		"a line end":     func(m *Message) { m.ID = "evt\r\nX: y" },
		"a space":        func(m *Message) { m.ID = "evt 1" },
		"not ASCII":      func(m *Message) { m.ID = "évt" },
		"a long id":      func(m *Message) { m.ID = strings.Repeat("x", maxIDLength+1) },
		"no sequence":    func(m *Message) { m.Sequence = 0 },
		"an empty body":  func(m *Message) { m.Body = nil },
		"below sequence": func(m *Message) { m.Sequence = -1 },
	} {
		m := good
		change(&m)
		if _, err := Sign("", m, onlyA, time.Now()); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestSecretsHide(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", secretA, "secrets", onlyA)
	for _, text := range []string{fmt.Sprint(secretA), fmt.Sprintf("%v %+v %#v %s %q", onlyA, onlyA, onlyA, secretA, secretA), log.String()} {
		if strings.Contains(text, string(secretA[len(secretPrefix):])) || !strings.Contains(text, hidden) {
			t.Errorf("the secret shows: %s", text)
		}
	}
}
