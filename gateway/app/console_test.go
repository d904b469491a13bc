package app_test

import (
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// actsWithin is how soon a replica acts on what an operator did.
const actsWithin = 2 * time.Second

// checkConsole does an operator's work on a merchant of its own, partly by the
// commands and partly by the admin API.
func checkConsole(t *testing.T, p *program) {
	t.Run("health", p.checkHealth)
	s := p.newShop(t, "growth", nil)
	made := s.create(t, nil)
	answers := func() fault.Code {
		return s.ask(t, "/payments/status", fields{"external_id": made.ExternalID}).Code
	}

	if out, err := p.run(t, "merchant", "suspend", s.merchant, "--reason", "fraud"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	await(t, actsWithin, "the suspension", func() bool { return answers() == fault.MerchantSuspended })
	if _, err := p.admin().Resume(t.Context(), s.merchant, "cleared"); err != nil {
		t.Fatal(err)
	}
	await(t, actsWithin, "the resumption", func() bool { return answers() == "" })

	merchant, err := p.admin().Merchant(t.Context(), s.merchant)
	if err != nil {
		t.Fatal(err)
	}
	var old string
	for _, key := range merchant.Keys {
		if key.Mode == "test" {
			old = key.KeyID
		}
	}
	out, err := p.run(t, "key", "rotate", s.merchant, old, "--overlap", "1h")
	fresh := regexp.MustCompile(`sk_test_[A-Za-z0-9_-]+`).FindString(out)
	if err != nil || fresh == "" {
		t.Fatalf("rotate: %v\n%s", err, out)
	}
	if code := answers(); code != "" {
		t.Errorf("within the overlap the old key gets %s", code)
	}
	rotated := s
	rotated.key = fresh
	await(t, actsWithin, "the new key", func() bool {
		return rotated.ask(t, "/payments/status", fields{"external_id": made.ExternalID}).Success
	})
	if _, err := p.admin().RevokeKey(t.Context(), s.merchant, old, "leaked"); err != nil {
		t.Fatal(err)
	}
	revoked := time.Now()
	// Failed authentications are counted by address, so this asks seldom.
	tick := time.NewTicker(actsWithin / 4)
	defer tick.Stop()
	for answers() != fault.AuthFailed {
		if time.Since(revoked) > actsWithin {
			t.Fatal("the revoked key still works")
		}
		<-tick.C
	}
	if a := rotated.ask(t, "/payments/status", fields{"external_id": made.ExternalID}); !a.Success {
		t.Errorf("the new key: %s", a)
	}
	p.wantAudit(t, s.merchant, "suspend", "resume", "rotate", "revoke")
	p.checkStory(t, made)
}

func (p *program) wantAudit(t *testing.T, merchant string, actions ...string) {
	t.Helper()
	entries, err := p.admin().Audit(t.Context(), merchant)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, entry := range entries {
		all.WriteString(entry.Operator + " " + entry.Action + " " + entry.Detail + "\n")
	}
	for _, action := range actions {
		if !strings.Contains(all.String(), "dev ") || !strings.Contains(all.String(), action) {
			t.Errorf("%q is not audited:\n%s", action, all.String())
		}
	}
	if strings.Contains(all.String(), "sk_") || strings.Contains(all.String(), "secret_key") {
		t.Errorf("the audit holds a key:\n%s", all.String())
	}
}

// checkStory reads a movement's story as an operator does.
func (p *program) checkStory(t *testing.T, made payment) {
	t.Helper()
	id := made.CheckoutURL[strings.LastIndex(made.CheckoutURL, "/")+1:]
	m, err := p.admin().Movement(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if m.Reference != made.ExternalID || len(m.History) != 1 || m.History[0].Event != "accepted" || strings.Contains(string(m.Request), "secret_key") {
		t.Errorf("the story: %+v", m)
	}
	for by, name := range map[string]string{
		"request_id": m.RequestID, "decision_id": m.DecisionID, "reference": m.Reference, "provider_reference": m.ProviderReference, "id": id,
	} {
		found, err := p.admin().Find(t.Context(), name, time.Time{})
		if err != nil || len(found.Movements) != 1 || found.Movements[0].ID != m.ID || !slices.Contains(found.Movements[0].By, by) {
			t.Errorf("%s %q finds %+v, %v", by, name, found, err)
		}
	}
	if parsed, err := uuid.Parse(m.RequestID); err != nil || parsed.Version() != 7 {
		t.Errorf("the request's id %s does not tell when it was made: %v", m.RequestID, err)
	}
}

func (p *program) checkHealth(t *testing.T) {
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if status, body, _ := p.get(t, p.ConsoleURL+path); status != http.StatusOK {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	_, err := adminapi.NewClient(p.ConsoleURL, "not the token").Exceptions(t.Context())
	if failure, ok := errors.AsType[*adminapi.Failure](err); !ok || failure.Status != http.StatusUnauthorized {
		t.Errorf("a wrong admin token: %v", err)
	}
	if status, _, _ := p.get(t, p.APIURL+"/admin/merchants"); status != http.StatusNotFound {
		t.Errorf("the admin API on the merchants' listener: %d", status)
	}
}
