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
	for strings.HasPrefix(text, "bank/") || strings.HasPrefix(text, "phone/") {
		_, text, _ = strings.Cut(text, "/")
	}
	if bank, account, ok := strings.Cut(text, ":"); ok && !strings.Contains(text, "/") {
		return bank + "/" + account
	}
	number := strings.TrimPrefix(text, "+")
	for _, prefix := range []string{"62", "0", ""} {
		national, ok := strings.CutPrefix(number, prefix)
		if ok && strings.HasPrefix(national, "8") && len(national) >= leastNational && len(national) <= mostNational && strings.Trim(national, digits) == "" {
			return "62" + national
		}
	}
	return text
}

// Of a mobile number without its country's code, or the zero in place of it.
const (
	leastNational = 9
	mostNational  = 12
	digits        = "0123456789"
)

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

// separators are what people write between digits, and before what is no mail.
var separators = strings.NewReplacer(" ", "", "-", "", "\u2010", "", "\u2011", "", "\u2012", "", "\u2013", "", "\u2014", "", "\u2212", "", "(", "", ")", "")

// plain is a text without what is not seen and makes no difference: width, case, spaces, dashes, and, where it is no mail, dots.
func plain(text string) string {
	ascii := true
	for i := 0; ascii && i < len(text); i++ {
		ascii = text[i] < unicode.MaxASCII
	}
	if !ascii {
		text = strings.Map(func(r rune) rune {
			if unicode.In(r, unicode.Cf, unicode.Cc, unicode.Mn, unicode.Z) {
				return -1
			}
			if d, ok := digit(r); ok {
				return d
			}
			return r
		}, norm.NFKC.String(text))
	}
	text = strings.ToLower(strings.TrimSpace(text))
	if strings.Contains(text, "@") {
		return text
	}
	return strings.ReplaceAll(separators.Replace(strings.Join(strings.Fields(text), "")), ".", "")
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
