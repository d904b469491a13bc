package policy

import (
	"strings"
	"testing"
)

// TestPer: a rate says who has one, and is the merchant's where it says nothing.
func TestPer(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]Per{
		"": PerMerchant, `, "per": "merchant"`: PerMerchant, `, "per": "operation"`: PerOperation, `, "per": "key"`: PerKey,
		`, "per": "shop"`: "", `, "per": ""`: "", `, "per": 1`: "", `, "per": null`: "",
	} {
		source := rulesOnly("package gerbang\n\nadmit := {\"allow\": true, \"reasons\": []}\n" + strings.Replace(ratedRule, `"burst": 1`, `"burst": 1`+said, 1))
		set, err := Compile(t.Context(), source)
		if want == "" {
			if err == nil || !strings.Contains(err.Error(), `"default": "per" must be "merchant", "operation" or "key"`) {
				t.Errorf("%s: %v", said, err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", said, err)
		}
		limits, err := set.Limits(t.Context(), starter(noon))
		if err != nil || limits.Rates[0].Per != want {
			t.Errorf("%s is %v, %v", said, limits.Rates, err)
		}
	}
	for per, want := range map[Per]string{PerMerchant: "r", PerOperation: "r:/a", PerKey: "r:k"} {
		if got := (Rate{Name: "r", Per: per}).Bucket("/a", "k"); got != want {
			t.Errorf("per %s it is %q, want %q", per, got, want)
		}
	}
}

// TestATierSaysPer: the default rules hand on what data.json says.
func TestATierSaysPer(t *testing.T) {
	t.Parallel()
	set := must(t, with(dataFile, `{"tiers": {"starter": {"rate_per_second": 5, "burst": 10, "per": "key"}}}`))
	if limits, err := set.Limits(t.Context(), starter(noon)); err != nil || limits.Rates[0] != (Rate{"default", 5, 10, PerKey}) {
		t.Errorf("got %+v, %v", limits.Rates, err)
	}
}
