// Package money owns Amount: whole rupiah in an int64. Amounts are parsed exactly,
// added with overflow checks, and printed for machines and for people. The package
// must not know other currencies, floating point, or rules about how much is
// enough.
package money

import (
	"strconv"
)

// Amount is a sum in whole rupiah. Parse yields none below zero or above Max;
// arithmetic may (a ledger's debit is negative), within int64.
type Amount int64

// Max is the largest amount that is read from outside: one trillion rupiah.
const Max Amount = 1_000_000_000_000

// Error says what is wrong with an amount. Its text is made to follow the name
// of a field: "amount" + " " + err.Error().
type Error string

// The closed set of errors of this package.
const (
	// ErrSyntax is a text that is not a JSON number.
	ErrSyntax Error = "must be a number"
	// ErrFraction is a number that is not a whole one.
	ErrFraction Error = "must be whole rupiah, without a fraction"
	// ErrNegative is a number with a minus sign, -0 included.
	ErrNegative Error = "must not be negative"
	// ErrTooLarge is a number above Max.
	ErrTooLarge Error = "must be at most 1000000000000"
	// ErrOverflow is a sum that does not fit.
	ErrOverflow Error = "overflows"
)

// Error returns the text, which begins with "must" or a verb.
func (e Error) Error() string { return string(e) }

// Add returns a + b, or ErrOverflow.
func (a Amount) Add(b Amount) (Amount, error) {
	sum := a + b
	if (sum > a) != (b > 0) && b != 0 {
		return 0, ErrOverflow
	}
	return sum, nil
}

// Sub returns a - b, or ErrOverflow.
func (a Amount) Sub(b Amount) (Amount, error) {
	diff := a - b
	if (diff < a) != (b > 0) && b != 0 {
		return 0, ErrOverflow
	}
	return diff, nil
}

// magnitude is |n|, also of the smallest int64, whose negation overflows.
func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n) //nolint:gosec // two's complement is meant
	}
	return uint64(n)
}

// String prints the number alone: 10000.
func (a Amount) String() string { return strconv.FormatInt(int64(a), 10) }

// Decimal2 prints with two decimals, as SNAP and mutations want it: 10000.00.
func (a Amount) Decimal2() string { return a.String() + ".00" }

// Format prints for people, in the Indonesian way: Rp10.000.
func (a Amount) Format() string {
	digits := strconv.FormatUint(magnitude(int64(a)), 10)
	out := make([]byte, 0, len(digits)+len(digits)/3+3)
	if a < 0 {
		out = append(out, '-')
	}
	out = append(out, "Rp"...)
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out = append(out, '.')
		}
		out = append(out, digits[i])
	}
	return string(out)
}

// MarshalJSON writes a JSON number.
func (a Amount) MarshalJSON() ([]byte, error) { return strconv.AppendInt(nil, int64(a), 10), nil }

// UnmarshalJSON reads a JSON number by the rules of Parse. A number in a
// string and null are ErrSyntax: money is never guessed.
func (a *Amount) UnmarshalJSON(data []byte) error {
	parsed, err := Parse(string(data))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}
