package policy

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// tier is data with one tier of these fields.
func tier(fields string) string { return `{"tiers": {"a": {` + fields + `}}}` }

func TestDataIsHeldAgainstItsShape(t *testing.T) {
	t.Parallel()
	good := `"rate_per_second": 1, "burst": 1`
	beside := func(name, value string) string {
		return fmt.Sprintf("{\"tiers\": {\"a\": {%s}},\n%q: %s}", good, name, value)
	}
	for name, c := range map[string]struct{ data, want string }{
		"empty":               {``, `1:1: this is not JSON: the file ends too early`},
		"cut short":           {`{"tiers": `, `1:11: this is not JSON: the file ends`},
		"not JSON":            {"{\n\"tiers\": nope}", `2:10: this is not JSON`},
		"a comma too many":    {"{\"tiers\": {},\n}", `2:1: this is not JSON`},
		"more than one value": {`{} {}`, `1:4: nothing may follow`},
		"not UTF-8":           {"{\"tiers\": \"\xff\"}", `1:1: this file is not UTF-8`},
		"too deep":            {strings.Repeat("[", 40) + strings.Repeat("]", 40), `nests deeper`},
		"more than all":       {tier(good + `, "request_log": {"successes": 1.1}`), `must be a number from 0 to 1`},
		"no share":            {tier(good + `, "request_log": {"successes": "all"}`), `must be a number from 0 to 1`},
		"a list":              {`[]`, `1:1: this must be an object`},
		"no tiers":            {`{}`, `1:1: "tiers" is missing`},
		"no tier":             {`{"tiers": {}}`, `1:11: there must be a tier`},
		"twice the same":      {"{\"tiers\": {\"a\": {" + good + "},\n \"a\": {" + good + "}}}", `2:2: "a" stands here twice`},
		"a misspelt top":      {beside("quota", `{}`), `2:1: "quota" is not known here`},
		"a misspelt field":    {tier("\n" + good + ",\n  \"brust\": 1"), `3:3: "brust" is not known here`},
		"another case":        {tier(`"Burst": 1, "rate_per_second": 1`), `1:18: "Burst" is not known here`},
		"no burst":            {tier(`"rate_per_second": 1`), `1:17: "burst" is missing`},
		"no rate":             {tier(`"burst": 1`), `1:17: "rate_per_second" is missing`},
		"rate 0":              {tier(`"burst": 1, "rate_per_second": 0`), `1:49: "rate_per_second" must be a number above 0`},
		"rate below 0":        {tier(`"burst": 1, "rate_per_second": -5`), `"rate_per_second" must be`},
		"rate as string":      {tier(`"burst": 1, "rate_per_second": "5"`), `"rate_per_second" must be`},
		"rate without bound":  {tier(`"burst": 1, "rate_per_second": 1e400`), `"rate_per_second" must be`},
		"burst 0":             {tier(`"rate_per_second": 1, "burst": 0`), `"burst" must be a whole number`},
		"burst in part":       {tier(`"rate_per_second": 1, "burst": 1.5`), `"burst" must be a whole number`},
		"burst null":          {tier(`"rate_per_second": 1, "burst": null`), `"burst" must be a whole number`},
		"per somebody":        {tier(good + `, "per": "shop"`), `1:59: "per" must be "merchant", "operation" or "key"`},
		"per a number":        {tier(good + `, "per": 1`), `"per" must be`},
		"a tier's name":       {`{"tiers": {"a b": {` + good + `}}}`, `1:12: "a b" is not a name`},
		"a tier is a number":  {`{"tiers": {"a": 5}}`, `1:17: this must be an object`},
		"quota without limit": {tier(good + `, "quotas": {"q": {}}`), `"limit" is missing`},
		"quota below 0":       {tier(good + `, "quotas": {"q": {"limit": -1}}`), `"limit" must be a whole number`},
		"quota as number":     {tier(good + `, "quotas": {"q": 5}`), `this must be an object`},
		"an undeclared quota": {`{"tiers": {"a": {` + good + `, "quotas": {"q": {"limit": 1}}}}, "quotas": {}}`, `no quota "q" is declared`},
		"no operations":       {beside("quotas", `{"q": {"limit": 5}}`), `2:17: "operations" is missing`},
		"operations a string": {beside("quotas", `{"q": {"operations": "/a"}}`), `this must be a list of paths`},
		"operations no path":  {beside("quotas", `{"q": {"operations": ["a"]}}`), `2:33: this must be a path`},
		"a limit in words":    {beside("quotas", `{"q": {"operations": [], "limit": "many"}}`), `"limit" must be a whole number`},
		"a misspelt bound":    {beside("amounts", `{"payment": {"minimum": 5}}`), `"minimum" is not known here`},
		"a bound of 0":        {beside("amounts", `{"payment": {"min": 0}}`), `"min" must be a whole number`},
		"bounds crossed":      {beside("amounts", `{"payment": {"min": 5, "max": 4}}`), `2:42: "max" is below "min"`},
		"a markup below 0":    {beside("markups", `{"products": {"x5": -1}}`), `2:32: "x5" must be a whole number from 0`},
		"a markup in part":    {beside("markups", `{"tiers": {"a": 0.5}}`), `"a" must be a whole number from 0`},
		"a markup as string":  {beside("markups", `{"tiers": {"a": "5"}}`), `"a" must be a whole number from 0`},
		"a markup too high":   {beside("markups", `{"tiers": {"a": 1000000001}}`), `"a" must be a whole number from 0`},
		"an unknown tier":     {beside("markups", `{"tiers": {"b": 5}}`), `2:23: no tier "b" is in this file`},
		"an unknown markup":   {beside("markups", `{"product": {}}`), `2:13: "product" is not known here`},
		"markups a number":    {beside("markups", `5`), `2:12: this must be an object`},
		"products a list":     {beside("markups", `{"products": []}`), `2:25: this must be an object`},
		"no product's name":   {beside("markups", `{"products": {"": 5}}`), `2:25: a name is empty`},
		"an unknown bound":    {beside("transfers", `{"tiers": {"a": {"month": {}}}}`), `2:31: "month" is not known here`},
		"a bound of no tier":  {beside("transfers", `{"tiers": {"b": {}}}`), `2:25: no tier "b" is in this file`},
		"a bound in part":     {beside("transfers", `{"tiers": {"a": {"day": {"count": 1.5}}}}`), `"count" must be a whole number from 0`},
		"a bound below 0":     {beside("transfers", `{"tiers": {"a": {"destination_day": {"amount": -1}}}}`), `"amount" must be a whole number from 0`},
		"no known unit":       {beside("transfers", `{"tiers": {"a": {"day": {"sum": 1}}}}`), `"sum" is not known here`},
		"a repeat of days":    {beside("transfers", `{"tiers": {"a": {"repeat_within": "1d"}}}`), `2:48: "repeat_within" must be a duration`},
		"a repeat as number":  {beside("transfers", `{"tiers": {"a": {"repeat_within": 5}}}`), `"repeat_within" must be a duration`},
		"transfers a list":    {beside("transfers", `[]`), `2:14: this must be an object`},
		"a merchant's markup": {beside("markups", `{"merchants": {"m1": 5}}`), `2:13: what is one merchant's own is on its record; take this out, and use gerbang merchant limit MERCHANT with --markup; deploy/README.md, ` + ownChapter},
		"a merchant's bounds": {beside("transfers", `{"merchants": {}}`), `2:15: what is one merchant's own is on its record; take this out, and use gerbang merchant limit MERCHANT with --day-amount, --day-count,`},
		"custom is a list":    {beside("custom", `[]`), `2:11: this must be an object`},
	} {
		data, problems := checkData([]byte(c.data))
		if data != nil || len(problems) == 0 {
			t.Errorf("%s: %s is taken", name, c.data)
			continue
		}
		if all := (&Error{Problems: problems}).Error(); !strings.Contains(all, c.want) {
			t.Errorf("%s: problems are %s, want %s", name, all, c.want)
		}
	}
}

func TestRightDataIsTaken(t *testing.T) {
	t.Parallel()
	data, problems := checkData([]byte(`{
		"tiers": {"a-1_B.c": {"rate_per_second": 0.5, "burst": 1, "quotas": {"q": {"limit": 0}}, "request_log": {"successes": 0.1}}},
		"quotas": {"q": {"operations": ["/a"], "limit": 9223372036854775807}, "r": {"operations": []}},
		"amounts": {"payment": {"min": 1}, "/a": {"max": 2}, "order": {"min": 3, "max": 3}},
		"markups": {"tiers": {"a-1_B.c": 0}, "products": {"x 5/10": 1000000000}},
		"transfers": {"tiers": {"a-1_B.c": {"day": {"amount": 0, "count": 5}, "destination_day": {}, "repeat_within": "24h"}}},
		"custom": {"anything": [true, null, {"a": "b"}]}
	}`))
	if len(problems) > 0 || len(data) != 6 {
		t.Fatalf("data is %v with the problems %v", data, problems)
	}
	custom := data["custom"].(map[string]any)["anything"].([]any)
	if custom[0] != true || custom[1] != nil || custom[2].(map[string]any)["a"] != "b" {
		t.Errorf("custom data came out as %v", custom)
	}
}

// FuzzData looks for bytes that are neither taken nor refused with a place inside the file.
func FuzzData(f *testing.F) {
	for _, seed := range []string{fixtureData, tier(`"burst": 1`), `{"a": [`, "[\n1,,2]", `{"tiers":{"":{}}}`, "\xff", `"`, `{"a" 1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		data, problems := checkData(src)
		if (data == nil) == (len(problems) == 0) {
			t.Fatalf("%q gives %v and %v", src, data, problems)
		}
		for _, p := range problems {
			if p.File != dataFile || p.Line < 1 || p.Col < 1 || p.Line > 1+strings.Count(string(src), "\n") {
				t.Fatalf("%q: a problem stands at %v", src, p)
			}
		}
	})
}

// ownChapter is where the handbook has an order that is safe.
const ownChapter = "Move merchants' limits out of data.json"

func TestTheHandbookHasTheChapterThatARefusalNames(t *testing.T) {
	t.Parallel()
	handbook, err := os.ReadFile("../deploy/README.md")
	if err != nil || !strings.Contains(string(handbook), "\n### "+ownChapter+"\n") {
		t.Errorf("deploy/README.md has no chapter %q: %v", ownChapter, err)
	}
}
