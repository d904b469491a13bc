package store_test

import (
	"maps"
	"testing"

	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestMerchantsByTier: the platform is no merchant.
func TestMerchantsByTier(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	one, two := newTenant(t).store(t, s), newTenant(t).store(t, s)
	if err := s.SetTier(t.Context(), by("merchant.tier"), two.merchant.ID, "other"); err != nil {
		t.Fatal(err)
	}
	counts, err := s.MerchantsByTier(t.Context())
	if want := map[string]int{string(one.merchant.Tier): 1, "other": 1}; err != nil || !maps.Equal(counts, want) {
		t.Errorf("%v, %v; want %v", counts, err, want)
	}
	ids := []string{string(one.merchant.ID), "mer_none", string(tenants.Platform)}
	there, err := s.MerchantsThere(t.Context(), ids)
	if want := map[string]bool{ids[0]: true, ids[1]: false, ids[2]: false}; err != nil || !maps.Equal(there, want) {
		t.Errorf("%v, %v; want %v", there, err, want)
	}
}
