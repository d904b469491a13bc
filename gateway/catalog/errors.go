package catalog

import (
	"bytes"
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

const (
	exampleRequestID = "0b0f6a52-6ef3-4b0c-9d2a-0f5b6a1f2c11"
	exampleTime      = "2026-11-20T14:30:00Z"
)

// describeResponses describes an operation's success and the errors that it can give.
func (d *describer) describeResponses(op *Operation, data object, examples []example) object {
	headers := headerRefs("X-Request-Id", "X-Svc-Version", "RateLimit", "RateLimit-Policy")
	if op.Money() {
		headers["Idempotent-Replayed"] = headerRef("Idempotent-Replayed")
	}
	properties, required := object{"success": object{"type": "boolean", "const": true}, "data": data}, []any{"success", "data"}
	message, status := above(op)
	if message {
		properties["message"], required = object{"type": "string", "description": "How it stands, for people."}, append(required, "message")
	}
	if status {
		properties["status"], required = object{"type": "string", "description": "The same as in data."}, append(required, "status")
	}
	responses := object{"200": object{
		"description": "Success.",
		"headers":     headers,
		"content": object{"application/json": object{
			"schema":   object{"type": "object", "required": required, "properties": properties},
			"examples": answerExamples(examples, message, status),
		}},
	}}
	byStatus := map[int][]fault.Code{}
	for _, row := range fault.Table {
		if gives(op, row.Code) {
			byStatus[row.Status] = append(byStatus[row.Status], row.Code)
		}
	}
	for status, codes := range byStatus {
		responses[strconv.Itoa(status)] = d.failure(codes...)
	}
	return responses
}

// above reports what an answer has beside its data.
func above(op *Operation) (message, status bool) {
	switch {
	case op.Rules.Kind != "" && op.Rules.Answers != movement.AnswerOffer:
		return true, false
	case op.StatusOf != "" && op.Target.Rules.Answers == movement.AnswerPending:
		return true, true
	}
	return false, false
}

// gives reports whether an operation can answer with an error.
func gives(op *Operation, code fault.Code) bool {
	creates := op.Rules.Kind != ""
	asks := !op.Own() && !creates && op.Target == nil
	switch code {
	case fault.NotFound:
		return op.Target != nil || op.Rules.Follows
	case fault.MethodNotAllowed:
		return false // no method that is described
	case fault.DuplicateReference, fault.InProgress:
		return creates
	case fault.DuplicateTransfer:
		return op.Rules.Kind == manifest.Transfer
	case fault.InsufficientBalance:
		return op.Rules.Reserves == movement.ReserveBalance
	case fault.ProductUnavailable, fault.DestinationInvalid, fault.ProviderRejected:
		return creates || asks
	case fault.ProviderUnavailable, fault.ProviderTimeout, fault.NoConnection:
		return creates || asks || op.CancelOf != ""
	case fault.AuthFailed, fault.MerchantSuspended, fault.ScopeMissing, fault.PolicyDenied, fault.InvalidRequest, fault.UnsupportedMediaType,
		fault.PayloadTooLarge, fault.RateLimited, fault.QuotaExceeded, fault.Internal:
	}
	return true
}

// failure refers to the response of errors that share a status, with the meaning and an
// example of each.
func (d *describer) failure(codes ...fault.Code) object {
	row := fault.RowOf(codes[0])
	name := strconv.Itoa(row.Status)
	meaning, examples, headers := "", object{}, headerRefs("X-Request-Id", "X-Svc-Version")
	for _, code := range codes {
		row := fault.RowOf(code)
		name += "." + string(code)
		meaning += "- `" + string(code) + "`: " + row.When + "\n"
		d.errors[string(code)] = object{"summary": row.When, "value": exampleFailure(row)}
		examples[string(code)] = object{"$ref": "#/components/examples/" + string(code)}
		maps.Copy(headers, headerRefs(headersOf(row)...))
	}
	d.failures[name] = object{
		"description": meaning,
		"headers":     headers,
		"content": object{"application/json": object{
			"schema":   object{"$ref": "#/components/schemas/Error"},
			"examples": examples,
		}},
	}
	return object{"$ref": "#/components/responses/" + name}
}

func requestExamples(examples []example) object {
	shown := object{}
	for i, e := range examples {
		shown[nameOf(e, i)] = named(e, e.Request)
	}
	return shown
}

func answerExamples(examples []example, message, status bool) object {
	shown := object{}
	for i, e := range examples {
		answer := object{"success": true, "data": e.Data}
		if message {
			answer["message"] = e.Message
		}
		if status {
			answer["status"] = e.Status
		}
		shown[nameOf(e, i)] = named(e, answer)
	}
	return shown
}

func nameOf(e example, i int) string {
	if e.Name != "" {
		return e.Name
	}
	return "example" + strings.Repeat("_", i)
}

func named(e example, value any) object {
	if e.Summary == "" {
		return object{"value": value}
	}
	return object{"summary": e.Summary, "value": value}
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
	case fault.DuplicateTransfer:
		example["data"] = object{"refId": "0b0f6a526ef38b0c9d2a0f5b6a1f2c11", "status": "Success", "created_at": exampleTime}
	case fault.ProviderTimeout:
		example["external_id"] = "INV/2026/#001"
	case fault.RateLimited:
		example["retry_at"] = exampleTime
	case fault.QuotaExceeded:
		example["retry_at"], example["remaining_quota"] = exampleTime, 0
	}
	return example
}

// describeErrors are the schemas of errors.
func describeErrors() schemas {
	codes := make([]any, len(fault.Table))
	for i, row := range fault.Table {
		codes[i] = row.Code
	}
	text := func(description string) object { return object{"type": "string", "description": description} }
	return schemas{
		"FieldError": object{
			"type": "object", "required": []any{"field", "message"},
			"properties": object{
				"field":   text("The field's name; within an object with a dot, metadata.note."),
				"message": text("What is wrong with it."),
			},
		},
		"Error": object{
			"type":     "object",
			"required": []any{"success", "message", "error_code", "request_id", "sent", "retry"},
			"properties": object{
				"success":    object{"type": "boolean", "const": false},
				"message":    text("For people; it may change."),
				"error_code": object{"type": "string", "enum": codes, "description": "For machines; the set is only ever added to."},
				"request_id": text("The same as the header X-Request-Id; quote it when you ask about a request."),
				"errors": object{
					"type": "array", "items": object{"$ref": "#/components/schemas/FieldError"},
					"description": "Set when fields are at fault.",
				},
				"sent": object{
					"type":        "string",
					"enum":        []any{fault.SentNo, fault.SentRefused, fault.SentUnknown},
					"description": "Whether the provider got the request: no, it refused it, or nobody knows yet.",
				},
				"retry": object{
					"type":        "string",
					"enum":        []any{fault.RetryNever, fault.RetryAfterChange, fault.RetryLater, fault.RetryLookupFirst},
					"description": "What the same reference may be used for next.",
				},
				"retry_at":        object{"type": "string", "format": "date-time", "description": "Set where waiting helps."},
				"external_id":     text("The reference, where one was given or generated."),
				"ref_id":          text("The reference, where one was given or generated."),
				"remaining_quota": object{"type": "integer", "format": "int64", "description": "0 with QUOTA_EXCEEDED."},
				"data": object{
					"type": "object", "required": []any{"status", "created_at"},
					"description": "Set with DUPLICATE_TRANSFER: the earlier transfer.",
					"properties": object{
						"refId":      text("Its id, of a transfer to a wallet."),
						"txId":       text("Its id, of a transfer to a bank."),
						"status":     text("How it stands: Pending or Success."),
						"created_at": object{"type": "string", "format": "date-time", "description": "When it was made."},
					},
				},
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

// usedHeaders are the headers that a part of the document refers to.
func usedHeaders(parts ...object) object {
	all := describeHeaders()
	text, err := json.Marshal(parts)
	if err != nil {
		return all
	}
	for name := range all {
		if !bytes.Contains(text, []byte(`"#/components/headers/`+name+`"`)) {
			delete(all, name)
		}
	}
	return all
}

func headerRef(name string) object { return object{"$ref": "#/components/headers/" + name} }

func headerRefs(names ...string) object {
	refs := object{}
	for _, name := range names {
		refs[name] = headerRef(name)
	}
	return refs
}
