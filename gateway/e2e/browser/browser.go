package browser

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// kit is the directory of the module whose parts every script can import, and its
// parts.
const kit = "deploy/tools/browser"

var parts = []string{"package.json", "package-lock.json", ".npmrc", "browser.mjs", "axe.mjs"}

// chromiums are the names under which systems install the browser. The shell has no windows, and starts and draws for a
// third of the processor time.
var chromiums = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// Browser runs scripts for Node that drive Chromium.
type Browser struct {
	node, chromium string
	dir            string // the installed kit
}

// Start finds Chromium and Node, and installs the kit's two libraries on first use.
// It skips the test where the machine lacks one of them, but fails it in CI.
func Start(t testing.TB) *Browser {
	t.Helper()
	b := &Browser{}
	for _, name := range chromiums {
		if path, err := exec.LookPath(name); err == nil {
			b.chromium = path
			break
		}
	}
	var missing error
	if b.chromium == "" {
		missing = errors.New("no Chromium is on this machine; Debian has it in chromium")
	}
	var err error
	if b.node, err = exec.LookPath("node"); err != nil {
		missing = errors.New("no Node is on this machine; Debian has it in nodejs")
	}
	if missing == nil {
		b.dir, missing = install()
	}
	switch {
	case missing == nil:
		return b
	case os.Getenv("CI") == "true":
		t.Fatal(missing)
	}
	t.Skip(missing)
	return nil
}

// Run runs a script with arguments and variables beside the test's own, and returns
// what it prints. The script is a file, or the name of one of the kit's; it can import
// "gerbang-browser" and "playwright-core". In the change tier a page is judged in one view,
// drawn by commit and page. A script that fails ends the test with what it said. Set
// SCREENSHOTS to a directory to see the pages.
func (b *Browser) Run(t testing.TB, script string, env []string, args ...string) string {
	t.Helper()
	path := filepath.Join(b.dir, script)
	if !slices.Contains(parts, script) {
		path = b.admit(t, script)
	}
	command := exec.CommandContext(t.Context(), b.node, append([]string{path}, args...)...)
	command.Env = append(os.Environ(), "CHROMIUM="+b.chromium)
	if !tier.IsLong() {
		command.Env = append(command.Env, "VIEWS=one")
	}
	command.Env = append(command.Env, env...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", script, err, out, stderr.Bytes())
	}
	return string(out)
}

// admit copies a script and what lies beside it below the kit: Node looks for what a
// script imports in the directories above it.
func (b *Browser) admit(t testing.TB, script string) string {
	t.Helper()
	beside, err := filepath.Glob(filepath.Join(filepath.Dir(script), "*.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(b.dir, "script-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, path := range beside {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, filepath.Base(script))
}

// install puts the kit with its libraries into the user's cache, in a directory named
// by the digest of its parts, and returns that. It is made beside and renamed, so that
// of several test processes the first wins and no script sees half of it.
var install = sync.OnceValues(func() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	content := map[string][]byte{}
	for _, name := range parts {
		if content[name], err = os.ReadFile(filepath.Join(root, kit, name)); err != nil {
			return "", err
		}
		_, _ = sum.Write(content[name]) // a digest takes everything
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	cache = filepath.Join(cache, "gerbang", "browser")
	installed := filepath.Join(cache, hex.EncodeToString(sum.Sum(nil)[:8]))
	if _, err := os.Stat(installed); !errors.Is(err, fs.ErrNotExist) {
		return installed, err
	}
	if err := os.MkdirAll(cache, 0o700); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cache, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) // nothing, once it is renamed
	for name, text := range content {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return "", err
		}
	}
	npm := exec.Command("npm", "ci", "--ignore-scripts", "--prefer-offline")
	npm.Dir = dir
	if out, err := npm.CombinedOutput(); err != nil {
		return "", errors.New("npm ci in " + kit + ": " + err.Error() + "\n" + string(out))
	}
	if err := os.Rename(dir, installed); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return installed, nil
})

// moduleRoot is the directory of go.mod above the test's package.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, statErr := os.Stat(filepath.Join(dir, "go.mod")); statErr == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the test's directory")
		}
		dir = parent
	}
	return "", err
}
