package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

const (
	// maxFound is how many movements one id finds at most.
	maxFound = 20
	// findWithin is how far back ids are searched that only a scan finds.
	findWithin = 31 * 24 * time.Hour
	// reservedWithin is how long after its request's and decision's ids were made a
	// movement is reserved at most, and how far replicas' clocks may differ.
	reservedWithin = 2 * time.Minute
	// maxAnyID is the length of an id that may be searched.
	maxAnyID = 255
)

func (c *Console) find(x *call, wanted adminapi.Search) (out adminapi.FindResult, err error) {
	id, since := wanted.ID, or(wanted.Since, x.now.Add(-findWithin))
	if !plain(id, 1, maxAnyID) {
		return out, fault.Invalid("id", "must have 1 to 255 characters, without control characters")
	}
	decided, err := c.explain(x, id, wanted.Trace)
	if err != nil {
		return out, err
	}
	places, err := c.placesByID(x, id)
	if err != nil {
		return out, err
	}
	found, err := c.byOwnID(x, id)
	if err != nil {
		return out, err
	}
	goesOn := decided == nil && len(found) == 0 && !slices.ContainsFunc(places, func(p adminapi.FoundPlace) bool { return p.ID == id })
	if goesOn && wanted.Scan == "false" {
		return adminapi.FindResult{ID: id, Since: since, Movements: []adminapi.FoundMovement{}, Places: places, More: true}, nil
	}
	if goesOn {
		named, err := c.placesByName(x, id)
		if err != nil {
			return out, err
		}
		places = append(named, places...)
		if found, err = c.byOthersID(x, id, since); err != nil {
			return out, err
		}
	}
	if len(found) == 0 && len(places) == 0 && decided == nil {
		if places, err = c.eventPlaces(x, id); err != nil {
			return out, err
		}
	}
	other := ""
	switch {
	case decided != nil:
	case len(found) == 1 && found[0].DecisionID != id:
		other = found[0].DecisionID
	case len(found) == 0 && len(places) == 0:
		kept, err := c.anyOwn(x.request.Context(), id, x.now)
		if err != nil {
			return out, err
		}
		if kept != nil {
			other = kept.DecisionID
		}
	}
	if other != "" {
		if decided, err = c.explain(x, other, wanted.Trace); err != nil {
			return out, err
		}
	}
	out = adminapi.FindResult{ID: id, Since: since, Decision: decided, Movements: make([]adminapi.FoundMovement, len(found)), Places: places}
	for i, m := range found {
		if out.Movements[i], err = c.foundDocument(x.request.Context(), m, id); err != nil {
			return out, err
		}
	}
	return out, nil
}

// findOf finds what belongs to one merchant in one mode. Merchants' people may ask as
// often as they like, so only the time that an id tells is searched.
func (c *Console) findOf(x *call, wanted adminapi.SearchOf) (out adminapi.FindResult, err error) {
	ctx, id := x.request.Context(), wanted.ID
	mode, err := parseMode(cmp.Or(wanted.Mode, string(tenants.Live)))
	if err != nil {
		return out, err
	}
	if !plain(id, 1, maxAnyID) {
		return out, fault.Invalid("id", "must have 1 to 255 characters, without control characters")
	}
	of := movement.Owner{MerchantID: string(x.merchant()), Mode: string(mode)}
	out = adminapi.FindResult{ID: id, Since: x.now, Movements: []adminapi.FoundMovement{}}
	for _, span := range c.told(id, x.now) {
		out.Since = span[0]
		found, err := c.deps.Movements.MovementsByOthersID(ctx, id, span[0], span[1], maxFound)
		if err != nil {
			return out, err
		}
		for _, m := range found {
			if m.Owner != of {
				continue
			}
			shown, err := c.foundDocument(ctx, m, id)
			if err != nil {
				return out, err
			}
			out.Movements = append(out.Movements, shown)
		}
	}
	decided := id
	kept, err := c.ownAt(ctx, requestlog.Owner{Merchant: of.MerchantID, Mode: of.Mode}, requestlog.Filter{Own: id}, x.now)
	if err != nil {
		return out, err
	}
	if kept != nil {
		account, err := c.account(x)
		if err != nil {
			return out, err
		}
		out.Request, decided = new(shownDocument(account, of.Mode, *kept)), cmp.Or(kept.DecisionID, id)
	}
	e, explained, err := c.explained(ctx, x.now, decided, of, kept)
	if err != nil || explained == nil {
		return out, err
	}
	out.Decision = explained
	return out, c.reasons(ctx, e, explained)
}

// named are the movements that an id belongs to, each once. Who is found by an id of the
// gateway's own is looked for nowhere else.
func (c *Console) named(x *call, id string, since time.Time) ([]movement.Movement, error) {
	found, err := c.byOwnID(x, id)
	if err != nil || len(found) > 0 {
		return found, err
	}
	return c.byOthersID(x, id, since)
}

// byOwnID are the movements of an id that is the gateway's own, or tells its time.
func (c *Console) byOwnID(x *call, id string) ([]movement.Movement, error) {
	if own, _, ok := ourName(id); ok {
		m, err := c.deps.Movements.MovementByID(x.request.Context(), own)
		if !errors.Is(err, store.ErrNotFound) {
			return []movement.Movement{m}, err
		}
	}
	return c.within(x, id, c.told(id, x.now)...)
}

// byOthersID are the movements of an id that merchants or providers made. References go
// by every merchant, and what only a scan finds comes last.
func (c *Console) byOthersID(x *call, id string, since time.Time) ([]movement.Movement, error) {
	found, err := c.deps.Movements.MovementsByReference(x.request.Context(), id, maxFound)
	if err != nil || len(found) > 0 {
		return newest(found), err
	}
	return c.within(x, id, [2]time.Time{since, x.now.Add(ahead)})
}

// within are the movements of an id in the first span of time that has any.
func (c *Console) within(x *call, id string, spans ...[2]time.Time) ([]movement.Movement, error) {
	for _, span := range spans {
		found, err := c.deps.Movements.MovementsByOthersID(x.request.Context(), id, span[0], span[1], maxFound)
		if err != nil || len(found) > 0 {
			return newest(found), err
		}
	}
	return nil, nil
}

func newest(found []movement.Movement) []movement.Movement {
	slices.SortFunc(found, func(a, b movement.Movement) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return slices.CompactFunc(found, func(a, b movement.Movement) bool { return a.ID == b.ID })
}

// told are the times that an id of the gateway's own tells: as one of a request, and as
// one of a decision.
func (c *Console) told(id string, now time.Time) [][2]time.Time {
	var spans [][2]time.Time
	if at, ok := madeAt(id, now); ok {
		spans = append(spans, [2]time.Time{at.Add(-reservedWithin), at.Add(reservedWithin)})
	}
	if decided, err := c.deps.Decisions.Key.Open(id, now); err == nil {
		spans = append(spans, [2]time.Time{decided.At.Add(-reservedWithin), decided.At.Add(reservedWithin)})
	}
	return spans
}

// madeAt is when an id was made, if it is one of a request: ids of decisions look alike by chance, and merchants make such references.
func madeAt(id string, now time.Time) (time.Time, bool) {
	made, err := uuid.Parse(id)
	if err != nil || made.Version() != 7 || made.Variant() != uuid.RFC4122 || made.String() != id {
		return time.Time{}, false
	}
	at := time.Unix(made.Time().UnixTime())
	return at, !at.After(now.Add(ahead))
}

// movementNamed is the one movement that a text names.
func (c *Console) movementNamed(x *call, text string) (movement.Movement, error) {
	none := fault.New(fault.NotFound, "There is no such movement.")
	if own, _, ok := ourName(text); ok {
		m, err := c.deps.Movements.MovementByID(x.request.Context(), own)
		if !errors.Is(err, store.ErrNotFound) {
			return m, err
		}
	}
	if !plain(text, 1, maxAnyID) {
		return movement.Movement{}, none
	}
	found, err := c.named(x, text, x.now.Add(-findWithin))
	switch {
	case err != nil:
		return movement.Movement{}, err
	case len(found) == 0:
		return movement.Movement{}, none
	case len(found) > 1:
		return movement.Movement{}, fault.Newf(fault.DuplicateReference, "%d movements have this id: gerbang find lists them, each has one of its own.", len(found))
	}
	return found[0], nil
}

func (c *Console) foundDocument(ctx context.Context, m movement.Movement, id string) (adminapi.FoundMovement, error) {
	history, err := c.deps.Movements.History(ctx, m.ID)
	if err != nil {
		return adminapi.FoundMovement{}, err
	}
	callbacks, err := c.deps.Movements.CallbacksOfMovement(ctx, m.Owner, m.ID, history)
	if err != nil {
		return adminapi.FoundMovement{}, err
	}
	notes, err := c.deps.Movements.NotesOf(ctx, m.ID)
	if err != nil {
		return adminapi.FoundMovement{}, err
	}
	for _, n := range notes {
		if n.Event == movement.NoteRouted {
			history = append(history, movement.HistoryEntry{At: n.At, Event: n.Event, Detail: n.Detail})
		}
	}
	overrides, err := c.deps.Movements.OverridesOf(ctx, m.ID)
	if err != nil {
		return adminapi.FoundMovement{}, err
	}
	return adminapi.FoundMovement{
		By: nameBy(m, id), ID: m.ID.String(), MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Kind: string(m.Kind),
		Reference: shownReference(m.Reference), Operation: m.Operation, Provider: m.Provider, State: string(m.Listed()), Amount: m.Amount,
		RequestID: m.RequestID, DecisionID: m.DecisionID, PolicyVersion: m.PolicyVersion,
		UpstreamReference: m.UpstreamReference(), ProviderReference: m.ProviderReference,
		History: historyWith(m, history, callbacks, overrides),
	}, nil
}

// nameBy names the fields of a movement that hold an id.
func nameBy(m movement.Movement, id string) []string {
	var by []string
	for _, name := range []struct{ what, value string }{
		{"request_id", m.RequestID}, {"decision_id", m.DecisionID}, {"reference", m.Reference}, {"provider_reference", m.ProviderReference},
	} {
		if name.value == id {
			by = append(by, name.what)
		}
	}
	if own, _, ok := ourName(id); ok && own == m.ID {
		by = append(by, "id")
	}
	return by
}

// historyWith is a movement's history with its reservation, overrides and callbacks
// in it, the oldest first.
func historyWith(m movement.Movement, entries []movement.HistoryEntry, callbacks []movement.Callback, overrides []movement.Override) []movement.HistoryEntry {
	history := append([]movement.HistoryEntry{
		{At: m.CreatedAt, Event: "reserved", Detail: fmt.Sprintf("attempt %d, as %s", m.Attempt, m.UpstreamReference())},
	}, entries...)
	for _, o := range overrides {
		event := "proposed "
		if o.Alone {
			event = "decided alone "
		}
		history = append(history, movement.HistoryEntry{At: o.At, Event: event + string(o.Outcome), Detail: "by " + o.Operator})
		if o.ConfirmedBy != "" {
			history = append(history, movement.HistoryEntry{At: o.ConfirmedAt, Event: "confirmed " + string(o.Outcome), Detail: "by " + o.ConfirmedBy})
		}
	}
	for _, callback := range callbacks {
		history = append(history, movement.HistoryEntry{
			At: callback.CreatedAt, Event: "callback " + callback.Event, Detail: fmt.Sprintf("%s, tries: %d", callback.State, callback.Tries),
		})
	}
	slices.SortStableFunc(history, func(a, b movement.HistoryEntry) int { return a.At.Compare(b.At) })
	return history
}
