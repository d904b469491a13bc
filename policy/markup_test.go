package policy

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// markups is data with a tier that has no markup and one that has, and a product.
const markups = `{
	"tiers": {"starter": {"rate_per_second": 1, "burst": 1}, "growth": {"rate_per_second": 1, "burst": 1}},
	"markups": {"tiers": {"growth": 300}, "products": {"xld10": 150, "pln20": 0}}
}`

// markup asks a set for a merchant's markup.
func markup(t *testing.T, set *Set, id, tier string, own ...OwnLimit) Markup {
	t.Helper()
	in := starter(noon, own...)
	in.Merchant.ID, in.Merchant.Tier = id, tier
	limits, err := set.Limits(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return limits.Markup
}

func TestTheMostSpecificMarkupWins(t *testing.T) {
	t.Parallel()
	set := must(t, with(dataFile, markups))
	for merchant, want := range map[[2]string]map[string]money.Amount{
		{"m1", "starter"}: {"xld10": 150, "pln20": 0, "other": 0},
		{"m2", "growth"}:  {"xld10": 150, "pln20": 0, "other": 300},
		{"m9", "growth"}:  {"xld10": 25, "pln20": 25, "other": 25},
	} {
		var own []OwnLimit
		if merchant[0] == "m9" {
			own = []OwnLimit{{Name: "ended", Markup: new(int64(9)), ExpiresAt: noon}, {Name: "price:markup", Markup: new(int64(25))}}
		}
		got := markup(t, set, merchant[0], merchant[1], own...)
		for product, amount := range want {
			if got.Of(product) != amount {
				t.Errorf("%v: %s has the markup %d, want %d", merchant, product, got.Of(product), amount)
			}
		}
	}
	if got := markup(t, must(t, fixture()), "m1", "starter"); got.Of("xld10") != 0 || got.Products != nil {
		t.Errorf("without markups it is %+v, want nothing", got)
	}
}

// TestMarkupsFollowTheSet: a change of the data is a new set, whose answers nothing keeps from before.
func TestMarkupsFollowTheSet(t *testing.T) {
	t.Parallel()
	active := NewActive(must(t, with(dataFile, markups)))
	if got := markup(t, active.Set(), "m1", "starter").Of("xld10"); got != 150 {
		t.Fatalf("the markup is %d", got)
	}
	active.Swap(must(t, with(dataFile, strings.Replace(markups, "150", "151", 1))))
	if got := markup(t, active.Set(), "m1", "starter").Of("xld10"); got != 151 {
		t.Errorf("after the edit the markup is %d, want 151", got)
	}
}

func TestMerchantsShareTheMapOfProducts(t *testing.T) {
	t.Parallel()
	set := must(t, with(dataFile, markups))
	one, other := markup(t, set, "m1", "starter"), markup(t, set, "m2", "growth")
	if reflect.ValueOf(one.Products).Pointer() != reflect.ValueOf(other.Products).Pointer() {
		t.Error("each merchant has a map of its own")
	}
	// Rules may answer with other maps: each is read as what it is.
	own := must(t, rulesOnly(`package gerbang

limits := {"rates": [], "quotas": [], "markup": {"products": {"a": count(input.merchant.id)}}}

admit := {"allow": true, "reasons": []}
`))
	for _, id := range []string{"m", "mm", "mmm", "mm", "m"} {
		if got := markup(t, own, id, "bronze").Of("a"); int(got) != len(id) {
			t.Errorf("%s has the markup %d, want %d", id, got, len(id))
		}
	}
}

func TestAWrongMarkupIsNoSet(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		`5`:                       "an object must be here",
		`{"default": -1}`:         `"default": must be a whole number from 0`,
		`{"default": 0.5}`:        `"default": must be a whole number from 0`,
		`{"default": "7"}`:        `"default": must be a whole number from 0`,
		`{"default": 1000000001}`: `"default": must be a whole number from 0`,
		`{"dfault": 5}`:           `"dfault" is not known here`,
		`{"products": []}`:        `"products": an object must be here`,
		`{"products": {"a": -1}}`: `"products": "a": must be a whole number from 0`,
		`{"products": {5: 1}}`:    "a product's name must be a string",
	} {
		rules := fmt.Sprintf("package gerbang\n\nlimits := {\"rates\": [], \"quotas\": [], \"markup\": %s}\n\nadmit := {\"allow\": true, \"reasons\": []}\n", answer)
		got := problems(t, rulesOnly(rules))
		if got[0].File != "own.rego" || got[0].Line != 3 || !strings.Contains(got[0].Message, want) {
			t.Errorf("%s: problems are %v, want %s", answer, got, want)
		}
	}
}

// Lists are finished once for all who pay the same, so that a name that two markups had
// by mistake would show one merchant the prices of another.
func TestTheNameOfAMarkupTellsItsAmounts(t *testing.T) {
	t.Parallel()
	products := func(pairs ...any) map[string]money.Amount {
		m := map[string]money.Amount{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = money.Amount(pairs[i+1].(int)) //nolint:forcetypeassert // as written below
		}
		return m
	}
	names := map[string]Markup{}
	for _, m := range []Markup{
		{},
		{Default: 1},
		{Products: products("a", 1)},
		{Default: 1, Products: products("a", 1)},
		{Products: products("a", 2)},
		{Products: products("a", 1, "b", 2)},
		{Products: products("a=1;1:b", 2)},
		{Products: products("b", 1, "a", 2)},
	} {
		if other, taken := names[m.Name()]; taken {
			t.Errorf("%+v and %+v have one name", m, other)
		}
		names[m.Name()] = m
	}
	if one, two := (Markup{Products: products("a", 1, "b", 2)}), (Markup{Products: products("b", 2, "a", 1)}); one.Name() != two.Name() {
		t.Errorf("%s and %s", one.Name(), two.Name())
	}
}
