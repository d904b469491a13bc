package main

import (
	"strings"
	"testing"
	"testing/fstest"
)

const head = "-- +goose NO TRANSACTION\n-- +goose Up\n"

func TestRefusedMigrations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql    string
		line   int
		reason string
	}{
		"no annotation":         {"CREATE TABLE IF NOT EXISTS t (a INT8);", 1, "+goose Up"},
		"in a transaction":      {"-- +goose Up\nCREATE TABLE IF NOT EXISTS t (a INT8);", 1, "NO TRANSACTION"},
		"empty":                 {head, 1, "nothing stands"},
		"create":                {head + "CREATE TABLE t (a INT8);", 3, "CREATE needs IF NOT EXISTS"},
		"create index":          {head + "CREATE UNIQUE INDEX i ON t (a);", 3, "CREATE needs IF NOT EXISTS"},
		"create type":           {head + "CREATE TYPE c AS ENUM ('a');", 3, "CREATE needs IF NOT EXISTS"},
		"drop":                  {head + "DROP TABLE t;", 3, "DROP needs IF EXISTS"},
		"add column":            {head + "ALTER TABLE t\n\tADD COLUMN b INT8;", 4, "ADD COLUMN needs"},
		"add, column left out":  {head + "ALTER TABLE t ADD b INT8;", 3, "ADD COLUMN needs"},
		"drop column":           {head + "ALTER TABLE t DROP COLUMN b;", 3, "DROP COLUMN needs"},
		"drop constraint":       {head + "ALTER TABLE t DROP CONSTRAINT b;", 3, "DROP CONSTRAINT needs"},
		"two changes":           {head + "CREATE TABLE IF NOT EXISTS t (a INT8);\nCREATE INDEX IF NOT EXISTS i ON t (a);", 4, "second schema change"},
		"another constraint":    {head + "ALTER TABLE t DROP CONSTRAINT IF EXISTS b;\nALTER TABLE t ADD CONSTRAINT c CHECK (a > 0);", 4, "second schema change"},
		"another index":         {head + "DROP INDEX CONCURRENTLY IF EXISTS i;\nCREATE INDEX CONCURRENTLY IF NOT EXISTS j ON t (a);", 4, "second schema change"},
		"an index, not beside":  {head + "DROP INDEX IF EXISTS i;\nCREATE INDEX IF NOT EXISTS i ON t (a);", 4, "second schema change"},
		"another table's":       {head + "ALTER TABLE t DROP CONSTRAINT IF EXISTS b;\nALTER TABLE s ADD CONSTRAINT b CHECK (a > 0);", 4, "second schema change"},
		"schema and rows":       {head + "CREATE TABLE IF NOT EXISTS t (a INT8);\nINSERT INTO t (a) VALUES (1);", 3, "change of rows"},
		"rights":                {head + "GRANT SELECT ON t TO reader;", 3, "rights"},
		"serial":                {head + "CREATE TABLE IF NOT EXISTS t (a BIGSERIAL);", 3, "made in Go"},
		"identity":              {head + "CREATE TABLE IF NOT EXISTS t (a INT8 GENERATED ALWAYS AS IDENTITY);", 3, "made in Go"},
		"sequence":              {head + "CREATE SEQUENCE IF NOT EXISTS s;", 3, "made in Go"},
		"deferrable":            {head + "CREATE TABLE IF NOT EXISTS t (\n\ta INT8 REFERENCES s (a) DEFERRABLE);", 4, "at once"},
		"do":                    {head + "-- +goose StatementBegin\nDO $$ BEGIN DELETE FROM t; END $$;\n-- +goose StatementEnd", 4, "DO blocks"},
		"truncate":              {head + "TRUNCATE t;", 3, "TRUNCATE"},
		"only on PostgreSQL":    {head + "CREATE TABLE IF NOT EXISTS t (a INT8, EXCLUDE USING gist (a WITH =));", 3, "parser"},
		"the way back, as well": {head + "CREATE TABLE IF NOT EXISTS t (a INT8);\n-- +goose Down\nDROP TABLE t;", 5, "DROP needs IF EXISTS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, judgeMigration("1.sql", c.sql), c.line, c.reason)
		})
	}
}

func TestBaseline(t *testing.T) {
	t.Parallel()
	const (
		table = "CREATE TABLE IF NOT EXISTS t (a INT8);\n"
		row   = "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO NOTHING;\n"
	)
	if got := judgeMigration("store/migrations/"+baseline, head+table+"CREATE INDEX IF NOT EXISTS i ON t (a);\n"+row+table); len(got) > 0 {
		t.Error(got)
	}
	refused(t, judgeMigration("store/migrations/00501_next.sql", head+table+row), 3, "change of rows")
	for name, c := range map[string]struct {
		sql    string
		line   int
		reason string
	}{
		"in a transaction":          {"-- +goose Up\n" + table, 1, "NO TRANSACTION"},
		"empty":                     {head, 1, "nothing stands"},
		"a table that may be there": {head + table + "CREATE TABLE s (a INT8);", 4, "CREATE needs IF NOT EXISTS"},
		"a row that may be there":   {head + table + "INSERT INTO t (a) VALUES (1);", 4, "ON CONFLICT DO NOTHING"},
		"a row that is changed":     {head + table + "INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET a = 2;", 4, "ON CONFLICT DO NOTHING"},
		"a change":                  {head + table + "ALTER TABLE t ADD COLUMN IF NOT EXISTS b INT8;", 4, "only creates"},
		"an update":                 {head + table + "UPDATE t SET a = 1;", 4, "only creates"},
		"a drop":                    {head + table + "DROP TABLE IF EXISTS t;", 4, "only creates"},
		"what the engines lack":     {head + table + "CREATE SEQUENCE IF NOT EXISTS s;", 4, "made in Go"},
		"a way back":                {head + table + "-- +goose Down\nDROP TABLE IF EXISTS t;", 5, "no way back"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, judgeMigration(baseline, c.sql), c.line, c.reason)
		})
	}
}

func TestGoodMigrationsPass(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		head + "CREATE TABLE IF NOT EXISTS t (\n\ta UUID PRIMARY KEY, -- an id; made in Go\n\tb JSONB NOT NULL,\n\tCHECK (b <> '{}'));\n-- +goose Down\nDROP TABLE IF EXISTS t;\n",
		head + "CREATE UNIQUE INDEX IF NOT EXISTS i ON t (a, b) INCLUDE (c) WHERE c > 0;",
		head + "ALTER TABLE t ADD COLUMN IF NOT EXISTS b INT8, DROP COLUMN IF EXISTS c, ALTER COLUMN d DROP NOT NULL;",
		head + "ALTER TABLE t ADD CONSTRAINT positive CHECK (a > 0);",
		head + "DROP INDEX CONCURRENTLY IF EXISTS i;\nCREATE INDEX CONCURRENTLY IF NOT EXISTS i ON t (a);",
		head + "UPDATE t SET a = 1 WHERE a IS NULL;\nDELETE FROM t WHERE a = 2;",
	} {
		if got := judgeMigration("1.sql", sql); len(got) > 0 {
			t.Errorf("%s\n%v", sql, got)
		}
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	good := fstest.MapFS{
		"store/migrations/1.sql":     {Data: []byte(head + "CREATE TABLE IF NOT EXISTS t (a INT8);")},
		"store/queries/t.sql":        {Data: []byte("SELECT a FROM t;")},
		"store/fragments/t.sql":      {Data: []byte("-- From what changed.\nINSERT INTO t (a) SELECT @a FROM changed")},
		"store/STATEMENTS.md":        {Data: []byte("# All\n\n## One\n\n```sql\nSELECT a FROM t\n```\n\n```sh\n;;\n```\n\n```sql\nSELECT 2\n```\n")},
		"store/README.md":            {Data: []byte("```sql\nSELECT *\n```\n")},
		"store/store_test.go":        {Data: []byte("package store\n")},
		"store/testdata/bad.sql":     {Data: []byte("SELECT *")},
		"other/go.mod":               {},
		"other/bad_test.go":          {Data: []byte("package other\nconst sql = `TRUNCATE t`\n")},
		"node_modules/x/y.sql":       {Data: []byte("SELECT *")},
		".gerbang/leftovers/bad.sql": {Data: []byte("SELECT *")},
	}
	findings, counted, err := judgeTree(good)
	if err != nil || len(findings) > 0 || counted != (counts{migrations: 1, queries: 1, statements: 2, tests: 1}) {
		t.Errorf("findings %v, counted %+v, error %v", findings, counted, err)
	}
	good["store/STATEMENTS.md"] = &fstest.MapFile{Data: []byte("```sql\nSELECT 1\n```\n\n```sql\nSELECT a,\n    * FROM t\n```\n")}
	findings, _, _ = judgeTree(good)
	refused(t, findings, 7, "name the columns")
	delete(good, "store/STATEMENTS.md")
	good["deploy/seed.sql"] = &fstest.MapFile{Data: []byte("SELECT 1;")}
	findings, _, _ = judgeTree(good)
	refused(t, findings, 1, "nothing judges it")
}

func TestATreeWithoutSQLIsAFailure(t *testing.T) {
	t.Parallel()
	var out, errOut strings.Builder
	if code := run(t.TempDir(), &out, &errOut); code != 2 || !strings.Contains(errOut.String(), "no migrations") {
		t.Errorf("exit code %d, said %q", code, errOut.String())
	}
}
