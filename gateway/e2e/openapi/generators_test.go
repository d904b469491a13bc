package openapi_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestGenerators has generators of Go make clients of the document as the running gateway
// serves it. Each compiles and makes a payment.
func TestGenerators(t *testing.T) {
	t.Parallel()
	p := harness.Shared(t)
	_, document, _ := p.Get(t, p.APIURL+"/openapi.json")
	for generator, arguments := range map[string][]string{
		"ogen": {"--config", "ogen.yml", "--target", "api", "--package", "api", "openapi.json"},
		// Without skip-prune it leaves out the bodies of callbacks, which its code names.
		"oapi-codegen": {"-generate", "types,client,skip-prune", "-package", "api", "-o", "api/api.go", "openapi.json"},
	} {
		t.Run(generator, func(t *testing.T) {
			t.Parallel()
			dir := generated(t, generator, document)
			tools := filepath.Join(harness.Root, "deploy", "tools", "generators")
			for _, name := range []string{"go.mod", "go.sum"} {
				copied(t, filepath.Join(tools, name), filepath.Join(dir, name))
			}
			must(t, dir, "go", append([]string{"tool", generator}, arguments...)...)
			must(t, dir, "go", "mod", "edit", "-module=generated")
			must(t, dir, "go", "build", "-mod=mod", "-ldflags=-s -w", "-o", "pay", ".")
			pays(t, p, exec.CommandContext(t.Context(), filepath.Join(dir, "pay")))
		})
	}
}

// generated makes a project with the document and the program that uses what a generator
// makes of it.
func generated(t *testing.T, generator string, document []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "generators", generator))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "api"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "openapi.json"), document, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func copied(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, dir, name string, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, arguments, err, out)
	}
}

// pays runs a generated client's program, which ends when its payment is paid.
func pays(t *testing.T, p *harness.Program, program *exec.Cmd) {
	t.Helper()
	shop := p.Shop(harness.Large, "test")
	program.Env = append(os.Environ(), "GERBANG_URL="+p.APIURL, "GERBANG_KEY="+shop.Key, "GERBANG_MERCHANT="+shop.MerchantID,
		"SANDBOX="+p.SandboxURL, "REFERENCE="+uuid.NewString())
	if out, err := program.CombinedOutput(); err != nil || !bytes.Equal(out, []byte("PAID\n")) {
		t.Errorf("it ends with %v and prints:\n%s", err, out)
	}
}
