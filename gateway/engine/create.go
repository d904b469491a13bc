package engine

import (
	"context"
	"errors"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// create runs an operation that moves money: intent, act, settlement. It does
// not end when the client hangs up.
func (e *Engine) create(ctx context.Context, r Request) (Answer, error) {
	draft, err := e.draft(r)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest(r.Operation))
	defer cancel()
	in, err := e.intend(ctx, r, &draft)
	switch {
	case err != nil:
		return Answer{}, e.unclaimed(r, draft, err)
	case in.unprepared != nil:
		return e.refuse(ctx, r, draft, in.unprepared)
	case in.claimed:
		in.Remaining = r.Remaining
		answer, err := e.send(ctx, r.Operation, in.Movement, in.connection)
		if in.remark != "" {
			_ = e.list(ctx, in.Movement, reasonFee, "", in.remark) // it is in the log, too
		}
		return answer, err
	case in.State == movement.NotSubmitted: // it was freed at this very moment
		return Answer{}, nothingSent(in.Movement)
	}
	return e.replay(ctx, r.Operation, draft, in.Movement)
}

// intent is what a creation has come to before anything is sent: a claim of its
// own, the movement that has its reference, or why it could not be prepared.
type intent struct {
	movement.Movement
	claimed    bool
	connection connection
	remark     string // for operators
	unprepared error
}

// intend judges the reference, prepares a draft and claims it.
func (e *Engine) intend(ctx context.Context, r Request, draft *movement.Movement) (in intent, err error) {
	taken, err := e.judgeReference(ctx, r, draft)
	switch {
	case err != nil:
		return in, err
	case taken != nil:
		return intent{Movement: *taken}, nil
	}
	if in.connection, in.remark, in.unprepared = e.prepare(ctx, r, draft); in.unprepared != nil {
		return in, nil //nolint:nilerr // the caller answers it, unless the reference has an answer
	}
	in.Movement, in.claimed, err = e.claim(ctx, *draft)
	return in, err
}

// longest is how long a creation may take, with all that may be looked up and
// committed in it.
func longest(op *catalog.Operation) time.Duration {
	calls := time.Duration(op.Timeout)
	if op.Quote {
		calls *= 2
	}
	return sendWindow + calls + lookupTimeout + settleTimeout
}

// prepare completes a draft with the account that it is sent on and what the
// provider tells before the claim. The remark is for operators, once it is claimed.
func (e *Engine) prepare(ctx context.Context, r Request, draft *movement.Movement) (c connection, remark string, err error) {
	if c, err = e.ready(ctx, r, *draft); err != nil {
		return c, "", err
	}
	switch {
	case r.Operation.Kind == manifest.Transfer && !r.Operation.Quote:
		draft.Usage = e.spends(r, *draft, destinationOf(r.Operation, r.Body))
	case !r.Operation.Quote:
	case r.Operation.Kind == manifest.Transfer:
		remark, err = e.inquire(ctx, r, draft, c)
	default:
		err = e.price(ctx, r, draft, c)
	}
	draft.ConnectionOwner, draft.ConnectionVersion, draft.ConnectionAccount = c.owner, c.Version, c.account
	e.start(r.Operation, draft)
	return c, remark, err
}

// unclaimed is the error of a claim that was refused or failed.
func (e *Engine) unclaimed(r Request, draft movement.Movement, err error) error {
	if errors.Is(err, movement.ErrInsufficient) {
		return fault.Newf(fault.InsufficientBalance, "The balance is too low: this costs %s.", draft.Amount).WithReference(nameFor(draft))
	}
	if limit, limited := errors.AsType[*movement.LimitError](err); limited {
		return beyond(limit).WithReference(nameFor(draft))
	}
	if f := e.unslotted(err); f != nil {
		return f.WithReference(nameFor(draft))
	}
	return unjudged(r, draft, err)
}

// start sets the times of a claim, which begin when it is made.
func (e *Engine) start(op *catalog.Operation, draft *movement.Movement) {
	now := e.Now()
	draft.CreatedAt, draft.SendBy = now, now.Add(sendWindow)
	draft.DueAt = draft.NextPoll(now, op.Pace)
	takeSlot(op, draft)
}

// claim waits no longer than what is claimed may be sent.
func (e *Engine) claim(ctx context.Context, draft movement.Movement) (movement.Movement, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, sendWindow)
	defer cancel()
	return e.Movements.Reserve(ctx, draft)
}

// ready says whether the provider could be called now, before anything is
// claimed.
func (e *Engine) ready(ctx context.Context, r Request, draft movement.Movement) (connection, error) {
	c, err := e.connect(ctx, r.Operation, r.Identity.Account, draft.Owner.Mode)
	if err != nil {
		return connection{}, err
	}
	if err := e.clockFault(); err != nil {
		return connection{}, fault.New(fault.Internal, "This can't be created at the moment because of a fault on our side. Nothing was sent.").Because(err)
	}
	return c, e.available(draft.Provider, draft.Owner.Mode)
}

// clockFault is why times of ours can't be relied on now. All replicas judge by
// them: whether a request can still be under way, whether a payment is for a
// collection, whether an amount is free.
func (e *Engine) clockFault() error {
	if e.ClockFault == nil {
		return nil
	}
	return e.ClockFault()
}

func (e *Engine) available(provider, mode string) error {
	err := e.Providers.Available(provider, mode)
	if err == nil {
		return nil
	}
	refusal := fault.New(fault.ProviderUnavailable, "The provider is not available at the moment. Nothing was sent.").Because(err)
	if unavailable, ok := errors.AsType[*host.Unavailable](err); ok && unavailable.RetryAfter > 0 {
		refusal = refusal.After(e.Now(), unavailable.RetryAfter)
	}
	return refusal
}

// refuse answers a request that can't be run now, unless its reference has an
// answer already.
func (e *Engine) refuse(ctx context.Context, r Request, draft movement.Movement, cause error) (Answer, error) {
	existing, err := e.Movements.MovementByKey(ctx, draft.Key)
	switch {
	case err == nil && existing.State != movement.NotSubmitted:
		return e.replay(ctx, r.Operation, draft, existing)
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return Answer{}, unjudged(r, draft, err)
	}
	return Answer{}, fault.From(cause).WithReference(nameFor(draft))
}

// send hands a claimed movement to its provider and settles what came back.
func (e *Engine) send(ctx context.Context, op *catalog.Operation, m movement.Movement, c connection) (Answer, error) {
	result := sdk.DidNotSend(sdk.BlameNone, "send_by passed before the claim was through")
	if e.Now().Before(m.SendBy) {
		result = e.Providers.Call(ctx, m.Provider, sdk.Call{
			Operation: m.Operation, RequestID: m.RequestID, Connection: c.Connection,
			Reference: m.UpstreamReference(), Amount: m.Amount, Body: m.Body(), SendBy: m.SendBy,
			Cost: m.Cost, Quote: m.Quote,
		}, time.Duration(op.Timeout))
	}
	if result.Outcome == sdk.Done || result.Outcome == sdk.Pending {
		if err := checkOffer(op, m, result.Data); err != nil {
			result = sdk.DontKnow(sdk.BlameUpstream, "the answer can't be used: "+err.Error())
		}
	}
	e.logResult(ctx, m, result)
	if result.Blame == sdk.BlameAccount {
		e.alert(ctx, m.Provider, c, result.Detail)
	}
	if op.Rules.Pends {
		answer, err := e.firstWord(ctx, op, m, result)
		if result.Outcome == sdk.Unknown || result.Outcome == sdk.NotSent { // of which the story has no words
			e.note(ctx, op, m, "called", result.Outcome.String(), result.Detail)
		}
		return answer, err
	}
	switch result.Outcome {
	case sdk.Done, sdk.Pending:
		return e.accept(ctx, op, m, result)
	case sdk.Refused:
		return e.refused(ctx, op, m, result)
	case sdk.NotSent:
		return e.unsent(ctx, op, m)
	case sdk.Unknown:
	}
	return e.unknown(ctx, op, m, c)
}

// accept settles a movement that the provider has taken.
func (e *Engine) accept(ctx context.Context, op *catalog.Operation, m movement.Movement, result sdk.Result) (Answer, error) {
	if byBooks(op) {
		result.ExpiresAt = m.ExpiresAt // its life is ours
	}
	data := e.firstAnswer(op, m, result.Data)
	taken := m
	taken.State, taken.ExpiresAt = movement.Pending, result.ExpiresAt
	move := store.Move{
		Movement: m, To: movement.Pending, Event: "accepted", Detail: detail("source", "call"),
		Result: result.Data, Answer: data, ProviderReference: nameOf(result.ProviderReference),
		ExpiresAt: result.ExpiresAt, DueAt: taken.NextPoll(e.Now(), op.Pace),
	}
	moved, err := e.move(ctx, move)
	if err == nil && !moved {
		return e.acceptedLate(ctx, op, move)
	}
	if err != nil {
		return Answer{}, fault.From(err).Unknown().WithReference(nameFor(m))
	}
	return Answer{Data: data}, nil
}

// acceptedLate gives the answer of a call that a notification or a lookup was
// faster than.
func (e *Engine) acceptedLate(ctx context.Context, op *catalog.Operation, move store.Move) (Answer, error) {
	m := move.Movement
	err := e.complete(ctx, move)
	var now movement.Movement
	if err == nil {
		now, err = e.reread(ctx, m.ID)
	}
	if err != nil {
		return Answer{}, fault.From(err).Unknown().WithReference(nameFor(m))
	}
	if now.Attempt != m.Attempt || now.State == movement.NotSubmitted {
		return e.contradicted(ctx, op, m, "the provider accepted "+m.UpstreamReference()+" after it had been proven never sent")
	}
	return e.outcome(ctx, op, now)
}

func (e *Engine) refused(ctx context.Context, op *catalog.Operation, m movement.Movement, result sdk.Result) (Answer, error) {
	refusal := refusalOf(result.Refusal)
	move := store.Move{
		Movement: m, To: movement.Failed, Event: "refused", Refusal: refusal,
		Detail: detail("source", "call", "detail", printable(result.Detail)),
	}
	moved, err := e.move(ctx, move)
	switch {
	case err == nil && !moved:
		return e.overtaken(ctx, op, m, "refused")
	case err != nil && op.Rules.Pends:
		e.Log.ErrorContext(ctx, "keep the provider's refusal", "movement", m.ID.String(), "error", err)
		return e.promise(ctx, op, m) // the worker finds out
	case err != nil:
		return Answer{}, fault.From(err).Unknown().WithReference(nameFor(m))
	}
	answer := Answer{}
	if unnamed(m) {
		answer.Receipt = m.ID
	}
	return answer, refusalError(refusal).WithReference(nameFor(m))
}

// mostFields is how many fields of a refusal are kept.
const mostFields = 20

// refusalOf is a provider's no as it is kept and shown.
func refusalOf(r sdk.Refusal) *movement.Refusal {
	refusal := &movement.Refusal{Code: printable(string(r.Code)), Message: printable(r.Message)}
	for _, f := range r.Fields[:min(len(r.Fields), mostFields)] {
		refusal.Fields = append(refusal.Fields, movement.RefusalField{Field: printable(f.Field), Message: printable(f.Message)})
	}
	return refusal
}

// unsent frees the reference of a movement of which nothing was sent. Where
// somebody was told meanwhile that it is pending, it has failed instead; and
// where a lookup that is the same request again has begun, nobody knows.
func (e *Engine) unsent(ctx context.Context, op *catalog.Operation, m movement.Movement) (Answer, error) {
	move := neverSent(store.Move{Movement: m, Detail: detail("source", "call"), Unasked: op.Resubmits()})
	moved, err := e.move(ctx, move)
	switch {
	case err != nil && op.Rules.Pends:
		// It may stand as sending still, and then the worker sends it again.
		e.Log.ErrorContext(ctx, "free the reference of what was not sent", "movement", m.ID.String(), "error", err)
		return e.promise(ctx, op, m)
	case err != nil:
		return Answer{}, fault.From(err).WithReference(nameFor(m))
	case moved && m.Answer == nil:
		e.freeSlot(ctx, op, m)
		return Answer{}, nothingSent(m)
	case moved:
		m.State, m.Refusal = move.To, move.Refusal
		return e.promise(ctx, op, m)
	}
	now, err := e.reread(ctx, m.ID)
	if promised := err == nil && m.Answer == nil && now.Answer != nil; promised && now.State == movement.Submitting && now.Attempt == m.Attempt {
		return e.unsent(ctx, op, now)
	}
	return e.overtaken(ctx, op, m, "not sent")
}

// overtaken answers a call that made nothing, of a movement that somebody else
// has moved on meanwhile.
func (e *Engine) overtaken(ctx context.Context, op *catalog.Operation, m movement.Movement, said string) (Answer, error) {
	now, err := e.reread(ctx, m.ID)
	switch {
	case err != nil:
		return Answer{}, fault.From(err).Unknown().WithReference(nameFor(m))
	case now.Attempt != m.Attempt, now.State == movement.NotSubmitted:
		return Answer{}, nothingSent(m) // a lookup has proven the same
	case op.Rules.Pends:
		if now.State != movement.Failed && (said == "refused" || !op.Resubmits()) { // a lookup that resubmits may have sent it
			_ = e.list(ctx, m, reasonContradiction, m.UpstreamReference(), "the call was "+said+", but it stands at "+string(now.State)) // it is in the log, too
		}
		return e.promise(ctx, op, now)
	case now.State == movement.Failed:
		return e.outcome(ctx, op, now)
	}
	return e.contradicted(ctx, op, m, "the call was "+said+", but the provider has "+m.UpstreamReference()+", which stands at "+string(now.State))
}

// contradicted answers a call whose word and the provider's other words exclude
// each other: an operator has to see to it.
func (e *Engine) contradicted(ctx context.Context, op *catalog.Operation, m movement.Movement, text string) (Answer, error) {
	answer := timedOut(m, e.Now())
	if op.Rules.Pends { // which must not be told to ask again: it may be made a second time
		answer = fault.New(fault.Internal, "The provider contradicts itself. An operator will see to it; ask before you send it again.").WithReference(nameFor(m))
		answer.Sent, answer.Retry = fault.SentUnknown, fault.RetryNever
	}
	if err := e.list(ctx, m, reasonContradiction, m.UpstreamReference(), text); err != nil {
		answer = answer.Because(err)
	}
	return Answer{}, answer
}

// unknown looks once at what became of a call that was not answered. Where that
// does not tell either, the merchant is asked to come back with the reference.
func (e *Engine) unknown(ctx context.Context, op *catalog.Operation, m movement.Movement, c connection) (Answer, error) {
	seen, err := e.look(ctx, op, m, c)
	if err != nil {
		e.Log.ErrorContext(ctx, "look after an unanswered call", "movement", m.ID.String(), "error", err)
		return Answer{}, timedOut(m, e.Now())
	}
	return e.outcome(ctx, op, seen)
}
