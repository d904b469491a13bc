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
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Refund is money of a payment that its merchant gives back, all that is left of it or a
// part. It goes where the payment went: the same provider, the same account there. It is
// answered how it stands, as a transfer is; what it brings back is a return of the payment.
//
// No more goes back than has come: the refunds of a payment count against it as transfers do
// against payout limits, exactly, over all replicas, until they fail.
type Refund struct {
	lifecycle.Plain

	lifecycle *lifecycle.Lifecycle
	register  RefundRegister
	// Admit asks the policy about a refund that a person orders, as it is asked about one
	// of a key's. It is set before a person can.
	Admit func(ctx context.Context, id tenants.Identity, op *catalog.Operation, body catalog.Document) (policy.Ticket, error)
}

// RefundRegister tells how much of a payment its refunds have taken, and keeps operators'
// claims.
type RefundRegister interface {
	UsedOf(ctx context.Context, owner movement.Owner, name, period string) (int64, error)
	Claim(ctx context.Context, c movement.Claim) (movement.Claim, error)
}

// AddRefund has refunds run.
func AddRefund(l *lifecycle.Lifecycle, register RefundRegister) *Refund {
	k := &Refund{lifecycle: l, register: register}
	l.Add(manifest.Refund, k)
	return k
}

// lasting is the period of what counts for ever: counts of periods that are named by dates
// are dropped some day.
const lasting = "lasting"

// Of is the payment that a refund gives back.
func (k *Refund) Of(ctx context.Context, m movement.Movement) (movement.Movement, error) {
	op, err := k.lifecycle.Shown(m)
	if err != nil {
		return movement.Movement{}, err
	}
	return k.payment(ctx, m.Owner, lifecycle.TextOf(m.Field(op.PaymentField())))
}

func (k *Refund) payment(ctx context.Context, owner movement.Owner, reference string) (movement.Movement, error) {
	m, err := k.lifecycle.Store.MovementByKey(ctx, movement.Key{Owner: owner, Kind: manifest.Payment, Reference: reference})
	if err == nil && m.State == movement.NotSubmitted {
		err = movement.ErrNotFound
	}
	return m, err
}

// Draft finds the payment, whose provider the refund is sent to.
func (k *Refund) Draft(ctx context.Context, r lifecycle.Request, draft *movement.Movement) (err error) {
	op := r.Operation
	name, _ := r.Body[op.PaymentField()].(string)
	payment, err := k.payment(ctx, draft.Owner, name)
	if errors.Is(err, movement.ErrNotFound) {
		return fault.New(fault.NotFound, "There is no such payment.").WithReference(name)
	}
	if err != nil {
		return err
	}
	if _, serves := op.Of(payment.Provider); !serves {
		return fault.Invalid(op.PaymentField(), "was paid through a provider that takes no refunds from here: give it back at the provider, and Gerbang reports it as returned")
	}
	draft.Provider = payment.Provider
	if op.HasAmount(r.Body) {
		if draft.Amount, err = op.AmountOf(r.Body); err != nil {
			return err
		}
	}
	draft.Request, err = op.Canonical(r.Body)
	return err
}

// Prepare finds out how much may go back.
func (k *Refund) Prepare(ctx context.Context, r lifecycle.Request, draft *movement.Movement, c lifecycle.Connection) (remark string, err error) {
	op := r.Operation
	name, _ := r.Body[op.PaymentField()].(string)
	payment, err := k.payment(ctx, draft.Owner, name)
	if err != nil {
		return "", err
	}
	made, err := k.lifecycle.Shown(payment)
	if err != nil {
		return "", err
	}
	switch {
	case !payment.HasPaid():
		return "", fault.Invalid(op.PaymentField(), "is "+made.Rules.Status(payment)+": only what was paid can be given back")
	case !c.SameAccount(payment):
		return "", fault.Invalid(op.PaymentField(), "can't be proven to have been paid to the account that is connected now: give it back at the provider, and Gerbang reports it as returned")
	}
	most, left, err := k.left(ctx, payment)
	if err != nil {
		return "", err
	}
	if draft.Amount == 0 {
		draft.Amount = left
	}
	if draft.Amount <= 0 {
		return "", fault.Invalid(op.PaymentField(), nothingLeft)
	}
	draft.Usage = []movement.Usage{{Name: countOf(payment), Period: lasting, Amount: int64(draft.Amount), Ceiling: int64(most)}}
	return "", nil
}

const nothingLeft = "has nothing left to give back: all of it went back, or is going back by other refunds"

// countOf names what refunds of a payment count against.
func countOf(payment movement.Movement) string { return "refund." + payment.ID.Compact() }

// left is how much of a payment its refunds may bring back, all of them together, and how
// much can go back now. What went back is taken off, but for what a refund that counts has
// brought. One that failed, or whose money came again, counts no more, in whatever order
// that was told.
func (k *Refund) left(ctx context.Context, payment movement.Movement) (most, left money.Amount, err error) {
	used, err := k.register.UsedOf(ctx, payment.Owner, countOf(payment), lasting)
	if err != nil {
		return 0, 0, err
	}
	most = payment.Paid() - payment.Returned()
	for _, r := range payment.Returns {
		if r.Refund == "" || !r.UndoneAt.IsZero() {
			continue
		}
		refund, err := k.lifecycle.Store.MovementByKey(ctx, movement.Key{Owner: payment.Owner, Kind: manifest.Refund, Reference: r.Refund})
		if err != nil && !errors.Is(err, movement.ErrNotFound) {
			return 0, 0, err
		}
		if err == nil && refund.Counts() {
			most += r.Amount
		}
	}
	return most, max(most-money.Amount(used), 0), nil
}

// RefundOrder is a refund that a person orders: one of the merchant's people, or an operator.
type RefundOrder struct {
	Payment   movement.ID
	RefundID  string
	Amount    money.Amount // all that is left where it is 0
	Reason    string
	RequestID string
	// Operator is "" for the merchant's own people. What one may not claim alone waits for
	// another who says the same.
	Operator  string
	AloneUpTo money.Amount
}

// RefundOrdered is what has come of an order: the answer that a key would have got, or that it
// waits for another operator.
type RefundOrdered struct {
	Data    json.RawMessage
	Waiting bool
}

// Order makes the refund as if a key of the merchant's had asked for it. The error is
// always a *fault.Error.
func (k *Refund) Order(ctx context.Context, o RefundOrder) (RefundOrdered, error) {
	done, err := k.order(ctx, o)
	if err != nil {
		return RefundOrdered{}, fault.From(err)
	}
	return done, nil
}

func (k *Refund) order(ctx context.Context, o RefundOrder) (RefundOrdered, error) {
	payment, err := k.lifecycle.Store.MovementByID(ctx, o.Payment)
	if errors.Is(err, movement.ErrNotFound) || err == nil && (payment.Kind != manifest.Payment || payment.State == movement.NotSubmitted) {
		return RefundOrdered{}, fault.New(fault.NotFound, "There is no such payment.")
	}
	if err != nil {
		return RefundOrdered{}, err
	}
	op := k.operationFor(payment)
	if op == nil {
		return RefundOrdered{}, fault.New(fault.ProviderRejected, "The provider of this payment takes no refunds from here: give it back at the provider, and Gerbang reports it as returned.")
	}
	account, err := k.lifecycle.Account(ctx, payment)
	if err != nil {
		return RefundOrdered{}, err
	}
	if o.Amount == 0 {
		if o.Amount, err = k.all(ctx, payment, o.RefundID); err != nil {
			return RefundOrdered{}, err
		}
		if o.Amount == 0 {
			return RefundOrdered{}, fault.Invalid(op.PaymentField(), nothingLeft)
		}
	}
	body := catalog.Document{op.PaymentField(): payment.Reference, op.ReferenceField(): o.RefundID, op.AmountField(): json.Number(o.Amount.String())}
	if o.Reason != "" && op.Answers("reason") {
		body["reason"] = o.Reason
	}
	if wrong := op.Check(body); len(wrong) > 0 {
		return RefundOrdered{}, fault.Invalid(wrong[0].Field, wrong[0].Message)
	}
	if o.Operator != "" {
		claim, err := k.register.Claim(ctx, movement.Refunding(payment, o.RefundID, o.Amount, o.Operator, o.Reason, k.lifecycle.Now(), o.AloneUpTo))
		if err != nil || !claim.Made() {
			return RefundOrdered{Waiting: err == nil}, err
		}
		if claim.Amount != o.Amount { // a claim is made before anything is sent, and may be all that there is
			return RefundOrdered{}, fault.Newf(fault.DuplicateReference, "This refund_id was claimed for %s rupiah before: another amount needs another refund_id.", claim.Amount)
		}
	}
	id := tenants.Identity{Account: account, Mode: tenants.Mode(payment.Owner.Mode)}
	request := lifecycle.Request{Identity: id, Operation: op, Body: body, RequestID: o.RequestID}
	if request.Ticket, err = k.Admit(ctx, id, op, body); err != nil {
		return RefundOrdered{}, err
	}
	answer, err := k.lifecycle.Run(ctx, request)
	data, _ := answer.Data.(json.RawMessage) // kinds answer nothing else
	return RefundOrdered{Data: data}, err
}

// all is how much a refund of all that is left gives back: what it gave back if it was ordered
// before.
func (k *Refund) all(ctx context.Context, payment movement.Movement, refundID string) (money.Amount, error) {
	before, err := k.lifecycle.Store.MovementByKey(ctx, movement.Key{Owner: payment.Owner, Kind: manifest.Refund, Reference: refundID})
	switch {
	case err == nil && before.State != movement.NotSubmitted:
		return before.Amount, nil
	case err != nil && !errors.Is(err, movement.ErrNotFound):
		return 0, err
	}
	_, left, err := k.left(ctx, payment)
	return left, err
}

// operationFor is the operation by which a payment is given back, nil for none.
func (k *Refund) operationFor(payment movement.Movement) *catalog.Operation {
	for _, op := range k.lifecycle.Catalog.Current().Operations() {
		if _, serves := op.Of(payment.Provider); serves && op.RefundOf == payment.Operation {
			return op
		}
	}
	return nil
}

// Refundable is how much of a payment a person may give back now; 0 where it can't be.
func (k *Refund) Refundable(ctx context.Context, payment movement.Movement) (money.Amount, error) {
	if payment.Kind != manifest.Payment || !payment.HasPaid() || k.operationFor(payment) == nil {
		return 0, nil
	}
	_, left, err := k.left(ctx, payment)
	return left, err
}

// Reserve counts the refund against its payment.
func (k *Refund) Reserve(ctx context.Context, op *catalog.Operation, draft movement.Movement, reserve lifecycle.Reserving) (movement.Movement, bool, error) {
	m, ours, err := reserve(ctx, draft)
	if limit, limited := errors.AsType[*movement.LimitError](err); limited {
		left := money.Amount(max(limit.Most-limit.Used, 0))
		err = fault.Invalid(op.AmountField(), "is more than is left of the payment: of "+money.Amount(limit.Most).String()+" that can go back by refunds, "+
			money.Amount(limit.Used).String()+" has, or is on its way; at most "+left.String()+" can").WithReference(draft.Reference)
	}
	return m, ours, err
}

// Answer is how the refund stands, or the provider's no.
func (k *Refund) Answer(op *catalog.Operation, m movement.Movement) (lifecycle.Answer, error) {
	if m.State == movement.Failed {
		refusal := m.Refusal
		if refusal == nil {
			refusal = &movement.Refusal{Message: "The refund has failed at the provider. No money went back."}
		}
		return lifecycle.Answer{}, lifecycle.RefusalError(refusal).WithReference(m.Reference)
	}
	return lifecycle.Answer{Data: startRefund(op, m).Echo(op, m).SetTime("created_at", m.CreatedAt).Results(op, op, m.Result).JSON()}, nil
}

// startRefund begins an answer about a refund.
func startRefund(op *catalog.Operation, m movement.Movement) *lifecycle.Object {
	return (&lifecycle.Object{}).SetText(op.Rules.ReferenceField, m.Reference).SetText("status", op.Rules.Status(m)).SetNumber("amount", int64(m.Amount))
}

// Describe is the state of a refund.
func (k *Refund) Describe(asked, op *catalog.Operation, m movement.Movement) lifecycle.Answer {
	return lifecycle.Answer{Data: describeRefund(asked, op, m).JSON()}
}

func describeRefund(asked, op *catalog.Operation, m movement.Movement) *lifecycle.Object {
	o := startRefund(op, m).Echo(asked, m).SetTime("created_at", m.CreatedAt).SetTime("updated_at", m.UpdatedAt)
	if m.ProviderReference != "" {
		o.SetText("provider_reference", m.ProviderReference)
	}
	return o.Returned(m).Results(asked, op, m.Result)
}

// Event is the state, and when it was so.
func (k *Refund) Event(op *catalog.Operation, m movement.Movement, at time.Time) *lifecycle.Object {
	return describeRefund(op.Status, op, m).SetTime("timestamp", at)
}
