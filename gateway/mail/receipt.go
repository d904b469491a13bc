package mail

import (
	"time"

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

// Render is the receipt's subject and text.
func (r Receipt) Render() (subject, text string) {
	values := Values{
		"Merchant": r.Merchant, "Reference": r.Reference, "Description": r.Description, "Amount": r.Amount.Format(), "Paid": When(r.Language, r.PaidAt),
	}
	if r.Test {
		values["Test"] = "test"
	}
	return Render("receipt", r.Language, values)
}
