package sandbox_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/ppob/sandbox"
)

// list reads a price list, or returns the code that refused it.
func (w *world) list(cmd string, filter object) (map[string]object, string) {
	w.t.Helper()
	body := object{"cmd": cmd, "username": username, "sign": sign("pricelist")}
	for key, value := range filter {
		body[key] = value
	}
	_, text, err := w.send("/v1/price-list", "", body)
	if err != nil {
		w.t.Fatal(err)
	}
	var whole struct{ Data []object }
	if json.Unmarshal(text, &whole) != nil {
		var refused struct{ Data object }
		if err := json.Unmarshal(text, &refused); err != nil {
			w.t.Fatalf("%s: %v", text, err)
		}
		return nil, refused.Data.text("rc")
	}
	items := map[string]object{}
	for _, item := range whole.Data {
		items[item.text("buyer_sku_code")] = item
	}
	return items, ""
}

func TestPrepaidList(t *testing.T) {
	t.Parallel()
	w := open(t)
	items, _ := w.list("prepaid", nil)
	want := []string{
		"brand", "buyer_product_status", "buyer_sku_code", "category", "desc", "end_cut_off", "multi", "price",
		"product_name", "seller_name", "seller_product_status", "start_cut_off", "stock", "type", "unlimited_stock",
	}
	if got := keys(items["xld10"]); !slices.Equal(got, want) {
		t.Errorf("fields %v", got)
	}
	if x := items["X100"]; x["price"] != 98000.0 || x["brand"] != "XL" || x["type"] != "Umum" || x["unlimited_stock"] != true {
		t.Errorf("X100: %v", x)
	}
	off := map[string]string{}
	for sku, item := range items {
		for _, field := range []string{"buyer_product_status", "seller_product_status", "unlimited_stock"} {
			if item[field] == false {
				off[field] += sku
			}
		}
	}
	if off["buyer_product_status"] != "isat25" || off["seller_product_status"] != "axis10" || off["unlimited_stock"] != "tri10" {
		t.Errorf("off: %v", off)
	}
	if items["pln"] != nil {
		t.Error("a bill is on the prepaid list")
	}
}

func TestPascaList(t *testing.T) {
	t.Parallel()
	w := open(t)
	items, _ := w.list("pasca", nil)
	want := []string{
		"admin", "brand", "buyer_product_status", "buyer_sku_code", "category", "commission", "desc", "product_name",
		"seller_name", "seller_product_status",
	}
	if got := keys(items["pln"]); !slices.Equal(got, want) {
		t.Errorf("fields %v", got)
	}
	if got := keys(items); !slices.Equal(got, keys(pascaNumbers)) {
		t.Errorf("products %v", got)
	}
}

func TestPriceAsText(t *testing.T) {
	t.Parallel()
	w := open(t, func(o *sandbox.Options) { o.PriceAsText = true })
	items, _ := w.list("prepaid", object{"code": "xld10"})
	if got := w.buy("R", "xld10", "087800001230"); items["xld10"]["price"] != "10850" || got["price"] != "10850" {
		t.Errorf("%v and %v", items["xld10"], got)
	}
}

func TestListFilters(t *testing.T) {
	t.Parallel()
	w := open(t, func(o *sandbox.Options) { o.ListEvery = 0 })
	for name, c := range map[string]struct {
		cmd    string
		filter object
		want   []string
	}{
		"code":               {"prepaid", object{"code": "S5"}, []string{"S5"}},
		"category":           {"prepaid", object{"category": "pln"}, []string{"pln100", "pln20", "pln50"}},
		"brand and category": {"prepaid", object{"brand": "XL", "category": "Data"}, []string{"xldata1"}},
		"type":               {"prepaid", object{"type": "Customer", "brand": "OVO"}, []string{"ovo100"}},
		"bill":               {"pasca", object{"brand": "SAMSAT"}, []string{"samsat"}},
		"no list named":      {"", object{"code": "S5"}, []string{"S5"}},
		"nothing":            {"pasca", object{"code": "xld10"}, nil},
	} {
		items, refused := w.list(c.cmd, c.filter)
		if got := keys(items); refused != "" || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v %s, want %v", name, got, refused, c.want)
		}
	}
}

func TestListThrottle(t *testing.T) {
	t.Parallel()
	w := open(t)
	for i, step := range []struct {
		after   time.Duration
		cmd     string
		filter  object
		refused string
	}{
		{0, "prepaid", nil, ""},
		{0, "pasca", nil, ""},
		{5*time.Minute - time.Second, "prepaid", nil, "83"},
		{0, "", nil, "83"},
		{0, "prepaid", object{"brand": "XL"}, "83"},
		{0, "prepaid", object{"code": "S5"}, ""},
		{0, "prepaid", object{"code": "S5"}, "83"},
		{0, "prepaid", object{"code": "X100"}, ""},
		{time.Second, "prepaid", object{"code": "S5"}, ""},
		{0, "prepaid", nil, ""},
	} {
		w.clock.Advance(step.after)
		if _, refused := w.list(step.cmd, step.filter); refused != step.refused {
			t.Errorf("step %d: %q, want %q", i, refused, step.refused)
		}
	}
}

func TestCatalogueGrows(t *testing.T) {
	t.Parallel()
	w := open(t)
	w.order(400, "catalogue", object{"more": 0})
	w.order(200, "catalogue", object{"more": 12})
	w.order(200, "catalogue", object{"more": 1})
	items, _ := w.list("prepaid", nil)
	added := 0
	for sku, item := range items {
		if strings.HasPrefix(sku, "more") {
			added++
			if item["price"].(float64) < 5_000 || item["buyer_product_status"] != true {
				t.Errorf("%s: %v", sku, item)
			}
		}
	}
	if added != 13 {
		t.Errorf("%d products were added, want 13", added)
	}
}
