package lifecycle

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
)

// Object is a JSON object whose fields keep the order they are set in, as the
// contract shows them.
type Object struct{ buffer bytes.Buffer }

// Set adds a field.
func (o *Object) Set(name string, value any) *Object {
	encoded, err := json.Marshal(value)
	if err != nil { // strings, integers and JSON that was valid before
		encoded = []byte("null")
	}
	if o.buffer.Len() == 0 {
		o.buffer.WriteByte('{')
	} else {
		o.buffer.WriteByte(',')
	}
	key, _ := json.Marshal(name) // a string
	o.buffer.Write(key)
	o.buffer.WriteByte(':')
	o.buffer.Write(encoded)
	return o
}

// SetTime adds a moment, where there is one.
func (o *Object) SetTime(name string, t time.Time) *Object {
	if t.IsZero() {
		return o
	}
	return o.Set(name, Stamp(t))
}

// Echo adds those properties of a request that an operation's answer repeats.
func (o *Object) Echo(op *catalog.Operation, asked map[string]json.RawMessage) *Object {
	for _, name := range op.Echoes() {
		if value, given := asked[name]; given {
			o.Set(name, value)
		}
	}
	return o
}

// Results adds what an operation's answer shows of a provider's result, as it was given.
func (o *Object) Results(asked, made *catalog.Operation, result json.RawMessage) *Object {
	names := made.Results(asked)
	if len(names) == 0 {
		return o
	}
	given := FieldsOf(result)
	for _, name := range names {
		if value, told := given[name]; told {
			o.Set(name, value)
		}
	}
	return o
}

// JSON is the object; nothing may be set any more.
func (o *Object) JSON() json.RawMessage {
	if o.buffer.Len() == 0 {
		return json.RawMessage("{}")
	}
	o.buffer.WriteByte('}')
	return o.buffer.Bytes()
}

// Stamp is a moment as merchants read it.
func Stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
