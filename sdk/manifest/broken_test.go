package manifest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// broken are manifests that would hurt merchants or the gateway if they were taken, each
// with the whole message that its author reads.
var broken = map[string]struct {
	document func(t *testing.T) []byte
	want     string
}{
	"empty":              {text(""), "is no JSON at byte 0: unexpected EOF"},
	"cut off":            {text(valid[:200]), "is no JSON at byte 200: unexpected EOF"},
	"a list":             {text("[]"), "must not be an array"},
	"nothing":            {text("{}"), "/connection: connection: the schema is missing"},
	"two documents":      {text(valid + "{}"), `is no JSON at byte 1989: invalid character '{' after top-level value`},
	"a member twice":     {replaced(`"title": "Shop"`, `"title": "Shop", "title": "Other"`), `/title: is no JSON at byte 73: duplicate object member name`},
	"an unknown member":  {replaced(`"title": "Shop"`, `"title": "Shop", "tittle": "Shop"`), "/tittle: manifests have no such member: correct its name, or leave it out"},
	"broken UTF-8":       {replaced(`"Shop"`, "\"\xff\""), `/title: is no JSON at byte 66: invalid UTF-8`},
	"larger than may be": {replaced(`"Pays."`, `"`+strings.Repeat("x", 1<<20)+`"`), "the document has 1050560 bytes, at most are 1048576: shorten its schemas"},
	"a bell in its version": {
		replaced(`"1.0.0"`, `"1.0\u0007"`),
		`/version: "1.0\a" must be letters, digits, dots, hyphens, plus signs and underscores, at most 40`,
	},
	"a line break in its title":      {replaced(`"Shop"`, `"Shop\nlevel=ERROR"`), "/title: has a control character: write one line of plain text"},
	"a terminal's code in a summary": {replaced(`"Pay"`, `"Pay\u001b[2J"`), "/operations/0/summary: has a control character: write one line of plain text"},
	"a title like a book":            {replaced(`"Shop"`, `"`+strings.Repeat("a", 121)+`"`), "/title: has 121 bytes, at most are 120"},
	"a path that leaves":             {replaced("/shop/rates", "/../rates"), `/operations/3/path: "/../rates" must look like /payments/create, at most 100 long`},
	"a path without an end":          {replaced("/shop/rates", "/"+strings.Repeat("a", 100)), `must look like /payments/create, at most 100 long`},
	"a contract's path": {
		replaced(`"path": "/shop/rates"`, `"path": "/ppob/products"`),
		`/operations/3/path: /ppob/products belongs to the contract ppob@1: say "implements": "ppob@1", or take a path of your own`,
	},
	"a contract's path beside another contract": {
		text(strings.Replace(minimal, `"lookup"`, `"operations": [{"path": "/ppob/products", "kind": "query", "summary": "Products", "timeout": "5s",
			"request": {"type": "object"}, "result": {"type": "array"}, "response": {"type": "array"}}], "lookup"`, 1)),
		`/operations/0/path: /ppob/products belongs to the contract ppob@1: say "implements": "ppob@1", or take a path of your own`,
	},
	"a connection that is a text": {replaced(`"connection": {"type": "object"}`, `"connection": {"type": "string"}`), `/connection: must be the schema of an object: say "type": "object"`},
	"a request that is a text": {
		replaced(`"timeout": "5s",
		 "request": {"type": "object"}`, `"timeout": "5s", "request": {"type": "string"}`),
		`/operations/3/request: must be the schema of an object: say "type": "object"`,
	},
	"a key in its request": {
		replaced(`"id": {"type": "string"}, "amount"`, `"id": {"type": "string"}, "secret_key": {"type": "string"}, "amount"`),
		"/operations/0/request/properties/secret_key: is the gateway's own and never reaches a plugin: take another name",
	},
	"an amount that is not required": {
		replaced(`"required": ["amount"]`, `"required": []`),
		"/operations/0/request/required: must name amount: there is no payment without an amount",
	},
	"an amount without a bound": {
		replaced(`"integer", "minimum": 1, "maximum": 1000000`, `"integer"`),
		"/operations/0/request/properties/amount: must have a minimum of at least 1 and a maximum of at most 1000000000000",
	},
	"an amount whose bound no schema knows": {
		replaced(`"integer", "minimum": 1, "maximum": 1000000`, `"integer", "minimum": 1, "Maximum": 1000000`),
		"/operations/0/request/properties/amount: must have a minimum of at least 1 and a maximum of at most 1000000000000",
	},
	"an amount of nothing": {
		replaced(`"minimum": 1,`, `"minimum": 0,`),
		"/operations/0/request/properties/amount: must have a minimum of at least 1",
	},
	"an amount with fractions": {replaced(`"amount": {"type": "integer"`, `"amount": {"type": "number"`), `/operations/0/amount: "/amount" must point to an integer property of the request`},
	"an amount by default": {
		replaced(`"minimum": 1,`, `"minimum": 1, "default": 5,`),
		"/operations/0/request/properties/amount/default: an amount has no default: nobody pays what nobody has said",
	},
	"one reference for all": {
		replaced(`"id": {"type": "string"}, "amount"`, `"id": {"type": "string", "default": "A"}, "amount"`),
		"/operations/0/request/properties/id/default: a reference has no default: all requests without one would be the same",
	},
	"a payment without a status": {
		replaced(`"status_of": "/shop/pay"`, `"status_of": "/shop/send"`),
		"/operations/0: /shop/pay has 0 status operations and must have one: declare an operation with status_of /shop/pay",
	},
	"two statuses": {
		replaced(`"status_of": "/shop/send"`, `"status_of": "/shop/pay"`),
		"/operations/0: /shop/pay has 2 status operations and must have one: declare an operation with status_of /shop/pay",
	},
	"a promise that nobody keeps": {
		replaced(`"result": {"type": "object"}, "response": {"type": "object"}`, `"result": {"type": "object"}, "response": {"type": "object", "properties": {"va_number": {"type": "string"}}}`),
		"/operations/0/response/properties/va_number: nobody supplies it: declare it in the result of /shop/pay, echo it from the request, or leave it out; " +
			"the gateway itself answers external_id, checkout_url, qr_string, status, amount, remaining_quota",
	},
	"a promise that comes too early": {
		both(replaced(`"result": {"type": "object"}`, `"result": {"type": "object", "required": ["va"], "properties": {"va": {"type": "string"}}}`),
			`"request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}`,
			`"request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object", "required": ["va"], "properties": {"va": {"type": "string"}}}`),
		"/operations/1/response/required: must not name va: nobody has it before the provider has answered",
	},
	"a promise that is kept at times": {
		replaced(`"result": {"type": "object"}, "response": {"type": "object"}`,
			`"result": {"type": "object", "properties": {"va": {"type": "string"}}}, "response": {"type": "object", "required": ["va"], "properties": {"va": {"type": "string"}}}`),
		"/operations/0/response/required: names va, which the result need not have: require it there, or not here",
	},
	"a cancel that tells a quota": {
		replaced(`"timeout": "12s",
		 "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object"}`,
			`"timeout": "12s", "request": {"type": "object", "properties": {"id": {"type": "string"}}}, "response": {"type": "object", "properties": {"remaining_quota": {"type": "integer"}}}`),
		"/operations/2/response/properties/remaining_quota: a cancel uses no quota: leave it out",
	},
	"a query that promises more than it gets": {
		replaced(`"result": {"type": "array"}, "response": {"type": "array"}`,
			`"result": {"type": "array", "items": {"properties": {"a": {}}}}, "response": {"type": "array", "items": {"properties": {"a": {}, "b": {}}}}`),
		"/operations/3/response: promises b, which the result does not have: declare it there, or leave it out",
	},
	"a query that is sure of what it may get": {
		replaced(`"result": {"type": "array"}, "response": {"type": "array"}`,
			`"result": {"type": "array", "items": {"properties": {"a": {}}}}, "response": {"type": "array", "items": {"required": ["a"], "properties": {"a": {}}}}`),
		"/operations/3/response: requires a, which the result need not have: require it there, or not here",
	},
	"a schema that is none": {
		replaced(`"amount": {"type": "integer"`, `"amount": {"type": "int"`),
		"/operations/0/request/properties/amount/type: is no JSON Schema (draft 2020-12): value must be one of",
	},
	"a pattern that is none":     {replaced(`"note": {"type": "string"}`, `"note": {"type": "string", "pattern": "("}`), "/operations/0/request/properties/note/pattern: is no JSON Schema (draft 2020-12)"},
	"a schema that reads a file": {replaced(`"response": {"type": "object"}`, `"response": {"$ref": "file:///etc/passwd"}`), "/operations/0/response: "},
	"narrow without a contract":  {replaced(`"summary": "Pay"`, `"summary": "Pay", "narrow": {"amount": {"maximum": 5}}`), "/operations/0: narrow and adds are for operations of the contract that the manifest implements"},
	"a gateway of the future":    {replaced(`"manifest": 1`, `"manifest": 2, "needs": 99, "splits": {}, "tittle": {}`), "/needs: needs gateway >= 99, this is 5 (gerbang version prints its interface): run a newer gateway"},
	"a form of the future":       {replaced(`"manifest": 1`, `"manifest": 2, "splits": {}`), "/manifest: is 2, this gateway reads 1: run a newer gateway"},
	"a member of the future":     {replaced(`"manifest": 1`, `"manifest": 1, "needs": 1, "splits": {}`), "/splits: manifests have no such member: correct its name, or leave it out; if newer gateways have it, say which in needs"},
	"a member of an operation":   {replaced(`"kind": "payment"`, `"kind": "payment", "splits": {}`), "/operations/0/splits: manifests have no such member"},
	"a kind of the future":       {replaced(`"kind": "payment"`, `"kind": "escrow"`), "/operations/0/kind: "},
	"a lookup of the future":     {replaced(`"lookup": "read"`, `"lookup": "push"`), "/lookup: "},
	"an owner of the future":     {replaced(`"lookup": "read"`, `"lookup": "read", "owner": "pool"`), `/owner: "pool" is neither merchant nor platform`},
	"a gateway before the first": {replaced(`"manifest": 1`, `"manifest": 1, "needs": -1`), "/needs: is -1: say which interface a gateway must have at least, or leave it out"},
	"a contract of the future":   {replaced(`"lookup": "read"`, `"lookup": "read", "implements": "cards@1"`), `/implements: "cards@1" is no contract of this gateway, which knows payments@1, `},
	"more operations than there can be": {
		func(t *testing.T) []byte {
			t.Helper()
			return changed(t, func(m object, op func(int) object) {
				var all []any
				for i := range 101 {
					one := object{}
					for name, value := range op(3) {
						one[name] = value
					}
					one["path"] = fmt.Sprintf("/shop/rates%d", i)
					all = append(all, one)
				}
				m["operations"] = all
			})
		}, "/operations: there are 101: declare one to 100",
	},
}

func text(document string) func(*testing.T) []byte {
	return func(*testing.T) []byte { return []byte(document) }
}

// replaced is the valid manifest with the first such text replaced.
func replaced(before, after string) func(*testing.T) []byte {
	return both(text(valid), before, after)
}

func both(first func(*testing.T) []byte, before, after string) func(*testing.T) []byte {
	return func(t *testing.T) []byte {
		t.Helper()
		document := string(first(t))
		if !strings.Contains(document, before) {
			t.Fatalf("the manifest has no %s", before)
		}
		return []byte(strings.Replace(document, before, after, 1))
	}
}

func TestBrokenManifests(t *testing.T) {
	t.Parallel()
	for name, c := range broken {
		_, err := manifest.Parse(c.document(t))
		faults, ok := errors.AsType[manifest.Faults](err)
		if !ok {
			t.Errorf("%s: got %v, want faults", name, err)
			continue
		}
		found := false
		for _, f := range faults {
			found = found || strings.HasPrefix(f.String(), c.want) || strings.Contains(c.want, "must look like") && strings.Contains(f.Text, c.want)
			if strings.ContainsAny(f.String(), "\n\r\a\x1b") {
				t.Errorf("%s: %q is not one line of plain text", name, f)
			}
		}
		if !found {
			t.Errorf("%s: got\n%v\nwant a line that begins with\n%s", name, err, c.want)
		}
	}
}
