package sandbox_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// TestActivityKeepsTheLast: of many calls the newest are kept, newest first, and a call
// that concerns nothing is not.
func TestActivityKeepsTheLast(t *testing.T) {
	t.Parallel()
	w := openShop(t, sandbox.NewManualClock(start))
	call := w.env.Activity.Watch("buy", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if subject := r.URL.Query().Get("subject"); subject != "" {
			sandbox.Concern(r.Context(), subject)
		}
	}))
	for n := range 2500 {
		for _, query := range []string{"", fmt.Sprintf("?subject=%d", n%2)} {
			call.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+query, http.NoBody))
		}
	}
	got := w.env.Activity.About("1")
	if len(got) != 500 || got[0].Number != 2500 || got[499].Number != 1502 || got[0].Status != http.StatusOK {
		t.Fatalf("%d events, from %+v", len(got), got[0])
	}
	if none := w.env.Activity.About("2"); none == nil || len(none) != 0 {
		t.Errorf("of nothing: %+v", none)
	}
}

// TestActivityTellsNoSecret: the URL of a notification may hold one.
func TestActivityTellsNoSecret(t *testing.T) {
	t.Parallel()
	w := openShop(t, sandbox.NewManualClock(start))
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	hook := sandbox.Webhook{URL: gone.URL + "/topsecret", Subject: "s", Says: "PAID", At: start, Body: json.RawMessage(`{"pin":"topsecret"}`)}
	if err := w.env.Journal.Append(w.env.Webhooks.Entry(hook)).Wait(); err != nil {
		t.Fatal(err)
	}
	w.env.Webhooks.Tried(t.Context())
	got := w.env.Activity.About("s")
	if len(got) != 1 || got[0].Reason == "" || got[0].Status != 0 || got[0].Try != 1 {
		t.Fatalf("events %+v", got)
	}
	if text := fmt.Sprintf("%+v", got); strings.Contains(text, "topsecret") {
		t.Errorf("it tells %s", text)
	}
}
