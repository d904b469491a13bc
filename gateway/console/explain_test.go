package console_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/policy"
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
		found, err := w.Find(t.Context(), id, time.Time{})
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
		if found, err := w.Find(t.Context(), id, time.Time{}); err != nil || found.Decision != nil {
			t.Errorf("%s is explained: %+v, %v", what, found.Decision, err)
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
