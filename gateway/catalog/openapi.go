package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
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

// ServerURL stands in the document for the URL of the service, which the catalog does not
// know: whoever serves the document puts the real one there.
const ServerURL = "https://gerbang.invalid"

// describer makes one document.
type describer struct {
	documented
	schemas  schemas
	failures object // the responses of errors, by name
	errors   object // an example of each error
	tags     []tag  // that operations have
}

// describe makes the OpenAPI 3.1 document of the operations and validates it: a
// document that a client's tools cannot read is never served.
func describe(operations []*Operation) ([]byte, error) {
	known, err := readDocumented()
	if err != nil {
		return nil, err
	}
	d := &describer{documented: known, schemas: describeErrors(), failures: object{}, errors: object{}}
	paths := object{}
	for _, op := range operations {
		if paths[op.Path], err = d.describePath(op.described()); err != nil {
			return nil, fmt.Errorf("%s: %w", op.Path, err)
		}
	}
	paths["/openapi.json"] = object{"get": d.describeSelf()}
	webhooks, err := d.describeWebhooks(operations)
	if err != nil {
		return nil, err
	}
	document, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Gerbang", "version": APIVersion, "description": introduction,
			"license": object{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
			"contact": object{"name": "Documents", "url": ServerURL + "/docs"},
		},
		"servers":  []any{object{"url": ServerURL}},
		"security": []any{object{"bearer": []any{}}, object{}},
		"tags":     d.ordered(),
		"paths":    paths,
		"webhooks": webhooks,
		"components": object{
			"securitySchemes": object{"bearer": object{
				"type": "http", "scheme": "bearer",
				"description": "The secret key, in place of the body's secret_key. Where both are given they must be equal.",
			}},
			"schemas":   d.schemas,
			"headers":   usedHeaders(paths, d.failures),
			"responses": d.failures,
			"examples":  d.errors,
		},
	}, "", "  ")
	if err != nil {
		return nil, err
	}
	return document, checkDocument(document)
}

// valid holds the digests of the documents that were found valid. A start makes the same one twice, and to check it takes
// longer than to make it.
var valid sync.Map

func checkDocument(document []byte) error {
	digest := sha256.Sum256(document)
	if _, known := valid.Load(digest); known {
		return nil
	}
	loaded, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return err
	}
	// Examples fit by how they are chosen; to check them all again takes longer than the rest.
	if err := loaded.Validate(context.Background(), openapi3.DisableExamplesValidation()); err != nil {
		return err
	}
	valid.Store(digest, nil)
	return nil
}

// tag is the tag of a path or an event, which the document explains once.
func (d *describer) tag(name, otherwise string) []any {
	is := func(t tag) bool { return t.Name == name }
	if !slices.ContainsFunc(d.tags, is) {
		about := tag{Name: name, Description: otherwise}
		if at := slices.IndexFunc(d.Tags, is); at >= 0 {
			about = d.Tags[at]
		}
		d.tags = append(d.tags, about)
	}
	return []any{name}
}

// ordered are the tags in the order in which they are explained, then the others.
func (d *describer) ordered() []tag {
	place := func(t tag) int {
		if at := slices.IndexFunc(d.Tags, func(known tag) bool { return known.Name == t.Name }); at >= 0 {
			return at
		}
		return len(d.Tags)
	}
	slices.SortStableFunc(d.tags, func(a, b tag) int { return cmp.Compare(place(a), place(b)) })
	return d.tags
}

func (d *describer) describeSelf() object {
	return object{
		"operationId": "openapi",
		"summary":     "Get this description",
		"description": "Describes everything that is offered now, as OpenAPI 3.1.",
		"tags":        d.tag("openapi", ""),
		"security":    []any{object{}},
		"responses": object{
			"200": object{
				"description": "The OpenAPI document.",
				"content":     object{"application/json": object{"schema": object{"type": "object", "additionalProperties": true}}},
			},
			"304": object{"description": "What If-None-Match names is still the document."},
			"405": d.failure(fault.MethodNotAllowed), // by another method: as every path, and told once
		},
	}
}

// describePath describes an operation, by each method that it has.
func (d *describer) describePath(op *Operation) (object, error) {
	about := d.Operations[op.Path]
	examples, err := examplesOf(op, about)
	if err != nil {
		return nil, err
	}
	ref, schema, err := d.schemas.request(op, about)
	if err != nil {
		return nil, err
	}
	data, err := d.schemas.answer(op, about)
	if err != nil {
		return nil, err
	}
	described := object{
		"operationId": operationID(op.Path),
		"summary":     op.Summary,
		"description": cmp.Or(op.Description, about.Description, op.Summary+"."),
		"tags":        d.tag(strings.Split(op.Path, "/")[1], op.Manifest.Title),
		"requestBody": object{
			"required": true,
			"content":  object{"application/json": object{"schema": ref, "examples": requestExamples(examples)}},
		},
		"responses": d.describeResponses(op, data, examples),
	}
	if parameters := describeParameters(op); len(parameters) > 0 {
		described["parameters"] = parameters
	}
	if !op.Get {
		return object{"post": described}, nil
	}
	return object{"post": describePost(described, schema), "get": describeGet(op, described, schema, examples)}, nil
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
func describeGet(op *Operation, described, schema object, examples []example) object {
	get := maps.Clone(described)
	get["operationId"] = operationID(op.Path) + "Get"
	required, _ := schema["required"].([]any)
	get["responses"] = unlessKnown(described)
	get["parameters"] = queryParameters(schema, required, examples)
	delete(get, "requestBody")
	return get
}

// describePost describes an operation that also takes its parameters in the query:
// nothing is then required in the body.
func describePost(described, schema object) object {
	post := maps.Clone(described)
	body := maps.Clone(described["requestBody"].(object))
	body["required"] = false
	post["requestBody"] = body
	others, _ := described["parameters"].([]any)
	post["parameters"] = append(slices.Clone(others), queryParameters(schema, nil, nil)...)
	return post
}

// queryParameters returns a body's properties as parameters of a query, with the values
// of the first example.
func queryParameters(schema object, required []any, examples []example) []any {
	var values map[string]json.RawMessage
	if len(examples) > 0 {
		_ = json.Unmarshal(examples[0].Request, &values) // it fits the schema of an object
	}
	properties, _ := schema["properties"].(object)
	var parameters []any
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		parameter := object{
			"name": name, "in": "query", "required": slices.Contains(required, any(name)), "schema": properties[name],
		}
		if described, _ := properties[name].(object)["description"].(string); described != "" {
			parameter["description"] = described
		}
		if value, given := values[name]; given {
			parameter["example"] = value
		}
		parameters = append(parameters, parameter)
	}
	return parameters
}

func describeParameters(op *Operation) []any {
	var parameters []any
	if op.ReferenceField() != "" {
		parameters = append(parameters, object{
			"name": "Idempotency-Key", "in": "header",
			"description": "Counts as " + op.ReferenceField() + " where the body has none. Both and different is INVALID_REQUEST.",
			"schema":      object{"type": "string", "minLength": 1, "maxLength": 255},
			"example":     "INV/2026/#001",
		})
	}
	if op.Money() {
		parameters = append(parameters, object{
			"name": "X-Callback-URL", "in": "header",
			"description": "The absolute https URL, at port 443 or 8443, that receives status callbacks.",
			"schema":      object{"type": "string", "format": "uri", "maxLength": 2048},
			"example":     "https://shop.example/callbacks",
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
