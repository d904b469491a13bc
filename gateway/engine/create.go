package engine

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// create runs an operation that moves money: intent, act, settlement. It does
// not end when the client hangs up.
func (e *Engine) create(ctx context.Context, r Request) (Answer, error) {
	draft, err := e.draft(r)
	if err != nil {
		return Answer{}, err
	}
	timeout := time.Duration(r.Operation.Timeout)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendWindow+timeout+lookupTimeout+settleTimeout)
	defer cancel()

	connection, err := e.ready(r, draft)
	if err != nil {
		return e.refuse(ctx, r, draft, err)
	}
	draft.ConnectionVersion = connection.Version
	m, claimed, err := e.claim(ctx, draft)
	switch {
	case err != nil:
		return Answer{}, unjudged(r, draft, err)
	case claimed:
		return e.send(ctx, r.Operation, m, connection)
	case m.State == movement.Unsent: // it was freed at this very moment
		return Answer{}, nothingSent(m)
	}
	return e.replay(ctx, r.Operation, draft, m)
}

// claim waits no longer than what is claimed may be sent.
func (e *Engine) claim(ctx context.Context, draft movement.Movement) (movement.Movement, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, sendWindow)
	defer cancel()
	return e.Movements.Claim(ctx, draft)
}

// draft is the movement that a request would make.
func (e *Engine) draft(r Request) (movement.Movement, error) {
	op, now := r.Operation, e.Now()
	body := op.WithDefaults(r.Body)
	reference := op.ReferenceOf(body)
	switch {
	case reference == "" && r.IdempotencyKey != "":
		reference = r.IdempotencyKey
	case reference == "":
		reference = uuid.NewString()
	}
	body[op.ReferenceField()] = reference
	amount, err := op.AmountOf(body)
	if err != nil {
		return movement.Movement{}, err
	}
	canonical, err := op.Canonical(body)
	if err != nil {
		return movement.Movement{}, err
	}
	m := movement.Movement{
		Key: movement.Key{Owner: ownerOf(r), Kind: op.Kind, Reference: reference},
		ID:  movement.NewID(), Operation: op.Path, Provider: op.Provider, State: movement.Sending,
		Amount: amount, Request: canonical, CallbackURL: r.CallbackURL, RequestID: r.RequestID,
		PolicyVersion: r.PolicyVersion, DecisionID: r.DecisionID,
		CreatedAt: now, SendBy: now.Add(sendWindow),
	}
	m.DueAt = m.NextLook(now, op.SettlesWithin)
	return m, nil
}

// ready says whether the provider could be called now, before anything is
// claimed.
func (e *Engine) ready(r Request, draft movement.Movement) (sdk.Connection, error) {
	connection, err := e.connection(r.Identity.Account, draft.Owner.Mode, draft.Provider)
	if err != nil {
		return sdk.Connection{}, err
	}
	if err := e.Providers.Available(draft.Provider, draft.Owner.Mode); err != nil {
		refusal := fault.New(fault.ProviderUnavailable, "The provider is not available at the moment. Nothing was sent.").Because(err)
		if unavailable, ok := errors.AsType[*host.Unavailable](err); ok && unavailable.RetryAfter > 0 {
			refusal = refusal.After(e.Now(), unavailable.RetryAfter)
		}
		return sdk.Connection{}, refusal
	}
	return connection, nil
}

// refuse answers a request that can't be run now, unless its reference has an
// answer already.
func (e *Engine) refuse(ctx context.Context, r Request, draft movement.Movement, cause error) (Answer, error) {
	existing, err := e.Movements.MovementByKey(ctx, draft.Key)
	switch {
	case err == nil && existing.State != movement.Unsent:
		return e.replay(ctx, r.Operation, draft, existing)
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return Answer{}, unjudged(r, draft, err)
	}
	return Answer{}, fault.From(cause).WithReference(draft.Reference)
}

// send hands a claimed movement to its provider and settles what came back.
func (e *Engine) send(ctx context.Context, op *catalog.Operation, m movement.Movement, connection sdk.Connection) (Answer, error) {
	result := sdk.DidNotSend(sdk.BlameNone, "send_by passed before the claim was through")
	if e.Now().Before(m.SendBy) {
		result = e.Providers.Call(ctx, m.Provider, sdk.Call{
			Operation: m.Operation, RequestID: m.RequestID, Connection: connection,
			Reference: m.UpstreamReference(), Amount: m.Amount, Body: m.Body(), SendBy: m.SendBy,
		}, time.Duration(op.Timeout))
	}
	if result.Outcome == sdk.Done || result.Outcome == sdk.Pending {
		if err := checkOffer(op, m, result.Data); err != nil {
			result = sdk.DontKnow(sdk.BlameUpstream, "the answer can't be used: "+err.Error())
		}
	}
	e.logResult(ctx, m, result)
	if result.Blame == sdk.BlameAccount {
		e.alert(ctx, m, connection, result)
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
	return e.unknown(ctx, op, m, connection)
}

// accept settles a movement that the provider has taken.
func (e *Engine) accept(ctx context.Context, op *catalog.Operation, m movement.Movement, result sdk.Result) (Answer, error) {
	data := e.firstAnswer(op, m, result.Data)
	taken := m
	taken.State, taken.ExpiresAt = movement.Pending, result.ExpiresAt
	move := store.Move{
		Movement: m, To: movement.Pending, Event: "accepted", Detail: detail("source", "call"),
		Result: result.Data, Answer: data, ProviderReference: nameOf(result.ProviderReference),
		ExpiresAt: result.ExpiresAt, DueAt: taken.NextLook(e.Now(), op.SettlesWithin),
	}
	moved, err := e.move(ctx, move)
	if err == nil && !moved {
		return e.acceptedLate(ctx, op, move)
	}
	if err != nil {
		return Answer{}, fault.From(err).Unknown().WithReference(m.Reference)
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
		return Answer{}, fault.From(err).Unknown().WithReference(m.Reference)
	}
	if now.Attempt != m.Attempt || now.State == movement.Unsent {
		return e.contradicted(ctx, m, "the provider accepted "+m.UpstreamReference()+" after it had been proven never sent")
	}
	return e.outcome(ctx, op, now)
}

func (e *Engine) refused(ctx context.Context, op *catalog.Operation, m movement.Movement, result sdk.Result) (Answer, error) {
	refusal := &movement.Refusal{Code: string(result.Refusal.Code), Message: result.Refusal.Message}
	for _, f := range result.Refusal.Fields {
		refusal.Fields = append(refusal.Fields, movement.RefusalField(f))
	}
	move := store.Move{
		Movement: m, To: movement.Failed, Event: "refused", Refusal: refusal,
		Detail: detail("source", "call", "detail", printable(result.Detail)),
	}
	moved, err := e.move(ctx, move)
	if err == nil && !moved {
		return e.overtaken(ctx, op, m, "refused")
	}
	if err != nil {
		return Answer{}, fault.From(err).Unknown().WithReference(m.Reference)
	}
	return Answer{}, refusalError(refusal).WithReference(m.Reference)
}

// unsent frees the reference of a movement of which nothing was sent.
func (e *Engine) unsent(ctx context.Context, op *catalog.Operation, m movement.Movement) (Answer, error) {
	move := store.Move{Movement: m, To: movement.Unsent, Event: "not_sent", Detail: detail("source", "call")}
	moved, err := e.move(ctx, move)
	if err == nil && !moved {
		return e.overtaken(ctx, op, m, "not sent")
	}
	if err != nil {
		return Answer{}, fault.From(err).WithReference(m.Reference)
	}
	return Answer{}, nothingSent(m)
}

// overtaken answers a call that made nothing, of a movement that somebody else
// has moved on meanwhile.
func (e *Engine) overtaken(ctx context.Context, op *catalog.Operation, m movement.Movement, said string) (Answer, error) {
	now, err := e.reread(ctx, m.ID)
	switch {
	case err != nil:
		return Answer{}, fault.From(err).Unknown().WithReference(m.Reference)
	case now.Attempt != m.Attempt, now.State == movement.Unsent:
		return Answer{}, nothingSent(m) // a lookup has proven the same
	case now.State == movement.Failed:
		return e.outcome(ctx, op, now)
	}
	return e.contradicted(ctx, m, "the call was "+said+", but the provider has "+m.UpstreamReference()+", which stands at "+string(now.State))
}

// contradicted answers a call whose word and the provider's other words exclude
// each other: an operator has to see to it.
func (e *Engine) contradicted(ctx context.Context, m movement.Movement, text string) (Answer, error) {
	answer := timedOut(m, e.Now())
	if err := e.list(ctx, m, reasonContradiction, m.UpstreamReference(), text); err != nil {
		answer = answer.Because(err)
	}
	return Answer{}, answer
}

// unknown looks once at what became of a call that was not answered. Where that
// does not tell either, the merchant is asked to come back with the reference.
func (e *Engine) unknown(ctx context.Context, op *catalog.Operation, m movement.Movement, connection sdk.Connection) (Answer, error) {
	seen, err := e.look(ctx, op, m, connection)
	if err != nil {
		e.Log.ErrorContext(ctx, "look after an unanswered call", "movement", m.ID.String(), "error", err)
		return Answer{}, timedOut(m, e.Now())
	}
	return e.outcome(ctx, op, seen)
}
