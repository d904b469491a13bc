package payment_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// checkBadInput sends bodies that are wrong in one way each. KEY and MERCHANT
// stand for the shop's.
func checkBadInput(t *testing.T, p *harness.Program) {
	s := newPayee(t, p, "live")
	const head = `{"secret_key":"KEY","merchant_id":"MERCHANT",`
	const good = head + `"amount":10000,"payer_email":"p@example.com"`
	deep := strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)
	for _, c := range []struct {
		name, body, declared string
		code                 fault.Code
		field                string // that errors must name
	}{
		{"empty", ``, "", fault.InvalidRequest, ""},
		{"not JSON", `amount=1`, "application/json", fault.InvalidRequest, ""},
		{"a form that is none", `amount=1`, "application/x-www-form-urlencoded", fault.UnsupportedMediaType, ""},
		{"an array", `[1]`, "", fault.InvalidRequest, ""},
		{"text after it", good + `}{}`, "", fault.InvalidRequest, ""},
		{"cut off", good, "", fault.InvalidRequest, ""},
		{"duplicate key", good + `,"amount":20000}`, "", fault.InvalidRequest, "amount"},
		{"duplicate key below", good + `,"metadata":{"a":"1","a":"2"}}`, "", fault.InvalidRequest, "metadata.a"},
		{"unknown key", good + `,"amout":1}`, "", fault.InvalidRequest, "amout"},
		{"differently-cased key", head + `"Amount":10000,"payer_email":"p@example.com"}`, "", fault.InvalidRequest, "Amount"},
		{"number in a string", head + `"amount":"10000","payer_email":"p@example.com"}`, "", fault.InvalidRequest, "amount"},
		{"fraction", head + `"amount":10000.5,"payer_email":"p@example.com"}`, "", fault.InvalidRequest, "amount"},
		{"too little", head + `"amount":99,"payer_email":"p@example.com"}`, "", fault.InvalidRequest, "amount"},
		{"negative", head + `"amount":-10000,"payer_email":"p@example.com"}`, "", fault.InvalidRequest, "amount"},
		{"too much", head + `"amount":1000000000001,"payer_email":"p@example.com"}`, "", fault.InvalidRequest, "amount"},
		{"huge exponent", head + `"amount":1e999999999,"payer_email":"p@example.com"}`, "", fault.InvalidRequest, "amount"},
		{"many digits", head + `"amount":1` + strings.Repeat("0", 5000) + `,"payer_email":"p@example.com"}`, "", fault.InvalidRequest, "amount"},
		{"bytes that are not UTF-8", good + `,"description":"` + "\xff\xfe" + `"}`, "", fault.InvalidRequest, "description"},
		{"half a surrogate", good + `,"description":"\ud800"}`, "", fault.InvalidRequest, "description"},
		{"NUL", good + `,"description":"a\u0000b"}`, "", fault.InvalidRequest, "description"},
		{"deep nesting", good + `,"metadata":` + deep + `}`, "", fault.InvalidRequest, "metadata"},
		{"a missing field", head + `"amount":10000}`, "", fault.InvalidRequest, "payer_email"},
		{"null counts as missing", head + `"amount":null,"payer_email":"p@example.com"}`, "", fault.InvalidRequest, "amount"},
		{"no merchant_id", `{"secret_key":"KEY","amount":10000,"payer_email":"p@example.com"}`, "", fault.InvalidRequest, "merchant_id"},
		{"not an address", head + `"amount":10000,"payer_email":"nobody"}`, "", fault.InvalidRequest, "payer_email"},
		{"no such type", good + `,"type":"cash"}`, "", fault.InvalidRequest, "type"},
		{"a long reference", good + `,"external_id":"` + strings.Repeat("x", 256) + `"}`, "", fault.InvalidRequest, "external_id"},
		{"a control character in the reference", good + `,"external_id":"a\nb"}`, "", fault.InvalidRequest, "external_id"},
		{"a script as success_url", good + `,"success_url":"javascript:alert(1)"}`, "", fault.InvalidRequest, "success_url"},
		{"64 KiB and a byte", good + `,"description":"` + strings.Repeat("x", 64<<10) + `"}`, "", fault.PayloadTooLarge, ""},
		{"a number as secret_key", strings.Replace(good, `"KEY"`, `7`, 1) + `}`, "", fault.AuthFailed, ""},
		{"an object as secret_key", strings.Replace(good, `"KEY"`, `{"a":"KEY"}`, 1) + `}`, "", fault.AuthFailed, ""},
		{"no secret_key", `{"amount":1}`, "", fault.AuthFailed, ""},
		{"half a secret_key", strings.Replace(good, `KEY`, s.Key[:len(s.Key)-1], 1) + `}`, "", fault.AuthFailed, ""},
		{"a number as merchant_id", strings.Replace(good, `"MERCHANT"`, `7`, 1) + `}`, "", fault.AuthFailed, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := strings.NewReplacer("KEY", s.Key, "MERCHANT", s.MerchantID).Replace(c.body)
			header := http.Header{}
			if c.declared != "" {
				header.Set("Content-Type", c.declared)
			}
			a, err := p.Send(t.Context(), http.MethodPost, "/payments/create", []byte(body), header)
			if err != nil {
				t.Fatal(err)
			}
			named := slices.ContainsFunc(a.Errors, func(f fault.Field) bool { return f.Field == c.field || strings.HasPrefix(f.Field, c.field+".") })
			if a.Code != c.code || c.field != "" && !named {
				t.Errorf("%s, want %s that names %q", a, c.code, c.field)
			}
			if bytes.Contains(a.Body, []byte(s.Key)) {
				t.Error("the answer holds the key")
			}
		})
	}
}

// checkRoutes calls paths that are no operation, and sends requests in other
// valid forms.
func checkRoutes(t *testing.T, p *harness.Program) {
	s := newPayee(t, p, "live")
	for _, c := range []struct {
		method, path string
		code         fault.Code
		allow        string
	}{
		{http.MethodPost, "/payments", fault.NotFound, ""},
		{http.MethodPost, "/payments/create/", fault.NotFound, ""},
		{http.MethodPost, "/Payments/Create", fault.NotFound, ""},
		{http.MethodGet, "/", fault.NotFound, ""},
		{http.MethodPost, "/notify/payments/unknown", fault.NotFound, ""},
		{http.MethodGet, "/payments/create", fault.MethodNotAllowed, http.MethodPost},
		{http.MethodDelete, "/payments/status", fault.MethodNotAllowed, http.MethodPost},
		{http.MethodPost, "/openapi.json", fault.MethodNotAllowed, http.MethodGet},
	} {
		a, err := p.Send(t.Context(), c.method, c.path, []byte(`{}`), nil)
		if err != nil {
			t.Errorf("%s %s: %v", c.method, c.path, err)
		}
		if a.Code != c.code || !strings.Contains(a.Header.Get("Allow"), c.allow) {
			t.Errorf("%s %s: %s, Allow %q; want %s, Allow %q", c.method, c.path, a, a.Header.Get("Allow"), c.code, c.allow)
		}
	}
	// What PHP and curl declare by default, and what a careless client writes.
	body := fmt.Sprintf(` { "secret_key" : %q , "merchant_id" : %q, "amount" : 1e4, "payer_email" : "p@example.com", "external_id": %q, "description": null } `,
		s.Key, s.MerchantID, uuid.NewString())
	a, err := p.Send(t.Context(), http.MethodPost, "/payments/create", []byte(body),
		http.Header{"Content-Type": {"application/x-www-form-urlencoded"}})
	if err != nil || !a.Success || a.Payment().Amount != 10000 {
		t.Errorf("%s, %v", a, err)
	}
	// Where no money moves unknown fields are ignored.
	if a := s.Ask(t, "/payments/status", harness.Fields{"external_id": a.Payment().ExternalID, "colour": "red"}); !a.Success {
		t.Errorf("status with an unknown field: %s", a)
	}
}

func checkOpenAPI(t *testing.T, p *harness.Program) {
	status, whole, _ := p.Get(t, p.APIURL+"/openapi.json")
	var document struct {
		Info  struct{ Version string }
		Paths map[string]json.RawMessage
	}
	if err := json.Unmarshal(whole, &document); err != nil || status != http.StatusOK {
		t.Fatalf("%d, %v", status, err)
	}
	if document.Info.Version != "1.2.0" {
		t.Errorf("version %q", document.Info.Version)
	}
	for _, path := range []string{"/payments/create", "/payments/status", "/payments/cancel"} {
		if len(document.Paths[path]) == 0 {
			t.Errorf("%s is not described", path)
		}
	}
	for _, row := range fault.Table {
		if !bytes.Contains(whole, []byte(row.Code)) {
			t.Errorf("%s is not described", row.Code)
		}
	}
}
