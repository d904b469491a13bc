package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxDepth bounds how deep data.json nests.
const maxDepth = 32

// node is a JSON value that remembers where it stands, so that whatever is wrong with it is told with its line.
type node struct {
	file *jsonFile
	// offset is that of the value's first byte.
	offset int
	// value is nil, a bool, a json.Number, a string, a []*node, or a []member.
	value any
}

// member is one name and value of an object, in the order of the file.
type member struct {
	name   string
	offset int
	value  *node
}

// jsonFile reads one file and collects its problems.
type jsonFile struct {
	name     string
	src      []byte
	dec      *json.Decoder
	problems []Problem
}

// readJSON reads a file that must be one JSON value without duplicate names. Where that fails the node is nil and the
// file has problems.
func readJSON(name string, src []byte) (*jsonFile, *node) {
	f := &jsonFile{name: name, src: src, dec: json.NewDecoder(bytes.NewReader(src))}
	f.dec.UseNumber()
	if !utf8.Valid(src) {
		f.problem(0, "this file is not UTF-8")
		return f, nil
	}
	root, err := f.read(0)
	if err == nil {
		if end := f.next(); end < len(src) {
			f.problem(end, "nothing may follow the value")
		}
	} else {
		f.syntax(err)
	}
	if len(f.problems) > 0 {
		return f, nil
	}
	return f, root
}

// problem notes what is wrong at an offset.
func (f *jsonFile) problem(offset int, format string, args ...any) {
	before := f.src[:min(offset, len(f.src))]
	line := 1 + bytes.Count(before, []byte("\n"))
	col := 1 + len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	f.problems = append(f.problems, Problem{File: f.name, Line: line, Col: col, Message: fmt.Sprintf(format, args...)})
}

// syntax notes an error of the decoder, at the token that it stumbled over.
func (f *jsonFile) syntax(err error) {
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		f.problem(len(f.src), "this is not JSON: the file ends too early")
	case errors.As(err, &syntax):
		f.problem(f.next(), "this is not JSON: %s", syntax)
	default:
		f.problem(f.next(), "%s", err)
	}
}

// next is the offset at which the next token starts.
func (f *jsonFile) next() int {
	offset := int(f.dec.InputOffset())
	for offset < len(f.src) && bytes.IndexByte([]byte(" \t\r\n,:"), f.src[offset]) >= 0 {
		offset++
	}
	return offset
}

// read reads the value that comes next.
func (f *jsonFile) read(depth int) (*node, error) {
	n := &node{file: f, offset: f.next()}
	token, err := f.dec.Token()
	if err != nil {
		return nil, err
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("this nests deeper than %d levels", maxDepth)
	}
	switch token {
	case json.Delim('{'):
		n.value, err = f.members(depth)
	case json.Delim('['):
		n.value, err = f.elements(depth)
	default:
		n.value = token
	}
	return n, err
}

// members reads an object after its brace.
func (f *jsonFile) members(depth int) ([]member, error) {
	members, seen := []member{}, map[string]bool{}
	for f.dec.More() {
		offset := f.next()
		token, err := f.dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string) // the decoder takes nothing else for a name
		if seen[name] {
			f.problem(offset, "%q stands here twice", name)
		}
		seen[name] = true
		value, err := f.read(depth + 1)
		if err != nil {
			return nil, err
		}
		members = append(members, member{name: name, offset: offset, value: value})
	}
	_, err := f.dec.Token()
	return members, err
}

// elements reads an array after its bracket.
func (f *jsonFile) elements(depth int) ([]*node, error) {
	elements := []*node{}
	for f.dec.More() {
		element, err := f.read(depth + 1)
		if err != nil {
			return nil, err
		}
		elements = append(elements, element)
	}
	_, err := f.dec.Token()
	return elements, err
}

// plain is the value as OPA's store takes it.
func (n *node) plain() any {
	switch value := n.value.(type) {
	case []member:
		object := make(map[string]any, len(value))
		for _, m := range value {
			object[m.name] = m.value.plain()
		}
		return object
	case []*node:
		array := make([]any, len(value))
		for i, element := range value {
			array[i] = element.plain()
		}
		return array
	default:
		return value
	}
}
