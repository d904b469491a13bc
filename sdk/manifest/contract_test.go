package manifest_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// frozen are the digests of the contracts' canonical text. Approvals rest on it: a
// changed contract is another version beside the old one.
var frozen = map[string]string{
	"payments@1": "21f70e7c2bb6629355290e0f8a9a0eaa91cecfa492928c64b91e1224a8a90c60",
	"ppob@1":     "71d63308bcc0d27da594a8ece2ace3bd2076e7b66e56f1c8c28e482cf1a50779",
	"wallet1@1":  "f961e158870db2e21b3fc993cddf5ef45f2a09e54539b798d08920ee13add70f",
	"wallet2@1":  "7b392cc93d41d37eab307ad90a15c3b5f8891bc39335446fb6e833cc6181caae",
}

func TestContractsAreFrozen(t *testing.T) {
	t.Parallel()
	found := map[string]string{}
	for _, name := range manifest.Contracts() {
		text, err := os.ReadFile(filepath.Join("contracts", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		canonical := jsontext.Value(text)
		if err := canonical.Canonicalize(); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(canonical)
		found[name] = hex.EncodeToString(sum[:])
	}
	if !maps.Equal(found, frozen) {
		t.Errorf("the contracts have digests %q, frozen are %q", found, frozen)
	}
}

// minimal implements a contract and says no more than it must.
const minimal = `{
	"manifest": 1, "name": "link-1", "version": "2.0.0", "title": "Links", "implements": "payments@1",
	"lookup": "read", "settles_within": "30s", "references": {"longest": 64, "alphabet": "0-9a-f"},
	"connection": {"type": "object", "properties": {"key": {"type": "string"}}}
}`

// implementing is the minimal manifest with these operations.
func implementing(t *testing.T, operations string) []byte {
	t.Helper()
	if !json.Valid([]byte(operations)) {
		t.Fatalf("%s is no JSON", operations)
	}
	return []byte(strings.TrimSuffix(strings.TrimSpace(minimal), "}") + `, "operations": ` + operations + "}")
}

func parse(t *testing.T, document []byte) *manifest.Manifest {
	t.Helper()
	m, err := manifest.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestContractIsExpanded(t *testing.T) {
	t.Parallel()
	m := parse(t, []byte(minimal))
	var paths []string
	for _, op := range m.Operations {
		paths = append(paths, op.Path)
		if theirs, ok := manifest.ContractOperation("payments@1", op.Path); !ok || string(theirs.Request) != string(op.Request) {
			t.Errorf("%s is not the contract's", op.Path)
		}
	}
	if want := []string{"/payments/create", "/payments/status", "/payments/cancel"}; !slices.Equal(paths, want) {
		t.Errorf("it has %q, want %q", paths, want)
	}
	again := parse(t, m.Document())
	if again.Digest() != m.Digest() || string(again.Document()) != string(m.Document()) {
		t.Error("an expanded manifest is not its own expansion")
	}
	if again.Implements != "payments@1" {
		t.Errorf("the expanded one implements %q", again.Implements)
	}
}

// What is a provider's own is kept, and expanded once however often it is read.
func TestProvidersOwn(t *testing.T) {
	t.Parallel()
	m := parse(t, implementing(t, `[
		{"path": "/link/rates", "kind": "query", "summary": "Rates", "timeout": "5s", "request": {"type": "object"}, "result": {"type": "object"}, "response": {"type": "object"}},
		{"path": "/payments/create", "timeout": "7s",
		 "narrow": {"amount": {"minimum": 10000, "maximum": 5000000}, "type": {"enum": ["qris"]}, "description": {"maxLength": 40, "required": true},
			"success_url": {"pattern": "^https://", "description": "https alone."}},
		 "adds": {"va_number": {"type": "string", "maxLength": 32, "description": "The virtual account's number."}}}
	]`))
	create, _ := m.Operation("/payments/create")
	if create.Timeout.String() != "7s" || m.Operations[3].Path != "/link/rates" {
		t.Errorf("got %+v", m.Operations)
	}
	var request struct {
		Required   []string
		Properties map[string]map[string]any
	}
	if err := json.Unmarshal(create.Request, &request); err != nil {
		t.Fatal(err)
	}
	p := request.Properties
	if p["amount"]["minimum"] != 10000.0 || p["amount"]["maximum"] != 5000000.0 || p["description"]["maxLength"] != 40.0 ||
		p["success_url"]["pattern"] != `^https?://[^\s]+$` || p["success_url"]["allOf"] == nil || p["success_url"]["description"] != "https alone." {
		t.Errorf("the request is %s", create.Request)
	}
	if _, kept := p["type"]["default"]; kept || !slices.Contains(request.Required, "type") || !slices.Contains(request.Required, "description") {
		t.Errorf("a default that is excluded, or what is required: %s", create.Request)
	}
	for _, op := range m.Operations[:3] {
		if !strings.Contains(string(op.Response), `"va_number"`) {
			t.Errorf("%s does not answer va_number", op.Path)
		}
		if got := create.Results(op.Response, op.Kind != ""); !slices.Equal(got, []string{"va_number"}) {
			t.Errorf("%s shows %q of the result", op.Path, got)
		}
	}
	again := parse(t, m.Document())
	if again.Digest() != m.Digest() {
		t.Error("an expanded manifest is not its own expansion")
	}
}

func TestContractIsKept(t *testing.T) {
	t.Parallel()
	for operations, want := range map[string]string{
		`[{"path": "/payments/create", "amount": "/sum"}]`:                                         `/operations/0/amount: the contract payments@1 says this`,
		`[{"path": "/payments/create", "request": {"type": "object"}}]`:                            `/operations/0/request: the contract payments@1 says this`,
		`[{"path": "/payments/status", "kind": "query"}]`:                                          `/operations/0/kind: the contract`,
		`[{"path": "/payments/create"}, {"path": "/payments/create"}]`:                             `/operations/1/path: /payments/create stands twice`,
		`[{"path": "/payments/status", "narrow": {"external_id": {"maxLength": 9}}}]`:              `/operations/0/narrow: a status or cancel takes`,
		`[{"path": "/payments/create", "narrow": {"sum": {"minimum": 9}}}]`:                        `/operations/0/narrow/sum: the request of /payments/create has no sum: it has amount, `,
		`[{"path": "/payments/create", "narrow": {"amount": {"minimum": 99}}}]`:                    `/operations/0/narrow/amount/minimum: 99 is wider than the contract's 100`,
		`[{"path": "/payments/create", "narrow": {"amount": {"maximum": 1000000000001}}}]`:         `/operations/0/narrow/amount/maximum: 1000000000001 is wider`,
		`[{"path": "/payments/create", "narrow": {"amount": {"maximum": 99}}}]`:                    `/operations/0/narrow/amount: nothing is within these bounds: the least is 100 and the most 99`,
		`[{"path": "/payments/create", "narrow": {"amount": {"maximum": 1.5}}}]`:                   `/operations/0/narrow/amount/maximum: must be a whole number`,
		`[{"path": "/payments/create", "narrow": {"amount": {"maxLength": 5}}}]`:                   `/operations/0/narrow/amount/maxLength: is for properties that are strings`,
		`[{"path": "/payments/create", "narrow": {"amount": {"multipleOf": 5}}}]`:                  `/operations/0/narrow/amount/multipleOf: can't be tightened`,
		`[{"path": "/payments/create", "narrow": {"type": {"enum": ["va"]}}}]`:                     `/operations/0/narrow/type/enum: "va" is none of the contract's`,
		`[{"path": "/payments/create", "narrow": {"type": {"enum": []}}}]`:                         `/operations/0/narrow/type/enum: must be a list of at least one`,
		`[{"path": "/payments/create", "narrow": {"type": {"required": false}}}]`:                  `/operations/0/narrow/type/required: can only be true`,
		`[{"path": "/payments/create", "narrow": {"success_url": {"pattern": "("}}}]`:              `/operations/0/narrow/success_url/pattern: is no regular expression`,
		`[{"path": "/payments/create", "narrow": {"external_id": {"maxLength": 9}}}]`:              `/operations/0/narrow/external_id/maxLength: the reference is the merchant's`,
		`[{"path": "/payments/create", "adds": {"amount": {"type": "integer"}}}]`:                  `/operations/0/adds/amount: amount has a meaning already`,
		`[{"path": "/payments/create", "adds": {"metadata": {"type": "string", "maxLength": 9}}}]`: `/operations/0/adds/metadata: metadata has a meaning already`,
		`[{"path": "/payments/create", "adds": {"vaNumber": {"type": "integer"}}}]`:                `/operations/0/adds/vaNumber: must be named in lower-case`,
		`[{"path": "/payments/create", "adds": {"va": {"type": "string"}}}]`:                       `/operations/0/adds/va: a text must have a maxLength`,
		`[{"path": "/payments/create", "adds": {"va": {"type": "string", "maxlength": 9}}}]`:       `/operations/0/adds/va: a text must have a maxLength`,
		`[{"path": "/payments/create", "adds": {"va": {"type": "object"}}}]`:                       `/operations/0/adds/va: must be a schema with "type"`,
		`[{"path": "/payments/create", "adds": {"va": {"type": "integer", "minimum": "1"}}}]`:      `/operations/0/adds/va/minimum: is no JSON Schema`,
		`[{"path": "/payments/status", "adds": {"va": {"type": "integer"}}}]`:                      `/operations/0/adds: is for operations that move money`,
		`[{"path": "/payments/create", "timeout": "31s"}]`:                                         `/operations/0/timeout: must be given`,
	} {
		if _, err := manifest.Parse(implementing(t, operations)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\ngot %v\nwant a fault with %s", operations, err, want)
		}
	}
}

// A path of a contract is taken by nobody who does not implement it. Plugins that were
// built before there were contracts declare the same in full.
func TestPathOfAContract(t *testing.T) {
	t.Parallel()
	whole := parse(t, []byte(minimal))
	var document map[string]any
	if err := json.Unmarshal(whole.Document(), &document); err != nil {
		t.Fatal(err)
	}
	delete(document, "implements")
	encode := func() []byte {
		text, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	create, _ := document["operations"].([]any)[0].(map[string]any)
	create["description"], create["timeout"] = "In words of its own.", "9s"
	parse(t, encode())
	create["echo"] = []any{"payer_email"}
	_, err := manifest.Parse(encode())
	if want := `/operations/0/path: /payments/create belongs to the contract payments@1: say "implements": "payments@1", or take a path of your own`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// What a contract refuses hides no other fault.
func TestEveryFaultIsToldAtOnce(t *testing.T) {
	t.Parallel()
	document := strings.Replace(string(implementing(t, `[{"path": "/payments/create", "narrow": {"sum": {"minimum": 9}}}]`)), `"30s"`, `"5s"`, 1)
	_, err := manifest.Parse([]byte(document))
	for _, want := range []string{"/operations/0/narrow/sum: ", "/settles_within: must be at least the timeout of 12s of /payments/create"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a line with %s", err, want)
		}
	}
}

func TestUnknownContract(t *testing.T) {
	t.Parallel()
	_, err := manifest.Parse([]byte(strings.Replace(minimal, "payments@1", "payments@9", 1)))
	want := `/implements: "payments@9" is no contract of this gateway, which knows payments@1, ppob@1, wallet1@1, wallet2@1: name one of them, or run a newer gateway`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// What a manifest declares of a path is the same however it was kept: replicas that read
// it from the database and from the plugin agree.
func TestDeclaredIsTheSameHoweverItIsKept(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"payments", "midtrans", "ppob", "wallet1", "wallet2"} {
		written, err := os.ReadFile("../../plugins/" + name + "/manifest.json")
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse(written)
		if err != nil {
			t.Fatal(err)
		}
		kept, err := manifest.Parse(m.Document())
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, op := range m.Operations {
			if d := m.Declared(op.Path); d == "" || d != kept.Declared(op.Path) || seen[d] {
				t.Errorf("%s: %s is declared as %q and %q", name, op.Path, d, kept.Declared(op.Path))
			}
			seen[m.Declared(op.Path)] = true
		}
		if m.Declared("/none") != "" {
			t.Error("a path that is not there is declared")
		}
	}
}
