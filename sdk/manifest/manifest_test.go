package manifest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

const valid = `{
	"manifest": 1, "name": "shop-1", "version": "1.0.0", "title": "Shop", "lookup": "read", "settles_within": "30s",
	"notifications": true, "references": {"longest": 64, "alphabet": "0-9a-f"}, "connection": {"type": "object"},
	"operations": [
		{"path": "/shop/pay", "kind": "payment", "summary": "Pay", "description": "Pays.", "timeout": "12s",
		 "reference": "/id", "amount": "/amount", "fields": ["type"], "echo": ["note"],
		 "request": {"type": "object", "required": ["amount"], "additionalProperties": false, "properties": {
			"id": {"type": "string"}, "amount": {"type": "integer", "minimum": 1, "maximum": 1000000}, "type": {"type": "string"}, "note": {"type": "string"}}},
		 "result": {"type": "object"}, "response": {"type": "object"}},
		{"path": "/shop/status", "status_of": "/shop/pay", "summary": "Status", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}},
		{"path": "/shop/cancel", "cancel_of": "/shop/pay", "summary": "Cancel", "reference": "/id", "timeout": "12s",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}},
		{"path": "/shop/rates", "kind": "query", "summary": "Rates", "timeout": "5s",
		 "request": {"type": "object"}, "result": {"type": "array"}, "response": {"type": "array"}},
		{"path": "/shop/send", "kind": "transfer", "summary": "Send", "timeout": "20s", "reference": "/id", "amount": "/amount", "destination": ["/to"],
		 "request": {"type": "object", "required": ["amount"], "additionalProperties": false, "properties": {"id": {"type": "string"}, "to": {"type": "string"}, "amount": {"type": "integer", "minimum": 1, "maximum": 1000000}}},
		 "result": {"type": "object"}, "response": {"type": "object"}},
		{"path": "/shop/sent", "status_of": "/shop/send", "summary": "Status", "reference": "/id",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}}
	]}`

type object = map[string]any

// changed gives the valid manifest after a change.
func changed(t *testing.T, change func(m object, op func(int) object)) []byte {
	t.Helper()
	var m object
	if err := json.Unmarshal([]byte(valid), &m); err != nil {
		t.Fatal(err)
	}
	change(m, func(i int) object { return m["operations"].([]any)[i].(object) })
	document, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestParse(t *testing.T) {
	t.Parallel()
	m, err := manifest.Parse([]byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "shop-1" || m.Version != "1.0.0" || m.Title != "Shop" || m.Lookup != manifest.LookupRead || !m.Notifications ||
		time.Duration(m.SettlesWithin) != 30*time.Second || string(m.Connection) != `{"type": "object"}` || len(m.Operations) != 6 {
		t.Errorf("got %+v", m)
	}
	pay, ok := m.Operation("/shop/pay")
	if !ok || pay.Kind != manifest.Payment || !pay.Money() || pay.ReferenceField() != "id" || pay.AmountField() != "amount" ||
		time.Duration(pay.Timeout) != 12*time.Second || pay.Fields[0] != "type" || pay.Echo[0] != "note" {
		t.Errorf("got %+v", pay)
	}
	if status, _ := m.Operation("/shop/status"); status.Money() || status.StatusOf != "/shop/pay" || status.AmountField() != "" {
		t.Errorf("got %+v", status)
	}
	if _, ok := m.Operation("/shop"); ok {
		t.Error("found an operation that is not there")
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	type change = func(m object, op func(int) object)
	set := func(key string, value any) change { return func(m object, _ func(int) object) { m[key] = value } }
	inOp := func(i int, key string, value any) change {
		return func(_ object, op func(int) object) {
			if value == nil {
				delete(op(i), key)
				return
			}
			op(i)[key] = value
		}
	}
	open := object{"type": "object", "properties": object{"id": object{"type": "string"}, "amount": object{"type": "integer"}}}
	cases := map[string]struct {
		change change
		want   string
	}{
		"another format":             {set("manifest", 2), "manifest: is 2"},
		"a name with capitals":       {set("name", "Shop"), "name:"},
		"a name too long":            {set("name", strings.Repeat("a", 41)), "name:"},
		"no version":                 {set("version", ""), `/version: "" must be`},
		"no title":                   {set("title", ""), "/title: must be given"},
		"no connection schema":       {set("connection", nil), "connection: "},
		"a broken connection schema": {set("connection", object{"type": "objekt"}), "/connection/type: is no JSON Schema"},
		"no operations":              {set("operations", []any{}), "/operations: there are 0"},
		"no lookup":                  {set("lookup", ""), "must say read or resubmit"},
		"a lookup of its own":        {set("lookup", "guess"), "must say read or resubmit"},
		"a negative time":            {set("settles_within", "-1s"), "must be positive"},
		"a time without a unit":      {set("settles_within", "30"), `write it like "15s"`},
		"a time as a number":         {set("settles_within", 30), "settles_within"},
		"an unknown member":          {set("colour", "red"), "colour"},
		"no references":              {set("references", nil), "references: must be given"},
		"references without letters": {set("references", object{"longest": 40}), "references: must be given"},
		"short references":           {set("references", object{"longest": 39, "alphabet": "0-9a-f"}), "references: the upstream takes at most 39 characters, and movements are named by 40"},
		"references in capitals":     {set("references", object{"longest": 64, "alphabet": "0-9A-Z"}), "references: the upstream does not take 'a'"},
		"references of digits":       {set("references", object{"longest": 64, "alphabet": "0123456789abcde-"}), "references: the upstream does not take 'f'"},
		"no settling time":           {func(m object, _ func(int) object) { delete(m, "settles_within") }, "settles_within: must be at least the timeout of 12s"},
		"a path twice":               {inOp(1, "path", "/shop/pay"), "path /shop/pay stands twice"},
		"a path with capitals":       {inOp(3, "path", "/Shop/rates"), `must look like /payments/create`},
		"a path with a parameter":    {inOp(3, "path", "/shop/:id"), `must look like /payments/create`},
		"a path with a tail":         {inOp(3, "path", "/shop/rates/"), `must look like /payments/create`},
		"no summary":                 {inOp(0, "summary", ""), "summary: must be given"},
		"no request schema":          {inOp(0, "request", nil), "request: the schema is missing"},
		"no response schema":         {inOp(0, "response", nil), "response: the schema is missing"},
		"no result schema":           {inOp(0, "result", nil), "result: the schema is missing"},
		"no role":                    {inOp(0, "kind", nil), "exactly one of kind"},
		"two roles":                  {inOp(1, "kind", "query"), "exactly one of kind"},
		"an unknown kind":            {inOp(0, "kind", "gift"), `"gift" is none of`},
		"an endless call":            {inOp(0, "timeout", "31s"), "at most 30s"},
		"proof during a call":        {func(m object, _ func(int) object) { m["settles_within"] = "11s" }, "settles_within: must be at least the timeout of 12s"},
		"settles for ever":           {set("settles_within", "10m1s"), "/settles_within: must be at most 10m0s"},
		"an error for ever":          {set("error_settles_within", "1h"), "/error_settles_within: must be at most 10m0s"},
		"no timeout":                 {inOp(3, "timeout", nil), "timeout: must be given"},
		"a cancel without timeout":   {inOp(2, "timeout", nil), "timeout: must be given"},
		"an open money request":      {inOp(0, "request", open), "additionalProperties false"},
		"no reference":               {inOp(0, "reference", nil), `reference: "" must point`},
		"a reference elsewhere":      {inOp(0, "reference", "/amount"), `reference: "/amount" must point`},
		"a deep reference":           {inOp(0, "reference", "/id/x"), `reference: "/id/x" must point`},
		"no pointer":                 {inOp(0, "reference", "id"), `reference: "id" must point`},
		"no amount":                  {inOp(0, "amount", nil), `amount: "" must point`},
		"an amount in words":         {inOp(0, "amount", "/note"), `amount: "/note" must point`},
		"an unknown field":           {inOp(0, "fields", []any{"size"}), `"size" is no property`},
		"an unknown echo":            {inOp(0, "echo", []any{"size"}), `"size" is no property`},
		"a status of nothing":        {inOp(1, "status_of", "/shop/none"), `"/shop/none" is no money operation`},
		"a status of a query":        {inOp(1, "status_of", "/shop/rates"), `"/shop/rates" is no money operation`},
		"a status without reference": {inOp(1, "reference", nil), `reference: "" must point`},
		"a cancel of a transfer":     {inOp(2, "cancel_of", "/shop/send"), "only payments can be ended"},
		"a transfer to nowhere":      {inOp(4, "destination", nil), "destination: a transfer must say"},
		"a destination in numbers":   {inOp(4, "destination", []any{"/amount"}), `/operations/4/destination/0: "amount" is no string`},
		"a holder that is not there": {inOp(4, "holder", "/name"), `/operations/4/holder: "name" is no string`},
		"a schema from elsewhere":    {inOp(0, "response", object{"$ref": "file:///etc/passwd"}), "response: "},
		"a schema from the network":  {inOp(0, "response", object{"$ref": "https://example.com/s.json"}), "response: "},
	}
	for name, c := range cases {
		if _, err := manifest.Parse(changed(t, c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want a fault with %q", name, err, c.want)
		}
	}
}

func TestParseRefusesLooseJSON(t *testing.T) {
	t.Parallel()
	for name, document := range map[string]string{
		"empty":            "",
		"an array":         "[]",
		"a tail":           valid + "{}",
		"a duplicate name": strings.Replace(valid, `"title": "Shop"`, `"title": "Shop", "title": "Other"`, 1),
		"another case":     strings.Replace(valid, `"title"`, `"Title"`, 1),
		"broken UTF-8":     strings.Replace(valid, `"Shop"`, "\"\xff\"", 1),
	} {
		if _, err := manifest.Parse([]byte(document)); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

func TestEveryFaultIsNamed(t *testing.T) {
	t.Parallel()
	_, err := manifest.Parse(changed(t, func(m object, op func(int) object) {
		m["name"], m["title"] = "X", ""
		op(0)["amount"], op(3)["timeout"] = "/id", "1s"
		op(4)["summary"] = ""
	}))
	for _, want := range []string{"name:", "title", "/operations/0/amount: ", "/operations/4/summary: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, err)
		}
	}
}

func TestQueriesAloneNeedNoLookup(t *testing.T) {
	t.Parallel()
	document := changed(t, func(m object, op func(int) object) {
		m["operations"] = []any{op(3)}
		delete(m, "lookup")
		delete(m, "settles_within")
	})
	if _, err := manifest.Parse(document); err != nil {
		t.Error(err)
	}
}

func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(document []byte) string {
		t.Helper()
		m, err := manifest.Parse(document)
		if err != nil {
			t.Fatal(err)
		}
		return m.Digest()
	}
	original := digest([]byte(valid))
	if len(original) != 64 || strings.Trim(original, "0123456789abcdef") != "" {
		t.Errorf("%q is no SHA-256 in hex", original)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(valid)); err != nil {
		t.Fatal(err)
	}
	if got := digest(compact.Bytes()); got != original {
		t.Error("spacing changes the digest")
	}
	if got := digest(changed(t, func(object, func(int) object) {})); got != original {
		t.Error("the order of keys changes the digest")
	}
	rapid.Check(t, func(rt *rapid.T) {
		title := rapid.StringMatching(`[A-Za-z0-9][ -~]{0,19}`).Draw(rt, "title")
		other, err := manifest.Parse(changed(t, func(m object, _ func(int) object) { m["title"] = title }))
		if err != nil {
			rt.Fatal(err)
		}
		if (other.Digest() == original) != (title == "Shop") {
			rt.Errorf("title %q: digest %s, original %s", title, other.Digest(), original)
		}
	})
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for kind, want := range map[manifest.Kind]bool{
		manifest.Query: false, manifest.Payment: true, manifest.Collection: true, manifest.Transfer: true, manifest.Order: true, manifest.Refund: true,
		"": false, "gift": false,
	} {
		if kind.Money() != want {
			t.Errorf("%q moves money is %v, want %v", kind, kind.Money(), want)
		}
	}
}

func TestPointers(t *testing.T) {
	t.Parallel()
	for pointer, want := range map[string]string{
		"/id": "id", "": "", "id": "", "/a/b": "", "/a~1b": "a/b", "/a~0b": "a~b", "/a~01b": "a~1b",
	} {
		if got := (manifest.Operation{Reference: pointer}).ReferenceField(); got != want {
			t.Errorf("%q points to %q, want %q", pointer, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	var d manifest.Duration
	if err := json.Unmarshal([]byte(`"90s"`), &d); err != nil || time.Duration(d) != 90*time.Second {
		t.Errorf("got %v, %v", time.Duration(d), err)
	}
	if text, err := json.Marshal(d); err != nil || string(text) != `"1m30s"` {
		t.Errorf("got %s, %v", text, err)
	}
	for _, text := range []string{`""`, `"0s"`, `"-1s"`, `"15"`, `15`, `"soon"`} {
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s was taken", text)
		}
	}
}

func TestCompileSchemaAssertsFormats(t *testing.T) {
	t.Parallel()
	schema, err := manifest.CompileSchema("s", json.RawMessage(`{"type":"string","format":"email"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate("a@example.com"); err != nil {
		t.Error(err)
	}
	if err := schema.Validate("nobody"); err == nil {
		t.Error("a word is no mail address")
	}
}

// TestNeedsThisGateway: what a gateway has already changes nothing but the digest.
func TestNeedsThisGateway(t *testing.T) {
	t.Parallel()
	document := strings.Replace(valid, `"manifest": 1`, fmt.Sprintf(`"manifest": 1, "needs": %d`, manifest.Interface), 1)
	m, err := manifest.Parse([]byte(document))
	if err != nil || m.Needs != manifest.Interface {
		t.Fatalf("got %+v, %v", m, err)
	}
	if again, err := manifest.Parse(m.Document()); err != nil || again.Digest() != m.Digest() {
		t.Errorf("read again: %v", err)
	}
}
