package policy

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 4, 12, 30, 0, 0, time.UTC)

func assertLimits(t *testing.T, got, want Limits) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("limits are %+v, want %+v", got, want)
	}
}

// starter asks for the limits of a merchant of the default tier with limits of its own.
func starter(now time.Time, own ...OwnLimit) LimitsInput {
	return LimitsInput{
		Merchant:  Merchant{ID: "m1", Tier: "starter", Status: "active", Limits: own, Version: 1},
		Mode:      "live",
		Operation: Operation{Path: "/wallet2/create", Kind: "payment", Provider: "wallet2"},
		Now:       now,
	}
}

// request is one that the default set allows.
func request() AdmitInput {
	amount := int64(10_000)
	return AdmitInput{
		Merchant:  Merchant{ID: "m1", Tier: "starter", Status: "active", Labels: map[string]string{"city": "Bandung"}},
		Mode:      "live",
		Operation: Operation{Path: "/payments/create", Kind: "payment", Provider: "payments"},
		Amount:    &amount,
		Now:       noon,
	}
}

func TestOwnLimits(t *testing.T) {
	t.Parallel()
	set := must(t, fixture())
	none, many := int64(0), int64(1)<<60
	for name, c := range map[string]struct {
		own  []OwnLimit
		want Limits
	}{
		"none":           {nil, Limits{Rates: []Rate{{"default", 5, 10, PerMerchant}}, Quotas: []Quota{{"wallet2", 1000}}}},
		"a pace":         {[]OwnLimit{{Name: "default", RatePerSecond: 0.25}}, Limits{Rates: []Rate{{"default", 0.25, 10, PerMerchant}}, Quotas: []Quota{{"wallet2", 1000}}}},
		"a burst":        {[]OwnLimit{{Name: "default", Burst: 77}}, Limits{Rates: []Rate{{"default", 5, 77, PerMerchant}}, Quotas: []Quota{{"wallet2", 1000}}}},
		"a quota of 0":   {[]OwnLimit{{Name: "wallet2", Limit: &none}}, Limits{Rates: []Rate{{"default", 5, 10, PerMerchant}}, Quotas: []Quota{{"wallet2", 0}}}},
		"a great quota":  {[]OwnLimit{{Name: "wallet2", Limit: &many}}, Limits{Rates: []Rate{{"default", 5, 10, PerMerchant}}, Quotas: []Quota{{"wallet2", 1 << 60}}}},
		"the later one":  {[]OwnLimit{{Name: "default", Burst: 2}, {Name: "default", Burst: 3}}, Limits{Rates: []Rate{{"default", 5, 3, PerMerchant}}, Quotas: []Quota{{"wallet2", 1000}}}},
		"an expired one": {[]OwnLimit{{Name: "default", Burst: 2, ExpiresAt: noon}}, Limits{Rates: []Rate{{"default", 5, 10, PerMerchant}}, Quotas: []Quota{{"wallet2", 1000}}}},
	} {
		in := starter(noon, c.own...)
		in.Merchant.ID = name
		got, err := set.Limits(t.Context(), in)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.want.Version, c.want.RepeatWithin = set.Version(), DefaultRepeat
		assertLimits(t, got, c.want)
	}
}

// TestSuccessesAreLoggedAsTheTierSays, all of them where it says nothing.
func TestSuccessesAreLoggedAsTheTierSays(t *testing.T) {
	t.Parallel()
	for share, unlogged := range map[string]float64{"": 0, `, "request_log": {}`: 0, `, "request_log": {"successes": 0.25}`: 0.75, `, "request_log": {"successes": 0}`: 1} {
		source := fixture()
		source["data.json"] = []byte(`{"tiers": {"starter": {"rate_per_second": 5, "burst": 10` + share + `}}}`)
		if got, err := must(t, source).Limits(t.Context(), starter(noon)); err != nil || got.Unlogged != unlogged {
			t.Errorf("with %q a share of %v is left out, want %v; %v", share, got.Unlogged, unlogged, err)
		}
	}
}

func TestLimitsAreKeptUntilTheRecordChangesOrALimitExpires(t *testing.T) {
	t.Parallel()
	set := must(t, fixture())
	burst := func(in LimitsInput) int {
		t.Helper()
		limits, err := set.Limits(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return limits.Rates[0].Burst
	}
	soon, late := noon.Add(time.Minute), noon.Add(time.Hour)
	own := []OwnLimit{{Name: "default", Burst: 99, ExpiresAt: soon}, {Name: "wallet2", ExpiresAt: late}}
	if got := burst(starter(noon, own...)); got != 99 {
		t.Fatalf("burst is %d, want the merchant's own 99", got)
	}
	// The same version of the record is never read again: that the answer does not change shows that it was kept.
	if got := burst(starter(soon.Add(-time.Nanosecond), OwnLimit{Name: "default", Burst: 5})); got != 99 {
		t.Errorf("burst is %d before the expiry, want the kept 99", got)
	}
	if got := burst(starter(soon, own...)); got != 10 {
		t.Errorf("burst is %d after the expiry, want the tier's 10", got)
	}
	changed := starter(noon, OwnLimit{Name: "default", Burst: 5})
	changed.Merchant.Version++
	if got := burst(changed); got != 5 {
		t.Errorf("burst is %d for a new record, want its 5", got)
	}
	other := starter(noon, OwnLimit{Name: "default", Burst: 6})
	other.Mode = "test"
	if got := burst(other); got != 6 {
		t.Errorf("burst is %d in the other mode, want an answer of its own, 6", got)
	}
}

func TestLimitsWithoutAnswer(t *testing.T) {
	t.Parallel()
	in := starter(noon)
	in.Merchant.Tier = "unheard"
	if _, err := must(t, fixture()).Limits(t.Context(), in); !errors.Is(err, ErrNoAnswer) {
		t.Errorf("an unknown tier gives %v, want ErrNoAnswer", err)
	}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	set := must(t, with(dataFile, `{"tiers": {"starter": {"rate_per_second": 1, "burst": 1}},
		"amounts": {"payment": {"min": 100, "max": 1000000}}}`))
	for name, c := range map[string]struct {
		change func(*AdmitInput)
		want   []string
	}{
		"ordinary":      {func(*AdmitInput) {}, nil},
		"no amount":     {func(in *AdmitInput) { in.Amount = nil }, nil},
		"too little":    {func(in *AdmitInput) { *in.Amount = 99 }, []string{"The amount must be at least 100."}},
		"too much":      {func(in *AdmitInput) { *in.Amount = 1_000_001 }, []string{"The amount must be at most 1000000."}},
		"other kind":    {func(in *AdmitInput) { *in.Amount = 99; in.Operation.Kind = "order" }, nil},
		"suspended":     {func(in *AdmitInput) { in.Merchant.Status = "suspended" }, []string{"This merchant is not active."}},
		"unknown tier":  {func(in *AdmitInput) { in.Merchant.Tier = "" }, []string{"This merchant's tier has no limits."}},
		"unknown mode":  {func(in *AdmitInput) { in.Mode = "" }, []string{"This mode is not known."}},
		"empty request": {func(in *AdmitInput) { *in = AdmitInput{} }, []string{"This merchant is not active.", "This merchant's tier has no limits.", "This mode is not known."}},
	} {
		in := request()
		c.change(&in)
		got, err := set.Admit(t.Context(), in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got.Allow != (c.want == nil) || !slices.Equal(got.Reasons, c.want) || got.Version != set.Version() {
			t.Errorf("%s: decision is %+v, want the reasons %q", name, got, c.want)
		}
	}
}

const limitsRule = "\nlimits := {\"rates\": [], \"quotas\": []}\n"

func TestRulesSeeTheWholeRequest(t *testing.T) {
	t.Parallel()
	set := must(t, rulesOnly(`package gerbang
`+limitsRule+`
admit := {"allow": true, "reasons": [
	input.now,
	input.clock.date,
	input.clock.weekday,
	sprintf("%d:%d at %d", [input.clock.hour, input.clock.minute, input.clock.unix]),
	input.fields.bank,
	sprintf("%d %v", [input.fields.count, input.fields.urgent]),
	input.merchant.labels.city,
	sprintf("%v", [input.merchant.limits]),
]} if input.fields.bank

else := {"allow": false, "reasons": []}
`))
	in := request()
	in.Now = noon.In(time.FixedZone("UTC+7", 7*60*60)).Add(6 * time.Hour)
	in.Fields = map[string]any{"bank": "BCA", "count": int64(3), "urgent": true}
	in.Merchant.Limits = []OwnLimit{{Name: "default", Burst: 4}, {Name: "old", Burst: 1, ExpiresAt: noon}}
	got, err := set.Admit(t.Context(), in)
	want := []string{
		"1:30 at 1772649000", "2026-03-04T18:30:00Z", "2026-03-05", "3 true", "BCA", "Bandung", "Thursday",
		`{"default": {"burst": 4}}`,
	}
	if err != nil || !slices.Equal(got.Reasons, want) {
		t.Errorf("rules saw %q, %v; want %q", got.Reasons, err, want)
	}
	in.Fields["count"] = make(chan int)
	if got, err := set.Admit(t.Context(), in); err == nil || got.Allow {
		t.Errorf("a field that is no value gives %+v, %v; want an error", got, err)
	}
}

// TestRulesSeeTheQuote: once there was one, also under the name that it had before.
func TestRulesSeeTheQuote(t *testing.T) {
	t.Parallel()
	for _, as := range []string{"quote", "told"} {
		set := must(t, rulesOnly(`package gerbang
`+limitsRule+`
admit := {"allow": count(refusals) == 0, "reasons": refusals}

refusals contains "Another name." if input.`+as+`.name_match == false
`))
		in := request()
		for name, c := range map[string]struct {
			quote map[string]any
			allow bool
		}{
			"nothing yet": {nil, true}, "the name": {map[string]any{"name_match": true}, true},
			"another": {map[string]any{"name_match": false}, false}, "nobody knows": {map[string]any{"name_match": nil}, true},
		} {
			in.Quote = c.quote
			if got, err := set.Admit(t.Context(), in); err != nil || got.Allow != c.allow {
				t.Errorf("input.%s, %s: %+v, %v", as, name, got, err)
			}
		}
	}
}

func TestNoAnswerMeansNo(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{
		"undefined":         `admit := {"allow": true, "reasons": []} if input.mode == "none"`,
		"without a reason":  `admit := {"allow": false, "reasons": []}`,
		"undefined in part": `admit := {"allow": true, "reasons": [input.fields.nowhere]}`,
	} {
		got, err := must(t, rulesOnly("package gerbang\n"+limitsRule+rule)).Admit(t.Context(), request())
		if err != nil || got.Allow || !slices.Equal(got.Reasons, []string{refusedSilently}) {
			t.Errorf("%s: decision is %+v, %v; want a refusal with a reason", name, got, err)
		}
	}
}

func TestAnErrorWhileDecidingRefuses(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{
		"a failing function": `admit := {"allow": true, "reasons": [to_number(input.fields.text)]} if input.fields.text
else := {"allow": true, "reasons": []}`,
		"two answers": `admit := {"allow": true, "reasons": []}
admit := {"allow": false, "reasons": []} if input.fields.text`,
		"a wrong shape": `admit := {"allow": "yes", "reasons": []} if input.fields.text
else := {"allow": true, "reasons": []}`,
		"reasons that are none": `admit := {"allow": true, "reasons": [1]} if input.fields.text
else := {"allow": true, "reasons": []}`,
	} {
		set := must(t, rulesOnly("package gerbang\n"+limitsRule+rule))
		in := request()
		in.Fields = map[string]any{"text": "many"}
		if got, err := set.Admit(t.Context(), in); err == nil || got.Allow {
			t.Errorf("%s: decision is %+v, %v; want an error and no", name, got, err)
		}
		in.Fields = nil
		if got, err := set.Admit(t.Context(), in); err != nil || !got.Allow {
			t.Errorf("%s: without the field it is %+v, %v; want yes", name, got, err)
		}
	}
}

func TestTheDeadlineEndsAnEvaluation(t *testing.T) {
	t.Parallel()
	set := must(t, rulesOnly("package gerbang\n"+limitsRule+`
admit := {"allow": true, "reasons": []} if count(pairs) > 0
pairs contains [a, b, c] if {
	input.fields.slow
	some a in numbers.range(1, 100000)
	some b in numbers.range(1, 100000)
	some c in numbers.range(1, 100000)
	a + b + c < 0
}
`))
	in := request()
	in.Fields = map[string]any{"slow": true}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if got, err := set.Admit(ctx, in); !errors.Is(err, context.DeadlineExceeded) || got.Allow {
		t.Errorf("decision is %+v, %v; want the deadline's error", got, err)
	}
}

func TestManyAskAtOnce(t *testing.T) {
	t.Parallel()
	set := must(t, fixture())
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 50 {
				in := starter(noon)
				in.Merchant.Version = int64(i)
				if limits, err := set.Limits(t.Context(), in); err != nil || limits.Rates[0].Burst != 10 {
					t.Errorf("limits are %+v, %v", limits, err)
				}
				if got, err := set.Admit(t.Context(), request()); err != nil || !got.Allow {
					t.Errorf("decision is %+v, %v", got, err)
				}
			}
		})
	}
	group.Wait()
}

func TestCacheForgetsWhatNobodyAsksFor(t *testing.T) {
	t.Parallel()
	c := newCache[int, int](shards * 10)
	for i := range 10_000 {
		c.put(i, i)
		if got, ok := c.get(0); !ok || got != 0 {
			t.Fatalf("what is asked for all the time is gone after %d", i)
		}
	}
	kept := 0
	for i := range c.parts {
		kept += len(c.parts[i].young) + len(c.parts[i].old)
	}
	if kept > shards*20 {
		t.Errorf("%d entries are kept, want at most %d", kept, shards*20)
	}
}
