package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	// lateEvery and lateFor say how a last poll for late money is tried again where the
	// provider could not be asked.
	lateEvery, lateFor = time.Hour, 24 * time.Hour
	// unresolvable is when a movement whose connection or operation is gone is polled
	// again, and notNow one that a clock keeps from it.
	unresolvable = 10 * time.Minute
	notNow       = time.Minute
	// LongestPoll bounds a poll that goes on when its caller has no more time.
	LongestPoll = movement.PollLasts
)

// Poll applies what operators have decided of a movement. Where they have not, it asks
// the provider about it, if nobody did within its pace, and applies what that says. It
// returns the movement as it stands then.
func (l *Lifecycle) Poll(ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection) (movement.Movement, error) {
	if seen, over, err := l.decided(ctx, op, m); over || err != nil {
		return seen, err
	}
	return l.ask(ctx, op, m, c, false)
}

// ask asks the provider. Hinted says that a notification was the reason.
func (l *Lifecycle) ask(ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection, hinted bool) (movement.Movement, error) {
	// 1. May it be asked for now?
	now, rules := l.Now(), op.Rules
	next, last := nextPoll(op, m, now)
	if rules.Resubmits && (l.clockFault() != nil || l.barred() != nil || m.State.Unknown() && now.Before(m.SendBy.Add(rules.Timeout))) {
		if now.Before(m.DueAt) {
			return m, nil
		}
		return m, l.putOff(ctx, m, notNow) // the first request may be on its way, and a wrong clock does not tell
	}
	if m.Errored() && !m.PolledAt.Before(m.ErroredAt) && m.State.Unknown() && now.Before(m.DueAt) {
		return m, nil // it was asked once, and one more look would put the proof off
	}
	if why := unaskable(op, m, c, now); why.Detail != "" {
		if now.Before(m.DueAt) {
			return m, nil // whoever asks for it must not keep operators from deciding
		}
		// Before it is due again: a process that dies in between leaves it due.
		if err := l.List(ctx, m, why); err != nil {
			return m, errors.Join(err, l.putOff(ctx, m, notNow))
		}
		_, err := l.Store.Poll(ctx, m, now, now.Add(-rules.Pace.Every), next)
		return m, err
	}
	// 2. The right to ask, over all replicas.
	ours, err := l.Store.Poll(ctx, m, now, now.Add(-rules.Pace.Every), next)
	if err != nil {
		return m, err
	}
	if !ours {
		return l.Reread(ctx, m.ID)
	}
	m.PolledAt = now
	m.Version++
	if rules.Resubmits { // what was decided meanwhile is not sent again
		if seen, over, err := l.decided(ctx, op, m); over || err != nil {
			return seen, err
		}
	}
	// 3. The question, which goes on also when nobody waits, and its answer.
	seen, err := ToTheEnd(ctx, l.Log, func(ctx context.Context) (movement.Movement, error) {
		update := l.lookup(ctx, op, m, c, now)
		seen, err := l.weigh(ctx, op, m, c, update, next, hinted)
		if last && err == nil && update.Status != sdk.StatusUnknown {
			_, err = l.Store.Poll(ctx, m, now, now, time.Time{})
		}
		return seen, err
	})
	if err != nil {
		return m, err
	}
	return seen, nil
}

func (l *Lifecycle) lookup(ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection, now time.Time) sdk.StatusUpdate {
	lookup := lookupOf(m, c)
	var err error
	if lookup.Payment, err = l.payment(ctx, m); err != nil {
		return sdk.NoStatus(sdk.BlameNone, "what it is of can't be read: "+err.Error())
	}
	if op.Rules.Resubmits {
		lookup.SendBy = earlier(now.Add(sendWindow), m.ResubmitUntil(op.Rules))
	}
	update := l.Providers.Lookup(ctx, host.UseOf(m), lookup, lookupTimeout)
	l.note(ctx, op, m, "polled", update.Status.String(), update.Detail)
	return update
}

// lookupOf is the question about a movement.
func lookupOf(m movement.Movement, c Connection) sdk.Lookup {
	return sdk.Lookup{
		Operation: m.Operation, RequestID: m.RequestID, Connection: c.Connection,
		Reference: m.UpstreamReference(), ProviderReference: m.ProviderReference,
		Amount: m.Amount, Body: m.Body(), SentAt: m.CreatedAt, ExpiresAt: m.ExpiresAt, Cost: m.Cost, Quote: m.Quote,
	}
}

// weigh applies what a lookup has told. What it leaves as it is, is due next.
func (l *Lifecycle) weigh(
	ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection, u sdk.StatusUpdate, next time.Time, hinted bool,
) (movement.Movement, error) {
	f := l.factOfUpdate(op, m, u, movement.FromLookup)
	f.Hinted = hinted
	if c.anotherAccount(m) { // which has nothing of it
		switch {
		case f.Says == movement.SaysExpired && len(f.Returns) == 0:
			f.Says = movement.SaysNotFound // that the life of a link is over needs no account
		case f.Says == movement.SaysSucceeded, f.Says == movement.SaysFailed, len(f.Returns) > 0:
			m.DueAt = next
			return m, l.ofAnother(ctx, m, c, f, u.Status)
		}
	}
	switch f.Says {
	case movement.SaysNothing:
		l.Log.WarnContext(ctx, "lookup told nothing", "movement", m.ID.String(), "provider", m.Provider, "detail", u.Detail)
		if u.Blame == sdk.BlameAccount {
			l.Alert(ctx, m.Provider, c, u.Detail)
		}
		m.DueAt = next
		return m, nil
	case movement.SaysNotFound:
		f.Proves = c.SameAccount(m) && l.clockFault() == nil && l.barred() == nil
		return l.notFound(ctx, op, m, c, f, next)
	default:
		return l.takeIn(ctx, op, m, f, u.Returns)
	}
}

// notFound counts a "not found" that proves something, and applies it when it was
// said often enough. The count comes first: another replica's answer may have moved
// the movement on.
func (l *Lifecycle) notFound(
	ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection, f movement.Fact, next time.Time,
) (movement.Movement, error) {
	f.Now = m.PolledAt
	t := movement.Apply(op.Rules, m, f)
	if t.MissUntil.IsZero() {
		m.DueAt = next
		return m, l.list(ctx, m, t.Exceptions)
	}
	misses, err := l.Store.Miss(ctx, m, t.MissUntil)
	switch {
	case err != nil:
		return m, err
	case misses == 0:
		return l.Reread(ctx, m.ID)
	case t.Effect != movement.Nothing:
		return l.Apply(ctx, op, m, f)
	}
	m.Misses, m.DueAt = misses, t.MissUntil
	if op.Rules.NotFound.Mutations && misses >= op.Rules.NotFound.Times {
		return l.absent(ctx, op, m, c)
	}
	return m, nil
}

// absent asks the account's own mutations about a movement that the provider does not
// find, and applies what they prove. Whatever comes of it, operators read it.
func (l *Lifecycle) absent(ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection) (movement.Movement, error) {
	prover, ok := l.kinds[op.Kind].(AbsenceProver)
	if !ok {
		return m, nil
	}
	f, err := prover.Absence(ctx, op, m, c)
	if err != nil {
		return m, err
	}
	f.Proves = c.SameAccount(m) && l.clockFault() == nil && l.barred() == nil
	word := "not proven absent"
	if f.Says == movement.SaysAbsent {
		word = "absent"
	}
	l.note(ctx, op, m, "mutations", word, f.Detail)
	return l.Apply(ctx, op, m, f)
}

// unaskable says why a movement can't be asked for where that means to send the same
// request again: when the provider may no longer take it for the same, or on another
// account, it would be a second movement; and it must not be bought so late that its
// merchant has given it up.
func unaskable(op *catalog.Operation, m movement.Movement, c Connection, now time.Time) (why movement.Cause) {
	why = movement.Cause{Reason: movement.ReasonUnresolved, FactID: m.UpstreamReference() + " can't be asked"}
	until := m.ResubmitUntil(op.Rules)
	switch {
	case !op.Rules.Resubmits:
	case now.Before(until) && !c.SameAccount(m):
		why.Detail = "the connection is another account at the provider now, which does not know it"
	case now.Before(until):
	case !m.State.Unknown():
		why.Detail = "it is too old to be sent again: the provider could take it for a new one"
	default: // once for each decision of operators to send it again
		why.FactID = m.UpstreamReference() + " not sent again since " + Stamp(until)
		why.Detail = "no provider has confirmed it, and to ask is to send it again, which could buy it: operators say success, failed or resubmit"
	}
	return why
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// nextPoll is when the movement is polled again if this poll tells nothing, and
// whether it is the last one if it tells something.
func nextPoll(op *catalog.Operation, m movement.Movement, now time.Time) (next time.Time, last bool) {
	next = m.NextPoll(now, op.Rules)
	switch {
	case m.State.Unknown() && m.Misses > 0 && now.Before(m.DueAt):
		return m.DueAt, false // a second "not found" goes by it
	case m.State.Unknown() && m.Misses > 0:
		// One more "not found" may end it: a poll that tells nothing puts that off for no
		// longer than the provider has been silent in proportion.
		return now.Add(m.AskAgainIn(now, op.Rules)), false
	case m.State == movement.Expired && next.IsZero() && now.Before(m.UpdatedAt.Add(lateFor)):
		return now.Add(lateEvery), true
	}
	return next, false
}

// Resolve ends a movement that is due as operators have decided, also where nobody can be
// asked about it, or polls it.
func (l *Lifecycle) Resolve(ctx context.Context, m movement.Movement) error {
	ctx, span := l.Tracer.Work(ctx, "poll", tracing.Inside, "")
	defer span.End()
	if span.On() {
		span.Text("gerbang.movement_id", m.ID.String())
		span.Text("gerbang.operation", m.Operation)
	}
	var overdue error
	if rules, served := movement.RulesOf(m.Kind); served {
		overdue = l.list(ctx, m, movement.Apply(rules, m, movement.Fact{Source: movement.FromClock, Says: movement.SaysOverdue, Now: l.Now()}).Exceptions)
	}
	op, err := l.Shown(m)
	if err != nil {
		return errors.Join(overdue, err, l.PutOff(ctx, m))
	}
	if _, over, err := l.decided(ctx, op, m); err != nil {
		return errors.Join(overdue, err, l.PutOff(ctx, m))
	} else if over {
		return overdue
	}
	if !op.Rules.Asks(m) { // a gateway of before has ended it
		_, err := l.Store.Poll(ctx, m, l.Now(), l.Now(), time.Time{})
		return errors.Join(overdue, err)
	}
	if err := servedBy(op, m); err != nil {
		return errors.Join(overdue, err, l.unserved(ctx, op, m))
	}
	if fed, ok := l.kinds[op.Kind].(StatementFed); ok && op.Rules.ReadsStatement(m, l.Now()) {
		now := l.Now()
		if _, err := l.Store.Poll(ctx, m, now, now, m.NextPoll(now, op.Rules)); err != nil {
			return errors.Join(overdue, err)
		}
		_, err := fed.Refresh(ctx, op, m) // readings of its account have not ended it
		return errors.Join(overdue, err)
	}
	c, err := l.Reconnect(ctx, op, m)
	if err != nil {
		return errors.Join(overdue, err, l.PutOff(ctx, m))
	}
	_, err = l.ask(ctx, op, m, c, false)
	return errors.Join(overdue, err)
}

// unserved puts off a movement whose provider is offered no more. One that has ended is
// looked at no longer than if the provider did not answer.
func (l *Lifecycle) unserved(ctx context.Context, op *catalog.Operation, m movement.Movement) error {
	if m.State.Open() {
		return l.PutOff(ctx, m)
	}
	next, _ := nextPoll(op, m, l.Now())
	_, err := l.Store.Poll(ctx, m, m.PolledAt, m.PolledAt, next)
	return err
}

// PutOff has a movement that can't be polled now due again after a while: it must not
// stay due and be tried in a loop. Nobody is asked, so when somebody was stays as it is.
func (l *Lifecycle) PutOff(ctx context.Context, m movement.Movement) error {
	return l.putOff(ctx, m, unresolvable)
}

func (l *Lifecycle) putOff(ctx context.Context, m movement.Movement, by time.Duration) error {
	_, err := l.Store.Poll(ctx, m, m.PolledAt, m.PolledAt, l.Now().Add(by))
	return err
}

// ToTheEnd runs a poll for as long as it takes, also when its caller has no more time
// to wait: it has taken the right to poll from all others, and a merchant that keeps
// asking must not keep them from an answer. A panic is raised here.
func ToTheEnd[T any](ctx context.Context, log *slog.Logger, poll func(context.Context) (T, error)) (seen T, err error) {
	type outcome struct {
		seen   T
		err    error
		thrown any
	}
	ended := make(chan outcome, 1)
	polling, cancel := context.WithTimeout(context.WithoutCancel(ctx), LongestPoll)
	go func() {
		var o outcome
		defer cancel()
		defer func() {
			if o.thrown = recover(); o.thrown != nil && ctx.Err() != nil {
				log.ErrorContext(polling, "a poll that nobody waits for panicked", "panic", o.thrown, "stack", string(debug.Stack()))
			}
			ended <- o
		}()
		o.seen, o.err = poll(polling)
	}()
	select {
	case <-ctx.Done():
		return seen, ctx.Err()
	case o := <-ended:
		if o.thrown != nil {
			panic(o.thrown)
		}
		return o.seen, o.err
	}
}
