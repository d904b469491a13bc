package tenants

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"
)

// DefaultOverlap is how long a rotated key keeps working unless the merchant chose otherwise.
const DefaultOverlap = 24 * time.Hour

// ErrKeyUnusable says that a key is revoked or expired and can't be rotated.
var ErrKeyUnusable = errors.New("tenants: key is revoked or expired")

// Key is the record of an API key; its plaintext is kept nowhere.
type Key struct {
	ID         KeyID
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
		ID: id, MerchantID: spec.MerchantID, Mode: spec.Mode, Hash: hash,
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

// RotateKey draws the successor of a key, with the same merchant, mode, scopes and addresses, and returns the old key
// as it is to be stored: it ends after the overlap, or earlier if it would have ended earlier.
func RotateKey(random io.Reader, old Key, now time.Time, overlap time.Duration) (next IssuedKey, retiring Key, err error) {
	if !old.Usable(now) {
		return IssuedKey{}, Key{}, ErrKeyUnusable
	}
	if overlap < 0 {
		return IssuedKey{}, Key{}, fmt.Errorf("%w: the overlap can't be negative", ErrInvalid)
	}
	spec := KeySpec{MerchantID: old.MerchantID, Mode: old.Mode, Scopes: old.Scopes, IPs: old.IPs}
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
