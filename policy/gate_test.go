package policy

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// someFacts are those of a gateway with four operations, and merchants on two of the tiers of fixtureData.
func someFacts() Facts {
	text := func(schema string) map[string]json.RawMessage {
		return map[string]json.RawMessage{"bank": json.RawMessage(schema)}
	}
	return Facts{
		Merchants: map[string]int{"starter": 12, "growth": 3},
		Operations: []Offered{
			{Operation: Operation{Path: "/wallet2/create", Kind: "collection", Provider: "wallet2"}, Amount: true},
			{Operation: Operation{Path: "/wallet2/status", Kind: "query", Provider: "wallet2"}},
			{Operation: Operation{Path: "/wallet1/inquiry", Kind: "query", Provider: "wallet1"}},
			{Operation: Operation{Path: "/transfer/inquiry", Kind: "query", Provider: "wallet1"}, Fields: text(`{"type": "array", "items": {"type": "string"}}`)},
			{
				Operation: Operation{Path: "/bank/transfer", Kind: "transfer", Provider: "bank"}, Amount: true, Quote: true,
				Fields: text(`{"type": "string", "maxLength": 20}`),
			},
		},
		SKUs: map[string]bool{"pulsa5": true},
	}
}

// found asks the gate, and tells what it found in short.
func found(t *testing.T, source Source, facts Facts) []string {
	t.Helper()
	_, findings, err := Gate(t.Context(), source, facts)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, f := range findings {
		told = append(told, f.String())
	}
	return told
}

// rule is the default set with one rule of admission more. It stands in line 3 of own.rego.
func rule(text string) Source {
	return with("own.rego", "package gerbang\n\n"+text+"\n")
}

// TestSlowToCompile: what no replica would have the time for is refused, whatever its author forces.
func TestSlowToCompile(t *testing.T) {
	t.Parallel()
	set, findings, err := gateWithin(t.Context(), fixture(), someFacts(), time.Nanosecond)
	if err != nil || set != nil || !Refused(findings, true) || !strings.Contains(findings[0].Reason, "do not compile within 1ns") {
		t.Errorf("%v, %v, %v", set, findings, err)
	}
}

func TestTheDefaultSetPassesTheGate(t *testing.T) {
	t.Parallel()
	if told := found(t, fixture(), someFacts()); told != nil {
		t.Errorf("findings are %q", told)
	}
	if told := found(t, fixture(), Facts{}); told != nil {
		t.Errorf("findings without facts are %q", told)
	}
}

// TestGate: each check finds what it is for, and tells file, line, reason and how many merchants it is about.
func TestGate(t *testing.T) {
	t.Parallel()
	edit := func(old, new string) Source {
		if !strings.Contains(fixtureData, old) {
			t.Fatalf("the fixture has no %s", old)
		}
		return with(dataFile, strings.Replace(fixtureData, old, new, 1))
	}
	for name, c := range map[string]struct {
		source Source
		want   string // a part of what one finding says
		refuse bool
		force  bool // whether force helps
	}{
		"broken Rego":       {rule("x := {"), "own.rego:4:1: compile: ", true, false},
		"broken data":       {edit(`"burst": 10,`, `"burst": "10",`), `data.json:3:46: compile: "burst" must be a whole number from 1 to 10000000 (15 merchants)`, true, false},
		"a failing test":    {with("own_test.rego", "package own_test\n\ntest_it if 1 == 2\n"), "own_test.rego:3:1: tests: test_it fails (15 merchants)", true, false},
		"the network":       {rule(`refusals contains "x" if http.send({"method": "get", "url": "http://localhost"}).status_code == 500`), "own.rego:3:26: builtins: http.send is not for policies", true, false},
		"a removed tier":    {edit(`"starter": {"rate`, `"statrer": {"rate`), `data.json:2:2: meaning: merchants are on the tier "starter", which is not in "tiers"; keep it, or move them to another tier first (12 merchants)`, true, true},
		"a misspelt path":   {edit(`"/wallet2/create"`, `"/walet2/create"`), `data.json:8:30: meaning: no operation has the path "/walet2/create"; is it "/wallet2/create"? (15 merchants)`, true, true},
		"an empty quota":    {edit(`["/wallet2/create", "/wallet2/status"]`, `[]`), `data.json:8:3: meaning: the quota "wallet2" counts no operation (15 merchants)`, true, true},
		"a misspelt bound":  {with(dataFile, fixtureData[:len(fixtureData)-1]+`, "amounts": {"/bank/transfr": {"max": 5}}}`), `no operation has the path "/bank/transfr"; is it "/bank/transfer"?`, true, true},
		"a misspelt kind":   {with(dataFile, fixtureData[:len(fixtureData)-1]+`, "amounts": {"transfers": {"max": 5}}}`), `"transfers" is neither a path nor a kind`, true, true},
		"an answer missing": {rulesOnly("package gerbang\n" + ratedRule + "\nadmit := {\"allow\": true, \"reasons\": []} if input.operation.kind != \"transfer\"\n"), "own.rego:5:1: answer: data.gerbang.admit has no answer, asked about a generated request of /bank/transfer", true, false},
		"a wrong answer":    {rulesOnly("package gerbang\n" + ratedRule + "\nadmit := {\"allow\": count(input.fields) != 1, \"reasons\": why}\n\nwhy := [\"\"] if input.operation.kind != \"transfer\"\n\nelse := [1]\n"), `own.rego:5:1: answer: policy: the answer of data.gerbang.admit: "reasons": a reason must be a string, asked about a generated request of /bank/transfer`, true, false},
		"an error":          {rule(`refusals contains "x" if to_number(input.fields.bank) == 5`), "own.rego:3:26: answer: data.gerbang.admit: to_number: operand 1 must be one of {null, boolean, number, string} but got array, asked about a generated request of /transfer/inquiry (15 merchants)", true, false},
		"a slow rule":       {rule("refusals contains \"slow\" if {\n\tsome a in input.fields.bank\n\tsome b in input.fields.bank\n\ta != b\n}"), "own.rego:5:1: cost: the rule gerbang.refusals takes more than 20000 evaluation steps, asked about a generated request of /transfer/inquiry (15 merchants)", true, false},
		"slow for one bank": {rule("refusals contains \"slow\" if {\n\tinput.fields.bank == \"BCA\"\n\tsome i in numbers.range(1, 30000)\n\ti < 0\n}"), "cost: the rule gerbang.refusals takes more than 20000 evaluation steps, asked about a generated request of /transfer/inquiry and 1 more (15 merchants)", true, false},
		"a strange field":   {rule(`refusals contains "x" if input.fields.bnak == "BCA"`), `own.rego:3:26: warning: meaning: no operation offers the field "bnak"`, false, false},
		"a strange path":    {rule(`refusals contains "x" if input.operation.path == "/bank/trasfer"`), `own.rego:3:50: warning: meaning: no operation has the path "/bank/trasfer"; is it "/bank/transfer"?`, false, false},
		"a strange product": {with(dataFile, fixtureData[:len(fixtureData)-1]+`, "markups": {"products": {"pulsa5": 1, "plusa5": 2}}}`), `warning: meaning: no product is called "plusa5"`, false, false},
		"an unsized quota":  {edit(`"limit": 10000}`, `"limit": 10000}, "own": {"operations": ["/bank/transfer"]}`), `warning: meaning: the quota "own" has no limit here and in no tier`, false, false},
	} {
		_, findings, err := Gate(t.Context(), c.source, someFacts())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		said := func(f Finding) bool { return strings.Contains(f.String(), c.want) }
		if c.want != "" && !slices.ContainsFunc(findings, said) {
			t.Errorf("%s: findings are %q, want one with %q", name, findings, c.want)
		}
		if Refused(findings, false) != c.refuse || Refused(findings, true) != (c.refuse && !c.force) {
			t.Errorf("%s: refused %v, with force %v, want %v and %v: %q", name, Refused(findings, false), Refused(findings, true), c.refuse, c.refuse && !c.force, findings)
		}
	}
}

// TestWhatMustBeNamed: an operation that an approval alone has brought is refused to all until the set has its path.
func TestWhatMustBeNamed(t *testing.T) {
	t.Parallel()
	facts := someFacts()
	facts.Operations[4].MustBeNamed = true
	want := "data.json:1:1: warning: meaning: /bank/transfer is refused to every merchant: an approval alone has brought it, and neither data nor rules name its path (15 merchants)"
	if told := found(t, fixture(), facts); !slices.Equal(told, []string{want}) {
		t.Errorf("findings are %q", told)
	}
	if told := found(t, with(dataFile, fixtureData[:len(fixtureData)-1]+`, "amounts": {"/bank/transfer": {"max": 5}}}`), facts); told != nil {
		t.Errorf("findings once it is named are %q", told)
	}
}

// TestMeaning: what passed the gate once is held against the merchants and operations of now. It asks for nothing that is slow.
func TestMeaning(t *testing.T) {
	t.Parallel()
	source := rule("refusals contains \"slow\" if {\n\tinput.operation.kind == \"transfer\"\n\tsome i in numbers.range(1, 30000)\n\ti < 0\n}")
	source["own_test.rego"] = []byte("package own_test\n\ntest_it if 1 == 2\n")
	facts := someFacts()
	facts.Merchants["gold"] = 4
	facts.Operations = facts.Operations[1:]
	findings, err := Meaning(t.Context(), source, facts)
	var told []string
	for _, f := range findings {
		told = append(told, f.String())
	}
	want := []string{
		`data.json:2:2: meaning: merchants are on the tier "gold", which is not in "tiers"; keep it, or move them to another tier first (4 merchants)`,
		`data.json:8:30: meaning: no operation has the path "/wallet2/create" (19 merchants)`,
	}
	if err != nil || !slices.Equal(told, want) {
		t.Errorf("findings are %q, %v", told, err)
	}
}

// TestWithoutAGateway: a directory alone is asked about each kind.
func TestWithoutAGateway(t *testing.T) {
	t.Parallel()
	source := rule("refusals contains \"slow\" if {\n\tinput.operation.kind == \"transfer\"\n\tinput.fields.bank == \"BCA\"\n\tsome i in numbers.range(1, 30000)\n\ti < 0\n}")
	if told := found(t, source, Facts{}); len(told) != 1 || !strings.HasSuffix(told[0], "asked about a generated request of /any and 1 more") {
		t.Errorf("findings are %q", told)
	}
}

// ratedRule answers limits with a rate.
const ratedRule = "\nlimits := {\"rates\": [{\"name\": \"default\", \"rate_per_second\": 1, \"burst\": 1}], \"quotas\": []}\n"

// TestNoRate: an operation without a rate is refused only for a tier that merchants are on.
func TestNoRate(t *testing.T) {
	t.Parallel()
	source := rulesOnly("package gerbang\n" + limitsRule + "\nadmit := {\"allow\": true, \"reasons\": []}\n")
	facts := someFacts()
	facts.Operations = slices.DeleteFunc(facts.Operations, func(o Offered) bool { return o.Kind == "transfer" }) // whose limits don't show
	facts.Merchants = map[string]int{"bronze": 7}
	unread := `data.json:1:2: warning: meaning: no rule reads "tiers"`
	want := `own.rego:3:1: meaning: merchants of the tier "bronze" have no rate for /wallet2/create, /wallet2/status, /wallet1/inquiry and 1 more operations (7 merchants)`
	if told := found(t, source, facts); !slices.Equal(told, []string{unread + " (7 merchants)", want}) {
		t.Errorf("findings are %q", told)
	}
	facts.Merchants = nil
	if told := found(t, source, facts); !slices.Equal(told, []string{unread}) {
		t.Errorf("findings without a merchant are %q", told)
	}
}

// TestWhatIsInForceIsOnlyWarnedAbout: a version is not refused for what it leaves as it was.
func TestWhatIsInForceIsOnlyWarnedAbout(t *testing.T) {
	t.Parallel()
	facts := someFacts()
	facts.Operations = slices.DeleteFunc(facts.Operations, func(o Offered) bool { return o.Provider == "wallet2" })
	if _, findings, err := Gate(t.Context(), fixture(), facts); err != nil || !Refused(findings, false) {
		t.Errorf("two paths that no operation has pass: %q, %v", findings, err)
	}
	facts.Active = must(t, fixture())
	set, findings, err := Gate(t.Context(), with("own.rego", "package own\n"), facts)
	if err != nil || set == nil || Refused(findings, false) || len(findings) != 3 {
		t.Errorf("what the version in force has is refused: %q, %v", findings, err)
	}
	for _, f := range findings {
		if !f.Warning || !strings.HasSuffix(f.Reason, "; the version in force has this too") {
			t.Errorf("%q does not tell that it is not new", f)
		}
	}
}

// TestARecordedRequestIsAsked: what the generated ones do not reach.
func TestARecordedRequestIsAsked(t *testing.T) {
	t.Parallel()
	source := rule("refusals contains \"slow\" if {\n\tstartswith(input.fields.bank, \"BC\")\n\tsome i in numbers.range(1, 30000)\n\ti < 0\n}")
	facts := someFacts()
	if told := found(t, source, facts); told != nil {
		t.Fatalf("findings are %q: the test needs a rule that generated requests pass", told)
	}
	facts.Recorded = []AdmitInput{{
		Merchant: Merchant{ID: "m1", Tier: "growth", Status: "active"}, Mode: "live", Operation: facts.Operations[4].Operation,
		Fields: map[string]any{"bank": "BCA"},
	}}
	want := "cost: the rule gerbang.refusals takes more than 20000 evaluation steps, asked about a recorded request of /bank/transfer (3 merchants)"
	if told := found(t, source, facts); len(told) != 1 || !strings.HasSuffix(told[0], want) {
		t.Errorf("findings are %q", told)
	}
}

func TestUnknownMerchantsAreWarnedAbout(t *testing.T) {
	t.Parallel()
	const here, nowhere = "mer_11111111-2222-4333-8444-555555555555", "mer_99999999-2222-4333-8444-555555555555"
	source := rule("refusals contains \"x\" if {\n\tinput.merchant.id in {\"" + here + "\",\n\t\t\"" + nowhere + "\"}\n}")
	source["own_test.rego"] = []byte("package own_test\n\n# mer_00000000-2222-4333-8444-555555555555\n")
	ids := Mentioned(source)
	if !slices.Equal(ids, []string{here, nowhere}) {
		t.Fatalf("mentioned are %q", ids)
	}
	facts := someFacts()
	facts.KnownMerchants = map[string]bool{here: true, nowhere: false}
	if told := found(t, source, facts); !slices.Equal(told, []string{"own.rego:5:4: warning: meaning: there is no merchant " + nowhere}) {
		t.Errorf("findings are %q", told)
	}
}

// TestARuleThatNeverEnds is cut, and told with its name, already where it is compiled: no replica waits for it.
func TestARuleThatNeverEnds(t *testing.T) {
	t.Parallel()
	source := rulesOnly(strings.ReplaceAll("package gerbang\n"+ratedRule+endless, "/endless", "/probe"))
	_, findings, err := Gate(t.Context(), source, Facts{})
	if err != nil || len(findings) != 1 || findings[0].Check != CheckCost || findings[0].File != "own.rego" || !Refused(findings, false) ||
		!strings.HasPrefix(findings[0].Reason, "the rule gerbang.never ") {
		t.Errorf("findings are %q, %v; want that gerbang.never costs too much", findings, err)
	}
	set := must(t, rulesOnly("package gerbang\n"+ratedRule+endless))
	in := request()
	in.Operation.Path = "/endless"
	// A busy machine may spend the whole of a short time elsewhere.
	for _, most := range []effort{{time: 20 * time.Millisecond}, {steps: 200_000, time: ofRequest.time}} {
		for ; ; most.time *= 5 {
			want := "the rule gerbang.never does not end within " + most.time.String()
			if most.steps != 0 {
				want = "the rule gerbang.never takes more than 200000 evaluation steps"
			}
			got := set.try(t.Context(), in, most)[1]
			if got.fault != nil && got.check == CheckCost && got.fault.File == "own.rego" && got.fault.Message == want {
				break
			}
			if most.time > time.Minute {
				t.Fatalf("%+v: %+v, want %q", most, got, want)
			}
		}
	}
}

// TestTimeOnlyWarns: a clock that runs fast stands for a slow machine.
func TestTimeOnlyWarns(t *testing.T) {
	t.Parallel()
	facts, clock := someFacts(), noon
	facts.Now = func() time.Time { clock = clock.Add(slow + 1); return clock }
	_, findings, err := Gate(t.Context(), fixture(), facts)
	if err != nil || Refused(findings, false) || len(findings) != 1 ||
		!strings.HasSuffix(findings[0].String(), "asked about a generated request of /wallet2/create and 4 more (15 merchants)") {
		t.Errorf("findings are %q, %v; want one warning", findings, err)
	}
}

func TestACancelledGateIsNotAFinding(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, findings, err := Gate(ctx, fixture(), someFacts()); !errors.Is(err, context.Canceled) || findings != nil {
		t.Errorf("a cancelled gate gives %v, %v", findings, err)
	}
}

// TestStepsAreCounted: the default set stays far below what a rule may take, and the same request always takes the same.
func TestStepsAreCounted(t *testing.T) {
	t.Parallel()
	set := must(t, fixture())
	first, again := set.try(t.Context(), request(), ofRequest), set.try(t.Context(), request(), ofRequest)
	for i := range first {
		if first[i].steps == 0 || first[i].steps > maxSteps/20 || first[i].steps != again[i].steps {
			t.Errorf("question %d takes %d steps, then %d", i, first[i].steps, again[i].steps)
		}
		t.Logf("question %d takes %d steps", i, first[i].steps)
	}
}

func BenchmarkGate(b *testing.B) {
	facts := someFacts()
	for b.Loop() {
		if _, _, err := Gate(b.Context(), fixture(), facts); err != nil {
			b.Fatal(err)
		}
	}
}
