package console_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
)

// TestImpactOfWhatIsInTheLog: a policy and changes of a merchant are tried on what replicas have written.
func TestImpactOfWhatIsInTheLog(t *testing.T) {
	t.Parallel()
	set, err := defaultPolicy()
	if err != nil {
		t.Fatal(err)
	}
	w := withPolicy(t, func(_ *console.Config, d *console.Dependencies) {
		d.Decisions = console.Decisions{
			Key: decision.NewKey([]byte("key")), Past: d.Merchants.(*store.Store), Open: d.Vault.(interface {
				OpenDecisions(sealed []byte) ([]byte, error)
			}).OpenDecisions,
			Policy: func(_ context.Context, version policy.Version) (*policy.Set, error) {
				if version == set.Version() {
					return set, nil
				}
				return nil, nil //nolint:nilnil // not kept
			},
		}
	})
	merchant, other := w.merchant(), w.merchant()
	shown, err := adminapi.ShowMerchant.Call(t.Context(), w, adminapi.MerchantID{Merchant: merchant.MerchantID})
	if err != nil {
		t.Fatal(err)
	}
	minute := time.Now().UTC().Truncate(time.Minute).Add(-10 * time.Minute)
	series := func(id string, rule decision.Rule) decision.Series {
		return decision.Series{Merchant: id, Operation: "/bank/name", Version: string(set.Version()), Record: shown.Version, Live: true, Rule: rule}
	}
	for i := range 5 {
		counted := []decision.Counted{
			{Series: series(merchant.MerchantID, decision.Admitted), Counts: []decision.Count{{Second: 0, N: 10}, {Second: 30, N: 10}}},
			{Series: series(merchant.MerchantID, decision.Rate(0)), Counts: []decision.Count{{Second: 0, N: 5}}},
			{Series: series(other.MerchantID, decision.Admitted), Counts: []decision.Count{{Second: 7, N: 1}}},
		}
		part := store.DecisionPart{Minute: minute.Add(time.Duration(i) * time.Minute), Replica: uuid.UUID{1}, Part: int64(i + 1), Counts: decision.Pack(counted)}
		if err := w.store.AddDecisions(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	since := minute.Add(-time.Minute)
	try := func(wanted adminapi.NewImpact) adminapi.Impact {
		t.Helper()
		wanted.Since = since
		found, err := w.Impact(t.Context(), wanted, nil)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	files := func(changes ...string) map[string]string {
		out := map[string]string{}
		for name, content := range policy.Default() {
			out[name] = string(content)
		}
		for i := 0; i+1 < len(changes); i += 2 {
			out[changes[i]] = changes[i+1]
		}
		return out
	}
	if found := try(adminapi.NewImpact{Files: files()}); found.Verdict != "equal" || found.Decisions != 130 || found.Unknown != 0 {
		t.Errorf("the same policy: %+v", found)
	}
	if found := try(adminapi.NewImpact{Files: map[string]string{"data.json": files()["data.json"]}}); found.Verdict != "equal" || found.Version != string(set.Version()) {
		t.Errorf("data.json alone, which goes with the rules in force: %+v", found)
	}
	closed := files("closed.rego", "package gerbang\n\nrefusals contains \"Closed.\" if input.operation.path == \"/bank/name\"\n")
	if found := try(adminapi.NewImpact{Files: closed}); found.Verdict != "stricter" || found.NewlyDenied != 105 || len(found.Rows) != 2 ||
		found.Rows[0].Rule != "rule gerbang.refusals closed.rego:3" {
		t.Errorf("an operation that is closed: %+v", found)
	}
	until := minute.Add(3 * time.Minute)
	twice := [2]string{}
	for i := range twice {
		_, _, twice[i] = w.send(http.MethodPost, "/admin/policy/impact", "Bearer "+token, mustJSON(t, adminapi.NewImpact{Files: closed, Since: since, Until: &until}))
		later := []decision.Counted{{Series: series(other.MerchantID, decision.Admitted), Counts: []decision.Count{{Second: 1, N: 3}}}}
		if err := w.store.AddDecisions(t.Context(), store.DecisionPart{Minute: until, Replica: uuid.UUID{2}, Part: int64(i + 1), Counts: decision.Pack(later)}); err != nil {
			t.Fatal(err)
		}
	}
	if twice[0] != twice[1] || !strings.Contains(twice[0], `"decisions":78,"newly_denied":63,`) {
		t.Errorf("the same span tells\n%sand after more was decided\n%s", twice[0], twice[1])
	}
	own := func(trial adminapi.MerchantTrial) adminapi.Impact {
		t.Helper()
		trial.MerchantID = merchant.MerchantID
		return try(adminapi.NewImpact{Merchant: &trial})
	}
	if found := own(adminapi.MerchantTrial{Suspend: true}); found.NewlyDenied != 100 || found.Decisions != 125 {
		t.Errorf("suspended: %+v", found)
	}
	if found := own(adminapi.MerchantTrial{Tier: "growth"}); found.NewlyAllowed != 25 || found.Verdict != "looser" {
		t.Errorf("of a tier with a higher rate: %+v", found)
	}
	if found := own(adminapi.MerchantTrial{Limits: []adminapi.NewLimit{{Name: "default", RatePerSecond: 1, Burst: 4}}}); found.Verdict != "stricter" || found.NewlyDenied < 50 {
		t.Errorf("with a lower rate of its own: %+v", found)
	}
	if m, err := adminapi.ShowMerchant.Call(t.Context(), w, adminapi.MerchantID{Merchant: merchant.MerchantID}); err != nil || m.Status != "active" || m.Tier != "starter" || len(m.Limits) > 0 {
		t.Errorf("what was tried has changed the merchant: %+v, %v", m, err)
	}
	// Seven days are seven days also where the question was three seconds on its way.
	_, err = w.Impact(t.Context(), adminapi.NewImpact{Since: time.Now().Add(-decision.Kept - 3*time.Second)}, nil)
	w.refused(err, http.StatusBadRequest, "version")
	for what, wanted := range map[string]adminapi.NewImpact{
		"nothing":              {Since: since},
		"two at once":          {Since: since, Version: "abcd", Files: files()},
		"of long ago":          {Since: since.Add(-8 * 24 * time.Hour), Files: files()},
		"a broken policy":      {Since: since, Files: files("closed.rego", "package gerbang\n\nrefusals contains")},
		"a tier without limit": {Since: since, Merchant: &adminapi.MerchantTrial{MerchantID: merchant.MerchantID, Tier: "none"}},
	} {
		_, err := w.Impact(t.Context(), wanted, nil)
		if what == "a broken policy" {
			w.refused(err, http.StatusBadRequest, "files")
		} else if err == nil {
			t.Errorf("%s is tried", what)
		}
	}
}
