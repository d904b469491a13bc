// Package cockroach_test holds the optional migrations for CockroachDB, and the table of all tables in deploy/SCALE.md, to the tables
// that the gateway's migrations make. Where the tests run on CockroachDB it applies each optional migration twice, and takes it back. It
// must not decide what a table is for: that stands in SCALE.md, beside what the code does with it.
package cockroach_test

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/cockroach-go/v2/testserver"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// table is what the migrations say of a table.
type table struct {
	key     string
	columns map[string]bool
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	created    = regexp.MustCompile(`(?s)CREATE TABLE IF NOT EXISTS (\w+) \((.*?)\n\)`)
	primaryKey = regexp.MustCompile(`PRIMARY KEY \(([^)]*)\)`)
	column     = regexp.MustCompile(`(?m)^    ([a-z_]+) [A-Z]`)
	indexed    = regexp.MustCompile(`CREATE (?:UNIQUE )?INDEX (?:CONCURRENTLY )?IF NOT EXISTS (\w+) ON (\w+)`)
)

// schema are the tables that the migrations make, and the indexes as CockroachDB names them.
func schema(t *testing.T) (tables map[string]table, indexes map[string]bool) {
	t.Helper()
	files, err := filepath.Glob("../../gateway/store/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d migrations, %v", len(files), err)
	}
	tables, indexes = map[string]table{}, map[string]bool{}
	for _, file := range files {
		text := read(t, file)
		for _, found := range created.FindAllStringSubmatch(text, -1) {
			key := primaryKey.FindStringSubmatch(found[2])
			if key == nil {
				t.Fatalf("%s: %s has no primary key that this test can read", file, found[1])
			}
			columns := map[string]bool{}
			for _, name := range column.FindAllStringSubmatch(found[2], -1) {
				columns[name[1]] = true
			}
			tables[found[1]] = table{key[1], columns}
		}
		if strings.Count(text, "CREATE TABLE") != len(created.FindAllString(text, -1)) {
			t.Errorf("%s makes a table in a form that this test can't read", file)
		}
		for _, found := range indexed.FindAllStringSubmatch(text, -1) {
			indexes[found[2]+"@"+found[1]] = true
		}
	}
	return tables, indexes
}

// tableRow is a row of SCALE.md's table: name, key, whether it is partitioned by merchant, what it grows with, how hot it is, who removes
// rows, and its locality.
var tableRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([a-z_, ]+) \\| (yes|no) \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\| (GLOBAL|primary) \\|$")

// TestEveryTableStandsInThePlan: a table that a migration adds needs a line in SCALE.md, which tells its key and what the optional
// migrations do to it.
func TestEveryTableStandsInThePlan(t *testing.T) {
	t.Parallel()
	tables, _ := schema(t)
	global, zoned, forgotten := named(t, "regions.sql"), named(t, "zones.sql"), named(t, "ttl.sql")
	seen := map[string]int{}
	for _, row := range tableRow.FindAllStringSubmatch(read(t, "../SCALE.md"), -1) {
		name, key, byMerchant, hot, removed, locality := row[1], row[2], row[3], row[5], row[6], row[7]
		seen[name]++
		made, is := tables[name]
		if !is {
			t.Errorf("SCALE.md has a line of %s, which no migration makes", name)
			continue
		}
		if key != made.key {
			t.Errorf("%s: the key of SCALE.md is (%s), that of the migration (%s)", name, key, made.key)
		}
		for _, x := range []struct {
			what       string
			says, does bool
		}{
			{"is partitioned by merchant, as its key begins", byMerchant == "yes", strings.HasPrefix(made.key, "merchant_id")},
			{"is GLOBAL, as regions.sql makes it", locality == "GLOBAL", global[name]},
			{"is in zones.sql", strings.Contains(hot, "zones.sql"), zoned[name]},
			{"is in ttl.sql", strings.Contains(removed, "ttl.sql"), forgotten[name]},
		} {
			if x.says != x.does {
				t.Errorf("%s %s: SCALE.md says %v, and it is %v", name, x.what, x.says, x.does)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		if seen[name] != 1 {
			t.Errorf("%s has %d lines in the table of deploy/SCALE.md, want one", name, seen[name])
		}
	}
}

var altered = regexp.MustCompile(`(?m)^ALTER (?:TABLE (\w+)|INDEX (\w+)@(\w+)) `)

// named are the tables that a file alters.
func named(t *testing.T, file string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, found := range altered.FindAllStringSubmatch(read(t, file), -1) {
		names[found[1]+found[2]] = true
	}
	if len(names) == 0 {
		t.Fatalf("%s alters nothing that this test can read", file)
	}
	return names
}

// TestOptionalMigrationsNameWhatThereIs: tables, indexes and columns are those of the migrations, and an undo is about the same ones.
func TestOptionalMigrationsNameWhatThereIs(t *testing.T) {
	t.Parallel()
	tables, indexes := schema(t)
	for _, file := range []string{"regions.sql", "zones.sql", "ttl.sql"} {
		for _, found := range altered.FindAllStringSubmatch(read(t, file), -1) {
			if index := found[2] + "@" + found[3]; found[2] != "" && !indexes[index] {
				t.Errorf("%s names the index %s, which no migration makes", file, index)
			}
			if name := found[1] + found[2]; tables[name].key == "" {
				t.Errorf("%s names the table %s, which no migration makes", file, name)
			}
		}
		if does, undoes := named(t, file), named(t, filepath.Join("undo", file)); !maps.Equal(does, undoes) {
			t.Errorf("%s is about %v, and its undo about %v", file, slices.Sorted(maps.Keys(does)), slices.Sorted(maps.Keys(undoes)))
		}
	}
}

var expiry = regexp.MustCompile(`(?m)^ALTER TABLE (\w+) SET \(ttl_expiration_expression = '\(\((?:GREATEST\()?([a-z_, ]+)\)? AT TIME ZONE ''UTC''\) \+ INTERVAL ''(\d+) days?''\) AT TIME ZONE ''UTC'''`)

// TestRowsOutliveTheGatewaysOwnTerm: the database removes nothing that the gateway still keeps.
func TestRowsOutliveTheGatewaysOwnTerm(t *testing.T) {
	t.Parallel()
	tables, _ := schema(t)
	found := expiry.FindAllStringSubmatch(read(t, "ttl.sql"), -1)
	if got := len(named(t, "ttl.sql")); got != len(found) {
		t.Fatalf("%d of the %d tables in ttl.sql have an expression that this test can read", len(found), got)
	}
	const untilItEnds = time.Duration(0) // the row says when it is over
	keeps := map[string]time.Duration{
		"decision_log": decision.Kept, "request_log": decision.Kept, "merchant_records": decision.Kept,
		"query_cache": 24 * time.Hour, "sessions": untilItEnds, "invitations": untilItEnds, "resets": untilItEnds,
	}
	for _, x := range found {
		for name := range strings.SplitSeq(x[2], ", ") {
			if !tables[x[1]].columns[name] {
				t.Errorf("%s has no column %s", x[1], name)
			}
		}
		if _, known := keeps[x[1]]; !known {
			t.Errorf("nobody has said how long the gateway keeps %s", x[1])
		}
		if keeps[x[1]] == untilItEnds && x[2] != "expires_at" {
			t.Errorf("%s does not say when its rows are over: it goes by %s", x[1], x[2])
		}
		days, _ := strconv.Atoi(x[3]) // digits
		if least := keeps[x[1]] + 24*time.Hour; time.Duration(days)*24*time.Hour < least {
			t.Errorf("%s loses rows after %d days, want %v at least: a day more than the gateway's term", x[1], days, least)
		}
	}
	for name := range tables {
		for _, never := range []string{"movements", "history", "ledger_", "audit", "claims", "overrides", "exceptions", "statement", "callback", "usage", "replicas"} {
			if strings.HasPrefix(name, never) && named(t, "ttl.sql")[name] {
				t.Errorf("%s is in ttl.sql: money, limits, histories and what a recovery reads never expire", name)
			}
		}
	}
}

// TestOptionalMigrationsApply applies each twice, and takes it back, on a cluster of three nodes in three regions.
func TestOptionalMigrationsApply(t *testing.T) {
	t.Parallel()
	if dbtest.Engine(t) != database.CockroachDB {
		t.Skip("localities, zones and row TTL are CockroachDB's alone: make test-cockroach applies them")
	}
	binary, err := database.CockroachBinary(os.Getenv)
	if err != nil {
		t.Skipf("three nodes need a binary of CockroachDB on this machine: %v", err)
	}
	server, err := testserver.NewTestServer(testserver.CockroachBinaryPathOpt(binary), testserver.ThreeNodeOpt(),
		testserver.LocalityFlagsOpt("region=region-1", "region=region-2", "region=region-3"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	url := server.PGURL()
	execute(t, url.String(), "CREATE DATABASE IF NOT EXISTS gerbang")
	url.Path = "/gerbang"
	if err := store.Migrate(t.Context(), url.String(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	files := []string{"regions.sql", "zones.sql", "ttl.sql"}
	for _, file := range slices.Concat(files, files, []string{"undo/ttl.sql", "undo/zones.sql", "undo/regions.sql"}) {
		execute(t, url.String(), statements(t, file)...)
	}
	for _, file := range []string{"undo/ttl.sql", "undo/zones.sql"} { // regions are gone: there is nothing to be taken back of them
		execute(t, url.String(), statements(t, file)...)
	}
	if err := store.Migrate(t.Context(), url.String(), slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("the schema is not the gateway's any more: %v", err)
	}
}

// statements are those of a file: none has a semicolon in a text.
func statements(t *testing.T, file string) (all []string) {
	t.Helper()
	var text strings.Builder
	for line := range strings.Lines(read(t, file)) {
		if !strings.HasPrefix(line, "--") {
			text.WriteString(line)
		}
	}
	for one := range strings.SplitSeq(text.String(), ";") {
		if one = strings.TrimSpace(one); one != "" {
			all = append(all, one)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no statements", file)
	}
	return all
}

func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}
