package tenants

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// ErrSealed says that a sealed value could not be opened: it was changed, it belongs to another place, or its key is
// not in the keyset. Which of them is not told.
var ErrSealed = errors.New("tenants: sealed value can't be opened here")

// ErrKeysetUnread says that nothing was sealed, because the keyset's source could not be read: its primary may be another
// one by now.
var ErrKeysetUnread = errors.New("tenants: the keyset can't be read, so that nothing is sealed")

// Vault seals what must not be readable in the database, with the keyset that its source holds at present: a key that is
// added there is used without a restart. It is safe for concurrent use.
type Vault struct {
	source KeysetSource
	log    *slog.Logger
	keys   atomic.Pointer[keyring]

	looking sync.Mutex // guards the rest, and is held while the source is read
	began   time.Time  // the last look
	looked  time.Time  // when it ended
	fault   error      // why it failed
}

// AD names the place of a sealed value. A value opens only in the place it was sealed for, so copying it to another
// merchant, mode, column or provider makes it useless.
type AD struct {
	MerchantID MerchantID
	Mode       Mode
	Column     string
	Provider   Provider // empty where a column has none
}

// The columns of this package.
const (
	columnCredentials    = "connection.credentials"
	columnCallbackSecret = "callback_secret"
)

// bytes writes each part behind its length, so that no two places have the same bytes. It is part of every sealed value
// and can't change.
func (ad AD) bytes() []byte {
	out := []byte("gerbang.v1")
	for _, part := range [...]string{string(ad.MerchantID), string(ad.Mode), ad.Column, string(ad.Provider)} {
		out = binary.BigEndian.AppendUint32(out, uint32(len(part))) //nolint:gosec // ids and names are short
		out = append(out, part...)
	}
	return out
}

// Seal encrypts a plaintext for its place. The result begins with the number of the key that sealed it, which is the
// primary of what the source holds now: nothing may be sealed with a key that is on its way out. So the source is read
// however short ago that was, and where it can't be, the error is ErrKeysetUnread.
func (v *Vault) Seal(plaintext []byte, ad AD) ([]byte, error) {
	if ad.MerchantID == "" || ad.Mode == "" || ad.Column == "" {
		return nil, fmt.Errorf("%w: a sealed value needs merchant, mode and column", ErrInvalid)
	}
	return v.seal(plaintext, ad, 0)
}

// seal is Seal, for which a look that ended within the pause is good enough.
func (v *Vault) seal(plaintext []byte, ad AD, pause time.Duration) ([]byte, error) {
	if err := v.look(pause); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKeysetUnread, err)
	}
	sealed, err := v.keys.Load().aead.Encrypt(plaintext, ad.bytes())
	if err != nil {
		return nil, fmt.Errorf("tenants: seal: %w", err)
	}
	return sealed, nil
}

// Open decrypts what was sealed for the same place, or returns ErrSealed. A key that is not known is looked for in the
// source: another replica may have learnt of it earlier. One that was removed opens for a minute more.
func (v *Vault) Open(sealed []byte, ad AD) ([]byte, error) {
	keys := v.keys.Load()
	plaintext, err := keys.open(sealed, ad.bytes(), time.Now())
	if err != nil && !keys.opens[SealedBy(sealed)] {
		_ = v.look(v.source.pause) // the old keyset is as good as it was, and the failure is logged
		plaintext, err = v.keys.Load().open(sealed, ad.bytes(), time.Now())
	}
	if err != nil {
		return nil, ErrSealed
	}
	return plaintext, nil
}

// SealCredentials seals the credentials and settings of a connection, a JSON object.
func (v *Vault) SealCredentials(m MerchantID, mode Mode, p Provider, credentials []byte) ([]byte, error) {
	if p == "" {
		return nil, fmt.Errorf("%w: credentials need a provider", ErrInvalid)
	}
	return v.Seal(credentials, AD{MerchantID: m, Mode: mode, Column: columnCredentials, Provider: p})
}

// OpenCredentials returns the JSON that SealCredentials sealed, for the provider's plugin and nobody else.
func (v *Vault) OpenCredentials(c Connection) ([]byte, error) {
	ad := AD{MerchantID: c.MerchantID, Mode: c.Mode, Column: columnCredentials, Provider: c.Provider}
	return v.Open(c.Sealed, ad)
}

// SealCallbackSecret seals a secret that NewCallbackSecret made.
func (v *Vault) SealCallbackSecret(m MerchantID, mode Mode, s Secret) (CallbackSecret, error) {
	raw, err := callbackRaw(s)
	if err != nil {
		return CallbackSecret{}, err
	}
	sealed, err := v.Seal(raw, AD{MerchantID: m, Mode: mode, Column: columnCallbackSecret})
	if err != nil {
		return CallbackSecret{}, err
	}
	return CallbackSecret{MerchantID: m, Mode: mode, Sealed: sealed}, nil
}

// OpenCallbackSecret returns the whole secret, `whsec_` included.
func (v *Vault) OpenCallbackSecret(c CallbackSecret) (Secret, error) {
	return v.openCallback(c, c.Sealed)
}

// OpenNextCallbackSecret returns the secret that a rotation is under way to, whole; the zero Secret where there is none.
func (v *Vault) OpenNextCallbackSecret(c CallbackSecret) (Secret, error) {
	if c.Next == nil {
		return Secret{}, nil
	}
	return v.openCallback(c, c.Next)
}

func (v *Vault) openCallback(c CallbackSecret, sealed []byte) (Secret, error) {
	raw, err := v.Open(sealed, AD{MerchantID: c.MerchantID, Mode: c.Mode, Column: columnCallbackSecret})
	if err != nil {
		return Secret{}, err
	}
	return callbackText(raw), nil
}
