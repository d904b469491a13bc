package manifest_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

const counter = `{
	"manifest": 1, "name": "counter", "version": "1.0.0", "title": "Counter", "owner": "platform",
	"lookup": "resubmit", "settles_within": "30s", "lookup_every": "1m", "resubmit_within": "2040h", "account": "/user",
	"references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {"type": "object", "properties": {"user": {"type": "string"}, "limit": {"type": "integer"}}},
	"operations": [
		{
			"path": "/counter/products", "kind": "query", "summary": "List", "timeout": "5s", "cache": "5m", "filter": ["type"], "get": true,
			"markup": [{"price": "/price", "product": "/sku", "when": {"type": "Prepaid"}}],
			"request": {"type": "object", "properties": {"type": {"type": "string"}, "size": {"type": "integer"}}},
			"result": {"type": "array"}, "response": {"type": "array"}
		},
		{
			"path": "/counter/order", "kind": "order", "summary": "Order", "timeout": "10s", "reference": "/id", "amount": "/qty", "quote": true,
			"product": {"list": "/counter/products", "key": "/sku", "field": "/sku", "available": "/on"},
			"request": {"type": "object", "additionalProperties": false,
				"properties": {"id": {"type": "string"}, "sku": {"type": "string"}, "qty": {"type": "integer", "minimum": 0, "maximum": 1000000}}},
			"result": {"type": "object"}, "response": {"type": "object"}
		},
		{"path": "/counter/status", "status_of": "/counter/order", "summary": "Status", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}}
	]
}`

// counterWith is the manifest with the value at a place replaced, or taken away.
func counterWith(t *testing.T, value any, place ...any) []byte {
	t.Helper()
	var document any
	if err := json.Unmarshal([]byte(counter), &document); err != nil {
		t.Fatal(err)
	}
	at := document
	for _, step := range place[:len(place)-1] {
		switch step := step.(type) {
		case string:
			at = at.(map[string]any)[step]
		case int:
			at = at.([]any)[step]
		}
	}
	name := place[len(place)-1].(string)
	if at.(map[string]any)[name] = value; value == nil {
		delete(at.(map[string]any), name)
	}
	encoded, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestAccountIn(t *testing.T) {
	t.Parallel()
	for credentials, want := range map[string]string{
		`{"user": "shop-1", "key": "k"}`: "shop-1",
		`{"key": "k"}`:                   "",
		`{"user": 7}`:                    "",
		`{"user": {"user": "inner"}}`:    "",
		`["user"]`:                       "",
		`{"user": "cut`:                  "",
		"":                               "",
	} {
		if got := (&manifest.Manifest{Account: "/user"}).AccountIn([]byte(credentials)); got != want {
			t.Errorf("%s is for %q, want %q", credentials, got, want)
		}
	}
	for credentials, want := range map[string]string{`{"client": "c", "wallet": "w"}`: "c w", `{"client": "c"}`: ""} {
		if got := (&manifest.Manifest{Account: "/client /wallet"}).AccountIn([]byte(credentials)); got != want {
			t.Errorf("%s is for %q, want %q", credentials, got, want)
		}
	}
	if got := (&manifest.Manifest{Account: "/a~1b"}).AccountIn([]byte(`{"a/b": "escaped"}`)); got != "escaped" {
		t.Errorf("an escaped name: %q", got)
	}
	if got := (&manifest.Manifest{}).AccountIn([]byte(`{"": "unnamed"}`)); got != "" {
		t.Errorf("a manifest that names no account: %q", got)
	}
}

func TestParseOrders(t *testing.T) {
	t.Parallel()
	m, err := manifest.Parse([]byte(counter))
	if err != nil {
		t.Fatal(err)
	}
	order, _ := m.Operation("/counter/order")
	list, _ := m.Operation("/counter/products")
	if m.Owner != manifest.OwnerPlatform || m.AccountFields()[0] != "user" || time.Duration(m.LookupEvery) != time.Minute {
		t.Errorf("got %+v", m)
	}
	p := order.Product
	if !order.Quote || p.KeyField() != "sku" || p.RequestField() != "sku" || p.AvailableField() != "on" {
		t.Errorf("got %+v", order)
	}
	if k := list.Markup[0]; k.PriceField() != "price" || k.ProductField() != "sku" || !list.Get || time.Duration(list.Cache) != 5*time.Minute {
		t.Errorf("got %+v", list)
	}
	if _, err := manifest.Parse(counterWith(t, nil, "operations", 1, "amount")); err != nil {
		t.Errorf("an order that is told no amount: %v", err)
	}
}

func TestParseRefusesOrders(t *testing.T) {
	t.Parallel()
	for want, document := range map[string][]byte{
		"reports_late: must be given with":           counterWith(t, true, "statements"),
		"reports_late: must be given with statement": counterWith(t, "2h", "reports_late"),
		"reports_late_of: \"/key\" must point":       counterWith(t, "/key", "reports_late_of"),
		"statements: a collection is paid by a row":  counterWith(t, "collection", "operations", 1, "kind"),
		"owner: \"nobody\"":                          counterWith(t, "nobody", "owner"),
		"resubmit_within: must be given":             counterWith(t, nil, "resubmit_within"),
		"resubmit_buys_within: must be a span":       counterWith(t, "2041h", "resubmit_buys_within"),
		"account: \"\" must point":                   counterWith(t, nil, "account"),
		"account: \"/limit\" must point":             counterWith(t, "/limit", "account"),
		"quote: an order needs one":                  counterWith(t, false, "operations", 1, "quote"),
		"quote: is for orders and transfers":         counterWith(t, true, "operations", 0, "quote"),
		"product: a cached query has none":           counterWith(t, counterProduct("/sku"), "operations", 0, "product"),
		"only orders can be made on the platform's":  counterWith(t, "transfer", "operations", 1, "kind"),
		"product/list: \"/counter/none\" is no":      counterWith(t, "/counter/none", "operations", 1, "product", "list"),
		"product/list: \"/counter/products\" is no":  counterWith(t, nil, "operations", 0, "cache"),
		"product/field: \"/qty\" must point":         counterWith(t, "/qty", "operations", 1, "product", "field"),
		"product: key and available must point":      counterWith(t, "on", "operations", 1, "product", "available"),
		"cache: must be at least 1s":                 counterWith(t, "10ms", "operations", 0, "cache"),
		"filter/0: \"size\" is no string":            counterWith(t, []any{"size"}, "operations", 0, "filter"),
		"markup/0: price and product must point":     counterWith(t, []any{map[string]any{"price": "price", "product": "/sku"}}, "operations", 0, "markup"),
		"get and scope: are for queries":             counterWith(t, true, "operations", 1, "get"),
		"1: cache, common":                           counterWith(t, true, "operations", 1, "common"),
		"scope: is transfer":                         counterWith(t, "everything", "operations", 0, "scope"),
	} {
		if _, err := manifest.Parse(document); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a fault with %q", err, want)
		}
	}
}

func counterProduct(field string) map[string]any {
	return map[string]any{"list": "/counter/products", "key": "/sku", "field": field, "available": "/on"}
}

// A query may be about a product, too.
func TestParseQueriesOfProducts(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		"/sku": "", "/none": "product/field: \"/none\" must point", "/sku for all": "common: is for cached queries",
	} {
		field, common := strings.CutSuffix(field, " for all")
		query := map[string]any{
			"common": common,
			"path":   "/counter/bill", "kind": "query", "summary": "Ask", "timeout": "5s", "product": counterProduct(field),
			"request":  map[string]any{"type": "object", "properties": map[string]any{"sku": map[string]any{"type": "string"}}},
			"result":   map[string]any{"type": "object"},
			"response": map[string]any{"type": "object"},
		}
		var whole map[string]any
		if err := json.Unmarshal([]byte(counter), &whole); err != nil {
			t.Fatal(err)
		}
		operations, _ := whole["operations"].([]any)
		whole["operations"] = append(operations, query)
		document, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse(document)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Fatalf("%s: got %v, want %q", field, err, want)
		}
		if err != nil {
			continue
		}
		if op, _ := m.Operation("/counter/bill"); op.Product == nil || op.Product.RequestField() != "sku" {
			t.Errorf("got %+v", op)
		}
	}
}
