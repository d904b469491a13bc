// Command dialect refuses SQL that does not mean the same on CockroachDB and on
// PostgreSQL. It owns three judgements on every .sql file of a tree:
// both engines' own parsers read it, no construct of the deny list is in it, and
// a migration is one repeatable step, but for the first schema, which is many. It
// must not open a database, and it judges text only: what two engines plan or lock
// is for the tests that run on both.
//
// Usage:
//
//	go -C deploy/tools/dialect run . -root ROOT
//
// Files in a directory named migrations are migrations for goose, those in one
// named queries are queries for sqlc, and those in one named fragments are composed to
// statements, which a document named STATEMENTS.md writes out. Those in one named cockroach
// are for CockroachDB alone, whose parser alone reads them. Any other .sql file is
// refused, since nothing would judge it. Skipped are hidden directories, those named testdata,
// and other modules.
package main

import (
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// A finding is one reason to refuse a file.
type finding struct {
	file string
	line int
	text string
}

// counts says how much was judged, so that a gate that looks in the wrong place
// cannot pass by finding nothing.
type counts struct{ migrations, optional, queries, statements, tests int }

func main() {
	root := flag.String("root", ".", "top directory of the tree to judge")
	flag.Parse()
	os.Exit(run(*root, os.Stdout, os.Stderr))
}

func run(root string, out, errOut io.Writer) int {
	findings, counted, err := judgeTree(os.DirFS(root))
	if err != nil {
		fmt.Fprintln(errOut, "dialect:", err)
		return 2
	}
	for _, f := range findings {
		fmt.Fprintf(errOut, "%s:%d: %s\n", f.file, f.line, f.text)
	}
	fmt.Fprintf(out, "dialect: %d migrations, %d optional, %d query files, %d composed statements, %d test files, %d findings\n",
		counted.migrations, counted.optional, counted.queries, counted.statements, counted.tests, len(findings))
	if counted.migrations == 0 || counted.queries == 0 || counted.statements == 0 {
		fmt.Fprintln(errOut, "dialect: no migrations, no queries or no composed statements below", root)
		return 2
	}
	if len(findings) > 0 {
		return 1
	}
	return 0
}

func judgeTree(tree fs.FS) ([]finding, counts, error) {
	var findings []finding
	var counted counts
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && skipped(tree, name):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".sql") && !strings.HasSuffix(name, "_test.go") && path.Base(name) != document:
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		findings = append(findings, judgeFile(name, string(text), &counted)...)
		return nil
	})
	return findings, counted, err
}

func skipped(tree fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	name := path.Base(dir)
	_, err := fs.Stat(tree, dir+"/go.mod")
	return err == nil || name == "testdata" || name == "node_modules" || name[0] == '.' || name[0] == '_'
}

func judgeFile(name, text string, counted *counts) []finding {
	dirs := strings.Split(name, "/")
	switch {
	case strings.HasSuffix(name, "_test.go"):
		counted.tests++
		return judgeTest(name, text)
	case slices.Contains(dirs, "migrations"):
		counted.migrations++
		return judgeMigration(name, text)
	case slices.Contains(dirs, "cockroach"):
		counted.optional++
		return judgeOptional(name, text)
	case path.Base(name) == document:
		src := fenced(text)
		counted.statements += len(split(src, lex(src)))
		return judgeQueries(name, src)
	case slices.Contains(dirs, "fragments"):
		return judgeQueries(name, text)
	case slices.Contains(dirs, "queries"):
		counted.queries++
		return judgeQueries(name, text)
	}
	return []finding{{name, 1, "SQL outside a directory named migrations, queries, fragments or cockroach: nothing judges it"}}
}

// document writes composed statements out, each fenced as SQL.
const document = "STATEMENTS.md"

// fenced is the SQL of a document, with its statements where they stand.
func fenced(text string) string {
	lines, inside := strings.Split(text, "\n"), false
	for i, line := range lines {
		switch {
		case line == "```sql":
			inside, lines[i] = true, ""
		case line == "```" && inside:
			inside, lines[i] = false, ";"
		case !inside:
			lines[i] = ""
		}
	}
	return strings.Join(lines, "\n")
}
