package operators

import (
	"net/url"
	"slices"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

func providerPath(name string) string { return "/providers/" + url.PathEscape(name) }

func (c *Console) providers(r *room) error {
	plugins, err := adminapi.ListPlugins.Call(r.Request.Context(), r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	approvals, err := adminapi.ListApprovals.Call(r.Request.Context(), r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	return r.Show("providers.html", r.T("Providers"), map[string]any{"Rows": plugins, "Approvals": approvals})
}

func (c *Console) provider(r *room) error {
	plugin, err := adminapi.ShowPlugin.Call(r.Request.Context(), r.admin, adminapi.ProviderName{Provider: r.named("provider")})
	if err != nil {
		return err
	}
	approvals, err := adminapi.ListApprovals.Call(r.Request.Context(), r.admin, adminapi.None{})
	if err != nil {
		return err
	}
	approvals = slices.DeleteFunc(approvals, func(a adminapi.PluginApproval) bool { return a.Provider != plugin.Provider })
	return r.Show("provider.html", plugin.Provider, map[string]any{"P": plugin, "Path": providerPath(plugin.Provider), "Approvals": approvals, "Modes": modes})
}

func (c *Console) activateProvider(r *room) error {
	_, err := adminapi.ActivatePlugin.Call(r.Request.Context(), r.admin, adminapi.PluginActivation{Provider: r.named("provider"), SHA256: r.Form("sha256"), ReplicaID: r.Form("replica")})
	return r.did(err, providerPath(r.named("provider")), "It is in force; the replicas follow within seconds.")
}

func (c *Console) rollBackProvider(r *room) error {
	_, err := adminapi.RollBackPlugin.Call(r.Request.Context(), r.admin, adminapi.ProviderName{Provider: r.named("provider")})
	return r.did(err, providerPath(r.named("provider")), "What was before is in force; the replicas follow within seconds.")
}

func (c *Console) restartProvider(r *room) error {
	_, err := adminapi.RestartPlugin.Call(r.Request.Context(), r.admin, adminapi.ProviderName{Provider: r.named("provider")})
	return r.did(err, providerPath(r.named("provider")), "It runs in a new process on this replica.")
}

func (c *Console) removeProvider(r *room) error {
	_, err := adminapi.RemovePlugin.Call(r.Request.Context(), r.admin, adminapi.PluginRemoval{Provider: r.named("provider")})
	return r.did(err, "/providers", "The provider is removed.")
}
