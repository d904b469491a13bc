package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

func TestMain(m *testing.M) { sdktest.Main(m, main) }

// order is an example of an order. The code is of a refusal.
func order(name, sku, target, qty string, want sdk.Outcome, code sdk.RefusalCode) sdktest.Example {
	body := fmt.Sprintf(`{"sku":%q,"target":%q,"ref_id":"R-1"}`, sku, target)
	if qty != "" {
		body = fmt.Sprintf(`{"sku":%q,"target":%q,"ref_id":"R-1","qty":%s}`, sku, target, qty)
	}
	return sdktest.Example{Name: name, Operation: "/ppob/order", Body: json.RawMessage(body), Want: want, Code: code}
}

func inquiry(name, body string, want sdk.Outcome, code sdk.RefusalCode) sdktest.Example {
	return sdktest.Example{Name: name, Operation: "/ppob/inquiry", Body: json.RawMessage(body), Want: want, Code: code}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sdktest.Run(t, sdktest.Suite{
		Manifest: manifestJSON,
		Open:     openUpstream, OwnErrors: true,
		Examples: []sdktest.Example{
			{Name: "products", Operation: "/ppob/products", Body: json.RawMessage(`{}`), Want: sdk.Done},

			inquiry("a bill", `{"sku":"pln","target":"530000000002"}`, sdk.Done, ""),
			inquiry("a property tax", `{"sku":"cimahi","target":"329801092375999991,2024"}`, sdk.Done, ""),
			inquiry("an open amount", `{"sku":"emoney","target":"8102051011300001","qty":50000}`, sdk.Done, ""),
			inquiry("a property tax without year", `{"sku":"cimahi","target":"329801092375999991"}`, sdk.Refused, sdk.RefuseDestination),
			inquiry("no bill", `{"sku":"pln","target":"530000000003"}`, sdk.Refused, sdk.RefuseDestination),
			inquiry("not a bill", `{"sku":"xld10","target":"087800001230"}`, sdk.Refused, sdk.RefuseRequest),

			order("airtime", "xld10", "+62 878-0000-1230", "", sdk.Done, ""),
			order("airtime later", "xld10", "087800001233", "", sdk.Pending, ""),
			order("a token", "pln20", "12345678901", "", sdk.Done, ""),
			order("pay a bill", "pln", "530000000001", "11000", sdk.Done, ""),
			order("pay a bill later", "pln", "630000000001", "11000", sdk.Pending, ""),
			order("an open bill", "emoney", "8102051011300001", "50000", sdk.Done, ""),

			order("airtime that fails", "xld10", "087800001232", "", sdk.Refused, sdk.RefuseOther),
			order("another operator's number", "S5", "087800001230", "", sdk.Refused, sdk.RefuseDestination),
			order("no phone", "xld10", "12345678901", "", sdk.Refused, sdk.RefuseDestination),
			order("a bill that fails", "pln", "530000000006", "11000", sdk.Refused, sdk.RefuseOther),
			order("a bill that is not there", "pln", "530000000003", "11000", sdk.Refused, sdk.RefuseDestination),
			order("no amount", "emoney", "8102051011300001", "", sdk.Refused, sdk.RefuseRequest),
			order("our deposit is empty", "xld10", "087800002044", "", sdk.NotSent, ""),
		},
	})
}
