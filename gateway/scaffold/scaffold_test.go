package scaffold_test

import (
	"bytes"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/scaffold"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

func checkout(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func write(t *testing.T, template string) (dir string, files []string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "plugin")
	files, err := scaffold.Write(scaffold.Plugin{Name: "warung-1", Module: "example.com/warung", Template: template, Dir: dir, Checkout: checkout(t)})
	if err != nil {
		t.Fatal(err)
	}
	return dir, files
}

func TestEveryTemplateIsSound(t *testing.T) {
	t.Parallel()
	for _, template := range scaffold.Templates() {
		dir, files := write(t, template)
		for _, want := range []string{"go.mod", "main.go", "manifest.json", "adapter.go", "examples.json", "main_test.go", filepath.Join("sandbox", "sandbox.go")} {
			if !slices.Contains(files, want) {
				t.Errorf("%s: there is no %s in %q", template, want, files)
			}
		}
		for _, name := range files {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, ".go") {
				if formatted, err := format.Source(text); err != nil || !bytes.Equal(formatted, text) {
					t.Errorf("%s: %s is not formatted (%v)", template, name, err)
				}
			}
			if lines := bytes.Count(text, []byte("\n")); name == "main.go" && lines >= 25 {
				t.Errorf("%s: main.go has %d lines", template, lines)
			}
			if name == "manifest.json" {
				if m, err := manifest.Parse(text); err != nil || m.Name != "warung-1" {
					t.Errorf("%s: %v", template, err)
				}
			}
		}
	}
}

// The module builds and passes its own tests, conformance among them, before anybody has
// changed a line, from a directory outside of the tree.
func TestWrittenPluginsConform(t *testing.T) {
	t.Parallel()
	for _, template := range scaffold.Templates() {
		dir, _ := write(t, template)
		command := exec.CommandContext(t.Context(), "go", "test", "./...")
		command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=-mod=readonly -trimpath", "GOWORK=off", "CGO_ENABLED=0")
		if output, err := command.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", template, err, output)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "notes"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, p := range map[string]scaffold.Plugin{
		"must be lower-case":        {Name: "Warung", Template: "payments"},
		"there is no template":      {Name: "warung", Template: "loans"},
		"is not empty":              {Name: "warung", Template: "payments", Dir: full, Version: "v1.0.0"},
		"is no checkout":            {Name: "warung", Template: "payments", Dir: full, Checkout: elsewhere(t)},
		"no such file or directory": {Name: "warung", Template: "payments", Dir: full, Checkout: full},
	} {
		if _, err := scaffold.Write(p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func elsewhere(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFindCheckout(t *testing.T) {
	t.Parallel()
	root := checkout(t)
	if got := scaffold.FindCheckout(t.TempDir(), filepath.Join(root, "bin", "plugins")); got != root {
		t.Errorf("found %q, want %q", got, root)
	}
	if got := scaffold.FindCheckout(t.TempDir()); got != "" {
		t.Errorf("found %q", got)
	}
}
