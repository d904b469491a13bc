package query

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// balance tells what a merchant has with the platform, in its mode.
func (q *Queries) balance(ctx context.Context, r lifecycle.Request) (lifecycle.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Operation.Timeout))
	defer cancel()
	b, err := q.records.Balance(ctx, r.Owner())
	if err != nil {
		return lifecycle.Answer{}, err
	}
	return lifecycle.Answer{Data: (&lifecycle.Object{}).SetNumber("balance", int64(b.Available)).SetNumber("held", int64(b.Held)).SetText("currency", "IDR").JSON()}, nil
}

// listed is an event in the list.
type listed struct {
	ID   uuid.UUID       `json:"id"`
	Time string          `json:"time"`
	Body json.RawMessage `json:"body"`
}

// events lists what a merchant was sent as callbacks, or would have been, in its mode.
func (q *Queries) events(ctx context.Context, r lifecycle.Request) (lifecycle.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(r.Operation.Timeout))
	defer cancel()
	after, most, err := page(r)
	if err != nil {
		return lifecycle.Answer{}, err
	}
	found, err := q.records.Events(ctx, r.Owner(), after, movement.EventsSettle, most)
	if errors.Is(err, movement.ErrNotFound) {
		return lifecycle.Answer{}, noSuchEvent()
	}
	if err != nil {
		return lifecycle.Answer{}, err
	}
	events := make([]listed, len(found))
	for i, e := range found {
		events[i] = listed{ID: e.ID, Time: lifecycle.Stamp(e.At), Body: e.Body}
	}
	return lifecycle.Answer{Data: events}, nil
}

// page is which part of the list is asked for. The schema has said that the values
// fit.
func page(r lifecycle.Request) (after uuid.UUID, most int, err error) {
	body := r.Operation.WithDefaults(r.Body)
	if text, given := body["after"].(string); given {
		// No event has the nil UUID; the store would begin with the first.
		if after, err = uuid.Parse(text); err != nil || after == uuid.Nil {
			return uuid.Nil, 0, noSuchEvent()
		}
	}
	most, err = limitOf(body)
	return after, most, err
}

func limitOf(body catalog.Document) (int, error) {
	limit, _ := body["limit"].(json.Number)
	count, err := money.Parse(limit.String()) // exact, also where it is written 1e1
	return int(count), err
}

func noSuchEvent() error { return fault.Invalid("after", "is not the id of an event of this list") }
