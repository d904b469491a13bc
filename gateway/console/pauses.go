package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func (c *Console) listPauses(x *call, _ adminapi.None) ([]tenants.Pause, error) {
	return c.deps.Pauses.Pauses(x.request.Context(), adminapi.MostListed)
}

func (c *Console) setPause(x *call, p tenants.Pause) (adminapi.Paused, error) {
	return c.changePause(x, p, "pause", c.deps.Pauses.SetPause)
}

func (c *Console) endPause(x *call, p tenants.Pause) (adminapi.Paused, error) {
	return c.changePause(x, p, "resume", c.deps.Pauses.EndPause)
}

func (c *Console) changePause(
	x *call, p tenants.Pause, action string, change func(context.Context, store.Audit, tenants.Pause) error,
) (adminapi.Paused, error) {
	if err := c.checkPause(x, p); err != nil {
		return adminapi.Paused{}, err
	}
	if p.MerchantID == tenants.Platform {
		if err := x.operator.needs(adminapi.Administer); err != nil {
			return adminapi.Paused{}, err
		}
	}
	p.SetBy, p.SetAt = x.operator.Name, x.now
	err := change(x.request.Context(), x.audit(string(p.What)+"."+action, auditDetail(p)), p)
	c.deps.Directory.Invalidate(p.MerchantID)
	if errors.Is(err, store.ErrNotFound) {
		return adminapi.Paused{}, fault.New(fault.NotFound, "Nothing of that name is paused in that mode. gerbang connection list shows what is.")
	}
	if err != nil {
		return adminapi.Paused{}, err
	}
	still, err := c.stillPaused(x.request.Context(), p)
	if err != nil { // the change itself is through
		c.deps.Log.WarnContext(x.request.Context(), "what else is paused can't be read", "merchant_id", p.MerchantID, "error", err)
	}
	return adminapi.Paused{Pause: p, Still: still}, nil
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
func (c *Console) stillPaused(ctx context.Context, of tenants.Pause) ([]tenants.Pause, error) {
	var still []tenants.Pause
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
				still = append(still, p)
			}
		}
	}
	return still, nil
}

// checkPause refuses what nobody could have meant: a slip of the pen must not leave an
// operator believing that something is paused.
func (c *Console) checkPause(x *call, p tenants.Pause) error {
	if err := checkReason(p.Reason); err != nil {
		return err
	}
	if _, err := tenants.ParseMode(string(p.Mode)); err != nil && (p.Mode != "" || p.What == tenants.PauseConnection) {
		return fault.Invalid("mode", "must be live or test")
	}
	account, err := c.deps.Merchants.AccountByID(x.request.Context(), p.MerchantID)
	if err != nil {
		return notFound(err, "merchant")
	}
	switch p.What {
	case tenants.PauseConnection:
		if _, connected := account.Connection(p.Mode, p.Provider); !connected {
			return fault.New(fault.NotFound, "There is no such connection in that mode.")
		}
	case tenants.PauseProvider:
		if !c.configured(p.Provider) {
			return fault.New(fault.NotFound, "There is no such provider.")
		}
		if p.MerchantID != tenants.Platform {
			return fault.Invalid("merchant_id", "must be platform: a provider is paused for all; a merchant's account there is a connection")
		}
	case tenants.PauseTransfers:
		if p.Provider != "" {
			return fault.Invalid("provider", "must be left out: transfers are paused at every provider")
		}
	default:
		return fault.Invalid("what", "must be connection, provider or transfers")
	}
	return nil
}

// configured tells whether a plugin of this name is there, which may not have come up yet.
func (c *Console) configured(provider tenants.Provider) bool {
	_, offered := c.offered.Load().schemas[provider]
	return offered || slices.ContainsFunc(c.deps.Plugins.Status(), func(s host.Status) bool { return s.Provider == string(provider) })
}

// heldEverywhere is how old a pause is when every replica that serves knows of it.
const heldEverywhere = 5 * time.Second

// removeConnection forgets a connection that is paused already: nothing new can begin
// on it meanwhile. Where something has begun that is open, only who insists removes it: that
// stays as it is, and is asked about again once the account is connected anew.
func (c *Console) removeConnection(x *call, wanted adminapi.ConnectionRemoval) (out adminapi.Merchant, err error) {
	p := tenants.Pause{
		MerchantID: x.merchant(), What: tenants.PauseConnection, Provider: tenants.Provider(wanted.Provider),
		Mode: tenants.Mode(wanted.Mode), Reason: wanted.Reason,
	}
	if err := c.checkPause(x, p); err != nil {
		return out, err
	}
	account, err := c.deps.Merchants.AccountByID(x.request.Context(), p.MerchantID)
	if err != nil {
		return out, err
	}
	pause, paused := account.Paused(p.What, p.Provider, p.Mode)
	if !paused {
		return out, notPaused()
	}
	if x.now.Sub(pause.SetAt) < heldEverywhere {
		return out, fault.New(fault.InvalidRequest, "The connection has been paused for less than five seconds, and other replicas may not know it yet. Try again then.")
	}
	detail := auditDetail(p)
	if wanted.LeaveOpen {
		detail += ", leaving open what is open"
	}
	gone := tenants.Connection{MerchantID: p.MerchantID, Provider: p.Provider, Mode: p.Mode}
	err = c.deps.Pauses.RemoveConnection(x.request.Context(), x.audit("connection.remove", detail), gone, wanted.LeaveOpen)
	if open, is := errors.AsType[*store.OpenError](err); is {
		return out, fault.New(fault.InvalidRequest, fmt.Sprintf("%d movements are open on this connection. Without it nobody can ask the provider how they ended, and its notifications are refused. "+
			"Nothing was removed: wait until they have ended, or insist (leave_open, --leave-open).", open.Open),
			fault.Field{Field: "leave_open", Message: fmt.Sprintf("must be true where movements are open: %d are", open.Open)})
	}
	if errors.Is(err, store.ErrNotFound) {
		return out, notPaused()
	}
	return c.changed(x, p.MerchantID, err)
}

func notPaused() error {
	return fault.New(fault.InvalidRequest, "Pause the connection first, so that nothing new begins on it: gerbang connection pause.")
}
