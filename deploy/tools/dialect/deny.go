package main

import (
	"go/scanner"
	gotoken "go/token"
	"regexp"
	"slices"
	"strings"
)

// A denial is a construct that one of the engines lacks, ignores or gives
// another meaning. It looks at a statement's tokens from place i on.
type denial struct {
	reason string
	found  func(tokens []token, i int) bool
}

var denials = []denial{
	{"advisory locks do nothing on CockroachDB", func(ts []token, i int) bool {
		return ts[i].kind == word && strings.HasPrefix(strings.Replace(ts[i].value, "_TRY", "", 1), "PG_ADVISORY")
	}},
	{"SERIAL and sequences: ids are made in Go", func(ts []token, i int) bool {
		return ts[i].is("SERIAL", "SERIAL2", "SERIAL4", "SERIAL8", "SMALLSERIAL", "BIGSERIAL",
			"NEXTVAL", "CURRVAL", "SETVAL", "LASTVAL", "UNIQUE_ROWID", "UNORDERED_UNIQUE_ROWID") ||
			ts[i].is("IDENTITY") && before(ts, i).is("AS") ||
			ts[i].is("SEQUENCE") && before(ts, i).is("CREATE", "ALTER", "DROP", "TEMP", "TEMPORARY")
	}},
	{"LISTEN and NOTIFY do not exist on CockroachDB", func(ts []token, i int) bool {
		return i == 0 && ts[i].is("LISTEN", "UNLISTEN", "NOTIFY") || ts[i].is("PG_NOTIFY")
	}},
	{"MERGE does not exist on CockroachDB", func(ts []token, i int) bool {
		return ts[i].is("MERGE") && after(ts, i).is("INTO")
	}},
	{"constraints are checked at once: CockroachDB cannot defer them", func(ts []token, i int) bool {
		return ts[i].is("DEFERRABLE", "DEFERRED")
	}},
	{"DO blocks panic CockroachDB's parser", func(ts []token, i int) bool {
		return i == 0 && ts[i].is("DO")
	}},
	{"/ on integers is a fraction on CockroachDB and a whole number on PostgreSQL", func(ts []token, i int) bool {
		return ts[i].is("/")
	}},
	{"SELECT * and RETURNING * change with the table: name the columns", star},
	{"TRUNCATE is a schema change on CockroachDB", func(ts []token, i int) bool {
		return i == 0 && ts[i].is("TRUNCATE")
	}},
	{"transactions are begun and ended by the store, never by a file", func(ts []token, i int) bool {
		return i == 0 && ts[i].is("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "LOCK")
	}},
}

func before(ts []token, i int) token { return at(ts, i-1) }
func after(ts []token, i int) token  { return at(ts, i+1) }

// at answers a token, or one that is nothing where the statement has none.
func at(ts []token, i int) token {
	if i < 0 || i >= len(ts) {
		return token{kind: comment}
	}
	return ts[i]
}

// star finds the star that stands for all columns. One that multiplies stands
// behind a value, and the one of count(*) behind a parenthesis.
func star(ts []token, i int) bool {
	if !ts[i].is("*") {
		return false
	}
	if before(ts, i).is("SELECT", "DISTINCT", "ALL", "RETURNING", ",", ".") {
		return true
	}
	next := after(ts, i)
	return before(ts, i).is(")") && (next.kind == comment || next.is("FROM", ",", ")"))
}

func deny(file string, s statement) []finding {
	var out []finding
	for i, t := range s.tokens {
		for _, d := range denials {
			if d.found(s.tokens, i) {
				out = append(out, finding{file, t.line, d.reason})
			}
		}
	}
	return out
}

// truncates looks for the statement as it is written in SQL; the word in
// ordinary lower case is English.
var truncates = regexp.MustCompile(`\bTRUNCATE\b|\btruncate\s+table\b`)

// judgeTest refuses TRUNCATE in a test's strings: tests run in parallel, each in
// a database of its own, and have nothing to empty.
func judgeTest(file, src string) []finding {
	var s scanner.Scanner
	files := gotoken.NewFileSet()
	f := files.AddFile(file, files.Base(), len(src))
	s.Init(f, []byte(src), nil, 0)
	var lines []int
	for {
		pos, kind, literal := s.Scan()
		if kind == gotoken.EOF {
			break
		}
		if kind != gotoken.STRING {
			continue
		}
		for _, place := range truncates.FindAllStringIndex(literal, -1) {
			lines = append(lines, f.Line(pos)+strings.Count(literal[:place[0]], "\n"))
		}
	}
	var out []finding
	for _, line := range slices.Compact(lines) {
		out = append(out, finding{file, line, "TRUNCATE in a test: take a database of its own instead"})
	}
	return out
}
