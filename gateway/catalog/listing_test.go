package catalog_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const shopManifest = `{
	"manifest": 1, "name": "shop", "version": "1.0.0", "title": "A shop", "references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {"type": "object"},
	"operations": [
		{
			"path": "/shop/products", "kind": "query", "summary": "List", "timeout": "5s", "cache": "1m", "filter": ["type"], "get": true,
			"markup": [{"price": "/price", "product": "/sku", "when": {"type": "Prepaid"}}],
			"request": {"type": "object", "properties": {"type": {"enum": ["prepaid", "pasca"], "type": "string"}}},
			"result": {"type": "array", "items": {"type": "object", "required": ["sku", "price"]}},
			"response": {"type": "array", "items": {"type": "object", "properties": {
				"sku": {"type": "string"}, "type": {"type": "string"}, "price": {"type": "integer"}}}}
		},
		{
			"path": "/shop/bill", "kind": "query", "summary": "Tell a bill", "timeout": "5s",
			"markup": [{"price": "/qty", "product": "/sku"}, {"price": "/amount", "product": "/sku"}],
			"request": {"type": "object", "properties": {}}, "result": {"type": "object"},
			"response": {"type": "object", "properties": {"sku": {"type": "string"}, "qty": {"type": "integer"}, "amount": {"type": "integer"}, "note": {"type": "string"}}}
		}
	]
}`

func shop(t *testing.T) *catalog.Snapshot {
	t.Helper()
	m, err := manifest.Parse([]byte(shopManifest))
	if err != nil {
		t.Fatal(err)
	}
	s, err := catalog.Build([]*manifest.Manifest{m})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// markups are what some merchant pays beside prices.
type markups struct{}

func (markups) Of(product string) money.Amount {
	return map[string]money.Amount{"a": 100, "b": 7}[product]
}
func (markups) Name() string { return "some" }

const products = `[
	{"sku": "a", "type": "Prepaid", "price": 1000, "cost": 900},
	{"sku": "b", "cost": 1, "type": "Pasca", "price": 2500},
	{"price": 50, "type": "Prepaid", "sku": "c/d"}
]`

func TestListingsAreShownAsTheContractHasThem(t *testing.T) {
	t.Parallel()
	op, _ := shop(t).ByPath("/shop/products")
	answered := []byte(products)
	listing, err := op.Read(answered)
	if err != nil || string(answered) != products {
		t.Fatalf("read %s, %v", answered, err)
	}
	const a, b, c = `{"sku":"a","type":"Prepaid","price":1100}`, `{"sku":"b","type":"Pasca","price":2500}`, `{"price":50,"type":"Prepaid","sku":"c/d"}`
	for filter, want := range map[string]string{
		"": a + "," + b + "," + c, "prepaid": a + "," + c, "pasca": b, "Prepaid": a + "," + c, "none": "",
	} {
		body := catalog.Document{}
		if filter != "" {
			body["type"] = filter
		}
		got, err := listing.Show(body, markups{})
		if err != nil || string(got) != "["+want+"]" {
			t.Errorf("filter %q: %s, %v", filter, got, err)
		}
		if !json.Valid(got) {
			t.Errorf("filter %q: not JSON: %s", filter, got)
		}
	}
	if item, found := listing.Find("sku", "a"); !found || !strings.Contains(string(item), `"cost": 900`) {
		t.Errorf("found %s, %t: not as the provider gave it", item, found)
	}
	if _, found := listing.Find("sku", "z"); found {
		t.Error("found what is not there")
	}
}

func TestAnAnswerMayHaveSeveralPrices(t *testing.T) {
	t.Parallel()
	op, _ := shop(t).ByPath("/shop/bill")
	listing, err := op.Read([]byte(`{"sku":"b","amount":90,"secret":true,"qty":100,"note":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := listing.Show(nil, markups{})
	if want := `{"sku":"b","amount":97,"qty":107,"note":"x"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	op, _ := shop(t).ByPath("/shop/products")
	for what, result := range map[string]string{
		"not the schema's": `[{"sku":"a"}]`, "no JSON": `[`, "a price with a fraction": `[{"sku":"a","type":"Prepaid","price":1.5}]`,
		"a price of text": `[{"sku":"a","type":"Prepaid","price":"x"}]`,
	} {
		if _, err := op.Read([]byte(result)); err == nil {
			t.Errorf("%s was taken", what)
		}
	}
	listing, err := op.Read([]byte(`[{"sku":"a","type":"Prepaid","price":9223372036854775807}]`))
	if err == nil {
		_, err = listing.Show(nil, markups{})
	}
	if err == nil {
		t.Error("a sum beyond all amounts was shown")
	}
}

func TestQueriesThatMayBeGotAreDescribed(t *testing.T) {
	t.Parallel()
	var document struct {
		Paths map[string]map[string]struct {
			Parameters []struct{ Name, In string }
			Body       json.RawMessage `json:"requestBody"`
		}
	}
	if err := json.Unmarshal(shop(t).OpenAPI(), &document); err != nil {
		t.Fatal(err)
	}
	get, described := document.Paths["/shop/products"]["get"]
	if !described || get.Body != nil || len(get.Parameters) != 3 || get.Parameters[1].Name != "secret_key" || get.Parameters[1].In != "query" {
		t.Errorf("described as %+v", get)
	}
	if _, described := document.Paths["/shop/bill"]["get"]; described {
		t.Error("what can't be got is described so")
	}
}
