package adminapi_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

// TestWrongListenersAreNamed asks what is no console, as each answers what it does not know.
func TestWrongListenersAreNamed(t *testing.T) {
	t.Parallel()
	const pathless = `{"success":false,"message":"There is no such path.","error_code":"NOT_FOUND","request_id":"r"}`
	serve := func(others string, known map[string]string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/admin/plugins" && r.Header.Get("Authorization") != "" {
				t.Errorf("%s was asked with the token", r.URL.Path)
			}
			text, ok := known[r.URL.Path]
			if !ok {
				w.WriteHeader(http.StatusNotFound)
				text = others
			}
			_, _ = io.WriteString(w, text)
		})
	}
	plain := httptest.NewServer(serve(pathless, map[string]string{"/readyz": `{"ready":true,"checks":[{"name":"database","ok":true}]} `}))
	api := httptest.NewServer(serve(pathless, map[string]string{"/openapi.json": `{"openapi":"3.1.0"}`}))
	people := httptest.NewServer(serve("<html>", map[string]string{"/signin": `<form method="post">`}))
	other := httptest.NewServer(serve("<html>", map[string]string{}))
	secure := httptest.NewTLSServer(serve("", nil))
	for _, s := range []*httptest.Server{plain, api, people, other, secure} {
		t.Cleanup(s.Close)
	}
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for url, want := range map[string]string{
		api.URL:    "is the merchants' listener: the admin API is at the address that the gateway's configuration calls console",
		people.URL: "is the merchants' console: the admin API is at",
		other.URL:  "what answers at " + other.URL + " is no console",
		gone.URL:   "nothing listens at " + gone.URL + ": does the gateway run there",
		plain.URL:  "There is no such path.",
		strings.Replace(plain.URL, "http:", "https:", 1):  "speaks plain HTTP: write " + plain.URL,
		strings.Replace(secure.URL, "https:", "http:", 1): "speaks TLS: write " + secure.URL,
	} {
		_, err := adminapi.ListPlugins.Call(t.Context(), adminapi.NewClient(url, token), adminapi.None{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", url, err, want)
		}
		if misplaced, is := errors.AsType[*adminapi.Misplaced](err); is != (strings.Contains(want, "merchants'") || strings.Contains(want, "write")) {
			t.Errorf("%s: misplaced %v", url, misplaced)
		}
	}
}

func TestURLsWithoutASchemeSayWhatToWrite(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://127.0.0.1:8081": "", "https://console.example.com/": "",
		"127.0.0.1:8081": "write http://127.0.0.1:8081", "localhost:8081": "write http://localhost:8081", "//console.example.com": "write http://console.example.com",
		"ftp://console.example.com": "is no URL of a console", "http://": "is no URL of a console", "": "is no URL of a console",
	} {
		err := adminapi.CheckURL(url)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", url, err)
		}
	}
}
