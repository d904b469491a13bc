package dev

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
)

// TestDoorLeadsToTheLatestPayments: the last ten that have a page, the newest first,
// and axe has nothing to say about how they are shown.
func TestDoorLeadsToTheLatestPayments(t *testing.T) {
	t.Parallel()
	const simulator = "http://127.0.0.1:1/web/"
	movements := []string{`{"reference":"no-page","amount":500,"state":"DONE","at":"2026-01-02T03:00:00Z"}`}
	for n := range 12 {
		movements = append(movements, fmt.Sprintf(`{"reference":"%s-%02d","amount":25000,"state":"PAID","at":"2026-01-02T03:04:%02dZ","page":"%s%02d"}`,
			strings.Repeat("long", 15), n, n, simulator, n))
	}
	url := newTestDoor(t, "http://gateway.invalid", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/_sandbox/movements" {
			_, _ = io.WriteString(w, "["+strings.Join(movements, ",")+"]")
			return
		}
		_, _ = io.WriteString(w, `{"provider":"payments"}`)
	})
	shown := page(t, url+"/")
	newest, oldest := strings.Index(shown, `href="`+simulator+`11"`), strings.Index(shown, `href="`+simulator+`02"`)
	if newest < 0 || oldest < newest || strings.Contains(shown, simulator+"01") || strings.Contains(shown, "no-page") || !strings.Contains(shown, "Rp25.000") {
		t.Errorf("it shows\n%s", shown)
	}
	if out := browser.Start(t).Run(t, "axe.mjs", nil, "door="+url+"/", "inbox="+url+"/inbox", "mails="+url+"/mails"); out != "" {
		t.Error(out)
	}
}

// TestDoorProfiles answers with what go tool pprof reads, once the time is over.
func TestDoorProfiles(t *testing.T) {
	t.Parallel()
	url := newTestDoor(t, "http://gateway.invalid", http.NotFound)
	for query, want := range map[string]int{"": http.StatusBadRequest, "?seconds=0": http.StatusBadRequest, "?seconds=61": http.StatusBadRequest, "?seconds=1": http.StatusOK} {
		status, text := ask(t.Context(), t, url+"/profile"+query, "")
		if packed := strings.HasPrefix(text, "\x1f\x8b"); status != want || packed != (want == http.StatusOK) {
			t.Errorf("%q: %d %.100q", query, status, text)
		}
	}
}
