package tenants

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// keyring is a keyset ready for use. It never changes.
type keyring struct {
	aead    tink.AEAD
	digest  [sha256.Size]byte // of the document, to see whether the source has another one
	keys    []SealingKey
	opens   map[KeyNumber]bool
	primary KeyNumber
	retired []retired
}

// retired is a keyring of which keys were removed. A value that was sealed anew is
// known by its old seal wherever the account was read before, and that is where
// the old key is needed until the account is read again.
type retired struct {
	ring  *keyring
	until time.Time
}

// retiredFor is longer than an account that was read may be used.
const retiredFor = time.Minute

// retire keeps what an earlier keyring opens and this one does not, for a while.
func (k *keyring) retire(old *keyring, now time.Time) {
	for _, r := range old.retired {
		if now.Before(r.until) {
			k.retired = append(k.retired, r)
		}
	}
	for number := range old.opens {
		if !k.opens[number] {
			kept := *old
			kept.retired = nil // they are in k already
			k.retired = append(k.retired, retired{&kept, now.Add(retiredFor)})
			return
		}
	}
}

// open decrypts, also by a key that was removed a moment ago.
func (k *keyring) open(sealed, ad []byte, now time.Time) ([]byte, error) {
	plaintext, err := k.aead.Decrypt(sealed, ad)
	if err == nil {
		return plaintext, nil
	}
	for _, r := range k.retired {
		if r.ring.opens[SealedBy(sealed)] && now.Before(r.until) {
			return r.ring.aead.Decrypt(sealed, ad)
		}
	}
	return nil, err
}

func newKeyring(document []byte) (*keyring, error) {
	k, err := ParseKeyset(document)
	if err != nil {
		return nil, err
	}
	primitive, err := aead.New(k.handle)
	if err != nil {
		return nil, errNoKeyset
	}
	ring := &keyring{aead: primitive, digest: sha256.Sum256(document), keys: k.Keys(), opens: map[KeyNumber]bool{}}
	for _, key := range ring.keys {
		ring.opens[key.Number] = true
		if key.Primary {
			ring.primary = key.Number
		}
	}
	return ring, nil
}

// shares reports whether two keyrings have a key in common.
func (k *keyring) shares(other *keyring) bool {
	for number := range k.opens {
		if other.opens[number] {
			return true
		}
	}
	return false
}

// OpenVault reads the keyset of a source. Run keeps it as the source has it.
func OpenVault(ctx context.Context, source KeysetSource, log *slog.Logger) (*Vault, error) {
	v := &Vault{source: source, log: log, looked: time.Now()}
	if err := v.load(ctx); err != nil {
		return nil, err
	}
	return v, nil
}

// OpenKeysetFile opens a Vault on a keyset file, for those who need no log.
func OpenKeysetFile(path string) (*Vault, error) {
	return OpenVault(context.Background(), KeysetFile(path), slog.New(slog.DiscardHandler))
}

// Run looks for another keyset until the context ends, and then returns nil. One that can't be used changes nothing and
// is logged.
func (v *Vault) Run(ctx context.Context) error {
	if v.source.every == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(v.source.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			_ = v.look(v.source.pause) // logged
		}
	}
}

// Keys lists the keys in force, the oldest first, as the source has them now.
func (v *Vault) Keys() []SealingKey {
	_ = v.look(v.source.pause) // logged
	return append([]SealingKey{}, v.keys.Load().keys...)
}

// look reads the source again, unless a look ended within the pause or began after
// this one was asked for. It tells why what is in force may be out of date.
func (v *Vault) look(pause time.Duration) error {
	asked := time.Now()
	v.looking.Lock()
	defer v.looking.Unlock()
	if v.source.every == 0 {
		return nil
	}
	if v.began.After(asked) || time.Since(v.looked) < pause {
		return v.fault
	}
	v.began = time.Now()
	// Not the caller's context: others wait for this look, too.
	err := v.load(context.Background())
	v.looked = time.Now()
	if err != nil && (v.fault == nil || v.fault.Error() != err.Error()) {
		v.log.Error("keyset can't be read; the old one stays in force, and nothing is sealed", "keyset", v.source.name, "error", err)
	}
	v.fault = err
	return err
}

var errOtherKeyset = errors.New("tenants: it has none of the keys in force, so that nothing could be opened any more")

// load takes over what the source holds. A keyset that has nothing in common with the one in force is a mistake.
func (v *Vault) load(ctx context.Context) error {
	document, err := v.source.read(ctx)
	if err != nil {
		return err
	}
	old := v.keys.Load()
	if old != nil && old.digest == sha256.Sum256(document) {
		return nil
	}
	ring, err := newKeyring(document)
	if err != nil {
		return fmt.Errorf("%s: %w", v.source.name, err)
	}
	if old != nil && !ring.shares(old) {
		return fmt.Errorf("%s: %w", v.source.name, errOtherKeyset)
	}
	if old != nil {
		ring.retire(old, time.Now())
	}
	v.keys.Store(ring)
	if old != nil {
		v.log.Info("another keyset is in force", "keyset", v.source.name, "primary", ring.primary, "keys", len(ring.keys))
	}
	return nil
}

// sealedPrefix begins what tink seals: a version and the number of the key.
const sealedPrefix = 5

// SealedBy tells which key sealed a value; 0 where the value does not tell.
func SealedBy(sealed []byte) KeyNumber {
	if len(sealed) < sealedPrefix || sealed[0] != 1 {
		return 0
	}
	return KeyNumber(binary.BigEndian.Uint32(sealed[1:sealedPrefix]))
}

// ResealConnection seals the credentials anew where another key than the primary in force has sealed them, and tells
// whether it did. What can't be opened is ErrSealed. Who seals many values anew asks for Keys before.
func (v *Vault) ResealConnection(c Connection) (Connection, bool, error) {
	if !v.outdated(c.Sealed) {
		return c, false, nil
	}
	var err error
	c.Sealed, err = v.reseal(c.Sealed, AD{MerchantID: c.MerchantID, Mode: c.Mode, Column: columnCredentials, Provider: c.Provider})
	return c, err == nil, err
}

// ResealCallbackSecret is ResealConnection for a callback secret, its next one included.
func (v *Vault) ResealCallbackSecret(c CallbackSecret) (CallbackSecret, bool, error) {
	changed := false
	for _, sealed := range []*[]byte{&c.Sealed, &c.Next} {
		if *sealed == nil || !v.outdated(*sealed) {
			continue
		}
		again, err := v.reseal(*sealed, AD{MerchantID: c.MerchantID, Mode: c.Mode, Column: columnCallbackSecret})
		if err != nil {
			return CallbackSecret{}, false, err
		}
		*sealed, changed = again, true
	}
	return c, changed, nil
}

// resealPause spares a command that reads the keyset a run for each of many values.
const resealPause = time.Second

func (v *Vault) outdated(sealed []byte) bool { return SealedBy(sealed) != v.keys.Load().primary }

func (v *Vault) reseal(sealed []byte, ad AD) ([]byte, error) {
	plaintext, err := v.Open(sealed, ad)
	if err != nil {
		return nil, err
	}
	return v.seal(plaintext, ad, min(v.source.pause, resealPause))
}
