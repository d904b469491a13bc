package merchants

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/console/page/pagetest"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/signin"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/migrated"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// reach is what each role reaches, written apart from the table of routes: the first part
// of the path below merchant and mode.
var reach = map[tenants.Role][]string{
	tenants.RoleOwner:     {"", "payments", "refunds", "collections", "orders", "transfers", "movements", "movements!", "refund!", "find", "requests", "callbacks", "numbers", "callbacks!", "keys", "keys!", "receiver!", "balance", "connections", "connections!", "members", "members!", "audit"},
	tenants.RoleDeveloper: {"", "payments", "refunds", "collections", "orders", "transfers", "movements", "movements!", "find", "requests", "callbacks", "numbers", "callbacks!", "keys", "keys!", "receiver!", "connections", "connections!"},
	tenants.RoleFinance:   {"", "payments", "refunds", "collections", "orders", "transfers", "movements", "refund!", "find", "requests", "callbacks", "numbers", "balance"},
	tenants.RoleViewer:    {"", "payments", "refunds", "collections", "orders", "transfers", "movements", "find", "requests", "callbacks", "numbers"},
}

// freshly are the sections whose forms need a fresh code.
var freshly = []string{"refund!", "keys!", "receiver!", "connections!", "members!"}

// nothing is an admin API that does nothing and notes that it was reached.
type nothing struct{ reached bool }

var errNothing = errors.New("the admin API does nothing here")

func (n *nothing) RoundTrip(*http.Request) (*http.Response, error) {
	n.reached = true
	return nil, errNothing
}

// TestRoles visits every route as every role, as nobody, and as the owner of another
// merchant. Who may not come in reaches nothing, and is told that there is no such page;
// who may and has no fresh code is asked for one where the section needs it.
func TestRoles(t *testing.T) {
	t.Parallel()
	ctx, now, log := t.Context(), time.Now, slog.New(slog.DiscardHandler)
	kept, in := people(t)
	api := &nothing{}
	c, err := New(Config{URL: "http://127.0.0.1", Trusted: func() []netip.Prefix { return nil }}, Dependencies{
		Dependencies: page.Dependencies{SignIn: in, Sessions: kept.Sessions(), Now: now, Log: log}, Records: kept,
		Admin: func(string, tenants.MerchantID) *adminapi.Client {
			api.reached = true
			return adminapi.NewClientOver(api)
		},
		Manifests: func() []*manifest.Manifest { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	shop := func() tenants.MerchantID {
		m := tenants.Merchant{ID: tenants.NewMerchantID(), Name: "A shop", Tier: "starter", Status: tenants.Active, CreatedAt: now()}
		if err := kept.CreateMerchant(ctx, store.Audit{Operator: "test", Action: "merchant.create", At: now()}, m, nil, nil); err != nil {
			t.Fatal(err)
		}
		return m.ID
	}
	enter := func(at tenants.MerchantID, role tenants.Role, email string) *http.Client {
		client, _ := comeIn(t, in, server.URL, at, role, email)
		return client
	}
	one, other := shop(), shop()
	nobody := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	people := map[tenants.Role]*http.Client{}
	for role := range reach {
		people[role] = enter(one, role, string(role)+"@example.com")
	}
	stranger := enter(other, tenants.RoleOwner, "stranger@example.com")
	for _, of := range c.routes() {
		method, path, _ := strings.Cut(of.pattern, " ")
		section, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(path, "{$}"), "/"), "/")
		if method == http.MethodPost || strings.HasPrefix(path, "/keys/") || strings.HasPrefix(path, "/refund/") || strings.HasPrefix(path, "/connections/") {
			section += "!"
		}
		if path == "/callbacks/secret" || path == "/callbacks/url" {
			section = "receiver!"
		}
		for _, name := range []string{"movement", "event", "key", "provider", "person", "request"} {
			path = strings.ReplaceAll(path, "{"+name+"}", "something")
		}
		target := server.URL + "/" + string(one) + "/test" + strings.TrimSuffix(path, "{$}")
		for role, client := range people {
			api.reached = false
			got := fetch(t, client, method, target, nil)
			asked := strings.HasPrefix(got.location, "/confirm")
			switch may := slices.Contains(reach[role], section); {
			case !may && (got.status != http.StatusNotFound || api.reached):
				t.Errorf("%s: %s gets %d %s", of.pattern, role, got.status, got.location)
			case may && slices.Contains(freshly, section) != asked:
				t.Errorf("%s: %s without a fresh code gets %d %s", of.pattern, role, got.status, got.location)
			case may && !asked && !api.reached:
				t.Errorf("%s: %s is kept out: %d", of.pattern, role, got.status)
			}
		}
		api.reached = false
		if got := fetch(t, stranger, method, target, nil); got.status != http.StatusNotFound || api.reached {
			t.Errorf("%s: another merchant's owner gets %d", of.pattern, got.status)
		}
		if got := fetch(t, nobody, method, target, nil); !strings.HasPrefix(got.location, "/signin") || api.reached {
			t.Errorf("%s: nobody gets %d %s", of.pattern, got.status, got.location)
		}
	}
}

// people are a store, and who lets people in.
func people(t *testing.T) (*store.Store, *signin.SignIn) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	database := migrated.Database(t)
	kept := migrated.Open(t, database, store.Options{MaxConns: 4})
	keyset := filepath.Join(t.TempDir(), "keyset.json")
	if err := tenants.CreateKeysetFile(keyset); err != nil {
		t.Fatal(err)
	}
	vault, err := tenants.OpenKeysetFile(keyset)
	if err != nil {
		t.Fatal(err)
	}
	in := signin.New(signin.Dependencies{
		Store: kept, Vault: vault, Failures: limit.NewFailures(), Asks: limit.NewFailures(), Links: signin.Links{Merchants: "https://console.example", Operators: "https://operators.example"}, Now: time.Now, Log: log,
		HashMemory: 64,
	})
	return kept, in
}

// comeIn signs somebody in by an invitation, and returns their recovery codes.
func comeIn(t *testing.T, in *signin.SignIn, console string, at tenants.MerchantID, role tenants.Role, email string) (*http.Client, []string) {
	t.Helper()
	invitation, _, err := in.Invite(t.Context(), "test", at, role, email, "")
	if err != nil {
		t.Fatal(err)
	}
	_, link, _ := strings.Cut(invitation, "/invitations/")
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	shown := fetch(t, client, http.MethodGet, console+"/invitations/"+link, nil)
	_, rest, _ := strings.Cut(shown.body, "data-factor>")
	secret, _, _ := strings.Cut(rest, "<")
	code, err := totp.GenerateCode(secret, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"name": {pagetest.Hostile}, "password": {"a sentence of five words"}, "code": {code}}
	fetch(t, client, http.MethodPost, console+"/invitations/"+link, form)
	got := fetch(t, client, http.MethodGet, console+"/profile/codes", nil)
	codes := regexp.MustCompile(`[a-z2-7]{4}(-[a-z2-7]{4}){3}`).FindAllString(got.body, -1)
	if got.status != http.StatusOK || len(codes) != 10 {
		t.Fatalf("%s can't come in: %d %s", email, got.status, got.body)
	}
	return client, codes
}

type fetched struct {
	status         int
	location, body string
}

func fetch(t *testing.T, client *http.Client, method, target string, form url.Values) fetched {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(answer.Body); err != nil {
		t.Fatal(err)
	}
	return fetched{answer.StatusCode, answer.Header.Get("Location"), body.String()}
}
