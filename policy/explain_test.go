package policy

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// where is a rule in short, for comparison.
func where(because []Because) []string {
	var places []string
	for _, b := range because {
		places = append(places, b.Reason+" "+b.Rule.Name+" "+Problem{File: b.Rule.File, Line: b.Rule.Line}.String())
	}
	return places
}

func TestExplainNamesTheRuleOfEachReason(t *testing.T) {
	t.Parallel()
	set := must(t, rulesOnly(`package gerbang
`+limitsRule+`
admit := {"allow": count(refusals) == 0, "reasons": refusals}

refusals contains "No orders." if input.operation.kind == "order"

refusals contains too_much(input.amount)

refusals contains "No orders." if {
	input.operation.provider == "shop"
	some kind in ["order", "payment"]
	input.operation.kind == kind
}

too_much(amount) := sprintf("At most %d.", [1000]) if amount > 1000

else := sprintf("Not %d.", [amount]) if amount == 13
`))
	for name, c := range map[string]struct {
		kind, provider string
		amount         int64
		want           []string
	}{
		"nothing": {"payment", "bank", 10, nil},
		"one":     {"order", "bank", 10, []string{"No orders. gerbang.refusals own.rego:7:0: "}},
		"two rules of one reason and a computed one": {"order", "shop", 1001, []string{
			"At most 1000. gerbang.refusals own.rego:9:0: ", "No orders. gerbang.refusals own.rego:7:0: ", "No orders. gerbang.refusals own.rego:11:0: ",
		}},
		"an else": {"payment", "bank", 13, []string{"Not 13. gerbang.refusals own.rego:9:0: "}},
	} {
		in := request()
		in.Operation.Kind, in.Operation.Provider, in.Amount = c.kind, c.provider, &c.amount
		got, err := set.Explain(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(where(got.Because), c.want) {
			t.Errorf("%s: %q, want %q", name, where(got.Because), c.want)
		}
		plain, err := set.Admit(t.Context(), in)
		if err != nil || !reflect.DeepEqual(plain, got.Decision) {
			t.Errorf("%s: explained is %+v, decided %+v, %v", name, got.Decision, plain, err)
		}
		again, err := set.Explain(t.Context(), in)
		if err != nil || again.Steps != got.Steps || got.Steps == 0 {
			t.Errorf("%s: %d steps, then %d, %v", name, got.Steps, again.Steps, err)
		}
	}
}

// TestExplainOfOtherShapes: reasons need not be a set of a rule that is called so.
func TestExplainOfOtherShapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ rules, want string }{
		"in the document": {`admit := {"allow": false, "reasons": ["Closed."]}`, "Closed. gerbang.admit own.rego:5:0: "},
		"of one value":    {"admit := {\"allow\": false, \"reasons\": [why]}\n\nwhy := \"Closed.\" if input.mode", "Closed. gerbang.why own.rego:7:0: "},
		"of an else": {"admit := {\"allow\": false, \"reasons\": [why]}\n\nwhy := \"Open.\" if input.mode == \"test\"\n\nelse := \"Closed.\"",
			"Closed. gerbang.why own.rego:9:0: "},
		"none":      {`admit := {"allow": false, "reasons": []}`, refusedSilently + " gerbang.admit own.rego:5:0: "},
		"no answer": {`admit := {"allow": true, "reasons": []} if input.mode == "none"`, refusedSilently + " gerbang.admit own.rego:5:0: "},
	} {
		got, err := must(t, rulesOnly("package gerbang\n"+limitsRule+"\n"+c.rules+"\n")).Explain(t.Context(), request())
		if err != nil || !slices.Equal(where(got.Because), []string{c.want}) {
			t.Errorf("%s: %q, %v; want %q", name, where(got.Because), err, c.want)
		}
	}
}

func TestRulesAreNumberedByPlace(t *testing.T) {
	t.Parallel()
	set := must(t, Default())
	rules := set.Rules()
	for i, rule := range rules {
		if rule.Number != i+1 || set.Rule(rule.Number) != rule {
			t.Errorf("rule %d is %+v", i+1, rule)
		}
		if i > 0 && (rule.File < rules[i-1].File || rule.File == rules[i-1].File && rule.Line < rules[i-1].Line) {
			t.Errorf("%+v stands after %+v", rule, rules[i-1])
		}
		if strings.HasSuffix(rule.File, testSuffix) {
			t.Errorf("a test is a rule: %+v", rule)
		}
	}
	if set.Rule(0) != (Rule{}) || set.Rule(len(rules)+1) != (Rule{}) {
		t.Error("a number of no rule names one")
	}
	if !slices.ContainsFunc(rules, func(r Rule) bool { return r.Says == "This mode is not known." }) {
		t.Error("a rule that always gives one reason says nothing")
	}
	if slices.ContainsFunc(rules, func(r Rule) bool { return r.Says != "" && r.Name != "gerbang.refusals" }) {
		t.Errorf("what gives no reason says one: %+v", rules)
	}
	if again := must(t, Default()).Rules(); !slices.Equal(rules, again) {
		t.Errorf("the same set gives other numbers: %v and %v", rules, again)
	}
}

func TestTraceNamesLinesAndNoValues(t *testing.T) {
	t.Parallel()
	in := request()
	in.Merchant.ID, in.Merchant.Status = "mer_secret", "suspended"
	lines, err := must(t, fixture()).Trace(t.Context(), in)
	if err != nil || len(lines) == 0 {
		t.Fatalf("%v, %v", lines, err)
	}
	seen := false
	for _, line := range lines {
		seen = seen || line.Op == "Exit" && line.Rule.Name == "gerbang.refusals" && strings.Contains(line.Text, "not active")
		if strings.Contains(line.Text, in.Merchant.ID) || line.Line == 0 || line.File == "" {
			t.Errorf("a line is %+v", line)
		}
	}
	if !seen {
		t.Errorf("no line tells that the refusing rule held: %+v", lines)
	}
}

func TestAnExplanationEndsWithItsDeadline(t *testing.T) {
	t.Parallel()
	set := must(t, rulesOnly("package gerbang\n"+limitsRule+endless))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	in := request()
	in.Operation.Path = "/endless"
	if got, err := set.Explain(ctx, in); !errors.Is(err, context.DeadlineExceeded) || got.Decision.Allow {
		t.Errorf("%+v, %v; want the deadline's error", got, err)
	}
}

// endless never ends for one path, as far as anybody waits.
const endless = `
admit := {"allow": true, "reasons": []} if not never

never if {
	input.operation.path == "/endless"
	some a in numbers.range(1, 100000)
	some b in numbers.range(1, 100000)
	some c in numbers.range(1, 100000)
	a + b + c < 0
}
`

func BenchmarkExplain(b *testing.B) {
	set, in := must(b, fixture()), request()
	in.Merchant.Status = "suspended"
	b.ReportAllocs()
	for b.Loop() {
		if explained, err := set.Explain(b.Context(), in); err != nil || explained.Decision.Allow {
			b.Fatal(explained, err)
		}
	}
}
