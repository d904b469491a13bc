package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// Exit codes of all commands.
const (
	exitOK          = 0
	exitRefused     = 1 // by the gateway, or failed for a reason that has no code
	exitUsage       = 2 // the command line is wrong, or asks for what needs --yes
	exitNotFound    = 3
	exitUnreachable = 4 // gateway or database; what was asked for may have been done
	exitIncomplete  = 5 // done in part, or not yet on every replica
	exitDenies      = 6 // a candidate policy denies more than it may
)

// exitTexts say what each code means, for --help and the reference.
var exitTexts = map[int]string{
	exitOK:          "done",
	exitRefused:     "refused by the gateway, or failed",
	exitUsage:       "the command line is wrong, or asks for something that can't be undone without --yes",
	exitNotFound:    "not found",
	exitUnreachable: "gateway or database not reachable; an order that was under way may have been carried out",
	exitIncomplete:  "incomplete: done in part, or not yet on every replica",
	exitDenies:      "a candidate policy denies more than --max-newly-denied",
}

// exitText is all codes on one line.
func exitText() string {
	var texts []string
	for _, code := range slices.Sorted(maps.Keys(exitTexts)) {
		texts = append(texts, fmt.Sprintf("%d %s", code, exitTexts[code]))
	}
	return strings.Join(texts, "; ")
}

// exits are the errors that have a code of their own. The first that fits counts.
var exits = []struct {
	code int
	is   func(error) bool
}{
	{exitIncomplete, is[incompleteError]}, // whatever ended it, something is done
	{exitUsage, func(err error) bool { return is[usageError](err) || is[*adminapi.Misplaced](err) }},
	{exitDenies, is[errDenies]},
	{exitNotFound, func(err error) bool { return is[notFoundError](err) || codeOf(err) == fault.NotFound }},
	{exitUnreachable, unreachable},
}

// exitCode is the exit code of an error.
func exitCode(err error) int {
	for _, exit := range exits {
		if exit.is(err) {
			return exit.code
		}
	}
	return exitRefused
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// usageError is a fault of the command line itself.
type usageError struct{ error }

func usage(err error) error { return usageError{err} }

func (e usageError) Unwrap() error { return e.error }

// incompleteError says that what was asked for is done in part, or not yet everywhere.
type incompleteError struct{ error }

func incomplete(err error) error { return incompleteError{err} }

func (e incompleteError) Unwrap() error { return e.error }

// notFoundError is what the command itself has looked for in vain.
type notFoundError struct{ error }

func notFound(err error) error { return notFoundError{err} }

func notFoundf(format string, args ...any) error { return notFound(fmt.Errorf(format, args...)) }

func (e notFoundError) Unwrap() error { return e.error }

func codeOf(err error) fault.Code {
	if failure, ok := errors.AsType[*adminapi.Failure](err); ok {
		return failure.Code
	}
	return ""
}

// unreachable tells an answer that never came, or came from a proxy without a gateway
// behind it.
func unreachable(err error) bool {
	if failure, ok := errors.AsType[*adminapi.Failure](err); ok {
		return failure.Code == "" && failure.Status >= http.StatusBadGateway && failure.Status <= http.StatusGatewayTimeout
	}
	if network, ok := errors.AsType[*net.OpError](err); ok && network.Op == "dial" {
		return true
	}
	return is[*adminapi.Unreachable](err) || is[*net.DNSError](err)
}

// failed is an error as --json prints it.
type failed struct {
	Message   string        `json:"message"`
	Code      fault.Code    `json:"error_code,omitempty"` // of the gateway
	RequestID string        `json:"request_id,omitempty"`
	Errors    []fault.Field `json:"errors,omitempty"`
	ExitCode  int           `json:"exit_code"`
}

// fail prints the error and returns the exit code.
func (p *program) fail(err error) int {
	code := exitCode(err)
	if p.json {
		told := failed{Message: err.Error(), ExitCode: code}
		if failure, ok := errors.AsType[*adminapi.Failure](err); ok {
			told.Code, told.RequestID, told.Errors = failure.Code, failure.RequestID, failure.Errors
		}
		encoder := json.NewEncoder(p.err)
		encoder.SetEscapeHTML(false)
		_ = encoder.Encode(told) // there is nobody else to tell
		return code
	}
	_, _ = fmt.Fprintln(p.err, "gerbang:", err)
	if code == exitUsage {
		_, _ = io.WriteString(p.err, "Try gerbang --help.\n")
	}
	return code
}
