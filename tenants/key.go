package tenants

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// DefaultOverlap is how long a rotated key keeps working unless the merchant chose otherwise.
const DefaultOverlap = 24 * time.Hour

// ErrKeyUnusable says that a key is revoked or expired and can't be rotated.
var ErrKeyUnusable = errors.New("tenants: key is revoked or expired")

// Key is the record of an API key; its plaintext is kept nowhere.
type Key struct {
	ID         KeyID
	Name       string // what its merchant calls it
	MerchantID MerchantID
	Mode       Mode
	Hash       Hash
	Scopes     Scopes
	IPs        []netip.Prefix // from where it may be used; empty means from anywhere
	CreatedAt  time.Time
	ExpiresAt  *time.Time // end of a rotation's overlap; nil means never
	RevokedAt  *time.Time
}

// check refuses what would let a key do nothing or be used from nowhere.
func (k Key) check() error {
	if !k.Scopes.Valid() {
		return fmt.Errorf("%w: a key needs known scopes", ErrInvalid)
	}
	for _, ip := range k.IPs {
		if !ip.IsValid() {
			return fmt.Errorf("%w: an IP list holds addresses or CIDR ranges", ErrInvalid)
		}
	}
	return checkClosed(k.Mode, modes, "mode")
}

// clone shares nothing that can be changed with the original. Times are UTC.
func (k Key) clone() Key {
	k.IPs = append([]netip.Prefix(nil), k.IPs...)
	k.CreatedAt = k.CreatedAt.UTC()
	if k.ExpiresAt != nil {
		k.ExpiresAt = new(k.ExpiresAt.UTC())
	}
	if k.RevokedAt != nil {
		k.RevokedAt = new(k.RevokedAt.UTC())
	}
	return k
}

// Called is the name of the key, or one of its mode and date where it has none.
func (k Key) Called() string {
	return cmp.Or(k.Name, string(k.Mode)+" "+k.CreatedAt.UTC().Format(time.DateOnly))
}

// Usable reports whether the key works at the given time. A revocation counts at once, also one stamped by a replica
// whose clock is ahead.
func (k Key) Usable(now time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || now.Before(*k.ExpiresAt))
}

// Allows reports whether the key may be used from the address. IPv4 written as IPv6 is IPv4.
func (k Key) Allows(addr netip.Addr) bool {
	if len(k.IPs) == 0 {
		return true
	}
	addr = addr.Unmap().WithZone("")
	for _, p := range k.IPs {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// KeySpec says what a new key shall be.
type KeySpec struct {
	Name       string // optional
	MerchantID MerchantID
	Mode       Mode
	Scopes     Scopes // none chosen means all
	IPs        []netip.Prefix
}

// IssuedKey is a new key with its plaintext, which is to be shown once.
type IssuedKey struct {
	Key    Key
	Secret Secret
}

// IssueKey draws a new key from random. Nothing is kept: the caller stores the record.
func IssueKey(random io.Reader, spec KeySpec, now time.Time) (IssuedKey, error) {
	scopes := cmp.Or(spec.Scopes, AllScopes())
	if spec.MerchantID == "" || !scopes.Valid() {
		return IssuedKey{}, fmt.Errorf("%w: a key needs a merchant and known scopes", ErrInvalid)
	}
	ips, err := canonicalPrefixes(spec.IPs)
	if err != nil {
		return IssuedKey{}, err
	}
	secret, id, hash, err := newKey(random, spec.Mode)
	if err != nil {
		return IssuedKey{}, err
	}
	key := Key{
		ID: id, Name: spec.Name, MerchantID: spec.MerchantID, Mode: spec.Mode, Hash: hash,
		Scopes: scopes, IPs: ips, CreatedAt: now,
	}
	return IssuedKey{Key: key, Secret: secret}, nil
}

// canonicalPrefixes refuses what would match nothing, and writes IPv4 as IPv4.
func canonicalPrefixes(ips []netip.Prefix) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, p := range ips {
		bits := p.Bits()
		if p.Addr().Is4In6() {
			bits -= 96
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), bits).Masked()
		if !p.IsValid() {
			return nil, fmt.Errorf("%w: an IP list holds addresses or CIDR ranges", ErrInvalid)
		}
		out = append(out, p)
	}
	return out, nil
}

// RotateKey draws the successor of a key, with the same name, merchant, mode, scopes and addresses, and returns the old key
// as it is to be stored: it ends after the overlap, or earlier if it would have ended earlier.
func RotateKey(random io.Reader, old Key, now time.Time, overlap time.Duration) (next IssuedKey, retiring Key, err error) {
	if !old.Usable(now) {
		return IssuedKey{}, Key{}, ErrKeyUnusable
	}
	if overlap < 0 {
		return IssuedKey{}, Key{}, fmt.Errorf("%w: the overlap can't be negative", ErrInvalid)
	}
	spec := KeySpec{Name: old.Name, MerchantID: old.MerchantID, Mode: old.Mode, Scopes: old.Scopes, IPs: old.IPs}
	next, err = IssueKey(random, spec, now)
	if err != nil {
		return IssuedKey{}, Key{}, err
	}
	end := now.Add(overlap)
	if old.ExpiresAt == nil || end.Before(*old.ExpiresAt) {
		old.ExpiresAt = &end
	}
	return next, old, nil
}

// RevokeKey returns the key as it is to be stored when it must stop at once. A key that is revoked already keeps the
// time of its first revocation.
func RevokeKey(key Key, now time.Time) Key {
	if key.RevokedAt == nil {
		key.RevokedAt = &now
	}
	return key
}

// A key reads `sk_live_<id>_<secret><checksum>`: the mode, a public id of 16 base62 characters, 43 base62 characters
// of secret (256 bits), and the CRC-32 of all before it as 6 base62 characters, so that a typo and a leaked key are
// recognised without asking anybody.
const (
	livePrefix  = "sk_live_"
	testPrefix  = "sk_test_"
	keyIDLen    = 16
	secretLen   = 43
	checksumLen = 6
	idEnd       = len(livePrefix) + keyIDLen
	keyLen      = idEnd + 1 + secretLen + checksumLen
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// What ParseKey finds wrong with a text. Over the API both are ErrAuthFailed.
var (
	// errKeyMalformed says that the text does not have the shape of a key.
	errKeyMalformed = errors.New("tenants: not an API key")
	// errKeyChecksum says that the text has the shape of a key but was mistyped or cut.
	errKeyChecksum = errors.New("tenants: API key is mistyped: its checksum does not match")
)

// KeyID is the public part of a key, by which it is found, listed and revoked.
type KeyID string

// Hash is the SHA-256 of a whole key. 256 random bits need no slow hash.
type Hash [sha256.Size]byte

// HashKey returns the hash under which a presented key would be stored.
func HashKey(key string) Hash { return sha256.Sum256([]byte(key)) }

// Equal compares in constant time.
func (h Hash) Equal(other Hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// ParsedKey is what a key says about itself.
type ParsedKey struct {
	ID   KeyID
	Mode Mode
}

// newKey draws a key for the mode from random. The plaintext is to be shown once; id and hash are what is kept.
func newKey(random io.Reader, mode Mode) (plaintext Secret, id KeyID, hash Hash, err error) {
	prefix := livePrefix
	switch mode {
	case Live:
	case Test:
		prefix = testPrefix
	default:
		return Secret{}, "", Hash{}, fmt.Errorf("%w: mode must be one of %q", ErrInvalid, modes)
	}
	drawn, err := drawBase62(random, keyIDLen+secretLen)
	if err != nil {
		return Secret{}, "", Hash{}, fmt.Errorf("tenants: draw key: %w", err)
	}
	text := prefix + drawn[:keyIDLen] + "_" + drawn[keyIDLen:]
	text += checksum(text)
	return NewSecret(text), KeyID(drawn[:keyIDLen]), HashKey(text), nil
}

// ParseKey checks the shape and the checksum of a key without asking anybody. It says nothing about whether the key
// exists.
func ParseKey(key string) (ParsedKey, error) {
	if len(key) != keyLen || key[idEnd] != '_' || !isBase62(key[len(livePrefix):idEnd]) || !isBase62(key[idEnd+1:]) {
		return ParsedKey{}, errKeyMalformed
	}
	mode := Live
	switch key[:len(livePrefix)] {
	case livePrefix:
	case testPrefix:
		mode = Test
	default:
		return ParsedKey{}, errKeyMalformed
	}
	if checksum(key[:keyLen-checksumLen]) != key[keyLen-checksumLen:] {
		return ParsedKey{}, errKeyChecksum
	}
	return ParsedKey{ID: KeyID(key[len(livePrefix):idEnd]), Mode: mode}, nil
}

// checksum is the CRC-32 of s in base62, most significant digit first.
func checksum(s string) string {
	sum := crc32.ChecksumIEEE([]byte(s))
	var digits [checksumLen]byte
	for i := checksumLen - 1; i >= 0; i-- {
		digits[i] = base62[sum%62]
		sum /= 62
	}
	return string(digits[:])
}

// drawBase62 draws n characters, each equally likely: 6 bits are taken of every byte and the two values that have no
// character are thrown away.
func drawBase62(random io.Reader, n int) (string, error) {
	var out strings.Builder
	var buf [64]byte
	for out.Len() < n {
		if _, err := io.ReadFull(random, buf[:]); err != nil {
			return "", err
		}
		for _, b := range buf {
			if digit := b & 63; digit < 62 && out.Len() < n {
				out.WriteByte(base62[digit])
			}
		}
	}
	return out.String(), nil
}

func isBase62(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// Scope is one thing that a key may do.
type Scope string

// The scopes of a key, as the contract names them.
const (
	ScopeRead     Scope = "read"
	ScopeCollect  Scope = "collect"
	ScopeOrder    Scope = "order"
	ScopeTransfer Scope = "transfer"
	ScopeRefund   Scope = "refund"
)

// scopeOrder gives each scope its bit. Stored keys depend on it: only ever append.
var scopeOrder = [...]Scope{ScopeRead, ScopeCollect, ScopeOrder, ScopeTransfer, ScopeRefund}

// Scopes is a set of scopes, small enough to be compared and stored as one number.
type Scopes uint8

// AllScopes is what a key may do unless fewer scopes were chosen.
func AllScopes() Scopes { return 1<<len(scopeOrder) - 1 }

// NewScopes returns the set of the given scopes and refuses an unknown one.
func NewScopes(scopes ...Scope) (Scopes, error) {
	var set Scopes
	for _, s := range scopes {
		i := slices.Index(scopeOrder[:], s)
		if i < 0 {
			return 0, fmt.Errorf("%w: scope must be one of %q", ErrInvalid, scopeOrder)
		}
		set |= 1 << i
	}
	return set, nil
}

// Has reports whether the set contains the scope. An unknown scope is in no set.
func (s Scopes) Has(scope Scope) bool {
	i := slices.Index(scopeOrder[:], scope)
	return i >= 0 && s&(1<<i) != 0
}

// Valid reports whether the set is not empty and holds only known scopes.
func (s Scopes) Valid() bool { return s != 0 && s&^AllScopes() == 0 }

// List returns the scopes of the set in their fixed order.
func (s Scopes) List() []Scope {
	list := make([]Scope, 0, len(scopeOrder))
	for i, scope := range scopeOrder {
		if s&(1<<i) != 0 {
			list = append(list, scope)
		}
	}
	return list
}

// String lists the scopes with commas between them.
func (s Scopes) String() string {
	var b strings.Builder
	for i, scope := range s.List() {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(string(scope))
	}
	return b.String()
}

// KeyUse is when and from where a key was used last, to the minute.
type KeyUse struct {
	MerchantID MerchantID
	KeyID      KeyID
	At         time.Time
	Address    string
}
