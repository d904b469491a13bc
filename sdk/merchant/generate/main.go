// Command generate writes the types and the calls of the merchants' clients, and a
// collection for Postman, from the names and schemas of the OpenAPI document. Values that are
// not known yet must stay readable, and a reader should know each file at a glance:
// quicktype's types refuse unknown values of enumerations, carry the key in every request,
// and are renamed where names meet.
package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/format"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 3 {
		log.Fatal("usage: generate OPENAPI-FILE DIRECTORY")
	}
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	files, err := Files(text)
	if err != nil {
		log.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(os.Args[2], name), content, 0o600); err != nil {
			log.Fatal(err)
		}
	}
}

// Files are the generated files by their names, from the text of an OpenAPI document.
func Files(text []byte) (map[string][]byte, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	m := d.model()
	source, err := format.Source([]byte(m.golang()))
	if err != nil {
		return nil, fmt.Errorf("types.go: %w", err)
	}
	collection, err := d.postman()
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"postman/gerbang.postman_collection.json": collection,
		"types.go":                                 source,
		"typescript/src/generated.ts":              []byte(m.typescript()),
		"php/src/Generated.php":                    []byte(m.php()),
		"python/src/gerbang_merchant/generated.py": []byte(m.python()),
	}, nil
}

type schema struct {
	Ref         string            `json:"$ref"`
	Type        any               `json:"type"`
	Const       any               `json:"const"`
	Enum        []string          `json:"enum"`
	Format      string            `json:"format"`
	Description string            `json:"description"`
	Items       *schema           `json:"items"`
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Additional  json.RawMessage   `json:"additionalProperties"`
}

type content map[string]struct {
	Schema   schema
	Examples map[string]struct {
		Summary string
		Value   json.RawMessage
	}
}

type operation struct {
	ID                   string `json:"operationId"`
	Summary, Description string
	Tags                 []string
	Parameters           []struct{ Name string }
	RequestBody          *struct{ Content content }
	Responses            map[string]struct{ Content content }
}

// money reports whether an operation moves money: only such a one is told by callback.
func (op *operation) money() bool {
	return slices.ContainsFunc(op.Parameters, func(p struct{ Name string }) bool { return p.Name == "X-Callback-URL" })
}

type path struct{ Post *operation }

type document struct {
	Info            struct{ Title, Version, Description string }
	Tags            []struct{ Name, Description string }
	Paths, Webhooks map[string]path
	Components      struct{ Schemas map[string]schema }
}

// field is a member of a type.
type field struct {
	name, about string
	schema      schema
	required    bool
}

type object struct {
	name   string
	fields []field
}

// call is an operation: what it takes, what it gives, and whether it moves money.
type call struct {
	id, path, about, request string
	data                     schema
	money                    bool
}

type model struct {
	objects []object
	calls   []call
	events  []string // names of the bodies of callbacks
}

// credentials are what a client adds by itself.
var credentials = []string{"secret_key", "merchant_id"}

func (d document) model() model {
	var m model
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		o := object{name: name}
		for _, member := range slices.Sorted(maps.Keys(s.Properties)) {
			property := s.Properties[member]
			if slices.Contains(credentials, member) && strings.HasSuffix(name, "Request") || property.Const == false {
				continue
			}
			o.fields = append(o.fields, field{member, property.Description, property, slices.Contains(s.Required, member)})
		}
		slices.SortStableFunc(o.fields, func(a, b field) int { // what is required comes first
			return cmp.Compare(fmt.Sprint(b.required), fmt.Sprint(a.required))
		})
		if len(o.fields) > 0 {
			m.objects = append(m.objects, o)
		}
	}
	known := func(name string) bool {
		return slices.ContainsFunc(m.objects, func(o object) bool { return o.name == name })
	}
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		op := d.Paths[path].Post
		if op == nil {
			continue
		}
		c := call{id: op.ID, path: path, about: op.Summary, money: op.money()}
		c.data = op.Responses["200"].Content["application/json"].Schema.Properties["data"]
		if request := named(op.RequestBody.Content["application/json"].Schema.Ref); known(request) {
			c.request = request
		}
		m.calls = append(m.calls, c)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Webhooks)) {
		m.events = append(m.events, named(d.Webhooks[name].Post.RequestBody.Content["application/json"].Schema.Ref))
	}
	return m
}

func named(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

// kind is a schema's type, and whether it may be null.
func (s schema) kind() (kind string, nullable bool) {
	switch t := s.Type.(type) {
	case string:
		return t, false
	case []any:
		for _, one := range t {
			if one == "null" {
				nullable = true
			} else {
				kind, _ = one.(string)
			}
		}
		return kind, nullable
	}
	return "string", false // an enumeration or a constant
}

// members is what an open object holds, "" for anything.
func (s schema) members() string {
	var of schema
	if json.Unmarshal(s.Additional, &of) != nil {
		return ""
	}
	kind, _ := of.kind()
	return kind
}

// exported makes ExternalID of external_id and RefID of refId.
func exported(name string) string {
	var words []string
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '_' }) {
		start := 0
		for i := 1; i <= len(part); i++ {
			if i == len(part) || part[i] >= 'A' && part[i] <= 'Z' {
				words = append(words, part[start:i])
				start = i
			}
		}
	}
	for i, word := range words {
		switch upper := strings.ToUpper(word); upper {
		case "ID", "URL", "SKU", "QR", "SN":
			words[i] = upper
		default:
			words[i] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

const stamp = "Code generated by sdk/merchant/generate from the OpenAPI document. DO NOT EDIT."

func comment(out *bytes.Buffer, indent, mark, text string) {
	if text != "" {
		fmt.Fprintf(out, "%s%s %s\n", indent, mark, strings.ReplaceAll(text, "*/", "* /"))
	}
}
