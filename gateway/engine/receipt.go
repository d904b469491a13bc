package engine

import (
	"context"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/mail"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// receipt is the mail to the payer of a collection that is paid, nil for none:
// where mails can't be sent, or nobody is named. It is written in the commit of
// the payment, and nothing about it delays that.
func (e *Engine) receipt(ctx context.Context, m movement.Movement, id uuid.UUID) *movement.Mail {
	if e.Mailed == nil || m.Kind != manifest.Collection || m.State != movement.Succeeded {
		return nil
	}
	asked := m.Fields()
	payer := textOf(asked["payer_email"])
	if payer == "" {
		return nil
	}
	r := mail.Receipt{
		Merchant: m.Owner.MerchantID, Reference: m.Reference, Description: textOf(asked["description"]),
		Amount: m.Amount, PaidAt: m.UpdatedAt, Test: m.Owner.Mode != "live",
	}
	if !m.PaidAt.IsZero() {
		r.PaidAt = m.PaidAt
	}
	// A name that can't be read now is no reason to keep a payment waiting.
	if account, err := e.accountOf(ctx, m); err == nil {
		r.Merchant = account.Merchant().Name
	}
	return &movement.Mail{ID: id, To: payer, Subject: r.Subject(), Text: r.Text()}
}
