package policy

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the default set is part of the program
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	dataFile   = "data.json"
	ruleSuffix = ".rego"
	testSuffix = "_test.rego"

	// maxFile bounds a file of a set: a set is read by people.
	maxFile = 1 << 20
)

// errNoPolicy is what LoadDir returns for a directory that is missing or holds no set. WriteDefault makes one there.
var errNoPolicy = errors.New("no policy there")

// Source is a set as people write it: by file name, `.rego` files with rules, `_test.rego` files with their tests, and
// `data.json`.
type Source map[string][]byte

//go:embed rego/admit.rego
var admitRules []byte

//go:embed rego/admit_test.rego
var admitTests []byte

//go:embed rego/limits.rego
var limitsRules []byte

//go:embed rego/limits_test.rego
var limitsTests []byte

//go:embed rego/data.json
var defaultData []byte

// Default is a copy of the set that the program brings along.
func Default() Source {
	return Source{
		"admit.rego":       bytes.Clone(admitRules),
		"admit_test.rego":  bytes.Clone(admitTests),
		"limits.rego":      bytes.Clone(limitsRules),
		"limits_test.rego": bytes.Clone(limitsTests),
		dataFile:           bytes.Clone(defaultData),
	}
}

// Version digests the files: names and contents, each with its length, in the order of the names.
func (s Source) Version() Version {
	h := sha256.New()
	part := func(b []byte) {
		fmt.Fprintf(h, "%d:", len(b))
		h.Write(b)
	}
	for _, name := range s.Names() {
		part([]byte(name))
		part(s[name])
	}
	return Version(hex.EncodeToString(h.Sum(nil)))
}

// Names are those of the files, sorted.
func (s Source) Names() []string { return slices.Sorted(maps.Keys(s)) }

// HasRules reports whether there is a file of rules, tests not counted.
func (s Source) HasRules() bool {
	for name := range s {
		if strings.HasSuffix(name, ruleSuffix) && !strings.HasSuffix(name, testSuffix) {
			return true
		}
	}
	return false
}

// Rules is a copy of the files of rules and their tests.
func (s Source) Rules() Source {
	rules := maps.Clone(s)
	maps.DeleteFunc(rules, func(name string, _ []byte) bool { return !strings.HasSuffix(name, ruleSuffix) })
	return rules
}

// LoadDir is ReadDir for a set of its own: a directory without rules uses the default ones with its data.
func LoadDir(dir string) (Source, error) {
	found, err := ReadDir(dir)
	if err != nil || found.HasRules() {
		return found, err
	}
	source := Default()
	maps.Copy(source, found)
	return source, nil
}

// ReadDir reads the files of a set in a directory: `data.json` and every `*.rego`; hidden files, other files and
// directories are passed over. Rules may be missing: `data.json` alone is all that changing a limit needs. A directory
// without `data.json` is no set: errNoPolicy.
func ReadDir(dir string) (Source, error) {
	names, err := filesOf(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("policy: %s: %w: the directory does not exist; make it and write the default set into it",
			dir, errNoPolicy)
	}
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	found := Source{}
	for _, name := range names {
		if found[name], err = readFile(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("policy: %w", err)
		}
	}
	if _, ok := found[dataFile]; !ok {
		return nil, fmt.Errorf("policy: %s: %w: a set has a %s, and rules (*.rego) unless it goes with those in force; "+
			"write the default set there to begin with", dir, errNoPolicy, dataFile)
	}
	return found, nil
}

// filesOf are the names of the files of a set in a directory.
func filesOf(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, ".") && (name == dataFile || strings.HasSuffix(name, ruleSuffix)) {
			names = append(names, name)
		}
	}
	return names, err
}

// WriteDir writes a set's files into a directory, which is made where it is missing. Files of their names are replaced. Where
// the directory has others of a set nothing is written: with them it would be another set.
func (s Source) WriteDir(dir string) error {
	names, err := filesOf(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("policy: %w", err)
	}
	others := slices.DeleteFunc(names, func(name string) bool { return s[name] != nil })
	if len(others) > 0 {
		return fmt.Errorf("policy: %s has files that are not of this set, and a push would take them in: %s; remove them, or name another directory",
			dir, strings.Join(others, ", "))
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	for _, name := range s.Names() {
		if name != filepath.Base(name) { // as no version that was pushed has it
			return fmt.Errorf("policy: %q is no name of a file of a set", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), s[name], 0o644); err != nil {
			return fmt.Errorf("policy: %w", err)
		}
	}
	return nil
}

// readFile reads one file of a set. It follows links, which is how Kubernetes mounts a ConfigMap.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFile {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", path, maxFile)
	}
	return os.ReadFile(path)
}

// WriteDefault writes the default set into a directory, which is made where it is missing. It never overwrites: where one
// of the files exists, nothing is written.
func WriteDefault(dir string) error {
	source := Default()
	for _, name := range source.Names() {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("policy: %s is there already; the default set goes into a directory without one",
				filepath.Join(dir, name))
		}
	}
	return source.WriteDir(dir)
}
