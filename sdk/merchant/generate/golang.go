package main

import (
	"bytes"
	"fmt"
)

func (m model) golang() string {
	var out bytes.Buffer
	fmt.Fprintf(&out, "// %s\n\npackage merchant\n\nimport (\n\"context\"\n\"encoding/json\"\n\"time\"\n)\n\n", stamp)
	for _, o := range m.objects {
		fmt.Fprintf(&out, "// %s is a schema of the OpenAPI document.\ntype %s struct {\n", o.name, o.name)
		for _, f := range o.fields {
			comment(&out, "", "//", f.about)
			comment(&out, "", "// One of", oneOf(f.schema.Enum))
			fmt.Fprintf(&out, "%s %s `json:\"%s%s\"`\n", exported(f.name), f.golang(), f.name, f.absent())
		}
		out.WriteString("}\n\n")
	}
	for _, c := range m.calls {
		name, data := exported(c.id), goType(c.data)
		parameter, argument := ", request "+c.request, "request"
		if c.request == "" {
			parameter, argument = "", "struct{}{}"
		}
		fmt.Fprintf(&out, "// %s is POST %s: %s.\nfunc (c *Client) %s(ctx context.Context%s, options ...Option) (Result[%s], error) {\n"+
			"return send[%s](ctx, c, %q, %t, %s, options)\n}\n\n", name, c.path, lower(c.about), name, parameter, data, data, c.path, c.money, argument)
	}
	return out.String()
}

func lower(text string) string { return string(text[0]|0x20) + text[1:] }

func oneOf(values []string) string {
	var out bytes.Buffer
	for i, value := range values {
		if i > 0 {
			out.WriteString(", ")
		}
		out.WriteString(value)
	}
	if len(values) > 0 {
		out.WriteString("; others may be added.")
	}
	return out.String()
}

func (f field) golang() string {
	kind := goType(f.schema)
	if _, nullable := f.schema.kind(); nullable {
		return "*" + kind
	}
	return kind
}

// absent is how an optional member is left out: none that may be left out means anything
// when it is empty.
func (f field) absent() string {
	switch {
	case f.required:
		return ""
	case f.golang() == "time.Time":
		return ",omitzero"
	}
	return ",omitempty"
}

func goType(s schema) string {
	if s.Ref != "" {
		return named(s.Ref)
	}
	kind, _ := s.kind()
	switch {
	case kind == "array":
		return "[]" + goType(*s.Items)
	case kind == "object" && len(s.Properties) > 0:
		return "json.RawMessage"
	case kind == "object" && s.members() == "string":
		return "map[string]string"
	case kind == "object":
		return "json.RawMessage"
	case kind == "integer":
		return "int64"
	case kind == "boolean":
		return "bool"
	case s.Format == "date-time":
		return "time.Time"
	}
	return "string"
}
