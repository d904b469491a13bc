package payment_test

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
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// checkConsole does an operator's work on a merchant of its own, partly by
// commands and partly by the admin API.
func checkConsole(t *testing.T, p *harness.Program) {
	t.Run("health", func(t *testing.T) { checkHealth(t, p) })
	s := newShop(t, p, "growth", nil)
	made := s.Create(t, nil)
	answers := func() fault.Code {
		return s.Ask(t, "/payments/status", harness.Fields{"external_id": made.ExternalID}).Code
	}

	if out, err := p.Run(t, "merchant", "suspend", s.MerchantID, "--reason", "fraud"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	harness.Await(t, harness.ActsWithin, "the suspension", func() bool { return answers() == fault.MerchantSuspended })
	if _, err := adminapi.ResumeMerchant.Call(t.Context(), p.Admin(), adminapi.StatusChange{Merchant: s.MerchantID, Reason: "cleared"}); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, harness.ActsWithin, "the resumption", func() bool { return answers() == "" })

	merchant, err := adminapi.ShowMerchant.Call(t.Context(), p.Admin(), adminapi.MerchantID{Merchant: s.MerchantID})
	if err != nil {
		t.Fatal(err)
	}
	var old string
	for _, key := range merchant.Keys {
		if key.Mode == "test" {
			old = key.KeyID
		}
	}
	out, err := p.Run(t, "key", "rotate", s.MerchantID, old, "--overlap", "1h")
	fresh := regexp.MustCompile(`sk_test_[A-Za-z0-9_-]+`).FindString(out)
	if err != nil || fresh == "" {
		t.Fatalf("rotate: %v\n%s", err, out)
	}
	if code := answers(); code != "" {
		t.Errorf("within the overlap the old key gets %s", code)
	}
	rotated := s
	rotated.Key = fresh
	harness.Await(t, harness.ActsWithin, "the new key", func() bool {
		return rotated.Ask(t, "/payments/status", harness.Fields{"external_id": made.ExternalID}).Success
	})
	if _, err := adminapi.RevokeKey.Call(t.Context(), p.Admin(), adminapi.KeyRevocation{Merchant: s.MerchantID, Key: old, Reason: "leaked"}); err != nil {
		t.Fatal(err)
	}
	revoked := time.Now()
	// Failed authentications are counted by address, so this asks seldom.
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for answers() != fault.AuthFailed {
		if time.Since(revoked) > harness.ActsWithin {
			t.Fatal("the revoked key still works")
		}
		<-tick.C
	}
	if a := rotated.Ask(t, "/payments/status", harness.Fields{"external_id": made.ExternalID}); !a.Success {
		t.Errorf("the new key: %s", a)
	}
	wantAudit(t, p, s.MerchantID, "suspend", "resume", "rotate", "revoke")
	checkHistory(t, p, made)
}

func wantAudit(t *testing.T, p *harness.Program, merchant string, actions ...string) {
	t.Helper()
	entries, err := adminapi.ListAudit.Call(t.Context(), p.Admin(), adminapi.AuditFilter{Merchant: merchant})
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

// checkHistory reads a movement's history as an operator does.
func checkHistory(t *testing.T, p *harness.Program, made harness.Payment) {
	t.Helper()
	id := made.CheckoutURL[strings.LastIndex(made.CheckoutURL, "/")+1:]
	m, err := adminapi.ShowMovement.Call(t.Context(), p.Admin(), adminapi.MovementID{Movement: id})
	if err != nil {
		t.Fatal(err)
	}
	if m.Reference != made.ExternalID || len(m.History) != 1 || m.History[0].Event != "accepted" || strings.Contains(string(m.Request), "secret_key") {
		t.Errorf("the history: %+v", m)
	}
	for by, name := range map[string]string{
		"request_id": m.RequestID, "decision_id": m.DecisionID, "reference": m.Reference, "provider_reference": m.ProviderReference, "id": id,
	} {
		found, err := adminapi.Find.Call(t.Context(), p.Admin(), adminapi.Search{ID: name})
		if err != nil || len(found.Movements) != 1 || found.Movements[0].ID != m.ID || !slices.Contains(found.Movements[0].By, by) {
			t.Errorf("%s %q finds %+v, %v", by, name, found, err)
		}
	}
	if parsed, err := uuid.Parse(m.RequestID); err != nil || parsed.Version() != 7 {
		t.Errorf("the request's id %s does not tell when it was made: %v", m.RequestID, err)
	}
}

func checkHealth(t *testing.T, p *harness.Program) {
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		harness.Await(t, harness.ReadyWithin, path, func() bool { // a busy machine may measure no clock for a moment
			status, _, _ := p.Get(t, p.ConsoleURL+path)
			return status == http.StatusOK
		})
	}
	_, err := adminapi.ListExceptions.Call(t.Context(), adminapi.NewClient(p.ConsoleURL, "not the token"), adminapi.ExceptionFilter{Limit: adminapi.MostListed})
	if failure, ok := errors.AsType[*adminapi.Failure](err); !ok || failure.Status != http.StatusUnauthorized {
		t.Errorf("a wrong admin token: %v", err)
	}
	if status, _, _ := p.Get(t, p.APIURL+"/admin/merchants"); status != http.StatusNotFound {
		t.Errorf("the admin API on the merchants' listener: %d", status)
	}
}
