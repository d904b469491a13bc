package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds tighten a property of a contract's request for one provider, by keywords of
// JSON Schema: minimum, maximum, minLength, maxLength, enum and pattern; required for
// one that must be given; and a description in the provider's own words.
type Bounds map[string]json.RawMessage

// narrow is an operation's request with its provider's bounds.
func narrow(op Operation, place string, faults *Faults) (json.RawMessage, bool) {
	if len(op.Narrow) == 0 {
		return op.Request, true
	}
	keywords, properties, err := schemaObject(op.Request)
	if err != nil { // a contract's request is an object
		faults.add(place, "%s", flat(err))
		return nil, false
	}
	var required []string
	_ = json.Unmarshal(keywords["required"], &required) // none, where it has none
	before := len(*faults)
	for _, name := range slices.Sorted(maps.Keys(op.Narrow)) {
		at := place + pointer(name)
		property, there := properties[name]
		if !there {
			faults.add(at, "the request of %s has no %s: it has %s", op.Path, name, strings.Join(slices.Sorted(maps.Keys(properties)), ", "))
			continue
		}
		narrowed, must := tighten(property, op.Narrow[name], name == op.ReferenceField(), at, faults)
		properties[name] = narrowed
		if must && !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	if len(*faults) > before {
		return nil, false
	}
	if len(required) > 0 {
		keywords["required"], _ = json.Marshal(required) // strings
	}
	request, err := rejoin(keywords, properties)
	if err != nil {
		faults.add(place, "%s", flat(err))
	}
	return request, err == nil
}

// tighten is a property with a provider's bounds, and whether it must be given now.
func tighten(property json.RawMessage, bounds Bounds, reference bool, place string, faults *Faults) (json.RawMessage, bool) {
	var schema map[string]json.RawMessage
	if err := json.Unmarshal(property, &schema); err != nil {
		faults.add(place, "the contract says nothing about it that could be tightened")
		return property, false
	}
	must, before := false, len(*faults)
	for _, keyword := range slices.Sorted(maps.Keys(bounds)) {
		value, at := bounds[keyword], place+pointer(keyword)
		if reference && keyword != "description" {
			faults.add(at, "the reference is the merchant's, and no provider sees it: leave it out")
			continue
		}
		var err error
		switch keyword {
		case "minimum", "minLength":
			err = bound(schema, keyword, value, func(now, was int64) bool { return now >= was })
		case "maximum", "maxLength":
			err = bound(schema, keyword, value, func(now, was int64) bool { return now <= was })
		case "enum":
			err = fewer(schema, value)
		case "pattern":
			err = pattern(schema, value)
		case "description":
			var text string
			if err = json.Unmarshal(value, &text); err == nil {
				schema[keyword] = value
			}
		case "required":
			if string(value) != "true" {
				err = errors.New("can only be true: a provider tightens what the contract asks for")
			}
			must = true
		default:
			err = errors.New("can't be tightened: minimum, maximum, minLength, maxLength, enum, pattern, required and description can")
		}
		if err != nil {
			faults.add(at, "%s", flat(err))
		}
	}
	if len(*faults) > before {
		return property, false
	}
	must = withoutDefault(schema) || must
	joined, err := json.Marshal(schema)
	if err != nil {
		faults.add(place, "%s", flat(err))
		return property, false
	}
	if low, high := ends(schema); low > high {
		faults.add(place, "nothing is within these bounds: the least is %d and the most %d", low, high)
	}
	return joined, must
}

// ofType are the types whose values the bounds are of.
var ofType = map[string]string{"minimum": "integer", "maximum": "integer", "minLength": "string", "maxLength": "string"}

func bound(schema map[string]json.RawMessage, keyword string, value json.RawMessage, tighter func(now, was int64) bool) error {
	var typed string
	_ = json.Unmarshal(schema["type"], &typed) // several types, or none, are not ""
	if typed != ofType[keyword] {
		return fmt.Errorf("is for properties that are %ss, and this is none", ofType[keyword])
	}
	var now int64
	if err := json.Unmarshal(value, &now); err != nil {
		return errors.New("must be a whole number")
	}
	if given := schema[keyword]; given != nil {
		var was int64
		if err := json.Unmarshal(given, &was); err == nil && !tighter(now, was) {
			return fmt.Errorf("%d is wider than the contract's %d: a provider may only tighten it", now, was)
		}
	}
	schema[keyword] = value
	return nil
}

// ends are the least and the most that a property may be, where both are given.
func ends(schema map[string]json.RawMessage) (low, high int64) {
	for least, most := range map[string]string{"minimum": "maximum", "minLength": "maxLength"} {
		if schema[least] == nil || schema[most] == nil {
			continue
		}
		_ = json.Unmarshal(schema[least], &low) // whole numbers, or it is judged as the schema
		_ = json.Unmarshal(schema[most], &high)
	}
	return low, high
}

func fewer(schema map[string]json.RawMessage, value json.RawMessage) error {
	var now, was []jsontext.Value
	if err := json.Unmarshal(value, &now); err != nil || len(now) == 0 {
		return errors.New("must be a list of at least one value")
	}
	if schema["enum"] != nil {
		if err := json.Unmarshal(schema["enum"], &was); err != nil {
			return err
		}
		for _, v := range now {
			if !slices.ContainsFunc(was, func(w jsontext.Value) bool { return string(w) == string(v) }) {
				return fmt.Errorf("%s is none of the contract's %s: a provider may only take some of them", v, schema["enum"])
			}
		}
	}
	schema["enum"] = value
	return nil
}

// pattern adds a pattern beside the contract's own.
func pattern(schema map[string]json.RawMessage, value json.RawMessage) error {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return errors.New("must be a string")
	}
	if _, err := regexp.Compile(text); err != nil {
		return fmt.Errorf("is no regular expression: %w", err)
	}
	if schema["pattern"] == nil {
		schema["pattern"] = value
		return nil
	}
	both, err := json.Marshal([]map[string]json.RawMessage{{"pattern": value}})
	schema["allOf"] = both
	return err
}

// withoutDefault takes a default away that the bounds exclude. Then the property must be
// given: nothing may stand for it that its provider refuses.
func withoutDefault(schema map[string]json.RawMessage) bool {
	given := schema["default"]
	if given == nil {
		return false
	}
	whole, err := json.Marshal(schema)
	if err != nil {
		return false
	}
	compiled, err := CompileSchema("default", whole)
	if err != nil {
		return false
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(given)))
	if err != nil || compiled.Validate(value) == nil {
		return false
	}
	delete(schema, "default")
	return true
}
