package simulator

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/memory"
)

// Bug is a fault of the gateway that is planted to show that the simulator finds it.
type Bug string

// The bugs.
const (
	NoBug              Bug = ""
	SkippedReservation Bug = "a reservation is skipped"
	DoublePost         Bug = "a posting is made twice"
	LostCallback       Bug = "a callback event is lost"
	BelievedNotFound   Bug = "not found is believed at once"
	RetriedRefusal     Bug = "a refused call is tried again"
	ReusedReference    Bug = "a reference is free again after Pending was shown"
	KeptBalance        Bug = "a balance is not released"
	SwallowedException Bug = "an exception is swallowed"
	DroppedLateMoney   Bug = "late money is dropped"
	IgnoredPollGuard   Bug = "the guard of polls is ignored"
	ReroutedUnknown    Bug = "a call that was not answered goes to the next provider"
	ForgottenRestore   Bug = "nobody knows that the database was restored"
	UnopenedRestore    Bug = "a restored database is used before it is opened"
	OverdrawnQuota     Bug = "units of a quota are admitted that nobody counts"
	KeptQuota          Bug = "a quota is not given back"
	ForgottenDecision  Bug = "polls do not see what operators have decided"
	RepeatedTransfer   Bug = "an equal transfer is taken for an old one"
	EventsByClock      Bug = "events are listed by the clocks of who made them"

	DoubleReturn      Bug = "a return is counted twice"
	LostReturnEvent   Bug = "the event of a return is lost"
	IgnoredUndone     Bug = "a return that was undone stays"
	PaidWhenGone      Bug = "paid is told when all is gone"
	UntoldAmount      Bug = "what arrived is not told"
	BelievedToken     Bug = "a token's notification is believed"
	NoSequenceGuard   Bug = "records are not guarded by what was seen"
	KeptReturnedAt    Bug = "nothing is left, though a return was undone"
	DroppedLateReturn Bug = "what goes back of late money is dropped"
	UnlistedReturn    Bug = "operators do not hear of returns"

	UncountedRefund Bug = "a refund does not count against its payment"
	ForgottenRefund Bug = "a payment does not take its refund in"
)

// Bugs are all that can be planted.
var Bugs = []Bug{
	SkippedReservation, DoublePost, LostCallback, BelievedNotFound, RetriedRefusal, ReusedReference, KeptBalance, SwallowedException,
	DroppedLateMoney, IgnoredPollGuard, ForgottenDecision, ReroutedUnknown, ForgottenRestore, UnopenedRestore, OverdrawnQuota, KeptQuota,
	EventsByClock, RepeatedTransfer, DoubleReturn, LostReturnEvent, IgnoredUndone, PaidWhenGone, UntoldAmount, BelievedToken, NoSequenceGuard,
	KeptReturnedAt, DroppedLateReturn, UnlistedReturn, UncountedRefund, ForgottenRefund,
}

// planted applies a change, with a bug where one is planted there.
func (g *gate) planted(ctx context.Context, c movement.Change) (bool, error) {
	releases := c.Posting != nil && slices.Contains([]ledger.Kind{ledger.Refund, ledger.Release}, c.Posting.Kind)
	bug := g.w.options.Bug
	switch {
	case bug == LostCallback && g.w.chance(30):
		c.Callback = nil
	case bug == DroppedLateMoney && c.Effect == movement.LateMoney:
		return true, nil
	case c.Effect == movement.MoneyBack && g.dropped(c):
		return true, nil
	case c.Effect == movement.MoneyBack || c.Effect == movement.OtherAmount:
		g.spoiled(ctx, &c)
	case bug == KeptBalance && releases:
		tx := ledger.EndCost(0)
		if c.Movement.Charge == movement.Held {
			tx = ledger.EndCapture(c.Movement.Amount, 0)
		}
		c.Posting = &tx
	}
	done, err := g.Store.Apply(ctx, c)
	if done && err == nil && c.Return != nil {
		g.spoil(ctx, c)
	}
	if kept, ours := g.Store.(*memory.Store); ours && done && bug == DoublePost && releases {
		tx := *c.Posting
		tx.Subject, tx.Attempt = uuid.UUID(c.Movement.ID), c.Movement.Attempt+1000
		return done, kept.Post(c.Movement.Owner, tx)
	}
	return done, err
}

// dropped tells whether a planted bug drops a return.
func (g *gate) dropped(c movement.Change) bool {
	switch g.w.options.Bug { //nolint:exhaustive // the others drop none
	case IgnoredUndone:
		return !c.Return.UndoneAt.IsZero()
	case DroppedLateReturn:
		return c.Movement.State != movement.Succeeded
	case ForgottenRefund:
		return c.Return.Refund != ""
	}
	return false
}

// told is how a merchant is told wrongly of money, where a bug is planted there.
var told = map[Bug]*strings.Replacer{
	PaidWhenGone: strings.NewReplacer(`"status":"FAILED"`, `"status":"PAID"`, `"status":"Failed"`, `"status":"Success"`),
	UntoldAmount: strings.NewReplacer(`"paid_amount":`, `"forgotten":`),
}

// spoiled spoils a record before it is made, where a bug is planted there.
func (g *gate) spoiled(ctx context.Context, c *movement.Change) {
	switch bug := g.w.options.Bug; {
	case bug == LostReturnEvent && c.Return != nil && g.w.chance(30):
		c.Callback = nil
	case told[bug] != nil && c.Callback != nil:
		spoiled := *c.Callback
		spoiled.Body = json.RawMessage(told[bug].Replace(string(spoiled.Body)))
		c.Callback = &spoiled
	case bug == NoSequenceGuard:
		if now, err := g.Store.MovementByID(ctx, c.Movement.ID); err == nil {
			c.Movement.Sequence = now.Sequence
		}
	}
}

// spoil spoils what a return has left, where a bug is planted there.
func (g *gate) spoil(ctx context.Context, c movement.Change) {
	kept, ours := g.Store.(*memory.Store)
	switch bug := g.w.options.Bug; {
	case !ours:
	case bug == KeptReturnedAt && !c.Return.UndoneAt.IsZero():
		kept.Spoil(c.Movement.ID, func(m *movement.Movement) { m.ReturnedAt = c.At })
	case bug == DoubleReturn && c.Movement.Charge == movement.Unpaid:
		now, err := g.Store.MovementByID(ctx, c.Movement.ID)
		if again := *c.Return; err == nil {
			again.ID += " again"
			c.Movement, c.Return, c.Callback = now, &again, nil
			_, _ = kept.Apply(ctx, c) // as if it were another
		}
	}
}

// eventsByClock lists events by the times that replicas gave them.
func (g *gate) eventsByClock(ctx context.Context, owner movement.Owner, after uuid.UUID) ([]movement.ListedEvent, error) {
	events, err := g.Store.Events(ctx, owner, uuid.Nil, 0, math.MaxInt)
	slices.SortStableFunc(events, func(a, b movement.ListedEvent) int { return a.At.Compare(b.At) })
	return events[1+slices.IndexFunc(events, func(e movement.ListedEvent) bool { return e.ID == after }):], err
}
