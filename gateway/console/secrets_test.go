package console_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// signing is what callbacks of a merchant's live mode are signed with, as the
// courier sees it now: the current secret, the next, and whether the next makes
// the service's own signature.
func (w *world) signing(merchant string) (current, next string, switched bool) {
	w.Helper()
	sealed, ok := w.account(merchant).CallbackSecret(tenants.Live)
	if !ok {
		w.Fatal("there is no callback secret")
	}
	first, err := w.vault.OpenCallbackSecret(sealed)
	if err != nil {
		w.Fatal(err)
	}
	second, err := w.vault.OpenNextCallbackSecret(sealed)
	if err != nil {
		w.Fatal(err)
	}
	return first.Reveal(), second.Reveal(), sealed.NextSigns
}

// step takes a step of a rotation that must be taken.
func (w *world) step(merchant, action, rotation string) string {
	w.Helper()
	changed, err := adminapi.ChangeCallbackSecret.Call(w.Context(), w, adminapi.SecretChange{Merchant: merchant, Mode: "live", Action: action})
	if err != nil || changed.Mode != "live" || changed.Rotation != rotation || (changed.CallbackSecret != "") != (action == "rotate") {
		w.Fatalf("%s: %+v, %v", action, changed, err)
	}
	return changed.CallbackSecret
}

func (w *world) signs(merchant, when, current, next string, switched bool) {
	w.Helper()
	if c, n, s := w.signing(merchant); c != current || n != next || s != switched {
		w.Errorf("%s: current right %t, next right %t, switched %t", when, c == current, n == next, s)
	}
}

func TestACallbackSecretIsRotated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	merchant := w.merchant()
	id, old := merchant.MerchantID, merchant.CallbackSecret
	w.signs(id, "at first", old, "", false)
	next := w.step(id, "rotate", "prepared")
	if !strings.HasPrefix(next, "whsec_") || next == old {
		t.Error("the next secret is none of its own")
	}
	w.signs(id, "prepared", old, next, false)
	_, err := adminapi.ChangeCallbackSecret.Call(t.Context(), w, adminapi.SecretChange{Merchant: id, Mode: "live", Action: "rotate"})
	w.refused(err, http.StatusBadRequest, "action")
	w.signs(id, "after a second rotation that is refused", old, next, false)
	w.step(id, "switch", "switched")
	w.signs(id, "switched", old, next, true)
	w.step(id, "switch", "switched")
	w.step(id, "finish", "none")
	w.signs(id, "finished", next, "", false)

	third := w.step(id, "rotate", "prepared")
	w.step(id, "finish", "none")
	w.signs(id, "finished without a switch", third, "", false)

	fourth := w.step(id, "rotate", "prepared")
	w.step(id, "switch", "switched")
	w.step(id, "cancel", "none")
	w.signs(id, "cancelled", third, "", false)
	for _, action := range []string{"switch", "finish", "cancel"} {
		_, err := adminapi.ChangeCallbackSecret.Call(t.Context(), w, adminapi.SecretChange{Merchant: id, Mode: "live", Action: action})
		w.refused(err, http.StatusBadRequest, "action")
	}
	w.signs(id, "after steps of no rotation", third, "", false)
	if sealed, _ := w.account(id).CallbackSecret(tenants.Test); sealed.Next != nil {
		t.Error("the other mode's is rotated, too")
	}

	want := []string{"rotate", "switch", "switch", "finish", "rotate", "finish", "rotate", "switch", "cancel"}
	for i := range want {
		want[i] = "ayu callback.secret." + want[i]
	}
	if got := w.actions(id); !slices.Equal(got[1:], want) {
		t.Errorf("audit %q", got)
	}
	shown, err := adminapi.ShowMerchant.Call(t.Context(), w, adminapi.MerchantID{Merchant: id})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := adminapi.ListAudit.Call(t.Context(), w, adminapi.AuditFilter{Merchant: id})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{old, next, third, fourth} {
		if strings.Contains(w.logs.String()+mustJSON(t, shown)+mustJSON(t, entries), secret) {
			t.Error("a secret is in the log, the audit or the merchant as shown")
		}
	}
}

func TestWhatNoStepOfARotationIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	for field, wanted := range map[string]adminapi.SecretChange{
		"action": {Mode: "live", Action: "forget"}, "mode": {Mode: "prod", Action: "rotate"},
	} {
		wanted.Merchant = id
		_, err := adminapi.ChangeCallbackSecret.Call(t.Context(), w, wanted)
		w.refused(err, http.StatusBadRequest, field)
	}
	_, err := adminapi.ChangeCallbackSecret.Call(t.Context(), w, adminapi.SecretChange{Merchant: "mer_00000000-0000-4000-8000-000000000000", Mode: "live", Action: "rotate"})
	w.refused(err, http.StatusNotFound, "")
	if got := w.actions(id); len(got) != 1 {
		t.Errorf("audit %q", got)
	}
}

// TestOperatorsAtOnceLoseNoSecret has several rotate at the same time, while
// others set the URL: one secret is told, and it is the one that signs.
func TestOperatorsAtOnceLoseNoSecret(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	var told []string
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			changed, err := adminapi.ChangeCallbackSecret.Call(t.Context(), w, adminapi.SecretChange{Merchant: id, Mode: "live", Action: "rotate"})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				told = append(told, changed.CallbackSecret)
			} else {
				w.refused(err, http.StatusBadRequest, "action")
			}
		})
		wait.Go(func() {
			if _, err := adminapi.SetCallbackURL.Call(t.Context(), w, adminapi.CallbackURL{Merchant: id, Mode: "live", URL: new(receiver)}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	_, next, _ := w.signing(id)
	if len(told) != 1 || told[0] != next {
		t.Errorf("%d secrets are told, the last that signs: %t", len(told), slices.Contains(told, next))
	}
	if got := w.account(id).CallbackURL(tenants.Live); got != receiver {
		t.Errorf("the URL is %s", got)
	}
}

// busy are accounts that somebody else changes each time.
type busy struct{ console.Secrets }

func (busy) SetCallbackSecret(context.Context, store.Audit, tenants.CallbackSecret, int64) error {
	return errors.Join(errors.New("set"), store.ErrConflict)
}

func TestAnAccountThatNeverRests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) { d.Secrets = busy{} })
	_, err := adminapi.ChangeCallbackSecret.Call(t.Context(), w, adminapi.SecretChange{Merchant: w.merchant().MerchantID, Mode: "live", Action: "rotate"})
	if failure := w.refused(err, http.StatusConflict, ""); failure.Code != "IN_PROGRESS" {
		t.Errorf("%v", failure)
	}
}

func TestTheDefaultURLIsSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	merchant := w.merchant()
	id := merchant.MerchantID
	next := w.step(id, "rotate", "prepared")
	set, err := adminapi.SetCallbackURL.Call(t.Context(), w, adminapi.CallbackURL{Merchant: id, Mode: "live", URL: new(receiver)})
	if err != nil || set.URL != "https://shop.example.com/cb/gerbang?token=…&v=…&…" || set.Rotation != "prepared" {
		t.Errorf("%+v, %v", set, err)
	}
	if a := w.account(id); a.CallbackURL(tenants.Live) != receiver || a.CallbackURL(tenants.Test) != "" {
		t.Errorf("the URLs are %q and %q", a.CallbackURL(tenants.Live), a.CallbackURL(tenants.Test))
	}
	w.signs(id, "with a URL", merchant.CallbackSecret, next, false)
	shown, err := adminapi.ShowMerchant.Call(t.Context(), w, adminapi.MerchantID{Merchant: id})
	if err != nil || len(shown.Callbacks) != 2 || shown.Callbacks[0] != set {
		t.Errorf("shown %+v, %v", shown.Callbacks, err)
	}
	for _, bad := range []string{"http://shop.example.com/cb", "https://10.0.0.1/", "https://u:p@shop.example.com/", "shop"} {
		_, err := adminapi.SetCallbackURL.Call(t.Context(), w, adminapi.CallbackURL{Merchant: id, Mode: "live", URL: new(bad)})
		w.refused(err, http.StatusBadRequest, "url")
	}
	status, _, body := w.send(http.MethodPut, "/admin/merchants/"+id+"/callbacks/url", "Bearer "+token, `{"mode":"live"}`)
	if status != http.StatusBadRequest || !strings.Contains(body, `"field":"url"`) {
		t.Errorf("without a URL: %d %s", status, body)
	}
	if set, err = adminapi.SetCallbackURL.Call(t.Context(), w, adminapi.CallbackURL{Merchant: id, Mode: "live", URL: new("")}); err != nil || set.URL != "" || w.account(id).CallbackURL(tenants.Live) != "" {
		t.Errorf("cleared: %+v, %v", set, err)
	}
	entries, err := adminapi.ListAudit.Call(t.Context(), w, adminapi.AuditFilter{Merchant: id})
	if err != nil || len(entries) != 4 || entries[0].Detail != "cleared, mode live" || strings.Contains(mustJSON(t, entries), "hidden") {
		t.Errorf("audit %+v, %v", entries, err)
	}
}

func TestDevelopmentAllowsLocalReceivers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *console.Config, _ *console.Dependencies) { c.AllowHTTPCallbacks = true })
	if _, err := adminapi.SetCallbackURL.Call(t.Context(), w, adminapi.CallbackURL{Merchant: w.merchant().MerchantID, Mode: "test", URL: new("http://127.0.0.1:9000/inbox")}); err != nil {
		t.Error(err)
	}
}
