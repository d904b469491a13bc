package console_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// fakeVerifier answers what a test says, and remembers what it was asked.
type fakeVerifier struct {
	mu     sync.Mutex
	answer sdk.Result
	asked  []sdk.Connection
}

func (v *fakeVerifier) Verify(_ context.Context, provider string, c sdk.Connection, timeout time.Duration) sdk.Result {
	v.mu.Lock()
	defer v.mu.Unlock()
	if provider != "bank" || timeout <= 0 {
		return sdk.DontKnow(sdk.BlameNone, "asked of "+provider)
	}
	v.asked = append(v.asked, c)
	return v.answer
}

// verifyingWorld is one whose bank can be asked about credentials.
func verifyingWorld(t *testing.T) (*world, *fakeVerifier) {
	t.Helper()
	v := &fakeVerifier{}
	m, err := manifest.Parse([]byte(strings.Replace(bank, `"notifications": true`, `"notifications": true, "verifies": true`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		plugins := newPlugins(t)
		plugins.manifest = m
		plugins.fakeVerifier = v
		d.Plugins = plugins
	}), v
}

func TestACredentialIsVerifiedBeforeItIsStored(t *testing.T) {
	t.Parallel()
	w, v := verifyingWorld(t)
	id := w.merchant().MerchantID
	v.answer = sdk.Usable("Toko\x1b[2J Contoh")
	set := w.connect(id, "", `{"region":"jkt","api_key":"k-secret"}`)
	if set.Verified != "yes" || set.Account != "Toko [2J Contoh" || set.Version != 1 {
		t.Errorf("set %+v", set)
	}
	want := sdk.Connection{MerchantID: id, Mode: "live", Credentials: []byte(`{"api_key":"k-secret","region":"jkt"}`)}
	if len(v.asked) != 1 || v.asked[0].MerchantID != want.MerchantID || v.asked[0].Mode != want.Mode ||
		v.asked[0].Version != 0 || string(v.asked[0].Credentials) != string(want.Credentials) {
		t.Errorf("asked %+v, want %+v", v.asked, want)
	}
	// What is stored already is not stored again, so nobody is asked.
	v.answer = sdk.DidNotSend(sdk.BlameUpstream, "down")
	if again := w.connect(id, "", `{"region":"jkt","api_key":"k-secret"}`); again.Version != 1 || len(v.asked) != 1 {
		t.Errorf("the same again: %+v, asked %d times", again, len(v.asked))
	}
	// A provider that can't be asked is not asked.
	if _, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{Merchant: "platform", Provider: "pulsa", Mode: "live", Credentials: []byte(`{"username":"u"}`)}); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotVerifiedIsNotStored(t *testing.T) {
	t.Parallel()
	w, v := verifyingWorld(t)
	id := w.merchant().MerchantID
	refused := sdk.Refuse(sdk.RefuseOther, "The key is\nunknown.")
	refused.Detail = "401"
	for name, c := range map[string]struct {
		answer     sdk.Result
		unverified bool
		status     int
		field      string
		says       string
	}{
		"refused":                 {refused, false, http.StatusUnprocessableEntity, "credentials", "bank refuses these credentials, and nothing was stored: The key is unknown."},
		"refused, whatever":       {refused, true, http.StatusUnprocessableEntity, "credentials", "The key is unknown."},
		"our account's fault":     {sdk.DidNotSend(sdk.BlameAccount, "401 INVALID"), true, http.StatusUnprocessableEntity, "credentials", "401 INVALID"},
		"asked too often":         {sdk.DidNotSend(sdk.BlameLimit, "429"), false, http.StatusInternalServerError, "", "could not be asked"},
		"of the other mode":       {sdk.Result{Outcome: sdk.Done, Mode: "test"}, true, http.StatusUnprocessableEntity, "credentials", "These are bank's credentials for test, and this connection is for live: nothing was stored."},
		"and nobody to ask":       {sdk.Result{Mode: "test"}, true, http.StatusUnprocessableEntity, "credentials", "for test"},
		"wordless":                {sdk.Result{Outcome: sdk.Refused}, false, http.StatusUnprocessableEntity, "credentials", "it does not say why"},
		"down":                    {sdk.DidNotSend(sdk.BlameUpstream, "connection refused"), false, http.StatusInternalServerError, "", "could not be asked"},
		"unclear":                 {sdk.DontKnow(sdk.BlameUpstream, "503"), false, http.StatusInternalServerError, "", "--unverified"},
		"an answer that is none":  {sdk.Accepted("", time.Time{}, nil), false, http.StatusInternalServerError, "", "could not be asked"},
		"a plugin without answer": {sdk.Result{}, false, http.StatusInternalServerError, "", "nothing was stored"},
	} {
		v.answer = c.answer
		_, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{
			Merchant: id, Provider: "bank",
			Mode: "live", Unverified: c.unverified, Credentials: []byte(`{"api_key":"k-hidden"}`),
		})
		if failure := w.refused(err, c.status, c.field); !strings.Contains(failure.Message, c.says) {
			t.Errorf("%s: %q, want %q", name, failure.Message, c.says)
		}
	}
	// Merchants' people have no command line.
	own := adminapi.NewClientOver(w.console.As(console.Identity{Name: "owner", Role: console.RoleAdmin, Of: tenants.MerchantID(id)}))
	v.answer = sdk.DontKnow(sdk.BlameUpstream, "503")
	_, err := adminapi.SetConnection.Call(t.Context(), own, adminapi.ConnectionSpec{Merchant: id, Provider: "bank", Mode: "live", Credentials: []byte(`{"api_key":"k-hidden"}`)})
	if failure := w.refused(err, http.StatusInternalServerError, ""); strings.Contains(failure.Message, "--") || !strings.Contains(failure.Message, "operators can") {
		t.Errorf("the owner is told %q", failure.Message)
	}
	if n := len(w.account(id).Connections()); n != 0 {
		t.Errorf("there are %d connections", n)
	}
	if got := w.actions(id); !slices.Equal(got, []string{"ayu merchant.create"}) {
		t.Errorf("audit %q", got)
	}
	if strings.Contains(w.logs.String(), "hidden") {
		t.Errorf("the log tells the credentials:\n%s", w.logs)
	}
}

func TestUnverifiedIsOnTheRecord(t *testing.T) {
	t.Parallel()
	w, v := verifyingWorld(t)
	id := w.merchant().MerchantID
	v.answer = sdk.DidNotSend(sdk.BlameUpstream, "connection refused")
	spec := adminapi.ConnectionSpec{Mode: "live", Unverified: true, Credentials: []byte(`{"api_key":"k-secret"}`)}
	spec.Merchant, spec.Provider = id, "bank"
	set, err := adminapi.SetConnection.Call(t.Context(), w, spec)
	if err != nil || set.Verified != "unverified" || set.Version != 1 {
		t.Fatalf("set %+v, %v", set, err)
	}
	if c, ok := w.account(id).Connection(tenants.Live, "bank"); !ok || c.Version != 1 {
		t.Errorf("stored %+v", c)
	}
	audit, err := adminapi.ListAudit.Call(t.Context(), w, adminapi.AuditFilter{Merchant: id})
	if err != nil || !strings.HasSuffix(audit[0].Detail, ", unverified") {
		t.Errorf("audit %+v, %v", audit, err)
	}
	// Where the provider does answer, what it says counts.
	v.answer = sdk.Usable("")
	spec.Credentials = []byte(`{"api_key":"k-other"}`)
	if set, err = adminapi.SetConnection.Call(t.Context(), w, spec); err != nil || set.Verified != "yes" {
		t.Errorf("set %+v, %v", set, err)
	}
	if audit, err = adminapi.ListAudit.Call(t.Context(), w, adminapi.AuditFilter{Merchant: id}); err != nil || strings.Contains(audit[0].Detail, "unverified") {
		t.Errorf("audit %+v, %v", audit, err)
	}
}

// TestAClosedPortIsRefused: a connection whose address the plugin may not connect to
// is refused before anybody is asked.
func TestAClosedPortIsRefused(t *testing.T) {
	t.Parallel()
	v := &fakeVerifier{answer: sdk.Usable("")}
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		plugins := newPlugins(t)
		m, err := manifest.Parse([]byte(strings.Replace(strings.Replace(bank, `"notifications": true`, `"notifications": true, "verifies": true`, 1),
			`"api_key": {`, `"base_url": {"type": "string"}, "reports": {"type": "object"}, "api_key": {`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		plugins.manifest, plugins.fakeVerifier, plugins.status.Ports = m, v, []uint16{443, 8443}
		d.Plugins = plugins
	})
	id := w.merchant().MerchantID
	for credentials, field := range map[string]string{
		`{"api_key":"k-secret","base_url":"https://api.example.com:8444"}`:              "credentials.base_url",
		`{"api_key":"k-secret","base_url":"http://api.example.com"}`:                    "credentials.base_url",
		`{"api_key":"k-secret","reports":{"url":"https://reports.example.com:21/all"}}`: "credentials.reports.url",
	} {
		_, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{Merchant: id, Provider: "bank", Mode: "live", Credentials: []byte(credentials)})
		if failure := w.refused(err, http.StatusBadRequest, field); !strings.Contains(fmt.Sprintf("%+v", failure), "gerbang plugin approve --port") {
			t.Errorf("where ports are opened is not told: %+v", failure)
		}
	}
	if len(v.asked) != 0 {
		t.Errorf("the provider was asked %d times", len(v.asked))
	}
	for _, credentials := range []string{
		`{"api_key":"k-secret","base_url":"https://api.example.com"}`, `{"api_key":"k-secret","base_url":"https://api.example.com:8443/v1","reports":{"directory":"/srv"}}`,
	} {
		if _, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{Merchant: id, Provider: "bank", Mode: "live", Credentials: []byte(credentials)}); err != nil {
			t.Errorf("%s: %v", credentials, err)
		}
	}
}
