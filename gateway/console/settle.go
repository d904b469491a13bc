package console

import (
	"context"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/engine"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Decider takes operators' word on movements whose outcome nobody knows, with an
// audit entry. Its errors are *fault.Error.
type Decider interface {
	Decide(ctx context.Context, d engine.Decision) (engine.Decided, error)
}

// settleMovement takes our own names of a movement alone: whoever ends one says
// exactly which.
func (c *Console) settleMovement(x *call) (any, error) {
	var s adminapi.NewOverride
	if err := decode(x, &s); err != nil {
		return nil, err
	}
	id, attempt, ok := ourName(x.request.PathValue("movement"))
	switch outcome := movement.OverrideOutcome(s.As); {
	case !ok:
		return nil, fault.New(fault.NotFound, "There is no such movement: settle names one by its id, refId, txId or upstream reference.")
	case outcome != movement.OverrideSucceeded && outcome != movement.OverrideFailed:
		return nil, fault.Invalid("as", "must be success or failed")
	case !plain(s.Reason, 1, maxReason):
		return nil, fault.Invalid("reason", "must have 1 to 500 characters, without control characters")
	}
	decided, err := c.deps.Decider.Decide(x.request.Context(), engine.Decision{
		Movement: id, Attempt: attempt, Operator: x.operator, Outcome: movement.OverrideOutcome(s.As), Reason: s.Reason, Alone: s.Alone,
	})
	if err != nil {
		return nil, err
	}
	m := decided.Movement
	return adminapi.Overridden{
		ID: m.ID.String(), MerchantID: m.Owner.MerchantID, Mode: m.Owner.Mode, Kind: string(m.Kind), Reference: shownReference(m.Reference),
		State: string(m.State), Waiting: !decided.Decision.Made(), Override: verdictDocument(decided.Decision),
	}, nil
}

// ourName reads a name of ours of a movement: its id in either form, or that
// under which its provider is asked, which names an attempt of it, too.
func ourName(text string) (id movement.ID, attempt int, ok bool) {
	if id, err := movement.ParseID(text); err == nil {
		return id, 0, true
	}
	return movement.ParseUpstreamReference(text)
}
