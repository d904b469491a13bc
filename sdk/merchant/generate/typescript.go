package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

func (m model) typescript() string {
	var out bytes.Buffer
	fmt.Fprintf(&out, "// %s\n\nimport type { Options, Result } from \"./client.js\";\n\n", stamp)
	for _, o := range m.objects {
		fmt.Fprintf(&out, "export interface %s {\n", o.name)
		for _, f := range o.fields {
			if f.about != "" {
				fmt.Fprintf(&out, "  /** %s */\n", strings.ReplaceAll(f.about, "*/", "* /"))
			}
			optional := "?"
			if f.required {
				optional = ""
			}
			fmt.Fprintf(&out, "  %s%s: %s;\n", f.name, optional, tsType(f.schema))
		}
		out.WriteString("}\n\n")
	}
	fmt.Fprintf(&out, "/** The body of a callback, told apart by event. */\nexport type CallbackBody = %s;\n\n", strings.Join(m.events, " | "))
	out.WriteString("export abstract class Operations {\n  protected abstract send<T>(path: string, money: boolean, request: object, options?: Options): Promise<Result<T>>;\n")
	for _, c := range m.calls {
		parameter, argument := "request: "+c.request+", ", "request"
		if c.request == "" {
			parameter, argument = "", "{}"
		}
		data := tsType(c.data)
		fmt.Fprintf(&out, "\n  /** POST %s: %s. */\n  %s(%soptions?: Options): Promise<Result<%s>> {\n    return this.send<%s>(%q, %t, %s, options);\n  }\n",
			c.path, lower(c.about), c.id, parameter, data, data, c.path, c.money, argument)
	}
	out.WriteString("}\n")
	return out.String()
}

func tsType(s schema) string {
	if s.Ref != "" {
		return named(s.Ref)
	}
	kind, nullable := s.kind()
	text := "string"
	switch {
	case len(s.Enum) > 0:
		quoted := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			quoted[i] = strconv.Quote(value)
		}
		text = strings.Join(quoted, " | ") + " | (string & {})" // others may be added
	case s.Const != nil:
		text = strconv.Quote(fmt.Sprint(s.Const))
	case kind == "array":
		text = tsType(*s.Items) + "[]"
	case kind == "object" && s.members() == "string":
		text = "Record<string, string>"
	case kind == "object" && len(s.Properties) > 0:
		text = "{ event: string; data: Record<string, unknown> }" // an event of the list
	case kind == "object":
		text = "Record<string, unknown>"
	case kind == "integer":
		text = "number"
	case kind == "boolean":
		text = "boolean"
	}
	if nullable {
		text += " | null"
	}
	return text
}
