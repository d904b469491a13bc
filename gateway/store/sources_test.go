package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestTestsAreQuickAndAlone refuses tests that wait for time to pass, and tests
// that empty tables: each has a database of its own.
func TestTestsAreQuickAndAlone(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	empties := regexp.MustCompile(`(?i)["` + "`" + `\s]trunc` + `ate\s`)
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if empties.Match(source) {
			t.Errorf("%s empties a table", name)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "time" && s.Sel.Name == "Sleep" {
				t.Errorf("%s sleeps", name)
			}
			return true
		})
	}
}
