package digiflazz

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	prepaidItems = `{"product_name":"Xl 100.000","category":"Pulsa","brand":"XL","type":"Umum","seller_name":"S","price":98000,
"buyer_sku_code":"X100","buyer_product_status":true,"seller_product_status":true,"unlimited_stock":true,"stock":0,"multi":true,
"start_cut_off":"23:45","end_cut_off":"00:15","desc":"Pulsa Xl"}`
	pascaItems = `{"product_name":"Pln Postpaid","category":"Pascabayar","brand":"PLN","seller_name":"S","admin":2750,"commission":1800,
"buyer_sku_code":"pln","buyer_product_status":true,"seller_product_status":true,"desc":"-"}`
	throttled = `{"data":{"rc":"83","message":"limit","status":"Gagal"}}`
)

func lists(prepaid, pasca canned) map[string]canned {
	return map[string]canned{"/price-list prepaid": prepaid, "/price-list pasca": pasca}
}

func aList(items ...string) canned {
	return canned{200, `{"data":[` + strings.Join(items, ",") + `]}`}
}

func TestProducts(t *testing.T) {
	t.Parallel()
	up := newStub(t, lists(aList(prepaidItems), aList(pascaItems)))
	result := newAdapter().products(t.Context(), sdk.Call{Connection: connect(t, up.url)})
	want := `[{"buyer_sku_code":"X100","product_name":"Xl 100.000","category":"Pulsa","brand":"XL","type":"Prepaid","price":98000,"buyer_product_status":true,"desc":"Pulsa Xl"},` +
		`{"buyer_sku_code":"pln","product_name":"Pln Postpaid","category":"Pascabayar","brand":"PLN","type":"Pasca","price":2750,"buyer_product_status":true,"desc":"-"}]`
	if result.Outcome != sdk.Done || string(result.Data) != want {
		t.Errorf("got %+v, data %s", result, result.Data)
	}
	sent := up.asked()
	slices.SortFunc(sent, func(a, b seen) int { return strings.Compare(a.raw, b.raw) })
	for i, cmd := range []string{"pasca", "prepaid"} {
		want := `{"cmd":"` + cmd + `","username":"username","sign":"bad20720dea628bbedf6aa7055bf4bb5"}`
		if len(sent) != 2 || sent[i].raw != want {
			t.Errorf("sent %v, want %s", sent, want)
		}
	}
}

func TestNoProductsAreAnEmptyList(t *testing.T) {
	t.Parallel()
	up := newStub(t, lists(aList(), aList()))
	if result := newAdapter().products(t.Context(), sdk.Call{Connection: connect(t, up.url)}); string(result.Data) != "[]" {
		t.Errorf("got %+v, data %s", result, result.Data)
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	change := func(old, replacement string) string { return strings.Replace(prepaidItems, old, replacement, 1) }
	for name, c := range map[string]struct {
		item      string
		available bool
		price     int64
	}{
		"as it is":              {prepaidItems, true, 98000},
		"a price in a string":   {change("98000", `"98000"`), true, 98000},
		"with decimals":         {change("98000", `"98000.00"`), true, 98000},
		"off at the buyer's":    {change(`"buyer_product_status":true`, `"buyer_product_status":false`), false, 98000},
		"off at the seller's":   {change(`"seller_product_status":true`, `"seller_product_status":false`), false, 98000},
		"nothing left":          {change(`"unlimited_stock":true`, `"unlimited_stock":false`), false, 98000},
		"one left":              {change(`"unlimited_stock":true,"stock":0`, `"unlimited_stock":false,"stock":1`), true, 98000},
		"one left, as a string": {change(`"unlimited_stock":true,"stock":0`, `"unlimited_stock":false,"stock":"1"`), true, 98000},
		"less than nothing":     {change(`"unlimited_stock":true,"stock":0`, `"unlimited_stock":false,"stock":-1`), false, 98000},
		"stock not told":        {change(`"unlimited_stock":true,"stock":0,`, ``), true, 98000},
		"words missing":         {change(`"desc":"Pulsa Xl"`, `"desc":null`), true, 98000},
	} {
		items, err := readList(json.RawMessage("["+c.item+"]"), prepaid)
		if err != nil || len(items) != 1 || items[0].Available != c.available || int64(items[0].Price) != c.price {
			t.Errorf("%s: %+v, %v", name, items, err)
		}
	}
}

// One item that can't be read takes no other with it; a list of nothing else is
// no list.
func TestItemsThatCantBeRead(t *testing.T) {
	t.Parallel()
	broken := []string{
		strings.Replace(prepaidItems, "98000", `"banyak"`, 1),
		strings.Replace(prepaidItems, "98000", `null`, 1),
		strings.Replace(prepaidItems, `"X100"`, `""`, 1),
		strings.Replace(prepaidItems, `"buyer_product_status":true`, `"buyer_product_status":"ya"`, 1),
		`"X100"`,
	}
	items, err := readList(json.RawMessage("["+strings.Join(append(broken, prepaidItems), ",")+"]"), prepaid)
	if err != nil || len(items) != 1 {
		t.Errorf("%+v, %v", items, err)
	}
	for _, item := range broken {
		if items, err := readList(json.RawMessage("["+item+"]"), prepaid); err == nil {
			t.Errorf("%s: %+v", item, items)
		}
	}
}

func TestProductsNeedBothLists(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply canned
		want  sdk.Outcome
		blame sdk.Blame
	}{
		"asked too often":     {canned{400, throttled}, sdk.NotSent, sdk.BlameLimit},
		"a wrong key":         {canned{400, `{"data":{"rc":"41","status":"Gagal"}}`}, sdk.NotSent, sdk.BlameAccount},
		"a wrong key, bare":   {canned{400, `{"data":{"rc":"41","message":"m"}}`}, sdk.NotSent, sdk.BlameAccount},
		"another code":        {canned{200, `{"data":{"rc":"55","status":"Gagal"}}`}, sdk.Unknown, sdk.BlameUpstream},
		"a success of what":   {canned{200, `{"data":{"rc":"00","status":"Sukses"}}`}, sdk.Unknown, sdk.BlameUpstream},
		"a number":            {canned{200, `{"data":7}`}, sdk.Unknown, sdk.BlameUpstream},
		"nothing":             {canned{200, `{}`}, sdk.Unknown, sdk.BlameUpstream},
		"null":                {canned{200, `{"data":null}`}, sdk.Unknown, sdk.BlameUpstream},
		"half an answer":      {canned{200, `{"data":[{`}, sdk.Unknown, sdk.BlameUpstream},
		"a proxy":             {canned{502, `<html>`}, sdk.Unknown, sdk.BlameUpstream},
		"a price as a letter": {canned{200, `{"data":{"rc":"00","price":"x"}}`}, sdk.Unknown, sdk.BlameUpstream},
	} {
		for _, replies := range []map[string]canned{lists(c.reply, aList(pascaItems)), lists(aList(prepaidItems), c.reply)} {
			up := newStub(t, replies)
			result := newAdapter().products(t.Context(), sdk.Call{Connection: connect(t, up.url)})
			if result.Outcome != c.want || result.Blame != c.blame || result.Detail == "" {
				t.Errorf("%s: %+v", name, result)
			}
		}
	}
}

// The upstream does not tell a list again for 5 minutes. What it told then is
// used meanwhile, and not longer.
func TestAThrottledListIsTheLastOne(t *testing.T) {
	t.Parallel()
	replies := lists(aList(prepaidItems), canned{http.StatusBadGateway, ""})
	up := newStub(t, replies)
	now := today
	a, call := &adapter{now: func() time.Time { return now }}, sdk.Call{Connection: connect(t, up.url)}
	if result := a.products(t.Context(), call); result.Outcome != sdk.Unknown {
		t.Fatalf("got %+v", result)
	}
	replies["/price-list prepaid"], replies["/price-list pasca"] = canned{400, throttled}, aList(pascaItems)
	now = today.Add(throttle - time.Second)
	if result := a.products(t.Context(), call); result.Outcome != sdk.Done || !strings.Contains(string(result.Data), "X100") {
		t.Errorf("got %+v, data %s", result, result.Data)
	}
	now = today.Add(throttle)
	if result := a.products(t.Context(), call); result.Outcome != sdk.NotSent {
		t.Errorf("got %+v, data %s", result, result.Data)
	}
}
