package merchants

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/console/page/pagetest"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// answers are what the admin API answers with, by method and path.
var answers = []struct {
	path  string
	value any
}{
	{`GET /admin/merchants/[^/]+`, adminapi.Merchant{}},
	{`GET /admin/merchants/[^/]+/quotas`, adminapi.Quotas{}},
	{`GET /admin/merchants/[^/]+/balance`, adminapi.Balance{}},
	{`GET /admin/merchants/[^/]+/account-statement`, adminapi.AccountStatement{}},
	{`GET /admin/merchants/[^/]+/audit`, []store.Audit{}},
	{`GET /admin/merchants/[^/]+/callbacks`, []adminapi.Callback{}},
	{`GET /admin/merchants/[^/]+/callbacks/[^/]+`, adminapi.Callback{}},
	{`POST /admin/merchants/[^/]+/callbacks/secret`, adminapi.ChangedSecret{}},
	{`POST /admin/merchants/[^/]+/callbacks/verify`, adminapi.VerifiedCallback{}},
	{`GET /admin/merchants/[^/]+/requests`, adminapi.Requests{}},
	{`GET /admin/merchants/[^/]+/request-log`, adminapi.RequestLog{}},
	{`GET /admin/merchants/[^/]+/find`, adminapi.FindResult{}},
	{`GET /admin/merchants/[^/]+/movements`, adminapi.MovementList{}},
	{`GET /admin/merchants/[^/]+/callback-figures`, adminapi.Figures{}},
	{`GET /admin/merchants/[^/]+/figures`, adminapi.Figures{}},
	{`GET /admin/movements/[^/]+`, adminapi.Movement{}},
	{`POST /admin/merchants/[^/]+/keys`, adminapi.CreatedKey{}},
}

// hostileAPI answers with documents whose every text is a script.
type hostileAPI struct{ t *testing.T }

func (a hostileAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	for _, answer := range answers {
		if !regexp.MustCompile("^" + answer.path + "$").MatchString(r.Method + " " + r.URL.Path) {
			continue
		}
		value := reflect.New(reflect.TypeOf(answer.value)).Interface()
		pagetest.Fill(value)
		if m, ok := value.(*adminapi.Merchant); ok {
			for i := range m.Keys {
				m.Keys[i].Mode = "test"
			}
			m.Connections[0].Mode, m.Connections[0].Provider, m.Callbacks[0].Mode = "test", "bank", "test"
		}
		if s, ok := value.(*adminapi.AccountStatement); ok {
			s.Next = ""
		}
		text, err := json.Marshal(map[string]any{"data": value})
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text))}, err
	}
	a.t.Errorf("%s %s has no answer in this test", r.Method, r.URL.Path)
	return nil, http.ErrNotSupported
}

// hostileRecords has one movement, whose every text is a script.
type hostileRecords struct{ of movement.Movement }

func (h hostileRecords) MovementByKey(context.Context, movement.Key) (movement.Movement, error) {
	return movement.Movement{}, store.ErrNotFound
}

func (h hostileRecords) MovementByID(context.Context, movement.ID) (movement.Movement, error) {
	return h.of, nil
}

func (h hostileRecords) KeyUses(_ context.Context, id tenants.MerchantID) ([]tenants.KeyUse, error) {
	return []tenants.KeyUse{{MerchantID: id, KeyID: pagetest.Hostile, At: time.Now(), Address: pagetest.Hostile}}, nil
}

// TestScriptsAreShownAsText: whatever merchants, payers, providers and callbacks' receivers write, no page runs it: a
// merchant's name, a reference, a message, what a receiver answers.
func TestScriptsAreShownAsText(t *testing.T) {
	t.Parallel()
	kept, in := people(t)
	ctx := t.Context()
	shop := tenants.Merchant{ID: tenants.NewMerchantID(), Name: pagetest.Hostile, Tier: "starter", Status: tenants.Active, CreatedAt: time.Now()}
	if err := kept.CreateMerchant(ctx, store.Audit{Operator: "test", Action: "merchant.create", At: time.Now()}, shop, nil, nil); err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(map[string]string{"qr_string": pagetest.Hostile, "sn": pagetest.Hostile})
	if err != nil {
		t.Fatal(err)
	}
	of := movement.Movement{
		Key: movement.Key{Owner: movement.Owner{MerchantID: string(shop.ID), Mode: "test"}, Kind: manifest.Payment, Reference: pagetest.Hostile},
		ID:  movement.ID(uuid.New()), Operation: pagetest.Hostile, Provider: pagetest.Hostile, State: movement.Pending, Amount: 1, Answer: quoted,
		Channel: pagetest.Hostile, ProviderReference: pagetest.Hostile, RequestID: pagetest.Hostile, DecisionID: pagetest.Hostile, CreatedAt: time.Now(),
	}
	offered := &manifest.Manifest{Name: "bank", Title: pagetest.Hostile, Owner: manifest.Owner(tenants.OwnerMerchant), Connection: json.RawMessage(
		`{"type": "object", "properties": {"token": {"type": "string", "title": "\"><script>x</script>", "description": "\"><script>x</script>"}}}`)}
	c, err := New(Config{URL: "http://127.0.0.1", APIURL: "http://api.example", Trusted: func() []netip.Prefix { return nil }}, Dependencies{
		Dependencies: page.Dependencies{SignIn: in, Sessions: kept.Sessions(), Now: time.Now, Log: slog.New(slog.DiscardHandler)},
		Records:      hostileRecords{of}, Admin: func(string, tenants.MerchantID) *adminapi.Client { return adminapi.NewClientOver(hostileAPI{t}) },
		Standing:   func(movement.Movement) (json.RawMessage, error) { return quoted, nil },
		Manifests:  func() []*manifest.Manifest { return []*manifest.Manifest{offered} },
		Refundable: func(context.Context, movement.Movement) (money.Amount, error) { return 1, nil },
		Plays: func(context.Context, movement.Movement) ([]sandbox.Play, error) {
			return slices.Collect(maps.Keys(buttons)), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	owner, codes := comeIn(t, in, server.URL, shop.ID, tenants.RoleOwner, "owner@example.com")
	if got := fetch(t, owner, http.MethodPost, server.URL+"/confirm", url.Values{"code": {codes[0]}}); got.status != http.StatusSeeOther {
		t.Fatalf("no fresh code: %d", got.status)
	}
	see := func(method, path string) {
		t.Helper()
		got := fetch(t, owner, method, server.URL+"/"+string(shop.ID)+"/test"+path, nil)
		if got.status != http.StatusOK || strings.Contains(got.body, "<script>x") || strings.Contains(got.body, pagetest.Hostile) {
			t.Errorf("%s %s: %d %s", method, path, got.status, got.body)
		}
		if !strings.Contains(html.UnescapeString(got.body), pagetest.Hostile) {
			t.Errorf("%s %s does not show what was written", method, path)
		}
	}
	for _, r := range c.routes() {
		method, path, _ := strings.Cut(r.pattern, " ")
		if method != http.MethodGet || path == "/find" || strings.HasSuffix(path, ".csv") {
			continue // they show no page
		}
		path = strings.NewReplacer("{$}", "", "{movement}", of.ID.String(), "{provider}", "bank", "{event}", "one", "{key}", "one", "{request}", "one").Replace(path)
		see(method, path)
	}
	for _, path := range []string{"/keys", "/callbacks/secret", "/callbacks/verify"} { // what is shown once
		see(http.MethodPost, path)
	}
}
