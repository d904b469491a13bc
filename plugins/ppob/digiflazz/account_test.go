package digiflazz

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func TestDefaultBaseURL(t *testing.T) {
	t.Parallel()
	acc, err := openAccount(sdk.Connection{Credentials: json.RawMessage(`{"username":"u","api_key":"k","webhook_secret":"s"}`)})
	if err != nil || acc.client.base != "https://api.digiflazz.com/v1" || acc.testing {
		t.Errorf("got %+v, %v", acc, err)
	}
}

// A connection that can't be used is our own account's fault; its content is
// in no text.
func TestUnusableConnections(t *testing.T) {
	t.Parallel()
	for name, credentials := range map[string]string{
		"no JSON":           `hush-hush`,
		"of another shape":  `{"api_key":["hush-hush"]}`,
		"no key":            `{"username":"u","webhook_secret":"hush-hush"}`,
		"no user":           `{"api_key":"hush-hush","webhook_secret":"s"}`,
		"no webhook secret": `{"username":"u","api_key":"hush-hush"}`,
		"no encryption":     `{"username":"u","api_key":"k","webhook_secret":"hush-hush","base_url":"http://hush-hush.example"}`,
		"password in URL":   `{"username":"u","api_key":"k","webhook_secret":"s","base_url":"https://a:hush-hush@example.com/%zz"}`,
	} {
		c := sdk.Connection{MerchantID: "m1", Mode: "test", Version: 1, Credentials: json.RawMessage(credentials)}
		a := newAdapter()
		listed := a.products(t.Context(), sdk.Call{Connection: c})
		inquired := a.inquiry(t.Context(), sdk.Call{Connection: c, Body: json.RawMessage(`{}`)})
		quoted := a.quote(t.Context(), sdk.Quote{Connection: c})
		ordered := a.order(t.Context(), callOf(c, pulsaQuote, 10850))
		found := a.lookup(t.Context(), lookupOf(c, pulsaQuote, 10850))
		ack := a.notify(t.Context(), sdk.Notification{Connection: c})
		for _, result := range []sdk.Result{listed, inquired, ordered} {
			if result.Outcome != sdk.NotSent || result.Blame != sdk.BlameAccount {
				t.Errorf("%s: %+v", name, result)
			}
		}
		if quoted.Outcome != sdk.NotSent || quoted.Blame != sdk.BlameAccount ||
			found.Status != sdk.StatusUnknown || found.Blame != sdk.BlameAccount ||
			ack.Status != 503 || len(ack.Updates) != 0 {
			t.Errorf("%s: %+v, %+v, %+v", name, quoted, found, ack)
		}
		if text := listed.Detail + inquired.Detail + quoted.Detail + ordered.Detail + found.Detail + ack.Detail; strings.Contains(text, "hush") {
			t.Errorf("%s: a credential is in %s", name, text)
		}
	}
}

// Two owners, two modes, and a changed key, all at once on one adapter: each
// order is signed with its own key.
func TestCredentialsNeverMix(t *testing.T) {
	t.Parallel()
	up := newStub(t, map[string]canned{"/transaction ": {200, anAnswer("Pending", "03", "")}})
	a := newAdapter()
	var group sync.WaitGroup
	for _, merchant := range []string{"m1", "m2"} {
		for _, mode := range []string{"live", "test"} {
			for version := range int64(3) {
				name := merchant + mode + string(rune('0'+version))
				c := connect(t, up.url, "username", name, "api_key", "key of "+name)
				c.MerchantID, c.Mode, c.Version = merchant, mode, version
				for range 5 {
					group.Go(func() { a.order(t.Context(), callOf(c, pulsaQuote, 10850)) })
				}
			}
		}
	}
	group.Wait()
	requests := up.asked()
	if len(requests) != 60 {
		t.Errorf("%d requests", len(requests))
	}
	for _, request := range requests {
		name, _ := request.body["username"].(string)
		if want := (credentials{username: name, key: "key of " + name}).sign(reference); request.body["sign"] != want {
			t.Errorf("%s signed with another key", name)
		}
	}
}
