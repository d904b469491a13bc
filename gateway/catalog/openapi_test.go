package catalog_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

var update = flag.Bool("update", false, "write the golden files")

const golden = "testdata/openapi.json"

func bodyOf(t testing.TB, text []byte) catalog.Document {
	t.Helper()
	return document(t, string(text))
}

// all is what a gateway with every shipped provider offers.
func all(t testing.TB) *catalog.Snapshot {
	t.Helper()
	var manifests []*manifest.Manifest
	for _, name := range []string{"payments", "ppob", "wallet1", "wallet2"} {
		manifests = append(manifests, load(t, "../../plugins/"+name+"/manifest.json"))
	}
	s, err := catalog.Build(manifests)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOpenAPIGolden(t *testing.T) {
	t.Parallel()
	got := append(bytes.Clone(all(t).OpenAPI()), '\n')
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the document is not %s any more; see the difference after go test ./gateway/catalog -update", golden)
	}
}

func TestOpenAPIIsValidAndWhole(t *testing.T) {
	t.Parallel()
	snapshot := all(t)
	document, err := openapi3.NewLoader().LoadFromData(snapshot.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := document.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if document.OpenAPI != "3.1.0" || document.Info.Version != catalog.APIVersion {
		t.Errorf("it says OpenAPI %s, version %s", document.OpenAPI, document.Info.Version)
	}
	for _, op := range snapshot.Operations() {
		described := document.Paths.Value(op.Path)
		if described == nil || described.Post == nil {
			t.Errorf("%s is not described", op.Path)
			continue
		}
		body := described.Post.RequestBody.Value.Content["application/json"].Schema.Value
		for _, name := range []string{"secret_key", "merchant_id", op.ReferenceField()} {
			if name != "" && body.Properties[name] == nil {
				t.Errorf("%s: the body has no %s", op.Path, name)
			}
		}
		if needs := strings.Contains(strings.Join(body.Required, " "), "merchant_id"); needs != op.NeedsMerchantID() {
			t.Errorf("%s: merchant_id required: %v, want %v", op.Path, needs, op.NeedsMerchantID())
		}
		if callback := described.Post.Parameters.GetByInAndName("header", "X-Callback-URL") != nil; callback != op.Money() {
			t.Errorf("%s: X-Callback-URL offered: %v, want %v", op.Path, callback, op.Money())
		}
	}
}

// What may be asked by GET may be asked in the query of a POST, too, without a body.
func TestOpenAPITellsOfQueries(t *testing.T) {
	t.Parallel()
	snapshot, err := catalog.Build([]*manifest.Manifest{load(t, "../../plugins/ppob/manifest.json")})
	if err != nil {
		t.Fatal(err)
	}
	document, err := openapi3.NewLoader().LoadFromData(snapshot.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(document.Info.Description, "Every operation is a POST") || !strings.Contains(document.Info.Description, "GET") {
		t.Errorf("it begins with %s", document.Info.Description)
	}
	for path, byGet := range map[string]bool{"/ppob/products": true, "/ppob/order": false} {
		described := document.Paths.Value(path)
		if body := described.Post.RequestBody.Value; body.Required == byGet || (described.Get != nil) != byGet {
			t.Errorf("%s: a body is required: %v, by GET: %v", path, body.Required, described.Get != nil)
		}
		if !byGet {
			continue
		}
		for _, operation := range []*openapi3.Operation{described.Post, described.Get} {
			for _, name := range []string{"secret_key", "type"} {
				if p := operation.Parameters.GetByInAndName("query", name); p == nil || p.Required {
					t.Errorf("%s, %s: the parameter %s is %+v", path, operation.OperationID, name, p)
				}
			}
		}
		if described.Get.RequestBody != nil {
			t.Errorf("%s: a GET has a body", path)
		}
	}
}

func TestOpenAPITellsOfCallbacks(t *testing.T) {
	t.Parallel()
	document, err := openapi3.NewLoader().LoadFromData(payments(t).OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	status := document.Paths.Value("/payments/status").Post.Responses.Value("200").Value.
		Content["application/json"].Schema.Value.Properties["data"].Value
	for _, name := range []string{"payments.status_update", "payments.paid_late", "payments.amount_differs", "payments.returned"} {
		webhook := document.Webhooks[name]
		if webhook == nil || webhook.Post == nil {
			t.Errorf("%s is not described", name)
			continue
		}
		for _, header := range []string{"webhook-id", "webhook-timestamp", "webhook-signature", "X-Svc-Signature", "X-Svc-Event-Sequence"} {
			if webhook.Post.Parameters.GetByInAndName("header", header) == nil {
				t.Errorf("%s: the header %s is not described", name, header)
			}
		}
		body := webhook.Post.RequestBody.Value.Content["application/json"].Schema.Value
		data := body.Properties["data"].Value
		if body.Properties["event"].Value.Const != name || !slices.Equal(data.Required, append(slices.Clone(status.Required), "timestamp")) ||
			len(data.Properties) != len(status.Properties)+2 {
			t.Errorf("%s: the body is described as %+v", name, body)
		}
	}
	if len(document.Webhooks) != 6 {
		t.Errorf("%d webhooks are described", len(document.Webhooks))
	}
}

func TestCallbacksOfSeveralProvidersOfOneKind(t *testing.T) {
	t.Parallel()
	other := load(t, paymentsManifest)
	other.Name = "other"
	for i := range other.Operations {
		op := &other.Operations[i]
		for _, path := range []*string{&op.Path, &op.StatusOf, &op.CancelOf} {
			*path = strings.Replace(*path, "/payments/", "/other/", 1)
		}
	}
	s, err := catalog.Build([]*manifest.Manifest{load(t, paymentsManifest), other})
	if err != nil {
		t.Fatal(err)
	}
	document, err := openapi3.NewLoader().LoadFromData(s.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	body := document.Webhooks["payments.returned"].Post.RequestBody.Value.Content["application/json"].Schema.Value
	if data := body.Properties["data"].Value; len(data.AnyOf) != 2 {
		t.Errorf("data is described as %+v", data)
	}
}

func TestOpenAPIHasEveryErrorOfTheTable(t *testing.T) {
	t.Parallel()
	document, err := openapi3.NewLoader().LoadFromData(all(t).OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range fault.Table {
		example := document.Components.Examples[string(row.Code)]
		if example == nil {
			t.Errorf("%s has no example", row.Code)
			continue
		}
		value := example.Value.Value.(map[string]any)
		if value["error_code"] != string(row.Code) || value["sent"] != string(row.Sent) || value["retry"] != string(row.Retry) {
			t.Errorf("%s: the example says %+v, the table %+v", row.Code, value, row)
		}
	}
}

// An operation is described with the errors that it can give, and no others.
func TestOpenAPIHasOnlyErrorsThatCanCome(t *testing.T) {
	t.Parallel()
	document, err := openapi3.NewLoader().LoadFromData(all(t).OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct{ can, cannot []fault.Code }{
		"/balance":               {[]fault.Code{fault.AuthFailed, fault.RateLimited}, []fault.Code{fault.NotFound, fault.ProviderTimeout, fault.DuplicateReference, fault.MethodNotAllowed}},
		"/payments/list":         {[]fault.Code{fault.InvalidRequest}, []fault.Code{fault.NotFound, fault.ProviderUnavailable}},
		"/payments/create":       {[]fault.Code{fault.DuplicateReference, fault.InProgress, fault.ProviderTimeout, fault.PolicyDenied}, []fault.Code{fault.NotFound, fault.InsufficientBalance}},
		"/payments/status":       {[]fault.Code{fault.NotFound}, []fault.Code{fault.DuplicateReference, fault.ProviderRejected, fault.ProviderUnavailable}},
		"/payments/cancel":       {[]fault.Code{fault.NotFound, fault.ProviderUnavailable, fault.ProviderTimeout}, []fault.Code{fault.DuplicateReference}},
		"/ppob/order":            {[]fault.Code{fault.InsufficientBalance, fault.ProductUnavailable, fault.DestinationInvalid}, []fault.Code{fault.NotFound}},
		"/wallet1/transfer/bank": {[]fault.Code{fault.DestinationInvalid, fault.ProviderRejected, fault.InProgress}, []fault.Code{fault.NotFound, fault.InsufficientBalance}},
		"/wallet1/inquiry":       {[]fault.Code{fault.DestinationInvalid, fault.QuotaExceeded, fault.ProviderTimeout}, []fault.Code{fault.NotFound, fault.DuplicateReference}},
		"/wallet2/status":        {[]fault.Code{fault.QuotaExceeded, fault.NotFound}, []fault.Code{fault.InProgress}},
	} {
		described := map[fault.Code]bool{}
		for _, response := range document.Paths.Value(path).Post.Responses.Map() {
			for code := range response.Value.Content["application/json"].Examples {
				described[fault.Code(code)] = true
			}
		}
		for _, code := range want.can {
			if !described[code] {
				t.Errorf("%s can give %s, which is not described", path, code)
			}
		}
		for _, code := range want.cannot {
			if described[code] {
				t.Errorf("%s never gives %s, which is described", path, code)
			}
		}
	}
}

// Every answer that is described has a name and an example that fits it, every request
// one without a key in it, and aliases stay unsaid.
func TestOpenAPIHasNamesAndExamples(t *testing.T) {
	t.Parallel()
	snapshot := all(t)
	document, err := openapi3.NewLoader().LoadFromData(snapshot.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Payment", "Collection", "Order", "Transfer", "Error", "PaymentsStatusUpdate", "PaymentsPaidLate", "PpobReturned", "TransferStatusUpdate"} {
		if document.Components.Schemas[name] == nil {
			t.Errorf("no schema is named %s", name)
		}
	}
	for _, op := range snapshot.Operations() {
		post := document.Paths.Value(op.Path).Post
		content := post.RequestBody.Value.Content["application/json"]
		if content.Schema.Ref == "" || len(content.Examples) == 0 || post.Description == "" {
			t.Errorf("%s: the request is described by %q, with %d examples", op.Path, content.Schema.Ref, len(content.Examples))
		}
		for name, e := range content.Examples {
			body := e.Value.Value.(map[string]any)
			if body["secret_key"] != nil {
				t.Errorf("%s: the example %s has a key in it", op.Path, name)
			}
			delete(body, "merchant_id")
			if encoded, err := json.Marshal(body); err != nil || len(op.Check(bodyOf(t, encoded))) > 0 {
				t.Errorf("%s: the example %s is refused: %v %v", op.Path, name, op.Check(bodyOf(t, encoded)), err)
			}
		}
		answer := post.Responses.Value("200").Value.Content["application/json"]
		data := answer.Schema.Value.Properties["data"]
		if data.Ref == "" && (data.Value.Items == nil || data.Value.Items.Ref == "") {
			t.Errorf("%s: what it answers has no name", op.Path)
		}
		for name, e := range answer.Examples {
			if err := answer.Schema.Value.VisitJSON(e.Value.Value, openapi3.EnableJSONSchema2020()); err != nil {
				t.Errorf("%s: the answer %s does not fit: %v", op.Path, name, err)
			}
		}
	}
	for name, webhook := range document.Webhooks {
		if content := webhook.Post.RequestBody.Value.Content["application/json"]; content.Schema.Ref == "" || content.Example == nil {
			t.Errorf("the callback %s has no name or no example", name)
		} else if err := content.Schema.Value.VisitJSON(content.Example, openapi3.EnableJSONSchema2020()); err != nil {
			t.Errorf("the callback %s: its example does not fit: %v", name, err)
		}
	}
	status := document.Paths.Value("/wallet1/transfer/status").Post.RequestBody.Value.Content["application/json"].Schema.Value
	if status.Properties["refId"] == nil || status.Properties["ref_id"] != nil || status.Properties["tx_id"] != nil {
		t.Error("a transfer's status shows aliases, or not what they stand for")
	}
	payment := document.Components.Schemas["Payment"].Value.Properties["metadata"].Value
	if open := payment.AdditionalProperties.Schema; open == nil || !open.Value.Type.Is("string") {
		t.Error("metadata is not open")
	}
}

// Generators of code take the document as it is: each constant and enumeration has a type,
// amounts have 64 bits, and nothing has a default, of which some make something required.
func TestOpenAPIForGenerators(t *testing.T) {
	t.Parallel()
	stranger := load(t, "../../plugins/examples/node/manifest.json")
	request := &stranger.Operations[0].Request
	*request = bytes.Replace(*request, []byte(`"properties": {`),
		[]byte(`"properties": {"lines": {"type": "array", "items": {"type": "object", "properties": {"unit": {"enum": [1, 2], "default": 1}}}},`), 1)
	strangers, err := catalog.Build([]*manifest.Manifest{stranger})
	if err == nil && !bytes.Contains(strangers.OpenAPI(), []byte("Defaults to 1.")) {
		t.Error("the field within a list's elements is not described")
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, snapshot := range []*catalog.Snapshot{all(t), strangers} {
		var document map[string]any
		if err := json.Unmarshal(snapshot.OpenAPI(), &document); err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, part := range []string{"paths", "webhooks", "components"} {
			seen += forGenerators(t, part, document[part])
		}
		if seen < 10 {
			t.Errorf("only %d constants and enumerations were looked at", seen)
		}
	}
}

// forGenerators looks at every schema below a part of the document, and counts those of
// few values.
func forGenerators(t *testing.T, at string, part any) (few int) {
	t.Helper()
	switch part := part.(type) {
	case []any:
		for _, element := range part {
			few += forGenerators(t, at, element)
		}
	case map[string]any:
		_, constant := part["const"]
		_, enumeration := part["enum"].([]any)
		if constant || enumeration {
			few++
			if kind, is := part["type"].(string); !is || kind == "" {
				t.Errorf("%s has no type: %v", at, part)
			}
		}
		if most, bounded := part["maximum"].(float64); part["type"] == "integer" && !constant && (!bounded || most > 1<<31-1) && part["format"] != "int64" {
			t.Errorf("%s fits into 32 bits for a generator", at)
		}
		if _, is := part["default"]; is {
			t.Errorf("%s has a default", at)
		}
		for name, member := range part {
			if name != "example" && name != "examples" {
				few += forGenerators(t, at+"/"+name, member)
			}
		}
	}
	return few
}

// What a provider declares that nobody has written examples for is described with made
// ones.
func TestOpenAPIOfAStrangersProvider(t *testing.T) {
	t.Parallel()
	snapshot, err := catalog.Build([]*manifest.Manifest{load(t, "../../plugins/examples/node/manifest.json")})
	if err != nil {
		t.Fatal(err)
	}
	document, err := openapi3.NewLoader().LoadFromData(snapshot.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range snapshot.Operations() {
		post := document.Paths.Value(op.Path).Post
		if len(post.RequestBody.Value.Content["application/json"].Examples) == 0 || len(post.Responses.Value("200").Value.Content["application/json"].Examples) == 0 {
			t.Errorf("%s has no examples", op.Path)
		}
	}
	if document.Components.Schemas["Payment"] == nil {
		t.Error("its payments have no name")
	}
}

func TestOpenAPIDescribesTheEnvelope(t *testing.T) {
	t.Parallel()
	document, err := openapi3.NewLoader().LoadFromData(payments(t).OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	described := document.Components.Schemas["Error"].Value
	for field := range reflect.TypeFor[fault.Envelope]().Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if described.Properties[name] == nil || slices.Contains(described.Required, name) != (options == "") {
			t.Errorf("%s: described as %+v, required %t", name, described.Properties[name], slices.Contains(described.Required, name))
		}
	}
	if n := reflect.TypeFor[fault.Envelope]().NumField(); len(described.Properties) != n {
		t.Errorf("%d fields are described, the envelope has %d", len(described.Properties), n)
	}
}

func TestABadDocumentIsRefused(t *testing.T) {
	t.Parallel()
	m := load(t, paymentsManifest)
	m.Operations[0].Response = json.RawMessage(`{"$ref": "#/nowhere"}`)
	_, err := catalog.Build([]*manifest.Manifest{m})
	if err == nil || !strings.Contains(err.Error(), "OpenAPI") {
		t.Errorf("got %v, want a refusal that names the OpenAPI document", err)
	}
}
