package simulator

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// holdBack is how old an event is before it is listed, as in the program.
const holdBack = movement.EventsSettle

// mostEvents is how many events a merchant asks for at once.
const mostEvents = 5

// willRead has a merchant read its events some seconds after one was made, as who
// listens does all the time.
func (w *world) willRead(c movement.Change) {
	if c.Callback == nil {
		return
	}
	for range 4 {
		w.later(w.between(0, 3*holdBack), func() { w.readEvents(w.merchantOf(c.Movement)) })
	}
}

func (w *world) merchantOf(m movement.Movement) *merchant {
	return w.merchants[slices.IndexFunc(w.merchants, func(of *merchant) bool { return of.owner() == m.Owner })]
}

// readEvents has a merchant read on in the list of its events.
func (w *world) readEvents(m *merchant) {
	r := w.someReplica()
	op, known := w.books.catalog.Current().ByPath(catalog.EventsPath)
	if r == nil || !known {
		return
	}
	body := catalog.Document{"limit": json.Number(strconv.Itoa(mostEvents))}
	after := m.lastEvent()
	if after != uuid.Nil {
		body["after"] = after.String()
	}
	var read []uuid.UUID
	w.begin(r, "events of "+m.name, func(ctx context.Context) {
		told, err := r.queries.Run(ctx, lifecycle.Request{Identity: tenants.Identity{Account: m.account, Mode: tenants.Live}, Operation: op, Body: body})
		if err == nil {
			read = eventsIn(told)
		}
	}, func(crashed bool) {
		if crashed || after != m.lastEvent() {
			return // it has no answer, or reads twice at once
		}
		m.events = append(m.events, read...)
		if len(read) > 0 {
			w.log("%s has read %d events", m.name, len(m.events))
			w.later(0, func() { w.readEvents(m) })
		}
	})
}

func eventsIn(told lifecycle.Answer) (ids []uuid.UUID) {
	var events []struct{ ID uuid.UUID }
	encoded, _ := json.Marshal(told.Data) // our own
	_ = json.Unmarshal(encoded, &events)
	for _, e := range events {
		ids = append(ids, e.ID)
	}
	return ids
}

// readAllEvents has a merchant read the rest of the list.
func (w *world) readAllEvents(m *merchant) {
	for {
		events, err := w.store.Events(w.ctx, m.owner(), m.lastEvent(), 0, mostEvents)
		if err != nil {
			w.violate("the store answers", "%v", err)
		}
		if len(events) == 0 {
			return
		}
		for _, e := range events {
			m.events = append(m.events, e.ID)
		}
	}
}

// lastEvent is the last one that a merchant has read, the nil UUID for none.
func (m *merchant) lastEvent() uuid.UUID {
	if len(m.events) == 0 {
		return uuid.Nil
	}
	return m.events[len(m.events)-1]
}

// checkEventList: who reads on after the last event, until there is none, reads each
// event once.
func (w *world) checkEventList(r record) {
	m := w.merchantOf(r.Movement)
	for _, c := range r.callbacks {
		times := 0
		for _, id := range m.events {
			if id == c.EventID {
				times++
			}
		}
		if times != 1 {
			w.violate("who reads on in the list of events reads each once", "%s of %s was read %d times", c.Event, r.name, times)
		}
	}
}
