package policy

import (
	"slices"
	"strings"
	"testing"
)

// TestRefusingAllMoneyIsToBeMeant: a tier of which all money is refused is warned about, unless that is so already.
func TestRefusingAllMoneyIsToBeMeant(t *testing.T) {
	t.Parallel()
	set := func(rules, data string) Source {
		source := Default()
		if rules != "" {
			source["more.rego"] = []byte("package gerbang\n\n" + rules)
		}
		if data != "" {
			source["data.json"] = []byte(strings.Replace(string(source["data.json"]), `"amounts": {}`, data, 1))
		}
		return source
	}
	const two = "refusals contains \"Not yet.\" if {\n\tinput.merchant.tier in {\"starter\", \"growth\"}\n\tinput.operation.kind != \"query\"\n}\n"
	for name, c := range map[string]struct {
		source Source
		active Source
		tiers  []string
	}{
		"the default":             {Default(), Default(), nil},
		"all money of two":        {set(two, ""), Default(), []string{"growth", "starter"}},
		"beside bounds":           {set(two, `"amounts": {"payment": {"max": 5000}}`), Default(), []string{"growth", "starter"}},
		"so already":              {set(two, `"amounts": {"payment": {"max": 5000}}`), set(two, ""), nil},
		"transfers alone":         {set("refusals contains \"Not yet.\" if input.operation.kind == \"transfer\"\n", ""), Default(), nil},
		"but small sums at night": {set("refusals contains \"Later.\" if input.clock.hour > 5\nrefusals contains \"Less.\" if input.amount > 20000\n", ""), Default(), nil},
	} {
		active, err := CompileAgain(t.Context(), c.active)
		if err != nil {
			t.Fatal(err)
		}
		_, findings, err := Gate(t.Context(), without(c.source, testSuffix), Facts{Active: active})
		if err != nil {
			t.Fatal(err)
		}
		var tiers []string
		for _, f := range findings {
			if f.Confirm && f.Warning && strings.Contains(f.Reason, "refuses all money of the tier") {
				tiers = append(tiers, strings.Split(f.Reason, `"`)[1])
			}
		}
		if slices.Sort(tiers); !slices.Equal(tiers, c.tiers) {
			t.Errorf("%s: %q, want %q, of %v", name, tiers, c.tiers, findings)
		}
	}
}

// without leaves out the files of an ending.
func without(source Source, ending string) Source {
	kept := Source{}
	for name, content := range source {
		if !strings.HasSuffix(name, ending) {
			kept[name] = content
		}
	}
	return kept
}
