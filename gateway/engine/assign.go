package engine

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// Assignments are operators' words on payments. Settlement is store.ErrNotFound
// where there is no such payment. Assign is false where it no longer stands as it
// was seen, or the collection has another payment; the story of the collection that
// had the payment tells in the same commit that it was given away.
type Assignments interface {
	Line(ctx context.Context, account movement.AccountID, payment string) (movement.StatementLine, error)
	ResolveExceptions(ctx context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error
	Assign(ctx context.Context, now time.Time, seen movement.StatementLine, to movement.ID, operator, reason string) (bool, error)
}

// Assignment is an operator's word on which collection a payment is for. The
// payment's amount may be another: the operator answers for it.
type Assignment struct {
	Account  movement.AccountID
	Payment  string
	Movement movement.ID
	Operator string
	Reason   string
}

// Assign gives a payment that pays nothing, or that came late, to a collection of
// the same account, and settles that: it is paid, or paid late where it has
// expired. The error is always a *fault.Error.
func (e *Engine) Assign(ctx context.Context, a Assignment) (movement.Movement, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longestLook) // what an operator has said is done, also when nobody waits
	defer cancel()
	m, err := e.assign(ctx, a)
	if err != nil {
		return movement.Movement{}, fault.From(err)
	}
	return m, nil
}

func (e *Engine) assign(ctx context.Context, a Assignment) (movement.Movement, error) {
	seen, err := e.Assignments.Line(ctx, a.Account, a.Payment)
	if errors.Is(err, store.ErrNotFound) {
		return movement.Movement{}, fault.New(fault.NotFound, "There is no such payment.")
	}
	if err != nil {
		return movement.Movement{}, err
	}
	m, err := e.Movements.MovementByID(ctx, a.Movement)
	if errors.Is(err, store.ErrNotFound) {
		return movement.Movement{}, fault.New(fault.NotFound, "There is no such movement.")
	}
	if err == nil {
		err = e.assignable(ctx, seen, m)
	}
	if err != nil {
		return movement.Movement{}, err
	}
	given := false
	if seen.Movement != m.ID { // who said it first has said it
		given, err = persist(ctx, e.patience, func(ctx context.Context) (bool, error) {
			return e.Assignments.Assign(ctx, e.Now(), seen, m.ID, a.Operator, a.Reason)
		})
	}
	if err != nil {
		return movement.Movement{}, err
	}
	now, err := e.Assignments.Line(ctx, a.Account, a.Payment)
	switch {
	case err != nil:
		return movement.Movement{}, err
	case !given && now.Movement != m.ID: // or else an earlier try was through
		return movement.Movement{}, fault.New(fault.DuplicateReference, "The payment has changed meanwhile, or the movement has another payment.")
	}
	e.Log.WarnContext(ctx, "an operator has assigned a payment", "operator", a.Operator, "payment", a.Payment, "movement", m.ID.String())
	if now.Movement == m.ID { // also where somebody has closed it already
		if err := e.pay(ctx, now); err != nil {
			return movement.Movement{}, err
		}
		if err := e.Settlements.CloseLines(ctx, a.Account, []movement.StatementLine{now}); err != nil {
			return movement.Movement{}, err
		}
		e.listedNoMore(ctx, m.Owner, a)
	}
	return e.reread(ctx, m.ID)
}

// listedNoMore takes a payment that has found its collection off the operators'
// list. That it can't be is logged: what is listed can be resolved by hand.
func (e *Engine) listedNoMore(ctx context.Context, owner movement.Owner, a Assignment) {
	reasons := []string{reasonAmbiguous, reasonPaidAgain}
	if err := e.Assignments.ResolveExceptions(ctx, e.Now(), owner, "payment "+a.Payment, reasons, a.Operator, "assigned: "+a.Reason); err != nil {
		e.Log.WarnContext(ctx, "a payment that was assigned stays on the operators' list", "payment", a.Payment, "error", err)
	}
}

// assignable says whether a payment may be given to a collection now.
func (e *Engine) assignable(ctx context.Context, s movement.StatementLine, m movement.Movement) error {
	switch {
	case m.Kind != manifest.Collection || movement.NewAccountID(m.Provider, m.Owner.Mode, m.ConnectionAccount) != s.Account:
		return fault.New(fault.InvalidRequest, "The movement is no collection on the account that the payment arrived on.")
	case s.Movement == m.ID: // as it is already
		return nil
	case m.State != movement.Pending && m.State != movement.Expired:
		return fault.Newf(fault.DuplicateReference, "The movement stands at %s: no payment can be given to it.", m.State)
	case !s.Paid || !s.ReversedAt.IsZero() || s.Differs || s.Currency != "IDR":
		return fault.New(fault.InvalidRequest, "The reports do not say that this payment arrived and stayed.")
	case s.Movement == movement.ID{}:
		return nil
	}
	has, err := e.Movements.MovementByID(ctx, s.Movement)
	if err == nil && (s.State != movement.LinePaid || has.State != movement.Expired) {
		return fault.New(fault.DuplicateReference, "The payment has paid a collection already.")
	}
	return err
}
