package policy

import (
	"encoding/json"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// inputSchema is the JSON Schema of the input. The compiler holds every reference against it, so a misspelt field is an
// error with its line and not a rule that silently never fires.
func inputSchema() map[string]any {
	text := func(what string) map[string]any { return map[string]any{"type": "string", "description": what} }
	number := func(what string) map[string]any { return map[string]any{"type": "number", "description": what} }
	record := func(what string, fields map[string]any) map[string]any {
		return map[string]any{"type": "object", "description": what, "additionalProperties": false, "properties": fields}
	}
	byName := func(what string, value map[string]any) map[string]any {
		return map[string]any{"type": "object", "description": what, "additionalProperties": value}
	}
	open := func(what string) map[string]any { return map[string]any{"type": "object", "description": what} }
	flow := func(what string) map[string]any {
		return record(what, map[string]any{"amount": number("In rupiah."), "count": number("Of transfers.")})
	}
	return record("What rules see of a request. data.gerbang.limits sees merchant, mode and operation alone.", map[string]any{
		"merchant": record("The merchant's record.", map[string]any{
			"id":     text("Such as mer_ and a UUID."),
			"tier":   text("One of data.tiers."),
			"status": text("active or suspended."),
			"labels": byName("What operators have noted about the merchant.", text("")),
			"limits": byName("The merchant's own limits that hold now, by the name of the rate or quota.", record("Only what is set.", map[string]any{
				"rate_per_second": number("Of a rate."),
				"burst":           number("Of a rate."),
				"limit":           number("Of a quota: calls in a month."),
			})),
			"markup": number("The merchant's own markup, in rupiah; not there where it has none."),
			"transfers": record("The merchant's own payout limits that hold now.", map[string]any{
				"day":             flow("Of a day."),
				"destination_day": flow("Of a day, to one destination."),
				"repeat_within":   text("For how long a transfer without a reference is refused that equals an earlier one, such as 10m0s; 0s for never."),
			}),
		}),
		"mode": text("live or test."),
		"operation": record("What is asked for.", map[string]any{
			"path":     text("Such as /wallet1/transfer/bank."),
			"kind":     text("query, payment, collection, transfer or order."),
			"provider": text("The plugin's name, the first in order where several serve the path; empty for the gateway's own operations."),
			"contract": text("The contract that the path is of, such as payments@1; empty for none."),
		}),
		"amount": number("In whole rupiah; not there where the request has none."),
		"now":    text("The time of the request: RFC 3339 in UTC."),
		"clock": record("The time of the request in the gateway's time zone.", map[string]any{
			"unix":    number("Seconds since 1970."),
			"date":    text("Such as 2026-03-04."),
			"weekday": text("Monday to Sunday."),
			"hour":    number("0 to 23."),
			"minute":  number("0 to 59."),
		}),
		"destination": text("Where a transfer or what is bought goes, in one form however it was written: 014/2460888509, 6281122334455. A transfer's is there with its quote."),
		"product":     text("What is bought, as the list of products names it."),
		"payer":       text("Who pays, by mail, in small letters."),
		"lists":       byName("The lists that hold something of the request, by name: true for each. Operators change them with gerbang list.", map[string]any{"type": "boolean"}),
		"fields":      open("What the operation's manifest offers of the request, as the merchant wrote it."),
		"quote":       open("What the quote says: an order's price, a transfer's fee and name_match. Not there before the quote."),
		"told":        open("The same as quote, under its old name."),
	})
}

// inputSchemas is the schema as the compiler takes it.
var inputSchemas = sync.OnceValue(func() *ast.SchemaSet {
	set := ast.NewSchemaSet()
	set.Put(ast.SchemaRootRef, inputSchema())
	return set
})

// InputSchema is the JSON Schema of the input as a document, for editors and for `opa check --schema`.
func InputSchema() ([]byte, error) {
	schema := inputSchema()
	schema["$schema"] = "http://json-schema.org/draft-07/schema#"
	schema["title"] = "The input of Gerbang's policies"
	return json.MarshalIndent(schema, "", "  ")
}
