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

// liveWithin is how soon an edit of a policy is in force.
const liveWithin = 2 * time.Second

// TestPolicy edits the limits of a running program. The directory has data.json
// alone, so the default rules stay.
func TestPolicy(t *testing.T) {
	t.Parallel()
	edit := &limits{file: filepath.Join(t.TempDir(), "data.json")}
	edit.write(t, 1, 2, 0)
	p := start(t, settings{flags: []string{"--policy-dir", filepath.Dir(edit.file)}})
	s := p.shop(small, "live")
	first := s.order(nil)
	if a := s.ask(t, "/payments/create", first); !a.Success {
		t.Fatal(a)
	}
	wantLimited(t, s, first)

	// An edit is live at once, and so is the next.
	edit.write(t, 400, 800, 0)
	s.wantPolicy(t, "q=800")
	edit.write(t, 300, 700, 5000)
	s.wantPolicy(t, "q=700")
	denied := s.ask(t, "/payments/create", s.order(fields{"amount": 5001}))
	if denied.Code != fault.PolicyDenied || !strings.Contains(denied.Message, "at most 5000") || denied.Header.Get("X-Svc-Decision-Id") == "" {
		t.Errorf("beyond the policy's bound: %s", denied)
	}

	// A broken edit changes nothing, and its place is told.
	edit.writeText(t, "{\n  \"tiers\": {\n    \"starter\": {\"rate_per_second\": oops}\n  }\n}\n")
	await(t, 2*liveWithin, "the log of a broken edit", func() bool {
		return p.hasLogged(map[string]any{"level": "ERROR", "file": "data.json", "line": float64(3)})
	})
	edit.writeText(t, `{"tiers": {"starter": {"rate_per_second": "many", "burst": 1}}}`)
	await(t, 2*liveWithin, "the log of an edit of another shape", func() bool { return p.logs(`"file":"data.json"`) >= 2 })
	if a := s.ask(t, "/payments/create", s.order(fields{"amount": 4000})); !a.Success || !strings.Contains(a.Header.Get("RateLimit-Policy"), "q=700") {
		t.Errorf("after a broken edit: %s, RateLimit-Policy %q", a, a.Header.Get("RateLimit-Policy"))
	}
	edit.write(t, 200, 600, 0)
	s.wantPolicy(t, "q=600")
	wantSlowed(t, s)
}

// limits is the policy's data, with what the test changes of it.
type limits struct {
	file    string
	markups fields // nil leaves the default policy's
}

// write sets the rate of tier starter and, unless it is zero, an upper bound.
func (l *limits) write(t *testing.T, perSecond, burst, most int) {
	t.Helper()
	l.change(t, func(tiers map[string]map[string]any, amounts map[string]any) {
		tiers["starter"]["rate_per_second"], tiers["starter"]["burst"] = perSecond, burst
		if most > 0 {
			amounts["/payments/create"] = map[string]any{"max": most}
		}
	})
}

// lift takes all tiers' rates away, as far as that can be told from no rate.
func (l *limits) lift(t testing.TB) {
	t.Helper()
	l.change(t, func(tiers map[string]map[string]any, _ map[string]any) {
		for _, tier := range tiers {
			tier["rate_per_second"], tier["burst"] = 1_000_000, 1_000_000
		}
	})
}

// change writes the default policy's data with a change.
func (l *limits) change(t testing.TB, edit func(tiers map[string]map[string]any, amounts map[string]any)) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "policy", "rego", "data.json"))
	if err != nil {
		t.Fatal(err)
	}
	var data struct {
		Tiers   map[string]map[string]any `json:"tiers"`
		Quotas  json.RawMessage           `json:"quotas"`
		Amounts map[string]any            `json:"amounts"`
		Markups fields                    `json:"markups"`
	}
	if err := json.Unmarshal(content, &data); err != nil {
		t.Fatal(err)
	}
	if l.markups != nil {
		data.Markups = l.markups
	}
	edit(data.Tiers, data.Amounts)
	edited, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	l.writeText(t, string(edited))
}

// writeText writes in place, as a careless editor does.
func (l *limits) writeText(t testing.TB, content string) {
	t.Helper()
	if err := os.WriteFile(l.file, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// wantPolicy waits until answers tell of another limit.
func (s shop) wantPolicy(t *testing.T, part string) {
	t.Helper()
	var header string
	if err := until(liveWithin, func() bool {
		header = s.ask(t, "/payments/status", fields{"external_id": "none"}).Header.Get("RateLimit-Policy")
		return strings.Contains(header, part)
	}); err != nil {
		t.Fatalf("after %v RateLimit-Policy is %q, want %q in it", liveWithin, header, part)
	}
}

// wantLimited uses the rate up and looks at what is told then.
func wantLimited(t *testing.T, s shop, existing fields) {
	t.Helper()
	var refused answer
	await(t, 10*time.Second, "RATE_LIMITED", func() bool {
		refused = s.ask(t, "/payments/create", s.order(nil))
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
		if a := s.ask(t, "/payments/create", existing); !a.replayed() {
			t.Errorf("a replay beyond the rate: %s", a)
		}
	}
	if a := s.ask(t, "/payments/create", existing.with(fields{"amount": 1234})); a.Code != fault.DuplicateReference {
		t.Errorf("another request under the reference, beyond the rate: %s", a)
	}
}

// wantSlowed fails to authenticate until the address is slowed, and sees that a
// valid key is not.
func wantSlowed(t *testing.T, s shop) {
	t.Helper()
	wrong := s
	wrong.key = "sk_live_" + strings.Repeat("x", 48)
	codes := map[fault.Code]int{}
	for range 25 {
		a := wrong.ask(t, "/payments/status", fields{"external_id": "none"})
		codes[a.Code]++
		if a.Code == fault.RateLimited && (a.HTTP != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "") {
			t.Errorf("slowed: %s", a)
		}
	}
	if codes[fault.AuthFailed] != 20 || codes[fault.RateLimited] != 5 {
		t.Errorf("25 wrong keys were answered %v", codes)
	}
	if a := s.ask(t, "/payments/status", fields{"external_id": "none"}); a.Code != fault.NotFound {
		t.Errorf("a valid key from a slowed address: %s", a)
	}
}

// hasLogged tells whether one line of the log has all these values.
func (p *program) hasLogged(values map[string]any) bool {
	for line := range strings.Lines(p.log.String()) {
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

func (p *program) logs(text string) int { return strings.Count(p.log.String(), text) }
