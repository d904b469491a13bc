package lifecycle

import (
	"cmp"
	"context"
	"errors"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// Follower is a kind whose movements give another one's money back. What it does is
// one fact about two movements, which are committed one after the other: first the one
// that it is of, then itself. Whoever dies in between leaves it open, and is told again.
type Follower interface {
	// Of is the movement that one is of.
	Of(ctx context.Context, m movement.Movement) (movement.Movement, error)
}

// of is the movement that one is of, and whether its kind has such.
func (l *Lifecycle) of(ctx context.Context, m movement.Movement) (of movement.Movement, follows bool, err error) {
	follower, follows := l.kinds[m.Kind].(Follower)
	if !follows {
		return of, false, nil
	}
	of, err = follower.Of(ctx, m)
	return of, true, err
}

// payment is what a plugin is told of the movement that one is of; nothing where it is of
// none.
func (l *Lifecycle) payment(ctx context.Context, m movement.Movement) (sdk.Payment, error) {
	of, follows, err := l.of(ctx, m)
	if !follows || err != nil {
		return sdk.Payment{}, err
	}
	return sdk.Payment{Reference: of.UpstreamReference(), ProviderReference: of.ProviderReference}, nil
}

// precede has the movement that one is of take in what a transition of this one means for
// it: its money went back, or came again.
func (l *Lifecycle) precede(ctx context.Context, m movement.Movement, f movement.Fact, t movement.Transition) error {
	if _, follows := l.kinds[m.Kind].(Follower); !follows {
		return nil
	}
	then := movement.Change{Transition: t, Movement: m}.After()
	gone := t.Effect == movement.Move && t.To == movement.Succeeded
	came := t.Effect == movement.MoneyBack && then.Gone() && !m.Gone() // all of it: a part, and what goes after all, is for a person
	if !gone && !came {
		return nil
	}
	of, _, err := l.of(ctx, m)
	if err != nil {
		return err
	}
	op, err := l.Operation(of)
	if err != nil {
		return err
	}
	back := movement.Return{
		ID: cmp.Or(t.ProviderReference, m.ProviderReference, m.UpstreamReference()), Sort: movement.Refund, Amount: m.Amount, At: l.moment(f.At), Refund: m.Reference,
	}
	if came {
		back.UndoneAt = t.HappenedAt
	}
	_, err = l.Apply(ctx, op, of, movement.Fact{
		Source: f.Source, By: f.By, Hinted: f.Hinted, Reference: of.UpstreamReference(), Returns: []movement.Return{back},
	})
	return err
}

// takeIn applies a status update, and what it tells of money that went back by movements
// that are of this one to those.
func (l *Lifecycle) takeIn(
	ctx context.Context, op *catalog.Operation, m movement.Movement, f movement.Fact, reported []sdk.Return,
) (movement.Movement, error) {
	ordered, err := l.ordered(ctx, m, &f, reported)
	if err != nil {
		return m, err
	}
	now, err := l.Apply(ctx, op, m, f)
	for i, back := range f.Returns {
		order, is := ordered[i]
		if err != nil || !is || !now.Holds(back) { // what was not taken in says nothing of the other either
			continue
		}
		err = l.follows(ctx, order, f, back)
	}
	return now, err
}

// ordered finds the movements by which returns were ordered, by the place of the return,
// and names them in the fact. A name that is of none of those says nothing. One that has
// failed, or ordered another amount, did not bring this one: it is nobody's order.
func (l *Lifecycle) ordered(ctx context.Context, m movement.Movement, f *movement.Fact, reported []sdk.Return) (map[int]movement.Movement, error) {
	ordered := map[int]movement.Movement{}
	for i := range min(len(f.Returns), mostReturns) {
		id, ours := movement.ParseUpstreamReference(reported[i].Reference)
		if !ours {
			continue
		}
		order, err := l.Store.MovementByID(ctx, id)
		if errors.Is(err, movement.ErrNotFound) || err == nil && order.UpstreamReference() != reported[i].Reference {
			continue
		}
		if err != nil {
			return nil, err
		}
		of, follows, err := l.of(ctx, order)
		if err != nil && !errors.Is(err, movement.ErrNotFound) {
			return nil, err
		}
		if follows && err == nil && of.ID == m.ID {
			ordered[i] = order
			if order.State != movement.Failed && order.Amount == f.Returns[i].Amount {
				f.Returns[i].Refund = order.Reference
			}
		}
	}
	return ordered, nil
}

// follows applies to a movement what was told of the money that it has given back.
func (l *Lifecycle) follows(ctx context.Context, order movement.Movement, f movement.Fact, back movement.Return) error {
	op, err := l.Operation(order)
	if err != nil {
		return err
	}
	says, at := movement.SaysSucceeded, back.At
	if !back.UndoneAt.IsZero() {
		says, at = movement.SaysFailed, back.UndoneAt
	}
	_, err = l.Apply(ctx, op, order, movement.Fact{
		Source: f.Source, Hinted: f.Hinted, Says: says, Reference: order.UpstreamReference(), ProviderReference: back.ID, Amount: back.Amount, At: at,
	})
	return err
}
