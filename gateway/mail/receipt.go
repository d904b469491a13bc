package mail

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Receipt is the mail to a payer whose payment was received.
type Receipt struct {
	Merchant    string // its name
	Reference   string
	Description string // or ""
	Amount      money.Amount
	PaidAt      time.Time
	Test        bool // no money has moved
}

// jakarta is the time zone of receipts, as of the contract.
var jakarta = time.FixedZone("WIB", 7*60*60)

// longest bounds each text of others in a mail, in bytes.
const longest = 500

// Subject is one line.
func (r Receipt) Subject() string {
	subject := fmt.Sprintf("Receipt from %s: %s", line(r.Merchant), r.Amount.Format())
	if r.Test {
		subject = "[Test] " + subject
	}
	return subject
}

// Text is the mail's plain text.
func (r Receipt) Text() string {
	var text strings.Builder
	if r.Test {
		text.WriteString("This is a test. No money has moved.\n\n")
	}
	fmt.Fprintf(&text, "%s has received your payment. Thank you.\n\n", line(r.Merchant))
	rows := [][2]string{
		{"Amount", r.Amount.Format()},
		{"Paid", r.PaidAt.In(jakarta).Format("2 January 2006, 15:04:05 MST")},
		{"Reference", line(r.Reference)},
		{"For", line(r.Description)},
	}
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(&text, "%-11s%s\n", row[0]+":", row[1])
		}
	}
	text.WriteString("\nThis message was sent by a machine; answers to it are not read.\n")
	return text.String()
}

// line makes a text of others fit for one line, whatever it is: a line of their
// own would let them write the receipt.
func line(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r) || !unicode.IsGraphic(r)
	}), " ")
	for len(text) > longest {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}
