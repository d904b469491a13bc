package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
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
	if err := checkData(op, data); err != nil {
		return err
	}
	if wantsRawQR(m.Fields()) && offerOf(data).QR == "" {
		return errors.New("the result has no qr_string, which was asked for")
	}
	return nil
}

// checkData says what is wrong with data that a provider gives.
func checkData(op *catalog.Operation, data json.RawMessage) error {
	if !utf8.Valid(data) {
		return errors.New("the result is not UTF-8")
	}
	return op.CheckResult(data)
}

// checkSuccess says what is wrong with the data of a success: what was bought may
// stand in it and nowhere else, a token or a receipt, and must be told whole.
func checkSuccess(op *catalog.Operation, data json.RawMessage) error {
	if err := checkData(op, data); err != nil {
		return err
	}
	given := fieldsOf(data)
	for _, name := range op.Rules.Reports {
		if n := len(textOf(given[name])); n > longestReport {
			return fmt.Errorf("%s is too long to be told: %d bytes", name, n)
		}
	}
	return nil
}

// The bounds of what a provider writes, in bytes: its name of something, and a text
// that merchants are told.
const (
	longestName   = 255
	longestReport = 4 << 10
)

// printable makes what a provider wrote fit for our records, whatever it is.
func printable(text string) string { return fit(text, longestName) }

func fit(text string, longest int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "")
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
	if op.Kind == manifest.Transfer {
		return transferData(op, m).json()
	}
	if op.Kind == manifest.Collection {
		return collectionData(op, m, result).json()
	}
	o, asked := (&object{}).set(op.Rules.ReferenceField, m.Reference), m.Fields()
	if op.Rules.Quiet {
		echo(o, op, asked)
		return o.set("status", op.Rules.Word(movement.Pending)).json()
	}
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
	if rules.Quiet {
		return describeOrder(op, m)
	}
	if op.Target.Kind == manifest.Collection {
		return describeCollection(op, m)
	}
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

// describeOrder is the state of an order, with those of its reports that the
// status shows and the provider has given.
func describeOrder(op *catalog.Operation, m movement.Movement) *object {
	rules, reports := op.Target.Rules, reportsOf(m)
	o := (&object{}).set(rules.ReferenceField, m.Reference)
	echo(o, op, m.Fields())
	o.set("status", rules.Word(m.State))
	for _, name := range rules.Reports {
		if op.Answers(name) && reports[name] != "" {
			o.set(name, reports[name])
		}
	}
	if !m.ReversedAt.IsZero() {
		o.set("reversed_at", stamp(m.ReversedAt))
	}
	return o
}

// toldOfOrder is what a callback tells of an order: the contract's fields, and
// no other but when it was taken back.
func toldOfOrder(op *catalog.Operation, m movement.Movement, now time.Time) *object {
	rules, reports := op.Target.Rules, reportsOf(m)
	o := (&object{}).set(rules.ReferenceField, m.Reference)
	echo(o, op, m.Fields())
	o.set("status", rules.Word(m.State)).set("sn", reports["sn"]).set("message", messageOf(rules, m)).set("timestamp", stamp(now))
	if !m.ReversedAt.IsZero() {
		o.set("reversed_at", stamp(m.ReversedAt))
	}
	return o
}

// reportsOf are the texts of a provider's result, fit to be shown.
func reportsOf(m movement.Movement) map[string]string {
	given := fieldsOf(m.Result)
	reports := make(map[string]string, len(given))
	for name, value := range given {
		reports[name] = fit(textOf(value), longestReport)
	}
	return reports
}

// fieldsOf are the properties of a provider's data.
func fieldsOf(data json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if len(data) == 0 || json.Unmarshal(data, &fields) != nil || fields == nil {
		return map[string]json.RawMessage{}
	}
	return fields
}

// supplement is a movement's result with the reports that it lacks and data has,
// and their names; none where it lacks nothing that is told now.
func supplement(op *catalog.Operation, m movement.Movement, data json.RawMessage) (fuller json.RawMessage, late []string) {
	result, given := fieldsOf(m.Result), fieldsOf(data)
	for _, name := range op.Rules.Reports {
		if fit(textOf(result[name]), longestReport) == "" && fit(textOf(given[name]), longestReport) != "" {
			late, result[name] = append(late, name), given[name]
		}
	}
	if len(late) == 0 {
		return nil, nil
	}
	fuller, err := json.Marshal(result)
	if err != nil || checkData(op, fuller) != nil {
		return nil, nil
	}
	return fuller, late
}

// messageOf is what an order's merchant reads of its state: the provider's own
// words, or ours where it has none.
func messageOf(rules movement.Rules, m movement.Movement) string {
	if said := reportsOf(m)["message"]; said != "" && m.State.Final() {
		return said
	}
	switch m.State {
	case movement.Succeeded:
		return "The " + string(rules.Kind) + " has succeeded."
	case movement.Failed:
		return "The " + string(rules.Kind) + " has failed. Nothing was charged."
	case movement.Submitting, movement.Pending, movement.Expired, movement.NotSubmitted:
	}
	return "The " + string(rules.Kind) + " is being processed."
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
