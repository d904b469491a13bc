package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// statusPoll bounds the poll that a status call may cost; a slow provider is answered
// with what we know, and the poll goes on.
const statusPoll = 3 * time.Second

// status tells how a movement stands: one indexed read, and a poll where nothing was
// heard for a while.
func (l *Lifecycle) status(ctx context.Context, r Request) (Answer, error) {
	m, err := l.find(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	asked := r.Operation.Shown(m.Provider)
	made := asked.Target // a status may be about several operations
	if m.Operation != made.Path {
		if made, err = l.Shown(m); err != nil {
			return Answer{}, err
		}
	}
	if l.quietFor(m) >= made.Rules.Pace.Every || made.Rules.ReadsStatement(m, l.Now()) {
		ctx, cancel := context.WithTimeout(ctx, statusPoll)
		defer cancel()
		m = l.refresh(ctx, made, m)
	}
	for m.State == movement.Submitting {
		// What is shown is a promise: who reads that it is pending is told its end, too.
		if m, err = l.acknowledge(ctx, made, m); err != nil {
			return Answer{}, fault.From(err).Unknown().WithReference(m.CallersReference())
		}
	}
	if m.State == movement.NotSubmitted {
		return Answer{}, NoSuch(r)
	}
	return l.kinds[made.Kind].Describe(asked, made, m), nil
}

// cancel ends an unpaid movement at the provider; what has ended already answers its
// present state.
func (l *Lifecycle) cancel(ctx context.Context, r Request) (Answer, error) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), sendWindow+time.Duration(r.Operation.Timeout)+lookupTimeout+applyTimeout)
	defer stop()
	m, err := l.find(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	r.Operation = r.Operation.Shown(m.Provider)
	made := r.Operation.Target
	if m.State.Unknown() {
		if m, err = l.goOn(ctx, made, m); err != nil {
			return Answer{}, err
		}
	}
	switch m.State {
	case movement.Submitting, movement.Acknowledged:
		return Answer{}, l.TimedOut(made, m)
	case movement.NotSubmitted:
		return Answer{}, NoSuch(r)
	case movement.Pending:
		canceller, can := l.kinds[made.Kind].(Canceller)
		if !can {
			return Answer{}, errors.New("lifecycle: nothing cancels a " + string(made.Kind))
		}
		if err := l.barred(); err != nil {
			return Answer{}, err
		}
		if m, err = canceller.Cancel(ctx, r, m); err != nil {
			return Answer{}, err
		}
	case movement.Succeeded, movement.Failed, movement.Expired:
	}
	return l.kinds[made.Kind].Describe(r.Operation, made, m), nil
}

// find finds what a status or a cancel is about.
func (l *Lifecycle) find(ctx context.Context, r Request) (movement.Movement, error) {
	if finder, ok := l.kinds[r.Operation.Target.Kind].(Finder); ok {
		return finder.Find(ctx, r)
	}
	return l.FindByReference(ctx, r)
}

// FindByReference finds the movement that a request names by its reference.
func (l *Lifecycle) FindByReference(ctx context.Context, r Request) (movement.Movement, error) {
	m, err := l.Store.MovementByKey(ctx, movement.Key{
		Owner: r.Owner(), Kind: r.Operation.Target.Kind, Reference: r.Operation.ReferenceOf(r.Body),
	})
	if errors.Is(err, movement.ErrNotFound) || err == nil && (m.State == movement.NotSubmitted || m.Unnamed()) {
		return movement.Movement{}, NoSuch(r)
	}
	return m, err
}

// quietFor is how long nobody has heard of a movement that is still open.
func (l *Lifecycle) quietFor(m movement.Movement) time.Duration {
	if !m.State.Open() {
		return 0
	}
	last := m.UpdatedAt
	if m.PolledAt.After(last) {
		last = m.PolledAt
	}
	return l.Now().Sub(last)
}

// refresh polls, or reads the statement. Where that fails the movement is answered as
// it is known.
func (l *Lifecycle) refresh(ctx context.Context, op *catalog.Operation, m movement.Movement) movement.Movement {
	seen, err := l.look(ctx, op, m)
	if err != nil {
		l.Log.WarnContext(ctx, "poll for a status", "movement", m.ID.String(), "error", err)
		return m
	}
	return seen
}

func (l *Lifecycle) look(ctx context.Context, op *catalog.Operation, m movement.Movement) (movement.Movement, error) {
	if err := servedBy(op, m); err != nil { // nor is a statement of another's account about it
		return m, err
	}
	if fed, ok := l.kinds[op.Kind].(StatementFed); ok && op.Rules.ReadsStatement(m, l.Now()) {
		if l.barred() == nil {
			return fed.Refresh(ctx, op, m)
		}
		return m, nil // statements rest
	}
	c, err := l.Reconnect(ctx, op, m)
	if err != nil {
		return m, err
	}
	return l.Poll(ctx, op, m, c)
}

// NoSuch is the error of a request about a movement that is not there.
func NoSuch(r Request) error {
	return fault.Newf(fault.NotFound, "There is no such %s.", r.Operation.Target.Kind).WithReference(r.Operation.ReferenceOf(r.Body))
}
