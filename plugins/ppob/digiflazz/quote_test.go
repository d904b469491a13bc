package digiflazz

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	pulsaItem  = `{"buyer_sku_code":"xld10","product_name":"XL 10.000","category":"Pulsa","brand":"XL","type":"Prepaid","price":10850,"buyer_product_status":true,"desc":"-"}`
	plnItem    = `{"buyer_sku_code":"pln","product_name":"Pln","category":"Pascabayar","brand":"PLN PASCABAYAR","type":"Pasca","price":2500,"buyer_product_status":true,"desc":"-"}`
	pbbItem    = `{"buyer_sku_code":"cimahi","product_name":"PBB","category":"Pascabayar","brand":"PBB","type":"Pasca","price":3000,"buyer_product_status":true,"desc":"-"}`
	samsatItem = `{"buyer_sku_code":"samsat","product_name":"S","category":"Pascabayar","brand":"SAMSAT","type":"Pasca","price":5000,"buyer_product_status":true,"desc":"-"}`
	emoneyItem = `{"buyer_sku_code":"emoney","product_name":"E","category":"Pascabayar","brand":"E-MONEY","type":"Pasca","price":1000,"buyer_product_status":true,"desc":"-"}`
)

func quoteOf(c sdk.Connection, item, body string) sdk.Quote {
	return sdk.Quote{Operation: "/ppob/order", Connection: c, Reference: reference, Body: json.RawMessage(body), Product: json.RawMessage(item)}
}

// A prepaid price is known, so nobody is asked.
func TestQuotePrepaid(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	for _, c := range []struct {
		testing bool
		data    string
	}{
		{false, `{"type":"Prepaid","sku":"xld10","target":"087800001230"}`},
		{true, `{"type":"Prepaid","sku":"xld10","target":"087800001230","testing":true}`},
	} {
		connection := connect(t, up.url, "testing", c.testing)
		q := newAdapter().quote(t.Context(), quoteOf(connection, pulsaItem, `{"sku":"xld10","target":"+62 878-0000-1230","qty":5}`))
		if q.Outcome != sdk.Done || q.Price != 10850 || q.Cost != 10850 || q.Fee != 0 || q.Held || q.Open || string(q.Data) != placed(t, c.data, connection) {
			t.Errorf("got %+v, data %s", q, q.Data)
		}
	}
	if asked := up.asked(); len(asked) != 0 {
		t.Errorf("the upstream was asked %v", asked)
	}
}

func TestQuoteBill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		item, body, extra string
		sent              map[string]any
		open              bool
		data              string
	}{
		"a bill": {
			plnItem, `{"sku":"pln","target":"530000000001","qty":11000}`, asked,
			map[string]any{"customer_no": "530000000001"}, false,
			`{"type":"Pasca","sku":"pln","target":"530000000001","day":"2026-11-20"}`,
		},
		"a property tax": {
			pbbItem, `{"sku":"cimahi","target":"329801092375999991,2024"}`, asked,
			map[string]any{"customer_no": "329801092375999991", "year": "2024"}, false,
			`{"type":"Pasca","sku":"cimahi","target":"329801092375999991","year":"2024","day":"2026-11-20"}`,
		},
		"an open amount": {
			emoneyItem, `{"sku":"emoney","target":"8102051011300001","qty":10000.00}`, `,"admin":"1000","price":"10800","selling_price":"11000"`,
			map[string]any{"customer_no": "8102051011300001", "amount": 10000.0}, true,
			`{"type":"Pasca","sku":"emoney","target":"8102051011300001","amount":10000,"day":"2026-11-20"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newStub(t, map[string]canned{"/transaction inq-pasca": {200, anAnswer("Sukses", "00", c.extra)}})
			connection := connect(t, up.url, "testing", true)
			q := newAdapter().quote(t.Context(), quoteOf(connection, c.item, c.body))
			if q.Outcome != sdk.Done || q.Price != 11000 || !q.Held || q.Open != c.open || string(q.Data) != placed(t, c.data, connection) {
				t.Fatalf("got %+v, data %s", q, q.Data)
			}
			if !c.open && (q.Fee != 2500 || q.Cost != 10000) || c.open && (q.Fee != 1000 || q.Cost != 10800) {
				t.Errorf("got %+v", q)
			}
			sent := up.only(t).body
			for name, want := range map[string]any{
				"commands": "inq-pasca", "username": testUser, "ref_id": reference, "buyer_sku_code": strings.Split(c.body, `"`)[3],
				"sign": credentials{username: testUser, key: testKey}.sign(reference), "testing": nil, "max_price": nil,
				"amount": c.sent["amount"], "year": c.sent["year"], "customer_no": c.sent["customer_no"],
			} {
				if sent[name] != want {
					t.Errorf("%s: sent %v, want %v", name, sent[name], want)
				}
			}
		})
	}
}

func TestQuotesRefusedUnasked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		item, body string
		code       sdk.RefusalCode
		field      string
	}{
		"no phone":            {pulsaItem, `{"sku":"xld10","target":"12345678901"}`, sdk.RefuseDestination, "target"},
		"no number":           {plnItem, `{"sku":"pln","target":"nobody"}`, sdk.RefuseDestination, "target"},
		"no year":             {pbbItem, `{"sku":"cimahi","target":"329801092375999991"}`, sdk.RefuseDestination, "target"},
		"no amount":           {emoneyItem, `{"sku":"emoney","target":"8102051011300001"}`, sdk.RefuseRequest, "qty"},
		"an amount not whole": {emoneyItem, `{"sku":"emoney","target":"8102051011300001","qty":10500}`, sdk.RefuseRequest, "qty"},
		"no price":            {strings.ReplaceAll(pulsaItem, "10850", "0"), `{"sku":"xld10","target":"087800001230"}`, sdk.RefuseProduct, ""},
	} {
		up := newStub(t, nil)
		q := newAdapter().quote(t.Context(), quoteOf(connect(t, up.url), c.item, c.body))
		if q.Outcome != sdk.Refused || q.Refusal.Code != c.code || q.Refusal.Message == "" ||
			c.field != "" && (len(q.Refusal.Fields) != 1 || q.Refusal.Fields[0].Field != c.field) {
			t.Errorf("%s: %+v", name, q)
		}
		if asked := up.asked(); len(asked) != 0 {
			t.Errorf("%s: the upstream was asked %v", name, asked)
		}
	}
}

// The gateway's own faults are nobody else's.
func TestQuotesThatMakeNoSense(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	for name, c := range map[string]struct{ item, body string }{
		"no body":         {pulsaItem, `[]`},
		"no product":      {`null`, `{"sku":"xld10","target":"087800001230"}`},
		"another product": {plnItem, `{"sku":"xld10","target":"087800001230"}`},
		"another type":    {strings.ReplaceAll(pulsaItem, "Prepaid", "prepaid"), `{"sku":"xld10","target":"087800001230"}`},
	} {
		q := newAdapter().quote(t.Context(), quoteOf(connect(t, up.url), c.item, c.body))
		if q.Outcome != sdk.NotSent || q.Blame != sdk.BlameNone || q.Detail == "" {
			t.Errorf("%s: %+v", name, q)
		}
	}
}

func TestBillsThatAreNone(t *testing.T) {
	t.Parallel()
	for name, extra := range map[string]string{
		"no price":           ``,
		"no selling price":   `,"price":10000,"admin":2500`,
		"no cost":            `,"selling_price":11000,"admin":2500`,
		"a fee above it all": `,"price":10000,"selling_price":11000,"admin":11001`,
		"a price of nothing": `,"price":0,"selling_price":0`,
	} {
		up := newStub(t, map[string]canned{"/transaction inq-pasca": {200, anAnswer("Sukses", "00", extra)}})
		c := connect(t, up.url)
		q := newAdapter().quote(t.Context(), quoteOf(c, plnItem, `{"sku":"pln","target":"530000000001"}`))
		if q.Outcome != sdk.Unknown || q.Blame != sdk.BlameUpstream {
			t.Errorf("%s: %+v", name, q)
		}
	}
}

func TestOpenAmount(t *testing.T) {
	t.Parallel()
	for brand, want := range map[string]bool{
		"E-MONEY": true, "e-money": true, "E MONEY": true, "EMONEY": true,
		"": false, "PLN PASCABAYAR": false, "MULTIFINANCE": false,
	} {
		if openAmount(brand) != want {
			t.Errorf("%q: %v", brand, !want)
		}
	}
}

const inquiryBody = `{"sku":"pln","target":"5300-0000-0001"}`

func inquiryOf(c sdk.Connection, item, body string) sdk.Call {
	return sdk.Call{
		Operation: "/ppob/inquiry", RequestID: "request-1", Connection: c, Reference: reference,
		Body: json.RawMessage(body), Product: json.RawMessage(item),
	}
}

func TestInquiry(t *testing.T) {
	t.Parallel()
	for extra, period := range map[string]string{
		asked: "201901",
		`,"customer_name":"Nama Pelanggan Pertama","admin":2500,"price":10000,"selling_price":11000,"desc":{"detail":[{"periode":"201901"},{"periode":201902},{}]}`: "201901,201902",
		`,"customer_name":"Nama Pelanggan Pertama","admin":2500,"price":10000,"selling_price":11000,"desc":"-"`:                                                     "",
	} {
		up := newStub(t, map[string]canned{"/transaction inq-pasca": {200, strings.ReplaceAll(anAnswer("Sukses", "00", extra), reference, inquiryReference("request-1", today))}})
		result := newAdapter().inquiry(t.Context(), inquiryOf(connect(t, up.url), plnItem, inquiryBody))
		want := `{"sku":"pln","target":"5300-0000-0001","customer_name":"Nama Pelanggan Pertama","amount":8500,"admin":2500,"qty":11000,"period":"` + period + `"}`
		if result.Outcome != sdk.Done || string(result.Data) != want {
			t.Errorf("got %+v, data %s", result, result.Data)
		}
		sent := up.only(t).body
		if sent["customer_no"] != "530000000001" || sent["amount"] != nil || sent["ref_id"] == reference {
			t.Errorf("sent %v", sent)
		}
	}
}

// An inquiry has a name that no order has, and never the same.
func TestInquiryReference(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, id := range []string{"a", "b", ""} {
		for _, at := range []time.Time{today, today.Add(time.Nanosecond)} {
			name := inquiryReference(id, at)
			if names[name] || !strings.HasPrefix(name, "inq-") || len(name) != 36 {
				t.Errorf("%q for %q at %v", name, id, at)
			}
			names[name] = true
		}
	}
}

func TestInquiriesWithoutABill(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply canned
		want  sdk.Outcome
		code  sdk.RefusalCode
		blame sdk.Blame
	}{
		"an unknown SKU": {canned{400, `{"data":{"rc":"43","status":"Gagal"}}`}, sdk.Refused, sdk.RefuseProduct, sdk.BlameUpstream},
		"no bill":        {canned{200, `{"data":{"rc":"60","status":"Gagal"}}`}, sdk.Refused, sdk.RefuseDestination, sdk.BlameUpstream},
		"a wrong key":    {canned{400, `{"data":{"rc":"41","status":"Gagal"}}`}, sdk.NotSent, "", sdk.BlameAccount},
		"too often":      {canned{400, `{"data":{"rc":"85","status":"Gagal"}}`}, sdk.NotSent, "", sdk.BlameLimit},
		"no answer":      {canned{502, `<html>`}, sdk.Unknown, "", sdk.BlameUpstream},
	} {
		up := newStub(t, map[string]canned{"/transaction inq-pasca": c.reply})
		result := newAdapter().inquiry(t.Context(), inquiryOf(connect(t, up.url), plnItem, inquiryBody))
		if result.Outcome != c.want || result.Refusal.Code != c.code || result.Blame != c.blame {
			t.Errorf("%s: %+v", name, result)
		}
	}
}

// The product is judged before what is asked about it, each refusal names one
// field and what to do, and nobody is asked.
func TestInquiriesRefusedUnasked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		item, body string
		code       sdk.RefusalCode
		field      string
		text       string
	}{
		"prepaid":             {pulsaItem, `{"sku":"xld10","target":"x","qty":1500}`, sdk.RefuseRequest, "sku", "order it without an inquiry"},
		"no number":           {plnItem, `{"sku":"pln","target":"x"}`, sdk.RefuseDestination, "target", "must be the customer number, 4 to 20 digits"},
		"no year":             {pbbItem, `{"sku":"cimahi","target":"329801092375999991"}`, sdk.RefuseDestination, "target", "the year with a comma between"},
		"no owner":            {samsatItem, `{"sku":"samsat","target":"B 1234 XY"}`, sdk.RefuseDestination, "target", "NIK with a comma between"},
		"no amount":           {emoneyItem, `{"sku":"emoney","target":"12345678"}`, sdk.RefuseRequest, "qty", "it is the amount"},
		"an amount not whole": {emoneyItem, `{"sku":"emoney","target":"12345678","qty":10001}`, sdk.RefuseRequest, "qty", "a multiple of 1000"},
	} {
		up := newStub(t, nil)
		result := newAdapter().inquiry(t.Context(), inquiryOf(connect(t, up.url), c.item, c.body))
		fields := result.Refusal.Fields
		if result.Outcome != sdk.Refused || result.Refusal.Code != c.code || len(fields) != 1 || fields[0].Field != c.field || !strings.Contains(fields[0].Message, c.text) {
			t.Errorf("%s: %+v", name, result)
		}
		if asked := up.asked(); len(asked) != 0 {
			t.Errorf("%s: the upstream was asked %v", name, asked)
		}
	}
	for name, c := range map[string]struct{ item, body string }{
		"no request": {plnItem, `[]`}, "no product": {``, inquiryBody}, "another product": {pbbItem, inquiryBody},
	} {
		result := newAdapter().inquiry(t.Context(), inquiryOf(connect(t, newStub(t, nil).url), c.item, c.body))
		if result.Outcome != sdk.NotSent || result.Blame != sdk.BlameNone || result.Detail == "" {
			t.Errorf("%s: %+v", name, result)
		}
	}
}

// Only an open amount is the caller's: the qty of another bill is what it answers.
func TestAmountOfAnInquiry(t *testing.T) {
	t.Parallel()
	for item, c := range map[string]struct {
		body   string
		amount any
	}{
		emoneyItem: {`{"sku":"emoney","target":"8102051011300001","qty":10000}`, 10000.0},
		plnItem:    {`{"sku":"pln","target":"530000000001","qty":1}`, nil},
	} {
		up := newStub(t, map[string]canned{"/transaction inq-pasca": {http.StatusOK, strings.ReplaceAll(anAnswer("Sukses", "00", asked), reference, inquiryReference("request-1", today))}})
		result := newAdapter().inquiry(t.Context(), inquiryOf(connect(t, up.url), item, c.body))
		if result.Outcome != sdk.Done || up.only(t).body["amount"] != c.amount {
			t.Errorf("got %+v, sent %v", result, up.only(t).body)
		}
	}
}
