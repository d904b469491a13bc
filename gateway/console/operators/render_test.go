package operators

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"
	"github.com/alexedwards/scs/v2/memstore"
	"github.com/google/uuid"
	"github.com/pquerna/otp/totp"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/console/page/pagetest"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

var (
	created    adminapi.CreatedMerchant
	movementOf adminapi.Movement
)

// answers are what the admin API answers with, by method and path.
var answers = []struct {
	path  string
	value any
}{
	{`GET /admin/merchants`, adminapi.MerchantPage{}},
	{`POST /admin/merchants`, adminapi.CreatedMerchant{}},
	{`GET /admin/merchants/[^/]+`, adminapi.Merchant{}},
	{`GET /admin/merchants/[^/]+/quotas`, adminapi.Quotas{}},
	{`GET /admin/merchants/[^/]+/balance`, adminapi.Balance{}},
	{`GET /admin/merchants/[^/]+/account-statement`, adminapi.AccountStatement{}},
	{`GET /admin/merchants/[^/]+/audit`, []store.Audit{}},
	{`GET /admin/audit`, []store.Audit{}},
	{`GET /admin/merchants/[^/]+/callbacks`, []adminapi.Callback{}},
	{`GET /admin/merchants/[^/]+/(callback-)?figures`, adminapi.Figures{}},
	{`GET /admin/merchants/[^/]+/movements`, adminapi.MovementList{}},
	{`GET /admin/merchants/[^/]+/statement-lines`, []adminapi.StatementLine{}},
	{`POST /admin/merchants/[^/]+/limits(/.*)?`, []adminapi.Limit{}},
	{`POST /admin/merchants/[^/]+/(credit|debit)`, adminapi.Adjustment{}},
	{`POST /admin/merchants/[^/]+/keys/.*`, adminapi.Key{}},
	{`POST /admin/merchants/[^/]+/callbacks/resend`, adminapi.Resent{}},
	{`POST /admin/merchants/[^/]+/(suspend|resume|tier|labels)`, adminapi.Merchant{}},
	{`POST /admin/merchants/[^/]+/invitations`, adminapi.Invitation{}},
	{`(GET|POST) /admin/merchants/[^/]+/invitations(/revoke)?`, []adminapi.Invitation{}},
	{`POST /admin/exceptions/resolve`, struct{}{}},
	{`POST /admin/ledger/.*`, adminapi.Adjustment{}},
	{`POST /admin/pauses(/end)?`, adminapi.Paused{}},
	{`POST /admin/movements/[^/]+/override`, adminapi.Overridden{}},
	{`POST /admin/movements/[^/]+/assign`, adminapi.Assigned{}},
	{`POST /admin/movements/[^/]+/refund`, adminapi.Refunded{}},
	{`GET /admin/waiting`, adminapi.Waiting{}},
	{`GET /admin/merchants/[^/]+/request-log`, adminapi.RequestLog{}},
	{`GET /admin/merchants/[^/]+/find`, adminapi.FindResult{}},
	{`GET /admin/traffic`, adminapi.Traffic{}},
	{`POST /admin/plugin-approvals/[^/]+/confirm`, adminapi.PluginApproval{}},
	{`GET /admin/pauses`, []tenants.Pause{}},
	{`GET /admin/plugins`, []adminapi.Plugin{}},
	{`GET /admin/plugins/[^/]+`, adminapi.Plugin{}},
	{`GET /admin/plugin-approvals`, []adminapi.PluginApproval{}},
	{`POST /admin/plugins/[^/]+/restart`, struct{}{}},
	{`POST /admin/plugins/.*`, adminapi.PluginChange{}},
	{`GET /admin/replicas`, []adminapi.Replica{}},
	{`GET /admin/movements/[^/]+`, adminapi.Movement{}},
	{`GET /admin/find`, adminapi.FindResult{More: true}},
	{`GET /admin/operator-tokens`, []adminapi.OperatorToken{}},
	{`POST /admin/operator-tokens/[^/]+/revoke`, []adminapi.OperatorToken{}},
	{`POST /admin/operator-tokens.*`, adminapi.CreatedOperatorToken{}},
	{`GET /admin/policies`, []adminapi.PolicyVersion{}},
	{`GET /admin/policies/activations/[^/]+`, adminapi.PolicyActivation{}},
	{`GET /admin/policies/.*/diff/.*`, adminapi.PolicyDiff{}},
	{`GET /admin/policies/[^/]+`, adminapi.PolicyVersion{}},
	{`POST /admin/policies`, adminapi.PolicyVersion{}},
	{`POST /admin/policies/.*`, adminapi.PolicyActivation{}},
	{`POST /admin/policy/impact`, adminapi.ImpactLine{}},
	{`GET /readyz`, adminapi.Readiness{}},
}

// hostile stands in every text.
const hostile = pagetest.Hostile

// visits is who visits.
const visits = "ayu@example.com"

// admin answers with documents whose every field is filled, or with empty ones.
type admin struct {
	t     *testing.T
	by    string
	empty bool
	asked *asked
}

// asked is what the admin API was asked for, also by what goes on after an answer.
type asked struct {
	mu  sync.Mutex
	all []ask
}

// ask is what was asked for, by whom, from where.
type ask struct {
	*url.URL

	method, by string
	from       tenants.Origin
}

func (a *asked) add(one ask) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, one)
}

// take is what was asked for since it was taken before.
func (a *asked) take() []ask {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := a.all
	a.all = nil
	return all
}

func (a admin) RoundTrip(r *http.Request) (*http.Response, error) {
	a.asked.add(ask{r.URL, r.Method, a.by, tenants.OriginOf(r.Context())})
	for _, answer := range answers {
		if !regexp.MustCompile("^" + answer.path + "$").MatchString(r.Method + " " + r.URL.Path) {
			continue
		}
		value := reflect.New(reflect.TypeOf(answer.value))
		if !a.empty {
			pagetest.Fill(value.Interface())
		}
		switch v := value.Interface().(type) {
		case *adminapi.PolicyVersion:
			v.Files = map[string]string{"data.json": `{"tiers": {"starter": {"rate_per_second": 5, "quotas": {"wallet2": {"limit": 7}}}}, "amounts": {"/a": {"min": 1}}}`, "a.rego": hostile}
		case *adminapi.ImpactLine:
			v.Progress, v.Message = nil, ""
			if v.Data == nil {
				v.Data = &adminapi.Impact{}
			}
			return a.answer(v)
		case *adminapi.FindResult:
			if v.Request == nil { // a page of a call has one, or does not exist
				v.Request = &adminapi.LoggedRequest{}
			}
		case *adminapi.Waiting:
			if !a.empty {
				v.Overrides[0].Override.Operator, v.Adjustments[0].RequestedBy = visits, visits
				v.Activations[0].RequestedBy, v.Approvals[0].ApprovedBy = visits, visits
				v.Refunds[0].Operator = visits
			}
		case *adminapi.Readiness:
			return a.answer(v)
		}
		return a.answer(map[string]any{"data": value.Interface()})
	}
	a.t.Errorf("%s %s has no answer in this test", r.Method, r.URL.Path)
	return nil, http.ErrNotSupported
}

func (a admin) answer(value any) (*http.Response, error) {
	text, err := json.Marshal(value)
	if err != nil {
		a.t.Error(err)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(append(text, '\n')))}, nil
}

// people are a store with one person; what it does not implement must not be asked.
type people struct {
	signin.Store

	person  tenants.Person
	member  tenants.Member
	changes *[]string
}

func (p people) change(ctx context.Context, what, by string) error {
	*p.changes = append(*p.changes, what+" by "+by+" from "+string(tenants.OriginOf(ctx)))
	return nil
}

func (p people) PersonByEmail(context.Context, string) (tenants.Person, error) { return p.person, nil }

func (p people) PersonByID(context.Context, uuid.UUID) (tenants.Person, error) { return p.person, nil }

func (p people) TakeAttempt(context.Context, uuid.UUID, time.Time, int, time.Duration) (bool, error) {
	return true, nil
}

func (p people) UseStep(context.Context, uuid.UUID, int64) (bool, error) { return true, nil }

func (p people) ForgetSignInFailures(context.Context, uuid.UUID) error { return nil }

func (p people) NoteSignIn(context.Context, tenants.Person, string, string, time.Time, ...movement.Mail) error {
	return nil
}

func (p people) Invite(ctx context.Context, i tenants.Invitation, _ time.Time, _ ...movement.Mail) error {
	return p.change(ctx, "invite", i.By)
}

func (p people) InvitationsOf(context.Context, tenants.MerchantID, time.Time) ([]tenants.Invitation, error) {
	return []tenants.Invitation{{Email: "new@example.com", Role: "support", By: hostile, Mail: "sent", ExpiresAt: p.member.Since}}, nil
}

func (p people) RevokeInvitation(ctx context.Context, by string, _ tenants.MerchantID, _ string, _ time.Time) error {
	return p.change(ctx, "uninvite", by)
}

func (p people) SetRole(ctx context.Context, by string, _ tenants.Member, _ time.Time) error {
	return p.change(ctx, "set role", by)
}

func (p people) RemoveMember(ctx context.Context, by string, _ tenants.Member, _ time.Time) error {
	return p.change(ctx, "remove", by)
}

func (p people) MembersOf(context.Context, tenants.MerchantID) ([]tenants.Member, error) {
	another := p.member
	another.PersonID, another.Name = uuid.MustParse("00000000-0000-7000-8000-000000000002"), hostile
	return []tenants.Member{p.member, another}, nil
}

func (p people) MembershipsOf(context.Context, uuid.UUID) ([]tenants.Member, error) {
	return []tenants.Member{p.member}, nil
}

// plain keeps second factors as they are.
type plain struct{}

func (plain) SealTOTP(_ string, secret []byte) ([]byte, error) { return secret, nil }

func (plain) SealPersonal(_, _ string, plaintext []byte) ([]byte, error) { return plaintext, nil }

func (plain) OpenPersonal(_, _ string, sealed []byte) ([]byte, error) { return sealed, nil }

func (plain) OpenTOTP(_ string, sealed []byte) ([]byte, error) { return sealed, nil }

type patient struct{}

func (patient) Record(time.Time, netip.Addr) (bool, time.Duration) { return false, 0 }
func (patient) Blocked(time.Time, netip.Addr) bool                 { return false }

// visitor is somebody who has signed in and given a fresh code.
type visitor struct {
	*testing.T

	url    string
	client *http.Client
	logs   *bytes.Buffer
	trials *trials

	asked   *asked          // of the admin API
	roles   *[]tenants.Role // that the admin API was asked as
	changes *[]string       // of people
}

func enter(t *testing.T, role tenants.Role, language string, empty bool) visitor {
	t.Helper()
	v, code := arrive(t, role, empty)
	v.post("/confirm", url.Values{"code": {code}}, http.StatusSeeOther)
	v.post("/language", url.Values{"language": {language}}, http.StatusSeeOther)
	return v
}

// arrive signs somebody in, who has given no fresh code yet.
func arrive(t *testing.T, role tenants.Role, empty bool) (v visitor, code string) {
	t.Helper()
	const password, factor = "a sentence is long enough", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
	hash, err := argon2id.CreateHash(password, &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32})
	if err != nil {
		t.Fatal(err)
	}
	id := uuid.MustParse("00000000-0000-7000-8000-000000000001")
	now := func() time.Time { return time.Date(2026, 1, 31, 3, 4, 5, 0, time.UTC) }
	v = visitor{T: t, logs: &bytes.Buffer{}, asked: &asked{}, roles: &[]tenants.Role{}, changes: &[]string{}}
	of := signin.New(signin.Dependencies{Store: people{
		changes: v.changes,
		person:  tenants.Person{ID: id, Email: visits, Name: "Ayu", Password: hash, TOTP: []byte(factor)},
		member:  tenants.Member{PersonID: id, MerchantID: tenants.Platform, Role: role, Email: visits, Name: "Ayu", Since: now()},
	}, Vault: plain{}, Failures: patient{}, Asks: patient{}, Links: signin.Links{Merchants: "http://merchants.example", Operators: "http://console.example"}, Now: now, Log: slog.New(slog.DiscardHandler)})
	console, err := New(Config{URL: "http://console.example", Trusted: func() []netip.Prefix { return nil }}, Dependencies{
		Dependencies: page.Dependencies{SignIn: of, Sessions: memstore.NewWithCleanupInterval(0), Now: now, Log: slog.New(slog.NewTextHandler(v.logs, nil))},
		Admin: func(by string, role tenants.Role) *adminapi.Client {
			*v.roles = append(*v.roles, role)
			return adminapi.NewClientOver(admin{t, by, empty, v.asked})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(console)
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v.trials, v.url, v.client = console.trials, server.URL, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if code, err = totp.GenerateCode(factor, now()); err != nil {
		t.Fatal(err)
	}
	v.post("/signin", url.Values{"email": {visits}, "password": {password}, "code": {code}}, http.StatusSeeOther)
	return v, code
}

func (v visitor) ask(method, path string, form url.Values) (int, string) {
	v.Helper()
	request, err := http.NewRequestWithContext(v.Context(), method, v.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		v.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := v.client.Do(request)
	if err != nil {
		v.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		v.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func (v visitor) post(path string, form url.Values, status int) {
	v.Helper()
	if got, body := v.ask(http.MethodPost, path, form); got != status {
		v.Fatalf("POST %s: %d, want %d\n%s", path, got, status, body)
	}
}

// routes are those of the console's source, so that none is forgotten.
func routes(t *testing.T, method string) []string {
	t.Helper()
	source, err := os.ReadFile("site.go")
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, found := range regexp.MustCompile(`c\.at\("`+method+` ([^"]+)"`).FindAllSubmatch(source, -1) {
		path := strings.ReplaceAll(string(found[1]), "{$}", "")
		path = strings.ReplaceAll(path, "{person}", "00000000-0000-7000-8000-000000000002")
		if strings.HasSuffix(path, "/impact") {
			path += "?since=1h"
		}
		paths = append(paths, regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "some"))
	}
	if len(paths) < 5 {
		t.Fatalf("the source has the routes %v: look at how they are written", paths)
	}
	return paths
}

func TestEveryPageCanBeShown(t *testing.T) {
	t.Parallel()
	for _, language := range []string{"id", "en"} {
		for what, empty := range map[string]bool{"filled": false, "empty": true} {
			t.Run(language+" "+what, func(t *testing.T) {
				t.Parallel()
				v := enter(t, "admin", language, empty)
				paths := append(routes(t, http.MethodGet), "/find?id=x&from=2026-01-02", "/merchants/platform", "/merchants/m/money?mode=test")
				for _, path := range paths {
					status, body := v.ask(http.MethodGet, path, nil)
					v.judge(path, status, body)
					if status != http.StatusOK {
						t.Errorf("GET %s: %d\n%s\n%s", path, status, body, v.logs)
					}
				}
			})
		}
	}
}

// TestNobodyConfirmsAlone: of each two that wait, one of the visitor's own, the other one
// alone has a form.
func TestNobodyConfirmsAlone(t *testing.T) {
	t.Parallel()
	_, body := enter(t, "admin", "en", false).ask(http.MethodGet, "/waiting", nil)
	for _, action := range []string{"/waiting/overrides", "/waiting/refunds", "/waiting/adjustments", "/activate", "/waiting/approvals"} {
		if n := strings.Count(body, action+`"`); n != 1 {
			t.Errorf("%d forms for %s", n, action)
		}
	}
	if n := strings.Count(body, "You asked for it: another operator decides."); n != 5 {
		t.Errorf("%d are told that it is another one's to decide", n)
	}
}

// filled has every field of every form.
var filled = url.Values{
	"id": {"x"}, "reason": {"why"}, "amount": {"1000"}, "kind": {"credit"}, "mode": {"live"}, "reference": {"r"}, "name": {"n"}, "tier": {"starter"}, "as": {"success"},
	"decision": {"approve"}, "merchant": {"m"}, "movement": {"x"}, "approval": {"x"}, "base": {"b"}, "rate": {"2.5"}, "burst": {"3"}, "email": {"budi@example.com"}, "role": {"read"}, "message": {"m"},
	"/tiers/starter/rate_per_second": {"6"},
}

// unconfirmed are the forms of a session that somebody left open: they neither stop nor move
// money, and change neither what the policy decides by, nor a binary, a key or a person.
var unconfirmed = []string{
	"/find", "/waiting/exceptions", "/movements/some/callbacks/some", "/policies", "/policies/some/impact?since=1h", "/providers/some/restart",
}

func TestEveryOtherFormNeedsAFreshCode(t *testing.T) {
	t.Parallel()
	v, _ := arrive(t, "admin", false)
	for _, path := range routes(t, http.MethodPost) {
		answer, err := v.client.PostForm(v.url+path, filled)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		asked := answer.StatusCode == http.StatusSeeOther && strings.HasPrefix(answer.Header.Get("Location"), "/confirm")
		if asked == slices.Contains(unconfirmed, path) {
			t.Errorf("POST %s: asked for a code: %v", path, asked)
		}
	}
}

// TestRoles: the admin API is asked as the visitor's own role by every page and form, and
// judges it; the page itself judges who says who is an operator.
func TestRoles(t *testing.T) {
	t.Parallel()
	const person = "/people/00000000-0000-7000-8000-000000000002"
	own := map[string]string{
		"/people": "invite by ayu@example.com from 127.0.0.1", person + "/role": "set role by ayu@example.com from 127.0.0.1",
		person + "/remove": "remove by ayu@example.com from 127.0.0.1", "/people/invitations/revoke": "uninvite by ayu@example.com from 127.0.0.1",
	}
	for _, role := range tenants.RolesOf(tenants.Platform) {
		t.Run(string(role), func(t *testing.T) {
			t.Parallel()
			v := enter(t, role, "en", false)
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				for _, path := range routes(t, method) {
					*v.roles, *v.changes = nil, nil
					status, _ := v.ask(method, path, filled)
					if !slices.Equal(*v.roles, []tenants.Role{role}) {
						t.Errorf("%s %s: the admin API is asked as %q", method, path, *v.roles)
					}
					var changed []string
					change := own[path]
					forbidden := method == http.MethodPost && change != "" && role != "admin"
					if method == http.MethodPost && change != "" && !forbidden {
						changed = []string{change}
					}
					if (status == http.StatusForbidden) != forbidden || !slices.Equal(*v.changes, changed) {
						t.Errorf("%s %s: %d, and %q is done; want %q", method, path, status, *v.changes, changed)
					}
				}
			}
			_, body := v.ask(http.MethodGet, "/people", nil)
			if offered := strings.Contains(body, `action="`+person); offered != (role == "admin") {
				t.Errorf("is offered to change people: %v", offered)
			}
		})
	}
}

// TestWhatARequestAskedForIsReadByAForm: a link, which any site can have somebody open,
// reads none and writes no audit.
func TestWhatARequestAskedForIsReadByAForm(t *testing.T) {
	t.Parallel()
	v := enter(t, "support", "en", false)
	for _, of := range []struct {
		method, path string
		form         url.Values
		traced       bool
	}{
		{http.MethodGet, "/find?id=x", nil, false}, {http.MethodGet, "/find?id=x&trace=1", nil, false}, {http.MethodPost, "/find", url.Values{"id": {"x"}}, true},
	} {
		v.asked.take()
		status, body := v.ask(of.method, of.path, of.form)
		v.judge(of.path, status, body)
		traced := slices.ContainsFunc(v.asked.take(), func(one ask) bool { return one.Query().Has("trace") })
		if status != http.StatusOK || traced != of.traced {
			t.Errorf("%s %s: %d, traced: %v", of.method, of.path, status, traced)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.url+"/find", strings.NewReader("id=x"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "cross-site")
	v.asked.take()
	answer, err := v.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if all := v.asked.take(); answer.StatusCode != http.StatusForbidden || len(all) != 0 {
		t.Errorf("another site's form: %d, asked %v", answer.StatusCode, all)
	}
}

// TestWhatIsShownAnewLeadsOn: a link or a form in it is no part of what is shown anew.
func TestWhatIsShownAnewLeadsOn(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(templates, "templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range names {
		text, err := templates.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(text), "\n") {
			if strings.Contains(line, "hx-select=") {
				n++
				if !strings.Contains(line, `hx-disinherit="hx-select hx-swap hx-push-url"`) {
					t.Errorf("%s: %s", name, line)
				}
			}
		}
	}
	if n == 0 {
		t.Error("nothing is shown anew")
	}
}

// judge finds what no page may have.
func (v visitor) judge(path string, status int, body string) {
	v.Helper()
	switch {
	case status >= http.StatusInternalServerError:
		v.Errorf("%s: %d\n%s", path, status, v.logs)
	case strings.Contains(body, "<script>x"):
		v.Errorf("%s: a text came through as markup", path)
	}
	for _, slip := range []string{"%!", "<no value>", "ZgotmplZ", "0x"} {
		if strings.Contains(html.UnescapeString(body), slip) {
			v.Errorf("%s: %q stands on the page", path, slip)
		}
	}
}

// changesNothing are the forms that change nothing, so that nothing is audited but what was read.
var changesNothing = []string{"/find", "/policies/some/impact?since=1h"}

// TestEveryFormIsAudited: each form changes something by a route of the admin API, which audits it, as the visitor and from
// where the visitor is. Who is an operator is changed by TestRoles.
func TestEveryFormIsAudited(t *testing.T) {
	t.Parallel()
	v := enter(t, "admin", "en", false)
	for _, path := range routes(t, http.MethodPost) {
		v.asked.take()
		*v.changes = nil
		if status, body := v.ask(http.MethodPost, path, filled); status >= http.StatusBadRequest {
			t.Errorf("POST %s: %d %s", path, status, body)
		}
		v.trials.running.Wait()
		changes := slices.DeleteFunc(v.asked.take(), func(a ask) bool { return a.method == http.MethodGet || a.Path == "/admin/policy/impact" })
		if changed := len(changes) > 0 || len(*v.changes) > 0; changed == slices.Contains(changesNothing, path) {
			t.Errorf("POST %s: changes something: %v", path, changed)
		}
		for _, a := range changes {
			if a.by != visits || a.from != "127.0.0.1" {
				t.Errorf("POST %s: %s %s is done by %q from %q", path, a.method, a.Path, a.by, a.from)
			}
		}
	}
}

func TestEveryFormIsAnswered(t *testing.T) {
	t.Parallel()
	v := enter(t, "admin", "en", false)
	for _, path := range routes(t, http.MethodPost) {
		status, body := v.ask(http.MethodPost, path, filled)
		v.judge(path, status, body)
		if status != http.StatusOK && status != http.StatusSeeOther {
			t.Errorf("POST %s: %d\n%s\n%s", path, status, body, v.logs)
		}
	}
}
