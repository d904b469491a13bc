package console

import (
	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/override"
)

// overrideMovement takes only our own names of a movement, so that there is no doubt
// about which one is ended.
func (c *Console) overrideMovement(x *call, wanted adminapi.NewOverride) (out adminapi.Overridden, err error) {
	id, sentAs, ok := ourName(wanted.Movement)
	outcome := movement.OverrideOutcome(wanted.As)
	switch {
	case !ok:
		return out, fault.New(fault.NotFound, "There is no such movement: override names one by its id, refId, txId or upstream reference.")
	case !plain(wanted.Reason, 1, maxReason):
		return out, fault.Invalid("reason", "must have 1 to 500 characters, without control characters")
	}
	overridden, err := c.deps.Override(x.request.Context(), override.Request{
		Movement: id, SentAs: sentAs, Operator: x.operator.Name, Outcome: outcome, Reason: wanted.Reason, Alone: wanted.Alone,
		AloneUpTo: c.access.Load().ApprovalAbove,
	})
	if err != nil {
		return out, err
	}
	m := overridden.Movement
	return adminapi.Overridden{
		ID: m.ID.String(), MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Kind: string(m.Kind), Reference: shownReference(m.Reference),
		State: string(m.State), Waiting: !overridden.Override.Made(), Override: overridden.Override,
	}, nil
}

// ourName reads a name of ours of a movement: its id in either form, or that
// under which its provider is asked, which names a request under it, too.
func ourName(text string) (id movement.ID, sentAs string, ok bool) {
	if id, err := movement.ParseID(text); err == nil {
		return id, "", true
	}
	id, ok = movement.ParseUpstreamReference(text)
	return id, text, ok
}
