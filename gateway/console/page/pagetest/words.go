// Package pagetest holds what the tests of both consoles need: above all that each text of
// a page is there in Indonesian, too. It is for tests alone. It must not know one console.
package pagetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/seed-f006e74d/gerbang/gateway/text"
)

// Words fails a test where the catalogue lacks a text that a console's tables or data have.
func Words(t *testing.T, given ...string) {
	t.Helper()
	if len(given) == 0 {
		t.Fatal("no text is given")
	}
	for _, english := range given {
		if !slices.ContainsFunc(slices.Collect(maps.Values(text.Sections)), func(section map[string]string) bool { return section[english] != "" }) {
			t.Errorf("no Indonesian of %q", english)
		}
	}
}

// Faults fails a test where a text by which one of the Go files of some patterns refuses something has no Indonesian: those of fault.New,
// Newf and Invalid, with %s for each value. Given are those that are made otherwise. Words that refuse nothing fail it, too.
func Faults(t *testing.T, patterns []string, given ...string) {
	t.Helper()
	words := text.Sections["faults"]
	said := map[string]string{}
	for _, english := range given {
		said[english] = "given"
	}
	for _, one := range patterns {
		files, err := filepath.Glob(one)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s is no file: %v", one, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if text := refusal(call); strings.ContainsFunc(strings.ReplaceAll(text, "%s", ""), unicode.IsLetter) {
						said[text] = path
					}
				}
				return true
			})
		}
	}
	for _, text := range slices.Sorted(maps.Keys(said)) {
		if words[text] == "" {
			t.Errorf("%s: no Indonesian of %q", said[text], text)
		}
		if strings.Count(words[text], "%s") != strings.Count(text, "%s") {
			t.Errorf("%q has other values in Indonesian: %q", text, words[text])
		}
	}
	for _, text := range slices.Sorted(maps.Keys(words)) {
		if said[text] == "" {
			t.Errorf("nothing is refused by %q", text)
		}
	}
}

// refusal is the text of a call of package fault's, "" for another call.
func refusal(call *ast.CallExpr) string {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) < 2 || !slices.Contains([]string{"New", "Newf", "Invalid"}, function.Sel.Name) {
		return ""
	}
	if of, named := function.X.(*ast.Ident); !named || of.Name != "fault" {
		return ""
	}
	return pattern(call.Args[1])
}

var verb = regexp.MustCompile(`%[a-z]`)

// pattern is a text with %s for each value.
func pattern(text ast.Expr) string {
	switch text := text.(type) {
	case *ast.BasicLit:
		unquoted, err := strconv.Unquote(text.Value)
		if err == nil {
			return verb.ReplaceAllString(unquoted, "%s")
		}
	case *ast.BinaryExpr:
		return pattern(text.X) + pattern(text.Y)
	case *ast.CallExpr:
		switch function, ok := text.Fun.(*ast.SelectorExpr); {
		case ok && function.Sel.Name == "T": // it is the console's own
			return ""
		case ok && function.Sel.Name == "Sprintf":
			return pattern(text.Args[0])
		}
	}
	return "%s"
}
