package simulator

import (
	"context"
	"math"
	"slices"

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
)

// Bugs are all that can be planted.
var Bugs = []Bug{
	SkippedReservation, DoublePost, LostCallback, BelievedNotFound, RetriedRefusal, ReusedReference, KeptBalance, SwallowedException,
	DroppedLateMoney, IgnoredPollGuard, ForgottenDecision, ReroutedUnknown, ForgottenRestore, UnopenedRestore, OverdrawnQuota, KeptQuota,
	EventsByClock, RepeatedTransfer,
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
	case bug == KeptBalance && releases:
		tx := ledger.EndCost(0)
		if c.Movement.Charge == movement.Held {
			tx = ledger.EndCapture(c.Movement.Amount, 0)
		}
		c.Posting = &tx
	}
	done, err := g.Store.Apply(ctx, c)
	if kept, ours := g.Store.(*memory.Store); ours && done && bug == DoublePost && releases {
		tx := *c.Posting
		tx.Subject, tx.Attempt = uuid.UUID(c.Movement.ID), c.Movement.Attempt+1000
		return done, kept.Post(c.Movement.Owner, tx)
	}
	return done, err
}

// eventsByClock lists events by the times that replicas gave them.
func (g *gate) eventsByClock(ctx context.Context, owner movement.Owner, after uuid.UUID) ([]movement.ListedEvent, error) {
	events, err := g.Store.Events(ctx, owner, uuid.Nil, 0, math.MaxInt)
	slices.SortStableFunc(events, func(a, b movement.ListedEvent) int { return a.At.Compare(b.At) })
	return events[1+slices.IndexFunc(events, func(e movement.ListedEvent) bool { return e.ID == after }):], err
}
