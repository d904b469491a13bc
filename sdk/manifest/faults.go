package manifest

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Fault is one thing that is wrong with a manifest.
type Fault struct {
	Place string `json:"place"` // a JSON pointer into the document as its author wrote it, "" for the whole
	Text  string `json:"text"`  // what is wrong there, and what to do about it: one sentence
}

// String is the place and the sentence.
func (f Fault) String() string {
	if f.Place == "" {
		return f.Text
	}
	return f.Place + ": " + f.Text
}

// Faults is everything that is wrong with a manifest: its author mends it in one go.
type Faults []Fault

// Error has a line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

func (f *Faults) add(place, format string, args ...any) {
	*f = append(*f, Fault{place, fmt.Sprintf(format, args...)})
}

// addSchema adds what makes a schema none, at its innermost place.
func (f *Faults) addSchema(place string, err error) {
	invalid, ok := errors.AsType[*jsonschema.SchemaValidationError](err)
	if !ok {
		f.add(place, "%s", flat(err))
		return
	}
	cause, ok := errors.AsType[*jsonschema.ValidationError](invalid.Err)
	if !ok {
		f.add(place, "%s", flat(err))
		return
	}
	for len(cause.Causes) > 0 {
		cause = cause.Causes[0]
	}
	text := flat(cause)
	if _, last, found := strings.Cut(text, "': "); found {
		text = last
	}
	f.add(place+pointer(cause.InstanceLocation...), "is no JSON Schema (draft 2020-12): %s", text)
}

// addDecoding adds why a document could not be read.
func (f *Faults) addDecoding(err error) {
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		why := syntax.Err
		if why == nil {
			why = err
		}
		f.add(string(syntax.JSONPointer), "is no JSON at byte %d: %s", syntax.ByteOffset, flat(why))
		return
	}
	semantic, ok := errors.AsType[*jsonx.SemanticError](err)
	switch {
	case !ok:
		f.add("", "%s", flat(err))
	case errors.Is(semantic.Err, jsonx.ErrUnknownName):
		f.add(string(semantic.JSONPointer), "manifests have no such member: correct its name, or leave it out; if newer gateways have it, say which in needs")
	case semantic.Err != nil:
		f.add(string(semantic.JSONPointer), "%s", flat(semantic.Err))
	default:
		f.add(string(semantic.JSONPointer), "must not be %s", kindNames[semantic.JSONKind])
	}
}

var kindNames = map[jsontext.Kind]string{
	jsontext.KindNull: "null", jsontext.KindTrue: "a boolean", jsontext.KindFalse: "a boolean", jsontext.KindString: "a string",
	jsontext.KindNumber: "a number", jsontext.KindBeginObject: "an object", jsontext.KindBeginArray: "an array",
}

// flat is an error's text on one line.
func flat(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// pointer is the JSON pointer of these names.
func pointer(names ...string) string {
	var text strings.Builder
	for _, name := range names {
		text.WriteString("/" + escape.Replace(name))
	}
	return text.String()
}

// place is where an operation's author wrote it. What a contract gives stands in no
// operation of the document.
func (m *Manifest) place(path string) string {
	if i, written := m.written[path]; written {
		return pointer("operations", strconv.Itoa(i))
	}
	return "/implements"
}
