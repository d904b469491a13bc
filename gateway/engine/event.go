package engine

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// occasion says which event a merchant is told of.
type occasion func(movement.Events) string

func ended(e movement.Events) string    { return e.Ended }
func paidLate(e movement.Events) string { return e.PaidLate }
func reversed(e movement.Events) string { return e.Reversed }

// tell makes the callback of a change: the movement as its status would tell it
// after the change, and when that was. It is rendered now, so that a late
// delivery never tells an old story as news.
func (e *Engine) tell(ctx context.Context, m movement.Movement, what occasion, id uuid.UUID, now time.Time) (*movement.CallbackEvent, error) {
	op, err := e.operationOf(m)
	if err != nil {
		return nil, err
	}
	if op.Status == nil {
		return nil, nil //nolint:nilnil // nothing describes such a movement, so there is nothing to tell
	}
	receiver, err := e.receiver(ctx, m)
	if err != nil {
		return nil, err
	}
	event := what(op.Rules.Events)
	var data *object
	switch op.Kind {
	case manifest.Order:
		data = toldOfOrder(op.Status, m, now)
	case manifest.Transfer:
		data = describeTransfer(op, m).set("timestamp", stamp(now))
	default:
		data = describe(op.Status, m).set("timestamp", stamp(now))
	}
	body := (&object{}).set("event", event).set("data", data.json())
	return &movement.CallbackEvent{ID: id, Event: event, URL: receiver, Body: body.json()}, nil
}

// receiver is where a movement's callbacks go: the URL of its request, or the
// merchant's default, or nowhere.
func (e *Engine) receiver(ctx context.Context, m movement.Movement) (string, error) {
	if m.CallbackURL != "" {
		return m.CallbackURL, nil
	}
	account, err := e.accountOf(ctx, m)
	if err != nil {
		return "", err
	}
	return account.CallbackURL(tenants.Mode(m.Owner.Mode)), nil
}

// announce has the courier look at once. The callback is committed already, or
// it will be found there by itself.
func (e *Engine) announce(told *movement.CallbackEvent) {
	if told != nil && told.URL != "" && e.Committed != nil {
		e.Committed()
	}
}
