package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestWhoStillUsesAKey: each address stands for itself, the last one first; what is too old or too many is forgotten at the
// next use, and other keys are let alone.
func TestWhoStillUsesAKey(t *testing.T) {
	t.Parallel()
	s, ctx := fresh(t), t.Context()
	use := func(key string, at time.Time, address string) tenants.KeyUse {
		return tenants.KeyUse{MerchantID: "mer_a", KeyID: tenants.KeyID(key), At: at, Address: address}
	}
	put := func(uses ...tenants.KeyUse) {
		t.Helper()
		if err := s.PutKeyUses(ctx, uses); err != nil {
			t.Fatal(err)
		}
	}
	told := func(want ...tenants.KeyUse) {
		t.Helper()
		if got, err := s.KeyUses(ctx, "mer_a"); err != nil || !slices.Equal(got, want) {
			t.Errorf("told %+v, %v; want %+v", got, err, want)
		}
	}
	other := use("key_2", epoch, "203.0.113.9")
	put(other)
	first, second := use("key_1", epoch, "203.0.113.1"), use("key_1", epoch.Add(time.Minute), "203.0.113.2")
	put(first, second)
	put(first) // of a replica that is late
	told(second, first, other)

	later := use("key_1", epoch.Add(30*24*time.Hour+time.Minute), "203.0.113.3")
	put(later)
	told(later, second, other)

	var many []tenants.KeyUse
	for i := range 25 {
		many = append(many, use("key_1", later.At.Add(time.Duration(i+1)*time.Minute), fmt.Sprintf("10.0.0.%d", i)))
	}
	put(many...)
	slices.Reverse(many)
	told(append(many[:20:20], other)...)
}
