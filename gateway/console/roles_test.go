package console_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// mayChange is what each role may do beside reading, said without the table that is tested.
// What is missing here is the admin's alone.
var mayChange = map[console.Role][]string{
	console.RoleRead: nil,
	console.RoleSupport: {
		"POST /admin/merchants/{merchant}/callbacks/resend", "POST /admin/merchants/{merchant}/callbacks/test", "POST /admin/merchants/{merchant}/callbacks/verify", "POST /admin/movements/{movement}/play",
		"POST /admin/pauses", "POST /admin/pauses/end", "POST /admin/merchants/{merchant}/keys/{key}/revoke", "POST /admin/exceptions/resolve",
	},
	console.RoleFinance: {
		"POST /admin/merchants/{merchant}/credit", "POST /admin/merchants/{merchant}/debit", "POST /admin/ledger/approve", "POST /admin/ledger/reject",
		"POST /admin/movements/{movement}/override", "POST /admin/movements/{movement}/assign", "POST /admin/movements/{movement}/refund", "POST /admin/exceptions/resolve",
	},
	console.RolePolicy: {
		"POST /admin/policies", "POST /admin/policies/{version}/activate", "POST /admin/policies/rollback", "POST /admin/policy/test", "POST /admin/policy/try", "POST /admin/policy/impact", "POST /admin/lists/{list}/entries", "POST /admin/lists/{list}/remove",
		"POST /admin/merchants/{merchant}/tier", "POST /admin/merchants/{merchant}/labels", "POST /admin/merchants/{merchant}/limits", "POST /admin/merchants/{merchant}/limits/{limit}/remove",
	},
}

func roleToken(role console.Role) string {
	return "a-token-of-the-role-" + string(role) + "-0123456789"
}

// ofEachRole gives the console an operator of each role, named after it.
func ofEachRole(config *console.Config, d *console.Dependencies) {
	config.Operators = nil
	for _, role := range console.Roles() {
		config.Operators = append(config.Operators, console.Operator{Name: "the " + string(role), TokenHash: sha256.Sum256([]byte(roleToken(role))), Role: role})
	}
	d.Recovery, _ = d.Merchants.(console.Recovery) // the store, too
}

// TestRolesOnEveryRoute walks all routes as all roles. Each body is broken, so that a
// request that a role may make is answered by its handler and changes nothing.
func TestRolesOnEveryRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ofEachRole)
	parts := regexp.MustCompile(`\{[a-z]+\}`)
	for _, route := range w.console.HandledRoutes() {
		method, pattern, _ := strings.Cut(route, " ")
		path, body := parts.ReplaceAllString(pattern, "x"), "{"
		if method == http.MethodGet {
			body = ""
		}
		for _, role := range console.Roles() {
			want := role == console.RoleAdmin || method == http.MethodGet || strings.HasSuffix(route, "/find") || slices.Contains(mayChange[role], route)
			status, _, answer := w.send(method, path, "Bearer "+roleToken(role), body)
			refused := status == http.StatusForbidden && strings.Contains(answer, `"SCOPE_MISSING"`)
			if refused == want || status == http.StatusMethodNotAllowed {
				t.Errorf("%s as %s: %d %s, want it to be allowed: %t", route, role, status, answer, want)
			}
			if refused && (!strings.Contains(answer, "the "+string(role)+" has the role "+string(role)) || !strings.Contains(answer, "admin")) {
				t.Errorf("%s as %s does not say which role it takes: %s", route, role, answer)
			}
		}
	}
}

func TestEveryRouteHasItsEntry(t *testing.T) {
	t.Parallel()
	c := newWorld(t).console
	handled := c.HandledRoutes()
	if forgotten := c.UnpermittedRoutes(); len(forgotten) > 0 {
		t.Errorf("routes that say nothing of roles: %q", forgotten)
	}
	for role, routes := range mayChange {
		for _, route := range routes {
			if !slices.Contains(handled, route) {
				t.Errorf("%s: there is no route %s", role, route)
			}
		}
	}
	err := console.Needs(console.Identity{Name: "ayu", Role: console.RoleAdmin}, "")
	if err == nil || fault.From(err).Code != fault.ScopeMissing {
		t.Errorf("a route that takes no permission, as admin: %v", err)
	}
}

func TestPausesOfAllAreTheAdmins(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ofEachRole)
	support, admin := adminapi.NewClient(w.url, roleToken(console.RoleSupport)), adminapi.NewClient(w.url, roleToken(console.RoleAdmin))
	made, err := adminapi.CreateMerchant.Call(t.Context(), admin, adminapi.NewMerchant{Name: "Toko", Tier: "starter"})
	if err != nil {
		t.Fatal(err)
	}
	one := tenants.Pause{MerchantID: tenants.MerchantID(made.MerchantID), What: "transfers", Mode: "live"}
	if _, err := adminapi.SetPause.Call(t.Context(), support, one); err != nil {
		t.Errorf("a merchant's transfers as support: %v", err)
	}
	for _, all := range []tenants.Pause{{MerchantID: "platform", What: "transfers"}, {MerchantID: "platform", What: "provider", Provider: "bank"}} {
		_, err := adminapi.SetPause.Call(t.Context(), support, all)
		if failure := w.refused(err, http.StatusForbidden, ""); !strings.Contains(failure.Message, "takes the role admin") {
			t.Errorf("%s of all as support: %q", all.What, failure.Message)
		}
		if _, err := adminapi.SetPause.Call(t.Context(), admin, all); err != nil {
			t.Errorf("%s of all as admin: %v", all.What, err)
		}
		if _, err := adminapi.EndPause.Call(t.Context(), support, all); err == nil {
			t.Errorf("support ended the pause of all: %s", all.What)
		}
	}
}

func TestWithinTheProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ofEachRole)
	as := func(role console.Role) *adminapi.Client {
		return adminapi.NewClientOver(w.console.As(console.Identity{Name: "sari", Role: role}))
	}
	made, err := adminapi.CreateMerchant.Call(t.Context(), as(console.RoleAdmin), adminapi.NewMerchant{Name: "Toko", Tier: "starter"})
	if err != nil {
		t.Fatal(err)
	}
	audit, err := adminapi.ListAudit.Call(t.Context(), as(console.RoleRead), adminapi.AuditFilter{Merchant: made.MerchantID})
	if err != nil || len(audit) != 1 || audit[0].Operator != "sari" || audit[0].Action != "merchant.create" {
		t.Errorf("audit %+v, %v", audit, err)
	}
	_, err = adminapi.CreateMerchant.Call(t.Context(), as(console.RoleFinance), adminapi.NewMerchant{Name: "Toko", Tier: "starter"})
	w.refused(err, http.StatusForbidden, "")
	_, err = adminapi.CreateMerchant.Call(t.Context(), as(console.RoleAdmin), adminapi.NewMerchant{Tier: "starter"})
	w.refused(err, http.StatusBadRequest, "name")
	_, err = adminapi.ListMerchants.Call(t.Context(), as("owner"), adminapi.MerchantFilter{After: "", Limit: 10})
	w.refused(err, http.StatusForbidden, "")
	if _, err := adminapi.ListMerchants.Call(t.Context(), adminapi.NewClientOver(w.console.As(console.Identity{})), adminapi.MerchantFilter{After: "", Limit: 10}); err == nil {
		t.Error("nobody reads the merchants")
	}
	_, err = as(console.RolePolicy).Impact(t.Context(), adminapi.NewImpact{Since: time.Now().Add(-30 * 24 * time.Hour)}, nil)
	w.refused(err, http.StatusBadRequest, "since")
}

// panicking is a list of merchants that has a bug.
type panicking struct{ merchants }

func TestAPanicWithinTheProcessIsAnAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ofEachRole, func(_ *console.Config, d *console.Dependencies) { d.Merchants = panicking{} })
	client := adminapi.NewClientOver(w.console.As(console.Identity{Name: "sari", Role: console.RoleRead}))
	_, err := adminapi.ListMerchants.Call(t.Context(), client, adminapi.MerchantFilter{After: "", Limit: 10})
	w.refused(err, http.StatusInternalServerError, "")
	if !strings.Contains(w.logs.String(), "panicked") {
		t.Errorf("logged %s", w.logs.String())
	}
}

// TestAnAnswerWithinTheProcessIsLikeOneFromTheNetwork compares both byte by byte, without
// what each answer has of its own.
func TestAnAnswerWithinTheProcessIsLikeOneFromTheNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, ofEachRole)
	for _, request := range []string{"GET /admin/plugins", "GET /admin/nothing", "DELETE /admin/merchants", "POST /admin/policies", "GET /healthz"} {
		method, path, _ := strings.Cut(request, " ")
		status, header, body := w.send(method, path, "Bearer "+roleToken(console.RoleRead), "")
		asked := httptest.NewRequestWithContext(t.Context(), method, "http://console"+path, nil)
		response, err := w.console.As(console.Identity{Name: "the read", Role: console.RoleRead}).RoundTrip(asked)
		if err != nil {
			t.Fatal(err)
		}
		recorder := httptest.NewRecorder()
		if err := response.Write(recorder); err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		for _, name := range []string{"Content-Type", "Cache-Control", "Allow", "X-Svc-Version", "X-Content-Type-Options"} {
			if response.Header.Get(name) != header.Get(name) {
				t.Errorf("%s: %s is %q, from the network %q", request, name, response.Header.Get(name), header.Get(name))
			}
		}
		_, ours, _ := strings.Cut(recorder.Body.String(), "\r\n\r\n")
		if response.StatusCode != status || withoutID(t, ours) != withoutID(t, body) {
			t.Errorf("%s: %d %s, from the network %d %s", request, response.StatusCode, ours, status, body)
		}
	}
}

func withoutID(t *testing.T, body string) string {
	t.Helper()
	start := strings.Index(body, "{")
	var document map[string]any
	if err := json.Unmarshal([]byte(body[start:strings.LastIndex(body, "}")+1]), &document); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	delete(document, "request_id")
	return mustJSON(t, document)
}

func TestWhoGivesUpWithinTheProcessWaitsNoLonger(t *testing.T) {
	t.Parallel()
	waits := make(chan struct{})
	w := newWorld(t, ofEachRole, func(_ *console.Config, d *console.Dependencies) {
		now := d.Now
		d.Now = func() time.Time { <-waits; return now() }
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := adminapi.ListPlugins.Call(ctx, adminapi.NewClientOver(w.console.As(console.Identity{Name: "sari", Role: console.RoleRead})), adminapi.None{})
		ended <- err
	}()
	cancel()
	if err := <-ended; !errors.Is(err, ctx.Err()) {
		t.Errorf("got %v", err)
	}
	close(waits) // the handler goes on, and its answer goes nowhere
}
