package engine

import (
	"context"
	"errors"
	"math"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// draft is the movement that a request would make.
func (e *Engine) draft(r Request) (movement.Movement, error) {
	op := r.Operation
	body := op.WithDefaults(r.Body)
	reference := op.ReferenceOf(body)
	switch {
	case reference == "" && r.IdempotencyKey != "":
		reference = r.IdempotencyKey
	case reference == "" && op.Kind != manifest.Transfer: // which is named by what it does
		reference = uuid.NewString()
	}
	if reference != "" {
		body[op.ReferenceField()] = reference
	}
	var amount money.Amount
	if op.Kind != manifest.Order {
		var err error
		if amount, err = op.AmountOf(body); err != nil {
			return movement.Movement{}, err
		}
	}
	canonical, err := op.Canonical(body)
	if err != nil {
		return movement.Movement{}, err
	}
	return movement.Movement{
		Key: movement.Key{Owner: ownerOf(r), Kind: op.Kind, Reference: reference},
		ID:  movement.NewID(), Operation: op.Path, Provider: op.Provider, State: movement.Submitting,
		Amount: amount, Request: canonical, CallbackURL: r.CallbackURL, RequestID: r.RequestID,
		PolicyVersion: r.PolicyVersion, DecisionID: r.DecisionID,
	}, nil
}

// judgeReference looks a reference up where that must come before product, price
// and balance, and names the attempt that this would be: some upstreams are asked
// for the price under the name of the purchase. A transfer without a reference
// gets one.
func (e *Engine) judgeReference(ctx context.Context, r Request, draft *movement.Movement) (taken *movement.Movement, err error) {
	if r.Operation.Kind == manifest.Transfer && !namesReference(r) {
		if err := e.name(ctx, r, draft); err != nil {
			return nil, err
		}
	}
	if !r.Operation.Quote {
		return nil, nil //nolint:nilnil // the claim finds out
	}
	existing, err := e.Movements.MovementByKey(ctx, draft.Key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		draft.Attempt = 1
		return nil, nil //nolint:nilnil // nobody has it
	case err != nil:
		return nil, err
	case existing.State != movement.NotSubmitted:
		return &existing, nil
	}
	draft.ID, draft.Attempt = existing.ID, e.nextAttempt(draft.Kind, existing.Attempt)
	return nil, nil //nolint:nilnil // it is free again
}

// attemptSpan is how far the next attempt may lie above the last one.
const attemptSpan = 1 << 16

// nextAttempt is the attempt that follows on one that was never sent. Of an order
// it is drawn: several may ask at this moment what different bills cost, and what
// is paid under one name is the bill that was asked for last.
func (e *Engine) nextAttempt(kind manifest.Kind, last int) int {
	if kind != manifest.Order {
		return last + 1
	}
	return last + 1 + e.draw(max(1, min(attemptSpan, (math.MaxInt32-last)/2)))
}
