package store

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	golden  = "STATEMENTS.md"
	preface = "# The composed statements\n\n" +
		"The transactions of movements, adjustments and exceptions as the database gets them, each composed of the fragments that its heading\n" +
		"names. The document is written by `go test ./gateway/store -run StatementsGolden -update`, and the tests fail where it is out of date. The\n" +
		"parsers of both engines judge it in `make verify`, and a test prepares each statement on the database.\n"
)

// TestStatementsGolden holds the document to what is composed.
func TestStatementsGolden(t *testing.T) {
	t.Parallel()
	got := []byte(preface)
	for _, p := range composed() {
		got = fmt.Appendf(got, "\n## %s\n\n```sql\n%s\n```\n", statements[p].name, statements[p].sql)
	}
	if *update {
		if err := os.WriteFile(golden, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the statements are not those of %s any more; look at the difference after go test ./gateway/store -run StatementsGolden -update", golden)
	}
}

// TestConstantsOfStatements: what Go and SQL both say is the same.
func TestConstantsOfStatements(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		`written_at - [a-z]+\.at > INTERVAL '([^']*)'`: fmt.Sprint(ledger.Late.Hours(), " hour"),
		`CLOCK_TIMESTAMP\(\) - INTERVAL '([^']*)'`:     fmt.Sprint(ledger.ClosesAfter.Hours(), " hours"),
		`changed\.sequence::INT8 \* ([0-9]+)`:          fmt.Sprint(movement.FirstVersion(1)),
	} {
		found := 0
		for _, files := range []string{"queries/*.sql", "fragments/*.sql"} {
			names, err := filepath.Glob(files)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				for _, match := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
					if found++; string(match[1]) != want {
						t.Errorf("%s has %s, want %s", name, match[0], want)
					}
				}
			}
		}
		if found == 0 {
			t.Errorf("no statement has %s", pattern)
		}
	}
}

// TestStatementsPrepare has the database read every statement.
func TestStatementsPrepare(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t, MigrationsDigest(), func(ctx context.Context, url string) error {
		return Migrate(ctx, url, slog.New(slog.DiscardHandler))
	})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, s := range statements {
		prepared, err := conn.Prepare(t.Context(), s.name, s.sql)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
		} else if len(prepared.ParamOIDs) != len(s.values) || len(prepared.Fields) == 0 {
			t.Errorf("%s: %d parameters for %d values, %d columns", s.name, len(prepared.ParamOIDs), len(s.values), len(prepared.Fields))
		}
	}
	if _, err := conn.Prepare(t.Context(), "", "SELECT nothing FROM nowhere"); err == nil {
		t.Error("it prepares anything")
	}
}

var writing = regexp.MustCompile(`\b(INSERT INTO|UPDATE|DELETE FROM) ([a-z_]+)`)

// TestNoTableTwice: CockroachDB refuses a statement that writes a table twice.
func TestNoTableTwice(t *testing.T) {
	t.Parallel()
	if len(statements) != len(composed()) {
		t.Errorf("%d statements of %d", len(statements), len(composed()))
	}
	for _, s := range statements {
		tables := map[string]bool{}
		for _, found := range writing.FindAllStringSubmatch(s.sql, -1) {
			if tables[found[2]] {
				t.Errorf("%s writes %s twice", s.name, found[2])
			}
			tables[found[2]] = true
		}
		if len(tables) == 0 {
			t.Errorf("%s writes nothing", s.name)
		}
	}
}

// TestOneInsertATable holds what one INSERT for each table means, over fragments and
// queries, and that every fragment and parameter is in use.
func TestOneInsertATable(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	inserts, used := map[string][]string{}, map[string]bool{}
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "migrations/") {
			continue
		}
		for _, found := range writing.FindAllStringSubmatch(string(source), -1) {
			if found[1] == "INSERT INTO" {
				inserts[found[2]] = append(inserts[found[2]], name)
			}
		}
		if strings.HasPrefix(name, "fragments/") {
			for _, parameter := range named.FindAllString(string(source), -1) {
				used[parameter[1:]] = true
			}
			if !slices.ContainsFunc(fragments, func(f struct{ file, as, returns string }) bool { return "fragments/"+f.file+".sql" == name }) {
				t.Errorf("no statement can have %s", name)
			}
		}
	}
	if len(inserts) < 10 {
		t.Fatal("found only", inserts)
	}
	for table, places := range inserts {
		if len(places) > 1 {
			t.Errorf("%s is inserted into by %v", table, places)
		}
	}
	for name := range maps.Keys(parameters) {
		if !used[name] {
			t.Errorf("no fragment has @%s", name)
		}
	}
}

func TestAStatementThatNobodyComposed(t *testing.T) {
	t.Parallel()
	if err := (&writer{}).run(t.Context(), moveMovement, &write{}); !errors.Is(err, errNotComposed) {
		t.Error(err)
	}
}
