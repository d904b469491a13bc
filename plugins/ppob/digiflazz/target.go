package digiflazz

import (
	"strings"
)

// separators are what people write between digits.
var separators = strings.NewReplacer(" ", "", "\u00a0", "", "-", "", ".", "", "(", "", ")", "")

const (
	minDigits, maxDigits           = 4, 20
	minPhoneDigits, maxPhoneDigits = 10, 13
	yearDigits                     = 4
)

func digits(text string, least, most int) bool {
	return len(text) >= least && len(text) <= most && strings.Trim(text, "0123456789") == ""
}

// phone brings an Indonesian mobile number into the form 08…, which is the only
// one that the upstream takes for one.
func phone(text string) (string, bool) {
	number := separators.Replace(text)
	number, international := strings.CutPrefix(number, "+62")
	if !international {
		if rest, ok := strings.CutPrefix(number, "62"); ok {
			number, international = rest, true
		}
	}
	if international || strings.HasPrefix(number, "8") {
		number = "0" + number
	}
	return number, strings.HasPrefix(number, "08") && digits(number, minPhoneDigits, maxPhoneDigits)
}

// customer is a customer number, with the year where one is written behind it.
type customer struct{ number, year string }

// readCustomer reads digits, or two groups of them with a comma between: number
// and year of a property tax, or code and owner of a vehicle tax.
func readCustomer(text string) (customer, bool) {
	first, second, two := strings.Cut(separators.Replace(text), ",")
	switch {
	case !digits(first, minDigits, maxDigits):
		return customer{}, false
	case !two:
		return customer{number: first}, true
	case digits(second, yearDigits, yearDigits):
		return customer{number: first, year: second}, true
	case digits(second, minDigits, maxDigits):
		return customer{number: first + "," + second}, true
	}
	return customer{}, false
}

const (
	phoneForm = "must be an Indonesian mobile number of 10 to 13 digits, like 081234567890"
	digitForm = "must be the meter, card or account number, 4 to 20 digits"
	billForm  = "must be the customer number, 4 to 20 digits"
	taxForm   = "must be the tax number and the year with a comma between, like 329801092375999991,2024"
	carForm   = "must be the code and the owner's NIK with a comma between, each 4 to 20 digits"
	anyForm   = billForm + "; with ,year behind it for property tax (PBB), and ,NIK for vehicle tax (SAMSAT)"
)

// formOf is the form of a bill's target, which its brand decides.
func formOf(brand string) string {
	for _, word := range strings.Fields(strings.ToUpper(brand)) {
		switch word {
		case "PBB":
			return taxForm
		case "SAMSAT":
			return carForm
		}
	}
	return billForm
}

// prepaidTarget is the target of a prepaid product, or the form that it lacks.
// The upstream's categories are open words, so they are looked into.
func prepaidTarget(text, category string) (number, lacks string) {
	words := strings.FieldsFunc(strings.ToLower(category), func(r rune) bool { return (r < 'a' || r > 'z') && r != '-' })
	for _, word := range words {
		switch word {
		case "pulsa", "data", "sms", "telpon", "telepon", "masa":
			if number, ok := phone(text); ok {
				return number, ""
			}
			return "", phoneForm
		case "e-money", "emoney":
			// A wallet's number is a phone's, a card's is not.
			if number, ok := phone(text); ok {
				return number, ""
			}
		}
	}
	number = separators.Replace(text)
	if !digits(number, minDigits, maxDigits) {
		return "", digitForm
	}
	return number, ""
}
