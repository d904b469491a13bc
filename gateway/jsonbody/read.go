package jsonbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// Max is the largest body of a request, in bytes.
const Max = 64 << 10

const (
	// maxDepth is how deep objects and arrays may nest, the body itself counted.
	maxDepth = 16
	// maxValues is how many values a body has, those in objects and arrays counted:
	// far more than any operation takes, and few enough to be judged quickly.
	maxValues = 1000
	// maxNumber and maxExponent keep exact arithmetic with a caller's numbers
	// cheap: 1e999999999 is 11 bytes here and gigabytes as a fraction.
	maxNumber   = 40
	maxExponent = 30
)

// parser walks through one body. Parsers are pooled: a decoder's buffers are
// worth more than what they hold.
type parser struct {
	source  bytes.Reader
	decoder jsontext.Decoder
	depth   int
	values  int
}

var parsers = sync.Pool{New: func() any { return new(parser) }}

// Read reads a JSON object strictly. Numbers are json.Number; top-level members that
// are null or "" are left out. Where apart has a function for a top-level name, it
// gets the value as it was written and the value is in no document. An error is
// INVALID_REQUEST and tells the place, never what stands there.
func Read(text []byte, apart func(name string) func(jsontext.Value) error) (map[string]any, error) {
	p := parsers.Get().(*parser)
	defer parsers.Put(p)
	p.source.Reset(text)
	p.decoder.Reset(&p.source)
	p.depth, p.values = 0, 0
	document, err := p.document(apart)
	p.source.Reset(nil)
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		return nil, refuseSyntax(syntax)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fault.New(fault.InvalidRequest, "The body is not a JSON object: it is empty or ends too early.")
	}
	return document, err
}

func (p *parser) document(apart func(string) func(jsontext.Value) error) (map[string]any, error) {
	if kind := p.decoder.PeekKind(); kind != jsontext.KindBeginObject && kind != jsontext.KindInvalid {
		return nil, fault.New(fault.InvalidRequest, "The body must be a JSON object, it is "+kindName(kind)+".")
	}
	document := map[string]any{}
	err := p.members(func(name string) error {
		if take := apart(name); take != nil {
			value, err := p.decoder.ReadValue()
			if err != nil {
				return err
			}
			return take(value)
		}
		value, err := p.value()
		if err == nil && value != nil && value != "" {
			document[name] = value
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := p.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fault.Newf(fault.InvalidRequest, "The body goes on after the JSON object, at byte %d.", p.decoder.InputOffset())
	}
	return document, nil
}

// members reads an object and calls member after each name, to read the value.
func (p *parser) members(member func(name string) error) error {
	if err := p.enter(); err != nil {
		return err
	}
	for p.decoder.PeekKind() != jsontext.KindEndObject {
		token, err := p.decoder.ReadToken()
		if err != nil {
			return err
		}
		name := token.String()
		if strings.ContainsRune(name, 0) {
			return p.refuse("has a NUL character in its name")
		}
		if err := member(name); err != nil {
			return err
		}
	}
	return p.leave()
}

func (p *parser) value() (any, error) {
	if p.values++; p.values > maxValues {
		return nil, fault.Newf(fault.InvalidRequest, "The body has more than %d values, at byte %d.", maxValues, p.decoder.InputOffset())
	}
	switch p.decoder.PeekKind() {
	case jsontext.KindBeginObject:
		object := map[string]any{}
		err := p.members(func(name string) (err error) {
			object[name], err = p.value()
			return err
		})
		return object, err
	case jsontext.KindBeginArray:
		return p.array()
	default:
		return p.scalar()
	}
}

func (p *parser) scalar() (any, error) {
	token, err := p.decoder.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case jsontext.KindString:
		text := token.String()
		if strings.ContainsRune(text, 0) {
			return nil, p.refuse("holds a NUL character")
		}
		return text, nil
	case jsontext.KindNumber:
		return p.number(token.String())
	case jsontext.KindTrue, jsontext.KindFalse:
		return token.Bool(), nil
	default:
		return nil, nil // null
	}
}

func (p *parser) array() (any, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	array := []any{}
	for p.decoder.PeekKind() != jsontext.KindEndArray {
		value, err := p.value()
		if err != nil {
			return nil, err
		}
		array = append(array, value)
	}
	return array, p.leave()
}

func (p *parser) number(text string) (any, error) {
	if len(text) > maxNumber {
		return nil, p.refuse(fmt.Sprintf("is a number of more than %d characters", maxNumber))
	}
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		exponent, err := strconv.Atoi(text[at+1:])
		if err != nil || exponent > maxExponent || exponent < -maxExponent {
			return nil, p.refuse(fmt.Sprintf("is a number with an exponent beyond %d", maxExponent))
		}
	}
	return json.Number(text), nil
}

func (p *parser) enter() error {
	if p.depth++; p.depth > maxDepth {
		return p.refuse(fmt.Sprintf("nests deeper than %d levels", maxDepth))
	}
	_, err := p.decoder.ReadToken()
	return err
}

func (p *parser) leave() error {
	p.depth--
	_, err := p.decoder.ReadToken()
	return err
}

// refuse is a rule of ours that the value just read, or about to be, breaks.
func (p *parser) refuse(what string) error {
	return refuseAt(p.decoder.StackPointer(), p.decoder.InputOffset(), what)
}

func refuseSyntax(e *jsontext.SyntacticError) error {
	what := e.Err.Error()
	switch {
	case errors.Is(e.Err, jsontext.ErrDuplicateName):
		return refuseAt(e.JSONPointer, e.ByteOffset, "is given twice")
	case errors.Is(e.Err, io.ErrUnexpectedEOF):
		what = "it ends too early"
	}
	// What stands between backquotes is the caller's own text, perhaps of a key.
	what, _, _ = strings.Cut(what, " `")
	message := fmt.Sprintf("The body is not valid JSON: %s, at byte %d.", what, e.ByteOffset)
	if field := fieldName(e.JSONPointer); field != "" {
		return fault.New(fault.InvalidRequest, message, fault.Field{Field: field, Message: "is not valid JSON: " + what})
	}
	return fault.New(fault.InvalidRequest, message)
}

func refuseAt(place jsontext.Pointer, offset int64, what string) error {
	field := fieldName(place)
	if field == "" {
		return fault.Newf(fault.InvalidRequest, "The body %s, at byte %d.", what, offset)
	}
	return fault.New(fault.InvalidRequest,
		fmt.Sprintf("The request is invalid: %s %s, at byte %d.", field, what, offset),
		fault.Field{Field: field, Message: what})
}

// fieldName writes a JSON pointer as the envelope does: metadata.note.
func fieldName(place jsontext.Pointer) string {
	var names []string
	for name := range place.Tokens() {
		names = append(names, strings.ReplaceAll(name, "\x00", "\\u0000"))
	}
	return strings.Join(names, ".")
}

func kindName(kind jsontext.Kind) string {
	switch kind {
	case jsontext.KindBeginArray:
		return "an array"
	case jsontext.KindString:
		return "a string"
	case jsontext.KindNumber:
		return "a number"
	default:
		return "a literal"
	}
}
