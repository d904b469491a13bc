package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
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

// TestTransactionsAreOnlyAdded refuses every statement that would change or take
// away what the ledger says.
func TestTransactionsAreOnlyAdded(t *testing.T) {
	t.Parallel()
	queries, err := filepath.Glob("queries/*.sql")
	if err != nil || len(queries) == 0 {
		t.Fatal(queries, err)
	}
	fragments, err := filepath.Glob("fragments/*.sql")
	if err != nil || len(fragments) == 0 {
		t.Fatal(fragments, err)
	}
	code, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	code = slices.DeleteFunc(code, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	changes := regexp.MustCompile(`(?is)(update|delete\s+from|trunc` + `ate(\s+table)?)\s+(only\s+)?"?ledger_transactions` +
		`|insert\s+into\s+ledger_transactions[^;]*?on\s+conflict[^;]*?do\s+update`)
	adds := 0
	for _, name := range slices.Concat(queries, fragments, code) {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if found := changes.Find(source); found != nil {
			t.Errorf("%s changes transactions: %s", name, found)
		}
		adds += strings.Count(string(source), "INSERT INTO ledger_transactions")
	}
	if adds != 1 || !changes.MatchString("UPDATE ledger_transactions SET") || !changes.MatchString("DELETE FROM\n ledger_transactions") {
		t.Errorf("found %d inserts", adds)
	}
}
