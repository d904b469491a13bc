package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

var english = message.NewPrinter(language.English)

// explain turns a validation error into the fields at fault, in words for somebody
// who never saw the schema. Known are the fields that the body may hold: the text
// about a field that differs from one of them only in case names that one.
func explain(err error, known []string) []fault.Field {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []fault.Field{{Field: "", Message: "does not fit"}}
	}
	var fields []fault.Field
	for _, leaf := range leaves(invalid) {
		fields = append(fields, explainLeaf(leaf, known)...)
	}
	slices.SortFunc(fields, func(a, b fault.Field) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(fields)
}

// brief is a validation error with the first of its faults, each no longer than a line.
func brief(err error) error {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	const most = 5
	faults := leaves(invalid)
	var texts []string
	for _, leaf := range faults[:min(most, len(faults))] {
		texts = append(texts, fmt.Sprintf("at /%.100s: %.200s", strings.Join(leaf.InstanceLocation, "/"), leaf.ErrorKind.LocalizedString(english)))
	}
	if len(faults) > most {
		texts = append(texts, fmt.Sprintf("and %d more", len(faults)-most))
	}
	return errors.New(strings.Join(texts, "; "))
}

func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	if _, named := e.ErrorKind.(*kind.PropertyNames); named {
		return []*jsonschema.ValidationError{e}
	}
	var all []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		all = append(all, leaves(cause)...)
	}
	return all
}

func explainLeaf(leaf *jsonschema.ValidationError, known []string) []fault.Field {
	place := strings.Join(leaf.InstanceLocation, ".")
	within := func(name string) string {
		if place == "" {
			return name
		}
		return place + "." + name
	}
	var fields []fault.Field
	switch k := leaf.ErrorKind.(type) {
	case *kind.Required:
		for _, name := range k.Missing {
			fields = append(fields, fault.Field{Field: within(name), Message: "is required"})
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			fields = append(fields, fault.Field{Field: within(name), Message: unknownField(name, known)})
		}
	case *kind.PropertyNames:
		place = placeOf(leaf.SchemaURL)
		fields = append(fields, fault.Field{Field: within(k.Property), Message: "is not an allowed name here"})
	default:
		fields = append(fields, fault.Field{Field: place, Message: explainKind(leaf.ErrorKind)})
	}
	return fields
}

// placeOf finds the place in a body that a part of its schema is about. It uses the
// place in the schema, because for names that are not allowed the library's
// InstanceLocation is a slice that it later overwrites (jsonschema v6.0.3).
func placeOf(schemaURL string) string {
	_, pointer, _ := strings.Cut(schemaURL, "#")
	if decoded, err := url.PathUnescape(pointer); err == nil {
		pointer = decoded
	}
	var place []string
	tokens := strings.Split(pointer, "/")
	for i := 1; i+1 < len(tokens); i++ {
		if tokens[i] == "properties" {
			i++
			place = append(place, unescape.Replace(tokens[i]))
		}
	}
	return strings.Join(place, ".")
}

// unescape reads a part of a JSON pointer.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

func unknownField(name string, known []string) string {
	for _, candidate := range known {
		if strings.EqualFold(candidate, name) {
			return fmt.Sprintf("is not a known field; did you mean %q", candidate)
		}
	}
	return "is not a known field"
}

func explainKind(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		return explainType(k)
	case *kind.Enum:
		wanted := make([]string, len(k.Want))
		for i, w := range k.Want {
			wanted[i] = fmt.Sprint(w)
		}
		return "must be one of " + strings.Join(wanted, ", ")
	case *kind.Minimum:
		return "must be at least " + number(k.Want)
	case *kind.Maximum:
		return "must be at most " + number(k.Want)
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters", k.Want)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters", k.Want)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d entries", k.Want)
	case *kind.Format:
		return "must be a valid " + k.Want
	case *kind.Pattern:
		return "has characters or a form that are not allowed here"
	}
	return k.LocalizedString(english)
}

func explainType(k *kind.Type) string {
	want := strings.Join(k.Want, " or ")
	if want == "integer" {
		if k.Got == "number" {
			return "must be a whole number, without a fraction"
		}
		return "must be a whole number, not " + article(k.Got)
	}
	return "must be " + article(want) + ", not " + article(k.Got)
}

// article puts the indefinite article before a JSON type.
func article(kind string) string {
	switch {
	case kind == "null":
		return kind
	case strings.HasPrefix(kind, "array"), strings.HasPrefix(kind, "object"), strings.HasPrefix(kind, "integer"):
		return "an " + kind
	}
	return "a " + kind
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	return r.FloatString(2)
}
