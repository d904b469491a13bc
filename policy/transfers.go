package policy

import (
	"errors"
	"fmt"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

// TransferLimits bounds the money that a merchant sends out, over all operations of the kind transfer. The zero value
// bounds nothing.
type TransferLimits struct {
	Day            Outflow // in a day
	DestinationDay Outflow // in a day to one destination
}

// Outflow is how much may go out, in whole rupiah and in transfers; nil says nothing, zero allows none.
type Outflow struct {
	Amount *int64
	Count  *int64
}

const (
	// DefaultRepeat is for how long a transfer without a reference is refused that equals an earlier one, unless the policy
	// says otherwise.
	DefaultRepeat = 10 * time.Minute
	// MaxRepeat bounds what a policy may say.
	MaxRepeat = 24 * time.Hour
)

// readTransfers reads {"day": {"amount": n, "count": n}, "destination_day": {"amount": n, "count": n}}; each may be
// missing, and so may all of it. Any other name is refused, because a misspelt one would bound nothing.
func readTransfers(value ast.Value) (TransferLimits, error) {
	var limits TransferLimits
	err := members(value, func(name string, value ast.Value) (err error) {
		switch name {
		case "day":
			limits.Day, err = readOutflow(value)
		case "destination_day":
			limits.DestinationDay, err = readOutflow(value)
		default:
			err = errors.New("is not known here; known are day and destination_day")
		}
		return err
	})
	return limits, err
}

// readOutflow reads {"amount": n, "count": n}.
func readOutflow(value ast.Value) (Outflow, error) {
	var flow Outflow
	err := members(value, func(name string, value ast.Value) error {
		number, _ := value.(ast.Number)
		n, ok := number.Int64()
		switch {
		case name != "amount" && name != "count":
			return errors.New("is not known here; known are amount and count")
		case !ok || n < 0:
			return errors.New("must be a whole number, not below 0")
		case name == "amount":
			flow.Amount = &n
		default:
			flow.Count = &n
		}
		return nil
	})
	return flow, err
}

// readRepeat reads a duration such as "10m"; nothing is [DefaultRepeat].
func readRepeat(value ast.Value) (time.Duration, error) {
	if value == nil {
		return DefaultRepeat, nil
	}
	text, _ := value.(ast.String)
	return parseRepeat(string(text))
}

// parseRepeat reads a duration within its bounds.
func parseRepeat(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > MaxRepeat {
		return 0, errors.New(`must be a duration such as "10m", at most "24h"`)
	}
	return d, nil
}

// members visits the fields of an object that may be missing, and says at which an error is.
func members(value ast.Value, visit func(name string, value ast.Value) error) error {
	if value == nil {
		return nil
	}
	object, ok := value.(ast.Object)
	if !ok {
		return errors.New("an object must be here")
	}
	return object.Iter(func(key, term *ast.Term) error {
		name, _ := key.Value.(ast.String)
		if err := visit(string(name), term.Value); err != nil {
			return fmt.Errorf("%v: %w", key, err)
		}
		return nil
	})
}
