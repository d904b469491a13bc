package console_test

import (
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestAMerchantsLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	made, err := adminapi.CreateMerchant.Call(ctx, w, adminapi.NewMerchant{Name: " Toko Maju ", Tier: "growth", Labels: map[string]string{"city": "Malang"}})
	if err != nil {
		t.Fatal(err)
	}
	if made.Name != "Toko Maju" || made.Tier != "growth" || made.Status != "active" {
		t.Errorf("made %+v", made)
	}
	if !w.works(made.LiveKey, "192.0.2.1") || !w.works(made.TestKey, "192.0.2.1") || made.LiveKey == made.TestKey {
		t.Error("the first keys do not work")
	}
	for mode, want := range map[tenants.Mode]string{tenants.Live: made.CallbackSecret, tenants.Test: made.TestCallbackSecret} {
		sealed, _ := w.account(made.MerchantID).CallbackSecret(mode)
		if opened, err := w.vault.OpenCallbackSecret(sealed); err != nil || opened.Reveal() != want {
			t.Errorf("%s: the callback secret is not the one shown: %v", mode, err)
		}
	}

	suspended, err := adminapi.SuspendMerchant.Call(ctx, w, adminapi.StatusChange{Merchant: made.MerchantID, Reason: "unpaid"})
	if err != nil || suspended.Status != "suspended" || w.account(made.MerchantID).Merchant().Status != tenants.Suspended {
		t.Errorf("suspend: %+v, %v", suspended, err)
	}
	resumed, err := adminapi.ResumeMerchant.Call(ctx, w, adminapi.StatusChange{Merchant: made.MerchantID, Reason: ""})
	if err != nil || resumed.Status != "active" || w.account(made.MerchantID).Merchant().Status != tenants.Active {
		t.Errorf("resume: %+v, %v", resumed, err)
	}
	moved, err := adminapi.SetTier.Call(ctx, adminapi.NewClient(w.url, otherToken), adminapi.TierChange{Merchant: made.MerchantID, Tier: "scale", Reason: "grown"})
	if err != nil || moved.Tier != "scale" || w.account(made.MerchantID).Merchant().Tier != "scale" {
		t.Errorf("tier: %+v, %v", moved, err)
	}

	want := []string{"ayu merchant.create", "ayu merchant.suspend", "ayu merchant.resume", "budi merchant.tier"}
	if got := w.actions(made.MerchantID); !slices.Equal(got, want) {
		t.Errorf("audit %q, want %q", got, want)
	}
	entries, err := adminapi.ListAudit.Call(ctx, w, adminapi.AuditFilter{Merchant: made.MerchantID})
	if err != nil || entries[0].Detail != "from growth to scale: grown" || entries[2].Detail != "unpaid" || entries[0].At.IsZero() {
		t.Errorf("audit %+v, %v", entries, err)
	}
}

func TestLabelsAreChangedOneByOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.merchant()
	set := func(labels map[string]*string) (map[string]string, error) {
		m, err := adminapi.SetLabels.Call(t.Context(), w, adminapi.LabelChange{Merchant: made.MerchantID, Labels: labels, Reason: "asked for"})
		return m.Labels, err
	}
	before := w.account(made.MerchantID).Merchant().Labels
	got, err := set(map[string]*string{"colour": new("#0a5"), "shelf": new("7")})
	if err != nil || got["colour"] != "#0a5" || got["shelf"] != "7" || len(got) != len(before)+2 {
		t.Errorf("given: %v, %v", got, err)
	}
	if got, err = set(map[string]*string{"colour": nil, "never": nil, "language": new("en")}); err != nil || got["colour"] != "" || got["language"] != "en" || got["shelf"] != "7" {
		t.Errorf("taken away: %v, %v", got, err)
	}
	for name, labels := range map[string]map[string]*string{
		"nothing": nil, "no colour": {"colour": new("green")}, "no zone": {"time_zone": new("Java/Jakarta")}, "no language": {"language": new("fr")},
	} {
		if _, err := set(labels); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if kept := w.account(made.MerchantID).Merchant().Labels; kept["language"] != "en" || kept["colour"] != "" {
		t.Errorf("after what was refused: %v", kept)
	}
	entries, err := adminapi.ListAudit.Call(t.Context(), w, adminapi.AuditFilter{Merchant: made.MerchantID})
	if err != nil || entries[0].Action != "merchant.labels" || entries[0].Detail != `without colour, language="en", without never, asked for` {
		t.Errorf("the audit has %+v, %v", entries[0], err)
	}
}

// TestTheAuditSaysFromWhere: a client's address is that of the connection unless a trusted
// proxy names another.
func TestTheAuditSaysFromWhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	suspend := func(claimed string) store.Audit {
		t.Helper()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/admin/merchants/"+id+"/suspend", strings.NewReader("{}"))
		request.RemoteAddr = "127.0.0.1:4711"
		request.Header.Set("Authorization", "Bearer "+token)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("X-Forwarded-For", claimed)
		answer := httptest.NewRecorder()
		w.console.ServeHTTP(answer, request)
		entries, err := adminapi.ListAudit.Call(t.Context(), w, adminapi.AuditFilter{Merchant: id})
		if err != nil || answer.Code != http.StatusOK {
			t.Fatal(answer.Code, answer.Body, err)
		}
		return entries[0]
	}
	if e := suspend("198.51.100.9"); e.From != "127.0.0.1" || e.Operator != "ayu" || e.Action != "merchant.suspend" || e.Times != 1 {
		t.Errorf("the audit has %+v", e)
	}
	if err := w.console.Admit(console.Access{
		Operators: []console.Operator{{Name: "ayu", TokenHash: sha256.Sum256([]byte(token)), Role: console.RoleAdmin}},
		Trusted:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}); err != nil {
		t.Fatal(err)
	}
	if e := suspend("192.0.2.1, 198.51.100.9"); e.From != "198.51.100.9" {
		t.Errorf("behind a trusted proxy: %+v", e)
	}
}

func TestAMerchantIsShownWithoutSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.merchant()
	if _, err := adminapi.SetConnection.Call(t.Context(), w, adminapi.ConnectionSpec{Merchant: made.MerchantID, Provider: "bank", Mode: "test", Credentials: []byte(`{"api_key":"k-secret"}`)}); err != nil {
		t.Fatal(err)
	}
	shown, err := adminapi.ShowMerchant.Call(t.Context(), w, adminapi.MerchantID{Merchant: made.MerchantID})
	if err != nil {
		t.Fatal(err)
	}
	if len(shown.Keys) != 2 || !shown.Keys[0].Usable || len(shown.Keys[0].Scopes) != 5 || shown.Version != w.account(made.MerchantID).Version() {
		t.Errorf("shown %+v", shown)
	}
	if len(shown.Connections) != 1 || shown.Connections[0].Provider != "bank" || shown.Connections[0].Version != 1 {
		t.Errorf("shown %+v", shown.Connections)
	}
	text := mustJSON(t, shown)
	for _, secret := range []string{made.LiveKey, made.TestKey, made.CallbackSecret, made.TestCallbackSecret, "k-secret"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is shown in %s", secret, text)
		}
	}
}

func TestMerchantsAreListedInPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	want := []string{w.merchant().MerchantID, w.merchant().MerchantID, w.merchant().MerchantID}
	slices.Sort(want)
	var got []string
	pages := 0
	for after := ""; ; pages++ {
		page, err := adminapi.ListMerchants.Call(t.Context(), w, adminapi.MerchantFilter{After: after, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page.Merchants {
			got = append(got, m.MerchantID)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if !slices.Equal(got, want) || pages != 1 {
		t.Errorf("got %q on %d more pages, want %q on one", got, pages, want)
	}
	for _, limit := range []string{"0", "1001", "x"} {
		if status, _, answer := w.send(http.MethodGet, "/admin/merchants?limit="+limit, "Bearer "+token, ""); status != http.StatusBadRequest || !strings.Contains(answer, `"field":"limit"`) {
			t.Errorf("a page of %s: %d %s", limit, status, answer)
		}
	}
}

func TestWhatAMerchantMayNotBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	many := map[string]string{}
	for i := range 51 {
		many[strings.Repeat("x", i+1)] = ""
	}
	for field, wanted := range map[string][]adminapi.NewMerchant{
		"name":   {{Tier: "starter"}, {Name: "  ", Tier: "starter"}, {Name: strings.Repeat("é", 201), Tier: "starter"}, {Name: "a\nb", Tier: "starter"}},
		"tier":   {{Name: "Toko"}, {Name: "Toko", Tier: "Starter"}, {Name: "Toko", Tier: "sclae"}},
		"labels": {{Name: "Toko", Tier: "starter", Labels: many}, {Name: "Toko", Tier: "starter", Labels: map[string]string{"a": "\x01"}}},
	} {
		for _, m := range wanted {
			_, err := adminapi.CreateMerchant.Call(t.Context(), w, m)
			w.refused(err, http.StatusBadRequest, field)
		}
	}
	if page, err := adminapi.ListMerchants.Call(t.Context(), w, adminapi.MerchantFilter{After: "", Limit: 10}); err != nil || len(page.Merchants) != 0 {
		t.Errorf("there are merchants: %+v, %v", page, err)
	}
}

func TestATierThatThePolicyDoesNotKnowLocksNobodyOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.merchant()
	_, err := adminapi.SetTier.Call(t.Context(), w, adminapi.TierChange{Merchant: made.MerchantID, Tier: "goldd"})
	w.refused(err, http.StatusBadRequest, "tier")
	if tier := w.account(made.MerchantID).Merchant().Tier; tier != "starter" {
		t.Errorf("the tier is %s", tier)
	}
	if got := w.actions(made.MerchantID); len(got) != 1 {
		t.Errorf("audit %q", got)
	}
}

func TestMerchantsThatDoNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, nobody := t.Context(), "mer_00000000-0000-4000-8000-000000000000"
	for name, try := range map[string]func() error{
		"show": func() error {
			_, err := adminapi.ShowMerchant.Call(ctx, w, adminapi.MerchantID{Merchant: nobody})
			return err
		},
		"suspend": func() error {
			_, err := adminapi.SuspendMerchant.Call(ctx, w, adminapi.StatusChange{Merchant: nobody, Reason: ""})
			return err
		},
		"resume": func() error {
			_, err := adminapi.ResumeMerchant.Call(ctx, w, adminapi.StatusChange{Merchant: nobody, Reason: ""})
			return err
		},
		"tier": func() error {
			_, err := adminapi.SetTier.Call(ctx, w, adminapi.TierChange{Merchant: nobody, Tier: "scale"})
			return err
		},
		"audit": func() error {
			_, err := adminapi.ListAudit.Call(ctx, w, adminapi.AuditFilter{Merchant: nobody})
			return err
		},
		"key": func() error {
			_, err := adminapi.CreateKey.Call(ctx, w, adminapi.NewKey{Merchant: nobody, Mode: "live"})
			return err
		},
		"connection": func() error {
			_, err := adminapi.SetConnection.Call(ctx, w, adminapi.ConnectionSpec{Merchant: nobody, Provider: "bank", Mode: "test", Credentials: []byte(`{"api_key":"k-secret"}`)})
			return err
		},
	} {
		if failure := w.refused(try(), http.StatusNotFound, ""); failure.Code != "NOT_FOUND" {
			t.Errorf("%s: %v", name, failure)
		}
	}
	_, err := adminapi.SuspendMerchant.Call(ctx, w, adminapi.StatusChange{Merchant: w.merchant().MerchantID, Reason: strings.Repeat("x", 501)})
	w.refused(err, http.StatusBadRequest, "reason")
}
