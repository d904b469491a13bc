package engine

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// statusLookup bounds the look at the provider that a status call may cost; a
// slow provider is answered with what we know, and the look goes on.
const statusLookup = 3 * time.Second

// status tells how a movement stands: one indexed read, and a look at the
// provider where nothing was heard for a while.
func (e *Engine) status(ctx context.Context, r Request) (Answer, error) {
	m, err := e.find(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	made := r.Operation.Target // a status may be about several operations
	if m.Operation != made.Path {
		if made, err = e.operationOf(m); err != nil {
			return Answer{}, err
		}
	}
	if e.quietFor(m) >= made.Pace.Every || readable(made, m) {
		ctx, cancel := context.WithTimeout(ctx, statusLookup)
		defer cancel()
		m = e.refresh(ctx, made, m)
	}
	for m.State == movement.Submitting && m.Answer == nil && made.Rules.Pends {
		// Who is told that it is pending is told its end, too.
		if m, err = e.promised(ctx, made, m); err != nil {
			return Answer{}, fault.From(err).Unknown().WithReference(nameFor(m))
		}
	}
	if m.State == movement.NotSubmitted {
		return Answer{}, noSuch(r)
	}
	if made.Kind == manifest.Transfer {
		return Answer{Data: describeTransfer(made, m).json()}, nil
	}
	return told(r.Operation, m), nil
}

// told is the answer of a status: for orders with state and message at the top.
func told(op *catalog.Operation, m movement.Movement) Answer {
	answer := Answer{Data: state(op, m)}
	if rules := op.Target.Rules; rules.Quiet {
		answer.Status, answer.Message = rules.Word(m.State), messageOf(rules, m)
	}
	return answer
}

// cancel ends an unpaid payment at the provider; what has ended already answers
// its present state.
func (e *Engine) cancel(ctx context.Context, r Request) (Answer, error) {
	op := r.Operation
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), sendWindow+time.Duration(op.Timeout)+lookupTimeout+settleTimeout)
	defer stop()
	m, err := e.find(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	if m.State == movement.Submitting {
		if m, err = e.continued(ctx, op.Target, m); err != nil {
			return Answer{}, err
		}
	}
	switch m.State {
	case movement.Submitting:
		return Answer{}, timedOut(m, e.Now())
	case movement.NotSubmitted:
		return Answer{}, noSuch(r)
	case movement.Pending:
		if m, err = e.end(ctx, r, m); err != nil {
			return Answer{}, err
		}
	case movement.Succeeded, movement.Failed, movement.Expired:
	}
	return Answer{Data: state(op, m)}, nil
}

// end asks the provider to end a pending payment, and looks at it then: it may
// have been paid meanwhile, also where the provider leaves its end to us.
func (e *Engine) end(ctx context.Context, r Request, m movement.Movement) (movement.Movement, error) {
	op := r.Operation
	c, err := e.reconnect(ctx, op, m)
	if err != nil {
		return m, err
	}
	result := e.Providers.Call(ctx, m.Provider, sdk.Call{
		Operation: op.Path, RequestID: r.RequestID, Connection: c.Connection,
		Reference: m.UpstreamReference(), ProviderReference: m.ProviderReference,
		Amount: m.Amount, Body: m.Body(), SendBy: e.Now().Add(sendWindow),
	}, time.Duration(op.Timeout))
	e.logResult(ctx, m, result)
	if result.Outcome == sdk.NotSent {
		return m, fault.New(fault.ProviderUnavailable, "The provider is not available at the moment. The payment is still open.").WithReference(nameFor(m))
	}
	seen, err := e.look(ctx, op.Target, m, c)
	switch {
	case err == nil && seen.State != movement.Pending:
		return seen, nil
	case result.Outcome == sdk.Done:
		if seen, err = e.expire(ctx, op.Target, m); err == nil {
			return seen, nil
		}
	}
	if err != nil {
		return m, fault.From(err).Unknown().WithReference(nameFor(m))
	}
	return m, timedOut(m, e.Now())
}

func (e *Engine) expire(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error) {
	then := m
	then.State, then.UpdatedAt = movement.Expired, e.Now()
	move := store.Move{
		Movement: m, To: movement.Expired, Event: string(movement.Expired),
		Detail: detail("source", "cancel"), DueAt: then.NextPoll(e.Now(), op.Pace),
	}
	if _, err := e.move(ctx, move); err != nil {
		return m, err
	}
	return e.reread(ctx, m.ID)
}

// find finds what a status or a cancellation is about.
func (e *Engine) find(ctx context.Context, r Request) (movement.Movement, error) {
	if r.Operation.Target.Kind != manifest.Transfer {
		return e.findByReference(ctx, r)
	}
	search := e.findByReference
	if r.Operation.ReferenceOf(r.Body) == "" {
		search = e.findOurs
	}
	m, err := search(ctx, r)
	if err == nil {
		err = onlyOne(r, m)
	}
	return m, err
}

func (e *Engine) findByReference(ctx context.Context, r Request) (movement.Movement, error) {
	m, err := e.Movements.MovementByKey(ctx, movement.Key{
		Owner: ownerOf(r), Kind: r.Operation.Target.Kind, Reference: r.Operation.ReferenceOf(r.Body),
	})
	if errors.Is(err, store.ErrNotFound) || err == nil && (m.State == movement.NotSubmitted || unnamed(m)) {
		return movement.Movement{}, noSuch(r)
	}
	return m, err
}

// quietFor is how long nobody has heard of a movement that is still open.
func (e *Engine) quietFor(m movement.Movement) time.Duration {
	if m.State != movement.Pending && m.State != movement.Submitting {
		return 0
	}
	last := m.UpdatedAt
	if m.PolledAt.After(last) {
		last = m.PolledAt
	}
	return e.Now().Sub(last)
}

// refresh looks at the provider. Where that fails the movement is answered as
// it is known.
func (e *Engine) refresh(ctx context.Context, op *catalog.Operation, m movement.Movement) movement.Movement {
	c, err := e.reconnect(ctx, op, m)
	if err == nil {
		see := e.look
		if readable(op, m) {
			see = e.collect
		}
		var seen movement.Movement
		if seen, err = see(ctx, op, m, c); err == nil {
			return seen
		}
	}
	e.Log.WarnContext(ctx, "look for a status", "movement", m.ID.String(), "error", err)
	return m
}

func noSuch(r Request) error {
	return fault.Newf(fault.NotFound, "There is no such %s.", r.Operation.Target.Kind).WithReference(r.Operation.ReferenceOf(r.Body))
}
