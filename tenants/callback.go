package tenants

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

const (
	callbackPrefix = "whsec_"
	callbackBytes  = 32
	// callbackMinBytes is the least that the Standard Webhooks specification accepts.
	callbackMinBytes = 24
)

// CallbackSecret is the sealed secret with which callbacks to a merchant are signed in one mode, and where they go when a
// request names no URL. While a rotation is under way there are two: both sign as Standard Webhooks has it, and one alone
// makes the service's own signature.
type CallbackSecret struct {
	MerchantID MerchantID
	Mode       Mode
	Sealed     []byte
	Next       []byte // sealed; nil unless a rotation is under way
	NextSigns  bool   // whose own signature it is
	URL        string // the default, or ""
}

func (s CallbackSecret) check() error { return checkClosed(s.Mode, modes, "mode") }

func (s CallbackSecret) clone() CallbackSecret {
	s.Sealed = bytes.Clone(s.Sealed)
	s.Next = append([]byte(nil), s.Next...) // nil where it is empty
	return s
}

// NewCallbackSecret draws a secret in the form of Standard Webhooks: `whsec_` and 32 random bytes in base64.
func NewCallbackSecret(random io.Reader) (Secret, error) {
	var raw [callbackBytes]byte
	if _, err := io.ReadFull(random, raw[:]); err != nil {
		return Secret{}, fmt.Errorf("tenants: draw callback secret: %w", err)
	}
	return callbackText(raw[:]), nil
}

func callbackText(raw []byte) Secret {
	return NewSecret(callbackPrefix + base64.StdEncoding.EncodeToString(raw))
}

// callbackRaw is what is sealed: the bytes behind the text, which are a quarter smaller.
func callbackRaw(s Secret) ([]byte, error) {
	text, ok := strings.CutPrefix(s.Reveal(), callbackPrefix)
	raw, err := base64.StdEncoding.Strict().DecodeString(text)
	if !ok || err != nil || len(raw) < callbackMinBytes {
		return nil, fmt.Errorf("%w: a callback secret is %s and at least %d bytes in base64", ErrInvalid, callbackPrefix, callbackMinBytes)
	}
	return raw, nil
}
