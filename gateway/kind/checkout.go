package kind

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Checkout is what the hosted checkout page shows of a payment.
type Checkout struct {
	Merchant    string // its name
	Reference   string
	Description string
	Amount      int64  // whole rupiah
	Status      string // the merchant's word: PENDING, PAID, EXPIRED, FAILED
	QR          string // to be shown as an image, or ""
	PaymentURL  string // the provider's page, or ""
	SuccessURL  string // where the payer goes when it is paid, or ""
	ExpiresAt   string // ISO 8601 UTC, or ""
	PaidAt      string // when it is paid, the same
	Cancelled   bool   // it expired, and not because its time was over
	Late        bool   // it was paid after its end
	Reversed    bool   // it was paid, and taken back
	Test        bool

	// What the merchant's labels say, unchecked, or "".
	Colour, Language string
}

// Checkout tells the hosted page what to show of a payment, or fault.NotFound.
func (p *Payment) Checkout(ctx context.Context, id string) (Checkout, error) {
	none := fault.New(fault.NotFound, "There is no such payment.")
	parsed, err := movement.ParseID(id)
	if err != nil {
		return Checkout{}, none
	}
	l := p.lifecycle
	m, err := l.Store.MovementByID(ctx, parsed)
	if errors.Is(err, movement.ErrNotFound) || err == nil && m.State == movement.NotSubmitted {
		return Checkout{}, none
	}
	if err != nil {
		return Checkout{}, fault.From(err)
	}
	op, err := l.Shown(m)
	if err != nil {
		return Checkout{}, fault.From(err)
	}
	if op.Kind != manifest.Payment { // nobody pays for it on a page
		return Checkout{}, none
	}
	account, err := l.Account(ctx, m)
	if err != nil {
		return Checkout{}, fault.From(err)
	}
	merchant := account.Merchant()
	page := Checkout{
		Merchant: merchant.Name, Reference: m.Reference, Description: lifecycle.TextOf(m.Field("description")),
		Amount: int64(m.Amount), Status: op.Rules.Word(m.State), SuccessURL: lifecycle.TextOf(m.Field("success_url")),
		Cancelled: wasCancelled(m), Test: m.Owner.Mode == string(tenants.Test),
		Colour: merchant.Labels[tenants.LabelColour], Language: merchant.Labels[tenants.LabelLanguage],
	}
	if !m.ExpiresAt.IsZero() {
		page.ExpiresAt = lifecycle.Stamp(m.ExpiresAt)
	}
	switch m.State { //nolint:exhaustive // the others have nothing more to show
	case movement.Pending:
		o := offerOf(m.Result)
		page.QR, page.PaymentURL = o.QR, o.PaymentURL
	case movement.Succeeded:
		page.PaidAt = lifecycle.Stamp(paidAt(m))
	}
	if !m.ReversedAt.IsZero() { // it is no proof any more, and leads nowhere
		page.Reversed, page.PaidAt, page.SuccessURL = true, "", ""
	} else if !m.PaidLateAt.IsZero() {
		page.Late = true
	}
	return page, nil
}

// paidAt is when a movement was paid, which not every provider tells: then it is when
// we learned it.
func paidAt(m movement.Movement) time.Time {
	if m.PaidAt.IsZero() {
		return m.UpdatedAt
	}
	return m.PaidAt
}

// wasCancelled tells whether a payment was ended before its time. The word of both
// ends is EXPIRED, and a provider that is asked after a cancel says no more than that.
func wasCancelled(m movement.Movement) bool {
	return m.State == movement.Expired && m.UpdatedAt.Before(m.ExpiresAt.Add(-clocksDiffer))
}

// clocksDiffer is more than a provider's clock and ours may differ.
const clocksDiffer = time.Minute
