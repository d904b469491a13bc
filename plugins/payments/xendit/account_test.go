package xendit

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func TestDefaultBaseURL(t *testing.T) {
	t.Parallel()
	acc, err := openAccount(sdk.Connection{Credentials: json.RawMessage(`{"secret_key":"k","callback_token":"t"}`)})
	if err != nil || acc.client.base != "https://api.xendit.co" {
		t.Errorf("got %+v, %v", acc, err)
	}
}

// A connection that can't be used is our own account's fault; its content is
// in no text.
func TestUnusableConnections(t *testing.T) {
	t.Parallel()
	for name, credentials := range map[string]string{
		"no JSON":          `hush-hush`,
		"of another shape": `{"secret_key":["hush-hush"]}`,
		"no key":           `{"callback_token":"hush-hush"}`,
		"no token":         `{"secret_key":"hush-hush"}`,
		"no encryption":    `{"secret_key":"hush-hush","callback_token":"t","base_url":"http://hush-hush.example"}`,
		"password in URL":  `{"secret_key":"k","callback_token":"t","base_url":"https://a:hush-hush@example.com/%zz"}`,
	} {
		c := sdk.Connection{MerchantID: "m1", Mode: "test", Version: 1, Credentials: json.RawMessage(credentials)}
		a := newAdapter()
		created := a.create(t.Context(), createCall(c, linkBody))
		canceled := a.cancel(t.Context(), cancelCall(c, invoiceID))
		found := a.lookup(t.Context(), lookupOf(c, linkBody, ""))
		ack := a.notify(t.Context(), sdk.Notification{Connection: c})
		if created.Outcome != sdk.NotSent || created.Blame != sdk.BlameAccount ||
			canceled.Outcome != sdk.NotSent || canceled.Blame != sdk.BlameAccount ||
			found.Status != sdk.StatusUnknown || found.Blame != sdk.BlameAccount ||
			ack.Status != 503 || len(ack.Updates) != 0 {
			t.Errorf("%s: %+v, %+v, %+v, %+v", name, created, canceled, found, ack)
		}
		if text := created.Detail + canceled.Detail + found.Detail + ack.Detail; strings.Contains(text, "hush") {
			t.Errorf("%s: a credential is in %s", name, text)
		}
	}
}

// Two merchants, two modes, and a changed key, all at once on one adapter: each
// call goes out under its own key.
func TestCredentialsNeverMix(t *testing.T) {
	t.Parallel()
	up := newStub(t, nil)
	a := newAdapter()
	var group sync.WaitGroup
	want := map[string]int{}
	for _, merchant := range []string{"m1", "m2"} {
		for _, mode := range []string{"live", "test"} {
			for version := range int64(3) {
				key := merchant + mode + string(rune('0'+version))
				c := connect(t, up.url, "secret_key", key)
				c.MerchantID, c.Mode, c.Version = merchant, mode, version
				for range 5 {
					want[key]++
					group.Go(func() {
						a.lookup(t.Context(), lookupOf(c, linkBody, key))
					})
				}
			}
		}
	}
	group.Wait()
	got := map[string]int{}
	for _, request := range up.seen {
		key, _, _ := basicAuth(request)
		got[key]++
		if request.uri != "/v2/invoices/"+key {
			t.Errorf("%s was asked under the key %s", request.uri, key)
		}
	}
	for key, n := range want {
		if got[key] != n {
			t.Errorf("%s: %d requests, want %d", key, got[key], n)
		}
	}
}
