package console

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// showRecovery tells what providers' own lists say since the last trace of a gateway in
// the restored database, or since the moment that is asked for.
func (c *Console) showRecovery(x *call, wanted adminapi.RecoveryQuery) (out adminapi.Recovery, err error) {
	ctx := x.request.Context()
	found, err := c.deps.Recovery.LastRecovery(ctx)
	if err != nil {
		return out, err
	}
	if !found.Lasts() {
		return adminapi.Recovery{}, nil
	}
	out = adminapi.Recovery{Recovering: true, BegunAt: &found.Begun, Since: given(found.Since)}
	if !wanted.Since.IsZero() {
		out.Since = &wanted.Since
	}
	if out.Since != nil {
		out.Accounts, err = c.saidSince(ctx, *out.Since)
	}
	return out, err
}

// saidSince asks about the accounts of the platform and of all merchants.
func (c *Console) saidSince(ctx context.Context, since time.Time) ([]adminapi.RecoveryAccount, error) {
	all, err := c.saidOf(ctx, tenants.Platform, since)
	for after := tenants.MerchantID(""); err == nil; {
		var page []tenants.Merchant
		if page, err = c.deps.Merchants.Merchants(ctx, after, adminapi.MostListed); err != nil || len(page) == 0 {
			return all, err
		}
		for _, m := range page {
			said, err := c.saidOf(ctx, m.ID, since)
			if err != nil {
				return nil, err
			}
			all = append(all, said...)
		}
		after = page[len(page)-1].ID
	}
	return nil, err
}

func (c *Console) saidOf(ctx context.Context, id tenants.MerchantID, since time.Time) ([]adminapi.RecoveryAccount, error) {
	account, err := c.deps.Merchants.AccountByID(ctx, id)
	if err != nil {
		return nil, err
	}
	said, err := c.deps.Said(ctx, account, since)
	if err != nil {
		return nil, err
	}
	out := make([]adminapi.RecoveryAccount, len(said))
	for i, s := range said {
		out[i] = recoveryAccount(s)
	}
	return out, nil
}

func recoveryAccount(s reconcile.Said) adminapi.RecoveryAccount {
	out := adminapi.RecoveryAccount{
		MerchantID: string(s.Connection.MerchantID), Mode: string(s.Connection.Mode), Provider: string(s.Connection.Provider),
		Unread: s.Unread, Rows: []adminapi.RecoveryRow{},
	}
	for _, row := range s.Rows {
		out.Rows = append(out.Rows, adminapi.RecoveryRow{ID: row.ID, Reference: row.Reference, Amount: adminapi.Rupiah(row.Amount), At: given(row.At), Names: row.Names})
	}
	return out
}

// openRecovery lets all replicas move money again.
func (c *Console) openRecovery(x *call, r adminapi.RecoveryOpening) (out adminapi.None, err error) {
	if !plain(r.Reason, 1, maxReason) {
		return out, fault.Invalid("reason", "must say in 1 to 500 characters, without control characters, what was found")
	}
	if err := c.deps.Recovery.EndRecovery(x.request.Context(), x.audit("recovery.open", r.Reason)); err != nil {
		return out, notFound(err, "open recovery")
	}
	return out, nil
}
