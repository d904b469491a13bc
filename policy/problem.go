package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Problem is one fault of a set and where it stands. Line and Col count from 1 and are 0 where a whole file is at fault.
type Problem struct {
	File    string
	Line    int
	Col     int
	Message string
}

// String is the problem as editors like to read it: file, line, column, text.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Col, p.Message)
}

// Error says why a set can't be used. It has at least one problem, sorted by place.
type Error struct {
	Problems []Problem
}

// Error lists the problems, each with its place.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "policy: " + strings.Join(lines, "; ")
}

// refused makes the error of problems, or nil where there are none.
func refused(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
			cmp.Compare(a.Message, b.Message))
	})
	return &Error{Problems: slices.Compact(problems)}
}

// problemsOf reads OPA's errors; one without a place is laid to the given file.
func problemsOf(file string, err error) []Problem {
	var many ast.Errors
	var one *ast.Error
	switch {
	case errors.As(err, &many):
	case errors.As(err, &one):
		many = ast.Errors{one}
	default:
		return []Problem{{File: file, Message: err.Error()}}
	}
	problems := make([]Problem, 0, len(many))
	for _, e := range many {
		problems = append(problems, at(e.Location, file, message(e)))
	}
	return problems
}

// message is the error's text in one line. What the parser adds is left out: it repeats the line that is named anyway.
func message(e *ast.Error) string {
	if _, excerpt := e.Details.(*ast.ParserErrorDetail); excerpt || e.Details == nil {
		return e.Message
	}
	lines := []string{e.Message}
	for _, line := range e.Details.Lines() {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}

// at is a problem at OPA's location.
func at(loc *ast.Location, file, message string) Problem {
	if loc == nil {
		return Problem{File: file, Message: message}
	}
	return Problem{File: cmp.Or(loc.File, file), Line: max(1, loc.Row), Col: max(1, loc.Col), Message: message}
}
