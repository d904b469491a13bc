package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// object is a JSON object whose fields keep the order they are set in, as the
// contract shows them.
type object struct{ buffer bytes.Buffer }

func (o *object) set(name string, value any) *object {
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

func (o *object) json() json.RawMessage {
	if o.buffer.Len() == 0 {
		return json.RawMessage("{}")
	}
	o.buffer.WriteByte('}')
	return o.buffer.Bytes()
}

// detail is the JSON of a story's entry, from pairs of name and value; empty
// values are left out.
func detail(pairs ...string) string {
	o := &object{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			o.set(pairs[i], pairs[i+1])
		}
	}
	return string(o.json())
}

// offer is what a provider gives of a payment, as the result schema of the
// kind has it.
type offer struct {
	PaymentURL string `json:"payment_url"`
	QR         string `json:"qr_string"`
}

func offerOf(result json.RawMessage) offer {
	var o offer
	if len(result) > 0 {
		_ = json.Unmarshal(result, &o) // the result schema has said that it fits; nothing known is an empty offer
	}
	return o
}

// checkOffer says what is wrong with the data that a provider gives of a
// payment: what can't be stored or is not what was asked for is no answer.
func checkOffer(op *catalog.Operation, m movement.Movement, data json.RawMessage) error {
	if !utf8.Valid(data) {
		return errors.New("the result is not UTF-8")
	}
	if err := op.CheckResult(data); err != nil {
		return err
	}
	if wantsRawQR(m.Fields()) && offerOf(data).QR == "" {
		return errors.New("the result has no qr_string, which was asked for")
	}
	return nil
}

// longestName bounds what a provider calls something, in bytes.
const longestName = 255

// printable makes what a provider wrote fit for our records, whatever it is.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > longestName {
		text = strings.ToValidUTF8(text[:longestName], "")
	}
	return text
}

// nameOf is a provider's own name of a movement, or nothing where it can't be
// kept as it is: then the movement is asked for by ours.
func nameOf(reference string) string {
	if printable(reference) != reference {
		return ""
	}
	return reference
}

// firstAnswer is the data of a creation: what the contract shows, and always
// PENDING, also in a replay after the end.
func (e *Engine) firstAnswer(op *catalog.Operation, m movement.Movement, result json.RawMessage) json.RawMessage {
	o, asked := (&object{}).set(op.Rules.ReferenceField, m.Reference), m.Fields()
	if wantsRawQR(asked) {
		if qr := offerOf(result).QR; qr != "" {
			o.set("qr_string", qr)
		}
	} else {
		o.set("checkout_url", e.CheckoutURL(m.ID))
	}
	o.set("status", op.Rules.Word(movement.Pending)).set("amount", int64(m.Amount))
	echo(o, op, asked)
	return o.json()
}

// state is the data of a status or cancel.
func state(op *catalog.Operation, m movement.Movement) json.RawMessage {
	return describe(op, m).json()
}

func describe(op *catalog.Operation, m movement.Movement) *object {
	rules := op.Target.Rules
	o := (&object{}).set(rules.ReferenceField, m.Reference).set("status", rules.Word(m.State)).set("amount", int64(m.Amount))
	echo(o, op, m.Fields())
	o.set("created_at", stamp(m.CreatedAt)).set("updated_at", stamp(m.UpdatedAt))
	if !m.PaidLateAt.IsZero() {
		o.set("paid_late_at", stamp(m.PaidLateAt))
	}
	if !m.ReversedAt.IsZero() {
		o.set("reversed_at", stamp(m.ReversedAt))
	}
	return o
}

func echo(o *object, op *catalog.Operation, asked map[string]json.RawMessage) {
	for _, name := range op.Echoes() {
		if value, given := asked[name]; given {
			o.set(name, value)
		}
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// wantsRawQR tells whether a payment was asked for as a raw QR string.
func wantsRawQR(asked map[string]json.RawMessage) bool { return textOf(asked["type"]) == "qris" }

func textOf(value json.RawMessage) string {
	var s string
	if len(value) > 0 && json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}
