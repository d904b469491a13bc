package callback

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	secretPrefix   = "whsec_"
	secretMinBytes = 24 // the least that the Standard Webhooks specification accepts
	maxIDLength    = 255

	defaultService = "Svc"
)

var serviceForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,31}$`)

// ErrMessage is what Sign wraps when a message can't be sent by anybody.
var ErrMessage = errors.New("the message is not fit to be sent")

// ErrSecret is what Sign wraps when a secret is missing or malformed. Its text
// never holds the secret.
var ErrSecret = errors.New("the callback secret is not usable")

// Message is one callback, the same on every try.
type Message struct {
	ID       string // of the event: webhook-id, the same on every try; no dots, because it is signed beside other parts
	Sequence int    // the event's place in its movement's history, from 1
	URL      string
	Body     []byte // sent and signed as it is
}

// Secret is a callback secret as a merchant sees it: `whsec_` and at least 24
// bytes in base64. It hides itself from logs and formatted text.
type Secret string

const hidden = secretPrefix + "…"

// String hides the secret.
func (Secret) String() string { return hidden }

// GoString hides the secret.
func (Secret) GoString() string { return hidden }

// MarshalText hides the secret.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// LogValue hides the secret.
func (Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// key checks the secret and returns the signer of Standard Webhooks, whose own
// constructor would take an empty secret.
func (s Secret) key() (*standardwebhooks.Webhook, error) {
	text, ok := strings.CutPrefix(string(s), secretPrefix)
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(raw) < secretMinBytes || strings.ContainsAny(text, "\r\n") {
		return nil, fmt.Errorf("%w: it must be %s and at least %d bytes in base64", ErrSecret, secretPrefix, secretMinBytes)
	}
	return standardwebhooks.NewWebhookRaw(raw)
}

// Secrets are what a callback is signed with.
type Secrets struct {
	Current Secret
	Next    Secret // empty unless a rotation is under way
	// SignWithNext is the merchant's choice, during a rotation, of the moment at
	// which the service's own signature changes, which can hold one value only.
	SignWithNext bool
}

// inOrder returns the secret of the service's own signature first.
func (s Secrets) inOrder() []Secret {
	switch {
	case s.SignWithNext:
		return []Secret{s.Next, s.Current}
	case s.Next != "":
		return []Secret{s.Current, s.Next}
	}
	return []Secret{s.Current}
}

// Sign returns the headers that prove where a message comes from: the service's
// own signature and sequence under its short name (Svc if empty), and those of
// Standard Webhooks with the time of this try. Errors are ErrMessage and
// ErrSecret.
func Sign(service string, m Message, s Secrets, at time.Time) (http.Header, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	secrets := s.inOrder()
	signatures := make([]string, 0, len(secrets))
	for _, secret := range secrets {
		key, err := secret.key()
		if err != nil {
			return nil, err
		}
		signature, err := key.Sign(m.ID, at, m.Body)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrMessage, err)
		}
		signatures = append(signatures, signature)
	}
	service = cmp.Or(service, defaultService)
	h := http.Header{}
	h.Set(ownHeader(service), ownSignature(secrets[0], m.Body))
	h.Set("X-"+service+"-Event-Sequence", strconv.Itoa(m.Sequence))
	h.Set(standardwebhooks.HeaderWebhookID, m.ID)
	h.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return h, nil
}

// ownSignature is keyed with the whole text of the secret, so that a merchant
// can verify it with one line of any language and nothing to decode.
func ownSignature(s Secret, body []byte) string {
	mac := hmac.New(sha256.New, []byte(s))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

func (m Message) check() error {
	switch {
	case m.ID == "" || len(m.ID) > maxIDLength || !visibleASCII(m.ID) || strings.Contains(m.ID, "."):
		return fmt.Errorf("%w: its id must be 1 to %d visible characters without dots", ErrMessage, maxIDLength)
	case m.Sequence < 1:
		return fmt.Errorf("%w: its sequence begins with 1", ErrMessage)
	case len(m.Body) == 0:
		return fmt.Errorf("%w: its body is empty", ErrMessage)
	}
	return nil
}

func visibleASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}
