package openapi_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestDocument has the tools that merchants use judge the document of the running gateway:
// two linters, a generator of types, and a proxy that compares every answer with it.
func TestDocument(t *testing.T) {
	t.Parallel()
	tools := harness.NodeTools(t)
	p := harness.Shared(t)
	_, text, _ := p.Get(t, p.APIURL+"/openapi.json")
	document := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(document, text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("redocly", func(t *testing.T) {
		t.Parallel()
		out := run(t, tools, "redocly", "lint", "--extends=recommended", "--format=json", document)
		var judged struct {
			Totals struct{ Errors, Warnings, Ignored int }
		}
		if at := bytes.IndexByte(out, '{'); at < 0 || json.Unmarshal(out[at:], &judged) != nil {
			t.Fatalf("it says %s", out)
		}
		if judged.Totals.Errors+judged.Totals.Warnings+judged.Totals.Ignored != 0 {
			t.Errorf("it finds faults: %s", out)
		}
	})
	t.Run("spectral", func(t *testing.T) {
		t.Parallel()
		rules := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(rules, []byte("extends: ['spectral:oas']\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, tools, "spectral", "lint", "--fail-severity=hint", "--ruleset", rules, document)
	})
	t.Run("types", func(t *testing.T) {
		t.Parallel()
		dir := generated(t, "openapi-typescript", text)
		if err := os.Symlink(filepath.Join(tools, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		run(t, tools, "openapi-typescript", document, "--output", filepath.Join(dir, "api.ts"))
		run(t, tools, "tsc", "--project", dir)
		pays(t, p, exec.CommandContext(t.Context(), "node", filepath.Join(dir, "main.js")))
	})
	t.Run("postman", func(t *testing.T) {
		t.Parallel()
		fromPostman(t, tools, p)
	})
	t.Run("proxy", func(t *testing.T) {
		t.Parallel()
		throughProxy(t, p, startProxy(t, tools, document, p.APIURL))
		callbacksAsDescribed(t, p, text)
	})
}

// fromPostman has Postman's own runner make every call of the collection that was made of the
// document. Those fail that need a payment that was paid.
func fromPostman(t *testing.T, tools string, p *harness.Program) {
	t.Helper()
	shop := p.NewMerchant(t) // of a tier whose rate lets a runner go on at its pace
	came := filepath.Join(t.TempDir(), "came.json")
	collection, err := filepath.Abs(filepath.Join(harness.Root, "sdk", "merchant", "postman", "gerbang.postman_collection.json"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, tools, "newman", "run", collection, "--env-var", "base_url="+p.APIURL, "--env-var", "key="+shop.TestKey, "--env-var", "merchant_id="+shop.MerchantID,
		"--reporters", "json", "--reporter-json-export", came)
	text, err := os.ReadFile(came)
	if err != nil {
		t.Fatal(err)
	}
	var told struct {
		Run struct {
			Executions []struct {
				Item     struct{ Name string }
				Response struct{ Code int }
			}
		}
	}
	if err := json.Unmarshal(text, &told); err != nil {
		t.Fatal(err)
	}
	fails := map[string]int{
		"Give a payment back: All that is left":    http.StatusBadRequest,
		"Give a payment back: A part of a payment": http.StatusBadRequest,
		"Get the status of a refund":               http.StatusNotFound,
	}
	succeeded := 0
	for _, e := range told.Run.Executions {
		if want := cmp.Or(fails[e.Item.Name], http.StatusOK); e.Response.Code != want {
			t.Errorf("%s is answered with %d, want %d", e.Item.Name, e.Response.Code, want)
		} else if want == http.StatusOK {
			succeeded++
		}
	}
	if succeeded < 25 {
		t.Errorf("only %d requests of the collection succeeded", succeeded)
	}
}

// TestSwaggerUI: what is embedded is what npm has.
func TestSwaggerUI(t *testing.T) {
	t.Parallel()
	tools := harness.NodeTools(t)
	for _, name := range []string{"swagger-ui-bundle.js", "swagger-ui.css"} {
		want, err := os.ReadFile(filepath.Join(tools, "node_modules", "swagger-ui-dist", name))
		if err != nil {
			t.Fatal(err)
		}
		packed, err := os.ReadFile(filepath.Join(harness.Root, "gateway", "docs", "swagger-ui", name+".gz"))
		if err != nil {
			t.Fatal(err)
		}
		reader, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what npm has: %v; pack it again with gzip -n -9", name, err)
		}
	}
}

// program is a tool's own file, without npx, which would look for others.
func program(tools, name string) string {
	return filepath.Join(tools, "node_modules", ".bin", name)
}

// run runs a tool, which must succeed, and returns what it prints.
func run(t *testing.T, tools, name string, arguments ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), program(tools, name), arguments...)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true")
	var faults bytes.Buffer
	command.Stderr = &faults
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, out, &faults)
	}
	return out
}

// startProxy starts Prism before the gateway, and returns its URL.
func startProxy(t *testing.T, tools, document, upstream string) string {
	t.Helper()
	address := harness.FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	command := exec.Command(program(tools, "prism"), "proxy", document, upstream, "--host", "127.0.0.1", "--port", port)
	command.Dir = t.TempDir()
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if t.Failed() {
			lines := strings.Split(log.String(), "\n")
			t.Logf("the proxy says:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
	})
	url := "http://" + address
	harness.Await(t, harness.ReadyWithin, "the proxy", func() bool {
		response, err := http.Get(url + "/openapi.json")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	return url
}

// proxied calls the gateway through the proxy. The proxy tells what it finds in a header;
// what it finds in a request that is meant to be wrong is right.
type proxied struct {
	*testing.T
	url, key string
}

func (c proxied) call(method, path string, body any, want string) map[string]any {
	c.Helper()
	var reader io.Reader = http.NoBody
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			c.Fatal(err)
		}
		reader = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(c.Context(), method, c.url+path, reader)
	if err != nil {
		c.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.key)
	response, err := harness.HTTPClient.Do(request)
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		c.Fatalf("%s %s: %v", method, path, err)
	}
	if code, _ := answer["error_code"].(string); code != want {
		c.Errorf("%s %s: %v, want %q", method, path, answer, want)
	}
	var violations []struct {
		Location []string
		Message  string
	}
	if told := response.Header.Get("sl-violations"); told != "" {
		if err := json.Unmarshal([]byte(told), &violations); err != nil {
			c.Errorf("%s %s: violations %s", method, path, told)
		}
	}
	for _, v := range violations {
		if want == "" || v.Location[0] == "response" {
			c.Errorf("%s %s is not as described: %v %s", method, path, v.Location, v.Message)
		}
	}
	return answer
}

// throughProxy uses every operation, and meets most errors.
func throughProxy(t *testing.T, p *harness.Program, url string) {
	t.Helper()
	shop := p.Shop(harness.Large, "test")
	c := proxied{t, url, shop.Key}
	one := func() string { return uuid.NewString() }
	type fields = map[string]any
	link, qr, sale, order, bill, payout := one(), one(), one(), one(), one(), one()
	payment := fields{
		"merchant_id": shop.MerchantID, "amount": 50000, "payer_email": "payer@example.com", "external_id": link, "metadata": fields{"table": "7"},
		"success_url": "https://shop.example/thanks", "description": "Dua kopi",
	}
	for _, step := range []struct {
		path string
		body any
		code string
	}{
		{"/payments/create", payment, ""},
		{"/payments/create", fields{"merchant_id": shop.MerchantID, "amount": 25000, "payer_email": "payer@example.com", "type": "qris", "external_id": qr}, ""},
		{"/payments/status", fields{"external_id": link}, ""},
		{"/payments/cancel", fields{"external_id": link}, ""},
		{"/payments/status", fields{"external_id": link}, ""},
		{"/payments/list", fields{"limit": 5, "status": "EXPIRED"}, ""},
		{"/wallet2/create", fields{"amount": 18000, "payer_email": "payer@example.com", "external_id": sale}, ""},
		{"/wallet2/status", fields{"external_id": sale}, ""},
		{"/wallet2/list", fields{}, ""},
		{"/ppob/products", fields{"type": "pasca"}, ""},
		{"/ppob/inquiry", fields{"sku": "pln", "target": "530000000001"}, ""},
		{"/ppob/order", fields{"sku": "xld10", "target": "087800001230", "ref_id": order}, ""},
		{"/ppob/order", fields{"sku": "pln", "target": "530000000001", "qty": 11000, "ref_id": bill}, ""},
		{"/ppob/status", fields{"ref_id": order}, ""},
		{"/ppob/list", fields{}, ""},
		{"/wallet1/inquiry", fields{"phone": "0811742234", "amount": 10000}, ""},
		{"/transfer/banks", fields{}, ""},
		{"/transfer/inquiry", fields{"bank_code": "014", "account_no": "2460888509", "amount": 50000}, ""},
		{"/wallet1/transfer/wallet", fields{"phone": "0811742234", "amount": 10000}, ""},
		{"/wallet1/transfer/bank", fields{"bank_code": "014", "account_no": "2460888509", "account_name": "Nasabah Contoh 8509", "amount": 50000, "external_id": payout}, ""},
		{"/wallet1/transfer/status", fields{"external_id": payout}, ""},
		{"/wallet1/transfer/list", fields{}, ""},
		{"/wallet1/transactions", fields{"limit": 5}, ""},
		{"/balance", fields{}, ""},
		{"/events", fields{"limit": 5}, ""},

		{"/payments/create", fields{"amount": 50}, "INVALID_REQUEST"},
		{"/payments/create", fields{"merchant_id": shop.MerchantID, "amount": 50001, "payer_email": "payer@example.com", "external_id": link}, "DUPLICATE_REFERENCE"},
		{"/payments/create", fields{"merchant_id": "mer_other", "amount": 50001, "payer_email": "payer@example.com"}, "AUTH_FAILED"},
		{"/payments/status", fields{"external_id": one()}, "NOT_FOUND"},
		{"/payments/cancel", fields{"external_id": one()}, "NOT_FOUND"},
		{"/ppob/order", fields{"sku": "xld10", "target": "1", "ref_id": one()}, "DESTINATION_INVALID"},
		{"/ppob/order", fields{"sku": "none", "target": "087800001230", "ref_id": one()}, "INVALID_REQUEST"},
		{"/wallet1/inquiry", fields{"phone": "08123456667", "amount": 10000}, "DESTINATION_INVALID"},
		{"/wallet1/transfer/wallet", fields{"phone": "08123456667", "amount": 10000}, "DESTINATION_INVALID"},
		{"/events", fields{"after": one()}, "INVALID_REQUEST"},
		{"/balance", fields{"padding": strings.Repeat("x", 70_000)}, "PAYLOAD_TOO_LARGE"},
	} {
		c.call(http.MethodPost, step.path, step.body, step.code)
	}
	c.call(http.MethodGet, "/ppob/products?type=prepaid", nil, "")
	proxied{t, url, "sk_test_wrong"}.call(http.MethodPost, "/balance", fields{}, "AUTH_FAILED")
}

// callbacksAsDescribed waits for events of orders and a payment, and compares the bodies of
// all callbacks so far with the document.
func callbacksAsDescribed(t *testing.T, p *harness.Program, text []byte) {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	shop, seen := p.Shop(harness.Large, "test"), map[string]bool{}
	harness.Await(t, harness.PaidWithin, "events of three kinds", func() bool {
		var listed struct {
			Data []struct {
				Body struct {
					Event string         `json:"event"`
					Data  map[string]any `json:"data"`
				}
			}
		}
		answer := shop.Ask(t, "/events", harness.Fields{"limit": 100})
		if err := json.Unmarshal(answer.Body, &listed); err != nil {
			t.Fatal(err)
		}
		for _, event := range listed.Data {
			body := map[string]any{"event": event.Body.Event, "data": event.Body.Data}
			webhook := document.Webhooks[event.Body.Event]
			if webhook == nil {
				t.Fatalf("the event %s is not described", event.Body.Event)
			}
			schema := webhook.Post.RequestBody.Value.Content["application/json"].Schema.Value
			if err := schema.VisitJSON(body, openapi3.EnableJSONSchema2020()); err != nil {
				t.Errorf("%s is not as described: %v", event.Body.Event, err)
			}
			seen[event.Body.Event] = true
		}
		return seen["payments.status_update"] && seen["ppob.status_update"] && seen["transfer.status_update"]
	})
}
