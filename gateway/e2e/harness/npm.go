package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// NodeTools installs deploy/tools/openapi once for each content of its lock file, and
// returns the directory whose node_modules has it. The test is skipped where there is no
// npm, but not where every change is tested.
func NodeTools(t testing.TB) string {
	t.Helper()
	if _, err := exec.LookPath("npm"); err != nil {
		lacking(t, "npm is not on this machine; Debian has it in npm")
	}
	from := filepath.Join(Root, "deploy", "tools", "openapi")
	sum := sha256.New()
	files := map[string][]byte{}
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		content, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = content
		sum.Write(content)
	}
	home := filepath.Join(filepath.Dir(Binary(t)), "tools")
	dir := filepath.Join(home, "openapi-"+hex.EncodeToString(sum.Sum(nil)[:6]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	if err := os.MkdirAll(home, 0o755); err != nil {
		t.Fatal(err)
	}
	building, err := os.MkdirTemp(home, "openapi-new-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(building)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(building, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.CommandContext(t.Context(), "npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
	install.Dir = building
	if out, err := install.CombinedOutput(); err != nil {
		lacking(t, "npm ci: "+err.Error()+"\n"+string(out))
	}
	if err := os.Rename(building, dir); err != nil {
		if _, other := os.Stat(dir); other != nil { // unless another test was first
			t.Fatal(err)
		}
	}
	return dir
}

// lacking ends a test for which this machine lacks a program. What tests every change must
// not lack it.
func lacking(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}
