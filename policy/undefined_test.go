package policy

import (
	"slices"
	"strings"
	"testing"
)

// custom is the fixture's data with a part for rules of one's own.
func custom(text, rules string) Source {
	source := rule(rules)
	source[dataFile] = []byte(strings.TrimSuffix(strings.TrimSpace(fixtureData), "}") + `, "custom": ` + text + "}")
	return source
}

// plus is a source with a file more.
func (s Source) plus(name, content string) Source {
	s[name] = []byte(content)
	return s
}

// TestUndefined: a misspelt name is told, and the name that was meant.
func TestUndefined(t *testing.T) {
	t.Parallel()
	const banned = `refusals contains "banned" if input.fields.bank in data.custom.`
	for name, c := range map[string]struct {
		source Source
		want   []string
	}{
		"as defined": {custom(`{"accounts": ["1"]}`, banned+"accounts"), nil},
		"a key of custom that is misspelt": {custom(`{"acounts": ["1"]}`, banned+"accounts"), []string{
			`nothing defines data.custom.accounts: to a rule it is undefined; is it data.custom.acounts?`,
			`warning: meaning: no rule reads "custom.acounts", though one reads "custom.accounts"`,
		}},
		"a part of data.json that is misspelt": {rule(`refusals contains "stopped" if data.tierz[input.merchant.tier].stopped`), []string{
			"own.rego:3:32: meaning: nothing defines data.tierz: to a rule it is undefined; is it data.tiers?",
		}},
		"a name deep inside":       {custom(`{"night": {"from": 22}}`, `refusals contains "night" if input.clock.hour >= data.custom.night.form`), []string{"is it data.custom.night.from?"}},
		"a rule that is misspelt":  {rule("closed if input.clock.hour > 22\n\nrefusals contains \"closed\" if data.gerbang.closd"), []string{"is it data.gerbang.closed?"}},
		"names that are values":    {rule(`refusals contains "small" if data.amounts["/bank/transfer"].max < 0`), nil},
		"a part that is left out":  {rule(`refusals contains "product" if data.markups.products[input.fields.bank] > 5`), nil},
		"all of custom, whichever": {custom(`{"a": {"accounts": []}, "b": {}}`, `refusals contains "banned" if input.fields.bank in data.custom[_].accounts`), nil},
		"a key that nothing reads": {custom(`{"accounts": [], "old": 1}`, banned+"accounts"), []string{`warning: meaning: no rule reads "custom.old"`}},
		"what is left out on purpose": {custom(`{"accounts": []}`, `refusals contains "closed" if data.custom.maintenance`), []string{
			"warning: meaning: nothing defines data.custom.maintenance: to a rule it is undefined", `no rule reads "custom.accounts"`,
		}},
		"a package beside data of its name": {custom(`{"accounts": ["1"]}`, banned+"accounts").plus("custom.rego", "package custom.rules\n\nopen := data.custom.accounts\n"), nil},
		"a rule deep in a package": {with("own.rego", "package gerbang\n\nrefusals contains \"night\" if data.helpers.time.nigth\n").plus("helpers.rego", "package helpers.time\n\nnight if input.clock.hour > 22\n"), []string{
			"nothing defines data.helpers.time.nigth: to a rule it is undefined; is it data.helpers.time.night?",
		}},
		"what is like nothing": {rule(`refusals contains "x" if data.lists.blocked`), []string{"own.rego:3:26: meaning: nothing defines data.lists: to a rule it is undefined (15 merchants)"}},
		"what tests read":      {with("own_test.rego", "package own_test\n\ntest_a if not data.custom.nothing\n"), nil},
	} {
		told := found(t, c.source, someFacts())
		fits := len(told) == len(c.want)
		for _, want := range c.want {
			fits = fits && slices.ContainsFunc(told, func(text string) bool { return strings.Contains(text, want) })
		}
		if !fits {
			t.Errorf("%s: findings are %q, want %q", name, told, c.want)
		}
	}
	facts := someFacts()
	source := custom("{}", banned+"accounts")
	facts.Active = must(t, source)
	_, findings, err := Gate(t.Context(), source, facts)
	if err != nil || len(findings) != 1 || Refused(findings, false) || !strings.HasSuffix(findings[0].Reason, "; the version in force has this too") {
		t.Errorf("what the version in force has: %q, %v", findings, err)
	}
}

// TestIdle: a new rule that no request of a day reaches is told, and one that was there before is not.
func TestIdle(t *testing.T) {
	t.Parallel()
	facts := someFacts()
	facts.Active = must(t, fixture())
	facts.Recorded = []AdmitInput{{
		Merchant: Merchant{ID: "m1", Tier: "growth", Status: "active"}, Mode: "live", Operation: facts.Operations[4].Operation, Fields: map[string]any{"bank": "BCA"},
	}}
	for text, want := range map[string]string{
		`refusals contains "never" if input.operation.kind == "transfers"`:                                                "own.rego:3:1: warning: meaning: this rule is new, and no request reaches it, of 1 recorded and of generated ones (15 merchants)",
		"refusals contains \"at times\" if {\n\tinput.operation.kind == \"transfer\"\n\tinput.fields.bank == \"none\"\n}": "",
	} {
		if told := found(t, rule(text), facts); want == "" && len(told) > 0 || want != "" && !slices.Equal(told, []string{want}) {
			t.Errorf("%s: findings are %q", text, told)
		}
	}
}
