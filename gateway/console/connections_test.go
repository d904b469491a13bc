package console_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func (w *world) connect(merchant, owner, credentials string) adminapi.Connection {
	w.Helper()
	set, err := adminapi.SetConnection.Call(w.Context(), w, adminapi.ConnectionSpec{Merchant: merchant, Provider: "bank", Mode: "live", Owner: owner, Credentials: []byte(credentials)})
	if err != nil {
		w.Fatal(err)
	}
	return set
}

func TestWhatAProviderAsksForIsExplained(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fields, err := adminapi.ListConnectionFields.Call(t.Context(), w, adminapi.ProviderName{Provider: "bank"})
	want := []catalog.Ask{
		{Name: "api_key", Required: true, Secret: true, Title: "API key", Description: "as the portal shows it", Pattern: "^k-", Example: `"k-0123"`},
		{Name: "pin"}, {Name: "region", Choices: []string{"jkt", "sub"}},
	}
	if err != nil || !reflect.DeepEqual(fields, want) {
		t.Errorf("got %+v, %v\nwant %+v", fields, err, want)
	}
	_, err = adminapi.ListConnectionFields.Call(t.Context(), w, adminapi.ProviderName{Provider: "nobody"})
	w.refused(err, http.StatusNotFound, "")
}

func TestAConnectionIsSealedAndFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.merchant()
	set := w.connect(made.MerchantID, "", `{"region":"jkt", "api_key":"k-secret","pin":90071992547409943}`)
	if set.Owner != "merchant" || set.Version != 1 || set.NotifyURL != "https://api.example.com"+set.NotifyPath {
		t.Errorf("set %+v", set)
	}
	route, ok := strings.CutPrefix(set.NotifyPath, "/notify/bank/")
	if !ok {
		t.Fatalf("path %s", set.NotifyPath)
	}
	account, connection, err := w.directory.ByNotifyToken(t.Context(), time.Now(), "bank", tenants.NotifyToken(route))
	if err != nil || string(account.ID()) != made.MerchantID {
		t.Fatalf("the route leads nowhere: %v", err)
	}
	shown, err := adminapi.ShowMerchant.Call(t.Context(), w, adminapi.MerchantID{Merchant: made.MerchantID})
	if err != nil || len(shown.Connections) != 1 || len(shown.Connections[0].Fields) == 0 || shown.Connections[0].Fields[0] != "api_key" || strings.Contains(mustJSON(t, shown), "k-secret") {
		t.Errorf("shown %+v, %v", shown.Connections, err)
	}
	opened, err := w.vault.OpenCredentials(connection)
	if want := `{"api_key":"k-secret","pin":90071992547409943,"region":"jkt"}`; err != nil || string(opened) != want {
		t.Errorf("sealed %s, %v, want %s", opened, err, want)
	}
	if strings.Contains(string(connection.Sealed), "k-secret") {
		t.Error("the credentials are not sealed")
	}
}

func TestTheSameConnectionIsNotWrittenAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	first := w.connect(id, "", `{"api_key":"k-secret","region":"jkt"}`)
	if again := w.connect(id, "merchant", `{ "region": "jkt", "api_key": "k-secret" }`); mustJSON(t, again) != mustJSON(t, first) {
		t.Errorf("the same again gave %+v, want %+v", again, first)
	}
	if got := w.actions(id); len(got) != 2 {
		t.Errorf("audit %q", got)
	}
	changed := w.connect(id, "", `{"api_key":"k-other","region":"jkt"}`)
	if changed.Version != 2 || changed.NotifyPath != first.NotifyPath {
		t.Errorf("changed %+v, want version 2 on the same route", changed)
	}
	stored, _ := w.account(id).Connection(tenants.Live, "bank")
	if stored.Version != 2 || stored.Owner != tenants.OwnerMerchant {
		t.Errorf("stored %+v", stored)
	}
}

func TestModesAndMerchantsHaveRoutesOfTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	routes := map[string]bool{}
	for _, id := range []string{w.merchant().MerchantID, w.merchant().MerchantID} {
		for _, mode := range []string{"live", "test"} {
			set, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{Merchant: id, Provider: "bank", Mode: mode, Credentials: []byte(`{"api_key":"k-secret"}`)})
			if err != nil {
				t.Fatal(err)
			}
			routes[set.NotifyPath] = true
		}
	}
	if len(routes) != 4 {
		t.Errorf("there are %d routes, want 4", len(routes))
	}
}

func TestWrongCredentialsAreNamedAndNotRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	for credentials, field := range map[string]string{
		`{"region":"jkt"}`: "credentials.api_key",
		`{"api_key":"k-hidden","api_Key":"k-hidden"}`:    "credentials.api_Key",
		`{"api_key":"hidden-key"}`:                       "credentials.api_key",
		`{"api_key":["k-hidden"]}`:                       "credentials.api_key",
		`{"api_key":"k-hidden","region":"hidden"}`:       "credentials.region",
		`{"api_key":"k-hidden","pin":4712}`:              "credentials.pin",
		`"k-hidden"`:                                     "credentials",
		`null`:                                           "credentials",
		`{"api_key":"k-hidden", "api_key":"k-hidden-2"}`: "credentials.api_key",
	} {
		_, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{Merchant: id, Provider: "bank", Mode: "live", Credentials: []byte(credentials)})
		failure := w.refused(err, http.StatusBadRequest, field)
		if text := failure.Error() + w.logs.String(); strings.Contains(text, "hidden") || strings.Contains(text, "4712") {
			t.Errorf("%s: the value is repeated: %s", credentials, text)
		}
	}
	for field, spec := range map[string]adminapi.ConnectionSpec{
		"mode":  {Mode: "prod", Credentials: []byte(`{"api_key":"k-secret"}`)},
		"owner": {Mode: "live", Owner: "me", Credentials: []byte(`{"api_key":"k-secret"}`)},
	} {
		spec.Merchant, spec.Provider = id, "bank"
		_, err := adminapi.SetConnection.Call(t.Context(), w, spec)
		w.refused(err, http.StatusBadRequest, field)
	}
	wrong := adminapi.ConnectionSpec{Mode: "live", Credentials: []byte(`{"region":"jkt"}`)}
	wrong.Merchant, wrong.Provider = id, "bank"
	if _, err := adminapi.SetConnection.Call(t.Context(), w, wrong); !strings.Contains(err.Error(), "asks for: api_key; optional: pin, region.") {
		t.Errorf("what the provider asks for is not said: %v", err)
	}
	_, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{Merchant: id, Provider: "nobank", Mode: "live", Credentials: []byte(`{"api_key":"k-secret"}`)})
	w.refused(err, http.StatusNotFound, "")
	if n := len(w.account(id).Connections()); n != 0 {
		t.Errorf("there are %d connections", n)
	}
}

// Without credentials nothing is set, and the answer is what a provider asks for.
func TestWhatAProviderAsksForIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	for provider, want := range map[string]string{
		"bank": "bank asks for api_key; optional: pin, region.\n  credentials is required\n  credentials.api_key is required: as the portal shows it\n" +
			"  credentials.pin is optional\n  credentials.region is optional",
	} {
		_, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{Merchant: id, Provider: provider, Mode: "live"})
		if failure := w.refused(err, http.StatusBadRequest, "credentials"); !strings.HasSuffix(failure.Error(), want) {
			t.Errorf("said %v", failure)
		}
	}
	if n := len(w.account(id).Connections()); n != 0 {
		t.Errorf("there are %d connections", n)
	}
}

// TestWhereOperatorsConnectStays: a merchant who renews a key sends its calls nowhere else,
// whatever its document says of an address.
func TestWhereOperatorsConnectStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		plugins := newPlugins(t)
		m, err := manifest.Parse([]byte(strings.Replace(bank, `"region": {`, `"base_url": {"type": "string", "format": "uri"}, "reports": {"type": "object"}, "region": {`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		plugins.manifest, plugins.status.Ports = m, []uint16{443, 80}
		d.Plugins = plugins
	})
	id := w.merchant().MerchantID
	own := adminapi.NewClientOver(w.console.As(console.Identity{Name: "owner", Role: console.RoleAdmin, Of: tenants.MerchantID(id)}))
	stored := func() string {
		connection, ok := w.account(id).Connection(tenants.Live, "bank")
		if !ok {
			t.Fatal("there is no connection")
		}
		opened, err := w.vault.OpenCredentials(connection)
		if err != nil {
			t.Fatal(err)
		}
		return string(opened)
	}
	for _, step := range []struct{ by, given, want string }{
		{"owner", `{"api_key":"k-first","base_url":"https://elsewhere.example.com"}`, `{"api_key":"k-first"}`},
		{"operator", `{"api_key":"k-first","region":"jkt","base_url":"https://proxy.example.com","reports":{"directory":"/srv"}}`, ""},
		{"owner", `{"api_key":"k-second"}`, `{"api_key":"k-second","base_url":"https://proxy.example.com","reports":{"directory":"/srv"}}`},
		{"owner", `{"api_key":"k-second","base_url":"https://elsewhere.example.com","reports":{}}`, `{"api_key":"k-second","base_url":"https://proxy.example.com","reports":{"directory":"/srv"}}`},
		{"operator", `{"api_key":"k-third"}`, ""},
		{"operator", `{"api_key":"k-played","base_url":"http://bank.sandbox.invalid"}`, ""}, // a simulator's, where no key of the provider's goes
		{"owner", `{"api_key":"k-fourth"}`, `{"api_key":"k-fourth"}`},
	} {
		by := w.Client
		if step.by == "owner" {
			by = own
		}
		if _, err := adminapi.SetConnection.Call(t.Context(), by, adminapi.ConnectionSpec{Merchant: id, Provider: "bank", Mode: "live", Credentials: []byte(step.given)}); err != nil {
			t.Fatalf("%s: %v", step.given, err)
		}
		if want := cmp.Or(step.want, step.given); !sameJSON(t, stored(), want) {
			t.Errorf("after %s of %s: %s, want %s", step.given, step.by, stored(), want)
		}
	}
	for _, text := range []string{`[]`, `null`, `"k-first"`} {
		_, err := adminapi.SetConnection.Call(t.Context(), own, adminapi.ConnectionSpec{Merchant: id, Provider: "bank", Mode: "live", Credentials: []byte(text)})
		w.refused(err, http.StatusBadRequest, "credentials")
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var one, other any
	if err := errors.Join(json.Unmarshal([]byte(a), &one), json.Unmarshal([]byte(b), &other)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(one, other)
}
