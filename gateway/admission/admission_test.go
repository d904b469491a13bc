package admission_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

var noon = time.Date(2026, 11, 20, 5, 0, 0, 0, time.UTC)

// rules let everything pass but large amounts and QR codes at noon in Jakarta,
// and fail on a description.
const rules = `package gerbang

admit := {"allow": count(refusals) == 0, "reasons": refusals}

refusals contains "Too much." if input.amount > 1000000
refusals contains "No QR codes at noon." if { input.fields.type == "qris"; input.clock.hour == 12 }
refusals contains "Never." if input.merchant.tier == "never"
refusals contains "Broken." if { input.merchant.tier == "broken"; to_number("x") == 1 }

limits := {
	"rates": [
		{"name": "default", "rate_per_second": 1, "burst": 2},
		{"name": "second", "rate_per_second": 1, "burst": 3},
	],
	"quotas": [],
	"markup": {"default": 500, "products": {"xld10": 250}},
} if input.merchant.tier != "unlimited"
`

const tiers = `{"tiers": {"scale": {"rate_per_second": 1, "burst": 1, "quotas": {}}}}`

func compile(t testing.TB, module string) *policy.Active {
	t.Helper()
	source := policy.Default()
	if module != "" {
		source = policy.Source{"rules.rego": []byte(module), "data.json": []byte(tiers)}
	}
	set, err := policy.Compile(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	return policy.NewActive(set)
}

func operation(t testing.TB, path string) *catalog.Operation {
	t.Helper()
	text, err := os.ReadFile("../../plugins/payments/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	s, err := catalog.Build([]*manifest.Manifest{m})
	if err != nil {
		t.Fatal(err)
	}
	op, _ := s.ByPath(path)
	return op
}

func identity(t testing.TB, tier tenants.Tier, status tenants.Status, scopes ...tenants.Scope) tenants.Identity {
	t.Helper()
	account, err := tenants.NewAccount(tenants.Merchant{ID: "mer_" + tenants.MerchantID(tier), Name: "Toko", Tier: tier, Status: status, Version: 1}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := tenants.Identity{Account: account, Mode: tenants.Test}
	if id.Key.Scopes, err = tenants.NewScopes(scopes...); err != nil {
		t.Fatal(err)
	}
	return id
}

func code(err error) fault.Code {
	if err == nil {
		return ""
	}
	return fault.From(err).Code
}

func TestAccess(t *testing.T) {
	t.Parallel()
	create, status, cancel := operation(t, "/payments/create"), operation(t, "/payments/status"), operation(t, "/payments/cancel")
	events := operation(t, catalog.EventsPath)
	tests := []struct {
		name   string
		op     *catalog.Operation
		status tenants.Status
		scopes []tenants.Scope
		want   fault.Code
	}{
		{"create with collect", create, tenants.Active, []tenants.Scope{tenants.ScopeCollect}, ""},
		{"create with read", create, tenants.Active, []tenants.Scope{tenants.ScopeRead, tenants.ScopeOrder, tenants.ScopeTransfer}, fault.ScopeMissing},
		{"status with read", status, tenants.Active, []tenants.Scope{tenants.ScopeRead}, ""},
		{"status with collect", status, tenants.Active, []tenants.Scope{tenants.ScopeCollect}, fault.ScopeMissing},
		{"cancel with collect", cancel, tenants.Active, []tenants.Scope{tenants.ScopeCollect}, ""},
		{"cancel with read", cancel, tenants.Active, []tenants.Scope{tenants.ScopeRead}, fault.ScopeMissing},
		{"events with read", events, tenants.Active, []tenants.Scope{tenants.ScopeRead}, ""},
		{"events with collect", events, tenants.Active, []tenants.Scope{tenants.ScopeCollect}, fault.ScopeMissing},
		{"suspended", status, tenants.Suspended, []tenants.Scope{tenants.ScopeRead}, fault.MerchantSuspended},
		{"suspended without scope", create, tenants.Suspended, nil, fault.MerchantSuspended},
	}
	for _, test := range tests {
		if got := code(admission.Access(identity(t, "scale", test.status, test.scopes...), test.op)); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

func TestKindsDecideTheScope(t *testing.T) {
	t.Parallel()
	for kind, want := range map[manifest.Kind]tenants.Scope{
		manifest.Query: tenants.ScopeRead, manifest.Payment: tenants.ScopeCollect, manifest.Collection: tenants.ScopeCollect,
		manifest.Order: tenants.ScopeOrder, manifest.Transfer: tenants.ScopeTransfer,
	} {
		op := &catalog.Operation{Operation: manifest.Operation{Kind: kind}}
		if got := admission.ScopeOf(op); got != want {
			t.Errorf("%s needs %s, want %s", kind, got, want)
		}
	}
}

func TestAdmit(t *testing.T) {
	t.Parallel()
	op := operation(t, "/payments/create")
	tests := []struct {
		name, body, tier string
		now              time.Time
		want             fault.Code
		message          string
	}{
		{"allowed", `{"amount": 1000000}`, "scale", noon, "", ""},
		{"amount", `{"amount": 1000001}`, "scale", noon, fault.PolicyDenied, "Too much."},
		{"field and hour", `{"amount": 100, "type": "qris"}`, "scale", noon, fault.PolicyDenied, "No QR codes at noon."},
		{"another hour", `{"amount": 100, "type": "qris"}`, "scale", noon.Add(time.Hour), "", ""},
		{"both reasons", `{"amount": 1000001, "type": "qris"}`, "scale", noon, fault.PolicyDenied, "No QR codes at noon. Too much."},
		{"merchant", `{"amount": 100}`, "never", noon, fault.PolicyDenied, "Never."},
		{"no limits", `{"amount": 100}`, "unlimited", noon, fault.PolicyDenied, "The policy sets no limits for this merchant."},
		{"a rule that fails", `{"amount": 100}`, "broken", noon, fault.Internal, "could not be judged"},
		{"no amount", `{}`, "scale", noon, "", ""},
		{"an amount that is none", `{"amount": "100"}`, "scale", noon, fault.Internal, "could not be judged"},
	}
	active := compile(t, rules)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			a := admission.New(active, limit.New(), nil, admission.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
			ticket, err := a.Admit(t.Context(), test.now, identity(t, tenants.Tier(test.tier), tenants.Active), op, body(t, test.body))
			if code(err) != test.want || err != nil && !strings.Contains(fault.From(err).Message, test.message) {
				t.Fatalf("got %v, want %q that says %q", err, test.want, test.message)
			}
			if len(ticket.DecisionID) != 36 || ticket.PolicyVersion != string(active.Set().Version()) {
				t.Errorf("the ticket %+v", ticket)
			}
			if judged := test.want == ""; judged != (ticket.Limits.Markup.Of("xld10") == 250) || judged != (ticket.Limits.Version == active.Set().Version()) {
				t.Errorf("the limits %+v", ticket.Limits)
			}
			if asked := ticket.RateLimit != ""; asked != (test.want == "") {
				t.Errorf("a rate was asked: %v", asked)
			}
			if noted := strings.Contains(log.String(), ticket.DecisionID); noted != (test.want == fault.PolicyDenied) {
				t.Errorf("the decision can be explained: %v: %s", noted, &log)
			}
		})
	}
}

// TestUnnamed: what an approval alone has brought here moves no money before the policy
// has its path.
func TestUnnamed(t *testing.T) {
	t.Parallel()
	op := *operation(t, "/payments/create")
	op.Unnamed = true
	key := decision.NewKey([]byte("key"))
	for module, want := range map[string]fault.Code{
		rules: fault.PolicyDenied,
		rules + "\nrefusals contains \"Closed.\" if {\n\tinput.operation.path == \"/payments/create\"\n\tinput.merchant.tier == \"none\"\n}\n": "",
	} {
		a := admission.New(compile(t, module), limit.New(), nil, admission.Config{Namer: decision.NewNamer(key, 1)})
		ticket, err := a.Admit(t.Context(), noon, identity(t, "scale", tenants.Active), &op, body(t, `{"amount": 100}`))
		facts, opened := key.Open(ticket.DecisionID, noon)
		if refused := want != ""; opened != nil || refused != (facts.Rule == decision.NotNamed) {
			t.Errorf("the decision's id tells %v, %v", facts.Rule, opened)
		}
		if code(err) != want || want != "" && !strings.Contains(fault.From(err).Message, "does not name this operation") || len(ticket.DecisionID) != 36 {
			t.Errorf("%q, want %q: %v", code(err), want, err)
		}
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	op, id := operation(t, "/payments/status"), identity(t, "scale", tenants.Active)
	a := admission.New(compile(t, rules), limit.New(), nil, admission.Config{})
	for range 2 {
		if _, err := a.Admit(t.Context(), noon, id, op, nil); err != nil {
			t.Fatal(err)
		}
	}
	ticket, err := a.Admit(t.Context(), noon, id, op, nil)
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != fault.RateLimited || f.RetryAfter != time.Second || !f.RetryAt.Equal(noon.Add(time.Second)) {
		t.Fatalf("got %v", err)
	}
	if ticket.Limits.Markup.Of("any") != 500 {
		t.Error("a retry that the rate refuses loses its markup")
	}
	if ticket.RateLimit != `"default";r=0;t=2` || ticket.RateLimitPolicy != `"default";q=2;w=2` {
		t.Errorf("the ticket %+v", ticket)
	}
	ticket, err = a.Admit(t.Context(), noon.Add(time.Second), id, op, nil)
	if err != nil || ticket.RateLimit != `"default";r=0;t=2, "second";r=1;t=2` || ticket.RateLimitPolicy != `"default";q=2;w=2, "second";q=3;w=3` {
		t.Errorf("a second later: %v %+v", err, ticket)
	}
	live := id
	live.Mode = tenants.Live
	if _, err := a.Admit(t.Context(), noon, live, op, nil); err != nil {
		t.Errorf("test mode spends what is live mode's: %v", err)
	}
}

// TestRatesOfOperationsAndKeys: each has a bucket of its own, and the merchant is told whose it is.
func TestRatesOfOperationsAndKeys(t *testing.T) {
	t.Parallel()
	status, list := operation(t, "/payments/status"), operation(t, "/payments/cancel")
	id := identity(t, "scale", tenants.Active)
	other := id
	id.Key.ID, other.Key.ID = "key_1", "key_2"
	for per, c := range map[string]struct {
		theSame, apart func(*admission.Admission) error
		text           string
	}{
		"operation": {
			func(a *admission.Admission) error {
				_, err := a.Admit(t.Context(), noon, other, status, nil)
				return err
			},
			func(a *admission.Admission) error { _, err := a.Admit(t.Context(), noon, id, list, nil); return err },
			"Too many requests: at most 30 a minute, 1 at once for this operation.",
		},
		"key": {
			func(a *admission.Admission) error { _, err := a.Spend(t.Context(), noon, id, list, nil); return err },
			func(a *admission.Admission) error {
				_, err := a.Admit(t.Context(), noon, other, status, nil)
				return err
			},
			"Too many requests: at most 30 a minute, 1 at once with this key.",
		},
	} {
		slow := `package gerbang

admit := {"allow": true, "reasons": []}

limits := {"rates": [{"name": "default", "rate_per_second": 0.5, "burst": 1, "per": "` + per + `"}], "quotas": []}
`
		a := admission.New(compile(t, slow), limit.New(), nil, admission.Config{})
		if _, err := a.Admit(t.Context(), noon, id, status, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.apart(a); err != nil {
			t.Errorf("another %s: %v", per, err)
		}
		if err := c.theSame(a); code(err) != fault.RateLimited || fault.From(err).Message != c.text {
			t.Errorf("the same %s: %v", per, err)
		}
	}
}

// errInvalid is what a body is refused with.
var errInvalid = fault.New(fault.InvalidRequest, "The request is invalid.")

// TestADecisionTellsWhatRefused: also before the policy was asked. The log keeps the input of what the policy refused.
func TestADecisionTellsWhatRefused(t *testing.T) {
	t.Parallel()
	key, log, used := decision.NewKey([]byte("key")), decision.NewLog(), newTally()
	a := admission.New(compile(t, quotaRules), limit.New(), used, admission.Config{Namer: decision.NewNamer(key, 1), Decisions: log})
	op := operation(t, "/payments/status")
	active := identity(t, "scale", tenants.Active, tenants.ScopeRead)
	spend := func(id tenants.Identity, refusal error) (admission.Ticket, error) {
		if refusal == nil {
			refusal = admission.Access(id, op)
		}
		return a.Spend(t.Context(), noon, id, op, refusal)
	}
	for name, c := range map[string]struct {
		ask  func() (admission.Ticket, error)
		rule decision.Rule
		code fault.Code // of the answer
	}{
		"suspended":     {func() (admission.Ticket, error) { return spend(identity(t, "scale", tenants.Suspended), nil) }, decision.Suspended, fault.MerchantSuspended},
		"without scope": {func() (admission.Ticket, error) { return spend(identity(t, "scale", tenants.Active), nil) }, decision.Scope, fault.ScopeMissing},
		"invalid":       {func() (admission.Ticket, error) { return spend(active, errInvalid) }, decision.Admitted, fault.InvalidRequest},
		"denied": {func() (admission.Ticket, error) {
			return a.Admit(t.Context(), noon, identity(t, "never", tenants.Active), op, nil)
		}, decision.Policy(1), fault.PolicyDenied},
		"at the provider": {func() (admission.Ticket, error) {
			ticket, _ := admitted(t, a, noon, active, op, nil)
			return ticket, fault.New(fault.ProviderUnavailable, "The provider does not answer.")
		}, decision.Admitted, fault.ProviderUnavailable},
		"not counted": {func() (admission.Ticket, error) {
			used.err = errors.New("the database is away")
			defer func() { used.err = nil }()
			return admitted(t, a, noon, active, op, nil)
		}, decision.Unjudged, fault.Internal},
	} {
		ticket, err := c.ask()
		if code(err) != c.code {
			t.Fatalf("%s: %v", name, err)
		}
		facts, err := key.Open(ticket.DecisionID, noon)
		if err != nil || facts.Rule != c.rule {
			t.Errorf("%s: its id tells %v, %v; want %v", name, facts.Rule, err, c.rule)
		}
		minutes := log.Take()
		if len(minutes) != 1 || (len(minutes[0].Inputs) == 1) != (name == "denied") {
			t.Fatalf("%s: the log has %+v", name, minutes)
		}
		if in := minutes[0].Inputs; name == "denied" && in[0].ID.String() != ticket.DecisionID {
			t.Errorf("%s: the log has %+v", name, in)
		}
		if counted := minutes[0].Counted; len(counted) != 1 || counted[0].Rule != c.rule {
			t.Errorf("%s: counted as %+v", name, counted)
		}
	}
}

// TestSpend: what is refused before the policy is asked takes the same tokens.
func TestSpend(t *testing.T) {
	t.Parallel()
	op, id := operation(t, "/payments/create"), identity(t, "scale", tenants.Active)
	a := admission.New(compile(t, rules), limit.New(), nil, admission.Config{})
	if _, err := a.Spend(t.Context(), noon, id, op, errInvalid); !errors.Is(err, errInvalid) {
		t.Fatal(err)
	}
	body := catalog.Document{"amount": json.Number("1000")}
	if ticket, err := a.Admit(t.Context(), noon, id, op, body); err != nil || !strings.Contains(ticket.RateLimit, `"default";r=0`) {
		t.Errorf("after one spent token: %v %+v", err, ticket)
	}
	ticket, err := a.Spend(t.Context(), noon, id, op, errInvalid)
	if code(err) != fault.RateLimited || ticket.DecisionID == "" || ticket.RateLimit != `"default";r=0;t=2` {
		t.Errorf("the third of two: %v %+v", err, ticket)
	}
	if _, err := a.Spend(t.Context(), noon, identity(t, "unlimited", tenants.Active), op, errInvalid); code(err) != fault.PolicyDenied {
		t.Errorf("without limits: %v", err)
	}
}

// TestAnIDTellsTheRefusal: each refusal has an id that tells what refused, also what was
// refused after it was admitted.
func TestAnIDTellsTheRefusal(t *testing.T) {
	t.Parallel()
	key := decision.NewKey([]byte("key"))
	const rules = `package gerbang

admit := {"allow": count(no) == 0, "reasons": no}

no contains "Too dear." if input.quote.price > 10

limits := {
	"rates": [{"name": name, "rate_per_second": 1, "burst": burst} | some name, burst in {"b": 1, "a": 9}],
	"quotas": [{"name": "z", "limit": 5}, {"name": "y", "limit": 1}],
}
`
	op, id := operation(t, "/payments/create"), identity(t, "scale", tenants.Active)
	active := compile(t, rules)
	a := admission.New(active, limit.New(), newTally(), admission.Config{Namer: decision.NewNamer(key, 9)})
	want := func(what string, ticket admission.Ticket, rule decision.Rule) {
		t.Helper()
		f, err := key.Open(ticket.DecisionID, noon)
		if err != nil || f.Rule != rule || f.Replica != 9 || f.Live || f.Merchant != decision.MerchantDigest("mer_scale") ||
			f.Operation != decision.OperationDigest(op.Path) || f.Version != decision.VersionDigest(string(active.Set().Version())) {
			t.Errorf("%s: %+v, %v; want %v", what, f, err, rule)
		}
	}
	document := body(t, `{"amount": 100}`)
	first, err := a.Admit(t.Context(), noon, id, op, document)
	if err != nil {
		t.Fatal(err)
	}
	want("admitted", first, decision.Admitted)
	slowed, _ := a.Admit(t.Context(), noon, id, op, document)
	want("too fast", slowed, decision.Rate(1))
	invalid, _ := a.Spend(t.Context(), noon, id, op, errInvalid)
	want("invalid and too fast", invalid, decision.Rate(1))
	if reserved, err := a.Reserve(t.Context(), noon, first, id, op); err != nil || reserved.DecisionID != first.DecisionID {
		t.Errorf("reserved %+v, %v", reserved, err)
	}
	over, err := a.Reserve(t.Context(), noon, first, id, op)
	if code(err) != fault.QuotaExceeded {
		t.Fatal(err)
	}
	want("over the quota", over, decision.Quota(0))
	err = a.Reconsider(t.Context(), noon, first, id, op, document, map[string]any{"price": int64(11)})
	if code(err) != fault.PolicyDenied {
		t.Fatal(err)
	}
	want("too dear", a.Refused(t.Context(), first, fmt.Errorf("wrapped: %w", err)), decision.Policy(2))
	reached := fault.New(fault.PolicyDenied, "Too much.").Because(&movement.LimitError{Name: "out.amount"})
	want("too much", a.Refused(t.Context(), first, reached), decision.DayAmount)
	want("another fault", a.Refused(t.Context(), first, fault.New(fault.PolicyDenied, "")), decision.Admitted)
}

func TestAdmitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	a := admission.New(compile(t, rules), limit.New(), nil, admission.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Admit(ctx, noon, identity(t, "scale", tenants.Active), operation(t, "/payments/status"), nil); code(err) != fault.Internal {
		t.Errorf("got %v", err)
	}
}

func TestTheDefaultPolicyKnowsItsTiers(t *testing.T) {
	t.Parallel()
	a := admission.New(compile(t, ""), limit.New(), nil, admission.Config{})
	op := operation(t, "/payments/create")
	ticket, err := a.Admit(t.Context(), noon, identity(t, "starter", tenants.Active), op, body(t, `{"amount": 100}`))
	if err != nil || !strings.HasPrefix(ticket.RateLimitPolicy, `"default";q=`) {
		t.Errorf("got %+v, %v", ticket, err)
	}
	if _, err := a.Admit(t.Context(), noon, identity(t, "starter", tenants.Active), operation(t, catalog.EventsPath), nil); err != nil {
		t.Errorf("what has no provider: %v", err)
	}
	if _, err := a.Admit(t.Context(), noon, identity(t, "unheard", tenants.Active), op, body(t, `{"amount": 100}`)); code(err) != fault.PolicyDenied {
		t.Errorf("an unknown tier: %v", err)
	}
}

func body(t testing.TB, text string) catalog.Document {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var document catalog.Document
	if err := decoder.Decode(&document); err != nil {
		t.Fatal(err)
	}
	return document
}

func BenchmarkAdmit(b *testing.B) {
	op, id := operation(b, "/payments/create"), identity(b, "scale", tenants.Active)
	a := admission.New(compile(b, ""), limit.New(), nil, admission.Config{})
	document := body(b, `{"amount": 10000, "payer_email": "a@example.com"}`)
	now := noon
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		if _, err := a.Admit(b.Context(), now, id, op, document); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAFloodOfRefusalsIsExplainedByItsReasons: the first of a second are evaluated again,
// and after them the same reasons name the same rule.
func TestAFloodOfRefusalsIsExplainedByItsReasons(t *testing.T) {
	t.Parallel()
	const rules = `package gerbang

admit := {"allow": false, "reasons": no}

no contains "No." if input.amount == 1

no contains "No." if input.amount != 1

limits := {"rates": [], "quotas": []}
`
	key := decision.NewKey([]byte("key"))
	op, id := operation(t, "/payments/create"), identity(t, "scale", tenants.Active)
	a := admission.New(compile(t, rules), limit.New(), nil, admission.Config{Namer: decision.NewNamer(key, 1)})
	rule := func(now time.Time, amount string) decision.Rule {
		t.Helper()
		ticket, err := a.Admit(t.Context(), now, id, op, body(t, `{"amount": `+amount+`}`))
		f, bad := key.Open(ticket.DecisionID, now)
		if code(err) != fault.PolicyDenied || bad != nil {
			t.Fatal(err, bad)
		}
		return f.Rule
	}
	for range 99 {
		if got := rule(noon, "1"); got != decision.Policy(2) {
			t.Fatalf("refused by %v", got)
		}
	}
	if got := rule(noon, "2"); got != decision.Policy(3) {
		t.Errorf("the hundredth is refused by %v", got)
	}
	if got := rule(noon, "1"); got != decision.Policy(3) {
		t.Errorf("in a flood it is refused by %v, and not by what gave the reason last", got)
	}
	if got := rule(noon.Add(time.Second), "1"); got != decision.Policy(2) {
		t.Errorf("a second later it is refused by %v", got)
	}
}
