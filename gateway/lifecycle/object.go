package lifecycle

import (
	"bytes"
	stdjson "encoding/json"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Object is a JSON object without spaces, whose fields keep the order they are set in,
// as the contract shows them.
type Object struct{ text []byte }

// usualSize is what most objects fit in, in bytes.
const usualSize = 384

// name begins a field.
func (o *Object) name(name string) {
	if o.text == nil {
		o.text = append(make([]byte, 0, usualSize), '{')
	} else {
		o.text = append(o.text, ',')
	}
	o.quote(name)
	o.text = append(o.text, ':')
}

// quote writes a string. What is no UTF-8 in it is replaced.
func (o *Object) quote(text string) { o.text, _ = jsontext.AppendQuote(o.text, text) }

// SetText adds a string.
func (o *Object) SetText(name, value string) *Object {
	o.name(name)
	o.quote(value)
	return o
}

// SetNumber adds a whole number.
func (o *Object) SetNumber(name string, value int64) *Object {
	o.name(name)
	o.text = strconv.AppendInt(o.text, value, 10)
	return o
}

// SetTime adds a moment, where there is one.
func (o *Object) SetTime(name string, t time.Time) *Object {
	if t.IsZero() {
		return o
	}
	o.name(name)
	o.text = append(t.UTC().AppendFormat(append(o.text, '"'), stampForm), '"')
	return o
}

// SetJSON adds what is JSON without spaces already.
func (o *Object) SetJSON(name string, value stdjson.RawMessage) *Object {
	o.name(name)
	o.text = append(o.text, value...)
	return o
}

// Set adds a field of any other type.
func (o *Object) Set(name string, value any) *Object {
	encoded, err := json.Marshal(value, jsontext.AllowInvalidUTF8(true))
	if err != nil { // strings, integers, booleans and pointers to them
		encoded = []byte("null")
	}
	return o.SetJSON(name, encoded)
}

// Echo adds those properties of a movement's request that an operation's answer repeats.
func (o *Object) Echo(op *catalog.Operation, m movement.Movement) *Object {
	body := m.Body()
	for _, name := range op.Echoes() {
		if value := movement.FieldOf(body, name); value != nil {
			o.SetJSON(name, value)
		}
	}
	return o
}

// Results adds what an operation's answer shows of a provider's result, as it was given.
func (o *Object) Results(asked, made *catalog.Operation, result stdjson.RawMessage) *Object {
	names := made.Results(asked)
	if len(names) == 0 {
		return o
	}
	given := FieldsOf(result)
	for _, name := range names {
		if value, told := given[name]; told {
			var compact bytes.Buffer
			_ = stdjson.Compact(&compact, value) // it has been parsed
			o.SetJSON(name, compact.Bytes())
		}
	}
	return o
}

// JSON is the object; nothing may be set any more.
func (o *Object) JSON() stdjson.RawMessage {
	if o.text == nil {
		return stdjson.RawMessage("{}")
	}
	o.text = append(o.text, '}')
	return o.text
}

const stampForm = time.RFC3339

// Stamp is a moment as merchants read it.
func Stamp(t time.Time) string { return t.UTC().Format(stampForm) }
