package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

func (m model) python() string {
	var out bytes.Buffer
	names := []string{"    \"Result\",\n"}
	for _, o := range m.objects {
		names = append(names, fmt.Sprintf("    %q,\n", o.name))
	}
	fmt.Fprintf(&out, "# "+stamp+`
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, Mapping, NotRequired, TypedDict, TypeVar

__all__ = [
%s]

T = TypeVar("T")


@dataclass(frozen=True)
class Result(Generic[T]):
    """The answer to a call."""

    data: T
    message: str  # where the call has one
    request_id: str  # to quote when asking about a request
    replayed: bool  # an earlier request under this reference was answered so

`, strings.Join(names, ""))
	for _, o := range m.objects {
		fmt.Fprintf(&out, "\n%s = TypedDict(\n    %q,\n    {\n", o.name, o.name) // a class could not have the member from
		for _, f := range o.fields {
			comment(&out, "        ", "#", f.about)
			comment(&out, "        ", "# One of", oneOf(f.schema.Enum))
			kind := pyType(f.schema)
			if f.schema.Ref != "" || f.schema.Items != nil && f.schema.Items.Ref != "" {
				kind = strconv.Quote(kind) // it may come later
			}
			if !f.required {
				kind = "NotRequired[" + kind + "]"
			}
			fmt.Fprintf(&out, "        %q: %s,\n", f.name, kind)
		}
		out.WriteString("    },\n)\n")
	}
	out.WriteString(`

class Operations(ABC):
    """The calls. callback_url is where the end of what a call makes is told; idempotency_key
    is the reference of a call whose request has none: unless given, a call that moves money
    gets a random one, so that its repetition is never a second one."""

    @abstractmethod
    def _send(
        self, path: str, money: bool, request: Mapping[str, Any], callback_url: str | None, idempotency_key: str | None
    ) -> Result[Any]: ...
`)
	for _, c := range m.calls {
		parameter, argument := "request: "+c.request+", ", "request"
		if c.request == "" {
			parameter, argument = "", "{}"
		}
		options, given := "", "None, None"
		if c.money {
			options, given = "*, callback_url: str | None = None, idempotency_key: str | None = None", "callback_url, idempotency_key"
		}
		fmt.Fprintf(&out, "\n    def %s(self, %s) -> Result[%s]:\n        \"\"\"POST %s: %s.\"\"\"\n        return self._send(%q, %s, %s, %s)\n",
			snake(c.id), strings.TrimSuffix(parameter+options, ", "), pyType(c.data), c.path, lower(c.about), c.path,
			map[bool]string{true: "True", false: "False"}[c.money], argument, given)
	}
	return out.String()
}

// snake makes payments_create of paymentsCreate.
func snake(name string) string {
	var out strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			out.WriteByte('_')
		}
		out.WriteString(strings.ToLower(string(r)))
	}
	return out.String()
}

func pyType(s schema) string {
	if s.Ref != "" {
		return named(s.Ref)
	}
	kind, nullable := s.kind()
	text := "str"
	switch {
	case kind == "array":
		text = "list[" + pyType(*s.Items) + "]"
	case kind == "object" && s.members() == "string":
		text = "dict[str, str]"
	case kind == "object":
		text = "dict[str, Any]"
	case kind == "integer":
		text = "int"
	case kind == "boolean":
		text = "bool"
	}
	if nullable {
		text += " | None"
	}
	return text
}
