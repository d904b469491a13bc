package main

import (
	"path"
	"slices"
	"strings"

	"github.com/cockroachdb/cockroachdb-parser/pkg/sql/sem/tree"
)

// sections is a migration as goose reads it.
type sections struct {
	up, down      []token
	hasUp         bool
	noTransaction bool
}

// readSections cuts a file at goose's annotations, which are comments.
func readSections(tokens []token) sections {
	var out sections
	var current *[]token
	for _, t := range tokens {
		switch annotation(t) {
		case "UP":
			out.hasUp, current = true, &out.up
		case "DOWN":
			current = &out.down
		case "NO TRANSACTION":
			out.noTransaction = true
		case "":
			if current != nil {
				*current = append(*current, t)
			}
		}
	}
	return out
}

func annotation(t token) string {
	if t.kind != comment {
		return ""
	}
	name, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(t.value, "--")), "+goose")
	if !ok {
		return ""
	}
	return strings.ToUpper(strings.TrimSpace(name))
}

// baseline is the one migration that may hold many statements: the first schema.
const baseline = "00500_baseline.sql"

// judgeMigration judges one file for goose. CockroachDB changes a schema outside of
// transactions, so a file is one step that can be begun again after a crash. The
// baseline is many steps, each of which can be.
func judgeMigration(file, src string) []finding {
	s := readSections(lex(src))
	var out []finding
	if !s.hasUp {
		return []finding{{file, 1, "a migration needs the annotation -- +goose Up"}}
	}
	if !s.noTransaction {
		out = append(out, finding{file, 1, "a migration needs the annotation -- +goose NO TRANSACTION"})
	}
	up := split(src, s.up)
	if len(up) == 0 {
		out = append(out, finding{file, 1, "nothing stands behind -- +goose Up"})
	}
	if path.Base(file) == baseline {
		return append(append(out, judgeBaseline(file, up)...), judgeWayBack(file, split(src, s.down))...)
	}
	return append(append(out, judgeStep(file, up)...), judgeStep(file, split(src, s.down))...)
}

// judgeStep judges one direction of a migration.
func judgeStep(file string, statements []statement) []finding {
	passed, out := judge(file, statements)
	ddl, dml := 0, 0
	for i, s := range passed {
		switch s.class {
		case tree.TypeDDL:
			if ddl++; ddl == 2 && i == 1 && replaces(passed[0].tokens, s.tokens) {
				ddl = 1
			}
			if ddl == 2 {
				out = append(out, finding{file, s.line(), "a second schema change in one step: give it a file of its own"})
			}
			out = append(out, judgeRepeatable(file, s.statement)...)
		case tree.TypeDML:
			dml++
		case tree.TypeDCL, tree.TypeTCL:
			out = append(out, finding{file, s.line(), "a migration changes schema or rows, not rights or sessions"})
		}
	}
	if ddl > 0 && dml > 0 {
		out = append(out, finding{file, passed[0].line(), "a schema change and a change of rows in one step"})
	}
	return out
}

// judgeBaseline judges the first schema, which is made on an empty database: it only
// creates, and inserts rows that may be there already.
func judgeBaseline(file string, statements []statement) []finding {
	passed, out := judge(file, statements)
	for _, s := range passed {
		first := s.tokens[0]
		switch {
		case first.is("CREATE"):
			out = append(out, judgeRepeatable(file, s.statement)...)
		case !first.is("INSERT"):
			out = append(out, finding{file, first.line, "the baseline only creates and inserts"})
		case !contains(s.tokens, "ON", "CONFLICT") || !contains(s.tokens, "DO", "NOTHING"):
			out = append(out, finding{file, first.line, "INSERT needs ON CONFLICT DO NOTHING, so that the step can be run again"})
		}
	}
	return out
}

// judgeWayBack refuses a way back from the baseline.
func judgeWayBack(file string, down []statement) []finding {
	if len(down) == 0 {
		return nil
	}
	return []finding{{file, down[0].line(), "there is no way back from the baseline: it would drop everything"}}
}

// replaces tells whether a statement puts a constraint or an index in the place of the
// one of its name that the statement before has dropped: that is one change, and it can
// be run again.
func replaces(drops, adds []token) bool {
	return replacesConstraint(drops, adds) || replacesIndex(drops, adds)
}

// replacesIndex is about indexes that are built beside writes: a build that failed
// leaves one that is no good, which IF NOT EXISTS would take for it.
func replacesIndex(drops, adds []token) bool {
	if !contains(drops[:1], "DROP") || !contains(adds[:1], "CREATE") {
		return false
	}
	name := func(tokens []token) string {
		if !contains(tokens[1:3], "INDEX", "CONCURRENTLY") {
			return ""
		}
		i := slices.IndexFunc(tokens, func(t token) bool { return t.is("EXISTS") })
		return at(tokens, i+1).value
	}
	dropped := name(drops)
	return dropped != "" && dropped == name(adds)
}

func replacesConstraint(drops, adds []token) bool {
	name := func(tokens []token, what string) (table, constraint string) {
		for i, t := range tokens {
			if t.is(what) && at(tokens, i+1).is("CONSTRAINT") {
				if i += 2; at(tokens, i).is("IF") {
					i += 2
				}
				return at(tokens, 2).value, at(tokens, i).value
			}
		}
		return "", ""
	}
	table, dropped := name(drops, "DROP")
	of, added := name(adds, "ADD")
	return dropped != "" && dropped == added && table == of
}

// judgeRepeatable demands that a schema change which stopped half-way, or whose
// version was not written down, can be run again. CREATE TYPE and ADD CONSTRAINT
// have no IF NOT EXISTS on PostgreSQL: the first is refused by this rule (use a
// CHECK), the second is left alone because there is no other way to write it.
func judgeRepeatable(file string, s statement) []finding {
	first := s.tokens[0]
	refuse := func(t token, what string) finding {
		return finding{file, t.line, what + ", so that the step can be run again"}
	}
	switch {
	case first.is("CREATE") && !contains(s.tokens, "IF", "NOT", "EXISTS") && !contains(s.tokens, "OR", "REPLACE"):
		return []finding{refuse(first, "CREATE needs IF NOT EXISTS")}
	case first.is("DROP") && !contains(s.tokens, "IF", "EXISTS"):
		return []finding{refuse(first, "DROP needs IF EXISTS")}
	case !first.is("ALTER"):
		return nil
	}
	var out []finding
	for i, t := range s.tokens {
		what, behind := at(s.tokens, i+1), at(s.tokens, i+2)
		switch {
		case t.is("ADD") && (isName(what) || what.is("COLUMN") && !behind.is("IF")):
			out = append(out, refuse(t, "ADD COLUMN needs IF NOT EXISTS"))
		case t.is("DROP") && what.is("COLUMN", "CONSTRAINT") && !behind.is("IF"):
			out = append(out, refuse(t, "DROP "+what.value+" needs IF EXISTS"))
		}
	}
	return out
}

// isName tells a column's name behind a bare ADD from the words that may stand
// there.
func isName(t token) bool {
	return t.kind == quotedName || t.kind == word &&
		!t.is("COLUMN", "CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "IF")
}

func contains(tokens []token, words ...string) bool {
	for i := range tokens {
		found := true
		for j, w := range words {
			found = found && at(tokens, i+j).is(w)
		}
		if found {
			return true
		}
	}
	return false
}
