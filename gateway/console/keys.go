package console

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	maxOverlap = 30 * 24 * time.Hour
	maxIPs     = 50
	maxKeyName = 100
)

func (c *Console) createKey(x *call, wanted adminapi.NewKey) (out adminapi.CreatedKey, err error) {
	account, err := c.account(x)
	if err != nil {
		return out, err
	}
	spec, err := keySpec(account.ID(), wanted)
	if err != nil {
		return out, err
	}
	issued, err := tenants.IssueKey(rand.Reader, spec, x.now)
	if err != nil {
		return out, err
	}
	detail := fmt.Sprintf("key %s (%s), mode %s, scopes %s", issued.Key.ID, issued.Key.Called(), spec.Mode, issued.Key.Scopes)
	if len(spec.IPs) > 0 {
		detail += fmt.Sprintf(", from %v", spec.IPs)
	}
	err = c.deps.Secrets.AddKey(x.request.Context(), x.audit("key.create", detail), issued.Key)
	c.deps.Directory.Invalidate(account.ID())
	if err != nil {
		return out, err
	}
	return issuedDocument(issued), nil
}

func keySpec(id tenants.MerchantID, wanted adminapi.NewKey) (tenants.KeySpec, error) {
	mode, err := tenants.ParseMode(wanted.Mode)
	if err != nil {
		return tenants.KeySpec{}, fault.Invalid("mode", "must be live or test")
	}
	names := make([]tenants.Scope, len(wanted.Scopes))
	for i, name := range wanted.Scopes {
		names[i] = tenants.Scope(name)
	}
	scopes, err := tenants.NewScopes(names...)
	if err != nil {
		return tenants.KeySpec{}, fault.Invalid("scopes", "must be some of "+tenants.AllScopes().String())
	}
	if len(wanted.IPs) > maxIPs {
		return tenants.KeySpec{}, fault.Invalid("ips", "must be at most 50")
	}
	if !plain(wanted.Name, 0, maxKeyName) {
		return tenants.KeySpec{}, wrongKeyName()
	}
	spec := tenants.KeySpec{Name: wanted.Name, MerchantID: id, Mode: mode, Scopes: scopes}
	for _, text := range wanted.IPs {
		prefix, err := parseAddresses(text)
		if err != nil {
			return tenants.KeySpec{}, fault.Invalid("ips", "must be addresses or prefixes such as 203.0.113.0/24")
		}
		spec.IPs = append(spec.IPs, prefix)
	}
	return spec, nil
}

// parseAddresses reads a prefix, or an address, which is one of its own.
func parseAddresses(text string) (netip.Prefix, error) {
	if strings.Contains(text, "/") {
		prefix, err := netip.ParsePrefix(text)
		return prefix.Masked(), err
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Prefix{}, err
	}
	address = address.Unmap().WithZone("")
	return netip.PrefixFrom(address, address.BitLen()), nil
}

func (c *Console) rotateKey(x *call, wanted adminapi.KeyRotation) (out adminapi.CreatedKey, err error) {
	overlap, err := overlapOf(wanted.Overlap)
	if err != nil {
		return out, err
	}
	old, err := c.key(x)
	if err != nil {
		return out, err
	}
	next, retiring, err := tenants.RotateKey(rand.Reader, old, x.now, overlap)
	if errors.Is(err, tenants.ErrKeyUnusable) {
		return out, fault.Invalid("key_id", "names a key that is revoked or expired; create a new one")
	}
	if err != nil {
		return out, err
	}
	detail := fmt.Sprintf("key %s by %s, overlap %s", old.ID, next.Key.ID, overlap)
	err = c.deps.Secrets.ReplaceKey(x.request.Context(), x.audit("key.rotate", detail), next.Key, retiring)
	c.deps.Directory.Invalidate(old.MerchantID)
	if err != nil {
		return out, notFound(err, "key")
	}
	return issuedDocument(next), nil
}

// overlapOf is how long what is replaced stays valid.
func overlapOf(text string) (time.Duration, error) {
	if text == "" {
		return tenants.DefaultOverlap, nil
	}
	overlap, err := time.ParseDuration(text)
	if err != nil || overlap < 0 || overlap > maxOverlap {
		return 0, fault.Invalid("overlap", `must be a duration from "0s" to "720h"`)
	}
	return overlap, nil
}

func wrongKeyName() error {
	return fault.Invalid("name", "must have at most 100 characters, without control characters")
}

func (c *Console) renameKey(x *call, wanted adminapi.KeyName) (out adminapi.Key, err error) {
	if !plain(wanted.Name, 0, maxKeyName) {
		return out, wrongKeyName()
	}
	key, err := c.key(x)
	if err != nil {
		return out, err
	}
	key.Name = wanted.Name
	err = c.deps.Secrets.RenameKey(x.request.Context(), x.audit("key.rename", fmt.Sprintf("key %s: %s", key.ID, key.Called())), key)
	c.deps.Directory.Invalidate(key.MerchantID)
	if err != nil {
		return out, notFound(err, "key")
	}
	return keyDocument(key, x.now), nil
}

func (c *Console) revokeKey(x *call, why adminapi.KeyRevocation) (out adminapi.Key, err error) {
	if err := checkReason(why.Reason); err != nil {
		return out, err
	}
	old, err := c.key(x)
	if err != nil {
		return out, err
	}
	detail := "key " + string(old.ID)
	if why.Reason != "" {
		detail += ": " + why.Reason
	}
	revoked := tenants.RevokeKey(old, x.now)
	err = c.deps.Secrets.EndKey(x.request.Context(), x.audit("key.revoke", detail), revoked)
	c.deps.Directory.Invalidate(old.MerchantID)
	if err != nil {
		return out, notFound(err, "key")
	}
	return keyDocument(revoked, x.now), nil
}

// key is the key that the path names, if it is that merchant's.
func (c *Console) key(x *call) (tenants.Key, error) {
	account, err := c.account(x)
	if err != nil {
		return tenants.Key{}, err
	}
	key, ok := account.Key(tenants.KeyID(x.request.PathValue("key")))
	if !ok {
		return tenants.Key{}, fault.New(fault.NotFound, "There is no such key of this merchant.")
	}
	return key, nil
}

func issuedDocument(issued tenants.IssuedKey) adminapi.CreatedKey {
	return adminapi.CreatedKey{KeyID: string(issued.Key.ID), Name: issued.Key.Called(), Mode: string(issued.Key.Mode), SecretKey: issued.Secret.Reveal()}
}

func keyDocument(key tenants.Key, now time.Time) adminapi.Key {
	out := adminapi.Key{
		KeyID: string(key.ID), Name: key.Called(), Mode: string(key.Mode), Usable: key.Usable(now),
		CreatedAt: key.CreatedAt, ExpiresAt: key.ExpiresAt, RevokedAt: key.RevokedAt,
	}
	for _, scope := range key.Scopes.List() {
		out.Scopes = append(out.Scopes, string(scope))
	}
	for _, prefix := range key.IPs {
		out.IPs = append(out.IPs, prefix.String())
	}
	return out
}
