package catalog

import (
	"maps"
	"slices"
	"strconv"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

const (
	exampleRequestID = "0b0f6a52-6ef3-4b0c-9d2a-0f5b6a1f2c11"
	exampleTime      = "2026-11-20T14:30:00Z"
)

// describeResponses describes an operation's success and every failure of the table.
func describeResponses(op *Operation, data any) object {
	headers := headerRefs("X-Request-Id", "X-Svc-Version", "RateLimit", "RateLimit-Policy")
	if op.Money() {
		headers["Idempotent-Replayed"] = headerRef("Idempotent-Replayed")
	}
	responses := object{"200": object{
		"description": "Success.",
		"headers":     headers,
		"content": object{"application/json": object{"schema": object{
			"type":     "object",
			"required": []any{"success", "data"},
			"properties": object{
				"success": object{"const": true},
				"message": object{"type": "string", "description": "Where the operation has one."},
				"status":  object{"type": "string", "description": "Where the operation has one."},
				"data":    data,
			},
		}}},
	}}
	for _, status := range statuses() {
		responses[status] = object{"$ref": "#/components/responses/" + status}
	}
	return responses
}

// statuses returns the table's HTTP statuses, each once.
func statuses() []string {
	seen := map[string]bool{}
	for _, row := range fault.Table {
		seen[strconv.Itoa(row.Status)] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// describeFailures describes the table's rows by HTTP status, each with its meaning
// and an example.
func describeFailures() object {
	failures := object{}
	for _, status := range statuses() {
		meaning, examples, headers := "", object{}, headerRefs("X-Request-Id", "X-Svc-Version")
		for _, row := range fault.Table {
			if strconv.Itoa(row.Status) != status {
				continue
			}
			meaning += "- `" + string(row.Code) + "`: " + row.When + "\n"
			examples[string(row.Code)] = object{"value": exampleFailure(row)}
			maps.Copy(headers, headerRefs(headersOf(row)...))
		}
		failures[status] = object{
			"description": meaning,
			"headers":     headers,
			"content": object{"application/json": object{
				"schema":   object{"$ref": "#/components/schemas/Failure"},
				"examples": examples,
			}},
		}
	}
	return failures
}

func headersOf(row fault.Row) []string {
	switch row.Code {
	case fault.AuthFailed:
		return []string{"WWW-Authenticate"}
	case fault.MethodNotAllowed:
		return []string{"Allow"}
	case fault.PolicyDenied:
		return []string{"X-Svc-Decision-Id"}
	case fault.RateLimited, fault.QuotaExceeded:
		return []string{"X-Svc-Decision-Id", "Retry-After", "RateLimit", "RateLimit-Policy"}
	case fault.InProgress, fault.ProviderUnavailable, fault.Internal:
		return []string{"Retry-After"}
	}
	return nil
}

func exampleFailure(row fault.Row) object {
	example := object{
		"success": false, "message": row.When, "error_code": row.Code, "request_id": exampleRequestID,
		"sent": row.Sent, "retry": row.Retry,
	}
	switch row.Code {
	case fault.InvalidRequest:
		example["errors"] = []any{object{"field": "amount", "message": "must be at least 100"}}
	case fault.DuplicateReference:
		example["errors"] = []any{object{"field": "amount", "message": "differs from the first request"}}
		example["external_id"] = "INV/2026/#001"
	case fault.ProviderTimeout:
		example["external_id"] = "INV/2026/#001"
	case fault.RateLimited:
		example["retry_at"] = exampleTime
	case fault.QuotaExceeded:
		example["retry_at"], example["remaining_quota"] = exampleTime, 0
	}
	return example
}

func describeSchemas() object {
	codes := make([]any, len(fault.Table))
	for i, row := range fault.Table {
		codes[i] = row.Code
	}
	text := func(description string) object { return object{"type": "string", "description": description} }
	return object{
		"FieldError": object{
			"type": "object", "required": []any{"field", "message"},
			"properties": object{
				"field":   text("The field's name; within an object with a dot, metadata.note."),
				"message": text("What is wrong with it."),
			},
		},
		"Failure": object{
			"type":     "object",
			"required": []any{"success", "message", "error_code", "request_id", "sent", "retry"},
			"properties": object{
				"success":    object{"const": false},
				"message":    text("For people; it may change."),
				"error_code": object{"enum": codes, "description": "For machines; the set is only ever added to."},
				"request_id": text("The same as the header X-Request-Id; quote it when you ask about a request."),
				"errors": object{
					"type": "array", "items": object{"$ref": "#/components/schemas/FieldError"},
					"description": "Set when fields are at fault.",
				},
				"sent": object{
					"enum":        []any{fault.SentNo, fault.SentRefused, fault.SentUnknown},
					"description": "Whether the provider got the request: no, it refused it, or nobody knows yet.",
				},
				"retry": object{
					"enum":        []any{fault.RetryNever, fault.RetryAfterChange, fault.RetryLater, fault.RetryLookupFirst},
					"description": "What the same reference may be used for next.",
				},
				"retry_at":        object{"type": "string", "format": "date-time", "description": "Set where waiting helps."},
				"external_id":     text("The reference, where one was given or generated."),
				"ref_id":          text("The reference, where one was given or generated."),
				"remaining_quota": object{"type": "integer", "description": "0 with QUOTA_EXCEEDED."},
			},
		},
	}
}

func describeHeaders() object {
	header := func(description string) object {
		return object{"description": description, "schema": object{"type": "string"}}
	}
	return object{
		"X-Request-Id":        header("This service's own id of the request."),
		"X-Svc-Version":       header("The version of this interface, " + APIVersion + "."),
		"X-Svc-Decision-Id":   header("The id of the decision of a policy, rate or quota; quote it when you ask about a decision."),
		"RateLimit":           header("What is left of the rate now, as the IETF's RateLimit header fields have it."),
		"RateLimit-Policy":    header("The rates that apply, as the IETF's RateLimit header fields have them."),
		"Retry-After":         header("Seconds to wait, at most 3600; retry_at tells the real time."),
		"Idempotent-Replayed": header("true when an earlier request under this reference was answered so."),
		"ETag":                header("Names the content of an answer; send it as If-None-Match with the next GET."),
		"Allow":               header("The methods that this path has."),
		"WWW-Authenticate":    header("Bearer."),
	}
}

func headerRef(name string) object { return object{"$ref": "#/components/headers/" + name} }

func headerRefs(names ...string) object {
	refs := object{}
	for _, name := range names {
		refs[name] = headerRef(name)
	}
	return refs
}
