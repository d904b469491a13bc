package policy_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// sales is a policy whose quota counts payments that are created or asked about.
func sales(limit int64) []byte {
	return fmt.Appendf(nil, `{
	"tiers": {"scale": {"rate_per_second": 1000, "burst": 1000, "quotas": {"sales": {"limit": %d}}}, "starter": {"rate_per_second": 1000, "burst": 1000}},
	"quotas": {"sales": {"operations": ["/payments/create", "/payments/status"]}}
}`, limit)
}

// quotaUsedUp uses up a quota: only what was done is counted, a retry of an
// existing payment is still answered, and an edit of the limit resets nothing.
func quotaUsedUp(t *testing.T, p *harness.Program, edit *harness.PolicyData) {
	t.Helper()
	of := harness.NewMerchant(t, p, "payments")
	s := p.Of(of, "live")
	limit := func(n int64) {
		t.Helper()
		edit.WriteText(t, string(sales(n)))
		harness.Await(t, harness.ReadyWithin, "the limit", func() bool { return limited(t, s) == n })
	}
	limit(3)
	first := s.PaymentBody(nil)
	for _, step := range []struct {
		path string
		body harness.Fields
		want fault.Code
		used int64
	}{
		{"/payments/create", first, "", 1},
		{"/payments/create", first, "", 1},
		{"/payments/create", first.With(harness.Fields{"amount": 20000}), fault.DuplicateReference, 1},
		{"/payments/create", s.PaymentBody(harness.Fields{"amount": 1}), fault.InvalidRequest, 1},
		{"/payments/status", harness.Fields{"external_id": "none"}, fault.NotFound, 1},
		{"/payments/status", harness.Fields{"external_id": first["external_id"]}, "", 2},
		{"/payments/cancel", harness.Fields{"external_id": first["external_id"]}, "", 2},
		{"/payments/create", s.PaymentBody(nil), "", 3},
		{"/payments/create", s.PaymentBody(nil), fault.QuotaExceeded, 3},
		{"/payments/status", harness.Fields{"external_id": first["external_id"]}, fault.QuotaExceeded, 3},
		{"/payments/create", first, "", 3},
	} {
		a := s.Ask(t, step.path, step.body)
		if a.Code != step.want {
			t.Fatalf("%s %v: %s, want %q", step.path, step.body, a, step.want)
		}
		wantUsed(t, s, step.used, 3)
		if a.Code == fault.QuotaExceeded {
			harness.WantQuotaExceeded(t, a)
		}
	}
	if a := p.Of(of, "test").Ask(t, "/payments/create", s.PaymentBody(nil)); !a.Success {
		t.Errorf("test mode has no quota of its own: %s", a)
	}
	limit(2)
	wantUsed(t, s, 3, 2)
	limit(4)
	if a := s.Ask(t, "/payments/create", s.PaymentBody(nil)); !a.Success {
		t.Errorf("below the higher limit: %s", a)
	}
	wantUsed(t, s, 4, 4)
	ownLimits(t, s)
}

// ownLimits gives the merchant limits of its own, which go before the tier's, and
// takes them away. Four of the quota are used.
func ownLimits(t *testing.T, s harness.Shop) {
	t.Helper()
	operate := func(change adminapi.LimitChange) {
		t.Helper()
		change.Merchant = s.MerchantID
		if _, err := adminapi.SetLimits.Call(t.Context(), s.Admin(), change); err != nil {
			t.Fatal(err)
		}
	}
	sales := func(n int64) adminapi.NewLimit { return adminapi.NewLimit{Name: "sales", Limit: &n} }
	operate(adminapi.LimitChange{Limits: []adminapi.NewLimit{sales(5)}, For: "2h", Reason: "a fair"})
	if a := s.Ask(t, "/payments/create", s.PaymentBody(nil)); !a.Success {
		t.Errorf("the merchant's own limit does not count at once: %s", a)
	}
	wantUsed(t, s, 5, 5)
	if a := s.Ask(t, "/payments/create", s.PaymentBody(nil)); a.Code != fault.QuotaExceeded {
		t.Errorf("beyond the merchant's own limit: %s", a)
	}
	operate(adminapi.LimitChange{Limits: []adminapi.NewLimit{sales(50)}, For: "1s", Reason: "a moment"})
	harness.Await(t, harness.ReadyWithin, "the end of a limit", func() bool { return limited(t, s) == 4 })
	if a := s.Ask(t, "/payments/create", s.PaymentBody(nil)); a.Code != fault.QuotaExceeded {
		t.Errorf("after the merchant's own limit has expired: %s", a)
	}
	operate(adminapi.LimitChange{Limits: []adminapi.NewLimit{sales(9), {Name: "default", RatePerSecond: 1. / 3600, Burst: 1}}, Reason: "slow"})
	if a := s.Ask(t, "/payments/create", s.PaymentBody(nil)); a.Code != "" {
		t.Errorf("the first of a burst: %s", a)
	}
	if a := s.Ask(t, "/payments/create", s.PaymentBody(nil)); a.Code != fault.RateLimited {
		t.Errorf("beyond the merchant's own rate: %s", a)
	}
	if _, err := adminapi.RemoveLimit.Call(t.Context(), s.Admin(), adminapi.LimitRemoval{Merchant: s.MerchantID, Name: "default", Reason: "over"}); err != nil {
		t.Fatal(err)
	}
	// A bucket that was empty begins to fill at the tier's pace.
	harness.Await(t, harness.ReadyWithin, "the tier's rate", func() bool { return s.Ask(t, "/payments/create", s.PaymentBody(nil)).Success })
	if text, err := s.Run(t, "merchant", "limit", s.MerchantID, "--quota", "sale=5", "--reason", "misspelt"); err == nil || !strings.Contains(text, "it has no quota sale") {
		t.Errorf("a misspelt quota: %v, %s", err, text)
	}
}

// quotaOf is the quota as an operator reads it.
func quotaOf(t *testing.T, s harness.Shop) adminapi.Quota {
	t.Helper()
	found, err := adminapi.ShowQuotas.Call(t.Context(), s.Admin(), adminapi.InMode{Merchant: s.MerchantID, Mode: "live"})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range found.Quotas {
		if q.Quota == "sales" {
			return q
		}
	}
	return adminapi.Quota{}
}

// limited is the quota's limit, 0 where there is none.
func limited(t *testing.T, s harness.Shop) int64 {
	t.Helper()
	if q := quotaOf(t, s); q.Limit != nil {
		return *q.Limit
	}
	return 0
}

func wantUsed(t *testing.T, s harness.Shop, used, limit int64) {
	t.Helper()
	left := max(0, limit-used)
	want := adminapi.Quota{Quota: "sales", Limit: &limit, Used: used, Remaining: &left, Operations: []string{"/payments/create", "/payments/status"}}
	if got := quotaOf(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("shown %+v, want %+v", got, want)
	}
}
