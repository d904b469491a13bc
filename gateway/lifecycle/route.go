package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// rerouteWithin is how long after a creation began another provider may be tried, after
// one that was proven to have been sent nothing. Merchants do not wait for ever.
const rerouteWithin = 10 * time.Second

// route creates at the first of several providers that can take the movement.
//
//  1. Those that are not connected, paused, unavailable, or whose own bounds the request
//     does not fit are passed over. Nothing is written for them.
//  2. The choice stands in the reservation, which is committed before the provider is
//     called. From then on the movement is that provider's: who repeats the request gets
//     its answer, whatever the order is by then.
//  3. Where the call is proven to have sent nothing and the reservation is undone, the
//     next provider gets an attempt of its own under the same reference. Any other end of
//     the call stays: what may have been sent is never sent to another.
//
// A process that ends between 2 and 3 leaves the reference free, and one that ends after
// a reservation leaves a movement that its own provider is asked about.
func (l *Lifecycle) route(ctx context.Context, r Request, draft movement.Movement) (Answer, error) {
	began := l.Now()
	var undone *untaken
	var passed error
	for _, op := range r.candidates() {
		if undone != nil && !l.Now().Before(began.Add(rerouteWithin)) {
			break
		}
		if fields := op.Check(filled(r, draft)); len(fields) > 0 {
			passed = l.passOver(ctx, op, r, passed, outOfBounds(fields))
			continue
		}
		at := draft
		at.Provider = op.Provider
		answer, err := l.createAt(ctx, r, op, &at, l.submit, undone)
		not, ok := errors.AsType[*untaken](err)
		switch {
		case !ok:
			return answer, err
		case not.reserved:
			undone = not
		default:
			passed = l.passOver(ctx, op, r, passed, not.error)
		}
	}
	if undone != nil {
		return Answer{}, undone.error
	}
	if passed == nil || weightOf(passed) == 0 {
		passed = cmp.Or(l.waiting(ctx, r), passed, error(fault.New(fault.ProviderUnavailable, "No provider is there for this at the moment. Nothing was sent.")))
	}
	return l.refuse(ctx, r, draft, passed)
}

// candidates are the providers' operations that the request may be created at, in the
// order in which they are tried: the policy's, which leaves out whom it does not name,
// else the gateway's. One that an approval alone has brought is not among those. Where
// approvals have brought all, the first of them takes what the policy lets through by
// naming the path: the others were not there when it was named.
func (r Request) candidates() []*catalog.Operation {
	if r.Route == nil {
		serving := r.Operation.Serving()
		if r.Operation.Unnamed {
			return serving[:1]
		}
		return slices.DeleteFunc(slices.Clone(serving), func(op *catalog.Operation) bool { return op.Unnamed })
	}
	var named []*catalog.Operation
	for _, provider := range r.Route {
		if op, serves := r.Operation.Of(provider); serves {
			named = append(named, op)
		}
	}
	return named
}

// waiting is the error of a merchant who is connected to none but a provider that takes
// nothing before the policy's route names it, nil where there is none. An account alone is
// not the policy's word: merchants connect their own. Operators get an exception.
func (l *Lifecycle) waiting(ctx context.Context, r Request) error {
	for _, op := range r.Operation.Serving() {
		if r.Route != nil || !op.Unnamed {
			continue
		}
		if c, err := l.Connect(ctx, op, r.Identity.Account, string(r.Identity.Mode)); err == nil {
			l.Alert(ctx, op.Provider, c, "takes nothing until the route of the policy names "+op.Provider+", and the merchant is connected to no other provider of "+op.Path)
			return fault.New(fault.ProviderUnavailable, "The provider that this merchant is connected to takes nothing yet. Nothing was sent.")
		}
	}
	return nil
}

// filled is the body as a provider would get it.
func filled(r Request, draft movement.Movement) catalog.Document {
	body := r.Operation.WithDefaults(r.Body)
	body[r.Operation.ReferenceField()] = draft.Reference
	return body
}

func outOfBounds(fields []fault.Field) error {
	return fault.New(fault.InvalidRequest, "The request is invalid for the provider: "+fields[0].Field+" "+fields[0].Message+".", fields...)
}

// passOver notes why a provider is not tried, and returns the reason that the merchant
// is told where none of them is: the first of those that waiting may mend, else what the
// merchant can change, else that nothing is connected.
func (l *Lifecycle) passOver(ctx context.Context, op *catalog.Operation, r Request, before, why error) error {
	l.Log.LogAttrs(ctx, l.PassedOver, "provider passed over", slog.String("provider", op.Provider), slog.String("operation", op.Path),
		slog.String("request_id", r.RequestID), slog.Any("error", errors.Join(why, errors.Unwrap(why))))
	if before == nil || weightOf(why) > weightOf(before) {
		return why
	}
	return before
}

// weightOf orders the reasons to pass a provider over by how much they say.
func weightOf(why error) int {
	switch {
	case errors.Is(why, ErrNotConnected):
		return 0
	case fault.From(why).Code == fault.InvalidRequest:
		return 1
	}
	return 2
}

// rerouted keeps in the history of an attempt that another provider was tried before.
func (l *Lifecycle) rerouted(ctx context.Context, op *catalog.Operation, before *untaken, m movement.Movement) {
	if before != nil {
		l.note(ctx, op, m, movement.NoteRouted, "to "+m.Provider, "nothing was sent to "+before.movement.Provider)
	}
}
