package policy

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write puts files into a directory.
func write(tb testing.TB, dir string, files Source) {
	tb.Helper()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}

// load reads a directory that has to be a set.
func load(t *testing.T, dir string) Source {
	t.Helper()
	source, err := LoadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// TestWriteDirBesideAnotherSet: a directory with files that are not of the set would be another set at its next push.
func TestWriteDirBesideAnotherSet(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for range 2 { // its own files are replaced
		if err := Default().WriteDir(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "old.rego"), []byte("package gerbang\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Default().WriteDir(dir); err == nil || !strings.Contains(err.Error(), "old.rego") {
		t.Errorf("beside a file of another set: %v", err)
	}
}

func TestTheDefaultGoesIntoADirectoryAndBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a", "policy")
	if err := WriteDefault(dir); err != nil {
		t.Fatal(err)
	}
	if got := load(t, dir); got.Version() != Default().Version() {
		t.Errorf("what was written is read as %v", slices.Sorted(maps.Keys(got)))
	}
}

func TestWriteDefaultOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, Source{"limits.rego": []byte("mine")})
	err := WriteDefault(dir)
	entries, _ := os.ReadDir(dir)
	content, _ := os.ReadFile(filepath.Join(dir, "limits.rego"))
	if err == nil || !strings.Contains(err.Error(), "limits.rego is there already") || len(entries) != 1 || string(content) != "mine" {
		t.Errorf("it gives %v and leaves %v with %q", err, entries, content)
	}
}

func TestADirectoryThatIsNoSet(t *testing.T) {
	t.Parallel()
	rules := t.TempDir()
	write(t, rules, Source{"own.rego": []byte("package gerbang")})
	file := filepath.Join(t.TempDir(), "file")
	write(t, filepath.Dir(file), Source{"file": nil})
	for name, c := range map[string]struct {
		dir  string
		none bool
	}{
		"missing":      {filepath.Join(rules, "nowhere"), true},
		"empty":        {t.TempDir(), true},
		"without data": {rules, true},
		"a file":       {file, false},
	} {
		if _, err := LoadDir(c.dir); err == nil || errors.Is(err, errNoPolicy) != c.none {
			t.Errorf("%s: error is %v, want errNoPolicy: %v", name, err, c.none)
		}
	}
}

func TestDataAloneUsesTheDefaultRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := []byte("package own_test\n\ntest_it if 1 < 2\n")
	write(t, dir, Source{dataFile: []byte(fixtureData), "own_test.rego": own, ".hidden.rego": nil, "notes.txt": nil})
	if err := os.Mkdir(filepath.Join(dir, "old"), 0o700); err != nil {
		t.Fatal(err)
	}
	want := fixture()
	want["own_test.rego"] = own
	if got := load(t, dir); got.Version() != want.Version() {
		t.Errorf("it holds %v, want the default rules, the data and the test", slices.Sorted(maps.Keys(got)))
	}
}

func TestRulesOfTheDirectoryReplaceAllDefaultRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	want := rulesOnly("package gerbang\n")
	write(t, dir, want)
	if got := load(t, dir); got.Version() != want.Version() {
		t.Errorf("it holds %v, want only the directory's own", slices.Sorted(maps.Keys(got)))
	}
}

func TestLinksAreFollowedAndGreatFilesAreNot(t *testing.T) {
	t.Parallel()
	dir, mount := t.TempDir(), t.TempDir()
	write(t, mount, Source{dataFile: []byte(fixtureData)})
	if err := os.Symlink(filepath.Join(mount, dataFile), filepath.Join(dir, dataFile)); err != nil {
		t.Fatal(err)
	}
	if got := load(t, dir); got.Version() != fixture().Version() {
		t.Error("a linked data.json is not read")
	}
	write(t, dir, Source{"great.rego": make([]byte, maxFile+1)})
	if _, err := LoadDir(dir); err == nil || !strings.Contains(err.Error(), "great.rego is not a regular file") {
		t.Errorf("a great file gives %v", err)
	}
}

func TestTheVersionTellsSetsApart(t *testing.T) {
	t.Parallel()
	versions := map[Version]string{}
	for name, source := range map[string]Source{
		"empty":            {},
		"default":          Default(),
		"other data":       fixture(),
		"a name":           {"ab": []byte("c")},
		"the name shorter": {"a": []byte("bc")},
		"two files":        {"a": []byte("b"), "c": nil},
		"a file of two":    {"a": []byte("bc"), "": nil},
	} {
		v := source.Version()
		if len(v) != 64 || strings.Trim(string(v), "0123456789abcdef") != "" || versions[v] != "" {
			t.Errorf("%s is version %q, as %q", name, v, versions[v])
		}
		versions[v] = name
	}
	if first, second := Default().Version(), Default().Version(); first != second {
		t.Error("the same set has two versions")
	}
}
