package jsonbody

import (
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Decode reads a JSON object as strictly as [Read], into a struct that knows every
// name. An error is INVALID_REQUEST.
func Decode(text []byte, into any) error {
	if _, err := Read(text, func(string) func(jsontext.Value) error { return nil }); err != nil {
		return err
	}
	err := json.Unmarshal(text, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	name := ""
	if semantic, ok := errors.AsType[*json.SemanticError](err); ok {
		name = fieldName(semantic.JSONPointer)
	}
	wrong, isAmount := errors.AsType[money.Error](err)
	switch {
	case name == "":
		return fault.New(fault.InvalidRequest, "The body does not have the expected form.").Because(err)
	case isAmount:
		return fault.Invalid(name, wrong.Error())
	case errors.Is(err, json.ErrUnknownName):
		return fault.Invalid(name, "is not a known field")
	}
	return fault.Invalid(name, "has the wrong type")
}
