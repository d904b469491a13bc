package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPluginNew(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "warung")
	code, p := run(t, nil, "", "plugin", "new", "warung", "--implements", "payments", "--dir", dir)
	if code != exitOK || !strings.Contains(p.output.String(), "gerbang dev --plugin ./warung") || strings.Contains(p.output.String(), "go mod tidy") {
		t.Errorf("exit code %d with %s%s", code, &p.output, &p.errors)
	}
	code, p = run(t, nil, "", "plugin", "check", filepath.Join(dir, "manifest.json"))
	if code != exitOK || !strings.Contains(p.output.String(), "payments@1") {
		t.Errorf("exit code %d with %s%s", code, &p.output, &p.errors)
	}
	module, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.Contains(string(module), "replace github.com/seed-f006e74d/gerbang => /") {
		t.Errorf("go.mod is %s, %v", module, err)
	}
	code, p = run(t, nil, "", "plugin", "new", "warung", "--dir", dir)
	if code != exitRefused || !strings.Contains(p.errors.String(), "is not empty: name another directory") {
		t.Errorf("exit code %d with %s%s", code, &p.output, &p.errors)
	}
	code, p = run(t, nil, "", "plugin", "new", "kurs", "--kind", "query", "--dir", filepath.Join(t.TempDir(), "kurs"))
	if code != exitOK {
		t.Errorf("exit code %d with %s%s", code, &p.output, &p.errors)
	}
}

// A module is not written that go mod tidy could not complete.
func TestPluginNewNeedsAnSDK(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"v0.3.0": true, "v0.0.0-20261124030000-effe47d00000": true, "v0.3.1-0.20261124030000-effe47d00000+dirty": false, "(devel)": false, "": false} {
		if published(version) != want {
			t.Errorf("%q is published: %v", version, !want)
		}
	}
}
