package impact_test

import (
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/impact"
	"github.com/seed-f006e74d/gerbang/policy"
)

// ruled is a policy with one refusal of its own, limits for a condition, and data.
func ruled(t *testing.T, refusal, limited, data string) *policy.Set {
	t.Helper()
	set, err := policy.Compile(t.Context(), policy.Source{"data.json": []byte(`{"tiers": {"t": {"rate_per_second": 1, "burst": 1}}, "custom": {"list": ` + data + `}}`), "shop.rego": []byte(`package gerbang

admit := {"allow": count(refusals) == 0, "reasons": refusals}

refusals contains "No." if { ` + refusal + ` }

limits := {"rates": [{"name": "default", "rate_per_second": 20, "burst": 100}], "quotas": []} if { ` + limited + ` }
`)})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// unused is a world in which one policy decided and no quota was used.
func unused(base *policy.Set) impact.World {
	return impact.World{
		Base: func(string) *policy.Set { return base },
		Zone: func(*policy.Merchant) *time.Location { return time.UTC }, Clock: time.UTC,
	}
}

// TestWhatIsNotTakenForEqual: a candidate that leaves the text of then decides as then, but for these.
func TestWhatIsNotTakenForEqual(t *testing.T) {
	t.Parallel()
	const all, dear = "true", "input.amount > 1000"
	paid := impact.Operation{Operation: policy.Operation{Path: create, Kind: "payment", Provider: "payments"}, Reads: true, Money: true}
	blind := paid
	blind.Reads = false
	body := &impact.Input{Amount: new(int64(500)), Fields: map[string]any{"type": "qr"}}
	denied, allowed, unknown := impact.Report{NewlyDenied: 1}, impact.Report{NewlyAllowed: 1}, impact.Report{Unknown: 1}
	const listed = "count([x | some x in data.custom.list; input.amount > x]) > 0"
	const blocked = "input.lists.blocked_payers"
	const risky = `input.amount > 100000; to_number(input.merchant.labels.risk) > 3`
	set := func(refusal, limited, data string) func(*testing.T) *policy.Set {
		return func(t *testing.T) *policy.Set { t.Helper(); return ruled(t, refusal, limited, data) }
	}
	for name, c := range map[string]struct {
		base, candidate func(*testing.T) *policy.Set
		operation       impact.Operation
		rule            decision.Rule
		input           *impact.Input
		lists           []string
		want            impact.Report
	}{
		"data that a comprehension reads":  {base: set(listed, all, "[1000]"), candidate: set(listed, all, "[10]"), input: body, want: denied},
		"the same of a body nobody knows":  {base: set(listed, all, "[1000]"), candidate: set(listed, all, "[10]"), want: unknown},
		"limits that there were not":       {base: set(dear, "false", "[]"), candidate: set(dear, all, "[]"), rule: decision.NoLimits, input: body, want: allowed},
		"limits, of a body nobody knows":   {base: set(dear, "false", "[]"), candidate: set(dear, all, "[]"), rule: decision.NoLimits, want: allowed},
		"what had to be named":             {base: set(dear, all, "[]"), candidate: set(dear, all, "[1]"), rule: decision.NotNamed, input: body, want: allowed},
		"what had to be named, of no body": {base: set(dear, all, "[]"), candidate: set(dear, all, "[1]"), rule: decision.NotNamed, want: unknown},
		"a policy of then that fails":      {base: set(risky, all, "[]"), candidate: set("input.amount > 100", all, "[]"), input: body, want: denied},
		"the same policy, of no body":      {base: set(risky, all, "[]"), candidate: set("input.amount > 100", all, "[]"), want: unknown},
		"a candidate that fails elsewhere": {base: set(dear, all, "[]"), candidate: set(risky, all, "[]"), input: body},
		"the same candidate, of no body":   {base: set(dear, all, "[]"), candidate: set(risky, all, "[]"), want: unknown},
		"a body of what reads none any more": {
			base: set(dear, all, "[]"), candidate: set(`input.fields.type == "qr"`, all, "[]"), operation: blind, input: body, want: denied,
		},
		"what is on a list":                {base: set(dear, all, "[]"), candidate: set(blocked, all, "[]"), input: body, lists: []string{"blocked_payers"}, want: denied},
		"what is on another":               {base: set(dear, all, "[]"), candidate: set(blocked, all, "[]"), input: body, lists: []string{"other_payers"}},
		"what is on none":                  {base: set(dear, all, "[]"), candidate: set(blocked, all, "[]"), input: body},
		"a merchant on a list, of no body": {base: set(dear, all, "[]"), candidate: set(blocked, all, "[]"), lists: []string{"blocked_payers"}, want: denied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.operation.Path == "" {
				c.operation = paid
			}
			base, record := c.base(t), &policy.Merchant{ID: "mer_1", Tier: "t", Status: "active", Version: 1, Labels: map[string]string{"risk": "high"}}
			got, err := impact.Run(t.Context(), impact.Candidate{Set: c.candidate(t)}, unused(base), func(yield func(impact.Past, error) bool) {
				yield(impact.Past{
					At: evening, Merchant: record.ID, Live: true, Operation: c.operation, Version: string(base.Version()), Record: record, Rule: c.rule, N: 1, Input: c.input, Lists: c.lists,
				}, nil)
			})
			if err != nil || got.NewlyDenied != c.want.NewlyDenied || got.NewlyAllowed != c.want.NewlyAllowed || got.Unknown != c.want.Unknown {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// TestAQuestionOfTheClockIsAskedAnewInTime: within a minute once, unless a rule sees seconds.
func TestAQuestionOfTheClockIsAskedAnewInTime(t *testing.T) {
	t.Parallel()
	base, record := ruled(t, `input.mode == "none"`, "true", "[]"), &policy.Merchant{ID: "mer_1", Tier: "t", Status: "active", Version: 1}
	from := time.Date(2026, 11, 30, 2, 58, 0, 0, time.UTC)
	for rule, denied := range map[string]int64{
		"input.clock.hour == 3":                                   60,
		`input.clock.hour == 3; input.clock.minute == 0`:          20,
		`input.clock.unix % 60 == 9`:                              5,
		`input.now == "2026-11-30T03:00:06Z"`:                     1,
		`input.clock.weekday == "Monday"; input.clock.minute > 3`: 40,
	} {
		report, err := impact.Run(t.Context(), impact.Candidate{Set: ruled(t, rule, "true", "[]")}, unused(base), func(yield func(impact.Past, error) bool) {
			for at := from; at.Before(from.Add(5 * time.Minute)); at = at.Add(3 * time.Second) {
				op := impact.Operation{Operation: policy.Operation{Path: status, Kind: "query", Provider: "payments"}}
				if !yield(impact.Past{At: at, Merchant: record.ID, Live: true, Operation: op, Version: string(base.Version()), Record: record, N: 1}, nil) {
					return
				}
			}
		})
		if err != nil || report.NewlyDenied != denied {
			t.Errorf("%s: %+v, %v", rule, report, err)
		}
	}
}
