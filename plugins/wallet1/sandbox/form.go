package sandbox

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// currency is the only one.
const currency = "IDR"

// form reads a request's fields and keeps the first thing that is wrong.
type form struct {
	fields map[string]json.RawMessage
	within string // what names of fields begin with
	first  *error // shared with the objects inside
}

// readForm takes a body apart. An empty one is an object without fields.
func readForm(body []byte) (*form, error) {
	f := &form{fields: map[string]json.RawMessage{}, first: new(error)}
	if len(body) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(body, &f.fields); err != nil || f.fields == nil {
		return nil, refuse(resultBad)
	}
	return f, nil
}

// err returns what was wrong first.
func (f *form) err() error { return *f.first }

func (f *form) wrong(r result, field string) {
	if *f.first == nil {
		*f.first = refuseFor(r, f.within+field)
	}
}

// raw returns a field that is there; a missing required one is wrong.
func (f *form) raw(field string, required bool) (json.RawMessage, bool) {
	raw := f.fields[field]
	if len(raw) == 0 || string(raw) == "null" || string(raw) == `""` {
		if required {
			f.wrong(resultMandatory, field)
		}
		return nil, false
	}
	return raw, true
}

// text reads a string of so many characters at most.
func (f *form) text(field string, most int, required bool) string {
	raw, ok := f.raw(field, required)
	if !ok {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) != nil || utf8.RuneCountInString(text) > most {
		f.wrong(resultFormat, field)
	}
	return text
}

// matching reads a required string of a form.
func (f *form) matching(field string, form *regexp.Regexp) string {
	text := f.text(field, 64, true)
	if text != "" && !form.MatchString(text) {
		f.wrong(resultFormat, field)
	}
	return text
}

// oneOf reads a required string with one right value.
func (f *form) oneOf(field, right string) {
	if text := f.text(field, 64, true); text != "" && text != right {
		f.wrong(resultFormat, field)
	}
}

// object reads a required object, or an optional one.
func (f *form) object(field string, required bool) *form {
	inner := &form{fields: map[string]json.RawMessage{}, within: f.within + field + ".", first: f.first}
	if raw, ok := f.raw(field, required); ok && json.Unmarshal(raw, &inner.fields) != nil {
		f.wrong(resultFormat, field)
	}
	return inner
}

// cents is how the standard writes what has no smaller unit than the rupiah.
const cents = ".00"

// amount reads a required amount: a string with two decimals and a currency.
func (f *form) amount(field string, least money.Amount) money.Amount {
	inner := f.object(field, true)
	text := inner.text("value", 19, true)
	inner.oneOf("currency", currency)
	if f.err() != nil {
		return 0
	}
	whole, ok := strings.CutSuffix(text, cents)
	amount, err := money.Parse(whole)
	if !ok || err != nil || amount < least || amount.String() != whole {
		inner.wrong(resultFormat, "value")
	}
	return amount
}

// number reads an optional integer, written as a number or as a string.
func (f *form) number(field string, least, most, usual int) int {
	raw, ok := f.raw(field, false)
	if !ok {
		return usual
	}
	n, err := strconv.Atoi(strings.Trim(string(raw), `"`))
	if err != nil || n < least || n > most {
		f.wrong(resultFormat, field)
	}
	return n
}

// moment reads an optional time.
func (f *form) moment(field string, usual time.Time) time.Time {
	text := f.text(field, 35, false)
	if text == "" {
		return usual
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		f.wrong(resultFormat, field)
	}
	return t
}

// says reads an optional yes or no, written as a boolean or as a string.
func (f *form) says(field string, usual bool) bool {
	raw, ok := f.raw(field, false)
	if !ok {
		return usual
	}
	yes, err := strconv.ParseBool(strings.Trim(string(raw), `"`))
	if err != nil {
		f.wrong(resultFormat, field)
	}
	return yes
}
