package edge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/docs"
)

func TestDocuments(t *testing.T) {
	t.Parallel()
	h := build(t)
	for _, name := range append(docs.Names(), "") {
		path := strings.TrimSuffix("/docs/"+name, "/")
		got := h.send(t, http.MethodGet, path, "")
		if got.StatusCode != http.StatusOK || !strings.HasPrefix(got.Header.Get("Content-Type"), "text/html") || !strings.Contains(got.text, "</html>") {
			t.Errorf("%s: %d %v", path, got.StatusCode, got.Header)
		}
		if policy := got.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
		if again := h.send(t, http.MethodGet, path, "", header{"If-None-Match", got.Header.Get("ETag")}); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s with its ETag: %d", path, again.StatusCode)
		}
		packed := h.send(t, http.MethodGet, path, "", header{"Accept-Encoding", "gzip"})
		if packed.Header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(packed.text, "\x1f\x8b") {
			t.Errorf("%s is not packed: %v", path, packed.Header)
		}
	}
	for query, want := range map[string]string{"": "Mulai cepat", "?lang=en": "Quick start", "?lang=id": "Mulai cepat"} {
		got := h.send(t, http.MethodGet, "/docs"+query, "")
		if !strings.Contains(got.text, "<h1>"+want+"</h1>") || !strings.Contains(got.Header.Get("Vary"), "Accept-Language") {
			t.Errorf("/docs%s does not open with %s, or %v", query, want, got.Header)
		}
	}
	if got := h.send(t, http.MethodGet, "/docs", "", header{"Accept-Language", "en-GB, id;q=0.5"}); !strings.Contains(got.text, "<h1>Quick start</h1>") {
		t.Error("a browser that prefers English gets something else")
	}
	if got := h.send(t, http.MethodGet, "/docs/changes", ""); !strings.Contains(got.text, "<h2>"+catalog.APIVersion+"</h2>") {
		t.Errorf("the changes don't tell of %s", catalog.APIVersion)
	}
	if got := h.send(t, http.MethodGet, "/docs/nothing", ""); got.StatusCode != http.StatusNotFound || !strings.Contains(got.text, "NOT_FOUND") {
		t.Errorf("an unknown page: %d %s", got.StatusCode, got.text)
	}
	if got := h.send(t, http.MethodPost, "/docs", ""); got.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", got.StatusCode)
	}
}
