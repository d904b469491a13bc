package kind

import (
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// receiptOf is the receipt of a movement that is paid, in the name of its merchant's
// id, and the payer's address, "" for none. A receipt is written in the commit of the
// payment, and nothing about it delays that.
func receiptOf(m movement.Movement) (r mail.Receipt, payer string) {
	return mail.Receipt{
		Merchant: m.Owner.MerchantID, Reference: m.Reference, Description: lifecycle.TextOf(m.Field("description")),
		Amount: m.Amount, PaidAt: paidAt(m), Test: m.Owner.Mode != string(tenants.Live),
	}, lifecycle.TextOf(m.Field("payer_email"))
}

func mailTo(payer string, r mail.Receipt) *movement.Mail {
	return &movement.Mail{To: payer, Subject: r.Subject(), Text: r.Text()}
}
