package tenants

import (
	"crypto/rand"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"
)

func issueFor(t *testing.T, spec KeySpec) IssuedKey {
	t.Helper()
	spec.MerchantID = "mer_1"
	issued, err := IssueKey(rand.Reader, spec, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return issued
}

func TestIssueKey(t *testing.T) {
	t.Parallel()
	got := issueFor(t, KeySpec{Mode: Test})
	if got.Key.Scopes != AllScopes() || got.Key.Mode != Test || !got.Key.CreatedAt.Equal(epoch) {
		t.Errorf("key = %+v", got.Key)
	}
	if !got.Key.Hash.Equal(HashKey(got.Secret.Reveal())) {
		t.Error("the record does not match its plaintext")
	}
	if other := issueFor(t, KeySpec{Mode: Test}); other.Key.ID == got.Key.ID || other.Key.Hash == got.Key.Hash {
		t.Error("two keys are the same")
	}
	for name, spec := range map[string]KeySpec{
		"no merchant":   {Mode: Live},
		"no mode":       {MerchantID: "mer_1"},
		"unknown scope": {MerchantID: "mer_1", Mode: Live, Scopes: 1 << 7},
		"no address":    {MerchantID: "mer_1", Mode: Live, IPs: []netip.Prefix{{}}},
	} {
		if _, err := IssueKey(rand.Reader, spec, epoch); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

func TestKeyUsable(t *testing.T) {
	t.Parallel()
	later := epoch.Add(time.Hour)
	cases := map[string]struct {
		key  Key
		now  time.Time
		want bool
	}{
		"plain":                       {Key{}, epoch, true},
		"before its end":              {Key{ExpiresAt: &later}, later.Add(-1), true},
		"at its end":                  {Key{ExpiresAt: &later}, later, false},
		"revoked":                     {Key{RevokedAt: &epoch}, later, false},
		"revoked by a clock ahead":    {Key{RevokedAt: &later}, epoch, false},
		"revoked before its end came": {Key{RevokedAt: &epoch, ExpiresAt: &later}, epoch, false},
	}
	for name, c := range cases {
		if got := c.key.Usable(c.now); got != c.want {
			t.Errorf("%s: usable = %v, want %v", name, got, c.want)
		}
	}
}

func TestKeyAllows(t *testing.T) {
	t.Parallel()
	listed := issueFor(t, KeySpec{Mode: Live, IPs: []netip.Prefix{
		netip.MustParsePrefix("192.0.2.9/24"),
		netip.MustParsePrefix("2001:db8::/32"),
		netip.MustParsePrefix("::ffff:198.51.100.4/128"),
	}}).Key
	cases := map[string]bool{
		"192.0.2.1": true, "::ffff:192.0.2.1": true, "192.0.3.1": false,
		"2001:db8::1": true, "2001:db8::1%eth0": true, "2001:db9::1": false,
		"198.51.100.4": true, "198.51.100.5": false,
	}
	for text, want := range cases {
		if got := listed.Allows(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: allowed = %v, want %v", text, got, want)
		}
	}
	if listed.Allows(netip.Addr{}) {
		t.Error("an unknown address is allowed by a list")
	}
	if !(Key{}).Allows(netip.Addr{}) {
		t.Error("a key without a list is refused")
	}
}

func TestRotateKey(t *testing.T) {
	t.Parallel()
	collect, err := NewScopes(ScopeCollect)
	if err != nil {
		t.Fatal(err)
	}
	old := issueFor(t, KeySpec{Mode: Live, Scopes: collect, IPs: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}).Key
	now := epoch.Add(time.Hour)
	next, retiring, err := RotateKey(rand.Reader, old, now, DefaultOverlap)
	if err != nil {
		t.Fatal(err)
	}
	if k := next.Key; k.ID == old.ID || k.MerchantID != old.MerchantID || k.Mode != Live || k.Scopes != collect ||
		!slices.Equal(k.IPs, old.IPs) || k.ExpiresAt != nil {
		t.Errorf("the new key is %+v", k)
	}
	if retiring.ID != old.ID || !retiring.Usable(now.Add(24*time.Hour-1)) || retiring.Usable(now.Add(24*time.Hour)) {
		t.Errorf("the old key ends at %v, want 24 h after %v", retiring.ExpiresAt, now)
	}
	if old.ExpiresAt != nil {
		t.Error("the caller's record was changed")
	}
	_, again, err := RotateKey(rand.Reader, retiring, now, 48*time.Hour)
	if err != nil || !again.ExpiresAt.Equal(*retiring.ExpiresAt) {
		t.Errorf("a second rotation moved the end to %v, %v", again.ExpiresAt, err)
	}
	if _, at, err := RotateKey(rand.Reader, old, now, 0); err != nil || at.Usable(now) {
		t.Errorf("without an overlap the old key still works: %v, %v", at.ExpiresAt, err)
	}
}

func TestRotateKeyRefuses(t *testing.T) {
	t.Parallel()
	key := issueFor(t, KeySpec{Mode: Live}).Key
	if _, _, err := RotateKey(rand.Reader, RevokeKey(key, epoch), epoch, DefaultOverlap); !errors.Is(err, ErrKeyUnusable) {
		t.Errorf("revoked: %v, want ErrKeyUnusable", err)
	}
	if _, _, err := RotateKey(rand.Reader, key, epoch, -time.Second); !errors.Is(err, ErrInvalid) {
		t.Errorf("negative overlap: %v, want ErrInvalid", err)
	}
}

func TestRevokeKeyKeepsTheFirstTime(t *testing.T) {
	t.Parallel()
	revoked := RevokeKey(RevokeKey(Key{}, epoch), epoch.Add(time.Hour))
	if !revoked.RevokedAt.Equal(epoch) || revoked.Usable(epoch) {
		t.Errorf("revoked at %v, want %v", revoked.RevokedAt, epoch)
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	set, err := NewScopes(ScopeTransfer, ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	if !set.Has(ScopeRead) || !set.Has(ScopeTransfer) || set.Has(ScopeCollect) || set.Has("admin") {
		t.Errorf("set %s holds the wrong scopes", set)
	}
	if set.String() != "read,transfer" || !slices.Equal(set.List(), []Scope{ScopeRead, ScopeTransfer}) {
		t.Errorf("set = %q, %v", set, set.List())
	}
	if !set.Valid() || Scopes(0).Valid() || Scopes(1<<5).Valid() || len(AllScopes().List()) != 5 {
		t.Error("Valid or AllScopes is wrong")
	}
	// Stored sets depend on these numbers.
	if set != 0b1001 || AllScopes() != 0b11111 {
		t.Errorf("bits = %b, %b", uint8(set), uint8(AllScopes()))
	}
	if _, err := NewScopes(ScopeRead, "admin"); !errors.Is(err, ErrInvalid) {
		t.Errorf("unknown scope: %v, want ErrInvalid", err)
	}
}
