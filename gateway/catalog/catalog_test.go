package catalog_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

const paymentsManifest = "../../plugins/payments/manifest.json"

func load(t testing.TB, path string) *manifest.Manifest {
	t.Helper()
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func payments(t testing.TB) *catalog.Snapshot {
	t.Helper()
	s, err := catalog.Build([]*manifest.Manifest{load(t, paymentsManifest)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func operation(t testing.TB, path string) *catalog.Operation {
	t.Helper()
	op, ok := payments(t).ByPath(path)
	if !ok {
		t.Fatalf("there is no %s", path)
	}
	return op
}

func document(t testing.TB, text string) catalog.Document {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var body catalog.Document
	if err := decoder.Decode(&body); err != nil {
		t.Fatal(err)
	}
	return body
}

func fields(namesAndMessages ...string) []fault.Field {
	var all []fault.Field
	for pair := range slices.Chunk(namesAndMessages, 2) {
		all = append(all, fault.Field{Field: pair[0], Message: pair[1]})
	}
	return all
}

func TestBuildLinksFollowersToTheirTarget(t *testing.T) {
	t.Parallel()
	s := payments(t)
	create, _ := s.ByPath("/payments/create")
	for _, path := range []string{"/payments/status", "/payments/cancel"} {
		follower, ok := s.ByPath(path)
		if !ok || follower.Target != create {
			t.Errorf("%s is not about %s", path, create.Path)
		}
	}
	if create.Target != nil || create.Rules.ReferenceField != "external_id" || create.Rules.Pace.SettlesWithin <= 0 {
		t.Errorf("create is compiled as %+v", create)
	}
	if _, ok := s.ByPath("/payments/nothing"); ok {
		t.Error("a path that nobody declared is found")
	}
}

func TestBuildRefusesTwoProvidersOnOnePath(t *testing.T) {
	t.Parallel()
	for file, path := range map[string]string{
		"../../plugins/ppob/manifest.json":    "/ppob/order",
		"../../plugins/wallet1/manifest.json": "/wallet1/transfer/bank",
	} {
		first, second := load(t, file), load(t, file)
		second.Name = "other"
		_, err := catalog.Build([]*manifest.Manifest{first, second})
		if err == nil || !strings.Contains(err.Error(), first.Name+" and other") || !strings.Contains(err.Error(), path) {
			t.Errorf("%s is shared: %v", path, err)
		}
	}
}

// second is another provider of payments, which has bounds and results of its own.
func second(t *testing.T) *manifest.Manifest {
	t.Helper()
	document, err := os.ReadFile(paymentsManifest)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(document), `"name": "payments"`, `"name": "other"`, 1)
	text = strings.Replace(text, `"operations": [`, `"operations": [{"path": "/payments/create", "timeout": "25s",
		"narrow": {"amount": {"maximum": 20000}}, "adds": {"va_number": {"type": "string", "maxLength": 30}}},`, 1)
	m, err := manifest.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestProvidersOfPaymentsShareTheContractsPaths(t *testing.T) {
	t.Parallel()
	s, err := catalog.Build([]*manifest.Manifest{load(t, paymentsManifest), second(t)})
	if err != nil {
		t.Fatal(err)
	}
	create, _ := s.ByPath("/payments/create")
	if !create.Routed() || create.Contract() != "payments@1" || create.Provider != "payments" || create.Rules.Timeout != 25*time.Second {
		t.Errorf("create is %s of %s, waits %s", create.Provider, create.Contract(), create.Rules.Timeout)
	}
	theirs, ok := create.Of("other")
	if !ok || theirs.Routed() || theirs.Provider != "other" || theirs.Manifest.Name != "other" {
		t.Fatalf("the other's is %+v", theirs)
	}
	body := document(t, `{"amount": 20001, "payer_email": "a@example.com"}`)
	if wrong := create.Check(body); wrong != nil {
		t.Errorf("the contract refuses %+v", wrong)
	}
	if wrong := theirs.Check(body); !slices.Equal(wrong, fields("amount", "must be at most 20000")) {
		t.Errorf("the other refuses %+v", wrong)
	}
	ours, _ := create.Canonical(create.WithDefaults(body))
	alone, _ := operation(t, "/payments/create").Canonical(operation(t, "/payments/create").WithDefaults(body))
	if string(ours) != string(alone) {
		t.Errorf("a second provider changes the request to %s, from %s", ours, alone)
	}
	for _, path := range []string{"/payments/status", "/payments/cancel"} {
		whole, _ := s.ByPath(path)
		if of, ok := whole.Of("other"); whole.Target != create || !ok || of.Target != theirs || !slices.Equal(theirs.Results(of), []string{"va_number"}) {
			t.Errorf("%s is about %+v, and shows %v of the other's results", path, of.Target, theirs.Results(of))
		}
		if !whole.Answers("va_number") {
			t.Errorf("%s does not say that it may show va_number", path)
		}
	}
	if status, _ := s.ByPath("/payments/status"); create.Status != status || theirs.Status == status || theirs.Status.Provider != "other" {
		t.Error("the status of one is another's")
	}
	if list, ok := s.ByPath("/payments/list"); !ok || list.Lists.Provider != "payments" || len(s.Operations()) != len(payments(t).Operations()) {
		t.Error("a path is there twice")
	}
	if _, ok := create.Of("third"); ok || create.Shown("third") != create {
		t.Error("who serves no path has an operation")
	}
	if op, ok := s.OfProvider("other"); !ok || op.Provider != "other" {
		t.Error("the other offers nothing")
	}
}

// A provider that takes less than its contract, and has the paths alone, tells its own
// bounds to merchants and the contract's to nobody.
func TestALoneProviderThatTakesLess(t *testing.T) {
	t.Parallel()
	alone := func(m *manifest.Manifest) (create *catalog.Operation, document string) {
		s, err := catalog.Build([]*manifest.Manifest{m})
		if err != nil {
			t.Fatal(err)
		}
		create, _ = s.ByPath("/payments/create")
		return create, string(s.OpenAPI())
	}
	if create, _ := alone(load(t, paymentsManifest)); create.Routed() {
		t.Error("one that takes all that there is is chosen")
	}
	create, document := alone(second(t))
	if !create.Routed() || len(create.Providers()) != 1 || !strings.Contains(document, `"maximum": 20000,`) || !strings.Contains(document, "va_number") {
		t.Errorf("%v serve it: %s", create.Providers(), document)
	}
}

// A cancel on a path of a provider's own is about what that provider makes, by its rules.
func TestAProvidersOwnCancelHasItsRules(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(paymentsManifest)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(document), `"name": "payments"`, `"name": "other"`, 1)
	text = strings.Replace(text, `"settles_within": "30s",`, `"settles_within": "90s",`, 1)
	text = strings.Replace(text, `"operations": [`, `"operations": [{"path": "/payments/void", "cancel_of": "/payments/create",
		"summary": "Void", "timeout": "12s", "reference": "/external_id",
		"request": {"type": "object", "required": ["external_id"], "properties": {"external_id": {"type": "string", "minLength": 1, "maxLength": 255}}},
		"response": {"type": "object", "properties": {"external_id": {"type": "string"}}}},`, 1)
	other, err := manifest.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := catalog.Build([]*manifest.Manifest{load(t, paymentsManifest), other})
	if err != nil {
		t.Fatal(err)
	}
	create, _ := s.ByPath("/payments/create")
	theirs, _ := create.Of("other")
	if own, ok := s.ByPath("/payments/void"); !ok || own.Target != theirs || own.Target.Rules.Pace.SettlesWithin != 90*time.Second {
		t.Errorf("the other's own cancel is about an operation of %s", own.Target.Provider)
	}
}

func TestBuildRefusesAKindThatIsNotServed(t *testing.T) {
	t.Parallel()
	m := load(t, paymentsManifest)
	m.Operations[0].Kind = "lottery"
	if _, err := catalog.Build([]*manifest.Manifest{m}); err == nil || !strings.Contains(err.Error(), "lottery") {
		t.Errorf("got %v, want a refusal that names the kind", err)
	}
}

func TestTheGatewayHasItsOwnOperations(t *testing.T) {
	t.Parallel()
	events := operation(t, catalog.EventsPath)
	if !events.Own() || events.Money() || events.Status != nil || operation(t, "/payments/status").Own() {
		t.Errorf("events are compiled as %+v", events)
	}
	if got := events.ReferenceOf(catalog.Document{"": "a"}); got != "" {
		t.Errorf("what has no reference names %q", got)
	}
	if got := events.WithDefaults(nil)["limit"]; got != json.Number("20") {
		t.Errorf("limit is %v unless given", got)
	}
	for body, want := range map[string][]fault.Field{
		`{"after": "0b0f6a52-6ef3-4b0c-9d2a-0f5b6a1f2c11", "limit": 100, "x": 1}`: nil,
		`{"after": "1"}`:           fields("after", "must be a valid uuid"),
		`{"after": 1, "limit": 0}`: fields("after", "must be a string, not a number", "limit", "must be at least 1"),
		`{"limit": 101}`:           fields("limit", "must be at most 100"),
		`{"limit": 1.5}`:           fields("limit", "must be a whole number, without a fraction"),
	} {
		if got := events.Check(document(t, body)); !slices.Equal(got, want) {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
}

func TestBuildKeepsTheGatewaysOwnPaths(t *testing.T) {
	t.Parallel()
	m := load(t, paymentsManifest)
	m.Operations[0].Path = catalog.EventsPath
	if _, err := catalog.Build([]*manifest.Manifest{m}); err == nil || !strings.Contains(err.Error(), "the path is the gateway's own") {
		t.Errorf("got %v, want a refusal of the path", err)
	}
}

func TestSwapChangesTheCurrentSnapshot(t *testing.T) {
	t.Parallel()
	first, second := payments(t), payments(t)
	c := catalog.New(first)
	if c.Current() != first {
		t.Error("it does not begin with its snapshot")
	}
	c.Swap(second)
	if c.Current() != second {
		t.Error("the snapshot was not swapped")
	}
}

func TestCheckNamesEachField(t *testing.T) {
	t.Parallel()
	op := operation(t, "/payments/create")
	tests := map[string]struct {
		body string
		want []fault.Field
	}{
		"right":    {`{"amount": 10000, "payer_email": "a@example.com"}`, nil},
		"as 1e4":   {`{"amount": 1e4, "payer_email": "a@example.com"}`, nil},
		"with .00": {`{"amount": 10000.00, "payer_email": "a@example.com"}`, nil},
		"missing":  {`{}`, fields("amount", "is required", "payer_email", "is required")},
		"fraction": {`{"amount": 100.5, "payer_email": "a@example.com"}`, fields("amount", "must be a whole number, without a fraction")},
		"string":   {`{"amount": "100", "payer_email": "a@example.com"}`, fields("amount", "must be a whole number, not a string")},
		"low":      {`{"amount": 99, "payer_email": "a@example.com"}`, fields("amount", "must be at least 100")},
		"high":     {`{"amount": 1000000000001, "payer_email": "a@example.com"}`, fields("amount", "must be at most 1000000000000")},
		"unknown":  {`{"amount": 100, "payer_email": "a@example.com", "x": 1}`, fields("x", "is not a known field")},
		"case":     {`{"amount": 100, "payer_email": "a@example.com", "Type": "qris"}`, fields("Type", `is not a known field; did you mean "type"`)},
		"enum":     {`{"amount": 100, "payer_email": "a@example.com", "type": "cash"}`, fields("type", "must be one of payment_link, qris")},
		"format":   {`{"amount": 100, "payer_email": "nobody"}`, fields("payer_email", "must be a valid email")},
		"inner":    {`{"amount": 100, "payer_email": "a@example.com", "metadata": {"a": 1}}`, fields("metadata.a", "must be a string, not a number")},
		"long":     {`{"amount": 100, "payer_email": "a@example.com", "description": "` + strings.Repeat("x", 501) + `"}`, fields("description", "must have at most 500 characters")},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := op.Check(document(t, test.body)); !slices.Equal(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// The library names such places at random, so once is not enough.
func TestNamesThatAreNotAllowedAreNamedWhereTheyAre(t *testing.T) {
	t.Parallel()
	op := operation(t, "/payments/create")
	long := strings.Repeat("x", 41)
	body := document(t, `{"amount": 1, "payer_email": "nobody", "type": "cash", "metadata": {"a": 1, "`+long+`": "x", "b": {}}}`)
	want := fields("amount", "must be at least 100", "metadata.a", "must be a string, not a number", "metadata.b", "must be a string, not an object",
		"metadata."+long, "is not an allowed name here", "payer_email", "must be a valid email", "type", "must be one of payment_link, qris")
	for range 100 {
		if got := op.Check(body); !slices.Equal(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}

func TestWithDefaultsLeavesTheBodyAlone(t *testing.T) {
	t.Parallel()
	op := operation(t, "/payments/create")
	body := document(t, `{"amount": 100}`)
	if filled := op.WithDefaults(body); filled["type"] != "payment_link" || filled["amount"] != json.Number("100") {
		t.Errorf("got %v", filled)
	}
	if _, changed := body["type"]; changed {
		t.Error("the body itself was changed")
	}
	if filled := op.WithDefaults(catalog.Document{"type": "qris"}); filled["type"] != "qris" {
		t.Error("the default replaced what was given")
	}
	if filled := op.WithDefaults(nil); filled["type"] != "payment_link" {
		t.Errorf("of nothing: %v", filled)
	}
}

func TestCanonicalIsTheSameForTheSameRequest(t *testing.T) {
	t.Parallel()
	op := operation(t, "/payments/create")
	canonical := func(text string) string {
		encoded, err := op.Canonical(document(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return string(encoded)
	}
	first := canonical(`{"amount": 10000, "payer_email": "a@example.com"}`)
	if second := canonical(`{"payer_email": "a@example.com", "amount": 1e4}`); second != first {
		t.Errorf("%s\ndiffers from\n%s", second, first)
	}
	if other := canonical(`{"amount": 10001, "payer_email": "a@example.com"}`); other == first {
		t.Error("another amount is the same request")
	}
}

func TestReadsReferenceAmountAndPolicyFields(t *testing.T) {
	t.Parallel()
	op := operation(t, "/payments/create")
	body := document(t, `{"amount": 1e4, "external_id": "INV/2026/#001", "type": "qris", "payer_email": "a@example.com"}`)
	if got := op.ReferenceOf(body); got != "INV/2026/#001" {
		t.Errorf("reference %q", got)
	}
	if got, err := op.AmountOf(body); err != nil || got != 10000 {
		t.Errorf("amount %v, %v", got, err)
	}
	if _, err := op.AmountOf(catalog.Document{}); err == nil {
		t.Error("a body without amount has one")
	}
	if got := op.PolicyFields(body); len(got) != 1 || got["type"] != "qris" {
		t.Errorf("policies see %v", got)
	}
}

func TestCheckResult(t *testing.T) {
	t.Parallel()
	op := operation(t, "/payments/create")
	for result, right := range map[string]bool{
		`{"qr_string": "000201"}`:              true,
		`{"payment_url": "https://pay.test/"}`: true,
		`{}`:                                   false,
		`{"payment_url": "javascript:x"}`:      false,
		`nonsense`:                             false,
	} {
		if err := op.CheckResult(json.RawMessage(result)); (err == nil) != right {
			t.Errorf("%s: %v", result, err)
		}
	}
}

// TestAWrongResultIsToldBriefly: however much is wrong with it, or long.
func TestAWrongResultIsToldBriefly(t *testing.T) {
	t.Parallel()
	op, _ := shop(t).ByPath("/shop/products")
	long := strings.Repeat("x", 1000)
	err := op.CheckResult([]byte("[" + strings.Repeat(`{"sku": "a"},`, 10_000) + `{"` + long + `": 1}]`))
	const want = "result of /shop/products: at /0: missing property 'price'; at /1: missing property 'price'"
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "; and 9996 more") || len(err.Error()) > 500 {
		t.Errorf("%.2000v", err)
	}
}
