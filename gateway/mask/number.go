package mask

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// group are digits of a text that stand together, with a + before them.
type group struct {
	from, to int
	digits   string // as 0 to 9
	joined   bool   // to the one before, by what separates the digits of a number
}

func groupsOf(text string) (all []group) {
	const mostBetween = 3
	between, near := 0, false // since the last digit, and whether that is what separates digits
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		begin := at
		if r == '+' {
			r, size = utf8.DecodeRuneInString(text[at+1:])
			size++
		}
		if !unicode.IsDigit(r) {
			r, size = utf8.DecodeRuneInString(text[at:])
			between++
			near = near && between <= mostBetween && (strings.ContainsRune(".()/_+", r) || unicode.In(r, unicode.Zs, unicode.Pd, unicode.Cf))
			at += size
			continue
		}
		for at += size; at < len(text); at += size {
			if r, size = utf8.DecodeRuneInString(text[at:]); !unicode.IsDigit(r) {
				break
			}
		}
		all = append(all, group{begin, at, western(text[begin:at]), near})
		between, near = 0, true
	}
	return all
}

// numbers hides the phone numbers and cards among digits and what separates them. Other numbers stay: those of orders, days and amounts.
func numbers(text string) string {
	var out strings.Builder
	all, end := groupsOf(text), 0
	for i := 0; i < len(all); i++ {
		last, digits := -1, ""
		for j := i; j < len(all) && (j == i || all[j].joined) && len(digits) <= mostDigits; j++ {
			if digits += strings.TrimPrefix(all[j].digits, "+"); j == i {
				digits = all[j].digits
			}
			if personal(digits) {
				last = j
			}
		}
		if last < 0 {
			continue
		}
		out.WriteString(text[end:all[i].from])
		out.WriteString(lastFour(text[all[i].from:all[last].to]))
		i, end = last, all[last].to
	}
	if end == 0 {
		return text
	}
	out.WriteString(text[end:])
	return out.String()
}

const mostDigits = 19 // of a card

// personal reports whether digits are the number of a phone, a mobile's or a city's in Indonesia or an international one, or of a card, which
// begins as the networks' do.
func personal(digits string) bool {
	n, of := len(digits), func(least, most int) bool { return len(digits) >= least && len(digits) <= most }
	switch {
	case n < 9: //nolint:mnd // the shortest
		return false
	case digits[0] == '+':
		return of(10, 16)
	case strings.HasPrefix(digits, "08"):
		return of(9, 13)
	case strings.HasPrefix(digits, "628") && of(10, 14):
		return true
	case digits[0] == '0':
		return digits[1] >= '2' && digits[1] <= '7' && of(9, 12)
	}
	return of(13, mostDigits) && (digits[0] >= '3' && digits[0] <= '6' || digits[0] == '2' && digits[1] >= '2' && digits[1] <= '7') && luhn(digits)
}

// western writes the digits of any script as 0 to 9.
func western(digits string) string {
	if !strings.ContainsFunc(digits, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return digits
	}
	return strings.Map(func(r rune) rune {
		for _, of := range unicode.Nd.R16 { // each begins with a zero
			if zero := rune(of.Lo); r >= zero && r <= rune(of.Hi) {
				return '0' + (r-zero)%10
			}
		}
		for _, of := range unicode.Nd.R32 {
			if zero := int64(of.Lo); int64(r) >= zero && int64(r) <= int64(of.Hi) {
				return '0' + (r-rune(zero))%10 //nolint:gosec // a rune
			}
		}
		return r
	}, digits)
}

// luhn reports whether the check digit of a card's number is right.
func luhn(digits string) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			d *= 2
		}
		sum += d/10 + d%10
	}
	return sum%10 == 0
}
