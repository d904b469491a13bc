package console_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestAKeyMayDoNoMoreThanItWasMadeFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.merchant()
	key, err := adminapi.CreateKey.Call(t.Context(), w, adminapi.NewKey{
		Merchant: made.MerchantID,
		Mode:     "live", Scopes: []string{"read", "collect"}, IPs: []string{"192.0.2.7", "2001:db8::1/64"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !w.works(key.SecretKey, "192.0.2.7") || !w.works(key.SecretKey, "2001:db8::9") || w.works(key.SecretKey, "192.0.2.8") {
		t.Error("the addresses do not hold")
	}
	stored, ok := w.account(made.MerchantID).Key(tenants.KeyID(key.KeyID))
	if !ok || stored.Mode != tenants.Live || stored.Scopes.String() != "read,collect" {
		t.Errorf("stored %+v", stored)
	}
}

func TestAKeyIsRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.merchant()
	old, err := tenants.ParseKey(made.LiveKey)
	if err != nil {
		t.Fatal(err)
	}
	next, err := adminapi.RotateKey.Call(t.Context(), w, adminapi.KeyRotation{Merchant: made.MerchantID, Key: string(old.ID)})
	if err != nil {
		t.Fatal(err)
	}
	if !w.works(made.LiveKey, "192.0.2.1") || !w.works(next.SecretKey, "192.0.2.1") {
		t.Error("within the overlap both keys must work")
	}
	retiring, _ := w.account(made.MerchantID).Key(old.ID)
	if retiring.ExpiresAt == nil || time.Until(*retiring.ExpiresAt) > 24*time.Hour || time.Until(*retiring.ExpiresAt) < 23*time.Hour {
		t.Errorf("the overlap is not a day: %v", retiring.ExpiresAt)
	}

	last, err := adminapi.RotateKey.Call(t.Context(), w, adminapi.KeyRotation{Merchant: made.MerchantID, Key: next.KeyID, Overlap: "0s"})
	if err != nil {
		t.Fatal(err)
	}
	if w.works(next.SecretKey, "192.0.2.1") || !w.works(last.SecretKey, "192.0.2.1") {
		t.Error("without an overlap only the new key must work")
	}
	_, err = adminapi.RotateKey.Call(t.Context(), w, adminapi.KeyRotation{Merchant: made.MerchantID, Key: next.KeyID})
	w.refused(err, http.StatusBadRequest, "key_id")
	for _, overlap := range []string{"tomorrow", "-1s", "721h"} {
		_, err = adminapi.RotateKey.Call(t.Context(), w, adminapi.KeyRotation{Merchant: made.MerchantID, Key: last.KeyID, Overlap: overlap})
		w.refused(err, http.StatusBadRequest, "overlap")
	}
}

func TestAKeyHasAName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	names := func() (names []string) {
		shown, err := adminapi.ShowMerchant.Call(t.Context(), w, adminapi.MerchantID{Merchant: id})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range shown.Keys {
			names = append(names, k.Name)
		}
		slices.Sort(names)
		return names
	}
	day := " " + time.Now().UTC().Format(time.DateOnly)
	made, err := adminapi.CreateKey.Call(t.Context(), w, adminapi.NewKey{Merchant: id, Mode: "live", Name: "till 7"})
	if got := names(); err != nil || made.Name != "till 7" || !slices.Equal(got, []string{"live" + day, "test" + day, "till 7"}) {
		t.Errorf("the keys are called %q; %v", got, err)
	}
	renamed, err := adminapi.RenameKey.Call(t.Context(), w, adminapi.KeyName{Merchant: id, Key: made.KeyID, Name: "warehouse"})
	if err != nil || renamed.Name != "warehouse" || !slices.Contains(names(), "warehouse") {
		t.Errorf("renamed to %q; %v", renamed.Name, err)
	}
	next, err := adminapi.RotateKey.Call(t.Context(), w, adminapi.KeyRotation{Merchant: id, Key: made.KeyID})
	if err != nil || next.Name != "warehouse" {
		t.Errorf("the next key is called %q; %v", next.Name, err)
	}
	if cleared, err := adminapi.RenameKey.Call(t.Context(), w, adminapi.KeyName{Merchant: id, Key: next.KeyID}); err != nil || cleared.Name != "live"+day {
		t.Errorf("without a name it is called %q; %v", cleared.Name, err)
	}
	_, err = adminapi.RenameKey.Call(t.Context(), w, adminapi.KeyName{Merchant: w.merchant().MerchantID, Key: made.KeyID, Name: "mine"})
	w.refused(err, http.StatusNotFound, "")
	_, err = adminapi.RenameKey.Call(t.Context(), w, adminapi.KeyName{Merchant: id, Key: made.KeyID, Name: "a\nb"})
	w.refused(err, http.StatusBadRequest, "name")
}

func TestAKeyIsRevokedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made, other := w.merchant(), w.merchant()
	id, err := tenants.ParseKey(made.TestKey)
	if err != nil {
		t.Fatal(err)
	}
	if !w.works(made.TestKey, "192.0.2.1") { // now it is in the directory's cache
		t.Fatal("the key does not work")
	}
	_, err = adminapi.RevokeKey.Call(t.Context(), w, adminapi.KeyRevocation{Merchant: other.MerchantID, Key: string(id.ID), Reason: ""})
	w.refused(err, http.StatusNotFound, "")
	revoked, err := adminapi.RevokeKey.Call(t.Context(), w, adminapi.KeyRevocation{Merchant: made.MerchantID, Key: string(id.ID), Reason: "leaked"})
	if err != nil || revoked.Usable || revoked.RevokedAt == nil {
		t.Errorf("revoked %+v, %v", revoked, err)
	}
	if w.works(made.TestKey, "192.0.2.1") || !w.works(made.LiveKey, "192.0.2.1") {
		t.Error("exactly the revoked key must stop")
	}
	if _, err := adminapi.RevokeKey.Call(t.Context(), w, adminapi.KeyRevocation{Merchant: made.MerchantID, Key: string(id.ID), Reason: ""}); err != nil {
		t.Errorf("a second revocation: %v", err)
	}
	if got := w.actions(made.MerchantID); !slices.Equal(got[1:], []string{"ayu key.revoke", "ayu key.revoke"}) {
		t.Errorf("audit %q", got)
	}
}

func TestWhatAKeyMayNotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	for field, wanted := range map[string][]adminapi.NewKey{
		"mode":   {{}, {Mode: "Live"}},
		"scopes": {{Mode: "live", Scopes: []string{"write"}}},
		"ips": {
			{Mode: "live", IPs: []string{"localhost"}}, {Mode: "live", IPs: []string{"192.0.2.0/33"}},
			{Mode: "live", IPs: slices.Repeat([]string{"192.0.2.1"}, 51)},
		},
	} {
		for _, k := range wanted {
			k.Merchant = id
			_, err := adminapi.CreateKey.Call(t.Context(), w, k)
			w.refused(err, http.StatusBadRequest, field)
		}
	}
	if n := len(w.account(id).Keys()); n != 2 {
		t.Errorf("there are %d keys", n)
	}
}
