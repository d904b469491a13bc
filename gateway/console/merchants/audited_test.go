package merchants

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// auditing is an admin API that notes each change, and knows one key.
type auditing struct {
	by      string
	of      tenants.MerchantID
	changes *[]string
}

func (a auditing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		*a.changes = append(*a.changes, a.by+" from "+string(tenants.OriginOf(r.Context()))+" at "+string(a.of))
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader([]byte(`{"data":{"keys":[{"key_id":"one","mode":"test"}]}}`)))}, nil
}

// TestEveryFormIsAudited: each form changes something by a route of the admin API, which audits it, or by what package
// signin commits with its entry: as the visitor, from where the visitor is, at the merchant.
func TestEveryFormIsAudited(t *testing.T) {
	t.Parallel()
	kept, in := people(t)
	shop := tenants.Merchant{ID: tenants.NewMerchantID(), Name: "A shop", Tier: "starter", Status: tenants.Active, CreatedAt: time.Now()}
	if err := kept.CreateMerchant(t.Context(), store.Audit{Operator: "test", Action: "merchant.create", At: time.Now()}, shop, nil, nil); err != nil {
		t.Fatal(err)
	}
	of := movement.Movement{
		Key: movement.Key{Owner: movement.Owner{MerchantID: string(shop.ID), Mode: "test"}, Kind: manifest.Payment, Reference: "r"}, ID: movement.ID(uuid.New()), State: movement.Pending,
	}
	var changes []string
	c, err := New(Config{URL: "http://127.0.0.1", Trusted: func() []netip.Prefix { return nil }}, Dependencies{
		Dependencies: page.Dependencies{SignIn: in, Sessions: kept.Sessions(), Now: time.Now, Log: slog.New(slog.DiscardHandler)},
		Records:      hostileRecords{of},
		Admin: func(by string, at tenants.MerchantID) *adminapi.Client {
			return adminapi.NewClientOver(auditing{by, at, &changes})
		},
		Manifests: func() []*manifest.Manifest {
			return []*manifest.Manifest{{Name: "bank", Owner: manifest.Owner(tenants.OwnerMerchant), Connection: []byte(`{"type": "object", "properties": {"token": {"type": "string"}}}`)}}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	owner, codes := comeIn(t, in, server.URL, shop.ID, tenants.RoleOwner, "owner@example.com")
	comeIn(t, in, server.URL, shop.ID, tenants.RoleViewer, "viewer@example.com")
	if got := fetch(t, owner, http.MethodPost, server.URL+"/confirm", url.Values{"code": {codes[0]}}); got.status != http.StatusSeeOther {
		t.Fatalf("no fresh code: %d", got.status)
	}
	members, err := in.Members(t.Context(), shop.ID)
	if err != nil {
		t.Fatal(err)
	}
	viewer := members[slices.IndexFunc(members, func(m tenants.Member) bool { return m.Email == "viewer@example.com" })]
	own := map[string]string{"/members": "member.invite", "/members/invitations/revoke": "member.uninvite", "/members/{person}/role": "member.role", "/members/{person}/remove": "member.remove"}
	form := url.Values{"email": {"new@example.com"}, "role": {"finance"}, "action": {"rotate"}, "url": {"https://shop.example/cb"}, "token": {"k"}, "overlap": {"1h"}, "amount": {"1000"}, "refund_id": {"R"}, "reason": {"why"}}
	for _, route := range c.routes() {
		method, path, _ := strings.Cut(route.pattern, " ")
		if method != http.MethodPost || path == "/movements/{movement}/play" { // which happens at a simulator, where any payer may do it
			continue
		}
		changes = nil
		before := auditOf(t, kept, shop.ID)
		target := strings.NewReplacer("{provider}", "bank", "{event}", uuid.NewString(), "{movement}", of.ID.String(), "{key}", "one", "{person}", viewer.PersonID.String()).Replace(path)
		if got := fetch(t, owner, http.MethodPost, server.URL+"/"+string(shop.ID)+"/test"+target, form); got.status >= http.StatusBadRequest {
			t.Errorf("%s: %d %s", route.pattern, got.status, got.body)
		}
		entries := auditOf(t, kept, shop.ID)
		for _, e := range entries[:len(entries)-len(before)] {
			if e.Action == own[path] {
				changes = append(changes, e.Operator+" from "+string(e.From)+" at "+string(shop.ID))
			}
		}
		if want := "owner@example.com from 127.0.0.1 at " + string(shop.ID); len(changes) != 1 || changes[0] != want {
			t.Errorf("%s: changed by %q, want once by %s", route.pattern, changes, want)
		}
	}
	joined := slices.DeleteFunc(auditOf(t, kept, shop.ID), func(e store.Audit) bool { return e.Action != "member.join" })
	if len(joined) != 2 || joined[0].From != "127.0.0.1" || joined[0].Operator != "viewer@example.com" {
		t.Errorf("who accepts an invitation is audited as %+v", joined)
	}
}

// audits answers the admin API's list of a merchant's audit.
type audits struct {
	*testing.T

	kept *store.Store
	of   tenants.MerchantID
}

func (a audits) RoundTrip(*http.Request) (*http.Response, error) {
	body, err := json.Marshal(map[string]any{"data": auditOf(a.T, a.kept, a.of)})
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(body))}, err
}

// TestNoPageHasAnOperatorsAddress: neither the audit nor the list of invitations.
func TestNoPageHasAnOperatorsAddress(t *testing.T) {
	t.Parallel()
	kept, in := people(t)
	shop := tenants.Merchant{ID: tenants.NewMerchantID(), Name: "A shop", Tier: "starter", Status: tenants.Active, CreatedAt: time.Now()}
	if err := kept.CreateMerchant(t.Context(), store.Audit{Operator: "ayu@operators.example", Action: "merchant.create", At: time.Now()}, shop, nil, nil); err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{URL: "http://127.0.0.1", Trusted: func() []netip.Prefix { return nil }}, Dependencies{
		Dependencies: page.Dependencies{SignIn: in, Sessions: kept.Sessions(), Now: time.Now, Log: slog.New(slog.DiscardHandler)},
		Admin: func(_ string, at tenants.MerchantID) *adminapi.Client {
			return adminapi.NewClientOver(audits{t, kept, at})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	owner, _ := comeIn(t, in, server.URL, shop.ID, tenants.RoleOwner, "owner@example.com") // whom "test" invites
	for by, email := range map[string]string{"ayu@operators.example": "one@example.com", "owner@example.com": "two@example.com"} {
		if _, _, err := in.Invite(t.Context(), by, shop.ID, tenants.RoleViewer, email, ""); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"/members": "two@example.com", "/audit": "member.join"} {
		got := fetch(t, owner, http.MethodGet, server.URL+"/"+string(shop.ID)+"/test"+path, nil)
		if got.status != http.StatusOK || !strings.Contains(got.body, want) || !strings.Contains(got.body, "owner@example.com") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
		if strings.Contains(got.body, "ayu@") || strings.Contains(got.body, "invited by test") {
			t.Errorf("%s names an operator: %s", path, got.body)
		}
	}
}

// auditOf is a merchant's audit, the newest entry first.
func auditOf(t *testing.T, kept *store.Store, id tenants.MerchantID) []store.Audit {
	t.Helper()
	entries, err := kept.AuditOf(t.Context(), store.AuditRange{MerchantID: id, Most: 100})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}
