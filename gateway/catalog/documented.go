package catalog

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// documented is what the OpenAPI document says beyond the schemas of manifests, whose
// text approvals rest on: names, examples, and the aliases that it leaves out.
type documented struct {
	Tags       []tag                          `json:"tags"` // in the order of the document
	Operations map[string]documentedOperation `json:"operations"`
}

type tag struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

type documentedOperation struct {
	Schema      string    `json:"schema"`      // the name of what is answered, or of one item of it
	Description string    `json:"description"` // where the manifest has none
	Aliases     []string  `json:"aliases"`     // properties of the request that are accepted and not shown
	Examples    []example `json:"examples"`
}

// example is a request without credentials, and its answer.
type example struct {
	Name    string          `json:"name"` // where there are several
	Summary string          `json:"summary"`
	Request json.RawMessage `json:"request"`
	Message string          `json:"message"`
	Status  string          `json:"status"`
	Data    json.RawMessage `json:"data"`
}

//go:embed documented.json
var documentedText []byte

var readDocumented = sync.OnceValues(func() (documented, error) {
	var all documented
	decoder := json.NewDecoder(bytes.NewReader(documentedText))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return documented{}, fmt.Errorf("documented.json: %w", err)
	}
	return all, nil
})

// examplesOf are the examples that fit the operation as it is offered now: a provider may
// have narrowed what a request may say. Where there are none, one is made of the schemas.
func examplesOf(op *Operation, d documentedOperation) ([]example, error) {
	var fitting []example
	for _, e := range d.Examples {
		if fits(op.request, without(e.Request, "merchant_id")) {
			fitting = append(fitting, e)
		}
	}
	if len(fitting) > 0 {
		return fitting, nil
	}
	response, err := manifest.CompileSchema("response", op.Response)
	if err != nil {
		return nil, err
	}
	made := example{Message: sampleText, Status: sampleText}
	if made.Request, err = sampleOf(op.Request); err != nil {
		return nil, err
	}
	if made.Data, err = sampleOf(op.Response); err != nil {
		return nil, err
	}
	if !fits(op.request, made.Request) || !fits(response, made.Data) {
		return nil, nil // none is better than a wrong one
	}
	return []example{made}, nil
}

func fits(schema *jsonschema.Schema, value json.RawMessage) bool {
	decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	return err == nil && schema.Validate(decoded) == nil
}

func without(value json.RawMessage, name string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		return value
	}
	delete(members, name)
	rest, err := json.Marshal(members)
	if err != nil {
		return value
	}
	return rest
}

// sampleText stands for a text of which the schema says nothing more.
const sampleText = "text"

// samples are values of the formats that manifests use.
var samples = map[any]string{
	"date-time": exampleTime, "date": exampleTime[:10], "email": "payer@example.com", "uri": "https://shop.example/", "uuid": exampleRequestID,
}

// sampleOf makes a value with what a schema requires.
func sampleOf(text json.RawMessage) (json.RawMessage, error) {
	var schema object
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&schema); err != nil {
		return nil, err
	}
	return json.Marshal(sample(schema))
}

func sample(schema object) any {
	if listed, _ := schema["examples"].([]any); len(listed) > 0 {
		return listed[0]
	}
	for _, keyword := range []string{"const", "default"} {
		if value, said := schema[keyword]; said {
			return value
		}
	}
	if listed, _ := schema["enum"].([]any); len(listed) > 0 {
		return listed[0]
	}
	kind := schema["type"]
	if several, _ := kind.([]any); len(several) > 0 {
		kind = several[0]
	}
	switch kind {
	case "object":
		properties, _ := schema["properties"].(object)
		required, _ := schema["required"].([]any)
		made := object{}
		for _, name := range required {
			property, _ := properties[name.(string)].(object)
			made[name.(string)] = sample(property)
		}
		return made
	case "array":
		items, _ := schema["items"].(object)
		return []any{sample(items)}
	case "integer", "number":
		if least, said := schema["minimum"]; said {
			return least
		}
		return 1
	case "boolean":
		return true
	}
	if text, known := samples[schema["format"]]; known {
		return text
	}
	return sampleText
}
