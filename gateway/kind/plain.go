package kind

import (
	"context"
	"encoding/json"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// plain is what a kind has that adds nothing: the amount of the request, no question
// before the reservation, and a reservation that takes the reference alone.
type plain struct{}

// Draft takes the amount of the request.
func (plain) Draft(_ context.Context, r lifecycle.Request, draft *movement.Movement) (err error) {
	if draft.Amount, err = r.Operation.AmountOf(r.Body); err != nil {
		return err
	}
	return lifecycle.Named(r, draft)
}

// Prepare asks nothing.
func (plain) Prepare(context.Context, lifecycle.Request, *movement.Movement, lifecycle.Connection) (string, error) {
	return "", nil
}

// Reserve takes the reference and nothing else.
func (plain) Reserve(ctx context.Context, _ *catalog.Operation, draft movement.Movement, reserve lifecycle.Reserving) (movement.Movement, bool, error) {
	return reserve(ctx, draft)
}

// Kept is the request as it is.
func (plain) Kept(_ *catalog.Operation, draft, _ movement.Movement) json.RawMessage {
	return draft.Request
}
