package store_test

import (
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// TestManifests: a manifest is found by its digest alone, and what was put in its place
// is not believed.
func TestManifests(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 2})
	m, err := manifest.Parse([]byte(`{
		"manifest": 1, "name": "one", "version": "1.2.3", "title": "Test", "connection": {"type": "object"},
		"operations": [{"path": "/one/products", "kind": "query", "summary": "List", "timeout": "5s",
			"request": {"type": "object"}, "result": {"type": "object"}, "response": {"type": "object"}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Manifest(t.Context(), m.Digest()); got != nil || err != nil {
		t.Errorf("before it is kept: %v, %v", got, err)
	}
	for range 2 {
		if err := s.KeepManifest(t.Context(), epoch, m); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Manifest(t.Context(), m.Digest())
	if err != nil || got.Digest() != m.Digest() || got.Operations[0].Path != "/one/products" {
		t.Errorf("kept: %+v, %v", got, err)
	}
	execute(t, url, "UPDATE manifests SET digest = 'approved'")
	if got, err := s.Manifest(t.Context(), "approved"); got != nil || err == nil || !strings.Contains(err.Error(), "another one") {
		t.Errorf("another manifest in its place: %v, %v", got, err)
	}
}
