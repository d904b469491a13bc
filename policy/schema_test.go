package policy

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// TestTheSchemaIsTheInputs: a request with everything has exactly the fields of the document, and OPA takes it as its own
// commands would.
func TestTheSchemaIsTheInputs(t *testing.T) {
	t.Parallel()
	content, err := InputSchema()
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(content, &document); err != nil {
		t.Fatal(err)
	}
	set, in, limit := must(t, rulesOnly("package gerbang\n"+limitsRule+"\nadmit := {\"allow\": true, \"reasons\": []} if input\n")), request(), int64(1)
	flow := Outflow{Amount: &limit, Count: &limit}
	in.Merchant.Limits = []OwnLimit{
		{Name: "all", RatePerSecond: 1, Burst: 1, Limit: &limit}, {Markup: &limit},
		{Payout: &Payout{Day: flow, DestinationDay: flow, RepeatWithin: new(time.Minute)}},
	}
	in.Fields, in.Quote = map[string]any{"a": "b"}, map[string]any{"fee": int64(1)}
	in.Parties = Parties{Destination: "014/2460888509", Product: "pulsa10", Payer: "ayu@mail.example"}
	term, err := set.admitTerm(&in)
	if err != nil {
		t.Fatal(err)
	}
	input, err := ast.JSON(term.Value)
	if err != nil {
		t.Fatal(err)
	}
	agree(t, "input", document, input)

	schemas := ast.NewSchemaSet()
	schemas.Put(ast.SchemaRootRef, document)
	for rule, right := range map[string]bool{"input.merchant.tier": true, "input.merchant.teir": false, "input.quote.fee": true} {
		module := ast.MustParseModule("package own\n\nx := " + rule + "\n")
		c := ast.NewCompiler().WithSchemas(schemas)
		if c.Compile(map[string]*ast.Module{"own.rego": module}); c.Failed() == right {
			t.Errorf("%s: %v", rule, c.Errors)
		}
	}
}

// agree holds the fields of a value against those of a schema.
func agree(t *testing.T, where string, schema map[string]any, value any) {
	t.Helper()
	object, isObject := value.(map[string]any)
	if kind := reflect.ValueOf(value).Kind(); isObject != (schema["type"] == "object") || (schema["type"] == "string") != (kind == reflect.String && !strings.Contains(reflect.TypeOf(value).String(), "Number")) {
		t.Errorf("%s is %v and %T", where, schema["type"], value)
	}
	if schema["description"] == nil {
		t.Errorf("%s is not described", where)
	}
	properties, _ := schema["properties"].(map[string]any)
	if properties == nil {
		if of, ok := schema["additionalProperties"].(map[string]any); ok {
			for name, value := range object {
				agree(t, where+"."+name, of, value)
			}
		}
		return
	}
	var names, declared []string
	for name := range object {
		names = append(names, name)
	}
	for name, property := range properties {
		declared = append(declared, name)
		agree(t, where+"."+name, property.(map[string]any), object[name])
	}
	slices.Sort(names)
	slices.Sort(declared)
	if !slices.Equal(names, declared) {
		t.Errorf("%s has the fields %v, its schema %v", where, names, declared)
	}
}
