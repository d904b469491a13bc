package policy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// sales is a policy whose quota counts payments that are created or asked about.
func sales(limit int) []byte {
	return fmt.Appendf(nil, `{
	"tiers": {"starter": {"rate_per_second": 1000, "burst": 1000, "quotas": {"sales": {"limit": %d}}}, "scale": {"rate_per_second": 1000, "burst": 1000}},
	"quotas": {"sales": {"operations": ["/payments/create", "/payments/status"]}}
}`, limit)
}

// TestQuota uses up a quota: only what was done is counted, a retry of an
// existing payment is still answered, and an edit of the limit resets nothing.
func TestQuota(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data.json")
	limit := func(n int) {
		if err := os.WriteFile(file, sales(n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	limit(3)
	p := harness.Start(t, harness.Settings{Flags: []string{"--policy-dir", filepath.Dir(file)}})
	s := p.Shop(harness.Small, "live")
	first := s.PaymentBody(nil)
	for _, step := range []struct {
		path string
		body harness.Fields
		want fault.Code
		used int
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
	if a := p.Shop(harness.Small, "test").Ask(t, "/payments/create", s.PaymentBody(nil)); !a.Success {
		t.Errorf("test mode has no quota of its own: %s", a)
	}
	limit(2)
	harness.Await(t, harness.PolicyLiveWithin, "the lower limit", func() bool { return usedQuota(t, s)[1] == "2" })
	wantUsed(t, s, 3, 2)
	limit(4)
	harness.Await(t, harness.PolicyLiveWithin, "the higher limit", func() bool { return s.Ask(t, "/payments/create", s.PaymentBody(nil)).Success })
	wantUsed(t, s, 4, 4)
	ownLimits(t, s)
}

// ownLimits gives the merchant limits of its own, which go before the tier's, and
// takes them away. Four of the quota are used.
func ownLimits(t *testing.T, s harness.Shop) {
	t.Helper()
	operate := func(args ...string) {
		t.Helper()
		if text, err := s.Run(t, append([]string{"merchant", "limit", s.MerchantID}, args...)...); err != nil {
			t.Fatal(err, text)
		}
	}
	operate("--quota", "sales=5", "--for", "2h", "--reason", "a fair")
	if a := s.Ask(t, "/payments/create", s.PaymentBody(nil)); !a.Success {
		t.Errorf("the merchant's own limit does not count at once: %s", a)
	}
	wantUsed(t, s, 5, 5)
	if a := s.Ask(t, "/payments/create", s.PaymentBody(nil)); a.Code != fault.QuotaExceeded {
		t.Errorf("beyond the merchant's own limit: %s", a)
	}
	operate("--quota", "sales=50", "--for", "1s", "--reason", "a moment")
	harness.Await(t, harness.PolicyLiveWithin, "the end of a limit", func() bool { return usedQuota(t, s)[1] == "4" })
	if a := s.Ask(t, "/payments/create", s.PaymentBody(nil)); a.Code != fault.QuotaExceeded {
		t.Errorf("after the merchant's own limit has expired: %s", a)
	}
	operate("--quota", "sales=9", "--rate", "1/h", "--burst", "1", "--reason", "slow")
	if a := s.Ask(t, "/payments/create", s.PaymentBody(nil)); a.Code != "" {
		t.Errorf("the first of a burst: %s", a)
	}
	if a := s.Ask(t, "/payments/create", s.PaymentBody(nil)); a.Code != fault.RateLimited {
		t.Errorf("beyond the merchant's own rate: %s", a)
	}
	operate("--remove", "default", "--reason", "over")
	// A bucket that was empty begins to fill at the tier's pace.
	harness.Await(t, harness.PolicyLiveWithin, "the tier's rate", func() bool { return s.Ask(t, "/payments/create", s.PaymentBody(nil)).Success })
	if text, err := s.Run(t, "merchant", "limit", s.MerchantID, "--quota", "sale=5", "--reason", "misspelt"); err == nil || !strings.Contains(text, "it has no quota sale") {
		t.Errorf("a misspelt quota: %v, %s", err, text)
	}
}

// usedQuota is the line of the quota that an operator reads.
func usedQuota(t *testing.T, s harness.Shop) []string {
	t.Helper()
	text, err := s.Run(t, "quota", "show", s.MerchantID)
	if err != nil {
		t.Fatal(err, text)
	}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); len(words) > 3 && words[0] == "sales" {
			return words
		}
	}
	t.Fatalf("no quota is shown:\n%s", text)
	return nil
}

func wantUsed(t *testing.T, s harness.Shop, used, limit int) {
	t.Helper()
	want := fmt.Sprintf("sales %d %d %d /payments/create /payments/status", limit, used, max(0, limit-used))
	if got := strings.Join(usedQuota(t, s), " "); got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
}
