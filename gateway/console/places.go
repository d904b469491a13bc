package console

import (
	"context"
	"errors"
	"regexp"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/rollout"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// Finder finds what is no movement by the name that somebody knows, over all merchants.
type Finder interface {
	AccountByKey(ctx context.Context, id tenants.KeyID) (*tenants.Account, error)
	MerchantsNamed(ctx context.Context, text string, most int) ([]tenants.Merchant, error)
	AdjustmentsByReference(ctx context.Context, reference string, most int) ([]store.Adjustment, error)
	CallbacksByEvent(ctx context.Context, event uuid.UUID, most int) ([]movement.Callback, error)
}

// leastName is how much of a merchant's name is looked for.
const leastName = 2

// versionLike is the beginning of a policy's version as people say it, or all of it.
var versionLike = regexp.MustCompile(`^[0-9a-fA-F]{8,64}$`)

// placesByID are what an id belongs to besides movements and decisions, each looked up by
// its key.
func (c *Console) placesByID(x *call, id string) ([]adminapi.FoundPlace, error) {
	ctx := x.request.Context()
	var places []adminapi.FoundPlace
	if account, err := c.deps.Merchants.AccountByID(ctx, tenants.MerchantID(id)); err == nil {
		return []adminapi.FoundPlace{{Kind: adminapi.PlaceMerchant, ID: id, Name: account.Merchant().Name, MerchantID: id}}, nil
	} else if !errors.Is(err, tenants.ErrNotFound) && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if account, err := c.deps.Finder.AccountByKey(ctx, tenants.KeyID(id)); err == nil {
		key, _ := account.Key(tenants.KeyID(id))
		places = append(places, adminapi.FoundPlace{Kind: adminapi.PlaceKey, ID: id, MerchantID: string(account.ID()), Mode: string(key.Mode), Name: account.Merchant().Name})
	} else if !errors.Is(err, tenants.ErrNotFound) && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if versionLike.MatchString(id) {
		version, err := c.deps.Publisher.Find(ctx, id)
		if err == nil {
			places = append(places, adminapi.FoundPlace{Kind: adminapi.PlacePolicy, ID: string(version.Version), Name: version.Message})
		} else if !errors.Is(err, store.ErrNotFound) && !errors.Is(err, rollout.ErrAmbiguous) {
			return nil, err
		}
	}
	return c.replicaPlaces(x, id, places)
}

// placesByName are the merchants that are called so, and credits and debits by their
// reference. All of either are read.
func (c *Console) placesByName(x *call, text string) ([]adminapi.FoundPlace, error) {
	ctx := x.request.Context()
	var places []adminapi.FoundPlace
	if c.maybeName(x, text) {
		merchants, err := c.deps.Finder.MerchantsNamed(ctx, text, maxFound)
		if err != nil {
			return nil, err
		}
		for _, m := range merchants {
			places = append(places, adminapi.FoundPlace{Kind: adminapi.PlaceMerchant, ID: string(m.ID), Name: m.Name, MerchantID: string(m.ID)})
		}
	}
	adjustments, err := c.deps.Finder.AdjustmentsByReference(ctx, text, maxFound)
	for _, a := range adjustments {
		places = append(places, adminapi.FoundPlace{Kind: adminapi.PlaceAdjustment, ID: a.Reference, MerchantID: a.Owner.MerchantID, Mode: a.Owner.Mode, Name: a.Reason})
	}
	return places, err
}

// maybeName tells whether somebody may be called so: reading all names costs more than
// looking an id up.
func (c *Console) maybeName(x *call, text string) bool {
	_, _, own := ourName(text)
	_, unlike := uuid.Parse(text)
	_, sealed := c.deps.Decisions.Key.Open(text, x.now)
	return !own && unlike != nil && sealed != nil && len([]rune(text)) >= leastName
}

// replicaPlaces adds the replica or the activation of an id.
func (c *Console) replicaPlaces(x *call, id string, places []adminapi.FoundPlace) ([]adminapi.FoundPlace, error) {
	replicas, err := c.deps.Policies.ReplicasSeen(x.request.Context(), x.now.Add(-replicasSince))
	if err != nil {
		return nil, err
	}
	for _, r := range replicas {
		if r.ID.String() == id || rollout.Name(r) == id {
			places = append(places, adminapi.FoundPlace{Kind: adminapi.PlaceReplica, ID: r.ID.String(), Name: rollout.Name(r)})
		}
	}
	parsed, err := uuid.Parse(id)
	if err != nil {
		return places, nil //nolint:nilerr // no activation has such an id
	}
	a, err := c.deps.Policies.Activation(x.request.Context(), parsed)
	switch {
	case err == nil:
		return append(places, adminapi.FoundPlace{Kind: adminapi.PlaceActivation, ID: id, Name: a.Reason}), nil
	case errors.Is(err, store.ErrNotFound):
		return places, nil
	}
	return nil, err
}

// eventPlaces are the callbacks of an event's id. It goes by every merchant, so it is asked
// for last.
func (c *Console) eventPlaces(x *call, id string) ([]adminapi.FoundPlace, error) {
	event, err := uuid.Parse(id)
	if err != nil {
		return nil, nil //nolint:nilerr // no event has such an id
	}
	found, err := c.deps.Finder.CallbacksByEvent(x.request.Context(), event, maxFound)
	places := make([]adminapi.FoundPlace, len(found))
	for i, callback := range found {
		places[i] = adminapi.FoundPlace{
			Kind: adminapi.PlaceCallback, ID: event.String(), Name: callback.Event, MerchantID: callback.Owner.MerchantID, Mode: callback.Owner.Mode,
		}
	}
	return places, err
}
