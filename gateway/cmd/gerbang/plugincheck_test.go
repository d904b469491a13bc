package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

func TestPluginCheck(t *testing.T) {
	t.Parallel()
	file := filepath.Join("..", "..", "..", "plugins", "payments", "manifest.json")
	code, p := run(t, nil, "", "plugin", "check", file)
	if code != exitOK || !strings.Contains(p.output.String(), "implements:       payments@1") {
		t.Errorf("exit code %d with %s%s", code, &p.output, &p.errors)
	}
	code, p = run(t, nil, "", "plugin", "check", "--expanded", file)
	if whole, err := manifest.Parse(p.output.Bytes()); code != exitOK || err != nil || len(whole.Operations) != 5 {
		t.Errorf("exit code %d with %s%s: %v", code, &p.output, &p.errors, err)
	}
}

func TestPluginCheckTellsEveryFault(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(filepath.Join("..", "..", "..", "plugins", "payments", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		document string
		want     []string
	}{
		"two faults": {
			strings.NewReplacer(`"1.0.0"`, `"1.0\u0007"`, `"lookup": "read"`, `"lookup": "guess"`).Replace(string(document)),
			[]string{"manifest.json#/lookup: a provider with money operations must say read or resubmit", `manifest.json#/version: "1.0\a" must be letters`, "has 2 faults"},
		},
		"no JSON":           {`{"manifest": 1,}`, []string{"is no JSON at byte 14", "has 1 faults"}},
		"the gateway's own": {strings.ReplaceAll(bank, "/bank/name", "/balance"), []string{"the path is the gateway's own"}},
	} {
		file := filepath.Join(t.TempDir(), "manifest.json")
		if err := os.WriteFile(file, []byte(c.document), 0o600); err != nil {
			t.Fatal(err)
		}
		code, p := run(t, nil, "", "plugin", "check", file)
		for _, want := range c.want {
			if code != exitRefused || !strings.Contains(p.output.String()+p.errors.String(), want) {
				t.Errorf("%s: exit code %d with %s%s, want %q", name, code, &p.output, &p.errors, want)
			}
		}
	}
}
