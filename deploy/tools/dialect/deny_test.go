package main

import (
	"strings"
	"testing"
)

// refused checks that a judgement is exactly one finding, at a line, for a reason.
func refused(t *testing.T, findings []finding, line int, reason string) {
	t.Helper()
	if len(findings) != 1 {
		t.Fatalf("findings = %v, want one about %q", findings, reason)
	}
	if got := findings[0]; got.line != line || !strings.Contains(got.text, reason) {
		t.Errorf("finding = %+v, want line %d and %q", got, line, reason)
	}
}

func TestDeniedInQueries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sql, reason string }{
		"advisory lock":        {"SELECT pg_advisory_xact_lock($1)", "advisory"},
		"advisory lock, tried": {"SELECT pg_catalog.pg_try_advisory_lock(1)", "advisory"},
		"next value":           {"INSERT INTO t (id) VALUES (nextval('s'))", "made in Go"},
		"row id":               {"SELECT unique_rowid()", "made in Go"},
		"listen":               {"LISTEN changes", "LISTEN"},
		"notify":               {"NOTIFY changes, 'x'", "NOTIFY"},
		"notify by function":   {"SELECT pg_notify('changes', 'x')", "NOTIFY"},
		"merge":                {"MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = 1", "MERGE"},
		"merge behind a with":  {"WITH s AS (SELECT 1 AS a) MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE", "MERGE"},
		"deferred":             {"SET CONSTRAINTS ALL DEFERRED", "at once"},
		"do block":             {"DO $$ BEGIN DELETE FROM t; END $$", "DO blocks"},
		"division":             {"SELECT a / b FROM t", "fraction"},
		"star":                 {"SELECT * FROM t", "name the columns"},
		"star of a table":      {"SELECT t.* FROM t", "name the columns"},
		"star behind a comma":  {"SELECT a, * FROM t", "name the columns"},
		"star behind distinct": {"SELECT DISTINCT ON (a) * FROM t", "name the columns"},
		"returning star":       {"DELETE FROM t WHERE a = 1 RETURNING *", "name the columns"},
		"star in a subquery":   {"SELECT a FROM t WHERE EXISTS (SELECT * FROM s)", "name the columns"},
		"truncate":             {"truncate t", "TRUNCATE"},
		"begin":                {"BEGIN", "the store"},
		"schema":               {"CREATE TABLE IF NOT EXISTS t (a INT8)", "only reads and writes"},
		"not SQL at all":       {"SELEKT 1", "syntax error"},
		"only on CockroachDB":  {"UPSERT INTO t (a) VALUES (1)", "PostgreSQL's parser"},
		"only on PostgreSQL":   {"SELECT a FROM t WHERE a SIMILAR TO ANY ROWS FROM", "syntax error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := "-- name: One :one\n/* a\ncomment */ " + c.sql + ";\n\n-- name: Two :one\nSELECT 1;\n"
			refused(t, judgeQueries("q.sql", src), 3, c.reason)
		})
	}
}

func TestPortableQueriesPass(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{
		`SELECT count(*), sum(amount * 2), (a + b) * (c) FROM t WHERE b = 'a / * b' -- a / b, SELECT *`,
		`INSERT INTO t (a, "serial") VALUES (@a, @b), (@a, $1) ON CONFLICT (a) DO UPDATE SET b = excluded.b RETURNING a`,
		`UPDATE t SET state = sqlc.arg(state)::text WHERE id = ANY(@ids::uuid[]) AND state = @old AND doc @> '{}'`,
		`SELECT id FROM t WHERE bucket = $1 AND due > $2 ORDER BY due LIMIT $3 FOR UPDATE SKIP LOCKED`,
		`WITH due AS (SELECT id FROM t WHERE a IS DISTINCT FROM 1) DELETE FROM t USING due WHERE t.id = due.id`,
		`SELECT e'it''s \' / ' || $tag$ / LISTEN * $tag$ || "a/b" FROM t /* outer /* / */ / */`,
		`SELECT sequence, "end" FROM postings WHERE note = 'TRUNCATE t;'`,
	} {
		if got := judgeQueries("q.sql", sql+";"); len(got) > 0 {
			t.Errorf("%s\n%v", sql, got)
		}
	}
}

func TestEveryLineIsReported(t *testing.T) {
	t.Parallel()
	src := "SELECT a\nFROM t\nWHERE a = b / 2\nAND b = a / 2;\nSELECT\n*\nFROM t"
	var lines []int
	for _, f := range judgeQueries("q.sql", src) {
		lines = append(lines, f.line)
	}
	if len(lines) != 3 || lines[0] != 3 || lines[1] != 4 || lines[2] != 6 {
		t.Errorf("lines = %v, want 3, 4 and 6", lines)
	}
}

func TestTruncateInTests(t *testing.T) {
	t.Parallel()
	src := "package a\n\nfunc f() {\n\texec(`\n\t\tTRUNCATE orders`)\n\texec(\"truncate  table orders\")\n" +
		"\ttime.Truncate(1) // TRUNCATE\n\tlog(\"we truncate the text\")\n}\n"
	var lines []int
	for _, f := range judgeTest("a_test.go", src) {
		lines = append(lines, f.line)
	}
	if len(lines) != 2 || lines[0] != 5 || lines[1] != 6 {
		t.Errorf("lines = %v, want 5 and 6", lines)
	}
}

func TestAPanicOfTheParserIsARefusal(t *testing.T) {
	t.Parallel()
	src := "DO $$ BEGIN DELETE FROM t; END $$"
	if _, err := parse(split(src, lex(src))[0]); err == nil {
		t.Error("the parser accepts a DO block")
	}
}
