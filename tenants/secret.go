package tenants

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

// Secret holds a plaintext on its way to the one place that needs it. Whatever prints, logs or encodes it gets
// "[redacted]"; only Reveal gives the text.
type Secret struct {
	// text is a pointer because fmt prints a Secret in somebody's unexported field without asking its methods, and then
	// finds an address.
	text *string
}

// NewSecret wraps a plaintext.
func NewSecret(text string) Secret { return Secret{text: &text} }

// Reveal returns the plaintext, for showing it once or for using it. The result must not be logged.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether there is no secret.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// String hides the secret.
func (Secret) String() string { return redacted }

// GoString hides the secret.
func (Secret) GoString() string { return redacted }

// Format hides the secret from every verb: for %d and the like fmt would otherwise read the field itself.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue hides the secret from slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the secret from encodings that use text, YAML among them.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// MarshalJSON hides the secret.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// NotifyToken is the unguessable part of the URL at which a provider notifies one connection. Whoever knows it can
// reach that route, so it hides itself from fmt, slog and JSON; use string(token) to build the URL or to store it. It
// has no String method on purpose: database drivers prefer that to the value.
type NotifyToken string

// notifyTokenBytes is how much randomness a token carries.
const notifyTokenBytes = 32

// NewNotifyToken draws a token from random.
func NewNotifyToken(random io.Reader) (NotifyToken, error) {
	var raw [notifyTokenBytes]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return "", fmt.Errorf("tenants: draw notify token: %w", err)
	}
	return notifyToken(raw[:]), nil
}

func notifyToken(raw []byte) NotifyToken {
	return NotifyToken(base64.RawURLEncoding.EncodeToString(raw))
}

// raw returns the token's bytes, and false for a text that no NewNotifyToken wrote.
func (t NotifyToken) raw() (raw [notifyTokenBytes]byte, ok bool) {
	if len(t) != base64.RawURLEncoding.EncodedLen(notifyTokenBytes) {
		return raw, false
	}
	n, err := base64.RawURLEncoding.Strict().Decode(raw[:], []byte(t))
	return raw, err == nil && n == notifyTokenBytes
}

// Format hides the token from every verb.
func (NotifyToken) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue hides the token from slog.
func (NotifyToken) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON hides the token.
func (NotifyToken) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }
