package lifecycle

import (
	"context"
	"errors"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Run runs an operation about a movement: a creation, a status, a cancel. Its error
// is always a *fault.Error; beside it an answer tells only what it is about.
func (l *Lifecycle) Run(ctx context.Context, r Request) (Answer, error) {
	run := l.create
	switch {
	case r.Operation.StatusOf != "":
		run = l.status
	case r.Operation.CancelOf != "":
		run = l.cancel
	}
	answer, err := run(ctx, r)
	if err != nil {
		return Answer{Replayed: answer.Replayed, Earlier: answer.Earlier, Receipt: answer.Receipt}, fault.From(err)
	}
	if r.Operation.CancelOf != "" {
		return answer, nil
	}
	return withRemaining(ctx, r, answer), nil
}

// Stored answers a request from an earlier one under the same reference, for a
// request that admission refuses: a retry of something that exists gets its answer
// all the same. It is false when there is no earlier one.
func (l *Lifecycle) Stored(ctx context.Context, r Request) (Answer, bool, error) {
	if !r.Operation.Money() || !r.NamesReference() {
		return Answer{}, false, nil
	}
	draft, err := l.draft(ctx, r)
	if err != nil {
		return Answer{}, false, fault.From(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest(r.Operation)) // what is open may be polled
	defer cancel()
	existing, err := l.Store.MovementByKey(ctx, draft.Key)
	if errors.Is(err, movement.ErrNotFound) || err == nil && existing.State == movement.NotSubmitted {
		return Answer{}, false, nil
	}
	if err != nil {
		return Answer{}, false, Unjudged(r, draft, err)
	}
	answer, err := l.replay(ctx, r.Operation, draft, existing)
	if err != nil {
		return Answer{Replayed: answer.Replayed, Earlier: answer.Earlier}, true, fault.From(err)
	}
	return withRemaining(ctx, r, answer), true, nil
}
