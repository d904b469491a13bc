package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Categories whose targets or serial numbers are not those of a phone.
const (
	categoryPLN    = "PLN"
	categoryWallet = "E-Money"
	categoryGames  = "Games"
)

// customerName is everybody's name, as in the upstream's sample.
const customerName = "Nama Pelanggan Pertama"

// prefixes are the blocks of numbers that operators began with.
var prefixes = map[string][]string{
	"TELKOMSEL": {"0811", "0812", "0813", "0821", "0822", "0823", "0852", "0853"},
	"by.U":      {"0851"},
	"INDOSAT":   {"0814", "0815", "0816", "0855", "0856", "0857", "0858"},
	"XL":        {"0817", "0818", "0819", "0859", "0877", "0878"},
	"AXIS":      {"0831", "0832", "0833", "0838"},
	"TRI":       {"0895", "0896", "0897", "0898", "0899"},
	"SMARTFREN": {"0881", "0882", "0883", "0884", "0885", "0886", "0887", "0888", "0889"},
}

// targetCode judges the form of a customer number; rcSuccess is a good one.
func (p *product) targetCode(customer string) rc {
	switch p.Category {
	case categoryPLN:
		return targetOfToken(customer)
	case categoryGames:
		return digitsWithin(customer, 4, 20)
	case categoryWallet:
		return targetOfPhone(customer, []string{"08"})
	default:
		return targetOfPhone(customer, prefixes[p.Brand])
	}
}

// targetOfToken judges a meter's or a subscriber's number.
func targetOfToken(customer string) rc { return digitsWithin(customer, 11, 12) }

func targetOfPhone(customer string, begins []string) rc {
	if code := digitsWithin(customer, 10, 13); code != rcSuccess {
		return code
	}
	if !slices.ContainsFunc(begins, func(prefix string) bool { return strings.HasPrefix(customer, prefix) }) {
		return rcPrefix
	}
	return rcSuccess
}

func digitsWithin(customer string, least, most int) rc {
	if strings.Trim(customer, "0123456789") != "" {
		return rcCustomer
	}
	if len(customer) < least || len(customer) > most {
		return rcDigits
	}
	return rcSuccess
}

// digitsOf derives digits from a text: the same purchase has the same serial
// number whenever it is asked for.
func digitsOf(text string, count int) string {
	var out strings.Builder
	for n := 0; out.Len() < count; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s", n, text))
		fmt.Fprintf(&out, "%018d", binary.BigEndian.Uint64(sum[:])%1_000_000_000_000_000_000)
	}
	return out.String()[:count]
}

// serial is the serial number of a prepaid purchase. A token's last parts name
// how many kWh it is for, at 1,450 rupiah each.
func (p *product) serial(ref string, at time.Time) string {
	switch p.Category {
	case categoryPLN:
		d := digitsOf("token:"+ref, 20)
		tenths := int64(p.Price) / 145
		return fmt.Sprintf("%s-%s-%s-%s-%s/%s/R1/1300VA/%d.%dKWH",
			d[:4], d[4:8], d[8:12], d[12:16], d[16:], strings.ToUpper(customerName), tenths/10, tenths%10)
	case categoryWallet:
		return "PELANGGAN/" + at.In(jakarta).Format("20060102150405") + digitsOf("wallet:"+ref, 6)
	default:
		return digitsOf("serial:"+ref, 16)
	}
}
