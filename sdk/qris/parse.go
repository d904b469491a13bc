package qris

import (
	"strings"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	// maxText is the longest code, in characters.
	maxText = 512
	// maxAmount is the longest amount, in characters.
	maxAmount = 13
	// crcHeader begins the last object; the checksum runs over it, too.
	crcHeader = "6304"
)

// Parse reads a QRIS code and checks it: the structure and checksum of EMVCo,
// and QRIS's own rules (rupiah, Indonesia, a merchant account, name, city,
// postal code). It returns an *Error that names the tag. Amounts with a
// fraction of a rupiah are refused: nobody can pay them.
func Parse(text string) (Code, error) {
	if !utf8.ValidString(text) {
		return Code{}, fail("", "is not valid UTF-8")
	}
	if utf8.RuneCountInString(text) > maxText {
		return Code{}, fail("", "has more than %d characters", maxText)
	}
	objects, err := split(text, "")
	if err != nil {
		return Code{}, err
	}
	if err := checkFrame(text, objects); err != nil {
		return Code{}, err
	}
	code := Code{objects: objects[:len(objects)-1], text: text}
	if err := checkFixed(code.objects); err != nil {
		return Code{}, err
	}
	if err := checkTemplates(code.objects); err != nil {
		return Code{}, err
	}
	return code.withMoney()
}

// checkFrame holds the first and the last object and the checksum.
func checkFrame(text string, objects []object) error {
	if len(objects) == 0 || objects[0].tag != "00" {
		return fail("00", "must be the first")
	}
	if objects[0].value != "01" {
		return fail("00", "must be 01")
	}
	last := objects[len(objects)-1]
	if last.tag != "63" {
		return fail("63", "must be the last")
	}
	if len(last.value) != 4 || !strings.HasSuffix(text, crcHeader+last.value) {
		return fail("63", "must have four hexadecimal digits")
	}
	// Some issuers print lower case; the number is the same.
	if !strings.EqualFold(last.value, Checksum(strings.TrimSuffix(text, last.value))) {
		return fail("63", "is not the checksum of this code")
	}
	return nil
}

// fixed is a tag that every QRIS code has, and how it is judged.
type fixed struct {
	tag    string
	accept func(string) bool
	reason string
}

var fixedTags = []fixed{
	{"01", func(v string) bool { return v == string(Static) || v == string(Dynamic) }, "must be 11 or 12"},
	{"52", func(v string) bool { return len(v) == 4 && allDigits(v) }, "must be four digits"},
	{"53", func(v string) bool { return v == "360" }, "must be 360, the rupiah"},
	{"58", func(v string) bool { return v == "ID" }, "must be ID"},
	{"59", upTo(25), "must have at most 25 characters"},
	{"60", upTo(15), "must have at most 15 characters"},
	{"61", upTo(10), "must have at most 10 characters"},
}

func upTo(limit int) func(string) bool {
	return func(v string) bool { return utf8.RuneCountInString(v) <= limit }
}

func checkFixed(objects []object) error {
	for _, f := range fixedTags {
		value, found := find(objects, f.tag)
		if !found {
			return fail(f.tag, "is missing")
		}
		if !f.accept(value) {
			return fail(f.tag, "%s", f.reason)
		}
	}
	return nil
}

// checkTemplates holds the merchant accounts, of which there must be one, and
// the additional data. Unreserved templates (80 to 99) are passed through.
func checkTemplates(objects []object) error {
	accounts := 0
	for _, o := range objects {
		isAccount := "02" <= o.tag && o.tag <= "51"
		if isAccount {
			accounts++
		}
		if !isTemplate(o.tag) {
			continue
		}
		inner, err := split(o.value, o.tag)
		if err != nil {
			return err
		}
		if isAccount && !has(inner, "00") {
			return fail(o.tag+"-00", "is missing")
		}
	}
	if accounts == 0 {
		return fail("", "has no merchant account (tags 02 to 51)")
	}
	return nil
}

// isTemplate tells tags whose value is tags again.
func isTemplate(tag string) bool {
	return "26" <= tag && tag <= "51" || tag == "62" || tag == "64"
}

// withMoney reads amount and tips.
func (c Code) withMoney() (Code, error) {
	var err error
	if text, found := find(c.objects, "54"); found {
		if c.Point() == Static {
			return Code{}, fail("54", "must not stand in a static code")
		}
		if c.amount, err = readAmount("54", text); err != nil {
			return Code{}, err
		}
	}
	c.tip, err = readTip(c.objects)
	if err != nil {
		return Code{}, err
	}
	return c, nil
}

func readTip(objects []object) (Tip, error) {
	kind, found := find(objects, "55")
	tip := Tip{Kind: TipKind(kind)}
	switch {
	case !found, tip.Kind == TipAsked, tip.Kind == TipFixed, tip.Kind == TipPercent:
	default:
		return Tip{}, fail("55", "must be 01, 02 or 03")
	}
	fixedText, hasFixed := find(objects, "56")
	percentText, hasPercent := find(objects, "57")
	if hasFixed != (tip.Kind == TipFixed) {
		return Tip{}, fail("56", "must stand with tag 55 of 02, and only there")
	}
	if hasPercent != (tip.Kind == TipPercent) {
		return Tip{}, fail("57", "must stand with tag 55 of 03, and only there")
	}
	var err error
	switch tip.Kind {
	case TipFixed:
		tip.Fixed, err = readAmount("56", fixedText)
	case TipPercent:
		tip.BasisPoints, err = readPercent(percentText)
	case TipNone, TipAsked:
	}
	return tip, err
}

// readAmount reads whole rupiah, with or without two decimals of zero.
func readAmount(tag, text string) (money.Amount, error) {
	whole, decimals, found := strings.Cut(text, ".")
	if len(text) > maxAmount || !allDigits(whole) || found && (!allDigits(decimals) || len(decimals) > 2) {
		return 0, fail(tag, "must be a number of at most %d characters", maxAmount)
	}
	if strings.Trim(decimals, "0") != "" {
		return 0, fail(tag, "must be whole rupiah")
	}
	// Leading zeros are no JSON number, but EMVCo allows them.
	whole = strings.TrimLeft(whole, "0")
	if whole == "" {
		return 0, fail(tag, "must be above zero")
	}
	amount, err := money.Parse(whole)
	if err != nil {
		return 0, fail(tag, "%s", err)
	}
	return amount, nil
}

// readPercent reads 0.01 to 99.99 as hundredths of a percent.
func readPercent(text string) (int, error) {
	whole, decimals, found := strings.Cut(text, ".")
	if !allDigits(whole) || len(whole) > 2 || found && (!allDigits(decimals) || len(decimals) > 2) {
		return 0, fail("57", "must be a percentage from 0.01 to 99.99")
	}
	points := 0
	for _, d := range whole + (decimals + "00")[:2] {
		points = points*10 + int(d-'0')
	}
	if points == 0 {
		return 0, fail("57", "must be above zero")
	}
	return points, nil
}
