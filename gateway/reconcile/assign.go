package reconcile

import (
	"context"
	"errors"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Assignment is an operator's word on which collection a statement line pays. The
// line's amount may be another: the operator answers for it.
type Assignment struct {
	Account  movement.AccountID
	Payment  string
	Movement movement.ID
	Operator string
	Reason   string
	// AloneUpTo is how much the operator may claim alone, movement.ApprovalAbove when zero.
	AloneUpTo money.Amount
}

// Assigned is a collection as it stands after an assignment. The line is given to it,
// unless the assignment waits for another operator, who says the same.
type Assigned struct {
	movement.Movement
	Waiting bool
}

// Assign gives a line that pays nothing, or that came late, to a collection of the
// same account, and applies that: it is paid, or paid late where it has expired or
// failed, and what operators have ended as paid has its payment. Above what its operator
// may claim alone nothing is given yet: another operator who says the same gives it. The
// error is always a *fault.Error.
func (r *Reconciler) Assign(ctx context.Context, a Assignment) (Assigned, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lifecycle.LongestPoll) // what an operator has said is done, also when nobody waits
	defer cancel()
	m, err := r.assign(ctx, a)
	if err != nil {
		return Assigned{}, fault.From(err)
	}
	return m, nil
}

func (r *Reconciler) assign(ctx context.Context, a Assignment) (Assigned, error) {
	seen, err := r.lines.Line(ctx, a.Account, a.Payment)
	if errors.Is(err, movement.ErrNotFound) {
		return Assigned{}, fault.New(fault.NotFound, "There is no such payment.")
	}
	if err != nil {
		return Assigned{}, err
	}
	m, err := r.Store.MovementByID(ctx, a.Movement)
	if errors.Is(err, movement.ErrNotFound) {
		return Assigned{}, fault.New(fault.NotFound, "There is no such movement.")
	}
	if err == nil {
		err = r.assignable(ctx, seen, m)
	}
	if err != nil {
		return Assigned{}, err
	}
	given := false
	if seen.Movement != m.ID { // who said it first has said it
		claim, err := lifecycle.Persist(ctx, r.Patience, func(ctx context.Context) (movement.Claim, error) {
			return r.lines.Claim(ctx, movement.Assigning(seen, m, a.Operator, a.Reason, r.Now(), a.AloneUpTo))
		})
		if err != nil || !claim.Made() {
			return Assigned{Movement: m, Waiting: err == nil}, err
		}
		given, err = lifecycle.Persist(ctx, r.Patience, func(ctx context.Context) (bool, error) {
			return r.lines.Assign(ctx, r.Now(), seen, m.ID, a.Operator, a.Reason)
		})
		if err != nil {
			return Assigned{}, err
		}
	}
	now, err := r.lines.Line(ctx, a.Account, a.Payment)
	switch {
	case err != nil:
		return Assigned{}, err
	case !given && now.Movement != m.ID: // or else an earlier try was through
		return Assigned{}, fault.New(fault.DuplicateReference, "The payment has changed meanwhile, or the movement has another payment.")
	}
	r.Log.WarnContext(ctx, "an operator has assigned a payment", "operator", a.Operator, "payment", a.Payment, "movement", m.ID.String())
	if now.Movement == m.ID { // also where somebody has closed it already
		if err := r.pay(ctx, now); err != nil {
			return Assigned{}, err
		}
		if err := r.close(ctx, a.Account, []movement.StatementLine{now}); err != nil {
			return Assigned{}, err
		}
		r.resolve(ctx, m.Owner, a)
	}
	m, err = r.Reread(ctx, m.ID)
	return Assigned{Movement: m}, err
}

// resolve ends the exceptions of a line that has found its collection. That it can't
// is logged: they can be resolved by hand.
func (r *Reconciler) resolve(ctx context.Context, owner movement.Owner, a Assignment) {
	reasons := []string{movement.ReasonAmbiguous, movement.ReasonPaidAgain, movement.ReasonUnmatched}
	if err := r.lines.ResolveExceptions(ctx, r.Now(), owner, "payment "+a.Payment, reasons, a.Operator, "assigned: "+a.Reason); err != nil {
		r.Log.WarnContext(ctx, "a payment that was assigned is still an exception", "payment", a.Payment, "error", err)
	}
}

// assignable says whether a line may be given to a collection now.
func (r *Reconciler) assignable(ctx context.Context, line movement.StatementLine, m movement.Movement) error {
	rules, _ := movement.RulesOf(m.Kind)
	switch {
	case rules.EndedBy != movement.EndedByStatement || m.Account() != line.Account:
		return fault.New(fault.InvalidRequest, "The movement is no collection on the account that the payment arrived on.")
	case line.Movement == m.ID: // as it is already
		return nil
	case m.State != movement.Pending && m.State != movement.Expired && m.State != movement.Failed && !m.PaidByOverride():
		return fault.Newf(fault.DuplicateReference, "The movement stands at %s: no payment can be given to it.", m.State)
	case !line.Paid || !line.ReversedAt.IsZero() || line.Differs || line.Currency != "IDR":
		return fault.New(fault.InvalidRequest, "The reports do not say that this payment arrived and stayed.")
	case line.Movement == movement.ID{}:
		return nil
	}
	has, err := r.Store.MovementByID(ctx, line.Movement)
	late := has.State == movement.Expired || has.State == movement.Failed // what it has is late money
	if err == nil && (line.State != movement.LinePaid || !late) {
		return fault.New(fault.DuplicateReference, "The payment has paid a collection already.")
	}
	return err
}
