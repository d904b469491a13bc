package tenants

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
)

// prints returns everything that fmt, slog and JSON make of a value and of what holds it.
func prints(t *testing.T, value any) []string {
	t.Helper()
	holder := struct {
		Public string
		Held   any
	}{"seen", value}
	var out []string
	for _, verb := range strings.Fields("%v %+v %#v %s %q %x %X %d %o %t %e %c %U %10s %-80v") {
		out = append(out, fmt.Sprintf(verb, value), fmt.Sprintf(verb, holder), fmt.Sprintf(verb, []any{value}))
	}
	out = append(out, fmt.Sprint(value), fmt.Errorf("failed with %v", value).Error())
	for _, v := range []any{value, holder, map[string]any{"k": value}} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(text))
	}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).With("with", value).Info("m", "value", value, "holder", holder, slog.Group("g", "value", value))
	}
	return append(out, log.String())
}

func TestSecretsHideThemselves(t *testing.T) {
	t.Parallel()
	token, err := NewNotifyToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, _, _ := mustKey(t, Live)
	secret := NewSecret(text)
	cases := map[string]struct {
		value any
		plain string
	}{
		"secret":     {secret, secret.Reveal()},
		"pointer":    {&secret, secret.Reveal()},
		"issued key": {IssuedKey{Secret: secret}, secret.Reveal()},
		"token":      {token, string(token)},
		"connection": {Connection{NotifyToken: token}, string(token)},
	}
	for name, c := range cases {
		all := prints(t, c.value)
		for _, text := range all {
			if strings.Contains(text, c.plain) || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", c.plain)) {
				t.Errorf("%s: the plaintext is in %q", name, text)
			}
		}
		if !strings.Contains(strings.Join(all, ""), redacted) {
			t.Errorf("%s: nothing says %s", name, redacted)
		}
	}
}

// TestSecretInUnexportedField prints where fmt can't ask the Secret's methods.
func TestSecretInUnexportedField(t *testing.T) {
	t.Parallel()
	holder := struct{ hidden Secret }{NewSecret("open sesame")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%p"} {
		if text := fmt.Sprintf(verb, holder); strings.Contains(text, "sesame") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
}

func TestSecretRevealsOnRequest(t *testing.T) {
	t.Parallel()
	s := NewSecret("open sesame")
	if s.Reveal() != "open sesame" || s.IsZero() || !(Secret{}).IsZero() {
		t.Errorf("Reveal = %q, IsZero = %v", s.Reveal(), s.IsZero())
	}
	for _, got := range []string{s.String(), s.GoString()} {
		if got != redacted {
			t.Errorf("printed %q, want %q", got, redacted)
		}
	}
	if text, err := s.MarshalText(); string(text) != redacted || err != nil {
		t.Errorf("MarshalText = %q, %v", text, err)
	}
}

func TestNotifyTokenIsThirtyTwoBytes(t *testing.T) {
	t.Parallel()
	source := bytes.Repeat([]byte{0xfb, 0xff}, 16)
	token, err := NewNotifyToken(bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	if raw, ok := token.raw(); !ok || !bytes.Equal(raw[:], source) {
		t.Errorf("raw = %x, %v; want %x", raw, ok, source)
	}
	for _, wrong := range []NotifyToken{"", token[1:], token + "A", "=" + token[1:], NotifyToken(strings.Repeat("/", 43)), token[:42] + "B"} {
		if _, ok := wrong.raw(); ok {
			t.Errorf("%q is taken for a token", string(wrong))
		}
	}
	if _, err := NewNotifyToken(strings.NewReader("short")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("randomness that ends: %v", err)
	}
}

func TestCallbackSecretIsStandardWebhooks(t *testing.T) {
	t.Parallel()
	source := bytes.Repeat([]byte{7}, 32)
	secret, err := NewCallbackSecret(bytes.NewReader(source))
	if err != nil {
		t.Fatal(err)
	}
	if want := "whsec_" + base64.StdEncoding.EncodeToString(source); secret.Reveal() != want {
		t.Errorf("secret = %s, want %s", secret.Reveal(), want)
	}
	if _, err := NewCallbackSecret(strings.NewReader("short")); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("randomness that ends: %v", err)
	}
}
