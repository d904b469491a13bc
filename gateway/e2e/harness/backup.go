package harness

import (
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// Backup is a dump of a database, as an operator makes one.
type Backup struct{ file string }

// BackUp dumps a database.
func BackUp(t testing.TB, databaseURL string) Backup {
	t.Helper()
	b := Backup{filepath.Join(t.TempDir(), "gerbang.dump")}
	postgres(t, "pg_dump", "--format=custom", "--file="+b.file, databaseURL)
	return b
}

// Restore restores the dump into a database of its own, and returns its URL.
func (b Backup) Restore(t testing.TB) string {
	t.Helper()
	databaseURL := dbtest.New(t, "", nil)
	postgres(t, "pg_restore", "--no-owner", "--exit-on-error", "--dbname="+databaseURL, b.file)
	return databaseURL
}

// postgres runs one of PostgreSQL's own programs, which come with its server.
func postgres(t testing.TB, name string, arguments ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), postgresProgram(t, name), arguments...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func postgresProgram(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		places, globErr := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
		if len(places) == 0 {
			t.Fatalf("there is no %s, which comes with PostgreSQL's server: put its folder into PATH (%v, %v)", name, err, globErr)
		}
		slices.Sort(places)
		path = places[len(places)-1]
	}
	return path
}
