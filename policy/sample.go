package policy

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// How great a generated request is. Where a schema bounds a list, its bound counts up to these; a body has 64 KiB.
const (
	maxSampleText  = 4_096
	maxSampleList  = 1_000
	maxSampleDepth = 6
	maxSampleBody  = 64 << 10
	sampleLabels   = 50
)

// greatAmount is the largest amount that the gateway reads, in rupiah.
const greatAmount = int64(1_000_000_000_000)

// sampleZone has an offset, so that rules see a clock that differs from UTC.
var sampleZone = time.FixedZone("WIB", 7*60*60)

// sampleDay is a Saturday. It stands for no particular one.
var sampleDay = time.Date(2026, 1, 3, 0, 0, 0, 0, sampleZone)

// samples are requests of an operation by merchants of a tier: a small one and a great one; where the rules read them, a
// great one at the other end of the day and one with a quote; and one for each value that the rules compare a field with.
// The first has a merchant without limits of its own, all others one with many.
func (g *gate) samples(op Offered, tier string, values map[string][]string) []AdmitInput {
	plain := Merchant{ID: "mer_sample", Tier: tier, Status: "active"}
	laden := plain
	laden.Labels = map[string]string{}
	for i := range sampleLabels {
		laden.Labels[fmt.Sprintf("label_%d", i)] = strings.Repeat("x", 100)
	}
	one := int64(1)
	laden.Limits = append(laden.Limits, OwnLimit{Name: "default", RatePerSecond: 1, Burst: 1})
	quotas, _ := g.set.data["quotas"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		laden.Limits = append(laden.Limits, OwnLimit{Name: name, Limit: &one})
	}
	laden.Limits = append(laden.Limits, sampleOwn(greatAmount, MaxMarkup, MaxRepeat)...)
	small := AdmitInput{Merchant: plain, Mode: "live", Operation: op.Operation, Now: sampleDay.Add(12 * time.Hour)}
	great := AdmitInput{Merchant: laden, Mode: "test", Operation: op.Operation, Now: sampleDay.Add(23*time.Hour + 59*time.Minute)}
	if op.Amount {
		small.Amount, great.Amount = new(int64(1)), new(greatAmount)
	}
	small.Fields, great.Fields = op.sampleFields(false), op.sampleFields(true)
	samples := []AdmitInput{small, great}
	if reads := g.set.reads; reads.now || reads.clock {
		early := great
		early.Mode, early.Now = "live", sampleDay.Add(26*time.Hour)
		samples = append(samples, early)
	}
	if op.Quote && g.set.reads.quote {
		samples = append(samples, great.Quoted(map[string]any{"price": greatAmount, "fee": greatAmount, "name_match": false}))
	}
	for name := range op.Fields {
		for _, value := range values[name] {
			told := great
			told.Fields = maps.Clone(great.Fields)
			told.Fields[name] = value
			samples = append(samples, told)
		}
	}
	return samples
}

// sampleOwn are a merchant's own markup and payout limits, each as great as is said.
func sampleOwn(most, markup int64, repeat time.Duration) []OwnLimit {
	flow := Outflow{Amount: &most, Count: &most}
	return []OwnLimit{
		{Name: "markup", Markup: &markup},
		{Name: "payout", Payout: &Payout{Day: flow, DestinationDay: flow, RepeatWithin: &repeat}},
	}
}

// sampleFields are an operation's fields: as great as their schemas allow, or as small.
func (o Offered) sampleFields(great bool) map[string]any {
	fields := make(map[string]any, len(o.Fields))
	left := maxSampleBody
	for _, name := range slices.Sorted(maps.Keys(o.Fields)) {
		var schema map[string]any
		if err := json.Unmarshal(o.Fields[name], &schema); err != nil {
			schema = nil // the catalog has refused such a manifest
		}
		fields[name] = sampleOf(schema, great, 0, &left)
	}
	return fields
}

// sampleOf is a value of a schema. Patterns and formats are passed over: rules see no schema, and a text is a text.
func sampleOf(schema map[string]any, great bool, depth int, left *int) any {
	if value, ok := schema["const"]; ok {
		return value
	}
	if values, ok := schema["enum"].([]any); ok && len(values) > 0 {
		if great {
			return values[len(values)-1]
		}
		return values[0]
	}
	for _, many := range []string{"oneOf", "anyOf", "allOf"} {
		if of, ok := schema[many].([]any); ok && len(of) > 0 && depth < maxSampleDepth {
			one, _ := of[0].(map[string]any)
			return sampleOf(one, great, depth+1, left)
		}
	}
	switch typeOf(schema) {
	case "boolean":
		return great
	case "integer", "number":
		return json.Number(fmt.Sprint(bound(schema, great, "minimum", "maximum", 1, int(greatAmount))))
	case "array":
		items, _ := schema["items"].(map[string]any)
		var list []any
		for range min(bound(schema, great, "minItems", "maxItems", 0, maxSampleList), maxSampleList) {
			if depth >= maxSampleDepth || *left <= 0 {
				break
			}
			*left -= 2
			list = append(list, sampleOf(items, great, depth+1, left))
		}
		return list
	case "object":
		properties, _ := schema["properties"].(map[string]any)
		object := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			property, _ := properties[name].(map[string]any)
			if depth < maxSampleDepth && *left > 0 {
				*left -= len(name) + 4
				object[name] = sampleOf(property, great, depth+1, left)
			}
		}
		return object
	}
	great = great && depth == 0 // in a list many short texts cost more than few long ones
	n := max(0, min(bound(schema, great, "minLength", "maxLength", 1, maxSampleText), maxSampleText, *left))
	*left -= n + 2
	return strings.Repeat("7", n) // a digit: rules may read a number from it
}

// typeOf is the type that a schema names first, a string where it names none.
func typeOf(schema map[string]any) string {
	switch named := schema["type"].(type) {
	case string:
		return named
	case []any:
		for _, name := range named {
			if text, ok := name.(string); ok && text != "null" {
				return text
			}
		}
	}
	if schema["properties"] != nil {
		return "object"
	}
	return "string"
}

// bound is the lower or upper bound of a schema, or what is taken where it has none.
func bound(schema map[string]any, upper bool, low, high string, least, most int) int {
	name, otherwise := low, least
	if upper {
		name, otherwise = high, most
	}
	if n, ok := schema[name].(float64); ok {
		return int(n)
	}
	return otherwise
}

// literals are the texts that rules compare a field of the request with, by field, so that a rule for one bank alone is
// reached, too.
func (s *Set) literals() map[string][]string {
	found := map[string][]string{}
	for _, module := range s.rules.Modules {
		ast.WalkExprs(module, func(expr *ast.Expr) bool {
			terms, ok := expr.Terms.([]*ast.Term)
			if !ok {
				return false
			}
			field, values := "", []string(nil)
			for _, term := range terms {
				switch v := term.Value.(type) {
				case ast.String:
					values = append(values, string(v))
				case *ast.Array, ast.Set:
					_ = each(v, func(element ast.Value) error {
						if text, ok := element.(ast.String); ok {
							values = append(values, string(text))
						}
						return nil
					})
				case ast.Ref:
					if name := fieldOf(v); name != "" {
						field = name
					}
				}
			}
			for _, value := range values {
				if field != "" && !slices.Contains(found[field], value) && len(found[field]) < maxLiterals {
					found[field] = append(found[field], value)
				}
			}
			return false
		})
	}
	for _, values := range found {
		slices.Sort(values)
	}
	return found
}

// maxLiterals bounds the requests that are generated for one field.
const maxLiterals = 20

// fieldOf is the field that a reference such as input.fields.bank_code reads, or "".
func fieldOf(ref ast.Ref) string {
	if len(ref) < 3 || !ref.HasPrefix(ast.InputRootRef) || ref[1].Value.Compare(ast.String("fields")) != 0 {
		return ""
	}
	name, _ := ref[2].Value.(ast.String)
	return string(name)
}

// guessed are operations to ask about where nobody knows which there are: one of each kind, and those whose paths
// are in data.json. They offer every field that the rules compare with a text.
func (s *Set) guessed(values map[string][]string) []Offered {
	fields := map[string]json.RawMessage{}
	for name := range values {
		fields[name] = json.RawMessage(`{"type": "string", "maxLength": 100}`)
	}
	paths := []string{"/any"}
	quotas, _ := s.data["quotas"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(quotas)) {
		quota, _ := quotas[name].(map[string]any)
		listed, _ := quota["operations"].([]any)
		for _, path := range listed {
			if text, ok := path.(string); ok {
				paths = append(paths, text)
			}
		}
	}
	var offered []Offered
	for i, path := range slices.Compact(paths) {
		for j, kind := range kinds {
			if i > 0 && j != i%len(kinds) { // as one kind: data.json does not say which
				continue
			}
			offered = append(offered, Offered{
				Operation: Operation{Path: path, Kind: kind, Provider: "any"}, Amount: kind != "query", Quote: kind == "transfer" || kind == "order", Fields: fields,
			})
		}
	}
	return offered
}
