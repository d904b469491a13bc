package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// ConnectionSchema checks the credentials of a merchant's account at a
// provider.
type ConnectionSchema struct{ compiled *jsonschema.Schema }

// NewConnectionSchema compiles the manifest's schema of credentials.
func NewConnectionSchema(m *manifest.Manifest) (*ConnectionSchema, error) {
	compiled, err := manifest.CompileSchema(m.Name+"/connection", m.Connection)
	if err != nil {
		return nil, err
	}
	return &ConnectionSchema{compiled}, nil
}

// Ask is a field that a provider asks for in credentials.
type Ask struct {
	Name        string   `json:"name"`
	Required    bool     `json:"required"`
	Secret      bool     `json:"secret"` // the manifest says writeOnly
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Choices     []string `json:"choices,omitempty"` // where the value is one of a few
	Pattern     string   `json:"pattern,omitempty"` // a regular expression that the value fits
	Example     string   `json:"example,omitempty"` // as JSON
	Operators   bool     `json:"-"`                 // operators alone set it: where the gateway connects to, or more than one value
	Type        string   `json:"-"`                 // string, integer, number or boolean; "" for choices and for what is more than one value
}

// Asks returns the fields of credentials, the required ones first.
func (s *ConnectionSchema) Asks() []Ask {
	asks := make([]Ask, 0, len(s.compiled.Properties))
	for name, property := range s.compiled.Properties {
		asks = append(asks, askOf(name, property, slices.Contains(s.compiled.Required, name)))
	}
	slices.SortFunc(asks, func(a, b Ask) int {
		if a.Required != b.Required {
			if a.Required {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	return asks
}

func askOf(name string, property *jsonschema.Schema, required bool) Ask {
	ask := Ask{Name: name, Required: required, Title: property.Title, Description: property.Description, Secret: property.WriteOnly}
	if property.Types != nil {
		if types := property.Types.ToStrings(); len(types) == 1 && slices.Contains([]string{"string", "integer", "number", "boolean"}, types[0]) {
			ask.Type = types[0]
		}
	}
	ask.Operators = property.Format != nil && property.Format.Name == "uri" || ask.Type == "" && property.Enum == nil
	if property.Enum != nil {
		for _, value := range property.Enum.Values {
			ask.Choices = append(ask.Choices, fmt.Sprint(value))
		}
	}
	if property.Pattern != nil {
		ask.Pattern = property.Pattern.String()
	}
	if len(property.Examples) > 0 {
		example, _ := json.Marshal(property.Examples[0]) // read from JSON
		ask.Example = string(example)
	}
	return ask
}

// Check returns the fields at fault, none when the credentials fit. It names
// fields and what the schema asks, never a given value.
func (s *ConnectionSchema) Check(credentials []byte) []fault.Field {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(credentials))
	if err != nil {
		return []fault.Field{{Message: "must be a JSON object"}}
	}
	if err := s.compiled.Validate(document); err != nil {
		return explainSecret(err, slices.Sorted(maps.Keys(s.compiled.Properties)))
	}
	return nil
}

// explainSecret is [explain] for values that must stay secret: a fault is put into
// words only if these repeat nothing of the value.
func explainSecret(err error, known []string) []fault.Field {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []fault.Field{{Message: "does not fit"}}
	}
	var fields []fault.Field
	for _, leaf := range leaves(invalid) {
		switch leaf.ErrorKind.(type) {
		case *kind.Required, *kind.AdditionalProperties, *kind.Type, *kind.Enum, *kind.Format, *kind.Pattern,
			*kind.Minimum, *kind.Maximum, *kind.MinLength, *kind.MaxLength:
			fields = append(fields, explainLeaf(leaf, known)...)
		default:
			fields = append(fields, fault.Field{Field: strings.Join(leaf.InstanceLocation, "."), Message: "does not fit"})
		}
	}
	slices.SortFunc(fields, func(a, b fault.Field) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(fields)
}
