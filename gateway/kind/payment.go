package kind

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Payment is money that a payer pays to a merchant: by a page of the provider's, or
// by a QR string. A creation is answered what there is to pay; only the provider's
// word, or the merchant's cancel, ends it.
type Payment struct {
	lifecycle.Plain

	lifecycle *lifecycle.Lifecycle
	checkouts string // the URL of the pages on which payments are paid, without an id
}

// AddPayment has payments run. PublicURL is where payers reach the gateway.
func AddPayment(l *lifecycle.Lifecycle, publicURL string) *Payment {
	p := &Payment{lifecycle: l, checkouts: publicURL + "/checkout/"}
	l.Add(manifest.Payment, p)
	return p
}

// wantsRawQR tells whether a payment was asked for as a raw QR string.
func wantsRawQR(m movement.Movement) bool { return string(m.Field("type")) == `"qris"` }

// CheckOffer says what is wrong with an offer that is not what was asked for.
func (p *Payment) CheckOffer(m movement.Movement, data json.RawMessage) error {
	if wantsRawQR(m) && offerOf(data).QR == "" {
		return errors.New("the result has no qr_string, which was asked for")
	}
	return nil
}

// Answer is what there is to pay, and always PENDING, also in a replay after the end.
func (p *Payment) Answer(op *catalog.Operation, m movement.Movement) (lifecycle.Answer, error) {
	o := (&lifecycle.Object{}).SetText(op.Rules.ReferenceField, m.Reference)
	if wantsRawQR(m) {
		if qr := offerOf(m.Result).QR; qr != "" {
			o.SetText("qr_string", qr)
		}
	} else if op.Answers("checkout_url") {
		o.SetText("checkout_url", p.checkouts+m.ID.String())
	}
	o.SetText("status", op.Rules.Word(movement.Pending)).SetNumber("amount", int64(m.Amount)).Echo(op, m).Results(op, op, m.Result)
	return lifecycle.Answer{Data: o.JSON()}, nil
}

// Describe is the state of a payment.
func (p *Payment) Describe(asked, op *catalog.Operation, m movement.Movement) lifecycle.Answer {
	return lifecycle.Answer{Data: describePayment(asked, op, m).JSON()}
}

func describePayment(asked, op *catalog.Operation, m movement.Movement) *lifecycle.Object {
	rules := op.Rules
	o := (&lifecycle.Object{}).SetText(rules.ReferenceField, m.Reference).SetText("status", rules.Status(m)).SetNumber("amount", int64(m.Amount)).
		Echo(asked, m)
	if m.PaidAmount != 0 || m.State == movement.Succeeded || !m.PaidLateAt.IsZero() {
		o.SetNumber("paid_amount", int64(m.Paid()))
	}
	o.SetTime("created_at", m.CreatedAt).SetTime("updated_at", m.UpdatedAt).SetTime("paid_at", m.PaidAt)
	if m.Channel != "" {
		o.SetText("channel", m.Channel)
	}
	if m.ProviderReference != "" {
		o.SetText("provider_reference", m.ProviderReference)
	}
	return o.SetTime("paid_late_at", m.PaidLateAt).Returned(m).Results(asked, op, m.Result)
}

// Event is the state, and when it was so.
func (p *Payment) Event(op *catalog.Operation, m movement.Movement, at time.Time) *lifecycle.Object {
	return describePayment(op.Status, op, m).SetTime("timestamp", at)
}

// Cancel asks the provider to end a pending payment, and polls it then: it may have
// been paid meanwhile, also where the provider leaves its end to us.
func (p *Payment) Cancel(ctx context.Context, r lifecycle.Request, m movement.Movement) (movement.Movement, error) {
	if m.PaidAmount != 0 { // money has arrived for it, and an operator decides
		return m, nil
	}
	l, op := p.lifecycle, r.Operation
	c, err := l.Reconnect(ctx, op, m)
	if err != nil {
		return m, err
	}
	result := l.Providers.Call(ctx, lifecycle.UseBy(m, op), sdk.Call{
		Operation: op.Path, RequestID: r.RequestID, Connection: c.Connection,
		Reference: m.UpstreamReference(), ProviderReference: m.ProviderReference,
		Amount: m.Amount, Body: m.Body(), SendBy: l.Now().Add(cancelWindow),
	}, time.Duration(op.Timeout))
	l.LogResult(ctx, m, result)
	if result.Outcome == sdk.NotSent {
		return m, fault.New(fault.ProviderUnavailable, "The provider is not available at the moment. The payment is still open.").WithReference(m.Reference)
	}
	seen, err := l.Poll(ctx, op.Target, m, c)
	switch {
	case err == nil && seen.State != movement.Pending:
		return seen, nil
	case result.Outcome == sdk.Done:
		seen, err = l.Apply(ctx, op.Target, m, movement.Fact{Source: movement.FromCancel, Says: movement.SaysCancelled})
		if err == nil {
			return seen, nil
		}
	}
	if err != nil {
		return m, fault.From(err).Unknown().WithReference(m.Reference)
	}
	return m, l.TimedOut(op.Target, m)
}

// Receipt is the mail to the payer of a payment that is paid, nil for none: unless the
// merchant's label asks for it, because many providers mail one of their own.
func (p *Payment) Receipt(ctx context.Context, m movement.Movement) *movement.Mail {
	r, payer := receiptOf(m)
	if payer == "" {
		return nil
	}
	account, err := p.lifecycle.Account(ctx, m)
	if err != nil || account.Merchant().Labels[tenants.LabelReceipts] != tenants.ReceiptsPayments {
		return nil
	}
	r.Merchant, r.Language = account.Merchant().Name, account.Merchant().Labels[tenants.LabelLanguage]
	return mailTo(payer, r)
}

// cancelWindow is how long a cancel may be on its way.
const cancelWindow = 5 * time.Second

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
	Console     string // in test mode the path of the payment's page in the merchants' console

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
		Amount: int64(m.Amount), Status: op.Rules.Status(m), SuccessURL: lifecycle.TextOf(m.Field("success_url")),
		Cancelled: wasCancelled(m), Test: m.Owner.Mode == string(tenants.Test),
		Colour: merchant.Labels[tenants.LabelColour], Language: merchant.Labels[tenants.LabelLanguage],
	}
	if page.Test {
		page.Console = "/" + m.Owner.MerchantID + "/" + m.Owner.Mode + "/movements/" + m.ID.String()
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
	if m.Gone() || !m.PaidLateAt.IsZero() && !m.ReturnedAt.IsZero() { // it is no proof any more
		page.Reversed, page.PaidAt = true, ""
	} else if !m.PaidLateAt.IsZero() {
		page.Late = true
	}
	return page, nil
}

// wasCancelled tells whether a payment was ended before its time. The word of both
// ends is EXPIRED, and a provider that is asked after a cancel says no more than that.
func wasCancelled(m movement.Movement) bool {
	return m.State == movement.Expired && m.UpdatedAt.Before(m.ExpiresAt.Add(-clocksDiffer))
}

// clocksDiffer is more than a provider's clock and ours may differ.
const clocksDiffer = time.Minute
