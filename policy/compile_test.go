package policy

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
)

// problems compiles a source that has to be refused and lists why.
func problems(t *testing.T, source Source) []Problem {
	t.Helper()
	set, err := Compile(t.Context(), source)
	var faults *Error
	if !errors.As(err, &faults) || set != nil || len(faults.Problems) == 0 {
		t.Fatalf("a wrong set gives %v, %v; want no set and an *Error: %s", set, err, source["own.rego"])
	}
	return faults.Problems
}

func TestWhatIsWrongIsToldWithItsPlace(t *testing.T) {
	t.Parallel()
	answers := "limits := {\"rates\": [], \"quotas\": []}\n\nadmit := {\"allow\": false, \"reasons\": []}\n"
	for name, c := range map[string]struct {
		source Source
		want   Problem // Message is a part of it
	}{
		"syntax":          {rulesOnly("package gerbang\n\nadmit := {\n"), Problem{"own.rego", 4, 0, ""}},
		"unused variable": {rulesOnly("package gerbang\n\n" + answers + "f(x) := 1\n"), Problem{"own.rego", 6, 1, "x"}},
		"undefined rule":  {rulesOnly("package gerbang\n\n" + answers + "x if nowhere\n"), Problem{"own.rego", 6, 6, "nowhere"}},
		"misspelt input":  {rulesOnly("package gerbang\n\n" + answers + "x if input.merchant.teir == \"a\"\n"), Problem{"own.rego", 6, 6, "teir"}},
		"a string as amount": {rulesOnly("package gerbang\n\n" + answers + "x if input.amount == \"a\"\n"),
			Problem{"own.rego", 6, 6, "match error"}},
		"no limits": {rulesOnly("package gerbang\n\nadmit := {\"allow\": true, \"reasons\": []}\n"), Problem{"gerbang.limits", 0, 0, "data.gerbang.limits"}},
		"no admit":  {rulesOnly("package gerbang\n\nlimits := {\"rates\": [], \"quotas\": []}\n"), Problem{"gerbang.admit", 0, 0, "data.gerbang.admit"}},
		"limits by amount": {rulesOnly("package gerbang\n\nlimits := {\"rates\": [], \"quotas\": []} if input.amount > 5\n\nadmit := {\"allow\": true, \"reasons\": []}\n"),
			Problem{"own.rego", 3, 1, "input.amount"}},
		"limits by anything": {rulesOnly("package gerbang\n\nlimits := {\"rates\": [], \"quotas\": [input]}\n\nadmit := {\"allow\": true, \"reasons\": []}\n"),
			Problem{"own.rego", 3, 1, "depends on input;"}},
		"admit is no object":  {rulesOnly("package gerbang\n\nlimits := {\"rates\": [], \"quotas\": []}\n\nadmit := true\n"), Problem{"own.rego", 5, 1, "an object must be"}},
		"limits is no object": {rulesOnly("package gerbang\n\nlimits := {\"rates\": 5, \"quotas\": []}\n\nadmit := {\"allow\": true, \"reasons\": []}\n"), Problem{"own.rego", 3, 1, "a list or a set"}},
		"a failing test":      {with("own_test.rego", "package own_test\n\nimport data.gerbang\n\ntest_it if gerbang.admit.allow with input as {}\n"), Problem{"own_test.rego", 5, 1, "test_it fails"}},
		"a test that breaks":  {with("own_test.rego", "package own_test\n\ntest_it if to_number(\"many\") > 1\n"), Problem{"own_test.rego", 3, 1, "test_it can't be run"}},
		"a test that does not compile": {with("own_test.rego", "package own_test\n\ntest_it if nowhere\n"),
			Problem{"own_test.rego", 3, 12, "nowhere"}},
		"rules lean on fixtures": {with("own.rego", "package gerbang\n\nimport data.gerbang_test\n\nx if startswith(gerbang_test.some_request, 1)\n"), Problem{"own.rego", 5, 0, ""}},
		"rules hide the data":    {with("own.rego", "package tiers\n\nstarter := 1\n"), Problem{"own.rego", 3, 1, "conflict"}},
		"a directory":            {with("../own.rego", "package own\n"), Problem{"../own.rego", 0, 0, "in no directory"}},
		"a foreign file":         {with("notes.txt", "hello"), Problem{"notes.txt", 0, 0, "a set has only"}},
		"wrong data":             {with(dataFile, "{\n  \"tires\": {}\n}"), Problem{dataFile, 2, 3, `"tires" is not known`}},
	} {
		got := problems(t, c.source)
		found := slices.ContainsFunc(got, func(p Problem) bool {
			return p.File == c.want.File && p.Line == c.want.Line && (c.want.Col == 0 || p.Col == c.want.Col) &&
				strings.Contains(p.Message, c.want.Message)
		})
		if !found {
			t.Errorf("%s: problems are %v, want one like %v", name, got, c.want)
		}
	}
}

func TestNothingOutsideIsWithinReach(t *testing.T) {
	t.Parallel()
	for _, call := range []string{
		`http.send({"method": "get", "url": "http://localhost"})`,
		`net.lookup_ip_addr("localhost")`,
		`net.cidr_contains("10.0.0.0/8", "10.0.0.1")`,
		`time.now_ns()`,
		`rand.intn("a", 2)`,
		`uuid.rfc4122("a")`,
		`opa.runtime()`,
		`io.jwt.decode("a")`,
		`io.jwt.decode_verify("a", {})`,
		`providers.aws.sign_req({}, {}, 1)`,
		`rego.parse_module("a", "package a")`,
		`json.match_schema({}, {})`,
		`bits.lsh(1, 20000000000)`,
		`graph.reachable_paths({}, {})`,
		`strings.render_template("", {})`,
	} {
		for file, place := range map[string]int{"own.rego": 3, "own_test.rego": 3} {
			got := problems(t, with(file, "package own\n\nx := "+call+"\n"))
			if got[0].File != file || got[0].Line != place || !strings.Contains(got[0].Message, "undefined function") {
				t.Errorf("%s in %s: %v; want an undefined function at line %d", call, file, got, place)
			}
		}
	}
}

func TestEveryProblemOfAParseIsTold(t *testing.T) {
	t.Parallel()
	source := with(dataFile, `{"tiers": 1}`)
	source["b.rego"] = []byte("package b\n\nx :=\n")
	source["a.rego"] = []byte("package a\n\nx :=\n")
	delete(source, "admit_test.rego")
	got := problems(t, source)
	files := []string{}
	for _, p := range got {
		files = append(files, p.File)
	}
	if !slices.Equal(slices.Compact(files), []string{"a.rego", "b.rego", dataFile}) {
		t.Errorf("problems are %v, want some for each file in order", got)
	}
	text := (&Error{Problems: got}).Error()
	if !strings.Contains(text, "a.rego:4:1: ") || !strings.Contains(text, "data.json:1:11: ") {
		t.Errorf("the error reads %q", text)
	}
}

func TestASetNeedsData(t *testing.T) {
	t.Parallel()
	source := Default()
	delete(source, dataFile)
	if got := problems(t, source); got[0].String() != "data.json: this file is missing" {
		t.Errorf("problems are %v", got)
	}
}

func TestOwnTestsMaySeeTheData(t *testing.T) {
	t.Parallel()
	source := fixture()
	source["own_test.rego"] = []byte("package own_test\n\ntest_it if data.tiers.starter.burst == 10\n")
	must(t, source)
}

func TestACancelledCompileIsNotAProblemOfTheSet(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compile(ctx, Default()); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled compile gives %v, want context.Canceled", err)
	}
}
