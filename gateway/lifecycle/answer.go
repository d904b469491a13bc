package lifecycle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// The bounds of what a provider writes, in bytes: its name of something, and a text
// that merchants read.
const (
	longestName   = 255
	longestReport = 4 << 10
)

// Printable makes what a provider wrote fit for our records, whatever it is.
func Printable(text string) string { return fit(text, longestName) }

func fit(text string, longest int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, string(utf8.RuneError)))
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "")
	}
	return text
}

// NameOf is a provider's own name of a movement, or nothing where it can't be kept as
// it is: then the movement is asked for by ours.
func NameOf(reference string) string {
	if Printable(reference) != reference {
		return ""
	}
	return reference
}

// FieldsOf are the properties of a provider's data.
func FieldsOf(data json.RawMessage) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if len(data) == 0 || json.Unmarshal(data, &fields) != nil || fields == nil {
		return map[string]json.RawMessage{}
	}
	return fields
}

// TextOf is a JSON string, "" where it is none.
func TextOf(value json.RawMessage) string {
	var s string
	if len(value) > 0 && json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// Reports are the texts of a provider's result, fit to be shown.
func Reports(m movement.Movement) map[string]string {
	given := FieldsOf(m.Result)
	reports := make(map[string]string, len(given))
	for name, value := range given {
		reports[name] = fit(TextOf(value), longestReport)
	}
	return reports
}

// Message is what a merchant reads of the state of money that goes out: the
// provider's own words, or ours where it has none.
func Message(rules movement.Rules, m movement.Movement) string {
	if m.Gone() { // whatever its provider said when it had succeeded
		return "The " + string(rules.Kind) + " had succeeded, and all of its money went back."
	}
	if said := Reports(m)["message"]; said != "" && m.State.Final() {
		return said
	}
	if m.Refusal != nil && m.Refusal.Unsent {
		return m.Refusal.Message
	}
	switch m.State {
	case movement.Succeeded:
		return "The " + string(rules.Kind) + " has succeeded."
	case movement.Failed:
		return "The " + string(rules.Kind) + " has failed. Nothing was charged."
	case movement.Submitting, movement.Acknowledged, movement.Pending, movement.Expired, movement.NotSubmitted:
	}
	return "The " + string(rules.Kind) + " is being processed."
}

// RemainingQuota is the property in which an answer tells what is left of a quota.
const RemainingQuota = "remaining_quota"

// withRemaining adds what the request's quota leaves to an answer that tells it.
func withRemaining(ctx context.Context, r Request, answer Answer) Answer {
	data, ok := answer.Data.(json.RawMessage)
	if !ok || !r.Operation.Answers(RemainingQuota) {
		return answer
	}
	if len(data) == 0 || movement.FieldOf(data, RemainingQuota) != nil {
		return answer
	}
	remaining := r.Remaining
	if remaining == nil && r.Left != nil {
		remaining = r.Left(ctx)
	}
	answer.Data = with(data, RemainingQuota, remaining)
	return answer
}

// with is an object with one more field.
func with(data json.RawMessage, name string, value any) json.RawMessage {
	o := &Object{}
	if string(data) != "{}" {
		o.text = slices.Clone(data[:len(data)-1])
	}
	return o.Set(name, value).JSON()
}

// Listed is a movement as a list tells it: as its status does, and when it was created.
func (l *Lifecycle) Listed(status *catalog.Operation, m movement.Movement) (json.RawMessage, error) {
	made, err := l.Shown(m)
	if err != nil {
		return nil, err
	}
	data, err := l.described(status.Shown(m.Provider), made, m)
	if err == nil && movement.FieldOf(data, "created_at") == nil {
		data = with(data, "created_at", Stamp(m.CreatedAt))
	}
	return data, err
}

// Standing is what a status call tells of a movement as it is known; no provider is asked. It is nil where such a call
// would have to promise an answer first, or there is none to make.
func (l *Lifecycle) Standing(m movement.Movement) (json.RawMessage, error) {
	if m.State == movement.Submitting || m.State == movement.NotSubmitted {
		return nil, nil
	}
	op, offered := l.Catalog.Current().ByPath(m.Operation)
	if !offered {
		return nil, nil
	}
	if op = op.Shown(m.Provider); op.Status == nil {
		return nil, nil
	}
	return l.described(op.Status, op, m)
}

func (l *Lifecycle) described(asked, made *catalog.Operation, m movement.Movement) (json.RawMessage, error) {
	data, ok := l.kinds[made.Kind].Describe(asked, made, m).Data.(json.RawMessage)
	if !ok {
		return nil, errors.New("lifecycle: a " + string(made.Kind) + " describes itself as no object")
	}
	return data, nil
}

// outcome is what a creation with an offer is answered, as far as it is known. What
// has ended before anybody was answered gets its first answer here, which then stays.
func (l *Lifecycle) outcome(ctx context.Context, op *catalog.Operation, m movement.Movement) (Answer, error) {
	switch {
	case m.Answered():
		return Answer{Data: m.Answer}, nil
	case m.Refusal != nil:
		return l.refusedAnswer(m)
	}
	switch m.State {
	case movement.NotSubmitted:
		return Answer{}, nothingSent(m)
	case movement.Failed:
		return Answer{}, RefusalError(&movement.Refusal{}).WithReference(m.CallersReference())
	case movement.Submitting, movement.Acknowledged, movement.Pending: // without what there is to pay
		return Answer{}, l.TimedOut(op, m)
	case movement.Succeeded, movement.Expired:
	}
	data := firstAnswer(l.kinds[op.Kind], op, m)
	if _, err := l.keepAnswer(ctx, m, data); err != nil {
		return Answer{}, fault.From(err).Unknown().WithReference(m.CallersReference())
	}
	return Answer{Data: data}, nil
}

func (l *Lifecycle) refusedAnswer(m movement.Movement) (Answer, error) {
	return Answer{}, RefusalError(m.Refusal).WithReference(m.CallersReference())
}

// comeBack is how soon to ask again at least after an answer that did not come in time.
const comeBack = time.Second

// TimedOut is the error of a call whose outcome is not known in time. It tells when
// asking again can tell more.
func (l *Lifecycle) TimedOut(op *catalog.Operation, m movement.Movement) *fault.Error {
	now, why := l.Now(), "The provider did not answer in time."
	if m.Errored() && m.State.Unknown() {
		why = "The provider answered with an error that does not tell what it has done."
	}
	wait := max(m.TellsMore(now, op.Rules).Sub(now).Truncate(time.Second)+time.Second, comeBack)
	return fault.Newf(fault.ProviderTimeout, "%s Ask again with the same reference from %s on: that looks the first attempt up and never makes a second.",
		why, Stamp(now.Add(wait))).After(now, wait).WithReference(m.CallersReference())
}

// nothingSent is the error of a movement that is proven never sent: its reference is
// free.
func nothingSent(m movement.Movement) *fault.Error {
	return fault.New(fault.ProviderUnavailable, "The provider is not available at the moment. Nothing was sent.").WithReference(m.CallersReference())
}

// refusals are the codes that a provider may refuse with; what else it says is its
// own affair and becomes the last of them.
var refusals = []sdk.RefusalCode{sdk.RefuseDestination, sdk.RefuseProduct, sdk.RefuseOther}

// RefusalError is the error of a provider's no.
func RefusalError(r *movement.Refusal) *fault.Error {
	code, message := sdk.RefusalCode(r.Code), r.Message
	if !slices.Contains(refusals, code) {
		code = sdk.RefuseOther
	}
	if message == "" {
		message = "The provider refused the request."
	}
	e := fault.New(fault.Code(code), message)
	for _, f := range r.Fields {
		e.Fields = append(e.Fields, fault.Field(f))
	}
	e.Sent, e.Retry = fault.SentRefused, fault.RetryNever
	if r.Unsent {
		e.Sent = fault.SentNo
	}
	return e
}

// Unjudged is the error of a request that ended before its reference could be looked
// up. This request sent nothing, but an earlier one under a reference of the
// merchant's may have.
func Unjudged(r Request, draft movement.Movement, err error) *fault.Error {
	f := fault.From(err).WithReference(draft.CallersReference())
	if r.NamesReference() {
		return f.Unknown()
	}
	return f
}

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

// Returned sets how much of a movement's money went back, and once nothing is left since
// when; nothing where all of it is there.
func (o *Object) Returned(m movement.Movement) *Object {
	if back := m.Returned(); back > 0 {
		o.SetNumber("returned_amount", int64(back))
	}
	return o.SetTime("returned_at", m.ReturnedAt)
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
func (o *Object) SetJSON(name string, value json.RawMessage) *Object {
	o.name(name)
	o.text = append(o.text, value...)
	return o
}

// Set adds a field of any other type.
func (o *Object) Set(name string, value any) *Object {
	encoded, err := jsonv2.Marshal(value, jsontext.AllowInvalidUTF8(true))
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
func (o *Object) Results(asked, made *catalog.Operation, result json.RawMessage) *Object {
	names := made.Results(asked)
	if len(names) == 0 {
		return o
	}
	given := FieldsOf(result)
	for _, name := range names {
		if value, told := given[name]; told {
			var compact bytes.Buffer
			_ = json.Compact(&compact, value) // it has been parsed
			o.SetJSON(name, compact.Bytes())
		}
	}
	return o
}

// JSON is the object; nothing may be set any more.
func (o *Object) JSON() json.RawMessage {
	if o.text == nil {
		return json.RawMessage("{}")
	}
	o.text = append(o.text, '}')
	return o.text
}

const stampForm = time.RFC3339

// Stamp is a moment as merchants read it.
func Stamp(t time.Time) string { return t.UTC().Format(stampForm) }
