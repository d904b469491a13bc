package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical returns the canonical JSON (RFC 8785) of path and body. Two requests are
// the same if theirs is equal.
func (op *Operation) Canonical(body Document) (json.RawMessage, error) {
	text := make([]byte, 0, 512)
	text, err := appendCanonical(append(text, `{"body":`...), map[string]any(body))
	if err != nil {
		return nil, fmt.Errorf("canonical request: %w", err)
	}
	text = appendString(append(text, `,"path":`...), op.Path)
	return append(text, '}'), nil
}

// appendCanonical writes a value of a document.
func appendCanonical(text []byte, value any) (_ []byte, err error) {
	switch v := value.(type) {
	case string:
		return appendString(text, v), nil
	case json.Number:
		return appendNumber(text, string(v))
	case map[string]any:
		return appendObject(text, v)
	case []any:
		text = append(text, '[')
		for i, element := range v {
			if i > 0 {
				text = append(text, ',')
			}
			if text, err = appendCanonical(text, element); err != nil {
				return nil, err
			}
		}
		return append(text, ']'), nil
	case bool:
		if v {
			return append(text, "true"...), nil
		}
		return append(text, "false"...), nil
	case nil:
		return append(text, "null"...), nil
	}
	return nil, fmt.Errorf("a document has no %T", value)
}

func appendObject(text []byte, object map[string]any) (_ []byte, err error) {
	if object == nil {
		return append(text, "null"...), nil
	}
	var few [16]string
	names := few[:0]
	for name := range object {
		names = append(names, name)
	}
	slices.SortFunc(names, byUnits)
	text = append(text, '{')
	for i, name := range names {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(appendString(text, name), ':')
		if text, err = appendCanonical(text, object[name]); err != nil {
			return nil, err
		}
	}
	return append(text, '}'), nil
}

// appendString writes a string in its shortest form. What is no UTF-8 in it is replaced.
func appendString(text []byte, s string) []byte {
	text, _ = jsontext.AppendQuote(text, s)
	return text
}

// plainDigits is how many digits a whole number has at most that a float64 surely holds
// and writes as it is.
const plainDigits = 15

func appendNumber(text []byte, number string) ([]byte, error) {
	plain := len(number) > 0 && len(number) <= plainDigits && (number[0] != '0' || len(number) == 1)
	for i := 0; plain && i < len(number); i++ {
		plain = '0' <= number[i] && number[i] <= '9'
	}
	if plain {
		return append(text, number...), nil
	}
	canonical := jsontext.Value(number)
	err := canonical.Canonicalize()
	return append(text, canonical...), err
}

// byUnits orders names by their UTF-16 code units, as RFC 8785 does.
func byUnits(a, b string) int {
	for len(a) > 0 && len(b) > 0 {
		x, n := utf8.DecodeRuneInString(a)
		y, m := utf8.DecodeRuneInString(b)
		if x != y {
			return cmp.Or(cmp.Compare(firstUnit(x), firstUnit(y)), cmp.Compare(x, y))
		}
		a, b = a[n:], b[m:]
	}
	return strings.Compare(a, b)
}

func firstUnit(r rune) rune {
	if high, _ := utf16.EncodeRune(r); high != utf8.RuneError {
		return high
	}
	return r
}
