package policy

import (
	"slices"
	"strings"
	"testing"
	"time"
)

const routeRules = `package gerbang

route := ["big", "payments"] if {
	input.operation.contract == "payments@1"
	input.amount >= 1000
}

route := [] if input.merchant.tier == "none"
`

func TestRoute(t *testing.T) {
	t.Parallel()
	set := must(t, with("route.rego", routeRules))
	amount := func(n int64) *int64 { return &n }
	tests := map[string]struct {
		tier     string
		contract string
		amount   int64
		want     []string
	}{
		"ordered":          {"bronze", "payments@1", 1000, []string{"big", "payments"}},
		"says nothing":     {"bronze", "payments@1", 999, nil},
		"another contract": {"bronze", "ppob@1", 1000, nil},
		"nobody":           {"none", "payments@1", 1, []string{}},
	}
	for name, test := range tests {
		got, err := set.Route(t.Context(), AdmitInput{
			Merchant: Merchant{ID: "m", Tier: test.tier, Status: "active"}, Mode: "live", Now: time.Unix(0, 0),
			Operation: Operation{Path: "/payments/create", Kind: "payment", Provider: "payments", Contract: test.contract}, Amount: amount(test.amount),
		})
		if err != nil || !slices.Equal(got, test.want) || (got == nil) != (test.want == nil) {
			t.Errorf("%s: got %#v (%v), want %#v", name, got, err, test.want)
		}
	}
}

func TestTheGateKnowsTheProviders(t *testing.T) {
	t.Parallel()
	facts := Facts{Merchants: map[string]int{"starter": 1}, Operations: []Offered{{
		Operation: Operation{Path: "/payments/create", Kind: "payment", Provider: "payments", Contract: "payments@1"},
		Amount:    true, Providers: []string{"payments", "other"},
	}}}
	for rules, want := range map[string]string{
		`route := ["other", "payments"]`: "",
		`route := ["othr"]`:              `no provider of /payments/create is named "othr": there are ["payments" "other"]`,
		`route := {"other", "payments"}`: "a set has no order",
		`route := ["other", "other"]`:    `"other" is there twice`,
	} {
		_, findings, err := Gate(t.Context(), with("route.rego", "package gerbang\n\n"+rules+"\n"), facts)
		if err != nil {
			t.Fatal(err)
		}
		told := ""
		for _, f := range findings {
			if strings.HasPrefix(f.File, "route") {
				told += f.Reason + "\n"
			}
		}
		if (want == "") != (told == "") || !strings.Contains(told, want) {
			t.Errorf("%s: got %q, want %q", rules, told, want)
		}
	}
}
