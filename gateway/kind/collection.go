package kind

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Collection is a sale that is paid by a QR code of its own, made of a shop's printed
// one. Its payable amount is what no other open sale of the account has; a line of
// the account's statement with that amount pays it, and nothing else ends it.
type Collection struct {
	lifecycle.Plain

	lifecycle  *lifecycle.Lifecycle
	statements Statements
}

// Statements reads what is new in the statement of a movement's account, if nobody has
// read it for a while, matches it, and returns the movement as it stands then.
type Statements interface {
	Refresh(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error)
}

// AddCollection has collections run.
func AddCollection(l *lifecycle.Lifecycle, s Statements) *Collection {
	k := &Collection{lifecycle: l, statements: s}
	l.Add(manifest.Collection, k)
	return k
}

// Prepare finds out how long an amount of the account stays a collection's own.
func (k *Collection) Prepare(_ context.Context, _ lifecycle.Request, draft *movement.Movement, c lifecycle.Connection) (string, error) {
	draft.ReportsLate = c.ReportsLate
	return "", nil
}

// Reserve takes an amount that no other open collection of the account has, for the
// collection's life and the time in which its payment may still come to light.
func (k *Collection) Reserve(ctx context.Context, op *catalog.Operation, draft movement.Movement, reserve lifecycle.Reserving) (movement.Movement, bool, error) {
	draft.ExpiresAt = draft.CreatedAt.Add(op.Rules.Life)
	draft.Reserved = op.Rules.Reservation(draft, draft.ReportsLate)
	m, ours, err := reserve(ctx, draft)
	if full, ok := errors.AsType[*movement.NoAmountError](err); ok {
		now := k.lifecycle.Now()
		err = fault.New(fault.InProgress, "Every amount that this payment could have is taken by another that is open or was just now.").
			After(now, max(full.FreeAt.Sub(now), time.Second)).WithReference(draft.Reference)
	}
	if errors.Is(err, movement.ErrForeignAccount) {
		err = fault.New(fault.ProviderUnavailable, "The wallet account is another merchant's. Nothing was sent.").Because(err).WithReference(draft.Reference)
	}
	return m, ours, err
}

// Answer is the code to pay by, and always PENDING.
func (k *Collection) Answer(op *catalog.Operation, m movement.Movement) (lifecycle.Answer, error) {
	base := m.Amount
	if asked, err := money.Parse(string(m.Field(op.AmountField()))); err == nil { // it was parsed before its reservation
		base = asked
	}
	o := (&lifecycle.Object{}).SetText(op.Rules.ReferenceField, m.Reference).SetText("qr_string", offerOf(m.Result).QR).
		SetNumber("amount", int64(m.Amount)).SetNumber("base_amount", int64(base)).SetNumber("random_code", int64(m.Amount-base)).
		SetText("status", op.Rules.Word(movement.Pending)).Echo(op, m).Results(op, op, m.Result)
	if m.Remaining != nil {
		o.SetNumber(lifecycle.RemainingQuota, *m.Remaining)
	}
	return lifecycle.Answer{Data: o.JSON()}, nil
}

// Describe is the state of a collection.
func (k *Collection) Describe(asked, op *catalog.Operation, m movement.Movement) lifecycle.Answer {
	return lifecycle.Answer{Data: describeCollection(asked, op, m).JSON()}
}

func describeCollection(asked, op *catalog.Operation, m movement.Movement) *lifecycle.Object {
	o := (&lifecycle.Object{}).SetText(op.Rules.ReferenceField, m.Reference).SetText("status", op.Rules.Status(m)).
		SetNumber("amount", int64(m.Amount)).Echo(asked, m)
	if m.PaidAt.IsZero() {
		o.Set("paid_at", nil)
	}
	return o.SetTime("paid_at", m.PaidAt).SetTime("paid_late_at", m.PaidLateAt).Returned(m).Results(asked, op, m.Result)
}

// Event is the state, and when it was so.
func (k *Collection) Event(op *catalog.Operation, m movement.Movement, at time.Time) *lifecycle.Object {
	return describeCollection(op.Status, op, m).SetTime("timestamp", at)
}

// Refresh reads the statement.
func (k *Collection) Refresh(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error) {
	return k.statements.Refresh(ctx, op, m)
}

// Receipt is the mail to the payer of a collection that is paid, nil for none: where
// nobody is named.
func (k *Collection) Receipt(ctx context.Context, m movement.Movement) *movement.Mail {
	r, payer := receiptOf(m)
	if payer == "" {
		return nil
	}
	// A name that can't be read now is no reason to keep a payment waiting.
	if account, err := k.lifecycle.Account(ctx, m); err == nil {
		r.Merchant, r.Language = account.Merchant().Name, account.Merchant().Labels[tenants.LabelLanguage]
	}
	return mailTo(payer, r)
}
