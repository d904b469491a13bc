package policy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
	"github.com/open-policy-agent/opa/v1/tester"
)

// must compiles a source that has to be right.
func must(tb testing.TB, source Source) *Set {
	tb.Helper()
	set, err := Compile(tb.Context(), source)
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

// with is the fixture with one file replaced.
func with(name, content string) Source {
	source := fixture()
	source[name] = []byte(content)
	return source
}

// fixtureData is data of the shipped shape that an edit of the shipped data.json does not change.
const fixtureData = `{
	"tiers": {
		"starter": {"rate_per_second": 5, "burst": 10, "quotas": {"wallet2": {"limit": 1000}}},
		"growth": {"rate_per_second": 50, "burst": 100, "quotas": {"wallet2": {"limit": 100000}}},
		"scale": {"rate_per_second": 500, "burst": 1000, "quotas": {"wallet2": {"limit": 10000000}}}
	},
	"quotas": {
		"wallet2": {"operations": ["/wallet2/create", "/wallet2/status"]},
		"name_inquiry": {"operations": ["/wallet1/inquiry", "/transfer/inquiry"], "limit": 10000}
	}
}`

// fixture is the default rules with data that tests may rely on.
func fixture() Source {
	source := Default()
	source[dataFile] = []byte(fixtureData)
	return source
}

// rulesOnly is a set of one file of rules and the least of data.
func rulesOnly(rules string) Source {
	return Source{
		"own.rego": []byte(rules),
		dataFile:   []byte(`{"tiers": {"bronze": {"rate_per_second": 1, "burst": 1}}}`),
	}
}

func TestDefaultIsFormatted(t *testing.T) {
	t.Parallel()
	for name, content := range Default() {
		if name == dataFile {
			continue
		}
		formatted, err := format.Source(name, content)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !bytes.Equal(content, formatted) {
			t.Errorf("%s is not as `opa fmt` writes it; it should be:\n%s", name, formatted)
		}
	}
}

// TestDefaultIsCovered runs the shipped tests over an empty store: they pass without any data.json, and together they
// evaluate every line of the rules.
func TestDefaultIsCovered(t *testing.T) {
	t.Parallel()
	modules, _, problems := parse(Default())
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	store := inmem.New()
	txn, err := store.NewTransaction(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	coverage := cover.New()
	results, err := tester.NewRunner().
		SetCompiler(compiler(t.Context(), store, txn)).
		SetModules(modules).
		SetStore(store).
		SetCoverageQueryTracer(coverage).
		RunTests(t.Context(), txn)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for result := range results {
		if ran++; !result.Pass() {
			t.Errorf("%s", result)
		}
	}
	if ran < 15 {
		t.Errorf("only %d tests ran", ran)
	}
	report := coverage.Report(withoutTests(modules))
	for name := range withoutTests(modules) {
		file := report.Files[name]
		if file == nil || file.Coverage != 100 || len(file.NotCovered) > 0 {
			t.Errorf("%s: tests must reach all of it: %+v", name, file)
		}
	}
}

func TestAnyDataPassesTheShippedTests(t *testing.T) {
	t.Parallel()
	for _, data := range []string{
		`{"tiers": {"only": {"rate_per_second": 0.01, "burst": 1}}}`,
		`{"tiers": {"bronze": {"rate_per_second": 999, "burst": 2, "quotas": {"coins": {"limit": 0}}}},
		  "amounts": {"transfer": {"max": 1}, "/bank/transfer": {"max": 1}, "/names/find": {"min": 99}}}`,
		`{"tiers": {"gold": {"rate_per_second": 1, "burst": 1}},
		  "quotas": {"other": {"operations": ["/coins/create", "/names/find"], "limit": 1}}, "custom": {"metals": [1, 2]}}`,
	} {
		if _, err := Compile(t.Context(), with(dataFile, data)); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
}

// TestTiersAndQuotas asks the default rules about every tier and about operations that quotas count and do not count.
func TestTiersAndQuotas(t *testing.T) {
	t.Parallel()
	set := must(t, fixture())
	for tier, want := range map[string]struct {
		rate    Rate
		wallet2 int64
	}{
		"starter": {Rate{"default", 5, 10, PerMerchant}, 1_000},
		"growth":  {Rate{"default", 50, 100, PerMerchant}, 100_000},
		"scale":   {Rate{"default", 500, 1_000, PerMerchant}, 10_000_000},
	} {
		for path, quotas := range map[string][]Quota{
			"/wallet2/create":   {{"wallet2", want.wallet2}},
			"/wallet2/status":   {{"wallet2", want.wallet2}},
			"/wallet1/inquiry":  {{"name_inquiry", 10_000}},
			"/transfer/inquiry": {{"name_inquiry", 10_000}},
			"/payments/create":  nil,
		} {
			limits, err := set.Limits(t.Context(), LimitsInput{
				Merchant:  Merchant{ID: "merchant of " + tier, Tier: tier, Status: "active"},
				Mode:      "live",
				Operation: Operation{Path: path, Kind: "query", Provider: strings.Split(path, "/")[1]},
			})
			if err != nil {
				t.Fatal(err)
			}
			assertLimits(t, limits, Limits{Rates: []Rate{want.rate}, Quotas: quotas, RepeatWithin: DefaultRepeat, Version: set.Version()})
		}
	}
}
