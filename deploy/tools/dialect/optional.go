package main

import "strings"

// judgeOptional judges what operators apply to CockroachDB by hand, or take back: its own parser
// reads each statement, which alters what is there and can be run again.
func judgeOptional(file, src string) []finding {
	statements := split(src, lex(src))
	if len(statements) == 0 {
		return []finding{{file, 1, "nothing stands in it"}}
	}
	var out []finding
	for _, s := range statements {
		if denied := deny(file, s); len(denied) > 0 {
			out = append(out, denied...)
			continue
		}
		if _, err := parse(s); err != nil {
			out = append(out, finding{file, s.line(), "CockroachDB's parser: " + strings.TrimSpace(err.Error())})
			continue
		}
		if !s.tokens[0].is("ALTER") {
			out = append(out, finding{file, s.line(), "an optional migration only alters what the others have made"})
		}
		for i, t := range s.tokens {
			switch missing := at(s.tokens, i+1); {
			case t.is("REGION") && before(s.tokens, i).is("ADD") && !missing.is("IF"):
				out = append(out, finding{file, t.line, "ADD REGION needs IF NOT EXISTS, so that the step can be run again"})
			case t.is("REGION") && (before(s.tokens, i).is("DROP") || before(s.tokens, i-1).is("DROP")) && !missing.is("IF"):
				out = append(out, finding{file, t.line, "DROP REGION needs IF EXISTS, so that the step can be run again"})
			}
		}
	}
	return out
}
