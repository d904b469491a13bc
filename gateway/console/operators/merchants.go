package operators

import (
	"strconv"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console/page"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// pageOf is how many rows a page of a list has.
const pageOf = 50

// modes are the modes as forms offer them.
var modes = []tenants.Mode{tenants.Live, tenants.Test}

func (c *Console) merchants(r *room) error {
	list, err := adminapi.ListMerchants.Call(r.Request.Context(), r.admin, adminapi.MerchantFilter{After: r.Form("after"), Limit: pageOf})
	if err != nil {
		return err
	}
	return r.Show("merchants.html", r.T("Merchants"), map[string]any{"Rows": list.Merchants, "Next": next("/merchants", list.Next)})
}

func (c *Console) newMerchant(r *room) error {
	tiers, err := tiersOf(r)
	if err != nil {
		return err
	}
	return r.Show("newmerchant.html", r.T("New merchant"), map[string]any{"Tiers": tiers})
}

func (c *Console) createMerchant(r *room) error {
	labels := map[string]string{}
	if zone := r.Form("time_zone"); zone != "" {
		labels["time_zone"] = zone
	}
	made, err := adminapi.CreateMerchant.Call(r.Request.Context(), r.admin, adminapi.NewMerchant{Name: r.Form("name"), Tier: r.Form("tier"), Labels: labels})
	if err != nil {
		return err
	}
	return r.Show("secrets.html", made.Name, map[string]any{"Back": merchantPath(made.MerchantID, ""), "Secrets": secretsOf(made)})
}

func secretsOf(m adminapi.CreatedMerchant) []shownSecret {
	return []shownSecret{
		{"Key of test mode", m.TestKey}, {"Secret of callbacks in test mode", m.TestCallbackSecret},
		{"Key of live mode", m.LiveKey}, {"Secret of callbacks in live mode", m.CallbackSecret},
	}
}

// shownSecret is shown once.
type shownSecret struct{ Text, Secret string }

func (c *Console) merchant(r *room) error {
	ctx, id := r.Request.Context(), r.named("merchant")
	merchant, err := adminapi.ShowMerchant.Call(ctx, r.admin, adminapi.MerchantID{Merchant: id})
	if err != nil {
		return err
	}
	tiers, err := tiersOf(r)
	if err != nil {
		return err
	}
	quotas := map[string]adminapi.Quotas{}
	balances := map[string]adminapi.Balance{}
	for _, mode := range modes {
		if id != string(tenants.Platform) {
			if quotas[string(mode)], err = adminapi.ShowQuotas.Call(ctx, r.admin, adminapi.InMode{Merchant: id, Mode: string(mode)}); err != nil {
				return err
			}
		}
		if balances[string(mode)], err = adminapi.ShowBalance.Call(ctx, r.admin, adminapi.BalanceQuery{Merchant: id, Mode: string(mode)}); err != nil {
			return err
		}
	}
	var invitations page.Invitations
	if id != string(tenants.Platform) {
		if invitations.Rows, err = adminapi.ListInvitations.Call(ctx, r.admin, adminapi.MerchantID{Merchant: id}); err != nil {
			return err
		}
		invitations.Revoke = merchantPath(id, "/invitations/revoke")
	}
	return r.Show("merchant.html", merchant.Name, map[string]any{
		"Invitations": invitations,
		"M":           merchant, "Path": merchantPath(id, ""), "Tiers": tiers, "Quotas": quotas, "Balances": balances, "Modes": modes,
		"Platform": id == string(tenants.Platform), "Limits": limitNames(quotas),
	})
}

// limitNames are the names that a limit can have, as far as this page knows them.
func limitNames(quotas map[string]adminapi.Quotas) []string {
	names := []string{adminapi.LimitMarkup, adminapi.LimitDay, adminapi.LimitDestinationDay, adminapi.LimitRepeatWithin}
	for _, quota := range quotas[string(tenants.Live)].Quotas {
		names = append(names, quota.Quota)
	}
	return names
}

// inviteOwner invites an owner of a merchant, above all the first one.
func (c *Console) inviteOwner(r *room) error {
	made, err := adminapi.InvitePerson.Call(r.Request.Context(), r.admin, adminapi.NewInvitation{Merchant: r.named("merchant"), Email: r.Form("email"), Language: r.Language()})
	return r.invited(err, made.URL, merchantPath(r.named("merchant"), ""))
}

func (c *Console) uninvitePerson(r *room) error {
	_, err := adminapi.RevokeInvitation.Call(r.Request.Context(), r.admin, adminapi.Uninvitation{Merchant: r.named("merchant"), Email: r.Form("email")})
	return r.did(err, merchantPath(r.named("merchant"), ""), "The invitation is revoked.")
}

func (c *Console) suspend(r *room) error {
	_, err := adminapi.SuspendMerchant.Call(r.Request.Context(), r.admin, adminapi.StatusChange{Merchant: r.named("merchant"), Reason: r.Form("reason")})
	return r.did(err, merchantPath(r.named("merchant"), ""), "The merchant is suspended. What was begun goes on.")
}

func (c *Console) resume(r *room) error {
	_, err := adminapi.ResumeMerchant.Call(r.Request.Context(), r.admin, adminapi.StatusChange{Merchant: r.named("merchant"), Reason: r.Form("reason")})
	return r.did(err, merchantPath(r.named("merchant"), ""), "The merchant is active again.")
}

func (c *Console) setTier(r *room) error {
	_, err := adminapi.SetTier.Call(r.Request.Context(), r.admin, adminapi.TierChange{Merchant: r.named("merchant"), Tier: r.Form("tier"), Reason: r.Form("reason")})
	return r.did(err, merchantPath(r.named("merchant"), ""), "The tier is changed.")
}

// setLabel sets a label, or removes one.
func (c *Console) setLabel(r *room) error {
	var value *string
	if r.Form("action") != "remove" {
		value = new(r.Form("value"))
	}
	_, err := adminapi.SetLabels.Call(r.Request.Context(), r.admin, adminapi.LabelChange{Merchant: r.named("merchant"), Labels: map[string]*string{r.Form("name"): value}, Reason: r.Form("reason")})
	return r.did(err, merchantPath(r.named("merchant"), ""), "The labels are changed.")
}

func (c *Console) setLimit(r *room) error {
	limit := adminapi.NewLimit{Name: r.Form("name"), RepeatWithin: r.Form("repeat_within")}
	if text := r.Form("rate"); text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return fault.Invalid("rate", "must be a number, with a point before its decimals")
		}
		limit.RatePerSecond = rate
	}
	for field, to := range map[string]**int64{"limit": &limit.Limit, "markup": &limit.Markup, "amount": &limit.Amount, "transfers": &limit.Transfers} {
		n, err := r.whole(field)
		if err != nil {
			return err
		}
		*to = n
	}
	burst, err := r.whole("burst")
	if err != nil {
		return err
	}
	if burst != nil {
		limit.Burst = *burst
	}
	_, err = adminapi.SetLimits.Call(r.Request.Context(), r.admin, adminapi.LimitChange{
		Merchant: r.named("merchant"),
		Limits:   []adminapi.NewLimit{limit}, For: r.Form("for"), Reason: r.Form("reason"),
	})
	return r.did(err, merchantPath(r.named("merchant"), ""), "The limit is set.")
}

func (c *Console) removeLimit(r *room) error {
	_, err := adminapi.RemoveLimit.Call(r.Request.Context(), r.admin, adminapi.LimitRemoval{Merchant: r.named("merchant"), Name: r.named("limit"), Reason: r.Form("reason")})
	return r.did(err, merchantPath(r.named("merchant"), ""), "The limit is removed: the policy's holds again.")
}

func (c *Console) revokeKey(r *room) error {
	_, err := adminapi.RevokeKey.Call(r.Request.Context(), r.admin, adminapi.KeyRevocation{Merchant: r.named("merchant"), Key: r.named("key"), Reason: r.Form("reason")})
	return r.did(err, merchantPath(r.named("merchant"), ""), "The key is revoked.")
}

func (c *Console) callbacks(r *room) error {
	mode, state := r.Form("mode"), r.Form("state")
	if mode == "" {
		mode = string(tenants.Live)
	}
	span, err := r.Span(c.config.Location)
	if err != nil {
		return err
	}
	list, err := adminapi.ListCallbacks.Call(r.Request.Context(), r.admin, adminapi.CallbackFilter{
		Merchant: r.named("merchant"),
		Mode:     mode, State: state, Since: span.Since, Until: span.Until, After: span.After, Limit: pageOf,
	})
	if err != nil {
		return err
	}
	older := ""
	if len(list) == pageOf {
		last := list[pageOf-1]
		older = span.Older(merchantPath(r.named("merchant"), "/callbacks"), map[string]string{"mode": mode, "state": state}, last.CreatedAt, last.EventID)
	}
	return r.Show("callbacks.html", r.T("Callbacks"), map[string]any{
		"Rows": list, "Merchant": r.named("merchant"), "Path": merchantPath(r.named("merchant"), ""), "Mode": mode, "State": state, "Modes": modes,
		"States": []string{"", "waiting", "delivered", "gone", "dead", "none"}, "Span": span, "Next": older,
	})
}
