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
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tracing"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// create runs an operation that moves money: intent, act, what it led to. It does
// not end when the client hangs up.
func (l *Lifecycle) create(ctx context.Context, r Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), longest(r.Operation))
	defer cancel()
	draft, err := l.draft(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	if r.Operation.Rules.Follows {
		r.Route = []string{draft.Provider}
	}
	lost, err := l.findLost(ctx, r, draft)
	if err == nil && lost.has != nil {
		draft.Provider = lost.has.Provider
		return l.createOnly(ctx, r, lost.has, draft, l.lookOnce) // nothing is made a second time
	}
	if err == nil {
		r, err = l.ifSilent(r, lost)
	}
	switch {
	case err != nil:
		return l.refuse(ctx, r, draft, err)
	case r.Operation.Routed():
		return l.route(ctx, r, draft)
	case len(r.candidates()) == 0:
		return l.refuse(ctx, r, draft, fault.New(fault.ProviderUnavailable, "No provider is there for this at the moment. Nothing was sent."))
	}
	return l.createOnly(ctx, r, r.Operation, draft, l.submit)
}

// createOnly creates at one provider, and at no other where that has not taken it.
func (l *Lifecycle) createOnly(ctx context.Context, r Request, op *catalog.Operation, draft movement.Movement, hand handing) (Answer, error) {
	answer, err := l.createAt(ctx, r, op, &draft, hand, nil)
	if not, ok := errors.AsType[*untaken](err); ok {
		if !not.reserved {
			return l.refuse(ctx, r, draft, not.error)
		}
		err = not.error
	}
	return answer, err
}

// untaken is the error of a provider that has not taken a movement, and was proven to
// have been sent nothing. What was reserved for it is undone.
type untaken struct {
	error
	reserved bool // and undone; else nothing was written
	movement movement.Movement
}

// handing is what follows a reservation, and how the creation is answered.
type handing func(ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection) (Answer, error)

// createAt creates at the provider of an operation, which is the request's own or one of
// its candidates. Before is who was tried before, nil for nobody.
func (l *Lifecycle) createAt(
	ctx context.Context, r Request, op *catalog.Operation, draft *movement.Movement, hand handing, before *untaken,
) (Answer, error) {
	at := r
	at.Operation = op
	in, err := l.reserve(ctx, at, draft)
	switch {
	case err != nil:
		return Answer{}, err
	case in.unprepared != nil:
		return Answer{}, &untaken{error: in.unprepared} // answered, unless the reference has an answer
	case in.ours:
		in.Remaining = r.Remaining
		if in.remark != "" { // before the call, which the process may not survive
			_ = l.List(ctx, in.Movement, movement.Cause{Reason: movement.ReasonFee, Detail: in.remark}) // tried beyond send_by: where it can't be, nothing is sent
		}
		answer, err := hand(ctx, op, in.Movement, in.connection)
		l.rerouted(ctx, op, before, in.Movement)
		return answer, err
	case in.State == movement.NotSubmitted: // it was freed at this very moment
		return Answer{}, nothingSent(in.Movement)
	}
	return l.replay(ctx, r.Operation, *draft, in.Movement)
}

// draft is the movement that a request would make.
func (l *Lifecycle) draft(ctx context.Context, r Request) (movement.Movement, error) {
	op := r.Operation
	body := op.WithDefaults(r.Body)
	reference := op.ReferenceOf(body)
	if reference == "" {
		reference = r.IdempotencyKey
	}
	if reference != "" {
		body[op.ReferenceField()] = reference
	}
	m := movement.Movement{
		Key:       movement.Key{Owner: r.Owner(), Kind: op.Kind, Reference: reference},
		Operation: op.Path, Provider: op.Provider, State: movement.Submitting,
		CallbackURL: r.CallbackURL, RequestID: r.RequestID, PolicyVersion: r.PolicyVersion, DecisionID: r.DecisionID,
	}
	r.Body = body
	if err := l.kinds[op.Kind].Draft(ctx, r, &m); err != nil {
		return movement.Movement{}, err
	}
	if m.ID = l.Names.ID(m.Key); m.Unnamed() {
		m.ID = movement.NewID()
	}
	tracing.About(ctx, m.ID.String())
	return m, nil
}

// intent is what a creation has come to before anything is sent: a reservation of
// its own, the movement that has its reference, or why it could not be prepared.
type intent struct {
	movement.Movement
	ours       bool
	connection Connection
	remark     string // for operators
	unprepared error
}

// reserve looks the reference up where that must come before product, price and
// balance, prepares the draft and reserves it.
func (l *Lifecycle) reserve(ctx context.Context, r Request, draft *movement.Movement) (in intent, err error) {
	taken, err := l.lookUp(ctx, r, draft)
	switch {
	case err != nil:
		return in, Unjudged(r, *draft, err)
	case taken != nil:
		return intent{Movement: *taken}, nil
	}
	if in.connection, in.remark, in.unprepared = l.prepare(ctx, r, draft); in.unprepared != nil {
		return in, nil // the caller answers it, unless the reference has an answer
	}
	reserving, cancel := context.WithTimeout(ctx, sendWindow) // no longer than what is reserved may be sent
	defer cancel()
	in.Movement, in.ours, err = l.kinds[draft.Kind].Reserve(reserving, r.Operation, *draft, l.Store.Reserve)
	if _, told := errors.AsType[*fault.Error](err); told || err == nil {
		return in, err
	}
	return in, Unjudged(r, *draft, err)
}

// lookUp finds the movement that has a reference, nil for none, and names the draft as
// its reservation will: some upstreams are asked for the price under the name of the
// purchase.
func (l *Lifecycle) lookUp(ctx context.Context, r Request, draft *movement.Movement) (taken *movement.Movement, err error) {
	if !r.Operation.Quote || draft.Unnamed() {
		return nil, nil //nolint:nilnil // the reservation finds out
	}
	existing, err := l.Store.MovementByKey(ctx, draft.Key)
	switch {
	case errors.Is(err, movement.ErrNotFound):
		draft.Attempt = 1
		return nil, nil //nolint:nilnil // nobody has it
	case err != nil:
		return nil, err
	case existing.State != movement.NotSubmitted:
		return &existing, nil
	}
	draft.ID, draft.Attempt = existing.ID, existing.Attempt+1
	return nil, nil //nolint:nilnil // it is free again
}

// prepare completes a draft with the account that it is sent on, what the provider
// tells before the reservation, and the times, which begin now.
func (l *Lifecycle) prepare(ctx context.Context, r Request, draft *movement.Movement) (c Connection, remark string, err error) {
	if c, err = l.ready(ctx, r); err != nil {
		return c, "", err
	}
	remark, err = l.kinds[draft.Kind].Prepare(ctx, r, draft, c)
	draft.ConnectionOwner, draft.ConnectionVersion, draft.ConnectionAccount = c.Owner, c.Version, c.Account
	now := l.Now()
	draft.CreatedAt, draft.SendBy = now, now.Add(sendWindow)
	draft.DueAt = draft.NextPoll(now, r.Operation.Rules)
	return c, remark, err
}

// ready says whether the provider could be called now, before anything is reserved.
func (l *Lifecycle) ready(ctx context.Context, r Request) (Connection, error) {
	c, err := l.Connect(ctx, r.Operation, r.Identity.Account, string(r.Identity.Mode))
	if err != nil {
		return Connection{}, err
	}
	if err := l.barred(); err != nil {
		return Connection{}, err
	}
	if err := l.clockFault(); err != nil {
		return Connection{}, fault.New(fault.Internal, "This can't be created at the moment because of a fault on our side. Nothing was sent.").Because(err)
	}
	return c, l.Available(ctx, r, c)
}

// Available is the error of a provider that can't be called now, nil where it can.
func (l *Lifecycle) Available(ctx context.Context, r Request, c Connection) error {
	if err := l.paused(ctx, r, c); err != nil {
		return err
	}
	err := l.Providers.Available(r.Use(), c.Connection)
	if err == nil {
		return nil
	}
	refusal := fault.New(fault.ProviderUnavailable, "The provider is not available at the moment. Nothing was sent.").Because(err)
	if unavailable, ok := errors.AsType[*host.Unavailable](err); ok && unavailable.RetryAfter > 0 {
		refusal = refusal.After(l.Now(), unavailable.RetryAfter)
	}
	return refusal
}

// refuse answers a request that can't be run now, unless its reference has an answer
// already.
func (l *Lifecycle) refuse(ctx context.Context, r Request, draft movement.Movement, cause error) (Answer, error) {
	if draft.Unnamed() {
		return Answer{}, fault.From(cause)
	}
	existing, err := l.Store.MovementByKey(ctx, draft.Key)
	switch {
	case err == nil && existing.State != movement.NotSubmitted:
		return l.replay(ctx, r.Operation, draft, existing)
	case err != nil && !errors.Is(err, movement.ErrNotFound):
		return Answer{}, Unjudged(r, draft, err)
	}
	return Answer{}, fault.From(cause).WithReference(draft.CallersReference())
}

// longest is how long a creation may take, with all that may be polled and committed
// in it.
func longest(op *catalog.Operation) time.Duration {
	calls := op.Rules.Timeout
	if op.Quote {
		calls *= 2
	}
	if op.Routed() {
		calls += rerouteWithin
	}
	return sendWindow + calls + 2*lookupTimeout + applyTimeout // a lookup before the call, and one after it
}

// submit hands a reserved movement to its provider, applies what came back, and
// answers.
func (l *Lifecycle) submit(ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection) (Answer, error) {
	result := sdk.DidNotSend(sdk.BlameNone, "send_by passed before the reservation was through")
	if l.Now().Before(m.SendBy) {
		result = l.call(ctx, op, m, c)
	}
	if result.Outcome == sdk.Done || result.Outcome == sdk.Pending {
		if err := l.checkOffer(op, m, result.Data); err != nil {
			result = sdk.DontKnow(sdk.BlameUpstream, "the answer can't be used: "+err.Error())
		}
	}
	l.LogResult(ctx, m, result)
	if result.Blame == sdk.BlameAccount {
		l.Alert(ctx, m.Provider, c, result.Detail)
	}
	f := l.factOfCall(op, m, result)
	if f.Says == movement.SaysErrored {
		m, f.Says = l.errored(ctx, op, m, f), movement.SaysNothing
	}
	answer, err := l.answerCall(ctx, op, m, c, f)
	if !m.Errored() && (result.Outcome == sdk.Unknown || result.Outcome == sdk.NotSent) { // of which the history has no words
		l.note(ctx, op, m, "called", result.Outcome.String(), result.Detail)
	}
	return answer, err
}

// call hands a movement to its provider.
func (l *Lifecycle) call(ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection) sdk.Result {
	payment, err := l.payment(ctx, m)
	if err != nil {
		return sdk.DidNotSend(sdk.BlameNone, "what it is of can't be read: "+err.Error())
	}
	return l.Providers.Call(ctx, UseBy(m, op), sdk.Call{
		Operation: m.Operation, RequestID: m.RequestID, Connection: c.Connection,
		Reference: m.UpstreamReference(), Amount: m.Amount, Body: m.Body(), SendBy: m.SendBy,
		Cost: m.Cost, Quote: m.Quote, Payment: payment,
	}, op.Rules.Timeout)
}

// errored keeps that the provider has ended the call with an error of its own. Where
// that fails, proof only comes later.
func (l *Lifecycle) errored(ctx context.Context, op *catalog.Operation, m movement.Movement, f movement.Fact) movement.Movement {
	then, err := l.Apply(ctx, op, m, f)
	if err != nil || then.Attempt != m.Attempt {
		l.Log.ErrorContext(ctx, "keep that the call has ended", "movement", m.ID.String(), "error", err)
		return m
	}
	return then
}

// answerCall applies the word of a call and answers the creation by the rules.
func (l *Lifecycle) answerCall(ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection, f movement.Fact) (Answer, error) {
	offers := op.Rules.Answers == movement.AnswerOffer
	switch {
	case f.Says == movement.SaysNothing && offers:
		return l.lookOnce(ctx, op, m, c)
	case f.Says == movement.SaysNothing:
		return l.promise(ctx, op, m)
	}
	now, led, err := l.apply(ctx, op, m, f)
	made := f.Says != movement.SaysRefused && f.Says != movement.SaysNotSent
	switch {
	case err != nil && led == ledToException && offers:
		return Answer{}, l.TimedOut(op, m).Because(err)
	case err != nil && !offers: // the poller finds out
		l.Log.ErrorContext(ctx, "apply the provider's answer", "movement", m.ID.String(), "error", err)
		return l.promise(ctx, op, m)
	case err != nil && f.Says == movement.SaysNotSent:
		return Answer{}, fault.From(err).WithReference(m.CallersReference())
	case err != nil:
		return Answer{}, fault.From(err).Unknown().WithReference(m.CallersReference())
	case (now.Attempt != m.Attempt || now.State == movement.NotSubmitted) && made:
		return l.contradicted(ctx, op, m, "the provider has "+m.UpstreamReference()+" after it had been proven never sent")
	case now.Attempt == m.Attempt && now.State == movement.NotSubmitted && led == ledToMove:
		return Answer{}, &untaken{error: nothingSent(m), reserved: true, movement: now}
	case now.Attempt != m.Attempt, now.State == movement.NotSubmitted:
		return Answer{}, nothingSent(m) // also where a lookup has proven the same
	case !offers:
		return l.promise(ctx, op, now)
	case led == ledToException: // the call made nothing, and the provider has it
		return Answer{}, l.TimedOut(op, m)
	}
	return l.outcome(ctx, op, now)
}

// contradicted answers a call whose word and the provider's other words exclude each
// other: an operator has to see to it.
func (l *Lifecycle) contradicted(ctx context.Context, op *catalog.Operation, m movement.Movement, text string) (Answer, error) {
	answer := l.TimedOut(op, m)
	if op.Rules.Flow == movement.MoneyOut { // which must not be told to ask again: it may be made a second time
		answer = fault.New(fault.Internal, "The provider contradicts itself. An operator will see to it; ask before you send it again.").WithReference(m.CallersReference())
		answer.Sent, answer.Retry = fault.SentUnknown, fault.RetryNever
	}
	if err := l.List(ctx, m, movement.Cause{Reason: movement.ReasonContradiction, FactID: m.UpstreamReference(), Detail: text}); err != nil {
		answer = answer.Because(err)
	}
	return Answer{}, answer
}

// lookOnce polls once what became of a call that was not answered. Where that does
// not tell either, the merchant is asked to come back with the reference.
func (l *Lifecycle) lookOnce(ctx context.Context, op *catalog.Operation, m movement.Movement, c Connection) (Answer, error) {
	seen, err := l.Poll(ctx, op, m, c)
	if err != nil {
		l.Log.ErrorContext(ctx, "poll after an unanswered call", "movement", m.ID.String(), "error", err)
		return Answer{}, l.TimedOut(op, m)
	}
	return l.outcome(ctx, op, seen)
}

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
		return Answer{Replayed: answer.Replayed, Earlier: answer.Earlier}, fault.From(err)
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
	case fault.From(why).Code == fault.NoConnection:
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
