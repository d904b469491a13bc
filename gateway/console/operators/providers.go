package operators

import (
	"net/url"
	"slices"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

func providerPath(name string) string { return "/providers/" + url.PathEscape(name) }

func (c *Console) providers(r *room) error {
	plugins, err := r.admin.Plugins(r.Request.Context())
	if err != nil {
		return err
	}
	approvals, err := r.admin.PluginApprovals(r.Request.Context())
	if err != nil {
		return err
	}
	return r.Show("providers.html", r.T("Providers"), map[string]any{"Rows": plugins, "Approvals": approvals})
}

func (c *Console) provider(r *room) error {
	plugin, err := r.admin.Plugin(r.Request.Context(), r.named("provider"))
	if err != nil {
		return err
	}
	approvals, err := r.admin.PluginApprovals(r.Request.Context())
	if err != nil {
		return err
	}
	approvals = slices.DeleteFunc(approvals, func(a adminapi.PluginApproval) bool { return a.Provider != plugin.Provider })
	return r.Show("provider.html", plugin.Provider, map[string]any{"P": plugin, "Path": providerPath(plugin.Provider), "Approvals": approvals, "Modes": modes})
}

func (c *Console) activateProvider(r *room) error {
	_, err := r.admin.ActivatePlugin(r.Request.Context(), r.named("provider"), adminapi.ActivatePlugin{SHA256: r.Form("sha256"), ReplicaID: r.Form("replica")})
	return r.did(err, providerPath(r.named("provider")), "It is in force; the replicas follow within seconds.")
}

func (c *Console) rollBackProvider(r *room) error {
	_, err := r.admin.RollBackPlugin(r.Request.Context(), r.named("provider"))
	return r.did(err, providerPath(r.named("provider")), "What was before is in force; the replicas follow within seconds.")
}

func (c *Console) restartProvider(r *room) error {
	err := r.admin.RestartPlugin(r.Request.Context(), r.named("provider"))
	return r.did(err, providerPath(r.named("provider")), "It runs in a new process on this replica.")
}

func (c *Console) removeProvider(r *room) error {
	_, err := r.admin.RemovePlugin(r.Request.Context(), r.named("provider"), adminapi.PluginRemoval{})
	return r.did(err, "/providers", "The provider is removed.")
}
