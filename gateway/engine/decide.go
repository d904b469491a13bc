package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// Decisions keeps what operators say of movements. Decide is one commit: it
// returns what stands then, with store.ErrDecided where that is another outcome.
type Decisions interface {
	Override(ctx context.Context, m movement.Movement, d movement.Override, review movement.Exception) (movement.Override, error)
	OverrideOf(ctx context.Context, id movement.ID, attempt int) (movement.Override, error)
	ExceptionsOf(ctx context.Context, owner movement.Owner, subject string) ([]movement.Exception, error)
	ResolveExceptions(ctx context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error
}

// Decision is an operator's word on a movement whose outcome nobody knows. Alone
// asks for no second operator: it is applied at once and stands on the operators'
// list for review.
type Decision struct {
	Movement movement.ID
	Attempt  int // where the operator has named one; 0 is the one that stands
	Operator string
	Outcome  movement.OverrideOutcome
	Reason   string
	Alone    bool
}

// Decided is what stands after an operator's word: the decision, and its movement,
// which is still open while the decision waits for another operator.
type Decided struct {
	Decision movement.Override
	Movement movement.Movement
}

const (
	// undecidedFor is how old a movement is at least that operators decide and
	// that is not on their list.
	undecidedFor = 24 * time.Hour
	// lookLasts is longer than any lookup is under way.
	lookLasts = time.Minute

	reasonAlone = "decided_alone"
)

// settledBy are the reasons to stand on the operators' list that a decision takes
// away.
var settledBy = []string{reasonUnresolved, reasonVanished}

// doubted are the reasons to stand on the operators' list that nobody but
// operators can end, however young the movement is.
var doubted = []string{reasonUnresolved, reasonVanished, reasonAmount, reasonCurrency, reasonUnreadable, reasonContradiction}

// Decide takes an operator's word on an open transfer or order of which the
// provider tells no end: the first operator proposes, another who says the same
// confirms, and the movement ends so. It changes no final state. The same again
// is what stands, also where two come at once. The error is always a
// *fault.Error: NotFound, InProgress where it is too early, DuplicateReference
// where it has ended otherwise or another outcome is proposed.
func (e *Engine) Decide(ctx context.Context, d Decision) (Decided, error) {
	decided, err := e.decide(ctx, d)
	if err != nil {
		return decided, fault.From(err)
	}
	return decided, nil
}

func (e *Engine) decide(ctx context.Context, d Decision) (Decided, error) {
	if d.Outcome != movement.OverrideSucceeded && d.Outcome != movement.OverrideFailed {
		return Decided{}, fault.Invalid("as", "must be success or failed")
	}
	m, err := e.Movements.MovementByID(ctx, d.Movement)
	if errors.Is(err, store.ErrNotFound) {
		return Decided{}, fault.New(fault.NotFound, "There is no such movement.")
	}
	if err != nil {
		return Decided{}, err
	}
	op, err := e.operationOf(m)
	switch {
	case d.Attempt != 0 && d.Attempt != m.Attempt:
		return Decided{}, fault.Newf(fault.DuplicateReference,
			"That names attempt %d. Its reference was used again, and attempt %d stands: %s.", d.Attempt, m.Attempt, m.UpstreamReference())
	case err != nil:
		return Decided{}, fault.New(fault.ProviderUnavailable, "The plugin that offers "+m.Operation+" is gone: nobody could tell the merchant.").Because(err)
	case !op.Rules.Pends:
		return Decided{}, fault.Newf(fault.InvalidRequest, "A %s is ended by its provider alone: operators decide transfers and orders.", m.Kind)
	case m.State != movement.Submitting && m.State != movement.Pending:
		return e.decidedBefore(ctx, m, d)
	}
	if err := e.decidable(ctx, op, m); err != nil {
		return Decided{}, err
	}
	made, err := e.Decisions.Override(ctx, m, movement.Override{
		Operator: d.Operator, Outcome: d.Outcome, Reason: d.Reason, At: e.Now(), Alone: d.Alone,
	}, movement.Exception{
		Owner: m.Owner, Subject: m.ID.String(), Reason: reasonAlone, FactID: m.UpstreamReference(), Provider: m.Provider,
		Detail: printable(d.Operator + " alone decided " + string(d.Outcome) + ": " + d.Reason), At: e.Now(),
	})
	decided := Decided{Decision: made, Movement: m}
	switch {
	case errors.Is(err, movement.ErrOverridden):
		return decided, opposed(made)
	case err != nil:
		return Decided{}, err
	case made.Made():
		decided.Movement, err = e.apply(ctx, op, m, made)
	}
	return decided, err
}

// decidedBefore is the answer for a movement that has ended: what stands, where it
// was decided and has ended so.
func (e *Engine) decidedBefore(ctx context.Context, m movement.Movement, d Decision) (Decided, error) {
	made, err := e.Decisions.OverrideOf(ctx, m.ID, m.Attempt)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return Decided{}, err
	case err == nil && made.Made() && made.Outcome == d.Outcome && m.State == stateDecided(d.Outcome):
		return Decided{Decision: made, Movement: m}, nil
	}
	return Decided{Movement: m}, hasEnded(m)
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

// decidable says whether operators may decide an open movement now.
func (e *Engine) decidable(ctx context.Context, op *catalog.Operation, m movement.Movement) error {
	now := e.Now()
	if m.State == movement.Submitting && now.Before(m.SendBy.Add(time.Duration(op.Timeout)+lookupTimeout)) {
		return fault.New(fault.InProgress, "It is being sent at this moment.").After(now, lookLasts)
	}
	if op.Resubmits() && m.PolledAt.After(now.Add(-lookLasts)) && !m.PolledAt.After(now.Add(2*movement.ClockSkew)) {
		return lookedAt(now)
	}
	if now.Sub(m.CreatedAt) >= undecidedFor {
		return nil
	}
	entries, err := e.Decisions.ExceptionsOf(ctx, m.Owner, m.ID.String())
	if err != nil {
		return err
	}
	begun := m.CreatedAt.Add(-2 * movement.ClockSkew)                 // by the clock of whoever has listed it
	if slices.ContainsFunc(entries, func(a movement.Exception) bool { // of this attempt
		return a.ResolvedAt.IsZero() && !a.At.Before(begun) && slices.Contains(doubted, a.Reason)
	}) {
		return nil
	}
	return fault.New(fault.InProgress, "It is younger than 24 hours and not on the operators' list: the provider may tell its end.").
		After(now, m.CreatedAt.Add(undecidedFor).Sub(now))
}

// lookedAt is the error where a lookup may be under way that is the same request
// again: it must be over before the movement ends.
func lookedAt(now time.Time) error {
	return fault.New(fault.InProgress, "The provider is being asked at this moment, with the same request again. Decide it in a minute.").After(now, lookLasts)
}

func stateDecided(o movement.OverrideOutcome) movement.State {
	if o == movement.OverrideSucceeded {
		return movement.Succeeded
	}
	return movement.Failed
}

// apply ends a movement as it was decided, unless it has ended meanwhile.
func (e *Engine) apply(ctx context.Context, op *catalog.Operation, m movement.Movement, made movement.Override) (movement.Movement, error) {
	start, to, attempt := e.Now(), stateDecided(made.Outcome), m.Attempt
	for range 3 { // it may become pending meanwhile; the states only go forward
		was := m.State
		moved, err := e.move(ctx, e.decidedMove(op, m, made, start))
		if err != nil {
			return m, err
		}
		if m, err = e.reread(ctx, m.ID); err != nil {
			return m, err
		}
		switch {
		case moved:
			e.decided(ctx, m, made)
			return m, nil
		case m.Attempt != attempt, m.State == movement.NotSubmitted, m.State.Final() && m.State != to:
			return m, hasEnded(m)
		case m.State.Final(): // another operator's word was faster, or the provider's own
			return m, nil
		case m.State == was:
			return m, lookedAt(e.Now())
		}
	}
	return m, errors.New("engine: a movement kept changing while it was decided")
}

// decidedMove ends a movement as operators say. What a lookup may still be sending
// again stays as it is: the guard is in the commit, because a look may begin
// after all that was read before.
func (e *Engine) decidedMove(op *catalog.Operation, m movement.Movement, made movement.Override, now time.Time) store.Move {
	to, alone := stateDecided(made.Outcome), ""
	if made.Alone {
		alone = "yes"
	}
	move := store.Move{
		Movement: m, To: to, Event: "decided",
		Detail: detail("source", "operators", "operators", operators(made), "alone", alone, "outcome", string(made.Outcome),
			"reason", made.Reason, "confirmation", made.ConfirmedReason),
		Result: resultDecided(op.Rules, m, to),
	}
	if op.Rules.Quiet && m.Answer == nil {
		move.Answer = e.firstAnswer(op, m, nil)
	}
	if to == movement.Succeeded {
		move.Cost = m.Cost // nobody knows better than what was agreed
	}
	if op.Resubmits() {
		move.AskedBefore = now.Add(-lookLasts)
	}
	return move
}

// resultDecided is the provider's last data without the words that it had for a
// movement under way, nil where it had none.
func resultDecided(rules movement.Rules, m movement.Movement, to movement.State) json.RawMessage {
	var given map[string]json.RawMessage
	if len(m.Result) == 0 || json.Unmarshal(m.Result, &given) != nil || given["message"] == nil {
		return nil
	}
	words, _ := json.Marshal(messageOf(rules, movement.Movement{State: to})) // a string
	given["message"] = words
	result, err := json.Marshal(given)
	if err != nil {
		return nil
	}
	return result
}

func operators(made movement.Override) string {
	return strings.TrimSuffix(made.Operator+", "+made.ConfirmedBy, ", ")
}

// decided takes what the decision has settled off the operators' list. Whatever
// stays there by a fault is taken off by hand.
func (e *Engine) decided(ctx context.Context, m movement.Movement, made movement.Override) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTimeout)
	defer cancel()
	log := e.Log.With("movement", m.ID.String(), "merchant", m.Owner.MerchantID, "mode", m.Owner.Mode, "operators", operators(made))
	log.WarnContext(ctx, "operators have decided a movement", "outcome", string(made.Outcome), "alone", made.Alone)
	text := "decided " + string(made.Outcome) + ": " + made.Reason
	if err := e.Decisions.ResolveExceptions(ctx, e.Now(), m.Owner, m.ID.String(), settledBy, operators(made), text); err != nil {
		log.ErrorContext(ctx, "the operators' list can't be written", "error", err)
	}
}
