package console_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestThePlatformsConnectionIsItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, spec := t.Context(), adminapi.ConnectionSpec{Mode: "live", Credentials: []byte(`{"username":"u"}`)}
	spec.Merchant, spec.Provider = "platform", "pulsa"
	set, err := adminapi.SetConnection.Call(ctx, w, spec)
	if err != nil || set.Owner != "platform" || set.Version != 1 {
		t.Fatalf("set %+v, %v", set, err)
	}
	token := tenants.NotifyToken(strings.TrimPrefix(set.NotifyPath, "/notify/pulsa/"))
	account, found, err := w.directory.ByNotifyToken(ctx, time.Now(), "pulsa", token)
	if err != nil || account.ID() != tenants.Platform || found.Owner != tenants.OwnerPlatform {
		t.Errorf("the route leads to %+v, %v", found, err)
	}
	spec.Owner = "platform"
	if again, err := adminapi.SetConnection.Call(ctx, w, spec); err != nil || mustJSON(t, again) != mustJSON(t, set) {
		t.Errorf("with the owner said: %+v, %v", again, err)
	}
	id := w.merchant().MerchantID
	spec.Owner = ""
	spec.Merchant, spec.Provider = id, "pulsa"
	if own, err := adminapi.SetConnection.Call(ctx, w, spec); err != nil || own.Owner != "merchant" {
		t.Errorf("a merchant's own: %+v, %v", own, err)
	}
	shown, err := adminapi.ShowMerchant.Call(ctx, w, adminapi.MerchantID{Merchant: "platform"})
	if err != nil || len(shown.Connections) != 1 || shown.Connections[0].Owner != "platform" || len(shown.Keys)+len(shown.Callbacks) > 0 {
		t.Errorf("shown %+v, %v", shown, err)
	}
	if got := w.actions("platform"); !slices.Equal(got, []string{"ayu connection.set"}) {
		t.Errorf("audit %q", got)
	}
}

func TestWhoseAConnectionCanNotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	for name, c := range map[string]struct{ holder, provider, owner, field, says string }{
		"platform's, of a merchant":        {id, "pulsa", "platform", "owner", "gerbang connection set platform pulsa"},
		"platform's, of a merchant's bank": {id, "bank", "platform", "owner", "must be merchant"},
		"merchant's, of platform":          {"platform", "pulsa", "merchant", "owner", "must be platform"},
		"platform's, where each has one":   {"platform", "bank", "", "", "Each merchant has an account of its own at bank"},
		"said to be so":                    {"platform", "bank", "platform", "", "Each merchant has an account of its own at bank"},
		"nobody's":                         {"platform", "pulsa", "me", "owner", "must be merchant or platform"},
	} {
		_, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{
			Merchant: c.holder, Provider: c.provider,
			Mode: "live", Owner: c.owner, Credentials: []byte(`{"api_key":"k-secret","username":"u"}`),
		})
		if failure := w.refused(err, http.StatusBadRequest, c.field); !strings.Contains(failure.Message, c.says) {
			t.Errorf("%s: told %q", name, failure.Message)
		}
	}
	for _, holder := range []string{id, "platform"} {
		if shown, err := adminapi.ShowMerchant.Call(t.Context(), w, adminapi.MerchantID{Merchant: holder}); err != nil || len(shown.Connections) != 0 {
			t.Errorf("%s: %+v, %v", holder, shown.Connections, err)
		}
	}
}

func TestPlatformIsNoMerchant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, request := range []string{
		"POST /suspend", "POST /resume", "POST /tier", "POST /keys", "POST /keys/k1/rotate", "POST /keys/k1/revoke", "GET /callbacks",
		"GET /callbacks/e1", "POST /callbacks/resend", "POST /callbacks/test", "POST /callbacks/verify", "PUT /callbacks/url", "POST /callbacks/secret",
		"POST /credit", "POST /debit", "GET /account-statement",
	} {
		method, path, _ := strings.Cut(request, " ")
		status, header, body := w.send(method, "/admin/merchants/platform"+path, "Bearer "+token, "{}")
		if status != http.StatusBadRequest || !strings.Contains(body, "platform is no merchant") || !strings.Contains(body, header.Get("X-Request-Id")) {
			t.Errorf("%s: %d %s", request, status, body)
		}
	}
	if got := w.actions("platform"); len(got) != 0 {
		t.Errorf("audit %q", got)
	}
	id := w.merchant().MerchantID
	page, err := adminapi.ListMerchants.Call(t.Context(), w, adminapi.MerchantFilter{After: "", Limit: 10})
	if err != nil || len(page.Merchants) != 1 || page.Merchants[0].MerchantID != id {
		t.Errorf("listed %+v, %v", page, err)
	}
}
