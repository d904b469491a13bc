package policy

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// ownRules is the default set with another rule in place of one that reads merchants' own limits.
func ownRules(t *testing.T, old, changed string) Source {
	t.Helper()
	source := fixture()
	rules := string(source["limits.rego"])
	if !strings.Contains(rules, old) {
		t.Fatalf("limits.rego has no %s", old)
	}
	source["limits.rego"] = []byte(strings.Replace(rules, old, changed, 1))
	delete(source, "limits_test.rego")
	return source
}

const (
	readsTransfers = "own_outflow := input.merchant.transfers"
	readsMarkup    = `markup := {"default": amount} if amount := input.merchant.markup`
	allTransfers   = "input.merchant.transfers.day.amount, input.merchant.transfers.day.count, input.merchant.transfers.destination_day.amount, " +
		"input.merchant.transfers.destination_day.count, input.merchant.transfers.repeat_within"
)

// TestASetThatIgnoresOwnLimits is refused, unless an operator knows better: the limits would be accepted and never hold.
func TestASetThatIgnoresOwnLimits(t *testing.T) {
	t.Parallel()
	facts := someFacts()
	facts.Operations = append(facts.Operations,
		Offered{Operation: Operation{Path: "/topup/buy", Kind: "order", Provider: "topup"}, Amount: true, Quote: true},
		Offered{Operation: Operation{Path: "/wallet1/transfer", Kind: "transfer", Provider: "wallet1"}, Amount: true})
	for name, c := range map[string]struct {
		old, changed string
		want         string
		refused      bool
	}{
		"as before records had them": {
			readsTransfers, "own_outflow := data.transfers.merchants[input.merchant.id]",
			"limits.rego:8:1: meaning: the answer for /bank/transfer, /wallet1/transfer does not show " + allTransfers + ": merchants' own limits would not hold", true,
		},
		"a markup": {
			readsMarkup, `markup := {"default": amount} if amount := data.markups.merchants[input.merchant.id]`,
			"meaning: the answer for /topup/buy does not show input.merchant.markup: ", true,
		},
		"one of several": {
			readsTransfers, `own_outflow := object.remove(input.merchant.transfers, ["repeat_within"])`, "does not show input.merchant.transfers.repeat_within: ", true,
		},
		"of one operation": {
			readsTransfers, readsTransfers + ` if input.operation.provider == "bank"`,
			"warning: meaning: the answer for /wallet1/transfer does not show " + allTransfers, false,
		},
		"of one tier": {
			readsTransfers, readsTransfers + ` if input.merchant.tier != "growth"`, "limits would not hold; read them as the default limits.rego does (3 merchants)", true,
		},
		"at most so much": {
			readsMarkup, "markup := {\"default\": min([amount, 5000])} if amount := input.merchant.markup", "", false,
		},
		"in live mode": {readsTransfers, readsTransfers + ` if input.mode == "live"`, "", false},
	} {
		source := ownRules(t, c.old, c.changed)
		_, findings, err := Gate(t.Context(), source, facts)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		said := func(f Finding) bool { return strings.Contains(f.String(), c.want) }
		if Refused(findings, false) != c.refused || Refused(findings, true) || slices.ContainsFunc(findings, said) != (c.want != "") {
			t.Errorf("%s: findings are %q, want one with %q", name, findings, c.want)
		}
	}
	if told := found(t, ownRules(t, readsTransfers, "own_outflow := data.transfers.merchants[input.merchant.id]"), Facts{}); len(told) != 2 || !strings.Contains(told[0], "warning: ") ||
		!strings.Contains(told[1], "nothing defines data.transfers.merchants") {
		t.Errorf("without a gateway, findings are %q", told)
	}
}

// TestIgnored: an own limit is ignored where the answer has another value and the same as without it.
func TestIgnored(t *testing.T) {
	t.Parallel()
	const tier = `, "markups": {"tiers": {"growth": 50}, "products": {"p": 7}}, ` +
		`"transfers": {"tiers": {"growth": {"day": {"amount": 300, "count": 3}, "repeat_within": "10m"}}}}`
	compiled := func(old, changed string) *Set {
		source := ownRules(t, old, changed)
		source[dataFile] = []byte(fixtureData[:len(fixtureData)-1] + tier)
		return must(t, source)
	}
	asIs, before := compiled(readsTransfers, readsTransfers), compiled(readsTransfers, "own_outflow := data.transfers.merchants[input.merchant.id]")
	plain := compiled(readsMarkup, `markup := {"default": amount} if amount := data.markups.merchants[input.merchant.id]`)
	bounded := compiled(`"transfers": object.remove(outflow, ["repeat_within", "higher_fees"])`,
		`"transfers": {"day": {"amount": max([outflow.day.amount, tier_outflow.day.amount])}}`)
	day := func(amount, count *int64) OwnLimit { return OwnLimit{Payout: &Payout{Day: Outflow{amount, count}}} }
	for name, c := range map[string]struct {
		set  *Set
		own  OwnLimit
		want []string
	}{
		"an amount":          {asIs, day(new(int64(500)), nil), nil},
		"the tier's amount":  {asIs, day(new(int64(300)), nil), nil},
		"not read":           {before, day(new(int64(500)), new(int64(0))), []string{"input.merchant.transfers.day.amount", "input.merchant.transfers.day.count"}},
		"not below a tier's": {bounded, day(new(int64(100)), nil), []string{"input.merchant.transfers.day.amount"}},
		"above a tier's":     {bounded, day(new(int64(500)), nil), nil},
		"a destination":      {before, OwnLimit{Payout: &Payout{DestinationDay: Outflow{Count: new(int64(2))}}}, []string{"input.merchant.transfers.destination_day.count"}},
		"no repeats":         {asIs, OwnLimit{Payout: &Payout{RepeatWithin: new(time.Duration(0))}}, nil},
		"repeats":            {before, OwnLimit{Payout: &Payout{RepeatWithin: new(time.Minute)}}, []string{"input.merchant.transfers.repeat_within"}},
		"a markup":           {asIs, OwnLimit{Markup: new(int64(0))}, nil},
		"the tier's markup":  {plain, OwnLimit{Markup: new(int64(50))}, []string{"input.merchant.markup"}},
	} {
		in := LimitsInput{Merchant: Merchant{ID: "m", Tier: "growth", Status: "active"}, Mode: "live", Operation: Operation{Path: "/any", Kind: "transfer", Provider: "any"}, Now: noon}
		if got, err := c.set.Ignored(t.Context(), in, c.own); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: ignored are %q, %v, want %q", name, got, err, c.want)
		}
	}
}
