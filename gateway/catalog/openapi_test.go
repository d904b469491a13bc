package catalog_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

var update = flag.Bool("update", false, "write the golden files")

const golden = "testdata/openapi.json"

func TestOpenAPIGolden(t *testing.T) {
	t.Parallel()
	got := append(bytes.Clone(payments(t).OpenAPI()), '\n')
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
	snapshot := payments(t)
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
	for _, name := range []string{"payments.status_update", "payments.paid_late", "payments.reversed"} {
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
			len(data.Properties) != len(status.Properties)+1 {
			t.Errorf("%s: the body is described as %+v", name, body)
		}
	}
	if len(document.Webhooks) != 3 {
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
	body := document.Webhooks["payments.reversed"].Post.RequestBody.Value.Content["application/json"].Schema.Value
	if data := body.Properties["data"].Value; len(data.AnyOf) != 2 {
		t.Errorf("data is described as %+v", data)
	}
}

func TestOpenAPIHasEveryErrorOfTheTable(t *testing.T) {
	t.Parallel()
	var document struct {
		Components struct {
			Responses map[string]struct {
				Description string
				Content     map[string]struct {
					Examples map[string]struct {
						Value struct {
							Code  fault.Code  `json:"error_code"`
							Sent  fault.Sent  `json:"sent"`
							Retry fault.Retry `json:"retry"`
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal(payments(t).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for status, response := range document.Components.Responses {
		for name, example := range response.Content["application/json"].Examples {
			seen++
			row := fault.RowOf(fault.Code(name))
			value := example.Value
			if value.Code != row.Code || value.Sent != row.Sent || value.Retry != row.Retry {
				t.Errorf("%s: the example says %+v, the table %+v", name, value, row)
			}
			if status != strconv.Itoa(row.Status) || !strings.Contains(response.Description, row.When) {
				t.Errorf("%s: status %s is wrong or has no time", name, status)
			}
		}
	}
	if seen != len(fault.Table) {
		t.Errorf("%d codes have an example, the table has %d", seen, len(fault.Table))
	}
}

func TestOpenAPIDescribesTheEnvelope(t *testing.T) {
	t.Parallel()
	document, err := openapi3.NewLoader().LoadFromData(payments(t).OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	described := document.Components.Schemas["Failure"].Value
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
