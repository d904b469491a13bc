package money

import (
	"strconv"
	"strings"
)

// maxDigits is how many digits Max has.
const maxDigits = 13

// farExponent is where an exponent stops being counted exactly: it is far
// beyond what any text that fits in memory could balance with its digits.
const farExponent = 1 << 40

// Parse reads the text of a JSON number exactly: 10000, 10000.00 and 1e4 are
// the same amount. It returns ErrSyntax, ErrFraction, ErrNegative or
// ErrTooLarge, and never rounds.
func Parse(text string) (Amount, error) {
	n, ok := scan(text)
	switch {
	case !ok:
		return 0, ErrSyntax
	case n.negative:
		return 0, ErrNegative
	case n.digits == "":
		return 0, nil
	case n.scale < 0:
		return 0, ErrFraction
	case int64(len(n.digits))+n.scale > maxDigits:
		return 0, ErrTooLarge
	}
	// At most 13 digits, so this fits in an int64.
	value, err := strconv.ParseInt(n.digits+strings.Repeat("0", int(n.scale)), 10, 64)
	if err != nil {
		return 0, ErrSyntax
	}
	if Amount(value) > Max {
		return 0, ErrTooLarge
	}
	return Amount(value), nil
}

// number is digits times ten to the power of scale. The digits neither begin
// nor end with a zero, so a negative scale always means a fraction.
type number struct {
	negative bool
	digits   string
	scale    int64
}

// scan takes a text apart by the grammar of JSON numbers (RFC 8259, 6).
func scan(text string) (number, bool) {
	rest, negative := strings.CutPrefix(text, "-")
	whole, rest := leadingDigits(rest)
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return number{}, false
	}
	var fraction string
	if after, found := strings.CutPrefix(rest, "."); found {
		if fraction, rest = leadingDigits(after); fraction == "" {
			return number{}, false
		}
	}
	exponent, ok := scanExponent(rest)
	if !ok {
		return number{}, false
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	scale := exponent - int64(len(fraction)) + int64(len(digits)-len(trimmed))
	return number{negative, trimmed, scale}, true
}

// scanExponent reads "", "e4", "E+4", "e-4": all of the text or nothing.
func scanExponent(text string) (int64, bool) {
	if text == "" {
		return 0, true
	}
	if text[0] != 'e' && text[0] != 'E' {
		return 0, false
	}
	text = text[1:]
	sign := int64(1)
	if strings.HasPrefix(text, "-") {
		sign = -1
	}
	if text != "" && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	digits, rest := leadingDigits(text)
	if digits == "" || rest != "" {
		return 0, false
	}
	var value int64
	for _, d := range []byte(digits) {
		value = min(value*10+int64(d-'0'), farExponent)
	}
	return sign * value, true
}

// leadingDigits splits off the decimal digits that a text begins with.
func leadingDigits(text string) (digits, rest string) {
	end := 0
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	return text[:end], text[end:]
}
