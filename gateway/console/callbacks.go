package console

import (
	"cmp"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// ahead is how far another replica's clock may be before ours, when the end of
// a list is not given.
const ahead = time.Hour

func (c *Console) listCallbacks(x *call, wanted adminapi.CallbackFilter) ([]adminapi.Callback, error) {
	owner, err := c.ownerOf(x, wanted.Mode)
	if err != nil {
		return nil, err
	}
	r := movement.CallbackRange{
		Owner: owner, State: movement.CallbackState(wanted.State), Since: wanted.Since, Until: or(wanted.Until, x.now.Add(ahead)), Most: cmp.Or(wanted.Limit, defaultPage),
	}
	switch r.State {
	case "", movement.CallbackNone, movement.CallbackWaiting, movement.CallbackDelivered, movement.CallbackGone, movement.CallbackDead:
	default:
		return nil, fault.Invalid("state", "must be waiting, delivered, gone, dead or none")
	}
	if r.After, err = afterOf(wanted.After, wanted.Until); err != nil {
		return nil, err
	}
	callbacks, err := c.deps.Callbacks.Callbacks(x.request.Context(), r)
	if err != nil {
		return nil, err
	}
	list := make([]adminapi.Callback, len(callbacks))
	for i, callback := range callbacks {
		list[i] = callbackDocument(callback)
	}
	return list, nil
}

func (c *Console) showCallback(x *call, wanted adminapi.CallbackID) (out adminapi.Callback, err error) {
	owner, err := c.ownerOf(x, wanted.Mode)
	if err != nil {
		return out, err
	}
	callback, err := c.callback(x, owner, wanted.Event)
	if err != nil {
		return out, err
	}
	attempts, err := c.deps.Callbacks.Attempts(x.request.Context(), callback.CallbackKey)
	if err != nil {
		return out, err
	}
	out = callbackDocument(callback)
	out.Body = callback.Body
	out.Attempts = attemptDocuments(attempts)
	return out, nil
}

// callback reads one callback of a merchant by the text of its event's id.
func (c *Console) callback(x *call, owner movement.Owner, event string) (movement.Callback, error) {
	id, err := uuid.Parse(event)
	if err != nil {
		return movement.Callback{}, notFound(store.ErrNotFound, "callback")
	}
	callback, err := c.deps.Callbacks.Callback(x.request.Context(), movement.CallbackKey{Owner: owner, EventID: id})
	return callback, notFound(err, "callback")
}

// ownerOf is the merchant that the path names, in a mode.
func (c *Console) ownerOf(x *call, mode string) (movement.Owner, error) {
	parsed, err := parseMode(mode)
	if err != nil {
		return movement.Owner{}, err
	}
	account, err := c.account(x)
	if err != nil {
		return movement.Owner{}, err
	}
	return movement.Owner{MerchantID: string(account.ID()), Mode: string(parsed)}, nil
}

func parseMode(text string) (tenants.Mode, error) {
	mode, err := tenants.ParseMode(text)
	if err != nil {
		return "", fault.Invalid("mode", "must be live or test")
	}
	return mode, nil
}

// afterOf reads where a page goes on among what was made at the very time until.
func afterOf(text string, until time.Time) (uuid.UUID, error) {
	if text == "" {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(text)
	if err != nil || until.IsZero() {
		return uuid.Nil, fault.Invalid("after", "must be the id of the last one of a page, with its time as until")
	}
	return id, nil
}

func callbackDocument(callback movement.Callback) adminapi.Callback {
	out := adminapi.Callback{
		EventID: callback.EventID.String(), Mode: callback.Owner.Mode, Event: callback.Event, Sequence: callback.Sequence,
		Reference: shownReference(callback.Reference), URL: adminapi.PresentURL(callback.URL), State: string(callback.State), Tries: callback.Tries,
		CreatedAt: callback.CreatedAt, DueAt: given(callback.DueAt),
	}
	if callback.MovementID != (movement.ID{}) {
		out.MovementID = callback.MovementID.String()
	}
	return out
}
