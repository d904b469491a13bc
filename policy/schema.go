package policy

import (
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// The schemas of the input. The compiler holds every reference against them, so a misspelt field is an error with its line
// and not a rule that silently never fires.
var inputSchemas = sync.OnceValue(func() *ast.SchemaSet {
	text := map[string]any{"type": "string"}
	number := map[string]any{"type": "number"}
	record := func(fields map[string]any) map[string]any {
		return map[string]any{"type": "object", "additionalProperties": false, "properties": fields}
	}
	byName := func(value map[string]any) map[string]any {
		return map[string]any{"type": "object", "additionalProperties": value}
	}
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, record(map[string]any{
		"merchant": record(map[string]any{
			"id":     text,
			"tier":   text,
			"status": text,
			"labels": byName(text),
			"limits": byName(record(map[string]any{"rate_per_second": number, "burst": number, "limit": number})),
		}),
		"mode":      text,
		"operation": record(map[string]any{"path": text, "kind": text, "provider": text}),
		"amount":    number,
		"now":       text,
		"clock": record(map[string]any{
			"unix": number, "date": text, "weekday": text, "hour": number, "minute": number,
		}),
		"fields": map[string]any{"type": "object"},
		"quote":  map[string]any{"type": "object"},
		"told":   map[string]any{"type": "object"},
	}))
	return set
})
