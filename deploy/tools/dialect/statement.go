package main

import (
	"fmt"
	"strings"

	"github.com/cockroachdb/cockroachdb-parser/pkg/sql/parser"
	"github.com/cockroachdb/cockroachdb-parser/pkg/sql/sem/tree"
	pg_query "github.com/wasilibs/go-pgquery"
)

// A statement is the tokens between two semicolons, without comments.
type statement struct {
	tokens []token
	text   string
}

func (s statement) line() int { return s.tokens[0].line }

// split cuts a file at its semicolons. Those inside strings and dollar quotes
// are no symbols, so goose's StatementBegin and StatementEnd need no care.
func split(src string, tokens []token) []statement {
	var out []statement
	var current []token
	flush := func() {
		if len(current) > 0 {
			out = append(out, statement{tokens: current, text: readable(src, current)})
		}
		current = nil
	}
	for _, t := range tokens {
		switch {
		case t.is(";"):
			flush()
		case t.kind != comment:
			current = append(current, t)
		}
	}
	flush()
	return out
}

// readable is the statement as an engine gets it: sqlc sends @name as a number.
func readable(src string, tokens []token) string {
	var b strings.Builder
	numbers := map[string]int{}
	last := tokens[0].start
	for _, t := range tokens {
		if t.kind != parameter {
			continue
		}
		if numbers[t.value] == 0 {
			numbers[t.value] = len(numbers) + 1
		}
		fmt.Fprintf(&b, "%s$%d", src[last:t.start], numbers[t.value])
		last = t.end
	}
	b.WriteString(src[last:tokens[len(tokens)-1].end])
	return b.String()
}

// parse asks CockroachDB's parser. It panics on some statements that it does
// not know, which is a refusal like any other.
func parse(s statement) (parsed tree.Statement, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			parsed, err = nil, fmt.Errorf("the parser panics: %v", cause)
		}
	}()
	one, err := parser.ParseOne(s.text)
	if err != nil {
		return nil, err
	}
	return one.AST, nil
}

// judged is a statement that passed the deny list and the parsers, with its type.
type judged struct {
	statement
	class tree.StatementType
}

// judge applies what holds for every statement: the deny list and both parsers. What the deny list names is not
// shown to the parser, whose complaint would only say it worse.
func judge(file string, statements []statement) (passed []judged, findings []finding) {
	for _, s := range statements {
		if denied := deny(file, s); len(denied) > 0 {
			findings = append(findings, denied...)
			continue
		}
		parsed, err := parse(s)
		if err != nil {
			findings = append(findings, finding{file, s.line(), "CockroachDB's parser: " + strings.TrimSpace(err.Error())})
			continue
		}
		if _, err := pg_query.ParseToJSON(s.text); err != nil {
			findings = append(findings, finding{file, s.line(), "PostgreSQL's parser: " + strings.TrimSpace(err.Error())})
			continue
		}
		passed = append(passed, judged{s, parsed.StatementType()})
	}
	return passed, findings
}

// judgeQueries judges a file of queries for sqlc: data only, no schema.
func judgeQueries(file, src string) []finding {
	passed, findings := judge(file, split(src, lex(src)))
	for _, s := range passed {
		if s.class != tree.TypeDML {
			findings = append(findings, finding{file, s.line(), "a query only reads and writes rows; a schema changes in a migration"})
		}
	}
	return findings
}
