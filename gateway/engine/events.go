package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// holdBack is how old an event is before it is listed. Events are listed by the
// time at which their commit was begun, and one may be under way that began
// before another that is through already: who has read past it would never see
// it. A try of a commit ends with tryTimeout, and may be through as much later as a
// shared commit takes; the rest is for replicas whose clocks differ a little.
const holdBack = tryTimeout + store.SharedTimeout + time.Second

// own runs an operation of the gateway's own.
func (e *Engine) own(ctx context.Context, r Request) (Answer, error) {
	switch r.Operation.Path {
	case catalog.EventsPath:
		return e.events(ctx, r)
	case catalog.BalancePath:
		return e.balance(ctx, r)
	}
	return Answer{}, fmt.Errorf("engine: nothing answers %s", r.Operation.Path)
}

// balance tells what a merchant has with the platform, in its mode.
func (e *Engine) balance(ctx context.Context, r Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Operation.Timeout))
	defer cancel()
	b, err := e.Balances.Balance(ctx, ownerOf(r))
	if err != nil {
		return Answer{}, err
	}
	return Answer{Data: (&object{}).set("balance", b.Available).set("held", b.Held).set("currency", "IDR").json()}, nil
}

// notice is an event in the list.
type notice struct {
	ID   uuid.UUID       `json:"id"`
	Time string          `json:"time"`
	Body json.RawMessage `json:"body"`
}

// events lists what a merchant was told of, or would have been, in its mode.
func (e *Engine) events(ctx context.Context, r Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Operation.Timeout))
	defer cancel()
	after, most, err := page(r)
	if err != nil {
		return Answer{}, err
	}
	listed, err := e.Events.Events(ctx, ownerOf(r), after, e.Now().Add(-holdBack), most)
	if errors.Is(err, store.ErrNotFound) {
		return Answer{}, noSuchEvent()
	}
	if err != nil {
		return Answer{}, err
	}
	notices := make([]notice, len(listed))
	for i, n := range listed {
		notices[i] = notice{ID: n.ID, Time: stamp(n.At), Body: n.Body}
	}
	return Answer{Data: notices}, nil
}

// page is which part of the list is asked for. The schema has said that the
// values fit.
func page(r Request) (after uuid.UUID, most int, err error) {
	body := r.Operation.WithDefaults(r.Body)
	if text, given := body["after"].(string); given {
		// No event has the nil UUID; the store would begin with the first.
		if after, err = uuid.Parse(text); err != nil || after == uuid.Nil {
			return uuid.Nil, 0, noSuchEvent()
		}
	}
	limit, _ := body["limit"].(json.Number)
	count, err := money.Parse(limit.String()) // exact, also where it is written 1e1
	return after, int(count), err
}

func noSuchEvent() error { return fault.Invalid("after", "is not the id of an event of this list") }

func ownerOf(r Request) movement.Owner {
	return movement.Owner{MerchantID: string(r.Identity.Account.ID()), Mode: string(r.Identity.Mode)}
}
