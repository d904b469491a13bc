package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// sales is a policy whose quota counts payments that are created or asked about.
func sales(limit int) []byte {
	return fmt.Appendf(nil, `{
	"tiers": {"starter": {"rate_per_second": 1000, "burst": 1000, "quotas": {"sales": {"limit": %d}}}, "scale": {"rate_per_second": 1000, "burst": 1000}},
	"quotas": {"sales": {"operations": ["/payments/create", "/payments/status"]}}
}`, limit)
}

// TestQuota uses a quota up: only what was done is counted, a retry of what exists
// is answered all the same, and an edit of the limit resets nothing.
func TestQuota(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "data.json")
	limit := func(n int) {
		if err := os.WriteFile(file, sales(n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	limit(3)
	p := start(t, settings{flags: []string{"--policy-dir", filepath.Dir(file)}})
	s := p.shop(small, "live")
	first := s.order(nil)
	for _, step := range []struct {
		path string
		body fields
		want fault.Code
		used int
	}{
		{"/payments/create", first, "", 1},
		{"/payments/create", first, "", 1},
		{"/payments/create", first.with(fields{"amount": 20000}), fault.DuplicateReference, 1},
		{"/payments/create", s.order(fields{"amount": 1}), fault.InvalidRequest, 1},
		{"/payments/status", fields{"external_id": "none"}, fault.NotFound, 1},
		{"/payments/status", fields{"external_id": first["external_id"]}, "", 2},
		{"/payments/cancel", fields{"external_id": first["external_id"]}, "", 2},
		{"/payments/create", s.order(nil), "", 3},
		{"/payments/create", s.order(nil), fault.QuotaExceeded, 3},
		{"/payments/status", fields{"external_id": first["external_id"]}, fault.QuotaExceeded, 3},
		{"/payments/create", first, "", 3},
	} {
		a := s.ask(t, step.path, step.body)
		if a.Code != step.want {
			t.Fatalf("%s %v: %s, want %q", step.path, step.body, a, step.want)
		}
		s.wantUsed(t, step.used, 3)
		if a.Code == fault.QuotaExceeded {
			wantUsedUp(t, a)
		}
	}
	if a := p.shop(small, "test").ask(t, "/payments/create", s.order(nil)); !a.Success {
		t.Errorf("test mode has no quota of its own: %s", a)
	}
	limit(2)
	await(t, liveWithin, "the lower limit", func() bool { return s.used(t)[1] == "2" })
	s.wantUsed(t, 3, 2)
	limit(4)
	await(t, liveWithin, "the higher limit", func() bool { return s.ask(t, "/payments/create", s.order(nil)).Success })
	s.wantUsed(t, 4, 4)
	s.ownLimits(t)
}

// ownLimits gives the merchant limits of its own, which go before the tier's, and
// takes them away. Four of the quota are used.
func (s shop) ownLimits(t *testing.T) {
	t.Helper()
	operate := func(args ...string) {
		t.Helper()
		if text, err := s.run(t, append([]string{"merchant", "limit", s.merchant}, args...)...); err != nil {
			t.Fatal(err, text)
		}
	}
	operate("--quota", "sales=5", "--for", "2h", "--reason", "a fair")
	if a := s.ask(t, "/payments/create", s.order(nil)); !a.Success {
		t.Errorf("the merchant's own limit does not count at once: %s", a)
	}
	s.wantUsed(t, 5, 5)
	if a := s.ask(t, "/payments/create", s.order(nil)); a.Code != fault.QuotaExceeded {
		t.Errorf("beyond the merchant's own limit: %s", a)
	}
	operate("--quota", "sales=50", "--for", "1s", "--reason", "a moment")
	await(t, liveWithin, "the end of a limit", func() bool { return s.used(t)[1] == "4" })
	if a := s.ask(t, "/payments/create", s.order(nil)); a.Code != fault.QuotaExceeded {
		t.Errorf("after the merchant's own limit has expired: %s", a)
	}
	operate("--quota", "sales=9", "--rate", "1/h", "--burst", "1", "--reason", "slow")
	if a := s.ask(t, "/payments/create", s.order(nil)); a.Code != "" {
		t.Errorf("the first of a burst: %s", a)
	}
	if a := s.ask(t, "/payments/create", s.order(nil)); a.Code != fault.RateLimited {
		t.Errorf("beyond the merchant's own rate: %s", a)
	}
	operate("--remove", "default", "--reason", "over")
	// A bucket that was empty begins to fill at the tier's pace.
	await(t, liveWithin, "the tier's rate", func() bool { return s.ask(t, "/payments/create", s.order(nil)).Success })
	if text, err := s.run(t, "merchant", "limit", s.merchant, "--quota", "sale=5", "--reason", "misspelt"); err == nil || !strings.Contains(text, "it has no quota sale") {
		t.Errorf("a misspelt quota: %v, %s", err, text)
	}
}

// wantUsedUp looks at what is told of a quota that is used up.
func wantUsedUp(t *testing.T, a answer) {
	t.Helper()
	var told struct {
		Remaining *int `json:"remaining_quota"`
	}
	at, err := time.Parse(time.RFC3339, a.RetryAt)
	if a.HTTP != http.StatusTooManyRequests || json.Unmarshal(a.Body, &told) != nil || told.Remaining == nil || *told.Remaining != 0 ||
		err != nil || at.Day() < 28 || at.Hour() != 17 || a.Header.Get("Retry-After") == "" || a.Header.Get("X-Svc-Decision-Id") == "" {
		t.Errorf("%s, headers %v", a, a.Header)
	}
}

// used is the line of the quota that an operator reads.
func (s shop) used(t *testing.T) []string {
	t.Helper()
	text, err := s.run(t, "quota", "show", s.merchant)
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

func (s shop) wantUsed(t *testing.T, used, limit int) {
	t.Helper()
	want := fmt.Sprintf("sales %d %d %d /payments/create /payments/status", limit, used, max(0, limit-used))
	if got := strings.Join(s.used(t), " "); got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
}
