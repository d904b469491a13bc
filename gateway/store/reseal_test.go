package store_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// sealedOf finds what of an account is sealed, by pages of one.
func sealedOf(tb testing.TB, s *store.Store, id tenants.MerchantID) (found store.Sealed) {
	tb.Helper()
	for after := tenants.MerchantID(""); ; {
		page, err := s.SealedAfter(tb.Context(), after, 1)
		if err != nil {
			tb.Fatal(err)
		}
		if len(page) == 0 {
			return found
		}
		if after = page[0].MerchantID; after == id {
			found = page[0]
		}
	}
}

// anew is what was sealed, sealed by another key.
func anew(was store.Sealed) store.Sealed {
	becomes := store.Sealed{MerchantID: was.MerchantID, Connections: slices.Clone(was.Connections), Secrets: slices.Clone(was.Secrets)}
	for i := range becomes.Connections {
		becomes.Connections[i].Sealed = append([]byte("anew "), becomes.Connections[i].Sealed...)
	}
	for i := range becomes.Secrets {
		becomes.Secrets[i].Sealed = append([]byte("anew "), becomes.Secrets[i].Sealed...)
	}
	return becomes
}

func TestWhatIsSealedIsListed(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	n, other := newTenant(t).store(t, s), newTenant(t).store(t, s)
	for _, of := range []*tenant{n, other} {
		found := sealedOf(t, s, of.merchant.ID)
		if len(found.Connections) != 2 || len(found.Secrets) != 2 {
			t.Fatalf("found %+v", found)
		}
		for i, c := range found.Connections {
			want := of.connections[i]
			if c.MerchantID != want.MerchantID || c.Mode != want.Mode || c.Provider != want.Provider || !bytes.Equal(c.Sealed, want.Sealed) {
				t.Errorf("found %+v, want %+v", c, want)
			}
		}
		for i, c := range found.Secrets {
			if c.Mode != of.secrets[i].Mode || !bytes.Equal(c.Sealed, of.secrets[i].Sealed) || c.Next != nil {
				t.Errorf("found %+v, want %+v", c, of.secrets[i])
			}
		}
	}
	all, err := s.SealedAfter(t.Context(), "", 100)
	if err != nil || len(all) != 3 || !slices.ContainsFunc(all, func(of store.Sealed) bool { return of.MerchantID == tenants.Platform }) {
		t.Errorf("%d accounts, %v, want both and the platform's", len(all), err)
	}
}

// TestPolicyMACsAreResealed: those of the head, of versions and of activations.
func TestPolicyMACsAreResealed(t *testing.T) {
	t.Parallel()
	s, _ := withFirst(t)
	was := store.Sealed{MerchantID: tenants.Platform, Policies: sealedOf(t, s, tenants.Platform).Policies}
	if len(was.Policies) != 3 {
		t.Fatalf("found %+v", was.Policies)
	}
	becomes := store.Sealed{MerchantID: tenants.Platform, Policies: slices.Clone(was.Policies)}
	for i := range becomes.Policies {
		becomes.Policies[i].MAC = append([]byte("anew "), becomes.Policies[i].MAC...)
	}
	if changed, err := s.Reseal(t.Context(), by("reseal"), was, becomes); changed != 3 || err != nil {
		t.Error(changed, err)
	}
	head := headOf(t, s)
	version, err := s.PolicyVersion(t.Context(), head.Version)
	if err != nil {
		t.Fatal(err)
	}
	done, err := s.Activation(t.Context(), head.Activation)
	if err != nil || string(head.MAC) != "anew mac" || string(version.MAC) != "anew mac" || string(done.MAC) != "anew done" {
		t.Errorf("%q %q %q, %v", head.MAC, version.MAC, done.MAC, err)
	}
}

// TestWhatOthersReplacedStaysTheirs, and where nothing is left to do nothing is
// on the record.
func TestWhatOthersReplacedStaysTheirs(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	n := newTenant(t).store(t, s)
	id := n.merchant.ID
	was := sealedOf(t, s, id)

	n.connections[0].Sealed = []byte("replaced")
	if _, err := s.PutConnection(t.Context(), by("connect"), n.connections[0]); err != nil {
		t.Fatal(err)
	}
	rotating := n.secrets[1]
	rotating.Next, rotating.URL = []byte("next"), "https://shop.example.com"
	if err := s.SetCallbackSecret(t.Context(), by("rotate"), rotating, account(t, s, id).Version()); err != nil {
		t.Fatal(err)
	}
	before := account(t, s, id)
	entry := store.Audit{Operator: "ops-2", Action: "keyset.reseal", At: epoch.Add(time.Minute)}
	if changed, err := s.Reseal(t.Context(), entry, was, anew(was)); err != nil || changed != 2 {
		t.Errorf("changed %d, %v, want the two that nobody had changed", changed, err)
	}
	after := account(t, s, id)
	first, _ := after.Connection(tenants.Live, "payments")
	second, _ := after.Connection(tenants.Test, "payments")
	live, _ := after.CallbackSecret(tenants.Live)
	test, _ := after.CallbackSecret(tenants.Test)
	if string(first.Sealed) != "replaced" || first.Version != 2 || !bytes.HasPrefix(second.Sealed, []byte("anew ")) || second.Version != 1 {
		t.Errorf("connections %+v and %+v", first, second)
	}
	if !bytes.HasPrefix(live.Sealed, []byte("anew ")) || !bytes.Equal(test.Sealed, rotating.Sealed) || string(test.Next) != "next" || test.URL != rotating.URL {
		t.Errorf("secrets %+v and %+v", live, test)
	}
	if list := audits(t, s, id); after.Version() != before.Version()+1 || list[0] != entry {
		t.Errorf("version %d after %d, audit %+v", after.Version(), before.Version(), list[0])
	}

	if changed, err := s.Reseal(t.Context(), by("again"), was, anew(was)); err != nil || changed != 0 {
		t.Errorf("changed %d, %v", changed, err)
	}
	if list := audits(t, s, id); account(t, s, id).Version() != after.Version() || list[0] != entry {
		t.Errorf("nothing was done, and yet: %+v", list[0])
	}
	is := sealedOf(t, s, id)
	if changed, err := s.Reseal(t.Context(), by("next"), is, anew(is)); err != nil || changed != 4 {
		t.Errorf("changed %d, %v, want all four, the rotating one too", changed, err)
	}
}
