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

// Faults fails a test where a text by which one of some Go files refuses something has no Indonesian: those of fault.New,
// Newf and Invalid, with %s for each value. Given are those that are made otherwise. Words that refuse nothing fail it, too.
func Faults(t *testing.T, files []string, words map[string]string, given ...string) {
	t.Helper()
	said := map[string]string{}
	for _, text := range given {
		said[text] = "given"
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		before := len(said)
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if text := refusal(call); text != "" && text != "%s" {
					said[text] = path
				}
			}
			return true
		})
		if len(said) == before {
			t.Errorf("%s refuses nothing that is not said elsewhere: leave it out", path)
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
