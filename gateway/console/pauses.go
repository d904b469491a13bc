package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func (c *Console) listPauses(x *call) (any, error) {
	pauses, err := c.deps.Pauses.Pauses(x.request.Context(), adminapi.MostListed)
	if err != nil {
		return nil, err
	}
	return pauseDocuments(pauses), nil
}

func (c *Console) pause(x *call, wanted adminapi.Pause) (any, error) {
	return c.changePause(x, wanted, "pause", c.deps.Pauses.SetPause)
}

func (c *Console) endPause(x *call, wanted adminapi.Pause) (any, error) {
	return c.changePause(x, wanted, "resume", c.deps.Pauses.EndPause)
}

func (c *Console) changePause(
	x *call, wanted adminapi.Pause, action string, change func(context.Context, store.Audit, tenants.Pause) error,
) (any, error) {
	p, err := c.checkPause(x, wanted)
	if err != nil {
		return nil, err
	}
	if p.MerchantID == tenants.Platform {
		if err := x.operator.needs(administer); err != nil {
			return nil, err
		}
	}
	err = change(x.request.Context(), x.audit(string(p.What)+"."+action, auditDetail(p)), p)
	c.deps.Directory.Invalidate(p.MerchantID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fault.New(fault.NotFound, "Nothing of that name is paused in that mode. gerbang connection list shows what is.")
	}
	if err != nil {
		return nil, err
	}
	p.SetBy, p.SetAt = x.operator.Name, x.now
	document := pauseDocument(p)
	if document.Still, err = c.stillPaused(x.request.Context(), p); err != nil { // the change itself is through
		c.deps.Log.WarnContext(x.request.Context(), "what else is paused can't be read", "merchant_id", p.MerchantID, "error", err)
	}
	return document, nil
}

func auditDetail(p tenants.Pause) string {
	detail := "mode " + cmp.Or(string(p.Mode), "live and test")
	if p.Provider != "" {
		detail = "provider " + string(p.Provider) + ", " + detail
	}
	if p.Reason != "" {
		detail += ": " + p.Reason
	}
	return detail
}

// stillPaused are the other pauses, wider or narrower, that hold what a pause is about.
func (c *Console) stillPaused(ctx context.Context, of tenants.Pause) ([]adminapi.Pause, error) {
	var still []adminapi.Pause
	whose := []tenants.MerchantID{of.MerchantID, tenants.Platform}
	for _, id := range slices.Compact(whose) {
		account, err := c.deps.Merchants.AccountByID(ctx, id)
		if err != nil {
			return nil, err
		}
		for _, p := range account.Merchant().Pauses {
			same := p.MerchantID == of.MerchantID && p.What == of.What && p.Mode == of.Mode
			alike := p.What == of.What && p.MerchantID == of.MerchantID || p.What != tenants.PauseConnection && p.MerchantID == tenants.Platform
			modes := p.Mode == "" || of.Mode == "" || p.Mode == of.Mode
			if !same && alike && modes && p.Provider == of.Provider {
				still = append(still, pauseDocument(p))
			}
		}
	}
	return still, nil
}

// checkPause refuses what nobody could have meant: a slip of the pen must not leave an
// operator believing that something is paused.
func (c *Console) checkPause(x *call, wanted adminapi.Pause) (tenants.Pause, error) {
	p := tenants.Pause{
		MerchantID: tenants.MerchantID(wanted.MerchantID), What: tenants.Pausable(wanted.What),
		Provider: tenants.Provider(wanted.Provider), Mode: tenants.Mode(wanted.Mode), Reason: wanted.Reason,
	}
	if err := checkReason(wanted.Reason); err != nil {
		return p, err
	}
	if _, err := tenants.ParseMode(wanted.Mode); err != nil && (p.Mode != "" || p.What == tenants.PauseConnection) {
		return p, fault.Invalid("mode", "must be live or test")
	}
	account, err := c.deps.Merchants.AccountByID(x.request.Context(), p.MerchantID)
	if err != nil {
		return p, notFound(err, "merchant")
	}
	switch p.What {
	case tenants.PauseConnection:
		if _, connected := account.Connection(p.Mode, p.Provider); !connected {
			return p, fault.New(fault.NotFound, "There is no such connection in that mode.")
		}
	case tenants.PauseProvider:
		if !c.configured(p.Provider) {
			return p, fault.New(fault.NotFound, "There is no such provider.")
		}
		if p.MerchantID != tenants.Platform {
			return p, fault.Invalid("merchant_id", "must be platform: a provider is paused for all; a merchant's account there is a connection")
		}
	case tenants.PauseTransfers:
		if p.Provider != "" {
			return p, fault.Invalid("provider", "must be left out: transfers are paused at every provider")
		}
	default:
		return p, fault.Invalid("what", "must be connection, provider or transfers")
	}
	return p, nil
}

// configured tells whether a plugin of this name is there, which may not have come up yet.
func (c *Console) configured(provider tenants.Provider) bool {
	_, offered := c.offered.Load().schemas[provider]
	return offered || slices.ContainsFunc(c.deps.Plugins.Status(), func(s host.Status) bool { return s.Provider == string(provider) })
}

// heldEverywhere is how old a pause is when every replica that serves knows of it.
const heldEverywhere = 5 * time.Second

// removeConnection forgets a connection that is paused already: nothing new can begin
// on it meanwhile. What has begun stays as it is, and is asked about again once the
// account is connected anew.
func (c *Console) removeConnection(x *call, wanted adminapi.ConnectionRemoval) (any, error) {
	p, err := c.checkPause(x, adminapi.Pause{
		MerchantID: string(x.merchant()), What: string(tenants.PauseConnection), Provider: x.request.PathValue("provider"),
		Mode: wanted.Mode, Reason: wanted.Reason,
	})
	if err != nil {
		return nil, err
	}
	account, err := c.deps.Merchants.AccountByID(x.request.Context(), p.MerchantID)
	if err != nil {
		return nil, err
	}
	if pause, paused := account.Paused(p.What, p.Provider, p.Mode); paused && x.now.Sub(pause.SetAt) < heldEverywhere {
		return nil, fault.New(fault.InvalidRequest, "The connection has been paused for less than five seconds, and other replicas may not know it yet. Try again then.")
	}
	gone := tenants.Connection{MerchantID: p.MerchantID, Provider: p.Provider, Mode: p.Mode}
	err = c.deps.Pauses.RemoveConnection(x.request.Context(), x.audit("connection.remove", auditDetail(p)), gone)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fault.New(fault.InvalidRequest, "Pause the connection first, so that nothing new begins on it: gerbang connection pause.")
	}
	return c.changed(x, p.MerchantID, err)
}

func pauseDocuments(pauses []tenants.Pause) []adminapi.Pause {
	list := make([]adminapi.Pause, len(pauses))
	for i, p := range pauses {
		list[i] = pauseDocument(p)
	}
	return list
}

func pauseDocument(p tenants.Pause) adminapi.Pause {
	return adminapi.Pause{
		MerchantID: string(p.MerchantID), What: string(p.What), Provider: string(p.Provider), Mode: string(p.Mode),
		Reason: p.Reason, SetBy: p.SetBy, SetAt: given(p.SetAt),
	}
}
