package movement

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Destination is where money goes in one form, however it is written: an account as
// "014/2460888509", a mobile number as "6281122334455". It reads what merchants write in a
// request, what a provider tells in its quote ("bank/014/2460888509", "phone/628…"), and what
// operators put on a list ("014:2460 888 509", "0811-2233-4455"). Bare digits that can be an
// Indonesian mobile number are one.
func Destination(words string) string {
	text := plain(words)
	if !strings.Contains(text, "/") {
		text = strings.Replace(text, ":", "/", 1)
	}
	parts := strings.Split(text, "/")
	for i, part := range parts {
		parts[i] = number(part)
	}
	for len(parts) > 1 && (parts[0] == "bank" || parts[0] == "phone") {
		parts = parts[1:]
	}
	if len(parts) == 1 {
		return mobile(parts[0])
	}
	return strings.Join(parts, "/")
}

// separators are what people write between digits.
var separators = strings.NewReplacer(" ", "", "-", "", ".", "", "(", "", ")", "", "\u2010", "", "\u2011", "", "\u2012", "", "\u2013", "", "\u2014", "", "\u2212", "")

const digits = "0123456789"

// number is a text without separators, where it is a number, or some of them as in "3201,2026".
func number(text string) string {
	if joined := separators.Replace(text); strings.Trim(joined, digits+"+,|") == "" {
		return joined
	}
	return strings.TrimSpace(text)
}

// Of a mobile number without its country's code, or the zero in place of it.
const leastNational, mostNational = 9, 12

// mobile is an Indonesian mobile number with its country's code, and any other text as it is.
func mobile(text string) string {
	for _, prefix := range []string{"+62", "62", "0", ""} {
		national, ok := strings.CutPrefix(text, prefix)
		if ok && strings.HasPrefix(national, "8") && len(national) >= leastNational && len(national) <= mostNational && strings.Trim(national, digits) == "" {
			return "62" + national
		}
	}
	return text
}

// QuoteForRules is what the policy's rules see of the quote of an operation of such rules.
func (m *Movement) QuoteForRules(rules Rules) map[string]any {
	if rules.Reserves == ReserveBalance {
		return map[string]any{"price": int64(m.Amount)}
	}
	quote := map[string]any{"fee": int64(m.Fee), "name_match": nil}
	if m.NameMatch != nil {
		quote["name_match"] = *m.NameMatch
	}
	if m.Destination != "" {
		quote["destination"] = m.Destination
	}
	return quote
}

// Payer is the mail of somebody who pays, in one form.
func Payer(mail string) string { return plain(mail) }

// plain is a text without what is not seen, and what makes no difference: width, case, spaces at its ends.
func plain(text string) string {
	seen := func(r rune) bool { return r >= ' ' && r < unicode.MaxASCII }
	if strings.ContainsFunc(text, func(r rune) bool { return !seen(r) }) {
		text = strings.Map(func(r rune) rune {
			switch d, ok := digit(r); {
			case ok:
				return d
			case unicode.Is(unicode.Z, r):
				return ' '
			case unicode.In(r, unicode.Cf, unicode.Cc, unicode.Mn):
				return -1
			}
			return r
		}, norm.NFKC.String(text))
	}
	return strings.ToLower(strings.TrimSpace(text))
}

// digit is a digit of any script as one of ours.
func digit(r rune) (rune, bool) {
	if !unicode.Is(unicode.Nd, r) {
		return 0, false
	}
	zero := r
	for unicode.Is(unicode.Nd, zero-1) && r-zero < 9 {
		zero--
	}
	return '0' + (r-zero)%10, true
}
