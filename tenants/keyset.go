package tenants

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// KeyNumber names a key of a keyset. It is no secret: every sealed value begins with that of the key that sealed it.
type KeyNumber uint32

// SealingKey is what may be known of a key.
type SealingKey struct {
	Number   KeyNumber
	Primary  bool // it seals; the others only open
	Prepared bool // it has never sealed: the next rotation makes it the primary
}

// Keyset is a set of AES-256-GCM keys, one of which, the primary, seals. The newest stands last. It is for making and
// changing what a Vault is opened with, and no two goroutines may use one at once.
type Keyset struct{ handle *keyset.Handle }

var errNoKeyset = errors.New("tenants: not a keyset") // the cause may quote the content, which is the secret

// NewKeyset draws a keyset of one key.
func NewKeyset() (*Keyset, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("tenants: create keyset: %w", err)
	}
	return &Keyset{handle}, nil
}

// ParseKeyset reads the JSON that Document wrote. An error quotes nothing of it.
func ParseKeyset(document []byte) (*Keyset, error) {
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(document)))
	if err != nil {
		return nil, errNoKeyset
	}
	if _, err := aead.New(handle); err != nil {
		return nil, errNoKeyset
	}
	return &Keyset{handle}, nil
}

// Document is the keyset as cleartext JSON: whoever reads it can open everything that the keyset has sealed.
func (k *Keyset) Document() ([]byte, error) {
	var document bytes.Buffer
	if err := insecurecleartextkeyset.Write(k.handle, keyset.NewJSONWriter(&document)); err != nil {
		return nil, fmt.Errorf("tenants: write keyset: %w", err)
	}
	return document.Bytes(), nil
}

// Keys lists the keys, the oldest first.
func (k *Keyset) Keys() []SealingKey {
	info := k.handle.KeysetInfo()
	keys := make([]SealingKey, 0, len(info.GetKeyInfo()))
	behind := false
	for _, key := range info.GetKeyInfo() {
		primary := key.GetKeyId() == info.GetPrimaryKeyId()
		keys = append(keys, SealingKey{Number: KeyNumber(key.GetKeyId()), Primary: primary, Prepared: behind})
		behind = behind || primary
	}
	return keys
}

// Prepare adds a key that only opens, so that every replica can know it before the first one seals with it. One that was
// prepared before is all there can be.
func (k *Keyset) Prepare() (KeyNumber, error) {
	keys := k.Keys()
	if last := keys[len(keys)-1]; last.Prepared {
		return last.Number, nil
	}
	var number uint32
	err := k.change(func(m *keyset.Manager) (err error) {
		number, err = m.Add(aead.AES256GCMKeyTemplate())
		return err
	})
	return KeyNumber(number), err
}

// Rotate makes the prepared key the primary, or a new one where none was prepared. The others stay, to open.
func (k *Keyset) Rotate() (KeyNumber, error) {
	number, err := k.Prepare()
	if err != nil {
		return 0, err
	}
	return number, k.change(func(m *keyset.Manager) error { return m.SetPrimary(uint32(number)) })
}

// Remove takes a key away for ever. The primary can't be.
func (k *Keyset) Remove(number KeyNumber) error {
	return k.change(func(m *keyset.Manager) error { return m.Delete(uint32(number)) })
}

func (k *Keyset) change(edit func(*keyset.Manager) error) error {
	m := keyset.NewManagerFromHandle(k.handle)
	if err := edit(m); err != nil {
		return fmt.Errorf("tenants: change keyset: %w", err)
	}
	handle, err := m.Handle()
	if err != nil {
		return fmt.Errorf("tenants: change keyset: %w", err)
	}
	k.handle = handle
	return nil
}
