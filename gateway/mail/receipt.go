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
	Test        bool   // no money has moved
	Language    string // "en"; Indonesian for all others
}

// jakarta is the time zone of receipts, as of the contract.
var jakarta = time.FixedZone("WIB", 7*60*60)

// longest bounds each text of others in a mail, in bytes.
const longest = 500

// wording is what a receipt says in one language.
type wording struct {
	subject, test, thanks, foot      string
	amount, paid, reference, forWhat string
	months                           [12]string
}

var indonesian = wording{
	subject: "Bukti pembayaran ke %s: %s", test: "Ini hanya uji coba. Tidak ada uang yang berpindah.",
	thanks: "%s telah menerima pembayaran Anda. Terima kasih.", foot: "Pesan ini dikirim oleh mesin; balasannya tidak dibaca.",
	amount: "Jumlah", paid: "Dibayar", reference: "Referensi", forWhat: "Keterangan",
	months: [12]string{
		"Januari", "Februari", "Maret", "April", "Mei", "Juni", "Juli", "Agustus", "September", "Oktober", "November", "Desember",
	},
}

var english = wording{
	subject: "Receipt from %s: %s", test: "This is a test. No money has moved.",
	thanks: "%s has received your payment. Thank you.", foot: "This message was sent by a machine; answers to it are not read.",
	amount: "Amount", paid: "Paid", reference: "Reference", forWhat: "For",
	months: [12]string{
		"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
	},
}

func (r Receipt) words() wording {
	if r.Language == "en" {
		return english
	}
	return indonesian
}

// Subject is one line.
func (r Receipt) Subject() string {
	subject := fmt.Sprintf(r.words().subject, line(r.Merchant), r.Amount.Format())
	if r.Test {
		subject = "[Test] " + subject
	}
	return subject
}

// Text is the mail's plain text: paragraphs, and one of rows. Its HTML is made of it.
func (r Receipt) Text() string {
	var text strings.Builder
	w := r.words()
	if r.Test {
		text.WriteString(w.test + "\n\n")
	}
	fmt.Fprintf(&text, w.thanks+"\n\n", line(r.Merchant))
	at := r.PaidAt.In(jakarta)
	rows := [][2]string{
		{w.amount, r.Amount.Format()},
		{w.paid, fmt.Sprintf("%d %s %s", at.Day(), w.months[at.Month()-1], at.Format("2006, 15:04:05 MST"))},
		{w.reference, line(r.Reference)},
		{w.forWhat, line(r.Description)},
	}
	for _, row := range rows {
		if row[1] != "" {
			fmt.Fprintf(&text, "%-12s%s\n", row[0]+":", row[1])
		}
	}
	text.WriteString("\n" + w.foot + "\n")
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
