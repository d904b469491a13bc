package tier

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write TIERS.md")

// module is the module's directory, seen from here.
const module = "../.."

// counts are the tests of a package: all of them, those of the long tier alone, and those of which
// the change tier runs a part.
type counts struct{ all, long, part int }

// TestTable holds TIERS.md to what the tests say of themselves.
func TestTable(t *testing.T) {
	t.Parallel()
	packages := map[string]counts{}
	err := filepath.WalkDir(module, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if name := entry.Name(); path != module && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "bin") {
			return filepath.SkipDir
		}
		c, err := count(path)
		if err != nil {
			return err
		}
		if c.all > 0 {
			name, err := filepath.Rel(module, path)
			packages[filepath.ToSlash(name)] = c
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := table(packages)
	if *update {
		if err := os.WriteFile("TIERS.md", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile("TIERS.md"); err != nil || got != string(want) {
		t.Errorf("TIERS.md is out of date (%v): go test ./gateway/tier -update writes it", err)
	}
}

func table(packages map[string]counts) string {
	var text strings.Builder
	text.WriteString("# Tests by tier\n\n`make test` runs the tests of the change tier, `make test-long` runs all. *Sampled* tests run a part of their cases in the\n" +
		"change tier: a sample that changes with the commit, fewer histories, or pinned seeds. Written by `go test ./gateway/tier -update`.\n\n" +
		"| package | tests | in the change tier | of these sampled | long tier only |\n| --- | ---: | ---: | ---: | ---: |\n")
	var sum counts
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		c := packages[name]
		sum = counts{sum.all + c.all, sum.long + c.long, sum.part + c.part}
		row(&text, "`"+name+"`", c)
	}
	row(&text, "all", sum)
	return text.String()
}

func row(text *strings.Builder, name string, c counts) {
	fmt.Fprintf(text, "| %s | %d | %d | %d | %d |\n", name, c.all, c.all-c.long, c.part, c.long)
}

// count counts the tests of a directory. A test belongs to the long tier if it, or a function of its package that it
// calls, calls Long.
func count(dir string) (c counts, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return c, err
	}
	calls := map[string][]string{}
	var tests []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return c, err
		}
		for _, d := range parsed.Decls {
			f, is := d.(*ast.FuncDecl)
			if !is || f.Body == nil {
				continue
			}
			calls[f.Name.Name] = append(calls[f.Name.Name], called(f.Body)...)
			if f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				tests = append(tests, f.Name.Name)
			}
		}
	}
	for _, test := range tests {
		reached := map[string]bool{}
		reach(test, calls, reached)
		c.all++
		switch {
		case reached["tier.Long"]:
			c.long++
		case reached["tier.Sample"], reached["tier.IsLong"], reached["testing.Short"]:
			c.part++
		}
	}
	return c, nil
}

// called lists the functions that a body names: those of its package, and those of tier and testing.
func called(body ast.Node) (names []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			names = append(names, n.Name)
		case *ast.SelectorExpr:
			if of, is := n.X.(*ast.Ident); is && (of.Name == "tier" || of.Name == "testing") {
				names = append(names, of.Name+"."+n.Sel.Name)
				return false
			}
		}
		return true
	})
	return names
}

func reach(name string, calls map[string][]string, reached map[string]bool) {
	if reached[name] {
		return
	}
	reached[name] = true
	for _, next := range calls[name] {
		reach(next, calls, reached)
	}
}
