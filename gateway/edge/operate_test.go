package edge_test

import (
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

var update = flag.Bool("update", false, "write the golden files")

func TestEventsAreAnOperationLikeOthers(t *testing.T) {
	t.Parallel()
	h := build(t)
	body := func(more string) string { return `{"secret_key":"` + h.key + `"` + more + `}` }
	got := h.send(t, http.MethodPost, "/events", body(`,"limit":5,"other":1,"":"a"`), header{"X-Callback-URL", "nonsense"}, header{"Idempotency-Key", "b"})
	if r := h.requests[0]; got.StatusCode != http.StatusOK || r.Operation.Path != "/events" || r.CallbackURL+r.IdempotencyKey != "" || r.Identity.Mode != tenants.Test {
		t.Errorf("got %d %s, the engine %+v", got.StatusCode, got.text, r)
	}
	wrong := h.send(t, http.MethodPost, "/events", body(`,"after":"1","":"a"`))
	wrong.wantField(t, "after", "uuid")
	if strings.Contains(wrong.text, "external_id") {
		t.Errorf("what has no reference names one: %s", wrong.text)
	}
	for scope, allowed := range map[tenants.Scope]bool{tenants.ScopeRead: true, tenants.ScopeCollect: false} {
		scopes, err := tenants.NewScopes(scope)
		if err != nil {
			t.Fatal(err)
		}
		h.suspendOrScope(t, tenants.Active, scopes)
		if got := h.send(t, http.MethodPost, "/events", body("")); got.StatusCode == http.StatusOK != allowed {
			t.Errorf("with the scope %s: %d %s", scope, got.StatusCode, got.text)
		}
	}
}

// TestJudgedAgainWhereTheDeclarationChanged: what was not sent because a plugin was replaced
// by one that declares the operation otherwise is judged once more, by that; anything else
// is answered as it is.
func TestJudgedAgainWhereTheDeclarationChanged(t *testing.T) {
	t.Parallel()
	unavailable := fault.New(fault.ProviderUnavailable, "Nothing was sent.")
	titled := changedSnapshot(t, `"title": "Payments through Xendit"`, `"title": "Xendit"`)
	adding := changedSnapshot(t, `"operations": [`, `"operations": [{"path": "/payments/create", "adds": {"va": {"type": "string", "maxLength": 9, "description": "An account."}}},`)
	for what, c := range map[string]struct {
		becomes        *catalog.Snapshot
		first          error
		runs, released int // released are units of what was not sent
		code           fault.Code
	}{
		"another declaration":                  {adding, unavailable, 2, 1, ""},
		"the same declaration":                 {titled, unavailable, 1, 1, fault.ProviderUnavailable},
		"another, and nobody knows":            {adding, fault.New(fault.ProviderUnavailable, "It may be.").Unknown(), 1, 0, fault.ProviderUnavailable},
		"another, and a refusal":               {adding, fault.New(fault.ProviderRejected, "No."), 1, 0, fault.ProviderRejected},
		"another, and again and again another": {adding, unavailable, 2, 2, fault.ProviderUnavailable},
	} {
		h := build(t)
		h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
			if len(h.requests) == 1 || strings.Contains(what, "again and again") {
				if err := h.Use(c.becomes); err != nil {
					t.Error(err)
				}
				return lifecycle.Answer{}, c.first
			}
			return lifecycle.Answer{Data: map[string]any{"external_id": "INV-1", "status": "PENDING"}}, nil
		}
		got := h.create(t, h.right(`,"external_id":"INV-1"`))
		if len(h.requests) != c.runs || len(h.released) != c.released || got.envelope.Code != c.code {
			t.Errorf("%s: it ran %d times, gave %d units back, and is answered %s", what, len(h.requests), len(h.released), got.text)
		}
		if last := h.requests[len(h.requests)-1]; c.runs == 2 && (!last.Operation.Answers("va") || last.RequestID != h.requests[0].RequestID || last.Body["external_id"] != "INV-1") {
			t.Errorf("%s: it was judged by the former declaration: %+v", what, last)
		}
	}
}

func TestTheEngineGetsWhatWasSentWithoutCredentials(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.admit = func() (admission.Ticket, error) {
		return admission.Ticket{Ticket: policy.Ticket{DecisionID: "d-1", PolicyVersion: "p-1", Limits: policy.Limits{Markup: policy.Markup{Default: 250}}}, RateLimit: `"default";r=9;t=1`, RateLimitPolicy: `"default";q=10;w=2`}, nil
	}
	got := h.create(t, h.right(`,"external_id":"INV-1","description":"","metadata":null`),
		header{"X-Callback-URL", "https://shop.example/callback"}, header{"Idempotency-Key", "INV-1"}, header{"X-Request-Id", "mine"})
	if got.StatusCode != http.StatusOK || got.envelope.Success == nil || !*got.envelope.Success {
		t.Fatalf("got %d %s", got.StatusCode, got.text)
	}
	if len(h.requests) != 1 {
		t.Fatalf("the engine ran %d times", len(h.requests))
	}
	r := h.requests[0]
	if names := len(r.Body); names != 3 || r.Body["external_id"] != "INV-1" || r.Body["payer_email"] != "a@example.com" {
		t.Errorf("the engine got the body %v", r.Body)
	}
	if r.Identity.Account.ID() != h.merchant || r.Operation.Path != "/payments/create" || r.IdempotencyKey != "INV-1" ||
		r.CallbackURL != "https://shop.example/callback" || r.DecisionID != "d-1" || r.PolicyVersion != "p-1" || r.Limits.Markup.Of("any") != 250 {
		t.Errorf("the engine got %+v", r)
	}
	for name, want := range map[string]string{
		"X-Request-Id": r.RequestID, "X-Svc-Version": "1.2.0", "X-Svc-Decision-Id": "d-1", "Cache-Control": "no-store",
		"RateLimit": `"default";r=9;t=1`, "RateLimit-Policy": `"default";q=10;w=2`, "Content-Type": "application/json",
		"X-Content-Type-Options": "nosniff", "Idempotent-Replayed": "",
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("%s: %q, want %q", name, value, want)
		}
	}
	if r.RequestID == "mine" || len(r.RequestID) != 36 {
		t.Errorf("the request id %q is not ours", r.RequestID)
	}
}

func TestAnswersAreRenderedAsTheContractHasThem(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
		return lifecycle.Answer{Data: map[string]any{"url": "https://a.example/?a=1&b=2"}, Message: "Done.", Status: "Pending", Replayed: true}, nil
	}
	got := h.create(t, h.right(""))
	want := `{"success":true,"message":"Done.","status":"Pending","data":{"url":"https://a.example/?a=1&b=2"}}` + "\n"
	if got.text != want {
		t.Errorf("got %s want %s", got.text, want)
	}
	if got.Header.Get("Idempotent-Replayed") != "true" {
		t.Error("the answer is not marked as a replay")
	}
}

// A refusal that is repeated is marked like an answer that is.
func TestARepeatedRefusalIsMarked(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
		return lifecycle.Answer{Replayed: true}, fault.New(fault.ProviderRejected, "The provider refused.")
	}
	got := h.create(t, h.right(""))
	if got.StatusCode != 422 || got.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("got %d with %q, want 422 with true", got.StatusCode, got.Header.Get("Idempotent-Replayed"))
	}
}

// TestEveryErrorOfTheTable renders each code as the engine would give it.
func TestEveryErrorOfTheTable(t *testing.T) {
	t.Parallel()
	for _, row := range fault.Table {
		t.Run(string(row.Code), func(t *testing.T) {
			t.Parallel()
			h := build(t)
			h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
				return lifecycle.Answer{}, fault.New(row.Code, "Because.")
			}
			got := h.create(t, h.right(`,"external_id":"INV/2026/#001"`))
			got.wantFault(t, row.Code)
			e := got.envelope
			if e.Message != "Because." || e.Sent != row.Sent || e.Retry != row.Retry || e.External != "INV/2026/#001" {
				t.Errorf("got %s", got.text)
			}
			if quota := e.Quota != nil; quota != (row.Code == fault.QuotaExceeded) {
				t.Errorf("remaining_quota: %v", quota)
			}
			if waits := got.Header.Get("Retry-After") != ""; waits != (row.Status == 429 || row.Code == fault.InProgress) {
				t.Errorf("Retry-After: %v", waits)
			}
		})
	}
}

func TestGoldenEnvelope(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
		return lifecycle.Answer{}, fault.New(fault.DuplicateReference, "The reference was used before with a different request.",
			fault.Field{Field: "amount", Message: "was 10000"}).
			WithReference("INV-1").After(noon, 90*time.Minute+time.Millisecond)
	}
	got := h.create(t, h.right(""))
	text := regexp.MustCompile(`"request_id":"[0-9a-f-]{36}"`).ReplaceAllString(got.text, `"request_id":"0"`)
	text = "Retry-After: " + got.Header.Get("Retry-After") + "\n" + text
	if *update {
		if err := os.WriteFile("testdata/failure.golden", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/failure.golden")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Error(diff)
	}
}

// TestWhatConsumesNothingIsReleased: a quota is for what was done, and for what a
// provider has answered a question with.
func TestWhatConsumesNothingIsReleased(t *testing.T) {
	t.Parallel()
	const create, status = "/payments/create", "/payments/status"
	for name, c := range map[string]struct {
		path     string
		answer   lifecycle.Answer
		err      error
		released bool
	}{
		"done":                       {path: create},
		"asked":                      {path: status},
		"replayed":                   {path: create, answer: lifecycle.Answer{Replayed: true}, released: true},
		"a refusal replayed":         {path: create, answer: lifecycle.Answer{Replayed: true}, err: &fault.Error{Code: fault.ProviderRejected, Sent: fault.SentRefused}, released: true},
		"under way already":          {path: create, answer: lifecycle.Answer{Earlier: true}, err: &fault.Error{Code: fault.ProviderTimeout, Sent: fault.SentUnknown}, released: true},
		"in progress already":        {path: create, answer: lifecycle.Answer{Earlier: true}, err: fault.New(fault.InProgress, "Wait."), released: true},
		"refused":                    {path: create, err: fault.New(fault.DestinationInvalid, "No.")},
		"not sent":                   {path: create, err: fault.New(fault.ProviderUnavailable, "Down."), released: true},
		"only inquired before money": {path: create, err: &fault.Error{Code: fault.DestinationInvalid, Sent: fault.SentNo}, released: true},
		"only inquired":              {path: status, answer: lifecycle.Answer{Refused: true}, err: &fault.Error{Code: fault.DestinationInvalid, Sent: fault.SentNo}},
		"an inquiry refused":         {path: status, answer: lifecycle.Answer{Refused: true}, err: &fault.Error{Code: fault.ProviderRejected, Sent: fault.SentNo}},
		"refused by the plugin":      {path: status, err: &fault.Error{Code: fault.DestinationInvalid, Sent: fault.SentNo}, released: true},
		"an inquiry refused by us":   {path: status, err: fault.New(fault.InvalidRequest, "No phone."), released: true},
		"an inquiry out of bounds":   {path: status, answer: lifecycle.Answer{Refused: true}, err: fault.New(fault.InvalidRequest, "Too little.")},
		"an inquiry not sent":        {path: status, err: fault.New(fault.ProviderUnavailable, "Down."), released: true},
		"an inquiry not answered":    {path: status, err: fault.New(fault.ProviderTimeout, "Late.")},
		"not found":                  {path: status, err: fault.New(fault.NotFound, "None."), released: true},
		"a different request":        {path: create, err: fault.New(fault.DuplicateReference, "Other."), released: true},
		"nobody knows":               {path: create, err: errors.New("gone")},
		"a read that failed":         {path: status, err: errors.New("gone"), released: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			h.admit = func() (admission.Ticket, error) {
				return admission.Ticket{Ticket: policy.Ticket{DecisionID: "d-3"}}, nil
			}
			h.run = func(lifecycle.Request) (lifecycle.Answer, error) { return c.answer, c.err }
			h.send(t, http.MethodPost, c.path, h.right(`,"external_id":"INV-1"`))
			if released := len(h.released) == 1 && h.released[0].DecisionID == "d-3"; released != c.released || len(h.released) > 1 {
				t.Errorf("released %+v, want %v", h.released, c.released)
			}
		})
	}
	h := build(t)
	h.admit = func() (admission.Ticket, error) { return admission.Ticket{}, fault.New(fault.QuotaExceeded, "Over.") }
	h.create(t, h.right(``)).wantFault(t, fault.QuotaExceeded)
	h.run = func(lifecycle.Request) (lifecycle.Answer, error) { panic("who knows") }
	h.create(t, h.right(``))
	if len(h.released) > 0 {
		t.Error("what was not admitted, or may have been sent, is released")
	}
}

func TestFaultsOfTheRequest(t *testing.T) {
	t.Parallel()
	h := build(t)
	tests := []struct {
		name, body string
		headers    []header
		code       fault.Code
		field      string
		message    string
	}{
		{"not JSON", `amount=1`, nil, fault.InvalidRequest, "", ""},
		{"not JSON, declared so", `amount=1`, []header{{"Content-Type", "application/json; charset=utf-8"}}, fault.InvalidRequest, "", ""},
		{"a form", `amount=1`, []header{{"Content-Type", "application/x-www-form-urlencoded"}}, fault.UnsupportedMediaType, "", ""},
		{"a multipart form", "--x\r\n", []header{{"Content-Type", "multipart/form-data; boundary=x"}}, fault.UnsupportedMediaType, "", ""},
		{"an array, declared as XML", `[]`, []header{{"Content-Type", "application/xml"}}, fault.UnsupportedMediaType, "", ""},
		{"broken JSON, declared as curl does", `{"amount":`, []header{{"Content-Type", "application/x-www-form-urlencoded"}}, fault.InvalidRequest, "", ""},
		{"broken +json", `[`, []header{{"Content-Type", "application/problem+json"}}, fault.InvalidRequest, "", ""},
		{"compressed", h.right(""), []header{{"Content-Encoding", "gzip"}}, fault.UnsupportedMediaType, "", ""},
		{"empty", ``, nil, fault.InvalidRequest, "", ""},
		{"duplicate", h.right(`,"amount":1`), nil, fault.InvalidRequest, "amount", "given twice"},
		{"number in a string", strings.Replace(h.right(""), "10000", `"10000"`, 1), nil, fault.InvalidRequest, "amount", "not a string"},
		{"fraction", strings.Replace(h.right(""), "10000", `100.5`, 1), nil, fault.InvalidRequest, "amount", "without a fraction"},
		{"unknown", h.right(`,"colour":"red"`), nil, fault.InvalidRequest, "colour", "not a known field"},
		{"other case", h.right(`,"Type":"qris"`), nil, fault.InvalidRequest, "Type", `did you mean "type"`},
		{"missing", strings.Replace(h.right(""), `,"amount":10000`, "", 1), nil, fault.InvalidRequest, "amount", "is required"},
		{"null", strings.Replace(h.right(""), `10000`, "null", 1), nil, fault.InvalidRequest, "amount", "is required"},
		{"no merchant_id", strings.Replace(h.right(""), `"merchant_id":"mer_test",`, "", 1), nil, fault.InvalidRequest, "merchant_id", "is required"},
		{"two references", h.right(`,"external_id":"a"`), []header{{"Idempotency-Key", "b"}}, fault.InvalidRequest, "external_id", "differs"},
		{"long reference", h.right(``), []header{{"Idempotency-Key", strings.Repeat("x", 256)}}, fault.InvalidRequest, "Idempotency-Key", "1 to 255"},
		{"reference not printable", h.right(``), []header{{"Idempotency-Key", "a\u200bb"}}, fault.InvalidRequest, "Idempotency-Key", "printable"},
		{"http callback", h.right(``), []header{{"X-Callback-URL", "http://shop.example/"}}, fault.InvalidRequest, "X-Callback-URL", "https"},
	}
	for _, test := range tests {
		t.Log(test.name)
		got := h.create(t, test.body, test.headers...)
		got.wantFault(t, test.code)
		if test.field != "" {
			got.wantField(t, test.field, test.message)
		}
	}
	if len(h.requests) > 0 {
		t.Errorf("the engine ran %d of them", len(h.requests))
	}
}

// TestWhatIsInvalidCostsAToken: an invalid request is slowed as a valid one, and its
// answer stays small.
func TestWhatIsInvalidCostsAToken(t *testing.T) {
	t.Parallel()
	h := build(t)
	tokens := 1
	h.spend = func() (admission.Ticket, error) {
		ticket := admission.Ticket{Ticket: policy.Ticket{DecisionID: "d-1"}, RateLimit: `"default";r=0;t=1`, RateLimitPolicy: `"default";q=1;w=1`}
		if tokens--; tokens < 0 {
			return ticket, fault.New(fault.RateLimited, "Too many requests.").After(noon, time.Second)
		}
		return ticket, nil
	}
	unknown := make([]string, 900)
	for i := range unknown {
		unknown[i] = fmt.Sprintf(`,"unknown%d":1`, i)
	}
	body := h.right(strings.Join(unknown, ""))
	got := h.create(t, body)
	got.wantFault(t, fault.InvalidRequest)
	if len(got.envelope.Errors) != 20 || !strings.Contains(got.envelope.Message, "The first 20 faults are listed, 880 more are not.") || len(got.text) > 4096 {
		t.Errorf("%d bytes with %d faults: %s", len(got.text), len(got.envelope.Errors), got.envelope.Message)
	}
	if got.Header.Get("RateLimit") == "" || got.Header.Get("X-Svc-Decision-Id") != "d-1" {
		t.Errorf("the fields are %v", got.Header)
	}
	h.create(t, body).wantFault(t, fault.RateLimited)
	if h.send(t, http.MethodPost, "/payments/create", `{"secret_key":"x","amount":"1"}`).wantFault(t, fault.AuthFailed); tokens != -1 {
		t.Errorf("%d tokens are left; a stranger's request costs a merchant none", tokens)
	}
}

// TestWhatAKeyMayNotCostsAToken: whoever has a right key is slowed, whatever is refused.
func TestWhatAKeyMayNotCostsAToken(t *testing.T) {
	t.Parallel()
	read, err := tenants.NewScopes(tenants.ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		status tenants.Status
		scopes tenants.Scopes
		more   string
		code   fault.Code
	}{
		{tenants.Suspended, tenants.AllScopes(), "", fault.MerchantSuspended},
		{tenants.Active, read, "", fault.ScopeMissing},
		{tenants.Active, tenants.AllScopes(), `,"merchant_id":"mer_other"`, fault.AuthFailed},
	} {
		h := build(t)
		h.suspendOrScope(t, test.status, test.scopes)
		body := `{"secret_key":"` + h.key + `","amount":10000` + test.more + `}`
		spent := 0
		h.spend = func() (admission.Ticket, error) {
			if spent++; spent > 1 {
				return admission.Ticket{}, fault.New(fault.RateLimited, "Too many requests.").After(noon, time.Second)
			}
			return admission.Ticket{}, nil
		}
		h.create(t, body).wantFault(t, test.code)
		h.create(t, body).wantFault(t, fault.RateLimited)
	}
}

// TestABodyThatCanNotBeReadCostsAToken: as much as one that does not fit, where a key came
// with it, in the header or before the fault.
func TestABodyThatCanNotBeReadCostsAToken(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		code fault.Code
	}{
		"broken":          {`,"amount":}`, fault.InvalidRequest},
		"too large":       {`,"note":"` + strings.Repeat("x", 64<<10) + `"}`, fault.PayloadTooLarge},
		"a name twice":    {`,"amount":1,"amount":1}`, fault.InvalidRequest},
		"too many values": {`,"list":[0` + strings.Repeat(",0", 1000) + `]}`, fault.InvalidRequest},
		"too deep":        {`,"list":` + strings.Repeat("[", 20) + strings.Repeat("]", 20) + `}`, fault.InvalidRequest},
		"goes on":         {`}{`, fault.InvalidRequest},
		"ends early":      {`,"amount":1`, fault.InvalidRequest},
	} {
		h := build(t)
		spent, tokens := 0, 1
		h.spend = func() (admission.Ticket, error) {
			if spent++; spent > tokens {
				return admission.Ticket{}, fault.New(fault.RateLimited, "Too many requests.").After(noon, time.Second)
			}
			return admission.Ticket{}, nil
		}
		bearer := func(key string) header { return header{"Authorization", "Bearer " + key} }
		anonymous := `{"email":"a@b"` + c.body
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.create(t, anonymous, bearer(h.key)).wantFault(t, c.code)
			h.create(t, anonymous, bearer(h.key)).wantFault(t, fault.RateLimited)
			if c.code != fault.PayloadTooLarge { // of which nothing is read
				tokens = 3
				h.create(t, `{"secret_key":"`+h.key+`"`+c.body).wantFault(t, c.code)
				h.create(t, `{"secret_key":"`+h.key+`"`+c.body).wantFault(t, fault.RateLimited)
			}
			before := spent
			h.create(t, anonymous).wantFault(t, c.code)
			h.create(t, anonymous, bearer("wrong")).wantFault(t, fault.AuthFailed)
			if spent != before {
				t.Errorf("a stranger's bodies cost %d tokens", spent-before)
			}
		})
	}
}

func TestABodyIsReadWhateverItsDeclaredType(t *testing.T) {
	t.Parallel()
	h := build(t)
	for _, declared := range []string{"", "application/x-www-form-urlencoded", "text/plain", "application/json", "nonsense;;"} {
		if got := h.create(t, h.right(""), header{"Content-Type", declared}); got.StatusCode != http.StatusOK {
			t.Errorf("%q: %d %s", declared, got.StatusCode, got.text)
		}
	}
}

func TestSizeOfABody(t *testing.T) {
	t.Parallel()
	h := build(t)
	right := h.right("")
	if got := h.create(t, right+strings.Repeat(" ", 65536-len(right))); got.StatusCode != http.StatusOK {
		t.Errorf("64 KiB: %d %s", got.StatusCode, got.text)
	}
	h.create(t, right+strings.Repeat(" ", 65537-len(right))).wantFault(t, fault.PayloadTooLarge)
	r := httptest.NewRequest(http.MethodPost, "/payments/create", failingReader{})
	h.serve(t, r).wantFault(t, fault.InvalidRequest)
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("cut off") }

func TestUnknownPathsAndMethods(t *testing.T) {
	t.Parallel()
	h := build(t)
	for _, path := range []string{"/", "/payments", "/payments/create/", "/PAYMENTS/create", "/payments//create", "/checkout/a/b/c", "/checkout/assets/none.js"} {
		method := http.MethodGet
		if strings.HasPrefix(strings.ToLower(path), "/payments") {
			method = http.MethodPost
		}
		h.send(t, method, path, "").wantFault(t, fault.NotFound)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodOptions, "BREW"} {
		got := h.send(t, method, "/payments/create", "")
		got.wantFault(t, fault.MethodNotAllowed)
		if allow := got.Header.Get("Allow"); allow != http.MethodPost {
			t.Errorf("%s: Allow: %q", method, allow)
		}
	}
	got := h.send(t, http.MethodPost, "/checkout/abc", "")
	got.wantFault(t, fault.MethodNotAllowed)
	if allow := got.Header.Get("Allow"); allow != "GET, HEAD" {
		t.Errorf("Allow: %q", allow)
	}
}

func TestFollowersTakeTheKeyAsReference(t *testing.T) {
	t.Parallel()
	h := build(t)
	status := `{"secret_key":"` + h.key + `"}`
	if got := h.send(t, http.MethodPost, "/payments/status", status, header{"Idempotency-Key", "INV-7"}); got.StatusCode != http.StatusOK {
		t.Fatalf("got %s", got.text)
	}
	if r := h.requests[0]; r.Body["external_id"] != "INV-7" || r.IdempotencyKey != "" {
		t.Errorf("the engine got %+v", r)
	}
	got := h.send(t, http.MethodPost, "/payments/status", status)
	got.wantFault(t, fault.InvalidRequest)
	got.wantField(t, "external_id", "is required")
}

func TestUnknownFieldsAreIgnoredWhereNoMoneyMoves(t *testing.T) {
	t.Parallel()
	h := build(t)
	body := `{"secret_key":"` + h.key + `","external_id":"INV-1","colour":"red"}`
	if got := h.send(t, http.MethodPost, "/payments/status", body); got.StatusCode != http.StatusOK {
		t.Errorf("got %s", got.text)
	}
}

func TestARefusedRetryGetsItsStoredAnswer(t *testing.T) {
	t.Parallel()
	refusal := fault.New(fault.RateLimited, "Too many.").After(noon, 2*time.Second)
	ticket := admission.Ticket{Ticket: policy.Ticket{DecisionID: "d-2"}, RateLimit: `"default";r=0;t=2`, RateLimitPolicy: `"default";q=1;w=2`}
	known := func(lifecycle.Request) (lifecycle.Answer, bool, error) {
		return lifecycle.Answer{Data: map[string]any{"status": "PENDING"}, Replayed: true}, true, nil
	}
	different := func(lifecycle.Request) (lifecycle.Answer, bool, error) {
		return lifecycle.Answer{}, false, fault.New(fault.DuplicateReference, "Different.")
	}
	tests := []struct {
		name, body string
		stored     func(lifecycle.Request) (lifecycle.Answer, bool, error)
		code       fault.Code
	}{
		{"known", `,"external_id":"INV-1"`, known, ""},
		{"different", `,"external_id":"INV-1"`, different, fault.DuplicateReference},
		{"new", `,"external_id":"INV-1"`, nil, fault.RateLimited},
		{"without reference", ``, known, fault.RateLimited},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			h.admit = func() (admission.Ticket, error) { return ticket, refusal }
			if test.stored != nil {
				h.stored = test.stored
			}
			got := h.create(t, h.right(test.body))
			if got.Header.Get("X-Svc-Decision-Id") != "d-2" || got.Header.Get("RateLimit") != ticket.RateLimit {
				t.Errorf("headers %v", got.Header)
			}
			if len(h.requests) > 0 {
				t.Error("the engine ran it")
			}
			if test.code != "" {
				got.wantFault(t, test.code)
				return
			}
			if got.StatusCode != http.StatusOK || got.Header.Get("Idempotent-Replayed") != "true" {
				t.Errorf("got %d %s", got.StatusCode, got.text)
			}
		})
	}
}

func TestWaitsAreToldTruly(t *testing.T) {
	t.Parallel()
	tests := []struct {
		f         *fault.Error
		after, at string
	}{
		{f: fault.New(fault.RateLimited, "x").After(noon, 300*time.Millisecond), after: "1", at: "2026-11-20T05:00:01Z"},
		{f: fault.New(fault.RateLimited, "x").After(noon, 2*time.Second), after: "2", at: "2026-11-20T05:00:02Z"},
		{f: fault.New(fault.QuotaExceeded, "x").After(noon, 240*time.Hour), after: "3600", at: "2026-11-30T05:00:00Z"},
		{f: &fault.Error{Code: fault.QuotaExceeded, RetryAt: noon.Add(time.Minute)}, after: "60", at: "2026-11-20T05:01:00Z"},
		{f: fault.New(fault.ProviderUnavailable, "x"), after: "", at: ""},
	}
	for _, test := range tests {
		h := build(t)
		h.run = func(lifecycle.Request) (lifecycle.Answer, error) { return lifecycle.Answer{}, test.f }
		got := h.create(t, h.right(""))
		if after := got.Header.Get("Retry-After"); after != test.after || got.envelope.RetryAt != test.at {
			t.Errorf("%v: Retry-After %q, retry_at %q, want %q, %q", test.f, after, got.envelope.RetryAt, test.after, test.at)
		}
	}
}

func TestWhatGoesWrongInsideStaysInside(t *testing.T) {
	t.Parallel()
	tests := map[string]func(lifecycle.Request) (lifecycle.Answer, error){
		"error": func(lifecycle.Request) (lifecycle.Answer, error) {
			return lifecycle.Answer{}, errors.New("secret_table is gone")
		},
		"panic":         func(lifecycle.Request) (lifecycle.Answer, error) { panic("secret_table is gone") },
		"no JSON value": func(lifecycle.Request) (lifecycle.Answer, error) { return lifecycle.Answer{Data: func() {}}, nil },
	}
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			h.run = run
			got := h.create(t, h.right(`,"external_id":"INV-1"`))
			got.wantFault(t, fault.Internal)
			if e := got.envelope; e.Sent != fault.SentUnknown || e.Retry != fault.RetryLookupFirst || e.External != "INV-1" {
				t.Errorf("the engine had it, so it may have been sent: %s", got.text)
			}
			if strings.Contains(got.text, "secret_table") {
				t.Errorf("the cause is shown: %s", got.text)
			}
			if causes := strings.Count(h.log.String(), `"level":"ERROR"`); causes != 1 {
				t.Errorf("the cause is logged %d times: %s", causes, h.log)
			}
		})
	}
}

func TestAReadThatFailsWasNotSent(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.run = func(lifecycle.Request) (lifecycle.Answer, error) { return lifecycle.Answer{}, errors.New("gone") }
	got := h.send(t, http.MethodPost, "/payments/status", `{"secret_key":"`+h.key+`","external_id":"INV-1"}`)
	got.wantFault(t, fault.Internal)
	if got.envelope.Sent != fault.SentNo {
		t.Errorf("got %s", got.text)
	}
}

func TestNothingSecretIsLogged(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.create(t, h.right(`,"description":"a surprise for Siti"`))
	h.create(t, strings.Replace(h.right(""), h.key, h.key+"x", 1), header{"Authorization", "Bearer tok_en"})
	h.send(t, http.MethodPost, "/notify/payments/unguessable?q=hidden", "body-of-it")
	h.send(t, http.MethodGet, "/sk_live_in_the_path?secret_key="+h.key, "")
	text := h.log.String()
	for _, secret := range []string{h.key, "tok_en", "Siti", "unguessable", "hidden", "body-of-it", "sk_live_in_the_path"} {
		if strings.Contains(text, secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	for _, want := range []string{`"route":"/payments/create"`, `"merchant_id":"mer_test"`, `"mode":"test"`, `"error_code":"AUTH_FAILED"`, `"route":"none"`, `"status":404`, `"took_ms":`} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not hold %s:\n%s", want, text)
		}
	}
	want := []string{"/payments/create OK", "/payments/create AUTH_FAILED", "/notify/:provider/:token NOT_FOUND", "none NOT_FOUND"}
	if diff := cmp.Diff(want, h.observed); diff != "" {
		t.Error(diff)
	}
}

// The line of a refused request names the decision, which explains it.
func TestTheLogNamesWhatRefused(t *testing.T) {
	t.Parallel()
	h := build(t)
	refusal := fault.New(fault.RateLimited, "Too fast.")
	for id, err := range map[string]error{"d-refused": refusal, "d-admitted": nil} {
		h.admit = func() (admission.Ticket, error) { return admission.Ticket{Ticket: policy.Ticket{DecisionID: id}}, err }
		h.create(t, h.right(""))
	}
	if text := h.log.String(); !strings.Contains(text, `"decision_id":"d-refused"`) || strings.Contains(text, "d-admitted") {
		t.Errorf("the log says %s", text)
	}
}

func TestSuspendedAndScopes(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.suspendOrScope(t, tenants.Suspended, tenants.AllScopes())
	h.create(t, h.right("")).wantFault(t, fault.MerchantSuspended)
	read, err := tenants.NewScopes(tenants.ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	h.suspendOrScope(t, tenants.Active, read)
	h.create(t, `{"secret_key":"`+h.key+`"}`).wantFault(t, fault.ScopeMissing)
	if got := h.send(t, http.MethodPost, "/payments/status", `{"secret_key":"`+h.key+`","external_id":"a"}`); got.StatusCode != http.StatusOK {
		t.Errorf("a key that may read can't: %s", got.text)
	}
	h.send(t, http.MethodPost, "/payments/cancel", `{"secret_key":"`+h.key+`","external_id":"a"}`).wantFault(t, fault.ScopeMissing)
}
