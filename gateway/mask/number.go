package mask

import (
	"regexp"
	"strings"
	"unicode"
)

var (
	groups = regexp.MustCompile(`\+?\p{Nd}+`)
	// phone is a number of a mobile or of a city in Indonesia, or one that says that it is international; card begins as the networks' do.
	phone = regexp.MustCompile(`^(?:\+\d{9,15}|08\d{7,11}|628\d{7,11}|0[2-7]\d{7,10})$`)
	card  = regexp.MustCompile(`^(?:3\d|4|5\d|6\d|2[2-7])\d{11,17}$`)
)

// numbers hides the phone numbers and cards among digits and what separates them. Other numbers stay: those of orders, days and amounts.
func numbers(text string) string {
	var out strings.Builder
	at, end := groups.FindAllStringIndex(text, -1), 0
	for i := 0; i < len(at); i++ {
		last := -1
		for j, digits := i, ""; j < len(at) && len(digits) <= mostDigits; j++ {
			if digits += western(text[at[j][0]:at[j][1]]); personal(digits) {
				last = j
			}
		}
		if last < 0 {
			continue
		}
		out.WriteString(text[end:at[i][0]])
		out.WriteString(lastFour(text[at[i][0]:at[last][1]]))
		i, end = last, at[last][1]
	}
	out.WriteString(text[end:])
	return out.String()
}

const mostDigits = 19 // of a card

func personal(digits string) bool {
	return phone.MatchString(digits) || card.MatchString(digits) && luhn(digits)
}

// western writes the digits of any script as 0 to 9.
func western(digits string) string {
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
