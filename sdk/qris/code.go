package qris

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Error says which tag of a code is wrong and how. Tag is empty where the
// text as a whole is meant, and 62-05 for tag 05 inside tag 62.
type Error struct {
	Tag    string
	Reason string
}

// Error returns the tag and the reason; never the code itself.
func (e *Error) Error() string {
	if e.Tag == "" {
		return "qris: " + e.Reason
	}
	return "qris: tag " + e.Tag + " " + e.Reason
}

func fail(tag, format string, args ...any) error {
	return &Error{Tag: tag, Reason: fmt.Sprintf(format, args...)}
}

// Point says whether a code is for one payment or for many (tag 01).
type Point string

// The two points of initiation.
const (
	// Static codes carry no amount. A shop prints one and uses it for every payment.
	Static Point = "11"
	// Dynamic codes are made for one payment.
	Dynamic Point = "12"
)

// TipKind is what a code says about a tip (tag 55).
type TipKind string

// The kinds of tip.
const (
	// TipNone is a code that says nothing about tips.
	TipNone TipKind = ""
	// TipAsked lets the payer enter a tip.
	TipAsked TipKind = "01"
	// TipFixed adds Tip.Fixed to the amount.
	TipFixed TipKind = "02"
	// TipPercent adds Tip.BasisPoints of the amount.
	TipPercent TipKind = "03"
)

// Tip is what comes on top of the amount. Fixed is set for TipFixed only, and
// BasisPoints (hundredths of a percent) for TipPercent only.
type Tip struct {
	Kind        TipKind
	Fixed       money.Amount
	BasisPoints int
}

// Code is a QRIS code that has passed every check of Parse. It never changes:
// methods that alter a code return another. The zero Code is no code.
type Code struct {
	objects []object
	text    string
	amount  money.Amount
	tip     Tip
}

// String returns the code as it was read or built, byte for byte.
func (c Code) String() string { return c.text }

// Point says whether the code is static or dynamic.
func (c Code) Point() Point { return Point(c.get("01")) }

// Amount returns what is to be paid, without the tip; false where the payer enters it.
func (c Code) Amount() (money.Amount, bool) { return c.amount, c.amount > 0 }

// Tip returns what the code says about a tip.
func (c Code) Tip() Tip { return c.tip }

// MerchantName is the name that the payer's app shows (tag 59).
func (c Code) MerchantName() string { return c.get("59") }

// NationalID is the merchant's number in the national repository, its NMID (tag
// 51-02, where 51-00 says that the template is QRIS's own), empty in codes without one.
func (c Code) NationalID() string {
	if !strings.EqualFold(c.get("51-00"), national) {
		return ""
	}
	return c.get("51-02")
}

// national is whose template tag 51 is.
const national = "ID.CO.QRIS.WWW"

// Reference is the reference label (tag 62-05), empty where there is none.
func (c Code) Reference() string { return c.get("62-05") }

// Value returns the value of a tag ("59"), or of a tag inside a template
// ("62-05").
func (c Code) Value(path string) (string, bool) {
	root, inner, nested := strings.Cut(path, "-")
	value, found := find(c.objects, root)
	if !nested || !found {
		return value, found
	}
	objects, err := split(value, root)
	if err != nil {
		return "", false
	}
	return find(objects, inner)
}

// Field is one tag of a code and its value. Tags inside a template carry the
// template's, as in Value.
type Field struct {
	Tag   string `json:"tag"`
	Value string `json:"value"`
}

// Fields returns what the code says, in its order, the checksum last. A template
// (26 to 51, 62, 64) is told by what is inside.
func (c Code) Fields() []Field {
	var fields []Field
	for _, o := range c.objects {
		inner, err := split(o.value, o.tag)
		if !isTemplate(o.tag) || err != nil {
			fields = append(fields, Field{o.tag, o.value})
			continue
		}
		for _, i := range inner {
			fields = append(fields, Field{join(o.tag, i.tag), i.value})
		}
	}
	return append(fields, Field{"63", c.text[len(c.text)-4:]})
}

func (c Code) get(path string) string {
	value, _ := c.Value(path)
	return value
}

// Dynamic returns the code for one payment of an amount: tag 01 becomes
// dynamic, amount and tips of the old code go, the amount stands before tag
// 58, and everything else stays as it is. The code must be static.
func (c Code) Dynamic(amount money.Amount) (Code, error) {
	if c.Point() != Static {
		return Code{}, fail("01", "is not static (11)")
	}
	if amount < 1 || len(amount.String()) > maxAmount {
		return Code{}, fail("54", "must be above zero and have at most %d digits", maxAmount)
	}
	objects := make([]object, 0, len(c.objects)+1)
	for _, o := range c.objects {
		switch o.tag {
		case "01":
			o.value = string(Dynamic)
		case "54", "55", "56", "57":
			continue
		case "58":
			objects = append(objects, object{"54", amount.String()})
		}
		objects = append(objects, o)
	}
	return build(objects)
}

// maxLabel is how long a reference label may be.
const maxLabel = 25

// WithReference returns the code with a reference label (tag 62-05) of 1 to 25
// characters, put in the place of the old one or after the other labels.
func (c Code) WithReference(label string) (Code, error) {
	if n := utf8.RuneCountInString(label); n < 1 || n > maxLabel {
		return Code{}, fail("62-05", "must have 1 to %d characters", maxLabel)
	}
	labels, err := split(c.get("62"), "62")
	if err != nil {
		return Code{}, err
	}
	additional := write(set(labels, "05", label))
	if utf8.RuneCountInString(additional) > maxValue {
		return Code{}, fail("62", "would have more than %d characters", maxValue)
	}
	return build(set(slices.Clone(c.objects), "62", additional))
}

// set replaces the value of a tag in its place, or adds it at the end.
func set(objects []object, tag, value string) []object {
	for i := range objects {
		if objects[i].tag == tag {
			objects[i].value = value
			return objects
		}
	}
	return append(objects, object{tag, value})
}

// build gives objects their checksum and judges the result like any other.
func build(objects []object) (Code, error) {
	text := write(objects) + crcHeader
	return Parse(text + Checksum(text))
}
