package policy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestPolicyDirectory edits the policy's directory beside a running gateway. It has data.json
// alone, so the default rules stay.
func TestPolicyDirectory(t *testing.T) { //nolint:tparallel // its parts take turns on one gateway
	t.Parallel()
	edit := &harness.PolicyData{File: filepath.Join(t.TempDir(), "data.json")}
	edit.SetRate(t, 1, 2, 0)
	p := harness.Start(t, harness.Settings{Flags: []string{"--policy-dir", filepath.Dir(edit.File)}})
	t.Run("edits are live at once", func(t *testing.T) { policyEdits(t, p, edit) })
	t.Run("a quota is used up", func(t *testing.T) { quotaUsedUp(t, p, edit) })
}

func policyEdits(t *testing.T, p *harness.Program, edit *harness.PolicyData) {
	t.Helper()
	s := p.Shop(harness.Small, "live")
	first := s.PaymentBody(nil)
	if a := s.Ask(t, "/payments/create", first); !a.Success {
		t.Fatal(a)
	}
	wantLimited(t, s, first)

	// An edit is live at once, and so is the next.
	edit.SetRate(t, 400, 800, 0)
	wantPolicy(t, s, "q=800")
	edit.SetRate(t, 300, 700, 5000)
	wantPolicy(t, s, "q=700")
	denied := s.Ask(t, "/payments/create", s.PaymentBody(harness.Fields{"amount": 5001}))
	if denied.Code != fault.PolicyDenied || !strings.Contains(denied.Message, "at most 5000") || denied.Header.Get("X-Svc-Decision-Id") == "" {
		t.Errorf("beyond the policy's bound: %s", denied)
	}

	// A broken edit changes nothing, and its place is told.
	edit.WriteText(t, "{\n  \"tiers\": {\n    \"starter\": {\"rate_per_second\": oops}\n  }\n}\n")
	harness.Await(t, harness.ReadyWithin, "the log of a broken edit", func() bool {
		return hasLogged(p, map[string]any{"level": "ERROR", "file": "data.json", "line": float64(3)})
	})
	edit.WriteText(t, `{"tiers": {"starter": {"rate_per_second": "many", "burst": 1}}}`)
	harness.Await(t, harness.ReadyWithin, "the log of an edit of another shape", func() bool { return p.LogCount(`"file":"data.json"`) >= 2 })
	if a := s.Ask(t, "/payments/create", s.PaymentBody(harness.Fields{"amount": 4000})); !a.Success || !strings.Contains(a.Header.Get("RateLimit-Policy"), "q=700") {
		t.Errorf("after a broken edit: %s, RateLimit-Policy %q", a, a.Header.Get("RateLimit-Policy"))
	}
	edit.SetRate(t, 200, 600, 0)
	wantPolicy(t, s, "q=600")
	wantSlowed(t, s)
	checkGate(t, s)
}

// wantPolicy waits until answers tell of another limit.
func wantPolicy(t *testing.T, s harness.Shop, part string) {
	t.Helper()
	var header string
	if err := harness.Until(harness.ReadyWithin, func() bool {
		header = s.Ask(t, "/payments/status", harness.Fields{"external_id": "none"}).Header.Get("RateLimit-Policy")
		return strings.Contains(header, part)
	}); err != nil {
		t.Fatalf("after %v RateLimit-Policy is %q, want %q in it", harness.ReadyWithin, header, part)
	}
}

// wantLimited uses the rate up and looks at what is told then.
func wantLimited(t *testing.T, s harness.Shop, existing harness.Fields) {
	t.Helper()
	var refused harness.Answer
	harness.Await(t, harness.ReadyWithin, "RATE_LIMITED", func() bool {
		refused = s.Ask(t, "/payments/create", s.PaymentBody(nil))
		return refused.Code == fault.RateLimited
	})
	for _, name := range []string{"Retry-After", "RateLimit", "RateLimit-Policy", "X-Svc-Decision-Id"} {
		if refused.Header.Get(name) == "" {
			t.Errorf("RATE_LIMITED has no %s: %v", name, refused.Header)
		}
	}
	if refused.RetryAt == "" || refused.Sent != fault.SentNo {
		t.Errorf("RATE_LIMITED: %s", refused)
	}
	// What exists is answered all the same, as often as it is asked for.
	for range 5 {
		if a := s.Ask(t, "/payments/create", existing); !a.Replayed() {
			t.Errorf("a replay beyond the rate: %s", a)
		}
	}
	if a := s.Ask(t, "/payments/create", existing.With(harness.Fields{"amount": 1234})); a.Code != fault.DuplicateReference {
		t.Errorf("another request under the reference, beyond the rate: %s", a)
	}
}

// wantSlowed fails to authenticate until the address is slowed, and sees that a
// valid key is not.
func wantSlowed(t *testing.T, s harness.Shop) {
	t.Helper()
	wrong := s
	wrong.Key = "sk_live_" + strings.Repeat("x", 48)
	codes := map[fault.Code]int{}
	for range 25 {
		a := wrong.Ask(t, "/payments/status", harness.Fields{"external_id": "none"})
		codes[a.Code]++
		if a.Code == fault.RateLimited && (a.HTTP != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "") {
			t.Errorf("slowed: %s", a)
		}
	}
	if codes[fault.AuthFailed] != 20 || codes[fault.RateLimited] != 5 {
		t.Errorf("25 wrong keys were answered %v", codes)
	}
	if a := s.Ask(t, "/payments/status", harness.Fields{"external_id": "none"}); a.Code != fault.NotFound {
		t.Errorf("a valid key from a slowed address: %s", a)
	}
}

// hasLogged tells whether one line of the log has all these values.
func hasLogged(p *harness.Program, values map[string]any) bool {
	for line := range strings.Lines(p.Log.String()) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue
		}
		all := true
		for name, value := range values {
			all = all && fmt.Sprint(entry[name]) == fmt.Sprint(value)
		}
		if all {
			return true
		}
	}
	return false
}
