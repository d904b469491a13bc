package tenants

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
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

// ResealNameKey is ResealConnection for the installation's key of names.
func (v *Vault) ResealNameKey(sealed []byte) ([]byte, bool, error) {
	if !v.outdated(sealed) {
		return sealed, false, nil
	}
	again, err := v.reseal(sealed, AD{Column: columnNameKey})
	return again, err == nil, err
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
	columnNameKey        = "installation.name_key" // no merchant's
	columnPolicy         = "policy.mac"            // likewise
	columnDecisions      = "decision_log.inputs"   // likewise
	columnAudit          = "audit.mac"             // likewise
	columnRequests       = "request_log.calls"
	columnTOTP           = "person.totp" // a person's, whose id stands for a merchant's
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

// SealNameKey seals the installation's key of names, which belongs to no merchant.
func (v *Vault) SealNameKey(key []byte) ([]byte, error) {
	return v.seal(key, AD{Column: columnNameKey}, 0)
}

// OpenNameKey returns what SealNameKey sealed.
func (v *Vault) OpenNameKey(sealed []byte) ([]byte, error) {
	return v.Open(sealed, AD{Column: columnNameKey})
}

// SealTOTP seals the secret of a person's second factor.
func (v *Vault) SealTOTP(person string, secret []byte) ([]byte, error) {
	return v.seal(secret, AD{MerchantID: MerchantID(person), Column: columnTOTP}, 0)
}

// OpenTOTP returns what SealTOTP sealed for the person.
func (v *Vault) OpenTOTP(person string, sealed []byte) ([]byte, error) {
	return v.Open(sealed, AD{MerchantID: MerchantID(person), Column: columnTOTP})
}

// ResealTOTP is ResealConnection for a person's second factor.
func (v *Vault) ResealTOTP(person string, sealed []byte) ([]byte, bool, error) {
	if !v.outdated(sealed) {
		return sealed, false, nil
	}
	again, err := v.reseal(sealed, AD{MerchantID: MerchantID(person), Column: columnTOTP})
	return again, err == nil, err
}

// The columns of what is kept of a person for a while. It is not sealed anew when keys
// change: it is shorter-lived than a key that was rotated out, or can be asked for again.
const (
	ColumnMail    = "mail.body"
	ColumnCodes   = "person.fresh_codes"
	ColumnBrowser = "person.browser" // in the browser's own cookie
)

// SealPersonal seals what a column keeps under an id.
func (v *Vault) SealPersonal(column, id string, plaintext []byte) ([]byte, error) {
	return v.seal(plaintext, AD{MerchantID: MerchantID(id), Column: column}, resealPause)
}

// OpenPersonal returns what SealPersonal sealed.
func (v *Vault) OpenPersonal(column, id string, sealed []byte) ([]byte, error) {
	return v.Open(sealed, AD{MerchantID: MerchantID(id), Column: column})
}

// SealDecisions seals the inputs of decisions, which hold what people call personal. OpenDecisions opens them.
func (v *Vault) SealDecisions(inputs []byte) ([]byte, error) {
	return v.seal(inputs, AD{Column: columnDecisions}, resealPause)
}

// OpenDecisions opens what SealDecisions has sealed.
func (v *Vault) OpenDecisions(sealed []byte) ([]byte, error) {
	return v.Open(sealed, AD{Column: columnDecisions})
}

// SealRequests seals calls of a merchant in a mode. OpenRequests opens them.
func (v *Vault) SealRequests(id MerchantID, mode Mode, calls []byte) ([]byte, error) {
	return v.seal(calls, AD{MerchantID: id, Mode: mode, Column: columnRequests}, resealPause)
}

// OpenRequests opens what SealRequests has sealed for the merchant and mode.
func (v *Vault) OpenRequests(id MerchantID, mode Mode, sealed []byte) ([]byte, error) {
	return v.Open(sealed, AD{MerchantID: id, Mode: mode, Column: columnRequests})
}

// SealPolicy makes the MAC of what a digest is of: a policy version, or the word which
// of them is in force. Only who has the keyset can.
func (v *Vault) SealPolicy(digest []byte) ([]byte, error) {
	return v.seal(digest, AD{Column: columnPolicy}, resealPause)
}

// VerifyPolicy returns nil for the MAC that SealPolicy made of the digest, and else
// ErrSealed.
func (v *Vault) VerifyPolicy(mac, digest []byte) error {
	sealed, err := v.Open(mac, AD{Column: columnPolicy})
	if err == nil && !bytes.Equal(sealed, digest) {
		err = ErrSealed
	}
	return err
}

// ResealPolicy is ResealConnection for a MAC of policies.
func (v *Vault) ResealPolicy(mac []byte) ([]byte, bool, error) {
	if !v.outdated(mac) {
		return mac, false, nil
	}
	again, err := v.reseal(mac, AD{Column: columnPolicy})
	return again, err == nil, err
}

// SealAudit makes the MAC of what a digest is of: an entry of the audit, a link of its
// chain, or where that ends. It is made within the act's transaction, so the keyset's source
// is not asked: a key on its way out makes MACs until Run knows of the next one. It is nil
// where none can be made.
func (v *Vault) SealAudit(digest []byte) []byte {
	mac, err := v.keys.Load().aead.Encrypt(digest, AD{Column: columnAudit}.bytes())
	if err != nil {
		return nil
	}
	return mac
}

// ErrKeyGone says that a MAC was made with a key that is not in the keyset.
var ErrKeyGone = errors.New("tenants: the key is not in the keyset")

// VerifyAudit returns nil for the MAC that SealAudit made of the digest, ErrKeyGone where
// nobody can tell any more, and else ErrSealed.
func (v *Vault) VerifyAudit(mac, digest []byte) error {
	sealed, err := v.Open(mac, AD{Column: columnAudit})
	switch number := SealedBy(mac); {
	case err != nil && number != 0 && !v.keys.Load().opens[number]:
		return ErrKeyGone
	case err == nil && !bytes.Equal(sealed, digest):
		return ErrSealed
	}
	return err
}

// OutdatedAudit tells whether another key than the primary has made a MAC.
func (v *Vault) OutdatedAudit(mac []byte) bool { return v.outdated(mac) }
