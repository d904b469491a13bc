package movement_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

var nameKey = movement.NameKey{1, 2, 3}

func keyOf(merchant, mode string, kind manifest.Kind, reference string) movement.Key {
	return movement.Key{Owner: movement.Owner{MerchantID: merchant, Mode: mode}, Kind: kind, Reference: reference}
}

func anyKey() *rapid.Generator[movement.Key] {
	return rapid.Custom(func(t *rapid.T) movement.Key {
		text := rapid.StringN(0, 20, 40)
		return keyOf(text.Draw(t, "merchant"), text.Draw(t, "mode"), manifest.Kind(text.Draw(t, "kind")), text.Draw(t, "reference"))
	})
}

// anyID is an id of these days, or one of before.
func anyID() *rapid.Generator[movement.ID] {
	return rapid.Custom(func(t *rapid.T) movement.ID {
		if rapid.Bool().Draw(t, "of before") {
			id := uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
			id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
			return movement.ID(id)
		}
		return nameKey.ID(anyKey().Draw(t, "key"))
	})
}

// TestKeyedIDs: what is named alike has one id, also in another process, and what is
// not has another.
func TestKeyedIDs(t *testing.T) {
	t.Parallel()
	if got := nameKey.ID(keyOf("mer_1", "live", manifest.Order, "A")).String(); got != "3291f928-6b2a-80c4-b613-e0263d1177b8" {
		t.Errorf("the id of a key has changed, and with it all names: %s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyKey().Draw(t, "a"), anyKey().Draw(t, "b")
		if (nameKey.ID(a) == nameKey.ID(b)) != (a == b) {
			t.Fatalf("%+v and %+v are %s and %s", a, b, nameKey.ID(a), nameKey.ID(b))
		}
		if (movement.NameKey{}).ID(a) == nameKey.ID(a) {
			t.Fatalf("%+v has one id under two keys", a)
		}
		u := uuid.UUID(nameKey.ID(a))
		if u.Version() != 8 || u.Variant() != uuid.RFC4122 {
			t.Fatalf("%s is no UUID that its maker chose", u)
		}
	})
	moved := []movement.Key{
		keyOf("ab", "live", manifest.Order, "c"), keyOf("a", "blive", manifest.Order, "c"), keyOf("ab", "test", manifest.Order, "c"),
		keyOf("ab", "live", manifest.Transfer, "c"), keyOf("ab", "live", "", "orderc"), keyOf("ab", "live", "order", "c\x00"),
	}
	seen := map[movement.ID]movement.Key{}
	for _, key := range moved {
		id := nameKey.ID(key)
		if other, is := seen[id]; is {
			t.Errorf("%+v and %+v have one id", key, other)
		}
		seen[id] = key
	}
}

func TestNameKeys(t *testing.T) {
	t.Parallel()
	key := movement.NewNameKey()
	if back, err := movement.ReadNameKey(key[:]); err != nil || back != key || key == movement.NewNameKey() {
		t.Errorf("%x reads as %x, %v", key, back, err)
	}
	for _, n := range []int{0, 31, 33} {
		if _, err := movement.ReadNameKey(make([]byte, n)); err == nil {
			t.Errorf("%d bytes are a key", n)
		}
	}
}

func TestUpstreamReferenceRoundTrip(t *testing.T) {
	t.Parallel()
	request := rapid.SliceOf(rapid.Byte())
	rapid.Check(t, func(t *rapid.T) {
		m := movement.Movement{
			ID: anyID().Draw(t, "id"), Attempt: rapid.IntRange(1, 1<<31-1).Draw(t, "attempt"), Request: json.RawMessage(request.Draw(t, "request")),
		}
		text := m.UpstreamReference()
		if id, ok := movement.ParseUpstreamReference(text); !ok || id != m.ID {
			t.Fatalf("%s reads as %s, %v", text, id, ok)
		}
		if again, of := m, uuid.UUID(m.ID); of.Version() == 8 {
			again.Attempt++
			if again.UpstreamReference() != text || len(text) != manifest.ReferenceLength || strings.Trim(text, manifest.ReferenceAlphabet) != "" {
				t.Fatalf("two attempts are %s and %s", text, again.UpstreamReference())
			}
			if again.Request = json.RawMessage(request.Draw(t, "another")); (again.UpstreamReference() == text) != m.SameRequest(again.Request) {
				t.Fatalf("%q and %q have the names %s and %s", m.Request, again.Request, text, again.UpstreamReference())
			}
		} else if again.Attempt++; again.UpstreamReference() == text {
			t.Fatalf("two attempts of before are both %s", text)
		}
	})
}

// TestDigestsGoByTheID: who finds two requests with one digest has found nothing for
// any other movement.
func TestDigestsGoByTheID(t *testing.T) {
	t.Parallel()
	digests := map[string]bool{}
	for _, reference := range []string{"A", "B", "C"} {
		m := movement.Movement{ID: nameKey.ID(keyOf("mer_1", "live", manifest.Order, reference)), Request: json.RawMessage(`{"same":1}`)}
		digests[m.UpstreamReference()[32:]] = true
	}
	if len(digests) != 3 {
		t.Errorf("one request has the digests %v under three references", digests)
	}
}

func TestParseUpstreamReferenceRefuses(t *testing.T) {
	t.Parallel()
	const now, before = "00112233445586778899aabbccddeeff", "00112233445546778899aabbccddeeff"
	for _, text := range []string{now + "01234567", before + "-1", before + "-4711"} {
		if _, ok := movement.ParseUpstreamReference(text); !ok {
			t.Fatalf("%q, the form that the others differ from, is refused", text)
		}
	}
	for _, text := range []string{
		"", "-", now, now + "0123456", now + "012345678", now + "0123456g", now + "01234567-1", now + "-1", strings.ToUpper(now) + "01234567",
		"g" + now[1:] + "01234567", before + "01234567", now[:16] + "0" + now[17:] + "01234567",
		before, before + "-", before + "-0", before + "--1", before + "-+1", before + "-01", before + "-1 ", before + "-1-1",
		before + "-99999999999999999999", before + "-x", before[1:] + "-1", "0" + before + "-1",
		strings.ToUpper(before) + "-1", "g" + before[1:] + "-1", before + "00-1", "INV/2026/#001",
	} {
		if id, ok := movement.ParseUpstreamReference(text); ok || id != (movement.ID{}) {
			t.Errorf("%q reads as %s, %v", text, id, ok)
		}
	}
}

func FuzzParseUpstreamReference(f *testing.F) {
	f.Add("00112233445546778899aabbccddeeff-1")
	f.Add("00112233445546778899AABBCCDDEEFF-01")
	f.Add("00112233445586778899aabbccddeeff01234567")
	f.Add("-1")
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := movement.ParseUpstreamReference(text)
		if ok && !strings.HasPrefix(text, id.Compact()) {
			t.Errorf("%q reads as of %s", text, id)
		}
	})
}

func TestIDs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := anyID().Draw(t, "id")
		if back, err := movement.ParseID(id.String()); err != nil || back != id {
			t.Fatalf("%s reads as %s, %v", id, back, err)
		}
		if b := id.Bucket(); b < 0 || b >= movement.Buckets {
			t.Fatalf("bucket %d", b)
		}
	})
	if _, err := movement.ParseID("INV/2026/#001"); err == nil {
		t.Error("a reference passes for an id")
	}
	var random, keyed [movement.Buckets]int
	for i := range 200 * movement.Buckets {
		random[movement.NewID().Bucket()]++
		keyed[nameKey.ID(keyOf("mer_1", "live", manifest.Order, strings.Repeat("x", i%50)+string(rune('A'+i/50)))).Bucket()]++
	}
	for bucket := range movement.Buckets {
		for _, n := range []int{random[bucket], keyed[bucket]} {
			if n < 100 || n > 300 { // seven deviations from the 200 that are expected
				t.Errorf("bucket %d has %d of %d", bucket, n, 200*movement.Buckets)
			}
		}
	}
}
