package operators

import (
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// numbered has a number of each kind, one twice, and what a form must leave alone.
const numbered = `{
  "tiers": {"starter": {"rate_per_second": 2.5, "burst": 10, "quotas": {"wallet2": {"limit": 1000}}}, "a/b": {"burst": 10}},
  "transfers": {"tiers": {"starter": {"repeat_within": "10m"}}},
  "custom": {"odd": 10}
}
`

func TestWithNumbersChangesNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		form url.Values
		want string
	}{
		"nothing given":     {url.Values{}, numbered},
		"the same":          {url.Values{"/tiers/starter/burst": {" 10 "}}, numbered},
		"longer and lower":  {url.Values{"/tiers/starter/rate_per_second": {"12.75"}, "/tiers/starter/quotas/wallet2/limit": {"0"}}, strings.NewReplacer("2.5", "12.75", "1000", "0").Replace(numbered)},
		"a name with slash": {url.Values{"/tiers/a~1b/burst": {"7"}}, strings.Replace(numbered, `"a/b": {"burst": 10}`, `"a/b": {"burst": 7}`, 1)},
		"what is custom":    {url.Values{"/custom/odd": {"1"}}, numbered},
		"what is no number": {url.Values{"/transfers/tiers/starter/repeat_within": {"1"}}, numbered},
	} {
		got, err := withNumbers(numbered, c.form)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n%s", name, err, got)
		}
	}
	for _, text := range []string{"", "-1", "1e9", "1,5", "01", "1 000", "0x1", `1, "x": 2`, "."} {
		if got, err := withNumbers(numbered, url.Values{"/tiers/starter/burst": {text}}); err == nil {
			t.Errorf("%q made %s", text, got)
		}
	}
	if _, err := withNumbers(`{"a": 1`, url.Values{}); err == nil {
		t.Error("a file that ends early was read")
	}
}

func TestFormOfArrangesByTheFirstTwoNames(t *testing.T) {
	t.Parallel()
	numbers, err := numbersOf(numbered)
	if err != nil {
		t.Fatal(err)
	}
	want := []section{{"tiers", []group{
		{"starter", []field{
			{"/tiers/starter/rate_per_second", "rate_per_second", "2.5"}, {"/tiers/starter/burst", "burst", "10"},
			{"/tiers/starter/quotas/wallet2/limit", "quotas wallet2 limit", "1000"},
		}},
		{"a/b", []field{{"/tiers/a~1b/burst", "burst", "10"}}},
	}}}
	if got := formOf(numbers); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}
