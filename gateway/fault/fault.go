package fault

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Field is one entry of the envelope's errors list: the field's name as the
// merchant wrote it, and what is wrong with it.
type Field struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Error is the gateway's only error for merchants: a code of the [Table], a
// text that is safe to show, and a cause that is only ever logged.
type Error struct {
	Code    Code
	Message string // public: shown to the merchant as it is
	Fields  []Field
	Sent    Sent
	Retry   Retry

	// RetryAt is set where waiting helps and the time is known.
	RetryAt time.Time
	// RetryAfter is the wait in the Retry-After header, zero for none.
	RetryAfter time.Duration
	// Reference is the external_id or ref_id to echo, when one was given or made.
	Reference string
	// Data is what the error is about, as JSON; nil for nothing.
	Data any

	cause error
}

// New makes an error of a code with a public text, and the table's usual Sent
// and Retry.
func New(code Code, message string, fields ...Field) *Error {
	row := RowOf(code)
	return &Error{Code: row.Code, Message: message, Fields: fields, Sent: row.Sent, Retry: row.Retry}
}

// Newf is [New] with a formatted text.
func Newf(code Code, format string, args ...any) *Error {
	return New(code, fmt.Sprintf(format, args...))
}

// Invalid is an [InvalidRequest] about one field.
func Invalid(field, message string) *Error {
	return New(InvalidRequest, "The request is invalid: "+field+" "+message+".", Field{Field: field, Message: message})
}

// Because attaches the cause, which is logged and never shown.
func (e *Error) Because(cause error) *Error {
	e.cause = cause
	return e
}

// Unknown turns the error into one with an unknown outcome: the merchant must ask
// with the same reference before doing anything else.
func (e *Error) Unknown() *Error {
	e.Sent, e.Retry = SentUnknown, RetryLookupFirst
	return e
}

// WithReference names the reference the merchant can ask with.
func (e *Error) WithReference(reference string) *Error {
	e.Reference = reference
	return e
}

// After sets RetryAfter and RetryAt: how long the merchant should wait.
func (e *Error) After(now time.Time, wait time.Duration) *Error {
	e.RetryAfter, e.RetryAt = wait, now.Add(wait)
	return e
}

// Status is the HTTP status of the error's code.
func (e *Error) Status() int { return RowOf(e.Code).Status }

// Error returns code, public text and cause. It is for logs, not for merchants.
func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.cause }

// From makes any error an [Error]. One that is not an [Error] becomes [Internal],
// whose text reveals nothing internal.
func From(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if errors.Is(err, context.Canceled) {
		return New(Internal, "The request was cut off before it was finished.").Because(err)
	}
	return New(Internal, "Something went wrong on our side.").Because(err)
}
