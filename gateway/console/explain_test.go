package console_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestADecisionIsExplainedByItsIDAlone: nothing was stored of any of these.
func TestADecisionIsExplainedByItsIDAlone(t *testing.T) {
	t.Parallel()
	set, err := defaultPolicy()
	if err != nil {
		t.Fatal(err)
	}
	key := decision.NewKey([]byte("the installation's"))
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		d.Decisions = console.Decisions{Key: key, Policies: policiesOf(d.Policy), Replica: func(_ context.Context, number uint16, _ time.Time) (string, error) {
			return "replica-" + string(rune('0'+number)), nil
		}}
	})
	merchant, other := w.merchant(), w.merchant()
	namer := decision.NewNamer(key, 7)
	at := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	first := set.Rules()[0]
	explain := func(version string, rule decision.Rule) adminapi.Decision {
		t.Helper()
		id := namer.Name(at, version, merchant.MerchantID, true, "/bank/name", rule).String()
		found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: id})
		if err != nil || found.Decision == nil {
			t.Fatalf("%v: %+v, %v", rule, found, err)
		}
		d := *found.Decision
		if d.ID != id || !d.At.Equal(at) || !slices.Equal(d.MerchantIDs, []string{merchant.MerchantID}) || d.Mode != "live" ||
			!slices.Equal(d.Operations, []string{"/bank/name"}) || d.Replica != "replica-7" || d.Verdict != rule.Verdict() {
			t.Errorf("%v: %+v", rule, d)
		}
		return d
	}
	now := string(set.Version())
	if d := explain(now, decision.Admitted); d.Rule != "" || d.Limit != nil || d.PolicyVersion != now {
		t.Errorf("admitted: %+v", d)
	}
	if d := explain(now, decision.Policy(first.Number)); len(d.Places) != 1 || d.Places[0].File != first.File || d.Places[0].Line != first.Line {
		t.Errorf("denied: %+v", d)
	}
	if d := explain(now, decision.Rate(0)); d.Rule != "rate default" || d.Limit == nil || d.Limit.RatePerSecond != 5 || d.Limit.Limit != 10 ||
		*d.Limit.Used != 10 || !d.Limit.ResetsAt.Equal(at.Add(200*time.Millisecond)) {
		t.Errorf("slowed: %+v, %+v", d, d.Limit)
	}
	if d := explain(strings.Repeat("0", 64), decision.Policy(1)); d.PolicyVersion != "00000" || len(d.Places) != 0 || len(d.Notes) == 0 {
		t.Errorf("by a version that is gone: %+v", d)
	}
	for what, id := range map[string]string{
		"another installation's": decision.NewNamer(decision.NewKey([]byte("another")), 7).Name(at, now, other.MerchantID, true, "/bank/name", 0).String(),
		"nobody's":               namer.Name(at, now, "mer_gone", true, "/bank/name", 0).String(),
		"a UUID":                 uuid.NewString(),
	} {
		if found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: id}); err != nil || found.Decision != nil {
			t.Errorf("%s is explained: %+v, %v", what, found.Decision, err)
		}
	}
}

// TestWhatFailedOtherwiseIsExplained: by the id of its request and of its decision, with the code of its answer. It has no
// input that could be traced.
func TestWhatFailedOtherwiseIsExplained(t *testing.T) {
	t.Parallel()
	key := decision.NewKey([]byte("the installation's"))
	w := newWorld(t, func(c *console.Config, d *console.Dependencies) {
		c.Operators[1].Inputs = true // budi's
		d.Decisions = console.Decisions{
			Key: key, Policies: policiesOf(d.Policy), Past: d.Merchants.(*store.Store), Open: d.Vault.(*tenants.Vault).OpenDecisions,
			Replica: func(context.Context, uint16, time.Time) (string, error) { return "", nil },
		}
	})
	merchant := w.merchant()
	at := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	set, err := defaultPolicy()
	if err != nil {
		t.Fatal(err)
	}
	series := decision.Series{Merchant: merchant.MerchantID, Operation: "/bank/name", Version: string(set.Version()), Record: 1, Live: true}
	call := requestlog.Entry{
		ID: madeAt(t, at), At: at, Ended: at.Add(time.Second), Operation: series.Operation, Code: "PROVIDER_UNAVAILABLE",
		DecisionID: decision.NewNamer(key, 7).Name(at, series.Version, series.Merchant, true, series.Operation, series.Rule).String(),
	}
	w.keepsCall(merchant.MerchantID, call)
	for _, id := range []string{call.ID, call.DecisionID} {
		found, err := adminapi.Find.Call(t.Context(), adminapi.NewClient(w.url, otherToken), adminapi.Search{ID: id, Trace: true})
		if d := found.Decision; err != nil || d == nil || d.ID != call.DecisionID || d.Verdict != "admitted" || d.ErrorCode != call.Code || d.RequestID != call.ID ||
			d.Input != nil || len(d.Trace) > 0 {
			t.Errorf("%s: %+v, %v", id, d, err)
		}
		own, err := adminapi.FindOf.Call(t.Context(), w, adminapi.SearchOf{Merchant: merchant.MerchantID, Mode: "live", ID: id})
		if err != nil || own.Decision == nil || own.Decision.ErrorCode != call.Code {
			t.Errorf("its merchant asks for %s: %+v, %v", id, own.Decision, err)
		}
	}
}

// policiesOf knows the one set that is in force.
func policiesOf(force func() *policy.Set) func(context.Context, uint32) ([]*policy.Set, error) {
	return func(_ context.Context, digest uint32) ([]*policy.Set, error) {
		if set := force(); decision.VersionDigest(string(set.Version())) == digest {
			return []*policy.Set{set}, nil
		}
		return nil, nil
	}
}

// TestATraceIsForWhoMayReadIt: it is of the request that was made, under the record and the version of then, by the hour of
// the gateway's zone and the price of its quote, and reading it is in the audit.
func TestATraceIsForWhoMayReadIt(t *testing.T) {
	t.Parallel()
	const rules = `package gerbang

refusals contains "Not to there." if {
	input.fields.bank == "014"
	input.clock.hour == %d
	input.amount > 500
}
`
	at := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	source := policy.Default()
	source["there.rego"] = fmt.Appendf(nil, rules, at.In(time.FixedZone("WIB", 7*60*60)).Hour())
	set, err := policy.Compile(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	key := decision.NewKey([]byte("the installation's"))
	w := newWorld(t, func(c *console.Config, d *console.Dependencies) {
		c.Operators[1].Inputs = true // budi's
		d.Policy = func() *policy.Set { return set }
		vault := d.Vault.(*tenants.Vault)
		d.Decisions = console.Decisions{
			Key: key, Policies: policiesOf(d.Policy), Past: d.Merchants.(*store.Store), Open: vault.OpenDecisions,
			Replica: func(context.Context, uint16, time.Time) (string, error) { return "", nil },
		}
	})
	merchant, err := adminapi.CreateMerchant.Call(t.Context(), w, adminapi.NewMerchant{Name: "Toko", Tier: "starter", Labels: map[string]string{"time_zone": "Asia/Jayapura"}})
	if err != nil {
		t.Fatal(err)
	}
	before, err := adminapi.ShowMerchant.Call(t.Context(), w, adminapi.MerchantID{Merchant: merchant.MerchantID})
	if err != nil {
		t.Fatal(err)
	}
	rule := decision.Policy(1)
	for _, r := range set.Rules() {
		if r.File == "there.rego" {
			rule = decision.Policy(r.Number)
		}
	}
	series := decision.Series{Merchant: merchant.MerchantID, Operation: "/bank/name", Version: string(set.Version()), Record: before.Version, Live: true, Rule: rule}
	input := decision.Input{
		ID: decision.NewNamer(key, 7).Name(at, series.Version, series.Merchant, true, series.Operation, rule), At: at, Series: series,
		Amount: new(int64(5)), Fields: map[string]any{"bank": "014"}, Quote: map[string]any{"price": int64(501)},
	}
	packed, err := decision.PackInputs([]decision.Input{input})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := w.vault.SealDecisions(packed)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.AddDecisions(t.Context(), store.DecisionPart{
		Minute: at.Truncate(time.Minute), Part: 1, Counts: decision.Pack([]decision.Counted{{Series: series, Counts: []decision.Count{{Second: uint8(at.Second()), N: 1}}}}), Inputs: sealed,
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := adminapi.SetTier.Call(t.Context(), w, adminapi.TierChange{Merchant: merchant.MerchantID, Tier: "growth"}); err != nil {
		t.Fatal(err)
	}
	id := input.ID.String()
	if found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: id}); err != nil || found.Decision == nil || found.Decision.Input != nil || found.Decision.Trace != nil {
		t.Errorf("without asking: %+v, %v", found.Decision, err)
	}
	_, err = adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: id, Trace: true})
	w.refused(err, http.StatusForbidden, "")
	found, err := adminapi.Find.Call(t.Context(), adminapi.NewClient(w.url, otherToken), adminapi.Search{ID: id, Trace: true})
	if err != nil || found.Decision == nil || found.Decision.Input == nil || found.Decision.Input.Fields["bank"] != "014" || len(found.Decision.Trace) == 0 ||
		len(found.Decision.Places) != 1 || found.Decision.Places[0].Reason != "Not to there." || found.Decision.Places[0].File != "there.rego" {
		t.Errorf("traced: %+v, %v", found.Decision, err)
	}
	entries, err := adminapi.ListAudit.Call(t.Context(), w, adminapi.AuditFilter{Merchant: merchant.MerchantID})
	if err != nil || len(entries) == 0 || entries[0].Action != "decision.trace" || entries[0].Operator != "budi" || !strings.Contains(entries[0].Detail, id) {
		t.Errorf("the audit has %+v, %v", entries, err)
	}
}
