package catalog

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// schemas are the document's schemas by name: each is written once.
type schemas object

// add names a schema and returns how to refer to it. What is already there under the name
// and means the same is not added again; something else gets the other name.
func (s schemas) add(name, other string, schema object) object {
	plain(schema)
	if there, taken := s[name].(object); taken && !alike(there, schema) {
		name = other
	}
	if _, taken := s[name]; !taken {
		s[name] = schema
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// alike reports whether two schemas are the same but for their descriptions and the order
// of what they require.
func alike(a, b object) bool { return reflect.DeepEqual(bare(a), bare(b)) }

func bare(value any) any {
	switch value := value.(type) {
	case object:
		stripped := object{}
		for name, member := range value {
			if _, text := member.(string); name == "description" && text {
				continue
			}
			stripped[name] = bare(member)
		}
		return stripped
	case []any:
		stripped := make([]any, len(value))
		for i := range value {
			stripped[i] = bare(value[i])
		}
		slices.SortFunc(stripped, func(x, y any) int { return strings.Compare(fmt.Sprint(x), fmt.Sprint(y)) })
		return stripped
	}
	return value
}

// title makes PaymentsCreate of paymentsCreate.
func title(name string) string { return strings.ToUpper(name[:1]) + name[1:] }

// answerName is the name of what an operation answers, or of an item of its list.
func answerName(op *Operation, d documentedOperation) (name, other string) {
	other = title(operationID(op.Path))
	switch {
	case d.Schema != "":
		return d.Schema, other
	case op.Lists != nil:
		name = title(string(op.Lists.Target.Kind))
		return name, "Listed" + name
	case op.Target != nil:
		return title(string(op.Target.Kind)), other
	}
	return other, other
}

// answer adds the schema of what an operation answers.
func (s schemas) answer(op *Operation, d documentedOperation) (object, error) {
	var schema object
	if err := json.Unmarshal(op.Response, &schema); err != nil {
		return nil, fmt.Errorf("response: %w", err)
	}
	name, other := answerName(op, d)
	items, list := schema["items"].(object)
	one := schema
	if list {
		one = items
	}
	if err := echoed(op, one); err != nil {
		return nil, err
	}
	opened(schema)
	if !list {
		return s.add(name, other, schema), nil
	}
	schema["items"] = s.add(name, other, items)
	return schema, nil
}

// request adds the schema of an operation's body: the manifest's, with the credentials,
// which belong to the gateway and not to the provider, and without aliases.
func (s schemas) request(op *Operation, d documentedOperation) (ref, schema object, err error) {
	if err := json.Unmarshal(op.Request, &schema); err != nil {
		return nil, nil, fmt.Errorf("request: %w", err)
	}
	properties, _ := schema["properties"].(object)
	if properties == nil {
		properties = object{}
	}
	for _, alias := range d.Aliases {
		delete(properties, alias)
	}
	properties["secret_key"] = object{
		"type": "string", "description": "The secret key, unless the header Authorization carries it.",
	}
	properties["merchant_id"] = object{
		"type": "string", "description": "Your merchant id; wherever it is sent it must be the key's own.",
	}
	schema["properties"] = properties
	if op.NeedsMerchantID() {
		required, _ := schema["required"].([]any)
		schema["required"] = append([]any{"merchant_id"}, required...)
	}
	readable(schema)
	name := title(operationID(op.Path)) + "Request"
	return s.add(name, name+"Body", schema), schema, nil
}

// readable leaves out of a request's schema what tools can't read: rules that hold under a
// condition, which descriptions tell, and character classes of Unicode, in whose place
// stand the control characters.
func readable(schema object) {
	for _, keyword := range []string{"if", "then", "else"} {
		delete(schema, keyword)
	}
	properties, _ := schema["properties"].(object)
	for _, property := range properties {
		if property, is := property.(object); is && property["pattern"] == `^[^\p{C}]*$` {
			property["pattern"] = `^[^\x00-\x1F\x7F-\x9F]*$`
		}
	}
}

// plain says what generators of code take for granted: the type beside a constant or an
// enumeration, without which they give up or make an any of it, and that an amount needs more
// than 32 bits. A default goes into words, since some generators require what has one, and
// only the gateway fills it in.
func plain(schema object) {
	values, _ := schema["enum"].([]any)
	if value, is := schema["const"]; is {
		values = []any{value}
	}
	if kind := kindOf(values); kind != "" && schema["type"] == nil {
		schema["type"] = kind
	}
	if most, bounded := schema["maximum"].(float64); wholeNumber(schema["type"]) && schema["format"] == nil && (!bounded || most > math.MaxInt32) {
		schema["format"] = "int64"
	}
	if value, is := schema["default"]; is {
		text, _ := schema["description"].(string)
		told, _ := json.Marshal(value) // it was decoded from JSON
		schema["description"] = strings.TrimSpace(text + " Defaults to " + strings.Trim(string(told), `"`) + ".")
		delete(schema, "default")
	}
	properties, _ := schema["properties"].(object)
	for _, property := range properties {
		if property, is := property.(object); is {
			plain(property)
		}
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if inner, is := schema[keyword].(object); is {
			plain(inner)
		}
	}
}

// wholeNumber reports whether a schema's type is that of whole numbers, or null as well.
func wholeNumber(kind any) bool {
	several, _ := kind.([]any)
	return kind == any("integer") || slices.Contains(several, any("integer"))
}

// kindOf is the JSON type that all values have, "" where they differ or there are none.
func kindOf(values []any) string {
	kind := ""
	for i, value := range values {
		var one string
		switch value := value.(type) {
		case string:
			one = "string"
		case bool:
			one = "boolean"
		case float64:
			one = "number"
			if value == math.Trunc(value) {
				one = "integer"
			}
		}
		if i > 0 && one != kind {
			return ""
		}
		kind = one
	}
	return kind
}

// opened says of objects without declared members what they may hold: tools take nothing
// said for nothing allowed.
func opened(schema object) {
	if schema["type"] == "object" && schema["properties"] == nil && schema["additionalProperties"] == nil {
		schema["additionalProperties"] = true
	}
	for _, member := range schema {
		switch member := member.(type) {
		case object:
			opened(member)
		case []any:
			for _, element := range member {
				if inner, is := element.(object); is {
					opened(inner)
				}
			}
		}
	}
}

// echoed has what an answer repeats hold what the request may.
func echoed(op *Operation, schema object) error {
	made := op
	if op.Lists != nil {
		made = op.Lists
	}
	if made.Target != nil {
		made = made.Target
	}
	var request struct {
		Properties map[string]object `json:"properties"`
	}
	if err := json.Unmarshal(made.Request, &request); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	properties, _ := schema["properties"].(object)
	for _, name := range made.Echo {
		property, answered := properties[name].(object)
		if members, said := request.Properties[name]["additionalProperties"]; answered && said && property["type"] == "object" {
			property["additionalProperties"] = members
		}
	}
	return nil
}
