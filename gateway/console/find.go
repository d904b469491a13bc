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
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// Finder finds movements by names that others have given them: their merchants,
// over all merchants, and in a span of time the gateway's requests and decisions
// and the providers. The newest come first.
type Finder interface {
	MovementsByReference(ctx context.Context, reference string, most int) ([]movement.Movement, error)
	MovementsByOthersID(ctx context.Context, id string, since, before time.Time, most int) ([]movement.Movement, error)
}

const (
	// maxFound is how many movements one id finds at most.
	maxFound = 20
	// findWithin is how far back an id is looked for that only a scan finds.
	findWithin = 31 * 24 * time.Hour
	// claimedWithin is how long after its request's and decision's ids were made a
	// movement is claimed at most, and how far replicas' clocks may differ.
	claimedWithin = 2 * time.Minute
	// maxAnyID is the length of an id that somebody may look for.
	maxAnyID = 255
)

func (c *Console) find(x *call) (any, error) {
	query := x.request.URL.Query()
	id := query.Get("id")
	if !plain(id, 1, maxAnyID) {
		return nil, fault.Invalid("id", "must have 1 to 255 characters, without control characters")
	}
	since, err := timeOf(query, "since", x.now.Add(-findWithin))
	if err != nil {
		return nil, err
	}
	found, err := c.named(x, id, since)
	if err != nil {
		return nil, err
	}
	out := adminapi.FindResult{ID: id, Since: since, Movements: make([]adminapi.FoundMovement, len(found))}
	for i, m := range found {
		if out.Movements[i], err = c.foundDocument(x.request.Context(), m, id); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// named are the movements that an id belongs to, each once. What scans comes last,
// and only where nothing else knows the id.
func (c *Console) named(x *call, id string, since time.Time) ([]movement.Movement, error) {
	ctx := x.request.Context()
	var found []movement.Movement
	if own, _, ok := ourName(id); ok {
		m, err := c.deps.Movements.MovementByID(ctx, own)
		switch {
		case err == nil:
			found = append(found, m)
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
	}
	theirs, err := c.deps.Finder.MovementsByReference(ctx, id, maxFound)
	if err != nil {
		return nil, err
	}
	found = append(found, theirs...)
	for _, span := range spans(id, since, x.now.Add(ahead)) {
		if len(found) > 0 {
			break
		}
		if found, err = c.deps.Finder.MovementsByOthersID(ctx, id, span[0], span[1], maxFound); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b movement.Movement) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return slices.CompactFunc(found, func(a, b movement.Movement) bool { return a.ID == b.ID }), nil
}

// spans are where an id of others' is looked for: one of the gateway's own, which
// tells when it was made, near that first, and then everywhere since.
func spans(id string, since, until time.Time) [][2]time.Time {
	all := [][2]time.Time{{since, until}}
	made, err := uuid.Parse(id)
	if err != nil || made.Version() != 7 {
		return all
	}
	seconds, nanos := made.Time().UnixTime()
	at := time.Unix(seconds, nanos)
	return append([][2]time.Time{{at.Add(-claimedWithin), at.Add(claimedWithin)}}, all...)
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
	story, err := c.deps.Movements.History(ctx, m.ID)
	if err != nil {
		return adminapi.FoundMovement{}, err
	}
	callbacks, err := c.deps.Around.CallbacksOfMovement(ctx, m.Owner, m.ID, story)
	if err != nil {
		return adminapi.FoundMovement{}, err
	}
	decisions, err := c.deps.Around.OverridesOf(ctx, m.ID)
	if err != nil {
		return adminapi.FoundMovement{}, err
	}
	return adminapi.FoundMovement{
		By: nameBy(m, id), ID: m.ID.String(), MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Kind: string(m.Kind),
		Reference: shownReference(m.Reference), Operation: m.Operation, Provider: m.Provider, State: string(m.State), Amount: m.Amount,
		RequestID: m.RequestID, DecisionID: m.DecisionID, PolicyVersion: m.PolicyVersion,
		UpstreamReference: m.UpstreamReference(), ProviderReference: m.ProviderReference,
		History: chain(m, story, callbacks, decisions),
	}, nil
}

// nameBy says what of a movement an id is.
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

// chain is what happened to a movement, in short.
func chain(m movement.Movement, story []movement.HistoryEntry, callbacks []movement.Callback, decisions []movement.Override) []adminapi.Link {
	links := []adminapi.Link{{At: m.CreatedAt, Event: "claimed", Detail: fmt.Sprintf("attempt %d, as %s", m.Attempt, m.UpstreamReference())}}
	for _, e := range story {
		links = append(links, adminapi.Link{At: e.At, Event: e.Event, Detail: e.Detail})
	}
	for _, d := range decisions {
		said := "proposed "
		if d.Alone {
			said = "decided alone "
		}
		links = append(links, adminapi.Link{At: d.At, Event: said + string(d.Outcome), Detail: "by " + d.Operator})
		if d.ConfirmedBy != "" {
			links = append(links, adminapi.Link{At: d.ConfirmedAt, Event: "confirmed " + string(d.Outcome), Detail: "by " + d.ConfirmedBy})
		}
	}
	for _, callback := range callbacks {
		links = append(links, adminapi.Link{
			At: callback.CreatedAt, Event: "callback " + callback.Event, Detail: fmt.Sprintf("%s, tries: %d", callback.State, callback.Tries),
		})
	}
	slices.SortStableFunc(links, func(a, b adminapi.Link) int { return a.At.Compare(b.At) })
	return links
}
