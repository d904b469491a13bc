package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// replay answers a request whose reference is taken.
func (e *Engine) replay(ctx context.Context, op *catalog.Operation, draft, m movement.Movement) (Answer, error) {
	answer, err := e.answered(ctx, op, draft, m)
	answer.Earlier = true
	return answer, err
}

func (e *Engine) answered(ctx context.Context, op *catalog.Operation, draft, m movement.Movement) (Answer, error) {
	if asked := asKept(op, draft, m); !m.SameRequest(asked.Request) {
		return Answer{}, differs(asked, m)
	}
	if op.Rules.Quiet {
		m, err := e.awaited(ctx, op, m)
		if err != nil {
			return Answer{}, fault.From(err).Unknown().WithReference(nameFor(m))
		}
		if asked := asKept(op, draft, m); !m.SameRequest(asked.Request) { // the one that was awaited was not sent, and another came first
			return Answer{}, differs(asked, m)
		}
		answer, err := e.promise(ctx, op, m)
		answer.Replayed = err == nil
		return answer, err
	}
	if op.Rules.Pends {
		return e.repeat(ctx, op, m)
	}
	if m.Answer == nil && m.State != movement.Failed {
		var err error
		if m, err = e.continued(ctx, op, m); err != nil {
			return Answer{}, err
		}
	}
	answer, err := e.outcome(ctx, op, m)
	answer.Replayed = err == nil || m.Refusal != nil
	return answer, err
}

// repeat answers a transfer's second request with how the first stands now.
func (e *Engine) repeat(ctx context.Context, op *catalog.Operation, m movement.Movement) (Answer, error) {
	now := e.Now()
	if m.State == movement.Submitting && m.Answer == nil && now.Before(m.SendBy.Add(time.Duration(op.Timeout))) {
		return Answer{}, inProgress(m, now)
	}
	answer, err := e.promise(ctx, op, m)
	answer.Replayed = err == nil || m.State == movement.Failed
	return answer, err
}

func inProgress(m movement.Movement, now time.Time) error {
	return fault.Newf(fault.InProgress, "The same %s is being created at this moment.", m.Kind).After(now, time.Second).WithReference(nameFor(m))
}

// continued goes on with a first attempt that nobody answered. While it may
// still be under way it is in progress; after that it is looked up, never made
// a second time.
func (e *Engine) continued(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error) {
	now := e.Now()
	if m.PolledAt.IsZero() && now.Before(m.SendBy.Add(time.Duration(op.Timeout))) {
		return m, inProgress(m, now)
	}
	if m.State != movement.Submitting && m.State != movement.Pending {
		return m, nil
	}
	_, c, err := e.context(ctx, m)
	if err == nil {
		m, err = e.look(ctx, op, m, c)
	}
	if err == nil {
		return m, nil
	}
	// Whatever is in the way now, the first attempt may have been sent.
	if unable, ok := errors.AsType[*fault.Error](err); ok {
		return m, timedOut(m, now).Because(unable)
	}
	return m, fault.From(err).Unknown().WithReference(nameFor(m))
}

// outcome is what a creation is answered, as far as it is known. What has ended
// before anybody was answered gets its first answer here, which then stays.
func (e *Engine) outcome(ctx context.Context, op *catalog.Operation, m movement.Movement) (Answer, error) {
	switch {
	case m.Answer != nil:
		return Answer{Data: m.Answer}, nil
	case m.Refusal != nil:
		return Answer{}, refusalError(m.Refusal).WithReference(nameFor(m))
	}
	switch m.State {
	case movement.NotSubmitted:
		return Answer{}, nothingSent(m)
	case movement.Failed:
		return Answer{}, refusalError(&movement.Refusal{}).WithReference(nameFor(m))
	case movement.Submitting, movement.Pending: // without what there is to pay
		return Answer{}, timedOut(m, e.Now())
	case movement.Succeeded, movement.Expired:
	}
	data := e.firstAnswer(op, m, m.Result)
	if err := e.complete(ctx, store.Move{Movement: m, Answer: data}); err != nil {
		return Answer{}, fault.From(err).Unknown().WithReference(nameFor(m))
	}
	return Answer{Data: data}, nil
}

// comeBack is when to ask again after an answer that did not come in time.
const comeBack = 5 * time.Second

func timedOut(m movement.Movement, now time.Time) *fault.Error {
	return fault.New(fault.ProviderTimeout, "The provider did not answer in time. Ask again with the same reference: it looks the first attempt up and never makes a second.").
		After(now, comeBack).WithReference(nameFor(m))
}

// nothingSent is the error of a movement that is proven never sent: its
// reference is free.
func nothingSent(m movement.Movement) *fault.Error {
	return fault.New(fault.ProviderUnavailable, "The provider is not available at the moment. Nothing was sent.").WithReference(nameFor(m))
}

// refusals are the codes that a provider may refuse with; what else it says is
// its own affair and becomes the last of them.
var refusals = []sdk.RefusalCode{sdk.RefuseDestination, sdk.RefuseProduct, sdk.RefuseOther}

func refusalError(r *movement.Refusal) *fault.Error {
	code, message := sdk.RefusalCode(r.Code), r.Message
	if !slices.Contains(refusals, code) {
		code = sdk.RefuseOther
	}
	if message == "" {
		message = "The provider refused the request."
	}
	e := fault.New(fault.Code(code), message)
	for _, f := range r.Fields {
		e.Fields = append(e.Fields, fault.Field(f))
	}
	e.Sent, e.Retry = fault.SentRefused, fault.RetryNever
	if r.Unsent {
		e.Sent = fault.SentNo
	}
	return e
}

// neverSent ends a movement of which nothing was sent: its reference is free
// again, unless somebody was told that it is pending. Then it has failed.
func neverSent(move store.Move) store.Move {
	move.To, move.Event = movement.NotSubmitted, "not_sent"
	if m := move.Movement; m.Answer != nil {
		move.To = movement.Failed
		move.Refusal = &movement.Refusal{Message: "The " + string(m.Kind) + " was never sent to the provider. No money was moved.", Unsent: true}
	}
	return move
}

// differs names the fields in which two requests under one reference are not
// the same.
func differs(draft, m movement.Movement) error {
	var ours, theirs map[string]json.RawMessage
	if json.Unmarshal(draft.Body(), &ours) != nil || json.Unmarshal(m.Body(), &theirs) != nil {
		return fault.New(fault.DuplicateReference, "This reference was used before with a different request.").WithReference(nameFor(m))
	}
	var fields []fault.Field
	if draft.Operation != m.Operation {
		fields = append(fields, fault.Field{Field: "path", Message: "was " + m.Operation + " before"})
	}
	names := slices.Collect(maps.Keys(ours))
	for name := range theirs {
		if _, both := ours[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if !bytes.Equal(ours[name], theirs[name]) {
			fields = append(fields, fault.Field{Field: name, Message: "differs from the first request with this reference"})
		}
	}
	return fault.New(fault.DuplicateReference, "This reference was used before with a different request.", fields...).WithReference(nameFor(m))
}
