package node_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == confine.Command {
		fmt.Fprintln(os.Stderr, confine.Launch())
		os.Exit(confine.Refused)
	}
	os.Exit(m.Run())
}

const (
	root    = "../../.."
	example = "plugins/examples/node"
	proto   = "sdk/pluginpb/provider.proto"
)

// build builds the example in a copy of its directory, as its README says, and gives
// the binary.
func build(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the example is built on Linux alone")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		unbuilt(t, "npm is not on this machine; Debian has it in npm")
	}
	copied := t.TempDir()
	dir := filepath.Join(copied, example)
	for _, part := range []string{"src", "build.js", "package.json", "package-lock.json", ".npmrc", "manifest.json", "examples.json"} {
		copyTo(t, filepath.Join(dir, part), filepath.Join(root, example, part))
	}
	copyTo(t, filepath.Join(copied, proto), filepath.Join(root, proto))
	npm := func(args ...string) (string, error) {
		command := exec.CommandContext(t.Context(), "npm", args...)
		command.Dir = dir
		out, err := command.CombinedOutput()
		return string(out), err
	}
	if out, err := npm("ci", "--ignore-scripts", "--prefer-offline"); err != nil {
		unbuilt(t, "npm ci: "+err.Error()+"\n"+out)
	}
	if out, err := npm("run", "build"); err != nil {
		t.Fatalf("npm run build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "build", "nodepay")
}

// unbuilt ends a test for which this machine lacks what builds the example. What tests
// every change must not lack it.
func unbuilt(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// copyTo copies a file or a directory.
func copyTo(t *testing.T, to, from string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		return
	}
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o644); err != nil {
		t.Fatal(err)
	}
}
