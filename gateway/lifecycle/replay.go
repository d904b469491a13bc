package lifecycle

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
)

// replay answers a request whose reference is taken.
func (l *Lifecycle) replay(ctx context.Context, op *catalog.Operation, draft, m movement.Movement) (Answer, error) {
	answer, err := l.repeat(ctx, op, draft, m)
	answer.Earlier = true
	return answer, err
}

// repeat answers the same request as the first one was, by the rules: with its offer,
// that it is pending, or how it stands now.
func (l *Lifecycle) repeat(ctx context.Context, op *catalog.Operation, draft, m movement.Movement) (Answer, error) {
	if err := l.same(op, draft, m); err != nil {
		return Answer{}, err
	}
	op = op.Shown(m.Provider)
	switch op.Rules.Answers {
	case movement.AnswerPending:
		m, err := l.await(ctx, op, m)
		if err != nil {
			return Answer{}, fault.From(err).Unknown().WithReference(m.CallersReference())
		}
		if err := l.same(op, draft, m); err != nil { // the one that was awaited was not sent, and another came first
			return Answer{}, err
		}
		answer, err := l.promise(ctx, op, m)
		answer.Replayed = err == nil
		return answer, err
	case movement.AnswerPresent:
		if err := l.underWay(op, m); err != nil {
			return Answer{}, err
		}
		answer, err := l.promise(ctx, op, m)
		answer.Replayed = err == nil || m.State == movement.Failed
		return answer, err
	case movement.AnswerOffer:
	}
	if !m.Answered() && m.State != movement.Failed {
		var err error
		if m, err = l.goOn(ctx, op, m); err != nil {
			return Answer{}, err
		}
	}
	answer, err := l.outcome(ctx, op, m)
	answer.Replayed = err == nil || m.Refusal != nil
	return answer, err
}

func (l *Lifecycle) same(op *catalog.Operation, draft, m movement.Movement) error {
	draft.Request = l.kinds[op.Kind].Kept(op, draft, m)
	if !m.SameRequest(draft.Request) {
		return differs(draft, m)
	}
	return nil
}

const (
	// awaitFirst and awaitEvery say how often somebody who has sent an order again looks
	// whether the first one was answered.
	awaitFirst = 20 * time.Millisecond
	awaitEvery = 200 * time.Millisecond
)

// await waits for the first word on a movement that another request is submitting at
// this moment, so that all who ask the same are answered the same.
func (l *Lifecycle) await(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error) {
	pause := awaitFirst
	for m.State == movement.Submitting && l.Now().Before(m.SendBy.Add(op.Rules.Timeout)) {
		select {
		case <-ctx.Done():
			return m, nil
		case <-time.After(pause):
		}
		pause = min(2*pause, awaitEvery)
		next, err := l.Store.MovementByID(ctx, m.ID)
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
			return m, nil
		case err != nil:
			return m, err
		}
		m = next
	}
	return m, nil
}

// promise answers what goes out, and records where that is a promise: from then on
// the reference is never free again, and the end is told.
func (l *Lifecycle) promise(ctx context.Context, op *catalog.Operation, m movement.Movement) (Answer, error) {
	attempt := m.Attempt
	if !m.Answered() && (op.Rules.Answers == movement.AnswerPending || m.State == movement.Submitting) {
		var err error
		if m, err = l.acknowledge(ctx, op, m); err != nil {
			return Answer{}, fault.From(err).Unknown().WithReference(m.CallersReference())
		}
	}
	if m.State == movement.NotSubmitted || m.Attempt != attempt { // also where somebody has reserved it again since
		return Answer{}, nothingSent(m)
	}
	return l.kinds[op.Kind].Answer(op, m)
}

// Promised is a movement as it stands for somebody else than its own caller who is told
// its status: from then on it is never free again. It is IN_PROGRESS while it may be under
// way.
func (l *Lifecycle) Promised(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error) {
	if m.State != movement.Submitting {
		return m, nil
	}
	if err := l.underWay(op, m); err != nil {
		return m, err
	}
	return l.acknowledge(ctx, op, m)
}

// underWay is IN_PROGRESS while the first attempt may still be being made.
func (l *Lifecycle) underWay(op *catalog.Operation, m movement.Movement) error {
	if now := l.Now(); m.State == movement.Submitting && now.Before(m.SendBy.Add(op.Rules.Timeout)) {
		return inProgress(m, now)
	}
	return nil
}

// goOn goes on with a first attempt that nobody answered. While it may still be under
// way it is in progress; after that it is polled, never made a second time.
func (l *Lifecycle) goOn(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error) {
	now := l.Now()
	if m.PolledAt.IsZero() && now.Before(m.SendBy.Add(op.Rules.Timeout)) {
		return m, inProgress(m, now)
	}
	if !m.State.Open() {
		return m, nil
	}
	c, err := l.Reconnect(ctx, op, m)
	if err == nil {
		m, err = l.Poll(ctx, op, m, c)
	}
	if err == nil {
		return m, nil
	}
	// Whatever is in the way now, the first attempt may have been sent.
	if unable, ok := errors.AsType[*fault.Error](err); ok {
		return m, l.TimedOut(op, m).Because(unable)
	}
	return m, fault.From(err).Unknown().WithReference(m.CallersReference())
}

func inProgress(m movement.Movement, now time.Time) error {
	return fault.Newf(fault.InProgress, "The same %s is being created at this moment.", m.Kind).After(now, time.Second).WithReference(m.CallersReference())
}

// differs names the fields in which two requests under one reference are not the
// same.
func differs(draft, m movement.Movement) error {
	var ours, theirs map[string]json.RawMessage
	if json.Unmarshal(draft.Body(), &ours) != nil || json.Unmarshal(m.Body(), &theirs) != nil {
		return fault.New(fault.DuplicateReference, "This reference was used before with a different request.").WithReference(m.CallersReference())
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
	return fault.New(fault.DuplicateReference, "This reference was used before with a different request.", fields...).WithReference(m.CallersReference())
}
