// Package override applies what operators decide of movements whose outcome nobody
// knows. Two operators must say the same, or one decides alone and that is reviewed.
// It changes no movement itself: an override is a fact for package lifecycle.
package override

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Records keeps what operators say of movements. Override is one commit: it returns
// what stands then, with movement.ErrOverridden where that is another outcome.
type Records interface {
	Override(ctx context.Context, m movement.Movement, o movement.Override, review movement.Exception) (movement.Override, error)
	OverrideOf(ctx context.Context, id movement.ID, attempt int) (movement.Override, error)
	ExceptionsOf(ctx context.Context, owner movement.Owner, subject string) ([]movement.Exception, error)
	ResolveException(ctx context.Context, now time.Time, x movement.Exception, operator, resolution string) error
}

// Overrides takes in operators' decisions. It is safe for concurrent use.
type Overrides struct {
	*lifecycle.Lifecycle
	records Records
}

// New makes the overrides of a lifecycle.
func New(l *lifecycle.Lifecycle, records Records) *Overrides {
	o := &Overrides{l, records}
	l.DecidedBy(o.decided)
	return o
}

// Request is an operator's decision on a movement whose outcome nobody knows. Alone
// asks for no second operator: it is applied at once and is an exception for review.
type Request struct {
	Movement movement.ID
	SentAs   string // the upstream reference by which the operator has named it, "" for none
	Operator string
	Outcome  movement.OverrideOutcome
	Reason   string
	Alone    bool
	// AloneUpTo is how much the operator may claim alone: above it, what one decides alone
	// is a proposal. movement.ApprovalAbove when zero.
	AloneUpTo money.Amount
}

// Result is what stands after an operator's decision: the override, and its movement,
// which is still open while the override waits for another operator.
type Result struct {
	Override movement.Override
	Movement movement.Movement
}

// Override takes an operator's decision on an open movement of which the provider
// tells no end: the first operator proposes, another who says the same confirms, and
// the movement ends so, or is sent again. It changes no final state. The same again is
// what stands, also where two come at once. The error is always a *fault.Error:
// NotFound, InProgress where it is too early, DuplicateReference where it has ended
// otherwise or another outcome is proposed.
func (o *Overrides) Override(ctx context.Context, r Request) (Result, error) {
	result, err := o.override(ctx, r)
	if err != nil {
		return result, fault.From(err)
	}
	return result, nil
}

func (o *Overrides) override(ctx context.Context, r Request) (Result, error) {
	if !slices.Contains(movement.OverrideOutcomes, r.Outcome) {
		return Result{}, fault.Invalid("as", "must be success, failed or resubmit")
	}
	m, err := o.Store.MovementByID(ctx, r.Movement)
	if errors.Is(err, movement.ErrNotFound) {
		return Result{}, fault.New(fault.NotFound, "There is no such movement.")
	}
	if err != nil {
		return Result{}, err
	}
	op, err := o.Shown(m) // nobody is asked, and its provider may be gone
	switch {
	case r.SentAs != "" && r.SentAs != m.UpstreamReference():
		return Result{}, fault.Newf(fault.DuplicateReference,
			"Nothing stands under that upstream reference any more. The reference was used again, and stands as %s.", m.UpstreamReference())
	case err != nil:
		return Result{}, fault.New(fault.ProviderUnavailable, "The plugin that offers "+m.Operation+" is gone: nobody could tell the merchant.").Because(err)
	case !m.State.Open():
		return o.before(ctx, m, r)
	}
	now := o.Now()
	if err := cmp.Or(o.mayBe(ctx, op, m), resubmits(op, m, r, now)); err != nil {
		return Result{}, err
	}
	made, err := o.records.Override(ctx, m, movement.Override{
		Operator: r.Operator, Outcome: r.Outcome, Reason: r.Reason, At: now, Alone: r.Alone, AloneUpTo: r.AloneUpTo, Supersedes: supersedes(op, r, now),
	}, movement.Exception{
		Owner: m.Owner, Subject: m.ID.String(), Reason: movement.ReasonAlone, FactID: m.UpstreamReference(), Provider: m.Provider,
		Detail: lifecycle.Printable(r.Operator + " alone decided " + string(r.Outcome) + ": " + r.Reason), At: o.Now(),
	})
	result := Result{Override: made, Movement: m}
	switch {
	case errors.Is(err, movement.ErrOverridden):
		return result, opposed(made)
	case err != nil:
		return Result{}, err
	case made.Made():
		result.Movement, err = o.apply(ctx, op, m, made)
	}
	return result, err
}

// resubmits says why a movement can't be sent again, nil where it can or nobody wants
// to.
func resubmits(op *catalog.Operation, m movement.Movement, r Request, now time.Time) error {
	switch {
	case r.Outcome != movement.OverrideResubmit:
		return nil
	case !op.Rules.Resubmits:
		return fault.Invalid("as", "resubmit is for what is asked about by sending it again; the provider of this "+string(m.Kind)+" is asked without")
	case !m.State.Unknown():
		return fault.New(fault.DuplicateReference, "The provider has it already, and is asked about it. There is nothing to send again.")
	case !now.Before(m.CreatedAt.Add(op.Rules.ResubmitWithin)):
		return fault.New(fault.DuplicateReference, "It is too old to be sent again: the provider could take it for a new one. Decide success or failed.")
	}
	return nil
}

// supersedes is the moment of which a resubmission is over that was decided before: any
// for another outcome, and for the same again one in whose time nothing was bought.
func supersedes(op *catalog.Operation, r Request, now time.Time) time.Time {
	if r.Outcome == movement.OverrideResubmit {
		return now.Add(-op.Rules.BuysWithin)
	}
	return now
}

// before is the answer for a movement that has ended: what stands, where it was
// overridden and has ended so.
func (o *Overrides) before(ctx context.Context, m movement.Movement, r Request) (Result, error) {
	made, err := o.records.OverrideOf(ctx, m.ID, m.Attempt)
	switch {
	case err != nil && !errors.Is(err, movement.ErrNotFound):
		return Result{}, err
	case err == nil && made.Made() && made.Outcome == r.Outcome && endsAs(m.State, made):
		return Result{Override: made, Movement: m}, nil
	}
	return Result{Movement: m}, hasEnded(m)
}

// endsAs tells whether a final state is what an override says.
func endsAs(state movement.State, o movement.Override) bool {
	return (state == movement.Succeeded) == (o.Outcome == movement.OverrideSucceeded)
}

func hasEnded(m movement.Movement) error {
	if m.State == movement.NotSubmitted {
		return fault.New(fault.DuplicateReference, "Nothing of it was ever sent: there is nothing to decide.")
	}
	return fault.Newf(fault.DuplicateReference, "It has ended already, as %s. A final state never changes.", m.State)
}

// opposed is the error of an operator's word against another's.
func opposed(stands movement.Override) error {
	if stands.Made() {
		return fault.Newf(fault.DuplicateReference, "It is decided already: %s.", stands.Outcome)
	}
	return fault.Newf(fault.DuplicateReference, "%s has proposed %s: the same confirms it. For another outcome %s must propose that, or one decides alone.",
		stands.Operator, stands.Outcome, stands.Operator)
}

// lookupTimeout is how long a poll that a creation makes itself may take.
const lookupTimeout = 5 * time.Second

// mayBe says whether operators may override an open movement now.
func (o *Overrides) mayBe(ctx context.Context, op *catalog.Operation, m movement.Movement) error {
	now := o.Now()
	if m.State.Unknown() && now.Before(m.SendBy.Add(op.Rules.Timeout+lookupTimeout)) {
		return fault.New(fault.InProgress, "It is being sent at this moment.").After(now, movement.PollLasts)
	}
	if op.Rules.Resubmits && m.PolledAt.After(now.Add(-movement.PollLasts)) && !m.PolledAt.After(now.Add(2*movement.ClockSkew)) {
		return polled(now)
	}
	waits := m.State == movement.Pending && op.Rules.Waits // for its payer, and may do so for long
	if now.Sub(m.CreatedAt) >= movement.OverdueAfter && !waits {
		return nil
	}
	exceptions, err := o.records.ExceptionsOf(ctx, m.Owner, m.ID.String())
	if err != nil {
		return err
	}
	if slices.ContainsFunc(exceptions, func(x movement.Exception) bool {
		// What a payer waits for is not over because somebody has taken it off the list.
		return (waits || x.ResolvedAt.IsZero()) && holdsUp(x, m)
	}) {
		return nil
	}
	if waits {
		return fault.New(fault.InProgress, "It waits for its payer, and is not on the operators' list: the provider will tell its end.").After(now, movement.OverdueAfter)
	}
	return fault.New(fault.InProgress, "It is younger than 24 hours and not on the operators' list: the provider may tell its end.").
		After(now, m.CreatedAt.Add(movement.OverdueAfter).Sub(now))
}

// holdsUp tells whether an exception is of a movement's present attempt and keeps it open
// until operators decide.
func holdsUp(x movement.Exception, m movement.Movement) bool {
	begun := m.CreatedAt.Add(-2 * movement.ClockSkew) // by the clock of whoever has listed it
	return !x.At.Before(begun) && movement.OperatorsEnd(x.Reason)
}

// settles tells whether what operators have decided of a movement settles an exception:
// that nobody knew its outcome, and where the movement ends, whatever else held it up.
func settles(made movement.Override, x movement.Exception, m movement.Movement) bool {
	switch {
	case !x.ResolvedAt.IsZero():
		return false
	case x.Reason == movement.ReasonUnresolved, x.Reason == movement.ReasonVanished:
		return true
	}
	return made.Outcome != movement.OverrideResubmit && holdsUp(x, m)
}

// polled is the error where a lookup may be under way that is the same request again:
// it must be over before the movement ends.
func polled(now time.Time) error {
	return fault.New(fault.InProgress, "The provider is being asked at this moment, with the same request again. Decide it in a minute.").After(now, movement.PollLasts)
}

// decided applies what operators have decided of a movement, where the process died before
// it had. It is true where nothing is left to ask then: the movement has ended, or it is due
// again for what was decided.
func (o *Overrides) decided(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, bool, error) {
	if !m.State.Open() {
		return m, false, nil
	}
	made, err := o.records.OverrideOf(ctx, m.ID, m.Attempt)
	if errors.Is(err, movement.ErrNotFound) || err == nil && !made.Made() {
		return m, false, nil
	}
	if err != nil {
		return m, false, err
	}
	now, moved, err := o.applyOnce(ctx, op, m, made)
	ends := made.Outcome != movement.OverrideResubmit
	switch {
	case err != nil:
		return now, ends, err
	case moved:
		o.resolve(ctx, m, made)
	case ends && now.State.Open(): // a poll that is under way keeps it from being applied
		err = o.PutOff(ctx, now)
	}
	return now, moved || ends, err
}

func (o *Overrides) applyOnce(ctx context.Context, op *catalog.Operation, m movement.Movement, made movement.Override) (movement.Movement, bool, error) {
	return o.ApplyOnce(ctx, op, m, movement.Fact{
		Source: movement.FromOperators, Says: movement.SaysOverridden, Override: &made, Begun: o.Now(),
		Message: lifecycle.Message(op.Rules, movement.Movement{State: op.Rules.Ends(m.State, made.Outcome)}),
	})
}

// apply ends a movement as it was decided, or has it sent again, unless it has ended
// meanwhile.
func (o *Overrides) apply(ctx context.Context, op *catalog.Operation, m movement.Movement, made movement.Override) (movement.Movement, error) {
	now, moved, err := o.applyOnce(ctx, op, m, made)
	resubmits := made.Outcome == movement.OverrideResubmit && now.Attempt == m.Attempt && now.State.Open()
	switch {
	case err != nil:
		return now, err
	case resubmits: // also where the provider has confirmed it meanwhile
	case now.Attempt != m.Attempt, now.State == movement.NotSubmitted, now.State.Final() && !endsAs(now.State, made):
		return now, hasEnded(now)
	case !now.State.Final():
		return now, polled(o.Now())
	}
	if moved { // and not another operator's word, or the provider's own
		o.resolve(ctx, m, made)
	}
	return o.Reread(ctx, m.ID)
}

// resolve ends the exceptions that an override settles. Whatever stays by a fault is
// resolved by hand.
func (o *Overrides) resolve(ctx context.Context, m movement.Movement, made movement.Override) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lifecycle.TryTimeout)
	defer cancel()
	log := o.Log.With("movement", m.ID.String(), "merchant", m.Owner.MerchantID, "mode", m.Owner.Mode, "operators", made.Operators())
	log.WarnContext(ctx, "operators have overridden a movement", "outcome", string(made.Outcome), "alone", made.Alone)
	text := "decided " + string(made.Outcome) + ": " + made.Reason
	exceptions, err := o.records.ExceptionsOf(ctx, m.Owner, m.ID.String())
	for _, x := range exceptions {
		if settles(made, x, m) {
			err = errors.Join(err, o.records.ResolveException(ctx, o.Now(), x, made.Operators(), text))
		}
	}
	if err != nil {
		log.ErrorContext(ctx, "exceptions can't be resolved", "error", err)
	}
}
