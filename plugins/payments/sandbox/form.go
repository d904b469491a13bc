package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// maxBody is the largest request.
const maxBody = 1 << 20

// form reads a request's fields and collects what is wrong with them, in the
// words of the upstream's validator.
type form struct {
	fields   map[string]json.RawMessage
	findings []fieldError
}

// readForm takes the body apart. An empty one is an object without fields.
func readForm(r *http.Request) (*form, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	f := &form{fields: map[string]json.RawMessage{}}
	if len(data) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(data, &f.fields); err != nil || f.fields == nil {
		return nil, problem(http.StatusBadRequest, "INVALID_JSON_FORMAT", "The request body is not valid JSON")
	}
	for name, raw := range f.fields {
		if string(raw) == "null" {
			delete(f.fields, name)
		}
	}
	return f, nil
}

// err returns what was found, as one answer.
func (f *form) err() error {
	if len(f.findings) == 0 {
		return nil
	}
	return validationError(f.findings...)
}

func (f *form) wrong(field, text, kind string) {
	f.findings = append(f.findings, finding("body", field, text, kind))
}

// has reports whether a field is there; a missing required one is wrong.
func (f *form) has(field string, required bool) bool {
	_, there := f.fields[field]
	if !there && required {
		f.wrong(field, "is required", "any.required")
	}
	return there
}

// text reads a string of 1 to limit characters.
func (f *form) text(field string, required bool, limit int) string {
	if !f.has(field, required) {
		return ""
	}
	var value string
	if json.Unmarshal(f.fields[field], &value) != nil {
		f.wrong(field, "must be a string", "string.base")
		return ""
	}
	switch {
	case value == "":
		f.wrong(field, "is not allowed to be empty", "any.empty")
	case utf8.RuneCountInString(value) > limit:
		f.wrong(field, fmt.Sprintf("length must be less than or equal to %d characters long", limit), "string.max")
	}
	return value
}

// oneOf reads a string out of a closed set.
func (f *form) oneOf(field string, required bool, allowed ...string) string {
	value := f.text(field, required, 255)
	if value == "" {
		return ""
	}
	for _, a := range allowed {
		if value == a {
			return value
		}
	}
	f.wrong(field, "must be one of ["+strings.Join(allowed, ", ")+"]", "any.allowOnly")
	return ""
}

// email reads an address; the check is as coarse as the upstream's.
func (f *form) email(field string) string {
	value := f.text(field, false, 255)
	if value == "" {
		return ""
	}
	name, host, found := strings.Cut(value, "@")
	if !found || name == "" || !strings.Contains(host, ".") || strings.ContainsAny(value, " \t\n") {
		f.wrong(field, "must be a valid email", "string.email")
	}
	return value
}

// rupiah reads an amount. One with a fraction is wrong everywhere: the upstream cuts it
// off an invoice's, so that a client that sends one would be paid less than it asked
// for, and never know. A number beyond everything becomes money.Max.
func (f *form) rupiah(field string, required bool) money.Amount {
	if !f.has(field, required) {
		return 0
	}
	amount, err := money.Parse(string(f.fields[field]))
	switch {
	case err == nil:
		return amount
	case errors.Is(err, money.ErrTooLarge):
		return money.Max
	case errors.Is(err, money.ErrNegative):
		f.wrong(field, "must be larger than or equal to 0", "number.min")
	case errors.Is(err, money.ErrFraction):
		f.wrong(field, "must be an integer", "number.integer")
	default:
		f.wrong(field, "must be a number", "number.base")
	}
	return 0
}

// seconds reads a whole number from 1 to limit; absent is the default.
func (f *form) seconds(field string, limit, standard int64) int64 {
	if !f.has(field, false) {
		return standard
	}
	value, err := strconv.ParseInt(string(f.fields[field]), 10, 64)
	if err != nil {
		f.wrong(field, "must be a number", "number.base")
		return standard
	}
	if value < 1 || value > limit {
		f.wrong(field, fmt.Sprintf("must be between 1 and %d", limit), "number.range")
	}
	return value
}

// strings reads a list of strings.
func (f *form) strings(field string) []string {
	if !f.has(field, false) {
		return nil
	}
	var list []string
	if json.Unmarshal(f.fields[field], &list) != nil {
		f.wrong(field, "must be an array", "array.base")
	}
	return list
}

// raw passes a field through as it came.
func (f *form) raw(field string) json.RawMessage { return f.fields[field] }

// metadata reads up to 50 short strings.
func (f *form) metadata() json.RawMessage {
	if !f.has("metadata", false) {
		return nil
	}
	var pairs map[string]any
	if json.Unmarshal(f.fields["metadata"], &pairs) != nil {
		f.wrong("metadata", "must be an object", "object.base")
		return nil
	}
	if len(pairs) > 50 {
		f.wrong("metadata", "must have less than or equal to 50 children", "object.max")
	}
	for key, value := range pairs {
		text, _ := value.(string)
		if utf8.RuneCountInString(key) > 40 || utf8.RuneCountInString(text) > 500 {
			f.wrong("metadata", "has a key above 40 or a value above 500 characters", "string.max")
			break
		}
	}
	return f.fields["metadata"]
}
