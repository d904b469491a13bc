// Package pagetest holds what the tests of both consoles need: above all that each text of
// a page is there in Indonesian, too. It is for tests alone. It must not know one console.
package pagetest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/console/page"
)

// inTemplates is a text that a template asks for by t.
var inTemplates = regexp.MustCompile(`\bt ("(?:[^"\\]|\\.)*")`)

// speaks are the functions whose last argument is a text for people.
var speaks = []string{"T", "Go", "did"}

// Words fails a test where a text of a console's has no Indonesian: those in templates, those that its Go files hand to T, Go
// or did, and those that are given, which tables in the code have. Words that nothing says fail it, too.
func Words(t *testing.T, dir fs.FS, words map[string]string, given ...string) {
	t.Helper()
	said := map[string]string{}
	for _, text := range given {
		said[text] = "a table"
	}
	err := fs.WalkDir(dir, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		content, err := fs.ReadFile(dir, path)
		switch {
		case err != nil:
			return err
		case strings.HasSuffix(path, ".html"):
			for _, found := range inTemplates.FindAllSubmatch(content, -1) {
				if err := note(said, string(found[1]), path); err != nil {
					return err
				}
			}
		case strings.HasSuffix(path, ".go"):
			return noteGo(said, path, content)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(said) == len(given) {
		t.Fatal("no text was found: look at the directory")
	}
	for _, text := range slices.Sorted(maps.Keys(said)) {
		if words[text] == "" && page.Words[text] == "" {
			t.Errorf("%s: no Indonesian of %q", said[text], text)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(words)) {
		if _, ok := said[text]; !ok {
			t.Errorf("nothing says %q", text)
		}
	}
}

func noteGo(said map[string]string, path string, content []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), path, content, 0)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		function, ok := call.Fun.(*ast.SelectorExpr)
		text, literal := call.Args[len(call.Args)-1].(*ast.BasicLit)
		if ok && literal && text.Kind == token.STRING && slices.Contains(speaks, function.Sel.Name) {
			err = note(said, text.Value, path)
		}
		return err == nil
	})
	return err
}

func note(said map[string]string, literal, path string) error {
	text, err := strconv.Unquote(literal)
	if err == nil && text != "" {
		said[text] = path
	}
	return err
}
