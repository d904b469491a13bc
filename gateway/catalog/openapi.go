package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// APIVersion is the version of the merchants' interface. Additions keep it.
const APIVersion = "1.2.0"

const introduction = `Operations are POSTs with a JSON object; those that take a GET, too, take query parameters in place of it. The secret key goes into the body as secret_key, or into the header
Authorization: Bearer. Success is HTTP 200 with success true and data; failure is HTTP 4xx or 500 with success false, message,
error_code and request_id. sent tells whether the provider got the request, retry what the same reference may be used for next.
Optional fields that are null or "" count as absent. Amounts are whole rupiah, times are ISO 8601 in UTC.
X-Request-Id is given by this service to each request; one that the caller sends is not taken over.`

// object is a JSON object of the document. Encoding sorts its keys, so the same
// operations always give the same bytes.
type object = map[string]any

// describe makes the OpenAPI 3.1 document of the operations and validates it: a
// document that a client's tools cannot read is never served.
func describe(operations []*Operation) ([]byte, error) {
	paths := object{"/openapi.json": object{"get": describeSelf()}}
	for _, op := range operations {
		described, err := describeOperation(op)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.Path, err)
		}
		paths[op.Path] = object{"post": described}
		if op.Get {
			paths[op.Path] = object{"post": describePost(described), "get": describeGet(op, described)}
		}
	}
	webhooks, err := describeWebhooks(operations)
	if err != nil {
		return nil, err
	}
	document, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Gerbang", "version": APIVersion, "description": introduction,
			"license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
		},
		"servers":  []any{object{"url": "/"}},
		"security": []any{object{"bearer": []any{}}, object{}},
		"paths":    paths,
		"webhooks": webhooks,
		"components": object{
			"securitySchemes": object{"bearer": object{
				"type": "http", "scheme": "bearer",
				"description": "The secret key, in place of the body's secret_key. Where both are given they must be equal.",
			}},
			"schemas":   describeSchemas(),
			"headers":   describeHeaders(),
			"responses": describeFailures(),
		},
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	return document, checkDocument(document)
}

func checkDocument(document []byte) error {
	loaded, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return err
	}
	return loaded.Validate(context.Background())
}

func describeSelf() object {
	return object{
		"operationId": "openapi",
		"summary":     "This document",
		"security":    []any{object{}},
		"responses": object{"200": object{
			"description": "The OpenAPI document of everything that is offered now.",
			"content":     object{"application/json": object{"schema": object{"type": "object"}}},
		}},
	}
}

func describeOperation(op *Operation) (object, error) {
	request, err := describeRequest(op)
	if err != nil {
		return nil, err
	}
	var response any
	if err := json.Unmarshal(op.Response, &response); err != nil {
		return nil, fmt.Errorf("response: %w", err)
	}
	described := object{
		"operationId": operationID(op.Path),
		"summary":     op.Summary,
		"tags":        []any{strings.Split(op.Path, "/")[1]},
		"requestBody": object{
			"required": true,
			"content":  object{"application/json": object{"schema": request}},
		},
		"responses": describeResponses(op, response),
	}
	if op.Description != "" {
		described["description"] = op.Description
	}
	if parameters := describeParameters(op); len(parameters) > 0 {
		described["parameters"] = parameters
	}
	return described, nil
}

// unlessKnown describes the responses to a GET, which may ask for what it does not have.
func unlessKnown(described object) object {
	responses, _ := described["responses"].(object)
	responses = maps.Clone(responses)
	success, _ := responses["200"].(object)
	success = maps.Clone(success)
	headers, _ := success["headers"].(object)
	headers = maps.Clone(headers)
	headers["ETag"] = headerRef("ETag")
	success["headers"] = headers
	responses["200"] = success
	responses["304"] = object{"description": "What If-None-Match names is still the answer.", "headers": headers}
	return responses
}

// describeGet describes the same operation with its parameters in the query.
func describeGet(op *Operation, described object) object {
	get := maps.Clone(described)
	get["operationId"] = operationID(op.Path) + "Get"
	schema := bodyOf(described)
	required, _ := schema["required"].([]any)
	get["responses"] = unlessKnown(described)
	get["parameters"] = queryParameters(schema, required)
	delete(get, "requestBody")
	return get
}

// describePost describes an operation that also takes its parameters in the query:
// nothing is then required in the body.
func describePost(described object) object {
	post := maps.Clone(described)
	body := maps.Clone(described["requestBody"].(object))
	body["required"] = false
	post["requestBody"] = body
	others, _ := described["parameters"].([]any)
	post["parameters"] = append(slices.Clone(others), queryParameters(bodyOf(described), nil)...)
	return post
}

func bodyOf(described object) object {
	return described["requestBody"].(object)["content"].(object)["application/json"].(object)["schema"].(object)
}

// queryParameters returns a body's properties as parameters of a query.
func queryParameters(schema object, required []any) []any {
	properties, _ := schema["properties"].(object)
	var parameters []any
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		parameters = append(parameters, object{
			"name": name, "in": "query", "required": slices.Contains(required, any(name)), "schema": properties[name],
		})
	}
	return parameters
}

// describeRequest describes the manifest's schema with the credentials, which belong
// to the gateway and not to the provider.
func describeRequest(op *Operation) (object, error) {
	var schema object
	if err := json.Unmarshal(op.Request, &schema); err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	properties, _ := schema["properties"].(object)
	if properties == nil {
		properties = object{}
	}
	properties["secret_key"] = object{
		"type": "string", "description": "The secret key, unless the header Authorization carries it.",
	}
	properties["merchant_id"] = object{
		"type": "string", "description": "Your merchant id; wherever it is sent it must be the key's own.",
	}
	schema["properties"] = properties
	if op.NeedsMerchantID() {
		required, _ := schema["required"].([]any)
		schema["required"] = append([]any{"merchant_id"}, required...)
	}
	return schema, nil
}

func describeParameters(op *Operation) []any {
	var parameters []any
	if op.ReferenceField() != "" {
		parameters = append(parameters, object{
			"name": "Idempotency-Key", "in": "header",
			"description": "Counts as " + op.ReferenceField() + " where the body has none. Both and different is INVALID_REQUEST.",
			"schema":      object{"type": "string", "minLength": 1, "maxLength": 255},
		})
	}
	if op.Money() {
		parameters = append(parameters, object{
			"name": "X-Callback-URL", "in": "header",
			"description": "The absolute https URL, at port 443 or 8443, that receives status callbacks.",
			"schema":      object{"type": "string", "format": "uri", "maxLength": 2048},
		})
	}
	return parameters
}

// NeedsMerchantID reports whether the contract requires merchant_id: for the
// operations that create a payment, at any provider.
func (op *Operation) NeedsMerchantID() bool { return op.Rules.NamesMerchant }

// operationID makes paymentsCreate of /payments/create.
func operationID(path string) string {
	words := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '-' || r == '_' })
	for i := range words[1:] {
		words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
	}
	return strings.Join(words, "")
}
