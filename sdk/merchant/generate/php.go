package main

import (
	"bytes"
	"fmt"
)

func (m model) php() string {
	var out bytes.Buffer
	fmt.Fprintf(&out, "<?php\n// %s\ndeclare(strict_types=1);\n\nnamespace Gerbang;\n", stamp)
	for _, o := range m.objects {
		if o.name == "Error" {
			continue // Refusal, an exception, has its members
		}
		fmt.Fprintf(&out, "\nfinal class %s\n{\n    public function __construct(\n", o.name)
		for _, f := range o.fields {
			comment(&out, "        ", "//", f.about)
			comment(&out, "        ", "// One of", oneOf(f.schema.Enum))
			missing := ""
			if !f.required {
				missing = " = null"
			}
			fmt.Fprintf(&out, "        public readonly %s $%s%s,\n", f.php(), f.name, missing)
		}
		out.WriteString("    ) {\n    }\n\n    public static function from(array $data): self\n    {\n        return new self(\n")
		for _, f := range o.fields {
			fmt.Fprintf(&out, "            %s: %s,\n", f.name, f.read())
		}
		out.WriteString("        );\n    }\n}\n")
	}
	out.WriteString("\nabstract class Operations\n{\n    abstract protected function send(string $path, bool $money, array $request, Options $options): Answer;\n")
	for _, c := range m.calls {
		parameter, argument := c.request+" $request, ", "get_object_vars($request)"
		if c.request == "" {
			parameter, argument = "", "[]"
		}
		data := "$answer->data"
		shown := phpType(c.data)
		switch {
		case c.data.Ref != "":
			data = named(c.data.Ref) + "::from($answer->data)"
		case c.data.Items != nil:
			shown = named(c.data.Items.Ref) + "[]"
			data = "array_map(" + named(c.data.Items.Ref) + "::from(...), $answer->data)"
		}
		fmt.Fprintf(&out, "\n    /** POST %s: %s. @return Answer<%s> */\n    public function %s(%sOptions $options = new Options()): Answer\n    {\n"+
			"        $answer = $this->send('%s', %t, %s, $options);\n        return $answer->with(%s);\n    }\n",
			c.path, lower(c.about), shown, c.id, parameter, c.path, c.money, argument, data)
	}
	out.WriteString("}\n")
	return out.String()
}

func (f field) php() string {
	kind := phpType(f.schema)
	if _, nullable := f.schema.kind(); nullable || !f.required {
		return "?" + kind
	}
	return kind
}

// read is how a member is taken out of decoded JSON.
func (f field) read() string {
	value := "$data['" + f.name + "']"
	_, nullable := f.schema.kind()
	if f.schema.Ref != "" {
		return named(f.schema.Ref) + "::from(" + value + ")"
	}
	if nullable || !f.required {
		return value + " ?? null"
	}
	return value
}

func phpType(s schema) string {
	if s.Ref != "" {
		return named(s.Ref)
	}
	kind, _ := s.kind()
	if name, other := map[string]string{"array": "array", "object": "array", "integer": "int", "boolean": "bool"}[kind]; other {
		return name
	}
	return "string"
}
