package main

import "strings"

// kind is what a token is; comments are kept, since goose's annotations are
// comments.
type kind int

const (
	word kind = iota
	quotedName
	number
	text
	symbol
	parameter // @name, as sqlc reads it
	comment
)

// A token is a piece of SQL with its place in the file.
type token struct {
	kind       kind
	value      string // words in upper case, everything else as written
	start, end int    // byte offsets
	line       int
}

func (t token) is(words ...string) bool {
	if t.kind != word && t.kind != symbol {
		return false
	}
	for _, w := range words {
		if t.value == w {
			return true
		}
	}
	return false
}

// lex splits SQL into tokens. It knows no grammar, and what it does not know it
// takes as a symbol of one byte: the parser has the last word on syntax.
func lex(src string) []token {
	var tokens []token
	line := 1
	for at := 0; at < len(src); {
		t := next(src, at)
		t.start, t.line = at, line
		line += strings.Count(src[at:t.end], "\n")
		at = t.end
		if t.value != "" {
			tokens = append(tokens, t)
		}
	}
	return tokens
}

// next answers the token at a place; an empty value is white space.
func next(src string, at int) token {
	rest := src[at:]
	c := rest[0]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		return token{end: at + 1}
	case strings.HasPrefix(rest, "--"):
		return literal(comment, src, at, lineEnd(rest))
	case strings.HasPrefix(rest, "/*"):
		return literal(comment, src, at, blockEnd(rest))
	case c == '\'':
		return literal(text, src, at, quoteEnd(rest, '\'', false))
	case (c == 'e' || c == 'E') && len(rest) > 1 && rest[1] == '\'':
		return literal(text, src, at, 1+quoteEnd(rest[1:], '\'', true))
	case c == '"':
		return literal(quotedName, src, at, quoteEnd(rest, '"', false))
	case c == '$' && dollarEnd(rest) > 0:
		return literal(text, src, at, dollarEnd(rest))
	case c == '@' && len(rest) > 1 && nameStart(rest[1]):
		return literal(parameter, src, at, 1+nameEnd(rest[1:]))
	case nameStart(c):
		t := literal(word, src, at, nameEnd(rest))
		t.value = strings.ToUpper(t.value)
		return t
	case c >= '0' && c <= '9':
		return literal(number, src, at, nameEnd(rest))
	}
	return literal(symbol, src, at, 1)
}

func literal(k kind, src string, at, length int) token {
	return token{kind: k, value: src[at : at+length], end: at + length}
}

func nameStart(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func nameEnd(s string) int {
	for i := range len(s) {
		if !nameStart(s[i]) && s[i] != '$' && (s[i] < '0' || s[i] > '9') {
			return i
		}
	}
	return len(s)
}

func lineEnd(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i
	}
	return len(s)
}

// blockEnd finds the end of a block comment; both engines let them nest.
func blockEnd(s string) int {
	depth := 0
	for i := 0; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(s)
}

// quoteEnd finds the end of a quoted piece, in which the quote is written twice
// or, where escapes count, behind a backslash.
func quoteEnd(s string, quote byte, escapes bool) int {
	for i := 1; i < len(s); i++ {
		switch {
		case escapes && s[i] == '\\':
			i++
		case s[i] == quote && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return len(s)
}

// dollarEnd finds the end of a $tag$...$tag$ string, or 0 where a dollar sign
// begins something else, such as the placeholder $1.
func dollarEnd(s string) int {
	closing := strings.IndexByte(s[1:], '$')
	if closing < 0 {
		return 0
	}
	tag := s[:closing+2]
	name := tag[1 : len(tag)-1]
	if name != "" && (!nameStart(name[0]) || nameEnd(name) != len(name)) {
		return 0
	}
	if i := strings.Index(s[len(tag):], tag); i >= 0 {
		return len(tag) + i + len(tag)
	}
	return len(s)
}
