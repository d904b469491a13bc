package console_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/policy"
)

// counted is a policy that counts what the bank tells, and everything.
const counted = `{
	"tiers": {"starter": {"rate_per_second": 1, "burst": 1, "quotas": {"names": {"limit": 5}}}},
	"quotas": {"names": {"operations": ["/bank/name"]}, "all": {"operations": ["/bank/name", "/pulsa/products"], "limit": 100}}
}`

func TestQuotasStandWhereTheyAre(t *testing.T) {
	t.Parallel()
	source := policy.Default()
	source["data.json"] = []byte(counted)
	set, err := policy.Compile(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 10, 31, 16, 30, 0, 0, time.UTC) // 23:30 in Jakarta, and in Jayapura the next month
	w := newWorld(t, func(_ *console.Config, deps *console.Dependencies) {
		deps.Policy, deps.Now = func() *policy.Set { return set }, func() time.Time { return now }
	})
	ctx := t.Context()
	made, err := adminapi.CreateMerchant.Call(ctx, w, adminapi.NewMerchant{Name: "Toko", Tier: "starter"})
	if err != nil {
		t.Fatal(err)
	}
	east, err := adminapi.CreateMerchant.Call(ctx, w, adminapi.NewMerchant{Name: "Toko", Tier: "starter", Labels: map[string]string{"time_zone": "Asia/Jayapura"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, used := range []struct{ merchant, mode, name, period string }{
		{made.MerchantID, "live", "names", "2026-10"}, {made.MerchantID, "live", "names", "2026-09"}, {made.MerchantID, "live", "gone", "2026-10"},
		{made.MerchantID, "test", "all", "2026-10"}, {east.MerchantID, "live", "names", "2026-11"},
	} {
		owner := movement.Owner{MerchantID: used.merchant, Mode: used.mode}
		if _, _, err := w.store.TakeUsage(ctx, owner, used.name, used.period, "r", 1, int64(i+1), 100); err != nil {
			t.Fatal(err)
		}
	}
	both, one := []string{"/bank/name", "/pulsa/products"}, []string{"/bank/name"}
	for name, c := range map[string]struct {
		merchant, mode string
		want           adminapi.Quotas
	}{
		"live": {made.MerchantID, "live", adminapi.Quotas{Period: "2026-10", ResetsAt: time.Date(2026, 10, 31, 17, 0, 0, 0, time.UTC), Quotas: []adminapi.Quota{
			{Quota: "all", Limit: new(int64(100)), Remaining: new(int64(100)), Operations: both},
			{Quota: "gone", Used: 3},
			{Quota: "names", Limit: new(int64(5)), Used: 1, Remaining: new(int64(4)), Operations: one},
		}}},
		"test": {made.MerchantID, "test", adminapi.Quotas{Period: "2026-10", ResetsAt: time.Date(2026, 10, 31, 17, 0, 0, 0, time.UTC), Quotas: []adminapi.Quota{
			{Quota: "all", Limit: new(int64(100)), Used: 4, Remaining: new(int64(96)), Operations: both},
			{Quota: "names", Limit: new(int64(5)), Remaining: new(int64(5)), Operations: one},
		}}},
		"in the east, used up": {east.MerchantID, "live", adminapi.Quotas{Period: "2026-11", ResetsAt: time.Date(2026, 11, 30, 15, 0, 0, 0, time.UTC), Quotas: []adminapi.Quota{
			{Quota: "all", Limit: new(int64(100)), Remaining: new(int64(100)), Operations: both},
			{Quota: "names", Limit: new(int64(5)), Used: 5, Remaining: new(int64(0)), Operations: one},
		}}},
	} {
		got, err := adminapi.ShowQuotas.Call(ctx, w, adminapi.InMode{Merchant: c.merchant, Mode: c.mode})
		c.want.MerchantID, c.want.Mode = c.merchant, c.mode
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	_, err = adminapi.ShowQuotas.Call(ctx, w, adminapi.InMode{Merchant: made.MerchantID, Mode: "both"})
	w.refused(err, http.StatusBadRequest, "mode")
	_, err = adminapi.ShowQuotas.Call(ctx, w, adminapi.InMode{Merchant: "mer_none", Mode: "live"})
	w.refused(err, http.StatusNotFound, "")
	_, err = adminapi.ShowQuotas.Call(ctx, w, adminapi.InMode{Merchant: "platform", Mode: "live"})
	w.refused(err, http.StatusBadRequest, "")
	_, err = adminapi.CreateMerchant.Call(ctx, w, adminapi.NewMerchant{Name: "Toko", Tier: "starter", Labels: map[string]string{"time_zone": "Mars/Olympus"}})
	w.refused(err, http.StatusBadRequest, "labels")
}
